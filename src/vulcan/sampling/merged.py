"""Plans where states merge: over all state–step pairs, instead of histories.

Where there are few enough pairs, nothing need be sampled. The dual bound, deterministic policies
near its price, and fronts are those of `vulcan.exact`; here they are limited by counts, so that the
same samples give the same policy.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from vulcan.errors import BoundError
from vulcan.exact import sweeps
from vulcan.exact import thin_fronts as coins
from vulcan.exact.fronts import advance_fronts
from vulcan.exact.pipeline import LAGRANGIAN, narrow
from vulcan.exact.search import ExactSearch
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor
from vulcan.sampling.candidate import NEUTRAL, PAIRS, Candidate
from vulcan.sampling.kernel_run import KernelRun


@dataclass
class WorkLimit:
    """The work that a plan may take; `exceeded` says that it would have taken more."""

    places: float  # state–step pairs, or histories
    evaluations: float  # of states
    until: float  # by `time.perf_counter`
    exceeded: bool = False

    def forbids(self, places: int, evaluations: int = 0) -> bool:
        """Whether a completion that has done this much must stop."""
        self.exceeded = places > self.places or evaluations > self.evaluations
        return self.exceeded or self.late

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        return time.perf_counter() > self.until


@dataclass(frozen=True, eq=False)
class MergedPlan:
    """The best policy found over state–step pairs, and what was proved."""

    candidate: Candidate | None
    upper: float  # of all policies within the risk bound, randomised or not
    rewards: list[float]  # where the risk bound was evaluated
    proved: bool  # that no deterministic policy is better than the candidate, up to rounding
    attained: float  # upper bound for deterministic policies
    rounding: float  # bounds the rounding error between an upper bound and a reward


def plan_merged(
    run: KernelRun, problem: Problem, solver: object, limit: WorkLimit, front_work: int = 0
) -> MergedPlan | None:
    """Return a plan over all pairs; None if there are too many, or the bound has no value there.

    States that were not evaluated yet are evaluated. Fronts combine at most `front_work` pairs of
    points.
    """
    left = limit.until - time.perf_counter()
    limits = Limits(
        memory=max(1, run.limit - (run.memory - run.graph.memory)),
        time_limit=None if math.isinf(left) else max(1e-3, left),
    )
    layered = ExactSearch(problem, run.reader, Monitor(limits), solver, run.state_graph)
    if not layered.unroll(most_pairs=limit.places, most_new=limit.evaluations):
        limit.exceeded = layered.monitor.stopped_by is None
        return None
    if not len(layered.levels):
        return None
    try:
        narrow(layered, LAGRANGIAN)
        upper = layered.upper
        if front_work:
            advance_fronts(layered, front_work)
    except BoundError:
        return None
    candidate = _write(run, layered)
    proved = layered.closed and candidate is not None and candidate.judgement.safe
    attained = layered.upper
    if layered.best is not None:
        attained = max(attained, layered.bound_test.raise_reward(layered.best.reward))
    return MergedPlan(candidate, upper, layered.rewards, proved, attained, layered.rounding)


def _write(run: KernelRun, layered: ExactSearch) -> Candidate | None:
    """Return the best policy as a candidate."""
    best = layered.best
    if best is None:
        return None
    rows, below, _ = best.decide()
    counts = run.graph.actions.array["safe_count"][rows]
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    allowed = run.allow(best.reward)
    method = PAIRS if layered.dual.price else NEUTRAL
    return Candidate(rows, firsts, below, best.reward, best.risk, allowed, 0.0, method)


def load_kernels() -> None:
    """Load or compile the kernels, before the clock runs."""
    sweeps.load_kernels()
    coins.load_kernels()
