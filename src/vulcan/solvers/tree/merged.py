"""Plans where states merge: all pairs of a state and a level, instead of histories.

Where every pair that can follow the root may be looked at, nothing need be sampled. The dual bound,
the policies on either side of its price, what lies between them, and fronts over all pairs are
those of `vulcan.solvers.layered`; here they get an allowance by counts, so that the same samples
give the same policy. Histories through one pair share a decision, so that a policy is small even
where its histories can't be counted.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.layered.improvement import find_dual
from vulcan.solvers.layered.pareto import advance_fronts
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import NEUTRAL, PAIRS, Draft
from vulcan.solvers.tree.pairs import Top, unroll
from vulcan.solvers.tree.price_run import PriceRun

__all__ = ["MergedPlan", "plan_merged"]

FEWEST_WORK: Final = 1 << 20
WORK_PER_SAMPLE: Final = 1 << 12
"""Points of fronts that may be combined: about as long as samples take."""


@dataclass(frozen=True, eq=False)
class MergedPlan:
    """What pairs say.

    Attributes
    ----------
    draft
        The best policy that was found within the bound; None without one.
    upper
        No policy within the bound earns more, randomised or not.
    rewards
        Where the bound was evaluated.
    proved
        Whether the draft is the best of all deterministic policies, up to roundings.
    attained
        No deterministic policy within the bound earns more.
    rounding
        How far rounding alone may take a bound from what a policy earns.
    """

    draft: Draft | None
    upper: float
    rewards: list[float]
    proved: bool
    attained: float
    rounding: float


def plan_merged(run: PriceRun, solver: object, allowance: Allowance) -> MergedPlan | None:
    """Return a plan over all pairs; None if there are too many of them.

    Parameters
    ----------
    run
        The search. The model is asked for what is missing.
    solver
        Whose search it is.
    allowance
        How many pairs and questions there may be, and until when.
    """
    pairs = unroll(run, Top.leave_out().frontier, allowance)
    if pairs is None or not len(pairs.states):
        return None
    left = allowance.until - time.perf_counter()
    limits = Limits(
        memory=max(1, run.limit - (run.memory - run.graph.memory)),
        time_limit=None if math.isinf(left) else max(1e-3, left),
    )
    layered = LayeredRun(run.problem, run.reader, Monitor(limits), solver, run.state_graph)
    if not layered.unroll():
        return None
    dual = find_dual(layered)
    upper = layered.upper
    advance_fronts(layered, dual, max(FEWEST_WORK, WORK_PER_SAMPLE * run.samples))
    draft = _write(run, layered, dual.price)
    proved = layered.closed and draft is not None and draft.judgement.safe
    attained = layered.upper
    if layered.best is not None:
        attained = max(attained, layered.referee.raise_reward(layered.best.reward))
    return MergedPlan(draft, upper, layered.rewards, proved, attained, layered.rounding)


def _write(run: PriceRun, layered: LayeredRun, price: float) -> Draft | None:
    """Return the best policy, as a tree search has it."""
    best = layered.best
    if best is None:
        return None
    rows, below, _ = best.plan.decide()
    counts = run.graph.actions.array["safe_count"][rows]
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    allowed = run.allow(best.reward)
    road = PAIRS if price else NEUTRAL
    return Draft(rows, firsts, below, best.reward, best.risk, allowed, 0.0, road)
