"""A policy as a tree search has it, before it is written out for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.certificate import Judgement
from vulcan.graphs.base import Graph
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.graphs.rows import ACTION
from vulcan.policies.policy import About, Policy
from vulcan.runtime.garbage import pause_collection
from vulcan.sentinels import UNPLANNED

__all__ = ["FRONTS", "KNOWN", "LOCAL", "NEUTRAL", "PAIRS", "Draft"]

ARRAYS: Final = ("rows", "firsts", "below")

# Roads to a policy, for people.
FRONTS: Final = "prices and fronts"
PAIRS: Final = "prices and fronts over pairs of state and step"
NEUTRAL: Final = "the plan without regard to risk"
LOCAL: Final = "local constraint B"
KNOWN: Final = "what was known when the model failed"


@dataclass(frozen=True, eq=False)
class Draft:
    """The decisions of a policy, parents before children, and what the search says of them.

    Attributes
    ----------
    rows
        The action row of each decision.
    firsts, below
        Decision k has the entries firsts[k] to firsts[k + 1] of `below`: what comes after each of
        its safe outcomes, as in `vulcan.policies.policy`.
    reward, risk, allowed, frontier
        As in a certificate; exact but for rounding.
    road
        How it was found, for people.
    graph
        The graph of the rows; None for that of the search.
    answers
        The rows themselves, where they are from graphs that are elsewhere.
    """

    rows: NDArray[np.int32]
    firsts: NDArray[np.int32]
    below: NDArray[np.int32]
    reward: float
    risk: float
    allowed: float
    frontier: float
    road: str = ""
    graph: Graph | None = None
    answers: NDArray[Any] | None = None

    def __len__(self) -> int:
        """Return the number of decisions."""
        return len(self.rows)

    @property
    def judgement(self) -> Judgement:
        """What the tree says of the policy."""
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
        """Return the draft as bytes, for a checkpoint."""
        numbers = np.array([self.reward, self.risk, self.allowed, self.frontier])
        arrays = {name: getattr(self, name).tobytes() for name in ARRAYS}
        if self.answers is not None:
            arrays["answers"] = self.answers.tobytes()
        return arrays | {"numbers": numbers.tobytes(), "road": self.road.encode()}

    @classmethod
    def unpack(cls, data: dict[str, bytes]) -> Self:
        """Return the draft of a checkpoint."""
        rows, firsts, below = (np.frombuffer(data[name], np.int32) for name in ARRAYS)
        reward, risk, allowed, frontier = np.frombuffer(data["numbers"], np.float64).tolist()
        road = data["road"].decode()
        answers = np.frombuffer(data["answers"], ACTION) if "answers" in data else None
        numbers = (reward, risk, allowed, frontier)
        return cls(rows, firsts, below, *numbers, road, answers=answers)
