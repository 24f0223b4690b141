"""Where the next point of a frontier tells most.

Between two neighbouring points the area between what is earned and what is proved to be the limit
(`enclosure`) is what is not known yet. The next point goes where that area is largest, to the place
that halves it, so that points crowd where the frontier bends and flat parts have few.

Of deterministic policies the frontier is a staircase, and halving would come close to a step only
slowly. So where the point before a step found nothing new, the next one goes just below the step:
if there is no other policy in between, its upper bound closes the area at once.

Several points may be under way. What one of them finds changes most beside it, so that nothing is
placed there until it is known.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise
from typing import Final

from vulcan.planning.frontier.enclosure import Enclosure

__all__ = ["choose_place"]

CELLS: Final = 16
"""Places between two points at which the area is measured."""

ENOUGH: Final = 1e-4
"""Share of the whole area that is no more worth a point: it would hardly be seen."""

BELOW: Final = 1e-6
"""How far below a step a point is, as a share of the range."""


def choose_place(
    enclosure: Enclosure, places: Sequence[float], under_way: Collection[float] = ()
) -> float | None:
    """Return the level or scale of the next point; None if nothing is left that would be seen.

    Parameters
    ----------
    enclosure
        What is proved by the points so far.
    places
        Their levels or scales, in order, and those of points that are under way.
    under_way
        The latter: nobody knows yet what is left to find beside them.
    """
    span = places[-1] - places[0]
    floor = enclosure.steps[0][1] if enclosure.steps else 0.0
    gaps = {pair: _measure(enclosure, *pair, floor) for pair in pairwise(places)}
    tops = [gap for found in gaps.values() for gap in found]
    height = max(enclosure.find_reward(places[-1]) - floor, *tops) if tops else 0.0
    for pair in sorted(gaps, key=lambda pair: -sum(gaps[pair]) * (pair[1] - pair[0])):
        if pair[0] in under_way or pair[1] in under_way:
            continue
        area = sum(gaps[pair]) / CELLS * (pair[1] - pair[0])
        if not area > ENOUGH * span * height:
            return None
        place = _split(enclosure, places, pair, gaps[pair])
        if pair[0] < place < pair[1]:
            return place
    return None


def _measure(enclosure: Enclosure, low: float, high: float, floor: float) -> list[float]:
    """Return how far the limit is above what is earned, in the middle of each cell."""
    later = max(enclosure.find_reward(high), floor)
    gaps = []
    for k in range(CELLS):
        place = low + (high - low) * (k + 0.5) / CELLS
        limit = enclosure.find_limit(place)
        # Without a proof, what is earned for more is the best guess.
        known = later if limit == math.inf else limit
        gaps.append(max(0.0, known - max(enclosure.find_reward(place), floor)))
    return gaps


def _split(
    enclosure: Enclosure, places: Sequence[float], pair: tuple[float, float], gaps: Sequence[float]
) -> float:
    """Return a place between two points: just below a step, or in the middle of the area."""
    low, high = pair
    number = bisect_left(places, low)
    reward = enclosure.find_reward(low)
    fruitless = number > 0 and enclosure.find_reward(places[number - 1]) == reward
    steps = [place for place, earned in enclosure.steps if low < place <= high and earned > reward]
    if fruitless and steps:
        below = steps[0] - BELOW * (places[-1] - places[0])
        if below > low:
            return below
    sums = list(accumulate(gaps))
    cell = bisect_left(sums, sums[-1] / 2)
    return low + (high - low) * (cell + 0.5) / CELLS
