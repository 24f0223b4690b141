"""Over which bounds a frontier is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.errors import OptionError
from vulcan.parameters import require_number
from vulcan.solvers.finding import Worth

__all__ = ["RangeFinder", "Span"]

MOST_POINTS: Final = 10_000

POINTS_OF_QUARTERS: Final = 17
"""With so many points or more, the quarters of a span are among them: they are solved at once with
its ends, and where the frontier bends is seen all the sooner."""


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
    bound
        The bound that is scaled.
    find_extremes
        Returns what the policy of least risk and that of most reward are worth; called if a span
        has no end of its own.
    """

    def __init__(self, bound: RiskBound, find_extremes: Callable[[], tuple[Worth, Worth]]) -> None:
        self._bound, self._find_extremes = bound, find_extremes

    def choose(self, wanted: Sequence[float] | Span, points: int, scaled: bool) -> list[float]:
        """Return levels or scales in their order: those given, or the first ones of a span.

        These are its ends, its quarters if there are to be many points, and the bound itself if
        multiples of it may go that far.
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
        inner = (1, 2, 3) if points >= POINTS_OF_QUARTERS else ()
        quarters = {low + (high - low) * quarter / 4 for quarter in inner}
        return sorted({low, high, *own, *quarters})

    def _find_levels(self) -> tuple[float, float]:
        """Return the smallest risk of all, and that of the best policy without a bound."""
        safest, best = self._find_extremes()
        return safest.risk, max(best.risk, safest.risk)

    def _find_scales(self, points: int) -> tuple[float, float]:
        """Return a small scale, and the one from which on the bound does not bind."""
        _, best = self._find_extremes()
        allowed = self._bound(best.reward)
        high = best.risk / allowed if allowed > 0 and best.risk > 0 else 1.0
        return high / points, high


def _require(name: str, value: Any) -> float:
    """Return a level or a scale."""
    if name == "scales" and value == 0:
        raise OptionError("scales must be above 0; level 0 allows no risk at all")
    return require_number(f"each of the {name}", value, above=0.0 if name == "scales" else None)
