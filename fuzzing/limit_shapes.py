"""Shapes of limits: costs and events for a problem that has none, and limits that decide something.

Costs are drawn like rewards: small, signed, huge, minute, cancelling, of any size. An event may be
a kind of failure, or happen on safe outcomes, once or often. Limits are drawn like risk bounds,
through what some policy is charged, or beside it; all of them often through the same policy, so
that it is just acceptable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from fuzzing.bound_shapes import NEARLY, draw_bound
from fuzzing.oracle import Point, TooLargeError
from fuzzing.problems import Bound, Limit, PlainProblem, Way
from fuzzing.risk_bounds import find_slope
from fuzzing.several import SeveralOracle, Worth
from fuzzing.shapes import REWARDS

__all__ = ["MOST_PAIRS", "draw_limits"]

MOST_PAIRS = 400
"""Problems whose actions need more sums of worths than this keep one risk bound."""

LEVEL = Bound("constant", "class", (0.1,))
"""In the place of a bound that is drawn last."""

COSTS, EVENTS = ("fuel", "dose"), ("late", "crash")


def draw_limits(random: Random, problem: PlainProblem) -> PlainProblem:
    """Return a problem with one to three limits more; as it is where that is too large."""
    styles = {name: random.choice(list(REWARDS)) for name in COSTS}
    often = random.choice((0.2, 0.6, 1.0))

    def charge(ways: Sequence[Way]) -> list[Way]:
        return [_charge(random, way, styles, often) for way in ways]

    pool = [("cost", "fuel"), ("cost", "dose"), ("event", "late"), ("event", "crash"), ("cap", "")]
    chosen = random.sample(pool, random.choice((1, 1, 2, 2, 3)))
    limits = tuple(Limit(kind, name, LEVEL) for kind, name in chosen)
    several = replace(problem.change(charge), limits=limits)
    try:
        worths = SeveralOracle(several, MOST_PAIRS).worths
        bounds = _draw_bounds(random, several, worths)
    except TooLargeError:
        return problem
    except OverflowError:  # policies are charged more than floats can say
        bounds = [LEVEL] * (1 + len(limits))
    limits = tuple(
        limit._replace(bound=bound) for limit, bound in zip(limits, bounds[1:], strict=True)
    )
    tags = [f"limits {len(limits)}", *(f"limit on {limit.name or 'ahead'}" for limit in limits)]
    tags += [f"costs {styles[limit.name]}" for limit in limits if limit.kind == "cost"]
    return replace(several, bound=bounds[0], limits=limits, tags=(*problem.tags, *tags))


def _charge(random: Random, way: Way, styles: dict[str, str], often: float) -> Way:
    costs = [(name, REWARDS[styles[name]](random)) for name in COSTS if random.random() < often]
    event = random.choice((None, None, *EVENTS, "unlimited"))
    return way._replace(costs=tuple(sorted(costs)), event=event)


def _draw_bounds(random: Random, problem: PlainProblem, worths: Sequence[Worth]) -> list[Bound]:
    """Return the risk bound, and a bound for each limit."""
    anchor = random.choice(worths)
    together = random.random() < 0.6
    worths = sorted(worths, key=lambda worth: worth.reward)
    bounds, column = [problem.bound], 1
    for limit in problem.limits:
        if limit.kind == "cap":
            ahead = (anchor if together else random.choice(worths)).ahead
            level = float(ahead) * random.choice((*NEARLY, 1.5, 0.5))
            bounds.append(Bound("constant", "class", (level,)))
            continue
        bounds.append(_draw_bound(random, worths, anchor if together else None, column))
        column += 1
    if random.random() < 0.7:
        bounds[0] = _draw_bound(random, worths, anchor if together else None, 0)
    return bounds


def _draw_bound(
    random: Random, worths: Sequence[Worth], anchor: Worth | None, column: int
) -> Bound:
    """Return a bound on one charge: through that of the anchor, or anywhere."""
    points = [Point(worth.charges[column], worth.reward) for worth in worths]
    bound = draw_bound(random, points)[0]
    if anchor is None or not math.isfinite(find_slope(bound, 0.0)):
        return bound
    reward, charge = float(anchor.reward), float(anchor.charges[column])
    if bound.kind == "constant":
        return bound._replace(numbers=(charge * random.choice(NEARLY),))
    if bound.kind == "linear" and math.isfinite(charge - bound.numbers[0] * reward):
        slope = bound.numbers[0]
        return bound._replace(numbers=(slope, charge - slope * reward))
    return bound
