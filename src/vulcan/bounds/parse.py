"""Risk bounds from strings, without `eval`.

The language is arithmetic in one variable: numbers, `x`, `pi`, `e`; `+ - * / **`; and the functions
below. `piecewise((x0, y0), (x1, y1), ...)` stands alone and gives a `PiecewiseLinear`.

A string that is a straight line gives `Constant` or `Linear`, and a line that is level from some
point on, `min(0.002*x, 0.01)`, a `PiecewiseLinear`: searches evaluate these exactly. Any other
string gives a `Concave`, with its exact derivative for tangents (forward differentiation; at a
corner, the derivative to the right).
"""

from __future__ import annotations

import ast
import math
import re
import reprlib
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from numbers import Real
from operator import add
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Concave, Constant, Linear, PiecewiseLinear
from vulcan.bounds.table import GUARD
from vulcan.errors import BoundError
from vulcan.parameters import require_number, shorten

MOST_CHARACTERS: Final = 100_000
DEEPEST: Final = 100  # deepest nesting of operations; a sum of n terms is n deep

Pair = tuple[float, float]  # a value and its derivative in x

Term = tuple[int, Callable[[float], Pair]]
"""A part of an expression: its degree, and its value and derivative at any x.

The degree is 0 for a constant, 1 for a straight line as it is written, 2 for anything else.
"""

CONSTANTS: Final = {"pi": math.pi, "e": math.e}

# Each function with its derivative.
FUNCTIONS: Final[dict[str, tuple[Callable[[float], float], Callable[[float], float]]]] = {
    "exp": (math.exp, math.exp),
    "expm1": (math.expm1, math.exp),
    "log": (math.log, lambda u: 1 / u),
    "log1p": (math.log1p, lambda u: 1 / (1 + u)),
    "sqrt": (math.sqrt, lambda u: 0.5 / math.sqrt(u)),
    "tanh": (math.tanh, lambda u: 1 - math.tanh(u) ** 2),
    "atan": (math.atan, lambda u: 1 / (1 + u * u)),
}
# Of equal values, the pair with the smaller or larger derivative wins: the one to the right.
CHOICES: Final[dict[str, Callable[[Sequence[Pair]], Pair]]] = {"min": min, "max": max}

LANGUAGE: Final = (
    f"a risk bound is made of numbers, x, {', '.join(CONSTANTS)}, + - * / ** and "
    f"{', '.join([*FUNCTIONS, *CHOICES])}; or it is piecewise((x0, y0), (x1, y1), ...)"
)


def read_bound(given: Any) -> RiskBound:
    """Return a risk bound given as a `RiskBound`, a number or a string."""
    if isinstance(given, RiskBound):
        return given
    if isinstance(given, str):
        return parse(given)
    if isinstance(given, Real) and not isinstance(given, bool):
        return Constant(require_number("a constant risk bound", given, error=BoundError))
    raise BoundError(
        'a risk bound is a number, a string such as "0.002*x", vulcan.Constant, vulcan.Linear, '
        f"vulcan.PiecewiseLinear or vulcan.Concave, not {shorten(given)}"
    )


def parse(text: str) -> RiskBound:
    """Return the risk bound that a string describes.

    Parameters
    ----------
    text
        Such as ``"0.0125"``, ``"0.002*x"``, ``"(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"``,
        ``"min(0.002*x, 0.01)"`` or ``"piecewise((0, 0), (1, 0.01), (3, 0.02))"``.

    Returns
    -------
    RiskBound
        `Constant`, `Linear`, `PiecewiseLinear` or `Concave`.

    Raises
    ------
    BoundError
        If the string is not in the language; the message points at the place.

    Examples
    --------
    >>> parse("0.002*x")
    Linear(slope=0.002, offset=0.0)
    >>> parse("1/80")
    Constant(0.0125)
    """
    if not isinstance(text, str):
        raise BoundError(f"a risk bound is parsed from a string, not from {reprlib.repr(text)}")
    if len(text) > MOST_CHARACTERS:
        raise BoundError(f"a risk bound has at most {MOST_CHARACTERS} characters, not {len(text)}")
    reader = _Reader(" ".join(text.split()))
    tree = reader.tree()
    match tree:
        case ast.Call(func=ast.Name(id="piecewise"), args=points, keywords=[]):
            return PiecewiseLinear([reader.point(point) for point in points])
        case ast.Call(func=ast.Name(id="min"), args=[first, second], keywords=[]):
            clipped = _clip_line(reader.read(first), reader.read(second))
            if clipped is not None:
                return clipped
    degree, evaluate = reader.read(tree)
    if degree > 1:
        text = reader.text
        return Concave(partial(_evaluate, text, 0), partial(_evaluate, text, 1), text)
    offset, slope = evaluate(0.0)
    return Constant(offset) if slope == 0 else Linear(slope, offset)


