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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from vulcan.graphs.decisions import Choice, Decisions
from vulcan.graphs.levels import ChoicePlan, Levels
from vulcan.sentinels import END
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.layered.sweeps import Ways

__all__ = ["derandomise"]

SAFE, DARING, UNDECIDED = 0, 1, -1

MOST_DECISIONS: Final = 500
"""Histories that are decided one by one; later ones gain next to nothing."""

MOST_TARGETS: Final = 20_000
"""Outcomes that are looked at in all: more where actions have few, fewer decisions where many."""

LEAST_GAIN: Final = 1e-12
"""As a share of the reward: less is not worth a decision."""

Key = tuple[int, int]
"""How a history goes on: safely or daringly from a node, or undecided under a number."""

Decision = tuple[int, int, list[Key]]
"""A node, the row that is taken there, and how each of its targets goes on."""


@dataclass(frozen=True)
class HistoryPlan:
    """A policy that decides some histories one by one, and lets the others go on as they began.

    Attributes
    ----------
    levels
        The graph.
    safe, daring
        The row of each node for histories that go on safely or daringly.
    decisions
        For each history that is decided by itself.
    """

    levels: Levels
    safe: Choice
    daring: Choice
    decisions: list[Decision]

    def decide(self) -> Decisions:
        """Return all decisions."""
        return self.levels.decide(np.stack([self.safe, self.daring]), self.decisions)


def derandomise(
    levels: Levels,
    referee: Referee,
    safe: Ways,
    daring: Ways,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Corner:
    """Return a policy that begins safely and dares what the bound allows.

    Parameters
    ----------
    levels
        The graph.
    referee
        The risk bound; it must accept the safe policy.
    safe, daring
        The two policies.
    may_go_on
        Asked before each decision.
    """
    work = _Decisions(levels, referee, safe, daring)
    while work.pending and work.looked_at < MOST_TARGETS and may_go_on():
        work.decide()
        if len(work.decisions) == MOST_DECISIONS:
            break
    work.leave()
    if not work.decisions:
        return Corner(work.reward, work.risk, ChoicePlan(levels, safe.choice))
    plan = HistoryPlan(levels, safe.choice, daring.choice, work.decisions)
    return Corner(*work.evaluate(), plan)


@dataclass
class _Trial:
    """What an action leads to, for a history that is undecided."""

    row: int
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

    def __init__(self, levels: Levels, referee: Referee, safe: Ways, daring: Ways) -> None:
        self._levels, self._arrays = levels, levels.arrays
        self._referee, self._safe, self._daring = referee, safe, daring
        self.reward, self.risk = float(safe.rewards[0]), float(safe.risks[0])
        self._least = LEAST_GAIN * abs(float(daring.rewards[0]))
        self.looked_at = 0
        self.decisions: list[Decision] = []
        self.pending: list[tuple[float, int, int, int, float]] = [(0.0, -1, -1, 0, 1.0)]

    def decide(self) -> None:
        """Decide the history that has most to gain."""
        _, parent, place, node, reach = heapq.heappop(self.pending)
        rows = {int(self._safe.choice[node]), int(self._daring.choice[node])}
        trials = [self._try(node, row, reach) for row in sorted(rows)]
        best = max((t for t in trials if t is not None), key=lambda t: (t.reward, -t.risk))
        number = len(self.decisions)
        self.decisions.append((node, best.row, best.ways))
        if parent >= 0:
            self.decisions[parent][2][place] = (UNDECIDED, number)
        self.reward, self.risk = best.reward, best.risk
        targets = self._levels.list_targets(node, best.row)
        for gain, k in best.undecided:
            probability, target = targets[k]
            heapq.heappush(self.pending, (-gain, number, k, target, reach * probability))

    def leave(self) -> None:
        """Let what is still undecided go on safely."""
        for _, parent, place, node, _ in self.pending:
            if parent >= 0:  # before the first decision, the whole policy is the safe one
                self.decisions[parent][2][place] = (SAFE, node)

    def evaluate(self) -> tuple[float, float]:
        """Return reward and risk of the whole policy, computed anew.

        What was added up while deciding began with the safe policy, and may be a small difference
        of large numbers.
        """
        values: list[tuple[float, float]] = [(0.0, 0.0)] * len(self.decisions)
        for number in range(len(self.decisions) - 1, -1, -1):
            node, row, ways = self.decisions[number]
            earned, risked = self._take(node, row)
            rewards, risks = [earned], [risked]
            targets = self._levels.list_targets(node, row)
            for k, (mode, place) in enumerate(ways):
                if mode != UNDECIDED and place == END:
                    continue
                reward, risk = values[place] if mode == UNDECIDED else self._value(mode, place)
                rewards.append(targets[k][0] * reward)
                risks.append(targets[k][0] * risk)
            values[number] = (math.fsum(rewards), math.fsum(risks))
        return values[0]

    def _value(self, mode: int, node: int) -> tuple[float, float]:
        ways = self._safe if mode == SAFE else self._daring
        return float(ways.rewards[node]), float(ways.risks[node])

    def _take(self, node: int, row: int) -> tuple[float, float]:
        """Return reward and risk of an action by itself."""
        arrays = self._arrays
        level = int(np.searchsorted(arrays.first, node, side="right")) - 1
        reward = float(arrays.weights[level] * arrays.expected_reward[row])
        return reward, float(arrays.immediate_risk[row])

    def _try(self, node: int, row: int, reach: float) -> _Trial | None:
        """Take an action, as daringly as the bound allows; None if it forbids it altogether."""
        safe, daring = self._safe, self._daring
        targets = self._levels.list_targets(node, row)
        self.looked_at += len(targets)
        earned, risked = self._take(node, row)
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
        if row != safe.choice[node] and not self._referee.accepts(Corner(reward, risk)):
            return None
        trial = _Trial(row, reward, risk, [(SAFE, target) for _, target in targets], [])
        for gain, danger, k in sorted(changes, reverse=True):
            after = Corner(trial.reward + gain, trial.risk + danger)
            if gain > 0 and self._referee.accepts(after):
                trial.reward, trial.risk = after.reward, after.risk
                trial.ways[k] = (DARING, targets[k][1])
            elif gain > self._least:
                trial.undecided.append((gain, k))
        return trial
