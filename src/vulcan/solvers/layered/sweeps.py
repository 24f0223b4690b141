"""Dynamic programs over levels: the best policy for some weights of reward and risk.

The nodes of a large level are shared by threads (`vulcan.runtime.team`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.decisions import Choice, Decisions
from vulcan.graphs.levels import ChoicePlan, Levels
from vulcan.runtime.team import Block, Team, cut_levels
from vulcan.solvers.layered.corners import Corner

__all__ = ["PricePlan", "Sweeps", "Ways", "load_kernels", "make_values"]

LEAST_OUTCOMES: Final = 1 << 15
"""What a block of a level has at least, about: a tenth of a millisecond."""


@dataclass(frozen=True)
class Ways:
    """A policy that is a function of state and step.

    Attributes
    ----------
    choice
        The row of the action that is taken in each node.
    rewards, risks
        What it earns and risks from each node on.
    """

    choice: Choice
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]


@dataclass(frozen=True)
class PricePlan:
    """The best policy for some weights, found again when it is needed.

    On a large graph the choices of the policies that a search has seen would take more memory than
    everything else.
    """

    sweeps: Sweeps
    reward_weight: float
    risk_weight: float

    @property
    def choice(self) -> Choice:
        """The row that is taken in each node."""
        return self.sweeps.choose(self.reward_weight, self.risk_weight)

    def follow(self) -> Ways:
        """Return the policy with what it earns and risks from each node on."""
        return self.sweeps.follow_weights(self.reward_weight, self.risk_weight)

    def decide(self) -> Decisions:
        """Return the decisions in the nodes that are reached."""
        return ChoicePlan(self.sweeps.levels, self.choice).decide()


class Sweeps:
    """The dynamic programs of some levels.

    Parameters
    ----------
    levels
        The levels.
    tips
        Reward and risk from each tip on, an array of kind `VALUE` with an entry for each node;
        None if there are no tips.
    team
        Who shares the nodes of large levels.
    """

    def __init__(
        self,
        levels: Levels,
        tips: NDArray[np.void] | None = None,
        team: Team | None = None,
    ) -> None:
        from vulcan.kernels import backward_induction

        self.levels = levels
        self._team = Team() if team is None else team
        outcomes = len(levels.arrays.target) / max(1, len(levels.arrays.action_count))
        least = math.ceil(LEAST_OUTCOMES / max(1.0, outcomes))
        self._blocks = list(cut_levels(levels.arrays.first, least, self._team.count))
        self._kernels = backward_induction
        self._tips = make_values(0) if tips is None else tips

    def find_best(self, reward_weight: float, risk_weight: float) -> Corner:
        """Return the policy with the largest weighted difference of reward and risk."""
        pair = self._sweep(reward_weight, risk_weight, make_values(0), np.zeros(0, np.int32))
        place = 0 if len(self.levels.arrays.first_child) else self.levels.graph.ROOT
        reward, risk = pair[0, place].item()
        return Corner(reward, risk, PricePlan(self, reward_weight, risk_weight))

    def choose(self, reward_weight: float, risk_weight: float) -> Choice:
        """Return the row that this policy takes in each node."""
        choice = np.zeros(len(self.levels), np.int32)
        self._sweep(reward_weight, risk_weight, make_values(0), choice)
        return choice

    def follow_weights(self, reward_weight: float, risk_weight: float) -> Ways:
        """Return the same with what the policy earns and risks from each node on."""
        values, choice = make_values(len(self.levels)), np.zeros(len(self.levels), np.int32)
        self._sweep(reward_weight, risk_weight, values, choice)
        return _separate(choice, values)

    def _sweep(
        self, reward_weight: float, risk_weight: float, values: NDArray[np.void], choice: Choice
    ) -> NDArray[np.void]:
        pair = self._pair()
        weights = (float(reward_weight), float(risk_weight))
        given = (self.levels.arrays, *weights, self._tips, pair, choice, values)

        def work(block: Block) -> None:
            self._kernels.sweep(*given, *block)

        for blocks in self._blocks:
            self._team.share(work, blocks)
        return pair

    def _pair(self) -> NDArray[np.void]:
        return make_values(2 * self.levels.width).reshape(2, -1)


def make_values(size: int) -> NDArray[np.void]:
    """Return reward and risk of this many nodes, all of them 0."""
    from vulcan.kernels.level_arrays import VALUE

    return np.zeros(size, VALUE)


def _separate(choice: Choice, values: NDArray[np.void]) -> Ways:
    rewards, risks = (np.ascontiguousarray(values[name]) for name in ("reward", "risk"))
    return Ways(choice, rewards, risks)


def make_smallest_levels() -> Any:
    """Return the arrays of one node with one action, for kernels to begin with."""
    from vulcan.kernels.level_arrays import LevelArrays

    one, number = np.zeros(1, np.int32), np.zeros(1)
    return LevelArrays(
        first=np.arange(2),
        state=one,
        expanded=np.zeros(0, np.bool_),
        first_child=np.zeros(0, np.int32),
        weights=np.ones(1),
        first_action=one,
        action_count=np.ones(1, np.int32),
        expected_reward=number,
        immediate_risk=number,
        first_outcome=one,
        safe_count=one,
        probability=number,
        target=one,
        place=one.copy(),
    )


@cache
def load_kernels() -> None:
    """Load or compile the kernels of dynamic programs and of unrolling."""
    from vulcan.graphs.rows import ACTION, OUTCOME, STATE
    from vulcan.kernels import backward_induction, unrolling
    from vulcan.kernels.compilation import announce_compilation

    announce_compilation(backward_induction.sweep)
    arrays, values, choice = make_smallest_levels(), make_values(1), np.zeros(1, np.int32)
    pair = make_values(2).reshape(2, 1)
    backward_induction.sweep(arrays, 1.0, 0.0, values, pair, choice, values, 0, 1)
    rows = (np.zeros(1, kind) for kind in (STATE, ACTION, OUTCOME))
    unrolling.find_following(*rows, choice, 0, choice.copy(), choice.copy())
    found = unrolling.Found(
        rows=choice.copy(),
        nodes=choice.copy(),
        modes=np.zeros(1, np.int8),
        children=choice.copy(),
        numbers=np.zeros((1, 1), np.int32),
    )
    given = (np.zeros(0, unrolling.DECISION), np.zeros(0, unrolling.WAY))
    unrolling.number_decisions(arrays, np.zeros((1, 1), np.int32), *given, found)
