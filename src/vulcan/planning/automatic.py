"""The default solver.

What can be unrolled (`vulcan.exact.search`) is solved with a proved gap. Where states merge and are
too many because rewards are paid once, a plan goes from one to the next (`vulcan.exact.subgoals`).
Where nearly every history is a state of its own, and an action ends the mission, a plan grows from
the root (`vulcan.sampling.growth`). The rest is left to `Vulcan`, and where that finds nothing
acceptable, or rewards are too large for it, to the most cautious policy that looks one step ahead.
With a limit of samples or histories, a plan grows where a few evaluations find histories that never
merge, and `Vulcan` searches elsewhere, also where a checkpoint is to be resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from vulcan.errors import OptionError
from vulcan.exact.pipeline import AUTOMATIC, RANDOMISED, narrow
from vulcan.exact.search import ExactSearch
from vulcan.exact.subgoals import FOUND, PlaceMap, SubgoalSearch
from vulcan.exact.sweeps import find_least_risk_policy
from vulcan.graph.compiled import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.parameters import knows_parameters
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor, StopReason
from vulcan.sampling.growth import GrowthRun
from vulcan.sampling.tree import PrecisionError
from vulcan.sampling.vulcan import Vulcan
from vulcan.solvers.base import RANDOMISED as RANDOMISED_OPTION
from vulcan.solvers.base import Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding

OVERTIME: Final = 0.1
"""Seconds that the policy of least immediate risk gets even after a limit is reached."""

SHORT: Final = 2.0
"""Seconds in which samples of a problem whose states merge find nothing worth having."""

LONG: Final = 100_000
"""Horizon at which a round of samples takes longer than a time limit may be exceeded by."""

SHARE_AT_FIRST: Final = 0.1
"""Share of the work of unrolling before plans from subgoal to subgoal are tried."""

PROBED: Final = 5_000
"""States that are evaluated to see whether histories merge, where samples are limited."""


@knows_parameters
@dataclass(frozen=True)
class Automatic(Solver):
    """Solve with a proved gap what can be unrolled, and sample the rest with `Vulcan`.

    It ends by itself: when the gap is small enough (`gap`, by default 1e-4), or after some seconds
    of work without a limit, with the gap that is proved by then. Over histories it ends after 20 s.

    Parameters
    ----------
    randomised
        Return the best randomised policy, if the problem can be unrolled.
    """

    finds: ClassVar[str] = (
        "a policy within a small proved gap; a growing plan, or samples, where states don't merge"
    )
    method: ClassVar[str] = "unrolls as long as that pays"
    sampling: ClassVar[bool] = True
    threads: ClassVar[bool] = True
    devices: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC
    options: ClassVar[Sequence[Option]] = (RANDOMISED_OPTION,)
    default_gap: ClassVar[float] = 1e-4
    several: ClassVar[bool] = True

    randomised: bool = False

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        given = monitor.limits
        samples = given.samples is not None or given.histories is not None
        if samples and problem.constraints:
            raise OptionError(
                "several constraints are solved over state–step pairs, not by samples: limit the "
                "time (time_limit=20) or the memory"
            )
        if options.checkpoint is not None:
            options.checkpoint.require_free()
        resumes = options.checkpoint is not None and options.checkpoint.resumes
        if problem.constraints:
            return self._search_several(problem, reader, monitor, options)
        if resumes or (samples and find_compiled(reader) is not None):
            return Vulcan().search(problem, reader, monitor, options)
        # A graph that is shared keeps the order in which Vulcan expands it.
        graph = None if samples else options.graph
        where = options.threads, options.device
        run = ExactSearch(problem, reader, monitor, self, graph, *where)
        monitor.start_clock()
        if samples:
            most = min(n for n in (given.samples, given.histories, PROBED) if n is not None)
            unrolled = run.unroll(most_new=most)
            finding = self._grow(run) if not unrolled and run.finds_histories else None
            return finding or Vulcan().search(problem, reader, monitor, options)
        finding = self._search_graph(run)
        if finding is None:
            finding = self._sample_on(run, options)
        elif options.checkpoint is not None:
            remark = "no checkpoint: only a search that samples writes one"
            finding = replace(finding, explanation=f"{finding.explanation} ({remark})")
        return replace(finding, advice=run.advise())

    def _search_several(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Unroll a problem with several constraints as far as the limits allow, and solve it."""
        where = options.threads, options.device
        run = ExactSearch(problem, reader, monitor, self, options.graph, *where)
        monitor.start_clock()
        unrolled = run.unroll(while_it_pays=True)
        if not unrolled and run.finds_histories and monitor.stopped_by is None:
            given, monitor.limits = monitor.limits, monitor.limits.by_default(monitor.seconds)
            finding = self._grow(run)
            if finding is not None:
                return finding
            monitor.limits = given
        if unrolled or (monitor.limits.time_limit is not None and run.unroll()):
            narrow(run, RANDOMISED if self.randomised else AUTOMATIC)
            return run.find("best policy found, with a proved gap")
        finding = run.find("several constraints need all state–step pairs, and these are too many")
        if run.finds_histories and not monitor.requested:
            why = "histories never merge, and nothing ends the mission within a few decisions: {}"
            why = why.format("a default_action that does so lets a plan grow")
            finding = replace(finding, explanation=f"{finding.explanation}; {why}")
        return finding

    def _search_graph(self, run: ExactSearch) -> Finding | None:
        """Unroll the problem, or let a plan grow; None if only samples are left."""
        monitor = run.monitor
        unrolled = run.unroll(while_it_pays=True, share=SHARE_AT_FIRST)
        if not unrolled and (finding := self._reach_subgoals(run)) is not None:
            return finding
        if unrolled or run.unroll(while_it_pays=True):
            narrow(run, RANDOMISED if self.randomised else AUTOMATIC)
            if self.randomised:
                return run.find("best randomised policy found")
            return run.find("best policy found, with a proved gap")
        if run.finds_histories and monitor.stopped_by is None:
            monitor.limits = monitor.limits.by_default(monitor.seconds)
            # Samples prove bounds with those of the model, as of beliefs; growing plans don't.
            proves = run.graph.merges and hasattr(run.reader.model, "value_to_go_bound")
            grows = find_compiled(run.reader) is None and not proves
            finding = self._grow(run) if grows else None
            if finding is not None:
                return finding
        limit = monitor.limits.time_limit
        is_short = limit is not None and (
            limit - monitor.seconds < SHORT or run.reader.levels > LONG
        )
        if monitor.stopped_by is None and run.graph.merges and is_short:
            monitor.stopped_by = StopReason.TIME
        return None if monitor.stopped_by is None else self._be_cautious(run)

    def _reach_subgoals(self, run: ExactSearch) -> Finding | None:
        """Plan for one subgoal after another, if the problem is too large for an exact solution."""
        monitor = run.monitor
        if self.randomised or run.finds_histories or monitor.stopped_by is not None:
            return None
        places = PlaceMap.find(run)
        if places is None or run.fits(places.count_states()):
            return None
        given, monitor.limits = monitor.limits, monitor.limits.by_default(monitor.seconds)
        SubgoalSearch(run, places).search()
        if run.best is not None:
            return run.find(FOUND)
        if monitor.stopped_by is not None:
            return self._be_cautious(run)
        monitor.limits = given
        return None

    def _grow(self, run: ExactSearch) -> Finding | None:
        """Let a plan grow from the root; None if it finds nothing and others may."""
        if self.randomised:
            return None
        run.forget_graph()
        finding = GrowthRun(self, run.problem, run.reader, run.monitor).search()
        ended = finding.policy is not None or finding.error is not None or run.monitor.requested
        return finding if ended else None

    def _sample_on(self, run: ExactSearch, options: Options) -> Finding:
        """Sample in the time left; failing that, look for the policy of least immediate risk."""
        spent, grown = run.monitor.seconds, run.monitor.grown
        try:
            with run.monitor.part(0.8):  # some time may be needed for the cautious policy
                if not run.graph.merges:  # then the tree search has a graph of its own
                    run.forget_graph()
                    # The model may have kept something of its own for each answer.
                    left = max(run.room // 2, run.room - grown)
                    run.monitor.limits = replace(run.monitor.limits, memory=left)
                known = replace(options, graph=run.graph)
                finding = Vulcan().search(run.problem, run.reader, run.monitor, known)
        except PrecisionError:
            return self._be_cautious(run)
        seconds = finding.statistics.search_seconds + spent
        statistics = replace(finding.statistics, search_seconds=seconds)
        if finding.complete or finding.planned is not None or finding.error is not None:
            return replace(finding, statistics=statistics)
        del finding  # with its tree
        return replace(self._be_cautious(run), statistics=statistics)

    def _be_cautious(self, run: ExactSearch) -> Finding:
        """Look for the policy of least immediate risk; this may exceed the time by `OVERTIME`."""
        monitor, limit = run.monitor, run.monitor.limits.time_limit
        least = monitor.seconds + OVERTIME
        ends = monitor.seconds + 10.0 if limit is None else limit

        def may_go_on() -> bool:
            in_time = monitor.seconds < ends and not monitor.overdue
            return run.has_room() and (in_time or monitor.seconds < least)

        point = find_least_risk_policy(run.graph, may_go_on)
        if point is not None and run.bound_test.accepts(point):
            run.rewards.append(point.reward)
            run.offer(point)
        found = "the policy of least immediate risk"
        return run.find(found if run.best is not None else "no policy found within the limits")
