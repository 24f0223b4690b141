"""Risk bounds from text, without `eval`.

The language is arithmetic in one variable: numbers, `x`, `pi`, `e`, `inf`; `+ - * / **`; and the
functions below. `piecewise((x0, y0), (x1, y1), ...)` stands alone and gives a `PiecewiseLinear`.
A text that is a straight line gives `Constant` or `Linear`, which searches evaluate exactly; any
other a `Concave`, with its exact derivative for tangents (forward differentiation).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, Final

from vulcan.errors import BoundError
from vulcan.risk import Concave, Constant, Linear, PiecewiseLinear, RiskBound

__all__ = ["parse"]

MOST_CHARACTERS: Final = 1000

CONSTANTS: Final = {"pi": math.pi, "e": math.e, "inf": math.inf}

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
CHOICES: Final = {"min": min, "max": max}

Pair = tuple[float, float]  # a value and its derivative in x


def parse(text: str) -> RiskBound:
    """Return the risk bound that a text describes.

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
        If the text is not in the language; the message points at the place.

    Examples
    --------
    >>> parse("0.002*x")
    Linear(slope=0.002, offset=0.0)
    >>> parse("1/80")
    Constant(0.0125)
    """
    if len(text) > MOST_CHARACTERS:
        raise BoundError(f"a risk bound has at most {MOST_CHARACTERS} characters, not {len(text)}")
    text = text.strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        place = getattr(error, "offset", None) or 1
        raise _complain(text, place - 1, "this is not an expression") from None
    if isinstance(tree, ast.Call) and getattr(tree.func, "id", None) == "piecewise":
        return _parse_points(text, tree)
    _check(text, tree)
    try:
        line = _as_line(tree)
    except ArithmeticError as error:
        raise BoundError(f"the risk bound can't be evaluated: {error}") from error
    if line is None:
        return Concave(
            lambda x: _evaluate(tree, x)[0], derivative=lambda x: _evaluate(tree, x)[1], text=text
        )
    offset, slope = line
    return Constant(offset) if slope == 0 else Linear(slope, offset)


def _complain(text: str, column: int, problem: str) -> BoundError:
    names = ", ".join([*FUNCTIONS, *CHOICES])
    return BoundError(
        f"{problem}:\n  {text}\n  {' ' * column}^\n"
        f"a risk bound is made of numbers, x, {', '.join(CONSTANTS)}, + - * / ** and {names}; "
        "or it is piecewise((x0, y0), (x1, y1), ...)"
    )


def _check(text: str, node: ast.AST) -> None:
    """Refuse every node that is not in the language."""
    column = getattr(node, "col_offset", 0)
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Name(id=name):
            if name != "x" and name not in CONSTANTS:
                raise _complain(text, column, f"unknown name {name!r}")
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            _check(text, operand)
        case ast.BinOp(
            left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow(), right=right
        ):
            _check(text, left)
            _check(text, right)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS and name not in CHOICES:
                raise _complain(text, column, f"unknown function {name!r}")
            if (name in FUNCTIONS and len(arguments) != 1) or not arguments:
                raise _complain(text, column, f"{name} takes another number of arguments")
            for argument in arguments:
                _check(text, argument)
        case _:
            raise _complain(text, column, "this is not allowed here")


def _evaluate(node: ast.expr, x: float) -> Pair:
    """Return the value of an expression and its derivative."""
    match node:
        case ast.Constant(value=value):
            return float(value), 0.0  # type: ignore[arg-type]
        case ast.Name(id=name):
            return (x, 1.0) if name == "x" else (CONSTANTS[name], 0.0)
        case ast.UnaryOp(op=op, operand=operand):
            sign = -1.0 if isinstance(op, ast.USub) else 1.0
            value, slope = _evaluate(operand, x)
            return sign * value, sign * slope
        case ast.BinOp(left=left, op=op, right=right):
            return _combine(op, _evaluate(left, x), _evaluate(right, x))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            pairs = [_evaluate(argument, x) for argument in arguments]
            if name in CHOICES:
                return CHOICES[name](pairs, key=lambda pair: pair[0])
            function, derivative = FUNCTIONS[name]
            value, slope = pairs[0]
            return function(value), _product(slope, lambda: derivative(value))
    raise AssertionError(node)


def _product(slope: float, factor: Callable[[], float]) -> float:
    """Return slope times factor, where a constant argument has slope 0 whatever the factor."""
    if slope == 0:
        return 0.0
    try:
        return slope * factor()
    except ZeroDivisionError:
        return math.copysign(math.inf, slope)


def _combine(op: ast.operator, left: Pair, right: Pair) -> Pair:
    (u, du), (v, dv) = left, right
    match op:
        case ast.Add():
            return u + v, du + dv
        case ast.Sub():
            return u - v, du - dv
        case ast.Mult():
            return u * v, du * v + u * dv
        case ast.Div():
            return u / v, (du * v - u * dv) / (v * v)
    value: Any = u**v
    if isinstance(value, complex):
        raise ValueError(f"{u!r} ** {v!r} is not a real number")
    slope = _product(du, lambda: v * u ** (v - 1)) + _product(dv, lambda: value * math.log(u))
    return value, slope


def _as_line(node: ast.expr) -> Pair | None:
    """Return (offset, slope) if the expression is a straight line as it is written."""
    match node:
        case ast.Constant() | ast.Name():
            at_zero, slope = _evaluate(node, 0.0)
            return at_zero, slope
        case ast.UnaryOp(op=op, operand=operand):
            line = _as_line(operand)
            if line is None or isinstance(op, ast.UAdd):
                return line
            return -line[0], -line[1]
        case ast.BinOp(left=left, op=op, right=right):
            return _combine_lines(op, _as_line(left), _as_line(right))
    return None


def _combine_lines(op: ast.operator, left: Pair | None, right: Pair | None) -> Pair | None:
    if left is None or right is None:
        return None
    (a, b), (c, d) = left, right
    match op:
        case ast.Add():
            return a + c, b + d
        case ast.Sub():
            return a - c, b - d
        case ast.Mult() if b == 0 or d == 0:
            return a * c, b * c + a * d
        case ast.Div() if d == 0:
            return a / c, b / c
        case ast.Pow() if b == 0 and d == 0:
            value: Any = a**c
            return None if isinstance(value, complex) else (value, 0.0)
    return None


def _parse_points(text: str, call: ast.Call) -> PiecewiseLinear:
    points = []
    for argument in call.args:
        if not isinstance(argument, ast.Tuple) or len(argument.elts) != 2:
            raise _complain(text, argument.col_offset, "a point is written (reward, risk)")
        pair = []
        for number in argument.elts:
            _check(text, number)
            line = _as_line(number)
            if line is None or line[1] != 0:
                raise _complain(text, number.col_offset, "a point has two plain numbers")
            pair.append(line[0])
        points.append((pair[0], pair[1]))
    return PiecewiseLinear(points)