@lru_cache(maxsize=256)
def _read_term(text: str) -> Callable[[float], Pair]:
    """Return the term of a string; terms can't be pickled, so other processes read it again."""
    reader = _Reader(text)
    return reader.read(reader.tree())[1]


def _evaluate(text: str, which: int, x: float) -> float:
    """Return the value (0) or the slope (1) of an expression."""
    return _read_term(text)(x)[which]


def _clip_line(*terms: Term) -> PiecewiseLinear | None:
    """Return the smaller of a rising line and a level."""
    if any(degree > 1 for degree, _ in terms):
        return None
    lines = sorted((evaluate(0.0) for _, evaluate in terms), key=lambda line: line[1])
    (level, flat), (offset, slope) = lines
    if flat != 0 or slope <= 0:
        return None
    # From the corner as far down as keeps the rounding errors of the slope small.
    corner, depth = (level - offset) / slope, abs(level) + abs(offset)
    width = depth / slope
    if min(depth, width) < 1e-300 or not math.isfinite(corner - width):
        return None
    ends = [(corner - width, level - depth), (corner, level)]
    exact = (Fraction(slope) * Fraction(reward) + Fraction(offset) for reward, _ in ends)
    # A steep line may be far off at a rounded corner; then the function itself is used.
    close = all(
        abs(value - Fraction(risk)) <= Fraction(GUARD) * max(Fraction(1), abs(value))
        for value, (_, risk) in zip(exact, ends, strict=True)
    )
    return PiecewiseLinear(ends) if close else None


