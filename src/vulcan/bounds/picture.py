"""A risk bound as a small plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vulcan.errors import BoundError
from vulcan.runtime.markup import ORANGE, build_card
from vulcan.runtime.sketch import Sketch

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound

__all__ = ["draw_bound", "write_bound"]

POINTS: Final = 60

SPAN: Final = 10.0
"""Rewards that are shown where a bound says nothing about which matter."""


def draw_bound(sketch: Sketch, bound: RiskBound, rewards: Sequence[float]) -> None:
    """Draw a bound from the smallest reward to the largest, and as far around as is telling."""
    low, high = min(rewards), max(rewards)
    wide = high - low or abs(high) or 1.0
    low, high = low - 0.1 * wide, high + 0.2 * wide
    places = [low + (high - low) * k / (POINTS - 1) for k in range(POINTS)]
    heights = [(x, _evaluate(bound, x)) for x in places]
    # What is far below 0 allows nothing, and would press the rest of the picture flat.
    highest = max((y for _, y in heights if math.isfinite(y)), default=0.0)
    sketch.add_line([(x, y) for x, y in heights if y >= -0.15 * abs(highest)], ORANGE)


def write_bound(bound: RiskBound) -> str:
    """Return a card of a bound, over the rewards where it begins to allow something."""
    sketch = Sketch("expected reward", "allowed risk")
    draw_bound(sketch, bound, _find_rewards(bound))
    return build_card(f"Δ(x) = {bound}", sketch.build(), remark=type(bound).__name__)


def _find_rewards(bound: RiskBound) -> tuple[float, float]:
    """Return the rewards between which a bound is drawn."""
    bends = [float(x) for x, _ in getattr(bound, "points", ())]
    if len(bends) > 1:
        return min(bends), max(bends)
    sign = -1.0 if _evaluate(bound, 0.0) > 0 else 1.0
    reach = (sign * 10.0**k for k in range(-3, 7))
    other = next((x for x in reach if (_evaluate(bound, x) > 0) != (sign < 0)), None)
    if other is None or _evaluate(bound, 0.0) == 0:
        return 0.0, SPAN
    low, high = sorted((0.0, other))
    while high - low > 1e-3 * abs(other):  # nothing is allowed at the one, something at the other
        middle = (low + high) / 2
        low, high = (low, middle) if _evaluate(bound, middle) > 0 else (middle, high)
    return low, low + max(SPAN, abs(low))


def _evaluate(bound: RiskBound, reward: float) -> float:
    try:
        return float(bound(reward))
    except BoundError:
        return -math.inf
