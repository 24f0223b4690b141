"""A candidate: the decisions of a policy as a search finds it, before it is written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.certify import Judgement
from vulcan.graph.compiled import CompiledGraph
from vulcan.graph.states import Graph
from vulcan.numerics import END, UNPLANNED
from vulcan.policy.policy import About, Policy
from vulcan.runtime.arrays import pack_array, require, require_names, unpack_array
from vulcan.runtime.limits import pause_collection

ARRAYS: Final = ("rows", "firsts", "below")
NUMBERS: Final = ("reward", "risk", "allowed", "frontier")

# How a policy was found, for people.
FRONTS: Final = "prices and fronts"
PAIRS: Final = "prices and fronts over state–step pairs"
NEUTRAL: Final = "the plan without regard to risk"
LOCAL: Final = "local test B"
METHODS: Final = ("", FRONTS, PAIRS, NEUTRAL, LOCAL)


@dataclass(frozen=True, eq=False)
class Candidate:
    """The decisions of a policy, parents before children, with its reward and risk.

    Decision k has the entries firsts[k] to firsts[k + 1] of `below`: the decision after each of its
    safe outcomes, as in `vulcan.policy.policy`. The numbers are those of a certificate, up to
    rounding.
    """

    rows: NDArray[np.int32]  # the action row of each decision
    firsts: NDArray[np.int32]
    below: NDArray[np.int32]
    reward: float
    risk: float
    allowed: float
    frontier: float
    method: str = ""  # how it was found, for people
    graph: Graph | None = None  # the graph of the rows; None for that of the search
    answers: NDArray[Any] | None = None  # the rows themselves, if from the graphs of shards

    def __len__(self) -> int:
        """Return the number of decisions."""
        return len(self.rows)

    @property
    def judgement(self) -> Judgement:
        """The reward, risk and completeness of the policy, by the search."""
        return Judgement(
            reward=self.reward,
            risk=self.risk,
            allowed=self.allowed,
            complete=not bool(np.any(self.below == UNPLANNED)),
            frontier=self.frontier,
        )

    def write_out(self, graph: Graph, about: About) -> Policy:
        """Return the policy."""
        with pause_collection():
            if self.answers is not None:
                assert isinstance(graph, CompiledGraph)
                return graph.write_policy(self.answers, self.below.tolist(), about)
            return (self.graph or graph).policy(self.rows.tolist(), self.below.tolist(), about)

    def pack(self) -> dict[str, bytes]:
        """Return the candidate as bytes, for a checkpoint."""
        numbers = np.array([getattr(self, name) for name in NUMBERS])
        arrays = {name: pack_array(getattr(self, name)) for name in ARRAYS}
        return arrays | {"numbers": pack_array(numbers), "method": self.method.encode()}

    @classmethod
    def unpack(cls, packed: dict[str, bytes], graph: Graph) -> Self:
        """Return the candidate of a checkpoint, whose rows are those of a graph.

        Its reward and risk are not verified: the policy is certified from the model.
        """
        require_names(packed, (*ARRAYS, "numbers", "method"))
        rows, firsts, below = (unpack_array(packed, name, np.zeros(0, np.int32)) for name in ARRAYS)
        numbers = unpack_array(packed, "numbers", np.zeros(0), len(NUMBERS))
        method = next((method for method in METHODS if method.encode() == packed["method"]), None)
        require(method is not None, "there is no such method")
        require(not np.isnan(numbers).any(), "the reward or the risk of a policy is not a number")
        inside = (rows >= 0) & (rows < graph.actions.count)
        require(inside.all(), "an action is not there")
        counts = graph.actions.array["safe_count"][rows].astype(np.int64)
        shared = np.array_equal(firsts, np.concatenate(([0], np.cumsum(counts))))
        require(shared and firsts[-1] == len(below), "decisions have other outcomes")
        later = (below > np.repeat(np.arange(len(rows)), counts)) & (below < len(rows))
        require((later | (below == END) | (below == UNPLANNED)).all(), "a decision is not there")
        reached = np.zeros(len(rows), bool)
        reached[:1] = reached[below[later]] = True
        require(reached.all(), "nothing leads to a decision")
        worth = dict(zip(NUMBERS, numbers.tolist(), strict=True))
        return cls(rows, firsts, below, **worth, method=str(method))
