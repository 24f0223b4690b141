"""An upper bound on deterministic policies, by what they do before anything is left to chance.

The dual bound holds for randomised policies, too, which may be far better: where the only way to
earn anything begins with a risk that is too large, one draws lots for it, and a deterministic
policy earns nothing. As long as outcomes are certain, a deterministic policy has one history.
Sooner or later it takes an action that has several outcomes or may fail, in one node n of that
history, with the reward g so far. What comes then is at most what randomised policies attain from
there: for any price of failure k, and Q_k(n, a) the largest E g - k er from the action a on, such a
policy within the bound earns at most the largest y with

    y - k Δ(y)  <=  g + Q_k(n, a).

Each pair of a node and an action has the least of these over some prices as its limit. A policy
that never takes such an action earns what its certain outcomes pay. The largest of all is a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vulcan.bounds.reward_limit import limit_reward
from vulcan.graphs.levels import Levels
from vulcan.sentinels import END
from vulcan.solvers.layered.dual import ROUNDING, Corner, Dual, accepts
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["bound_first_steps"]

SHARES: Final = (1.0, *np.geomspace(1 / 16, 1e4, 24).tolist())
"""The prices that are tried, as multiples of that of the dual bound."""

MOST_STEPS: Final = 5_000
"""Pairs of node and action, and..."""

MOST_VISITS: Final = 100_000_000
"""... visits of nodes by dynamic programs, from which on it is not worth its time."""


@dataclass
class _Step:
    """The first action that leaves something to chance.

    Attributes
    ----------
    row
        The action.
    reward
        The reward before and with it, as far as it is certain, and of the action itself.
    targets
        Probability and node of each outcome that goes on.
    limit
        No policy within the bound that takes this step first earns more.
    """

    row: int
    reward: float
    targets: list[tuple[float, int]]
    limit: float


def bound_first_steps(run: LayeredRun, dual: Dual) -> None:
    """Lower the upper bound of a run to what deterministic policies can earn.

    Parameters
    ----------
    run
        The search, with its best policy and its dual bound.
    dual
        That bound.
    """
    if run.closed or dual.multiplier <= 0 or len(SHARES) * len(run.levels) > MOST_VISITS:
        return
    found = _list_steps(run)
    if found is None:
        return
    certain, steps = found
    known = certain if run.best is None else max(certain, run.best.reward)
    least = min(dual.corners, key=lambda corner: corner.risk).reward
    for share in SHARES:
        steps = [step for step in steps if step.limit > known]
        if not steps or not run.may_go_on():
            break
        price = share * dual.multiplier
        ways = run.sweeps.follow_weights(1.0, price)
        values = ways.rewards - price * ways.risks
        risks = run.levels.arrays.immediate_risk
        for step in steps:
            value = step.reward - price * float(risks[step.row])
            value += sum(chance * float(values[node]) for chance, node in step.targets)
            value += ROUNDING * (abs(value) + run.size + price)
            limit = limit_reward(run.bound, (1.0, price), value, least, run.upper)[0]
            step.limit = min(step.limit, limit)
    run.upper = min(run.upper, max([known, *(step.limit for step in steps)]))


def _list_steps(run: LayeredRun) -> tuple[float, list[_Step]] | None:
    """Return the best reward that is certain, and the steps; None if there are too many."""
    levels, arrays = run.levels, run.levels.arrays
    certain, steps = -np.inf, []
    here = {0: 0.0}  # nodes, and the largest reward of a certain way to each
    for level in range(len(arrays.first) - 1):
        following: dict[int, float] = {}
        for node, before in here.items():
            state = int(arrays.state[node])
            first = int(arrays.first_action[state])
            for row in range(first, first + int(arrays.action_count[state])):
                earned = before + float(arrays.weights[level] * arrays.expected_reward[row])
                targets = levels.list_targets(node, row)
                if not _is_certain(levels, row):
                    inner = [target for target in targets if target[1] != END]
                    steps.append(_Step(row, earned, inner, run.upper))
                elif targets[0][1] == END:
                    if accepts(run.bound, Corner(earned, 0.0)):
                        certain = max(certain, earned)
                else:
                    after = targets[0][1]
                    following[after] = max(earned, following.get(after, -np.inf))
            if len(steps) > MOST_STEPS:
                return None
        here = following
    return certain, steps


def _is_certain(levels: Levels, row: int) -> bool:
    """Whether an action has a single outcome, which does not fail."""
    arrays = levels.arrays
    return int(arrays.safe_count[row]) == 1 and float(arrays.immediate_risk[row]) == 0.0
