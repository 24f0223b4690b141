"""The solver that is used when nobody names one.

It unrolls the state graph as long as that pays (`vulcan.solvers.layered.growth`). What could be
unrolled is solved with a proved gap: the dual bound, a deterministic policy close to it, and fronts
where the gap is still larger than asked for. What could not is left to `Vulcan`, and where that
finds nothing acceptable, or rewards are too large for it, to the most cautious policy that looks
one step ahead. Limits that only a tree search knows, such as samples, choose that at once, and so
does a checkpoint that is to be resumed. A checkpoint that is only to be written changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, Final

from vulcan.certificates.problem import Problem
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import RANDOMISED, Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.layered.branching import branch
from vulcan.solvers.layered.growth import Growth
from vulcan.solvers.layered.improvement import improve
from vulcan.solvers.layered.pareto import advance_fronts
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.simple import find_cautious
from vulcan.solvers.tree.checkpoint import require_free
from vulcan.solvers.tree.precision import PrecisionError
from vulcan.solvers.tree.vulcan import Vulcan

__all__ = ["Automatic"]

MOST_PAIRS: Final = 20_000_000
"""Pairs of points that fronts may combine: small problems are solved for good by that."""

MOST_SAMPLES: Final = 1_000_000
"""Samples of a tree search without any limit."""

OVERTIME: Final = 0.5
"""Seconds that the cautious policy may take beyond all limits, and..."""

FAIR_TIME: Final = 10.0
"""... without a time limit."""

SHORT: Final = 2.0
"""Seconds in which samples of a problem whose states merge find nothing worth having."""

SHARE_OF_REST: Final = 0.8
"""Of the time that is left for samples: some may have to be left for the cautious policy."""


@dataclass(frozen=True)
class Automatic(Solver):
    """Solve with a proved gap what can be unrolled, and sample the rest with `Vulcan`.

    It ends by itself: when the gap is small enough (`gap`, by default 1e-4), or after some seconds
    of work without a limit, with the gap that is proved by then. A tree search takes a million
    samples.

    Parameters
    ----------
    randomised
        Return the best randomised policy, if the problem can be unrolled.
    """

    finds: ClassVar[str] = (
        "a policy within a small proved gap, or what Vulcan finds where states don't merge"
    )
    method: ClassVar[str] = "unrolls as long as that pays"
    sampling: ClassVar[bool] = True
    threads: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC
    options: ClassVar[Sequence[Option]] = (RANDOMISED,)
    default_gap: ClassVar[float] = 1e-4

    randomised: bool = False

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        limits = monitor.limits
        samples = limits.samples is not None or limits.histories is not None
        if options.checkpoint is not None:
            require_free(options.checkpoint, resume=options.resume, overwrite=options.overwrite)
        goes_on = options.resumes or options.knowledge is not None
        if samples or goes_on or not options.complete:
            return self._sample(problem, reader, monitor, options)
        run = LayeredRun(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        ends = perf_counter() + (FAIR_TIME if limits.time_limit is None else limits.time_limit)
        if run.unroll(within=Growth(run.graph, monitor)):
            return _mention_checkpoint(self._search_levels(run), options)
        if monitor.stopped_by is not None:
            return _mention_checkpoint(self._be_cautious(run, ends), options)
        if run.graph.merges and _is_short(monitor):
            monitor.stopped_by = StopReason.TIME
            return _mention_checkpoint(self._be_cautious(run, ends), options)
        try:
            finding = self._sample_on(run, options)
        except PrecisionError:
            return _mention_checkpoint(self._be_cautious(run, ends), options)
        if limits.time_limit is None:
            ends = perf_counter() + FAIR_TIME
        if finding.complete or finding.error is not None:
            return finding
        statistics = finding.statistics
        del finding  # with its tree
        return replace(self._be_cautious(run, ends), statistics=statistics)

    def _search_levels(self, run: LayeredRun) -> Finding:
        """Search what is unrolled."""
        dual = run.find_relaxed()
        if self.randomised:
            run.offer_mix(dual.best)
            return run.find("best randomised policy found")
        improve(run, dual)
        advance_fronts(run, dual, MOST_PAIRS)
        branch(run, dual)
        if run.monitor.limits.time_limit is not None:
            advance_fronts(run, dual)
        return run.find("best policy found, with a proved gap")

    def _sample_on(self, run: LayeredRun, options: Options) -> Finding:
        """Sample with what is left of the time, and what is known of the model."""
        limits, spent = run.monitor.limits, run.monitor.seconds
        if limits.time_limit is not None:
            left = SHARE_OF_REST * (limits.time_limit - spent)
            run.monitor.limits = replace(limits, time_limit=max(0.0, left))
        if not run.graph.merges:  # then the tree search has a graph of its own
            run.forget_graph()
            # The model may have kept something of its own for each answer.
            left = max(run.room // 2, run.room - run.monitor.grown)
            run.monitor.limits = replace(run.monitor.limits, memory=left)
        known = replace(options, graph=run.graph)
        finding = self._sample(run.problem, run.reader, run.monitor, known)
        seconds = finding.statistics.search_seconds + spent
        return replace(finding, statistics=replace(finding.statistics, search_seconds=seconds))

    def _be_cautious(self, run: LayeredRun, ends: float) -> Finding:
        """Look for the cautious policy, until the time is up and a little longer."""
        ends = max(ends, perf_counter() + OVERTIME)
        corner = find_cautious(run.graph, lambda: perf_counter() < ends and run.has_room())
        if corner is not None and run.referee.accepts(corner):
            run.rewards.append(corner.reward)
            run.offer(corner)
        found = "the most cautious policy that looks one step ahead"
        return run.find(found if run.best is not None else "no policy found within the limits")

    def _sample(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        limits = monitor.limits
        if limits.time_limit is None and limits.samples is None and limits.histories is None:
            monitor.limits = replace(limits, samples=MOST_SAMPLES)
        return Vulcan().search(problem, reader, monitor, options)


def _is_short(monitor: Monitor) -> bool:
    """Whether too little time is left for samples."""
    limit = monitor.limits.time_limit
    return limit is not None and limit - monitor.seconds < SHORT


def _mention_checkpoint(finding: Finding, options: Options) -> Finding:
    """Return the same, and where a checkpoint was wanted, that there is none."""
    if options.checkpoint is None:
        return finding
    explanation = f"{finding.explanation} (no checkpoint: only a search that samples writes one)"
    return replace(finding, explanation=explanation)
