"""Conditions on intervals: whether a precondition can still hold when little is known.

The code of a term is evaluated with an interval for each place of the list: a single point where
the value is known, and its range elsewhere. The interval of the result is never too small, so what
can't hold here can't hold at all.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vulcan.formats.rddl.terms import Term

__all__ = ["ANYTHING", "Interval", "Preconditions"]

Interval = tuple[float, float]
"""Smallest and largest value; truth values are 0 and 1."""

ANYTHING: Final = (-math.inf, math.inf)
ANY_TRUTH: Final = (0, 1)


class Preconditions:
    """Conditions that must all hold.

    Parameters
    ----------
    terms
        The conditions.
    ranges
        The range of each place whose value may not be known.
    """

    def __init__(self, terms: Sequence[Term], ranges: Mapping[int, Interval]) -> None:
        self._ranges = ranges
        self._parts: dict[int, list[ast.expr]] = defaultdict(list)
        for term in terms:
            for part in _split(ast.parse(term.code, mode="eval").body):
                for place in _list_places(part):
                    self._parts[place].append(part)

    def can_hold(self, place: int, known: Mapping[int, Any]) -> bool:
        """Return False if a part that reads a place can't hold with the values known so far."""
        return all(_enclose(part, known, self._ranges)[1] > 0 for part in self._parts[place])


def _split(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a condition that must all hold."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for part in node.values:
            yield from _split(part)
    else:
        yield node


def _list_places(node: ast.expr) -> set[int]:
    return {
        part.slice.value  # type: ignore[misc]
        for part in ast.walk(node)
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)
        if isinstance(part.slice, ast.Constant)
    }


def _enclose(node: ast.expr, known: Mapping[int, Any], ranges: Mapping[int, Interval]) -> Any:
    """Return an interval that the value of some code is in, or the very object that it is."""

    def go(part: ast.expr) -> Any:
        return _enclose(part, known, ranges)

    match node:
        case ast.Constant(value=value):
            return value if isinstance(value, str) else (value, value)
        case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=int(place))):
            if (value := known.get(place)) is None:
                return ranges.get(place, ANYTHING)
            return value if isinstance(value, str) else (value, value)
        case ast.BoolOp(op=op, values=values):
            pick = min if isinstance(op, ast.And) else max
            lows, highs = zip(*(_limit(go(part)) for part in values), strict=True)
            return (pick(lows), pick(highs))
        case ast.UnaryOp(op=ast.Not(), operand=inside):
            low, high = _limit(go(inside))
            return (1 - high, 1 - low)
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            low, high = go(inside)
            return (-high, -low)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(op, go(left), go(right))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            (a, b), (c, d) = go(left), go(right)
            return (a + c, b + d) if isinstance(op, ast.Add) else (a - d, b - c)
        case ast.Call(func=ast.Name(id="sum"), args=[ast.Tuple(elts=parts)]):
            pairs = [go(part) for part in parts]
            return (sum(low for low, _ in pairs), sum(high for _, high in pairs))
        case ast.Call(func=ast.Name(id="prod"), args=[ast.Tuple(elts=parts)]):
            low, high = 1.0, 1.0
            for a, b in map(go, parts):
                ends = [_times(x, y) for x in (low, high) for y in (a, b)]
                low, high = min(ends), max(ends)
            return (low, high)
        case ast.IfExp(test=test, body=one, orelse=other):
            low, high = _limit(go(test))
            cases = [go(part) for part, may in ((one, high), (other, 1 - low)) if may]
            return cases[0] if len(cases) == 1 else ANYTHING
    return ANYTHING


def _times(x: float, y: float) -> float:
    return x * y if x and y else 0.0  # also where the other is infinite


def _limit(interval: Any) -> Interval:
    """Return the interval of a truth value."""
    low, high = interval
    return (max(low, 0), min(high, 1))


def _compare(op: ast.cmpop, one: Any, other: Any) -> Interval:
    if isinstance(one, str) or isinstance(other, str):
        if not (isinstance(one, str) and isinstance(other, str)):
            return ANY_TRUTH
        same = one == other
        return (same, same) if isinstance(op, ast.Eq) else (not same, not same)
    (a, b), (c, d) = one, other
    match op:
        case ast.Lt():
            return (b < c, a < d)
        case ast.LtE():
            return (b <= c, a <= d)
        case ast.Gt():
            return (a > d, b > c)
        case ast.GtE():
            return (a >= d, b >= c)
        case ast.Eq():
            return (a == b == c == d, a <= d and c <= b)
        case ast.NotEq():
            return (not (a <= d and c <= b), not a == b == c == d)
    return ANY_TRUTH
