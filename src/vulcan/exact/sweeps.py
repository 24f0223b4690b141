"""Policies as points in the plane of reward and risk, and the dynamic programs that find them.

A `PolicyPoint` is a policy that is not written out yet: its reward, its risk, and a function that
makes its decisions. For some weights of reward and risk a sweep over the levels
(`vulcan.kernels.dp`) finds the best one.

Threads. A dynamic program processes levels of state–step pairs one after the other. The pairs of a
level are independent, so a large level is cut into blocks of consecutive pairs, one for each
thread. Kernels run without the interpreter's lock, all threads see the same arrays, and each writes
the entries of its own pairs. Every pair is computed by the same operations in the same order as by
one thread: results are the same, bit for bit. Handing out blocks and waiting for them takes some 50
µs, so small levels are not cut; consecutive small levels are one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import Weights
from vulcan.graph.levels import Choice, Decisions, Levels, build_levels, join_levels
from vulcan.graph.states import StateGraph, open_graph
from vulcan.model.arrays import ArrayModel
from vulcan.model.reader import ModelReader
from vulcan.numerics import UNEVALUATED
from vulcan.runtime.arrays import ranges, starts

LEAST_OUTCOMES: Final = 1 << 15
"""Smallest number of outcomes in a block of a level, about: a tenth of a millisecond."""


@dataclass(frozen=True)
class PolicyPoint:
    """A policy that is not written out yet, with its values up to rounding.

    Decisions are made on demand: those of all policies that a search has seen on a large graph
    would take more memory than everything else. A randomised policy follows one of two `members`,
    which it draws at the start, the second with probability `weight`; where a problem has several
    constraints, one of several, with these `weights`. Then `charges` has a number for each limit,
    the risk first, and `ahead` is the largest risk that is ahead at any history.
    """

    reward: float
    risk: float
    decide: Callable[[], Decisions] = lambda: Decisions(*np.zeros((3, 0), np.int32))
    members: tuple[PolicyPoint, ...] = ()
    weight: float = 0.0
    charges: tuple[float, ...] = ()
    ahead: float = 0.0
    weights: tuple[float, ...] = ()

    @classmethod
    def made(cls, reward: float, risk: float, decisions: Decisions) -> Self:
        """Return a policy whose decisions are made already."""
        return cls(reward, risk, lambda: decisions)

    @classmethod
    def mix(cls, safe: PolicyPoint, risky: PolicyPoint, weight: float) -> PolicyPoint:
        """Return a randomised policy, or the first one alone if the second has no weight."""
        reward = safe.reward + weight * (risky.reward - safe.reward)
        risk = safe.risk + weight * (risky.risk - safe.risk)
        return cls(reward, risk, safe.decide, (safe, risky), weight) if weight else safe


class Sweeps:
    """The dynamic programs of some levels.

    `tips` has reward and risk from each tip on, an array of kind `VALUE` with an entry for each
    pair; None if there are no tips.
    """

    def __init__(
        self, levels: Levels, tips: NDArray[np.void] | None = None, threads: int = 1
    ) -> None:
        self.levels = levels
        self._threads = ThreadPoolExecutor(threads)
        outcomes = len(levels.arrays.target) / max(1, len(levels.arrays.action_count))
        least = math.ceil(LEAST_OUTCOMES / max(1.0, outcomes))
        self._blocks = list(cut_levels(levels.arrays.first, least, threads))
        self._tips = make_values(0) if tips is None else tips

    def find_best(self, reward_weight: float, risk_weight: float) -> PolicyPoint:
        """Return the policy with the largest weighted difference of reward and risk."""
        levels = self._sweep(reward_weight, risk_weight, make_values(0), np.zeros(0, np.int32))
        reward, risk = levels[0, self.levels.graph.ROOT].item()

        def decide() -> Decisions:
            return self.levels.decide(self.choose(reward_weight, risk_weight))

        return PolicyPoint(reward, risk, decide)

    def choose(self, reward_weight: float, risk_weight: float) -> Choice:
        """Return the row that the policy of `find_best` takes in each pair."""
        choice = np.zeros(len(self.levels), np.int32)
        self._sweep(reward_weight, risk_weight, make_values(0), choice)
        return choice

    def follow(
        self, reward_weight: float, risk_weight: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the rewards and the risks of that policy from each pair on."""
        values = make_values(len(self.levels))
        self._sweep(reward_weight, risk_weight, values, np.zeros(0, np.int32))
        return np.ascontiguousarray(values["reward"]), np.ascontiguousarray(values["risk"])

    def follow_many(
        self, weights: Sequence[Weights]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield the results of `follow` for several weights."""
        yield from (self.follow(*pair) for pair in weights)

    def _sweep(
        self, reward_weight: float, risk_weight: float, values: NDArray[np.void], choice: Choice
    ) -> NDArray[np.void]:
        from vulcan.kernels.dp import sweep

        two_levels = make_values(2 * len(self.levels.arrays.action_count)).reshape(2, -1)
        weights = (float(reward_weight), float(risk_weight))
        given = (self.levels.arrays, *weights, self._tips, two_levels, choice, values)

        def work(block: Block) -> None:
            sweep(*given, *block)

        for blocks in self._blocks:
            if len(blocks) == 1:
                work(blocks[0])
                continue
            tasks = [self._threads.submit(work, block) for block in blocks]
            wait(tasks)
            for task in tasks:
                task.result()
        return two_levels


Block = tuple[int, int]
"""The pairs from the first number up to the second, exclusive."""


def cut_levels(first: NDArray[np.int64], least: int, most: int) -> Iterator[list[Block]]:
    """Yield lists of blocks that can be processed at once, from the last level to the first.

    The pairs of level t are first[t] to first[t + 1] - 1. A level is cut into at most `most`
    blocks, none of them with fewer than `least` pairs.
    """
    bottom = int(first[-1])  # pairs from here on are yielded already
    for end, begin in pairwise(first[::-1].tolist()):
        number = min(most, (end - begin) // least)
        if number < 2:
            continue
        if end < bottom:
            yield [(end, bottom)]
        cuts = begin + (end - begin) * np.arange(number + 1) // number
        yield list(pairwise(cuts.tolist()))
        bottom = begin
    if bottom > 0:
        yield [(0, bottom)]


def make_values(size: int) -> NDArray[np.void]:
    """Return reward and risk of this many pairs, all of them 0."""
    from vulcan.kernels.dp import VALUE

    return np.zeros(size, VALUE)


@cache
def make_smallest_levels() -> Levels:
    """Return the levels of a model with one state, to compile kernels with."""
    model = ArrayModel([0], [0], [0], [1.0], [0.0], horizon=2)
    levels = build_levels(open_graph(ModelReader(model)))
    assert levels is not None
    return levels


@cache
def load_kernels() -> None:
    """Load or compile the kernels of dynamic programs and of unrolling."""
    Sweeps(make_smallest_levels()).find_best(1.0, 0.0).decide()


def find_least_risk_policy(graph: StateGraph, may_go_on: Callable[[], bool]) -> PolicyPoint | None:
    """Return the policy that takes the least immediate risk in each state; None if stopped.

    Ties go to the largest expected reward. Only the states that the policy reaches are evaluated.
    It is rarely good, but often acceptable.
    """
    taken: list[np.ndarray] = []
    pairs: list[np.ndarray] = []
    reward = risk = 0.0
    states, reach = np.zeros(1, np.int32), np.ones(1)
    for weight in graph.reader.weights.tolist():
        new = states[graph.states.array["action_count"][states] == UNEVALUATED].tolist()
        if not graph.expand_while(new, may_go_on):
            return None
        goes_on = graph.states.array["action_count"][states] != 0
        states, reach = states[goes_on], reach[goes_on]
        if not len(states):
            break
        # For each state the row of least risk; ties go to the largest expected reward.
        here = graph.states.array[states]
        rows = ranges(here["first_action"], here["action_count"])
        owner = np.repeat(np.arange(len(states)), here["action_count"])
        actions = graph.actions.array[rows]
        keys = (rows, -actions["expected_reward"], actions["immediate_risk"], owner)
        taken_here = np.lexsort(keys)[starts(here["action_count"])]
        rows, actions = rows[taken_here], actions[taken_here]
        reward += weight * float((reach * actions["expected_reward"]).sum())
        risk += float((reach * actions["immediate_risk"]).sum())
        taken.append(rows)
        pairs.append(states)
        outcomes = graph.outcomes.array[ranges(actions["first_outcome"], actions["safe_count"])]
        arriving = np.repeat(reach, actions["safe_count"]) * outcomes["probability"]
        states, places = np.unique(outcomes["state"].astype(np.int32), return_inverse=True)
        reach = np.bincount(places, arriving, len(states)).astype(float, copy=False)
    if not taken:
        return PolicyPoint(0.0, 0.0)
    levels, choice = join_levels(graph, pairs), np.concatenate(taken).astype(np.int32)
    return PolicyPoint(reward, risk, lambda: levels.decide(choice))
