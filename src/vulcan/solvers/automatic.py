"""The solver that is used when nobody names one.

A problem whose state graph is small enough is solved exactly, by the dual bound and by fronts (see
`Pareto`), until the gap is closed or a limit of work is reached. A larger one is left to `Vulcan`.
Limits that only a tree search knows, such as samples, choose that at once, and so does a checkpoint
that is to be resumed. A checkpoint that is only to be written changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from vulcan.certificates.problem import Problem
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Coverage, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.layered.pareto import advance_fronts
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.size import Size
from vulcan.solvers.tree.checkpoint import require_free
from vulcan.solvers.tree.vulcan import Vulcan

__all__ = ["Automatic"]

MOST_PAIRS: Final = 2_000_000_000
"""Pairs of points that fronts may combine without a time limit: some seconds."""

FEW_PAIRS: Final = 200_000_000
"""The same where the gap is small already."""

SMALL_GAP: Final = 1e-4

MOST_SAMPLES: Final = 1_000_000
"""Samples of a tree search without any limit."""

STEADY: Final = 0.1
"""The constant of UCT where bounds of a compiled model make estimates steady."""


@dataclass(frozen=True)
class Automatic(Solver):
    """Choose by size: exact, with a proved gap, where the state graph is small; `Vulcan` beyond.

    It ends by itself. Without limits, fronts are given up after some seconds, with the gap that is
    proved by then, and a tree search takes a million samples.
    """

    finds: ClassVar[str] = (
        "what Pareto finds with a limit of work, or Vulcan where states are too many"
    )
    method: ClassVar[str] = "chooses by size"
    sampling: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        limits = monitor.limits
        samples = limits.samples is not None or limits.histories is not None
        if options.checkpoint is not None:
            require_free(options.checkpoint, resume=options.resume, overwrite=options.overwrite)
        if samples or options.resumes or not options.complete:
            return self._sample(problem, reader, monitor, options)
        run = LayeredRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if run.unroll(within=Size(run.graph, monitor)):
            dual = run.find_dual()
            most = MOST_PAIRS if run.gap > SMALL_GAP else FEW_PAIRS
            advance_fronts(run, dual, most if limits.time_limit is None else None)
            return _mention_checkpoint(run.find("best policy found, with a proved gap"), options)
        if monitor.stopped_by is not None:
            return _mention_checkpoint(run.find(), options)
        spent = monitor.seconds
        if limits.time_limit is not None:
            monitor.limits = replace(limits, time_limit=max(0.0, limits.time_limit - spent))
        finding = self._sample(problem, reader, monitor, replace(options, graph=run.graph))
        seconds = finding.statistics.search_seconds + spent
        return replace(finding, statistics=replace(finding.statistics, search_seconds=seconds))

    def _sample(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        limits = monitor.limits
        # Without upper bounds from the model nothing would tell how large the gap is.
        bounded = limits.gap is not None and hasattr(problem.model, "reward_to_go_bound")
        if limits.time_limit is None and limits.samples is None and limits.histories is None:
            limits = replace(limits, samples=MOST_SAMPLES)
        monitor.limits = limits if bounded else replace(limits, gap=None)
        form = find_compiled(reader)
        steady = form is not None and form.bound is not None
        solver = Vulcan(STEADY if steady else 1.0, bounded=bounded)
        return solver.search(problem, reader, monitor, options)


def _mention_checkpoint(finding: Finding, options: Options) -> Finding:
    """Return the same, and where a checkpoint was wanted, that there is none."""
    if options.checkpoint is None:
        return finding
    explanation = f"{finding.explanation} (no checkpoint: only a search that samples writes one)"
    return replace(finding, explanation=explanation)
