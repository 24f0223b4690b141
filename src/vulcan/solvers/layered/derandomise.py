"""From two policies, one of them too daring, to a deterministic one between them.

The best randomised policy draws once between a safe and a daring policy. A deterministic policy can
draw, too: from the outcomes that the world draws anyway. It begins as the safe policy, undecided
only in the initial node. In an undecided node it takes the safe or the daring action, and lets
those outcomes go on with the daring policy that the bound allows; the other outcomes that would
gain from daring are undecided in turn. The history that has most to gain is decided first. What is
left of the bound shrinks with the probabilities of the undecided histories, so that the policy
comes close to the randomised one.

Everything is exact: with the rest of the safe policy unchanged, letting an outcome of probability p
of a history of probability q go on daringly changes reward and risk of the whole by q p times the
difference of the two policies from there on.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.graphs.layered_graph import ChoicePlan, Layers
from vulcan.sentinels import END
from vulcan.solvers.layered.dual import Corner, accepts

__all__ = ["Ways", "derandomise"]

SAFE, DARING, UNDECIDED = range(3)

MOST_DECISIONS: Final = 500
"""Histories that are decided one by one; later ones gain next to nothing."""

MOST_TARGETS: Final = 20_000
"""Outcomes that are looked at in all: more where actions have few, fewer decisions where many."""

LEAST_GAIN: Final = 1e-12
"""As a share of the reward: less is not worth a decision."""

Key = tuple[int, int]
"""How a history goes on: safely or daringly from a node, or undecided under a number."""

Decision = tuple[int, list[Key]]
"""An edge, and how each of its targets goes on."""


@dataclass(frozen=True)
class Ways:
    """A policy that is a function of state and step.

    Attributes
    ----------
    choice
        The edge of each node.
    rewards, risks
        What it earns and risks from each node on.
    """

    choice: NDArray[np.int32]
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]


@dataclass(frozen=True)
class DecidedPlan:
    """A policy that decides some histories one by one, and lets the others go on as they began.

    Attributes
    ----------
    safe, daring
        The edge of each node for histories that go on safely or daringly.
    decisions
        For each history that is decided by itself.
    """

    safe: NDArray[np.int32]
    daring: NDArray[np.int32]
    decisions: list[Decision]

    @property
    def root(self) -> Key:
        """The key of the initial node."""
        return UNDECIDED, 0

    def choose(self, layers: Layers, key: Key) -> tuple[int, Sequence[Key]]:
        """Return the edge that a history takes, and how each of its targets goes on."""
        mode, number = key
        if mode == UNDECIDED:
            return self.decisions[number]
        edge = int((self.safe if mode == SAFE else self.daring)[number])
        return edge, [(mode, node) for node in layers.follow(edge)]


def derandomise(
    layers: Layers,
    bound: RiskBound,
    safe: Ways,
    daring: Ways,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Corner:
    """Return a policy that begins safely and dares what the bound allows.

    Parameters
    ----------
    layers
        The layered graph.
    bound
        The risk bound; it must accept the safe policy.
    safe, daring
        The two policies.
    may_go_on
        Asked before each decision.
    """
    work = _Decisions(layers, bound, safe, daring)
    while work.pending and work.looked_at < MOST_TARGETS and may_go_on():
        work.decide()
        if len(work.decisions) == MOST_DECISIONS:
            break
    work.leave()
    if not work.decisions:
        return Corner(work.reward, work.risk, ChoicePlan(safe.choice))
    plan = DecidedPlan(safe.choice, daring.choice, work.decisions)
    return Corner(*work.evaluate(), plan)


@dataclass
class _Trial:
    """What an edge leads to, for a history that is undecided."""

    edge: int
    reward: float
    risk: float
    ways: list[Key]
    undecided: list[tuple[float, int]]  # what it would gain, and which target


class _Decisions:
    """The policy in the making.

    Attributes
    ----------
    reward, risk
        Of the policy as it is, what is undecided going on safely.
    looked_at
        How many outcomes were weighed.
    pending
        The undecided histories, the one with most to gain first: what that is, number of the
        decision that leads there, which of its targets, node, probability.
    """

    def __init__(self, layers: Layers, bound: RiskBound, safe: Ways, daring: Ways) -> None:
        self._edges, self._targets = layers.arrays.edges, layers.arrays.targets
        self._bound, self._safe, self._daring = bound, safe, daring
        self.reward, self.risk = float(safe.rewards[0]), float(safe.risks[0])
        self._least = LEAST_GAIN * abs(float(daring.rewards[0]))
        self.looked_at = 0
        self.decisions: list[Decision] = []
        self.pending: list[tuple[float, int, int, int, float]] = [(0.0, -1, -1, 0, 1.0)]

    def decide(self) -> None:
        """Decide the history that has most to gain."""
        _, parent, place, node, reach = heapq.heappop(self.pending)
        edges = {int(self._safe.choice[node]), int(self._daring.choice[node])}
        trials = [self._try(node, edge, reach) for edge in sorted(edges)]
        best = max((t for t in trials if t is not None), key=lambda t: (t.reward, -t.risk))
        number = len(self.decisions)
        self.decisions.append((best.edge, best.ways))
        if parent >= 0:
            self.decisions[parent][1][place] = (UNDECIDED, number)
        self.reward, self.risk = best.reward, best.risk
        first = int(self._edges["first_target"][best.edge])
        for gain, k in best.undecided:
            target = self._targets[first + k]
            there = reach * float(target["probability"])
            heapq.heappush(self.pending, (-gain, number, k, int(target["node"]), there))

    def leave(self) -> None:
        """Let what is still undecided go on safely."""
        for _, parent, place, node, _ in self.pending:
            self.decisions[parent][1][place] = (SAFE, node)

    def evaluate(self) -> tuple[float, float]:
        """Return reward and risk of the whole policy, computed anew.

        What was added up while deciding began with the safe policy, and may be a small difference
        of large numbers.
        """
        values: list[tuple[float, float]] = [(0.0, 0.0)] * len(self.decisions)
        for number in range(len(self.decisions) - 1, -1, -1):
            edge, ways = self.decisions[number]
            row = self._edges[edge]
            rewards, risks = [float(row["reward"])], [float(row["risk"])]
            first = int(row["first_target"])
            for k, (mode, place) in enumerate(ways):
                if mode != UNDECIDED and place == END:
                    continue
                reward, risk = values[place] if mode == UNDECIDED else self._value(mode, place)
                probability = float(self._targets["probability"][first + k])
                rewards.append(probability * reward)
                risks.append(probability * risk)
            values[number] = (math.fsum(rewards), math.fsum(risks))
        return values[0]

    def _value(self, mode: int, node: int) -> tuple[float, float]:
        ways = self._safe if mode == SAFE else self._daring
        return float(ways.rewards[node]), float(ways.risks[node])

    def _try(self, node: int, edge: int, reach: float) -> _Trial | None:
        """Take an edge, as daringly as the bound allows; None if it forbids it altogether."""
        safe, daring = self._safe, self._daring
        row = self._edges[edge]
        first, count = int(row["first_target"]), int(row["target_count"])
        targets = self._targets[first : first + count].tolist()
        self.looked_at += count
        earned, risked = float(row["reward"]), float(row["risk"])
        changes = []
        for k, (probability, target) in enumerate(targets):
            if target == END:
                continue
            earned += probability * float(safe.rewards[target])
            risked += probability * float(safe.risks[target])
            gain = reach * probability * float(daring.rewards[target] - safe.rewards[target])
            danger = reach * probability * float(daring.risks[target] - safe.risks[target])
            changes.append((gain, danger, k))
        reward = self.reward + reach * (earned - float(safe.rewards[node]))
        risk = self.risk + reach * (risked - float(safe.risks[node]))
        if edge != safe.choice[node] and not accepts(self._bound, Corner(reward, risk)):
            return None
        trial = _Trial(edge, reward, risk, [(SAFE, target) for _, target in targets], [])
        for gain, danger, k in sorted(changes, reverse=True):
            after = Corner(trial.reward + gain, trial.risk + danger)
            if gain > 0 and accepts(self._bound, after):
                trial.reward, trial.risk = after.reward, after.risk
                trial.ways[k] = (DARING, targets[k][1])
            elif gain > self._least:
                trial.undecided.append((gain, k))
        return trial
