"""What a worker does for a frontier: points, and the ends of its range.

Its searches share a state graph, and what a search that samples makes of its samples in the end
depends on how much of the graph is known. So a worker unrolls the graph before its first search, if
that pays: then all searches know all of it, whoever does them, and in whichever order.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from vulcan.errors import ModelError, OptionError
from vulcan.planning.solve import plan_and_certify
from vulcan.planning.sweep import Searcher
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import EXACT, Options
from vulcan.solvers.finding import Worth
from vulcan.solvers.layered.growth import Growth
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.tree.local import UCT

__all__ = ["Extremes", "FrontierSearcher"]

SAMPLES: Final = 100_000
"""Samples of a policy without a bound, by default."""


@dataclass(frozen=True)
class Extremes:
    """Between which policies a frontier lies.

    Attributes
    ----------
    safest, best
        What the policy of least risk and that of most reward are worth, as far as they were found.
    evaluations
        How often the model was asked for them.
    """

    safest: Worth
    best: Worth
    evaluations: int


class FrontierSearcher(Searcher):
    """A searcher whose searches share a state graph, and that finds the ends of a range."""

    _prepared = False

    def _prepare(self, limits: Limits) -> None:
        if not self._prepared:
            with suppress(ModelError, KeyboardInterrupt):  # the search will meet them itself
                self._unroll(limits)

    def find_extremes(self, limits: Limits, options: Options) -> Extremes | None:
        """Return the policy of least risk and that of most reward; None after Ctrl-C."""
        before = self._count()
        try:
            safest, best = self._unroll(limits) or (
                Worth(0.0, 0.0),
                self._sample_best(limits, options),
            )
        except KeyboardInterrupt:
            return None
        return Extremes(safest, best, self._count() - before)

    def _unroll(self, limits: Limits) -> tuple[Worth, Worth] | None:
        """Return both, if the state graph is small enough."""
        assert self._graph is not None
        self._prepared = True
        with Monitor(limits.keep(EXACT), self._line.tell) as monitor:
            run = LayeredRun(self._problem, self._graph.reader, monitor, None, self._graph)
            monitor.start_clock()
            if run.unroll(within=Growth(run.graph, monitor)):
                safest, best = run.sweep(0.0, 1.0), run.sweep(1.0, 0.0)
                return Worth(safest.reward, safest.risk), Worth(best.reward, best.risk)
            if monitor.requested:
                raise KeyboardInterrupt
        return None

    def _sample_best(self, limits: Limits, options: Options) -> Worth:
        """Return the best policy without a bound that sampling finds."""
        limits = replace(limits, gap=None)
        if limits.time_limit is limits.samples is limits.histories is None:
            limits = replace(limits, samples=SAMPLES)
        options = replace(options, graph=self._graph)
        result = plan_and_certify(
            self._problem, UCT(), limits, options, on_progress=self._line.tell
        )
        if result.stopped_by is not None and result.stopped_by.is_request:
            raise KeyboardInterrupt
        if result.certificate is None:
            raise OptionError(
                "the range of risk can't be found within the limits; give levels or scales"
            )
        return Worth(float(result.certificate.reward), float(result.certificate.risk))
