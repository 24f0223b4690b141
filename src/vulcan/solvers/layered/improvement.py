"""Deterministic policies near the price of failure of the dual bound.

The best randomised policy draws between two deterministic ones that are equally good at that price.
First it is decided history by history which of the two to follow (`derandomise`), then the outcomes
of the world decide where a randomised policy would draw (`coins`), until the gap is small enough.
"""

from __future__ import annotations

import math
from typing import Final

from vulcan.solvers.layered import coins
from vulcan.solvers.layered.derandomise import derandomise
from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["find_dual", "improve"]

GOOD_GAP: Final = 1e-4
"""Below this gap no better deterministic policies are looked for, unless a smaller one is asked."""

FAIR_GAP: Final = 1e-3
"""The same on graphs with many nodes, where every look takes long."""


def find_dual(run: LayeredRun) -> Dual:
    """Find the dual bound, and the best deterministic policies that it leads to."""
    dual = run.find_relaxed()
    improve(run, dual)
    return dual


def improve(run: LayeredRun, dual: Dual) -> None:
    """Look for better deterministic policies near the price of failure of the dual bound."""
    levels = run.levels.arrays
    plain = len(levels.state) > 0 and not len(levels.expanded) and not len(levels.first_child)
    if not plain or run.upper == -math.inf or _is_near_enough(run):
        return
    _derandomise(run, dual)
    if _is_near_enough(run) or not run.may_go_on():
        return
    with run.monitor.clock_stopped():
        coins.load_kernels()
    price = dual.multiplier
    ways = run.sweeps.follow_weights(1.0, price)
    values = ways.rewards - price * ways.risks
    span = (min(dual.corners, key=lambda corner: corner.risk).reward, run.upper)
    left = run.room / 4
    given = (levels, run.referee, price, values, span, run.may_go_on, left, run.team)
    search = coins.Coins(*given)
    for corner in coins.find_between(search, run.upper, run.best):
        run.offer(corner)
        run.report()
        if _is_near_enough(run):
            return


def _derandomise(run: LayeredRun, dual: Dual) -> None:
    """Decide history by history between the two policies that the best mixture is made of."""
    mix = dual.best
    if mix is not None and mix.safe is not mix.daring and run.referee.accepts(mix.safe):
        ways = (mix.safe.plan.follow(), mix.daring.plan.follow())
        run.offer(derandomise(run.levels, run.referee, *ways, run.may_go_on))


def _is_near_enough(run: LayeredRun) -> bool:
    """Whether to look no further for deterministic policies."""
    good = GOOD_GAP if len(run.levels) < coins.MANY_NODES else FAIR_GAP
    return run.closed or (run.monitor.limits.gap is None and run.gap <= good)
