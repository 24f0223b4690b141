"""A policy as a tree search has it, before it is written out for people."""

from __future__ import annotations

import math
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
from vulcan.runtime.packing import pack_array, require, require_names, unpack_array
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import END, UNPLANNED
from vulcan.tolerance import AGREEMENT

__all__ = ["FRONTS", "KNOWN", "LOCAL", "NEUTRAL", "PAIRS", "Draft"]

ARRAYS: Final = ("rows", "firsts", "below")
NUMBERS: Final = ("reward", "risk", "allowed", "frontier")

# Roads to a policy, for people.
FRONTS: Final = "prices and fronts"
PAIRS: Final = "prices and fronts over pairs of state and step"
NEUTRAL: Final = "the plan without regard to risk"
LOCAL: Final = "local constraint B"
KNOWN: Final = "what was known when the model failed"
ROADS: Final = ("", FRONTS, PAIRS, NEUTRAL, LOCAL, KNOWN)


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
        numbers = np.array([getattr(self, name) for name in NUMBERS])
        arrays = {name: pack_array(getattr(self, name)) for name in ARRAYS}
        if self.answers is not None:
            arrays["answers"] = pack_array(self.answers)
        return arrays | {"numbers": pack_array(numbers), "road": self.road.encode()}

    @classmethod
    def unpack(cls, packed: dict[str, bytes], graph: Graph) -> Self:
        """Return the draft of a checkpoint, whose rows are those of a graph."""
        own = ("answers",) if "answers" in packed else ()
        require_names(packed, (*ARRAYS, *own, "numbers", "road"))
        rows, firsts, below = (unpack_array(packed, name, np.zeros(0, np.int32)) for name in ARRAYS)
        numbers = unpack_array(packed, "numbers", np.zeros(0), len(NUMBERS)).tolist()
        worth = dict(zip(NUMBERS, numbers, strict=True))
        road = next((road for road in ROADS if road.encode() == packed["road"]), None)
        answers = unpack_array(packed, "answers", np.zeros(0, ACTION), len(rows)) if own else None
        require(road is not None, "there is no such road to a policy")
        draft = cls(rows, firsts, below, **worth, road=str(road), answers=answers)
        draft._check(graph)
        return draft

    def _check(self, graph: Graph) -> None:
        """Refuse what is no policy of a model, or not worth what is said."""
        rows, below = self.rows, self.below
        inside = (rows >= 0) & (rows < graph.actions.count)
        require(inside.all() or self.answers is not None, "an action is not there")
        actions = graph.actions.array[rows] if self.answers is None else self.answers
        known = (actions["number"] >= 0) & (actions["number"] < len(graph.labels))
        require(known.all(), "an action has no name")
        counts = actions["safe_count"].astype(np.int64)
        firsts = np.concatenate(([0], np.cumsum(counts)))
        fits = (counts >= 0).all() and np.array_equal(self.firsts, firsts)
        require(fits and firsts[-1] == len(below), "decisions don't share out their outcomes")
        later = (below > np.repeat(np.arange(len(rows)), counts)) & (below < len(rows))
        require((later | (below == END) | (below == UNPLANNED)).all(), "a decision is not there")
        reached = np.zeros(len(rows), bool)
        reached[:1] = reached[below[later]] = True
        require(reached.all(), "nothing leads to a decision")
        require(not math.isnan(self.allowed), "what is allowed is not a number")
        require(abs(self.reward) < math.inf, "what a policy earns is not a number")
        if self.answers is None:
            self._check_states(graph, actions, later)
            self._check_worth(graph, actions, later)

    def _check_states(self, graph: Graph, actions: Any, later: NDArray[np.bool_]) -> None:
        """Refuse actions of other states than those that outcomes lead to."""
        counts = actions["safe_count"].astype(np.intp)
        stored = np.repeat(actions["first_outcome"] >= 0, counts)
        require(stored[self.below != END].all(), "a decision follows what was never asked")
        states = graph.outcomes.array["state"][ranges(actions["first_outcome"], counts)[later]]
        require((states >= 0).all(), "a decision follows what has no state")
        root = np.full(min(1, len(self.rows)), Graph.ROOT)
        here = graph.states.array[np.concatenate((root, states))]
        steps = np.concatenate((self.rows[:1], self.rows[self.below[later]])) - here["first_action"]
        own = (steps >= 0) & (steps < here["action_count"])
        require(own.all(), "an action is taken in another state")

    def _check_worth(self, graph: Graph, actions: Any, later: NDArray[np.bool_]) -> None:
        """Refuse what can't be the reward, the risk and the frontier, and histories too long."""
        weights, firsts, below = graph.reader.weights, self.firsts.astype(np.intp), self.below
        reach, earned, size = np.zeros(len(self.rows)), 0.0, 1.0
        reach[:1] = 1.0
        risk = frontier = 0.0
        here, level = np.zeros(min(1, len(self.rows)), np.intp), 0
        while len(here):
            require(level < len(weights), "a policy goes on beyond the horizon")
            rewards = weights[level] * reach[here] * actions["expected_reward"][here]
            earned, size = earned + float(rewards.sum()), size + float(np.abs(rewards).sum())
            risk += float((reach[here] * actions["immediate_risk"][here]).sum())
            counts = firsts[here + 1] - firsts[here]
            entries = ranges(firsts[here], counts)
            unfinished = below[entries] != END
            entries, parents = entries[unfinished], np.repeat(here, counts)[unfinished]
            places = actions["first_outcome"][parents] + entries - firsts[parents]
            chances = reach[parents] * graph.outcomes.array["probability"][places]
            goes_on = later[entries]
            frontier += float(chances[~goes_on].sum())
            following = below[entries[goes_on]]
            require((reach[following] == 0).all(), "a decision is on two levels")
            np.add.at(reach, following, chances[goes_on])
            here, level = np.unique(following).astype(np.intp), level + 1
        for said, found in ((self.reward, earned), (self.risk, risk), (self.frontier, frontier)):
            require(abs(said - found) <= AGREEMENT * size, "a policy is not worth what is said")
