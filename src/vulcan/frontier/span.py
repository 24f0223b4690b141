"""Over which bounds a frontier is traced."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.frontier.knowing import Knowing
from vulcan.graph import StateGraph
from vulcan.problem import Problem
from vulcan.progress import Limits, Monitor, OnProgress
from vulcan.reader import shorten
from vulcan.solve import solve
from vulcan.solvers.dual import Corner
from vulcan.solvers.layered_run import LayeredRun
from vulcan.solvers.size import Size
from vulcan.solvers.vulcan import UCT

__all__ = ["RangeFinder", "Span"]

SAMPLES: Final = 100_000
"""Samples of a policy without a bound, where nobody says how many."""

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
    graph
        What is known of the model; it grows.
    options
        Limits and seed of a search.
    on_progress
        Told how far it is.
    """

    def __init__(
        self,
        problem: Problem,
        graph: StateGraph,
        options: Mapping[str, Any],
        on_progress: OnProgress,
    ) -> None:
        self._problem = problem
        self._graph = graph
        self._options = options
        self._on_progress = on_progress

    def choose(self, wanted: Sequence[float] | Span, points: int, scaled: bool) -> list[float]:
        """Return levels or scales in their order: those given, or evenly spaced ones."""
        name = "scales" if scaled else "levels"
        if not isinstance(wanted, Span):
            given = sorted({_require_number(name, value) for value in wanted})
            if not given:
                raise OptionError(f"{name} are needed, and none are given")
            return given
        if not isinstance(points, int) or not 2 <= points <= MOST_POINTS:
            raise OptionError(
                f"points must be a whole number from 2 to {MOST_POINTS:,}, not {points!r}"
            )
        low, high = (
            None if end is None else _require_number(name, end) for end in (wanted.low, wanted.high)
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
        steps = [low + (high - low) * (k / (points - 1)) for k in range(points - 1)]
        own = set() if whole or not scaled else {1.0}
        return sorted({*steps, high, *own})

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
        limits = Limits(self._options["time_limit"], memory=self._options["memory"])
        with Monitor(limits, self._on_progress) as monitor:
            run = LayeredRun(self._problem, self._graph.reader, monitor, None, self._graph)
            monitor.start_clock()
            if run.unroll(within=Size(run.graph, monitor)):
                return run.sweep(0.0, 1.0), run.sweep(1.0, 0.0)
            if monitor.requested:
                raise KeyboardInterrupt
        return Corner(0.0, 0.0), self._sample_best()

    def _sample_best(self) -> Corner:
        """Return the best policy without a bound that sampling finds."""
        options = {name: value for name, value in self._options.items() if name != "gap"}
        if options["time_limit"] is options["samples"] is options["histories"] is None:
            options["samples"] = SAMPLES
        uct = Knowing(UCT(), self._graph)
        result = solve(self._problem, uct, on_progress=self._on_progress, **options)
        if result.stopped_by == "Ctrl-C":
            raise KeyboardInterrupt
        if result.certificate is None:
            raise OptionError(
                "the range of risk can't be found within the limits; give levels or scales"
            )
        return Corner(float(result.certificate.reward), float(result.certificate.risk))


def _require_number(name: str, value: Any) -> float:
    proper = isinstance(value, Real) and not isinstance(value, bool)
    if not proper or not math.isfinite(value):
        raise OptionError(f"{name} must be finite numbers, not {shorten(value)}")
    if name == "scales" and value <= 0:
        raise OptionError(f"scales must be positive, not {value!r}; level 0 allows no risk at all")
    return float(value)
