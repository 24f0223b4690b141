"""Over which bounds a frontier is traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.parameters import require_number
from vulcan.planning.solve import plan_and_certify
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.base import EXACT, Options
from vulcan.solvers.layered.dual import Corner
from vulcan.solvers.layered.growth import Growth
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.tree.local import UCT

__all__ = ["RangeFinder", "Span"]

SAMPLES: Final = 100_000
"""Samples of a policy without a bound, by default."""

MOST_POINTS: Final = 10_000


@dataclass(frozen=True)
class Span:
    """From where to where levels or scales go, both ends included.

    Parameters
    ----------
    low, high
        The ends; None for the end that suits the model.
    """

    low: float | None = None
    high: float | None = None


class RangeFinder:
    """Finds the levels or scales between which a frontier rises.

    Parameters
    ----------
    problem
        The model, and the bound that is scaled.
    limits, options
        Limits of a search, and what else it is told: what is known of the model, too, which grows.
    on_progress
        Told how far it is.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        options: Options,
        on_progress: OnProgress,
    ) -> None:
        self._problem = problem
        self._limits, self._options = limits, options
        self._on_progress = on_progress

    def choose(self, wanted: Sequence[float] | Span, points: int, scaled: bool) -> list[float]:
        """Return levels or scales in their order: those given, or the ends of a span.

        Between the ends of a span is the bound itself, if multiples of it may go that far.
        """
        name = "scales" if scaled else "levels"
        if not isinstance(wanted, Span):
            given = sorted({_require(name, value) for value in wanted})
            if not given:
                raise OptionError(f"{name} are needed, and none are given")
            return given
        if not isinstance(points, int) or not 2 <= points <= MOST_POINTS:
            raise OptionError(
                f"points must be a whole number from 2 to {MOST_POINTS:,}, not {points!r}"
            )
        low, high = (
            None if end is None else _require(name, end) for end in (wanted.low, wanted.high)
        )
        whole = low is not None and high is not None
        if not whole:
            first, last = self._find_scales(points) if scaled else self._find_levels()
            low, high = (first if low is None else low), (last if high is None else high)
        assert low is not None
        assert high is not None
        if low > high:
            reason = "" if whole else f"; by themselves they go from {first:g} to {last:g}"
            raise OptionError(f"{name} can't go up from {low:g} to {high:g}{reason}")
        own = set() if whole or not scaled else {1.0}
        return sorted({low, high, *own})

    def _find_levels(self) -> tuple[float, float]:
        """Return the smallest risk of all, and that of the best policy without a bound."""
        safest, best = self._find_extremes()
        return safest.risk, max(best.risk, safest.risk)

    def _find_scales(self, points: int) -> tuple[float, float]:
        """Return a small scale, and the one from which on the bound does not bind."""
        _, best = self._find_extremes()
        allowed = self._problem.risk_bound(best.reward)
        high = best.risk / allowed if allowed > 0 and best.risk > 0 else 1.0
        return high / points, high

    def _find_extremes(self) -> tuple[Corner, Corner]:
        """Return the policy of least risk and that of most reward, as far as they can be found."""
        graph, limits = self._options.graph, self._limits.keep(EXACT)
        assert graph is not None
        with Monitor(limits, self._on_progress) as monitor:
            run = LayeredRun(self._problem, graph.reader, monitor, None, graph)
            monitor.start_clock()
            if run.unroll(within=Growth(run.graph, monitor)):
                return run.sweep(0.0, 1.0), run.sweep(1.0, 0.0)
            if monitor.requested:
                raise KeyboardInterrupt
        return Corner(0.0, 0.0), self._sample_best()

    def _sample_best(self) -> Corner:
        """Return the best policy without a bound that sampling finds."""
        limits = replace(self._limits, gap=None)
        if limits.time_limit is limits.samples is limits.histories is None:
            limits = replace(limits, samples=SAMPLES)
        result = plan_and_certify(
            self._problem, UCT(), limits, self._options, on_progress=self._on_progress
        )
        if result.stopped_by is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if result.certificate is None:
            raise OptionError(
                "the range of risk can't be found within the limits; give levels or scales"
            )
        return Corner(float(result.certificate.reward), float(result.certificate.risk))


def _require(name: str, value: Any) -> float:
    """Return a level or a scale."""
    if name == "scales" and value == 0:
        raise OptionError("scales must be above 0; level 0 allows no risk at all")
    return require_number(f"each of the {name}", value, above=0.0 if name == "scales" else None)
