"""Policies as points in the plane of reward and risk, and the dynamic programs that find them.

A `PolicyPoint` is a policy that is not written out yet: its reward, its risk, and a function that
makes its decisions. For some weights of reward and risk a sweep over the levels
(`vulcan.kernels.dp`) finds the best one. The pairs of a large level
are shared by threads (`vulcan.runtime.arrays`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.graph.levels import Choice, Decisions, Levels, build_levels
from vulcan.graph.states import StateGraph
from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.runtime.arrays import Block, ThreadPool, cut_levels

__all__ = [
    "Mixture",
    "PolicyPoint",
    "Sweeps",
    "Ways",
    "load_kernels",
    "make_smallest_levels",
    "make_values",
]

LEAST_OUTCOMES: Final = 1 << 15
"""Smallest number of outcomes in a block of a level, about: a tenth of a millisecond."""


def _no_decisions() -> Decisions:
    return Decisions(*np.zeros((3, 0), np.int32))


@dataclass(frozen=True)
class PolicyPoint:
    """A deterministic policy that is not written out yet.

    Attributes
    ----------
    reward, risk
        Its expected reward and probability of failure, up to rounding.
    decide
        Makes its decisions. On a large graph those of all policies that a search has seen would
        take more memory than everything else.
    """

    reward: float
    risk: float
    decide: Callable[[], Decisions] = _no_decisions

    @classmethod
    def made(cls, reward: float, risk: float, decisions: Decisions) -> Self:
        """Return a policy whose decisions are made already."""
        return cls(reward, risk, lambda: decisions)


@dataclass(frozen=True)
class Mixture:
    """A point between two policies.

    Attributes
    ----------
    safe, risky
        The policies; the same one twice for a policy alone.
    weight
        Probability of the second.
    """

    safe: PolicyPoint
    risky: PolicyPoint
    weight: float

    @property
    def reward(self) -> float:
        """Expected reward."""
        return self.safe.reward + self.weight * (self.risky.reward - self.safe.reward)

    @property
    def risk(self) -> float:
        """Probability of failure."""
        return self.safe.risk + self.weight * (self.risky.risk - self.safe.risk)


@dataclass(frozen=True)
class Ways:
    """A policy that is a function of state and step.

    Attributes
    ----------
    choice
        The action row of each pair.
    rewards, risks
        Its reward and risk from each pair on.
    """

    choice: Choice
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]


class Sweeps:
    """The dynamic programs of some levels.

    Parameters
    ----------
    levels
        The levels.
    tips
        Reward and risk from each tip on, an array of kind `VALUE` with an entry for each pair;
        None if there are no tips.
    thread_pool
        Threads that share the pairs of large levels.
    """

    def __init__(
        self,
        levels: Levels,
        tips: NDArray[np.void] | None = None,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        self.levels = levels
        self._thread_pool = ThreadPool() if thread_pool is None else thread_pool
        outcomes = len(levels.arrays.target) / max(1, len(levels.arrays.action_count))
        least = math.ceil(LEAST_OUTCOMES / max(1.0, outcomes))
        self._blocks = list(cut_levels(levels.arrays.first, least, self._thread_pool.count))
        self._tips = make_values(0) if tips is None else tips

    def find_best(self, reward_weight: float, risk_weight: float) -> PolicyPoint:
        """Return the policy with the largest weighted difference of reward and risk."""
        pair = self._sweep(reward_weight, risk_weight, make_values(0), np.zeros(0, np.int32))
        reward, risk = pair[0, self.levels.graph.ROOT].item()

        def decide() -> Decisions:
            return self.levels.decide(self.choose(reward_weight, risk_weight)[None])

        return PolicyPoint(reward, risk, decide)

    def choose(self, reward_weight: float, risk_weight: float) -> Choice:
        """Return the row that this policy takes in each pair."""
        choice = np.zeros(len(self.levels), np.int32)
        self._sweep(reward_weight, risk_weight, make_values(0), choice)
        return choice

    def follow_weights(self, reward_weight: float, risk_weight: float) -> Ways:
        """Return this policy with its reward and risk from each pair on."""
        values, choice = make_values(len(self.levels)), np.zeros(len(self.levels), np.int32)
        self._sweep(reward_weight, risk_weight, values, choice)
        return Ways(choice, *(np.ascontiguousarray(values[name]) for name in ("reward", "risk")))

    def _sweep(
        self, reward_weight: float, risk_weight: float, values: NDArray[np.void], choice: Choice
    ) -> NDArray[np.void]:
        from vulcan.kernels.dp import sweep

        pair = make_values(2 * len(self.levels.arrays.action_count)).reshape(2, -1)
        weights = (float(reward_weight), float(risk_weight))
        given = (self.levels.arrays, *weights, self._tips, pair, choice, values)

        def work(block: Block) -> None:
            sweep(*given, *block)

        for blocks in self._blocks:
            self._thread_pool.share(work, blocks)
        return pair


def make_values(size: int) -> NDArray[np.void]:
    """Return reward and risk of this many pairs, all of them 0."""
    from vulcan.kernels.dp import VALUE

    return np.zeros(size, VALUE)


class _Smallest:
    """A model with one state and one action, to compile kernels with."""

    horizon = 2

    def initial_state(self) -> int:
        return 0

    def actions(self, _: int) -> list[str]:
        return ["stay"]

    def outcomes(self, _: int, __: str) -> list[Outcome]:
        return [Outcome(1.0, 0.0, 0)]


@cache
def make_smallest_levels() -> Levels:
    """Return the levels of a model with one state, to compile kernels with."""
    levels = build_levels(StateGraph(ModelReader(_Smallest())))
    assert levels is not None
    return levels


@cache
def load_kernels() -> None:
    """Load or compile the kernels of dynamic programs and of unrolling."""
    from vulcan.kernels import dp
    from vulcan.kernels.compilation import announce_compilation

    announce_compilation(dp.sweep)
    Sweeps(make_smallest_levels()).find_best(1.0, 0.0).decide()
