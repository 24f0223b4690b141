"""Strategies for risk bounds of every kind, and for the expressions that they are parsed from."""

import math
from types import SimpleNamespace

from hypothesis import strategies as st

from vulcan import Constant, Linear, PiecewiseLinear
from vulcan.bounds.parse import CHOICES, FUNCTIONS

rewards = st.floats(-1e6, 1e6)


@st.composite
def piecewise(draw):
    """Bounds with points as a user types them, or with any."""
    count = draw(st.integers(1, 5))
    digits = draw(st.sampled_from([2, 3, 17]))
    steps = draw(st.lists(st.floats(0.02, 100), min_size=count, max_size=count))
    slopes = draw(st.lists(st.floats(0, 10), min_size=count, max_size=count))
    points = [(draw(st.floats(-100, 100)), draw(st.floats(-1, 1)))]
    for step, slope in zip(steps, sorted(slopes, reverse=True), strict=True):
        x, y = points[-1]
        further = round(x + step, digits)
        points.append((further, y + (further - x) * slope))
    return PiecewiseLinear(points)


straight = st.one_of(
    st.builds(Constant, st.floats(-1, 2)),
    st.builds(Linear, st.floats(0, 100), st.floats(-100, 100)),
    piecewise(),
)


# Concave, nondecreasing functions on x >= 0, of any scale, each with its derivative.

SHAPES = {
    "saturating": (lambda x: -math.expm1(-x), lambda x: math.exp(-x)),
    "cancelling": (lambda x: 1 - math.exp(-x), lambda x: math.exp(-x)),
    "root": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "logarithm": (math.log1p, lambda x: 1 / (1 + x)),
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "line": (lambda x: x, lambda x: 1.0),
    "level": (lambda x: 0.3, lambda x: 0.0),
    "corner": (lambda x: min(x, 0.5 + x / 10, 0.7), lambda x: 1.0 if x < 5 / 9 else 0.1 * (x < 2)),
    "steep corner": (lambda x: min(1e6 * x, 1.0), lambda x: 1e6 * (x < 1e-6)),
    "hyperbola": (lambda x: x / (1 + x), lambda x: (1 + x) ** -2),
}


@st.composite
def concave(draw):
    name = draw(st.sampled_from(sorted(SHAPES)))
    function, derivative = SHAPES[name]
    heights = [1e-12, 1e-6, 0.02, 1.0]
    # What cancels is lost: of a million, 1e-10.
    height = draw(st.sampled_from(heights if name == "cancelling" else [*heights, 1e6]))
    width = draw(st.sampled_from([1e-3, 1.0, 40.0, 1e6]))
    offset = draw(st.sampled_from([0.0, -0.5, 0.1])) * height
    start = draw(st.sampled_from([0.0, -3.0, 1e3]))

    def shifted(x):
        return offset + height * function((x - start) / width)

    def slope(x):
        return height / width * derivative((x - start) / width)

    return SimpleNamespace(
        name=f"{height} * {name}((x - {start}) / {width}) + {offset}",
        function=shifted,
        derivative=slope,
        start=start,
        width=width,
        height=height,
    )


shares = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def assert_above(tangent, bound, places, slack):
    assert math.isfinite(tangent.slope)
    assert tangent.slope >= 0
    for place in places:
        value = bound(place)
        size = max(1.0, abs(value), abs(tangent.slope * (place - tangent.at)))
        assert tangent(place) >= value - slack * size, (tangent, place, value)


@st.composite
def expressions(draw, depth=3):
    """Texts of the language."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(["x", "x", "2", "0.3", "1e-3", "pi", "e"]))
    part = expressions(depth=depth - 1)
    match draw(st.integers(0, 3)):
        case 0:
            return f"-{draw(part)}"
        case 1:
            return f"{draw(st.sampled_from(sorted(FUNCTIONS)))}({draw(part)})"
        case 2:
            return f"{draw(st.sampled_from(sorted(CHOICES)))}({draw(part)}, {draw(part)})"
    return f"({draw(part)} {draw(st.sampled_from(['+', '-', '*', '/', '**']))} {draw(part)})"