class _Reader:
    """Turns a text into terms; errors point at the part that can't be read."""

    def __init__(self, text: str) -> None:
        self.text = text

    def tree(self) -> ast.expr:
        """Return the syntax tree of the text."""
        if not self.text:
            raise BoundError(f"the string of the risk bound is empty; {LANGUAGE}")
        stranger = re.search(r"[^0-9A-Za-z_.+\-*/(), ]", self.text)
        if stranger:
            instead = "; 5% is written 0.05" if stranger.group() == "%" else ""
            raise self._refuse(stranger.start(), f"{stranger.group()!a} is not allowed{instead}")
        # Files contain these texts, and other programs read them without Python's syntax.
        number = re.search(r"(?<![0-9A-Za-z_.])0[xXoObB]|[0-9]_", self.text)
        if number:
            raise self._refuse(number.start(), "numbers are decimal, such as 12 or 1e-3")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as for "1if"
                return ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            place = getattr(error, "offset", 1) or len(self.text) + 1  # it ends too early
            raise self._refuse(place - 1, "this is not an expression") from None

    def read(self, node: ast.expr, depth: int = 0) -> Term:
        """Return an expression as a term; constant parts are worked out."""
        if depth > DEEPEST:
            raise self._refuse_node(node, "this is too long, or too many operations deep")
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return self._fold(node, (0, lambda x: (float(number), 0.0)))
            case ast.Name(id="x"):
                return 1, lambda x: (x, 1.0)
            case ast.Name(id=name):
                if name not in CONSTANTS:
                    raise self._refuse_node(node, f"unknown name {reprlib.repr(name)}")
                return 0, lambda x: (CONSTANTS[name], 0.0)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
                degree, term = self.read(operand, depth + 1)
                return degree, partial(_negate, term) if isinstance(sign, ast.USub) else term
            case ast.BinOp(left=first, op=operator, right=second) if type(operator) in OPERATORS:
                combine, add_degrees = OPERATORS[type(operator)]
                (one, left), (other, right) = (self.read(x, depth + 1) for x in (first, second))
                if isinstance(operator, ast.Div) and other == 0 and right(0.0)[0] == 0:
                    raise self._refuse_node(node, "division by zero")
                degree = min(2, add_degrees(one, other))
                return self._fold(node, (degree, lambda x: combine(left(x), right(x))))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._fold(node, self._call(node, name, arguments, depth))
        raise self._refuse_node(node, "this is not allowed")

    def point(self, node: ast.expr) -> Pair:
        """Return a point of a piecewise linear bound."""
        if not isinstance(node, ast.Tuple) or len(node.elts) != 2:
            raise self._refuse_node(node, "a point is written (reward, risk)")
        terms = [self.read(number) for number in node.elts]
        if any(degree for degree, _ in terms):
            raise self._refuse_node(node, "a point has two plain numbers")
        x, y = (evaluate(0.0)[0] for _, evaluate in terms)
        return x, y

    def _call(self, node: ast.expr, name: str, arguments: list[ast.expr], depth: int) -> Term:
        if name not in FUNCTIONS and name not in CHOICES:
            raise self._refuse_node(node, f"unknown function {reprlib.repr(name)}")
        if not arguments or (name in FUNCTIONS and len(arguments) > 1):
            count = "one argument" if name in FUNCTIONS else "at least one argument"
            raise self._refuse_node(node, f"{name} takes {count}")
        terms = [self.read(argument, depth + 1) for argument in arguments]
        degree = 2 if any(degree for degree, _ in terms) else 0
        if name in CHOICES:
            choose = CHOICES[name]
            return degree, lambda x: choose([term(x) for _, term in terms])
        function, derivative = FUNCTIONS[name]

        def evaluate(x: float) -> Pair:
            value, slope = terms[0][1](x)
            return function(value), _multiply_slope(slope, lambda: derivative(value))

        return degree, evaluate

    def _fold(self, node: ast.expr, term: Term) -> Term:
        """Work a constant out."""
        degree, evaluate = term
        if degree > 0:
            return term
        try:
            value, _ = evaluate(0.0)
        except (ArithmeticError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise self._refuse_node(node, "this has no finite value")
        return 0, lambda x: (value, 0.0)

    def _refuse_node(self, node: ast.expr, problem: str) -> BoundError:
        return self._refuse(node.col_offset, problem, node.end_col_offset)

    def _refuse(self, start: int, problem: str, end: int | None = None) -> BoundError:
        """Return an error that shows the place, with what is around it."""
        first, last = max(0, start - 40), start + 40
        around = "".join(c if c.isprintable() else "?" for c in self.text[first:last])
        marks = "^" * max(1, min(end or 0, last) - start)
        return BoundError(f"{problem}:\n  {around}\n  {' ' * (start - first)}{marks}\n{LANGUAGE}")


def _negate(term: Callable[[float], Pair], x: float) -> Pair:
    value, slope = term(x)
    return -value, -slope


def _multiply_slope(slope: float, factor: Callable[[], float]) -> float:
    """Return slope times factor; NaN where the factor has no value."""
    if slope == 0:  # of a constant, where the factor does not matter
        return 0.0
    try:
        return slope * factor()
    except (ArithmeticError, ValueError):
        return math.nan


def _divide(left: Pair, right: Pair) -> Pair:
    quotient = left[0] / right[0]
    return quotient, (left[1] - quotient * right[1]) / right[0]


def _raise(left: Pair, right: Pair) -> Pair:
    (u, du), (v, dv) = left, right
    value: Any = u**v
    if isinstance(value, complex):
        raise ValueError(f"{u!r} ** {v!r} is not a real number")
    slope = _multiply_slope(du, lambda: v * u ** (v - 1))
    return value, slope + _multiply_slope(dv, lambda: value * math.log(u))


# Each operation, and the degree of its result from those of its operands.
OPERATORS: Final[
    dict[type[ast.operator], tuple[Callable[[Pair, Pair], Pair], Callable[[int, int], int]]]
] = {
    ast.Add: (lambda u, v: (u[0] + v[0], u[1] + v[1]), max),
    ast.Sub: (lambda u, v: (u[0] - v[0], u[1] - v[1]), max),
    ast.Mult: (lambda u, v: (u[0] * v[0], u[1] * v[0] + u[0] * v[1]), add),
    ast.Div: (_divide, lambda left, right: left + 2 * right),
    ast.Pow: (_raise, lambda left, right: 2 * (left + right)),
}
