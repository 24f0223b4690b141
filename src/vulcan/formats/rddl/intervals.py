"""Conditions on intervals: whether a precondition can still hold when little is known.

Two lists have the smallest and the largest value of each place: the same where the value is known,
and the ends of its range elsewhere. The code of a term becomes two pieces of code that read these
lists, for the ends of an interval that its value is in. The interval is never too small, so what
can't hold here can't hold at all.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from vulcan.formats.rddl.terms import Term

__all__ = ["ANYTHING", "Interval", "Known", "Preconditions"]

Interval = tuple[float, float]
"""Smallest and largest value; truth values are 0 and 1."""

ANYTHING: Final = (-math.inf, math.inf)


class Known:
    """What is known of the values in the list.

    Parameters
    ----------
    state
        The values of state fluents: the first of the list.
    ranges
        The ranges of the others, which are not known yet.
    """

    def __init__(self, state: Sequence[Any], ranges: Sequence[Interval]) -> None:
        self.low, self.high = ([*state, *ends] for ends in zip(*ranges, strict=True))
        self._ranges = (self.low.copy(), self.high.copy())

    def fix(self, place: int, value: Any) -> None:
        """Let a place have a value."""
        self.low[place] = self.high[place] = value

    def forget(self, place: int) -> None:
        """Let a place have any value of its range."""
        self.low[place], self.high[place] = (ends[place] for ends in self._ranges)


class Preconditions:
    """Conditions that must all hold.

    Parameters
    ----------
    terms
        The conditions.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self._parts: dict[int, list[Callable[[list[Any], list[Any]], bool]]] = defaultdict(list)
        for term in terms:
            for part in _split(ast.parse(term.code, mode="eval").body):
                _, high = _enclose(part)
                can_hold = eval(f"lambda low, high: {high} > 0", NAMES)  # noqa: S307 - see terms
                for place in _list_places(part):
                    self._parts[place].append(can_hold)

    def can_hold(self, place: int, known: Known) -> bool:
        """Return False if a part that reads a place can't hold with the values known so far."""
        return all(part(known.low, known.high) for part in self._parts[place])


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


def _enclose(node: ast.expr) -> tuple[str, str]:
    """Return code for both ends of an interval that the value of some code is in.

    Where the value is an object, both are that object, or those of ANYTHING.
    """
    match node:
        case ast.Constant(value=value):
            return (repr(value), repr(value))
        case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=int(place))):
            return (f"low[{place}]", f"high[{place}]")
        case ast.BoolOp(op=op, values=values):
            word = " and " if isinstance(op, ast.And) else " or "
            return _pair(values, lambda ends: f"({word.join(f'{end} > 0' for end in ends)})")
        case ast.UnaryOp(op=ast.Not(), operand=inside):
            low, high = _enclose(inside)
            return (f"(not {high} > 0)", f"(not {low} > 0)")
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            low, high = _enclose(inside)
            return (f"(-{high})", f"(-{low})")
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(op, *_enclose(left), *_enclose(right))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pair((left, right), lambda ends: f"({' + '.join(ends)})")
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            (a, b), (c, d) = _enclose(left), _enclose(right)
            return (f"({a} - {d})", f"({b} - {c})")
        case ast.Call(func=ast.Name(id="sum"), args=[ast.Tuple(elts=parts)]):
            return _pair(parts, lambda ends: f"sum(({', '.join([*ends, ''])}))")
        case ast.Call(func=ast.Name(id="prod"), args=[ast.Tuple(elts=parts)]):
            product = f"multiply({', '.join('({}, {})'.format(*_enclose(p)) for p in parts)})"
            return (f"{product}[0]", f"{product}[1]")
        case ast.IfExp(test=test, body=one, orelse=other):
            low, high = _enclose(test)
            cases = zip(_enclose(one), _enclose(other), ("-inf", "inf"), strict=True)
            first, second = (
                f"({a} if {low} > 0 else {end} if {high} > 0 else {b})" for a, b, end in cases
            )
            return (first, second)
    return ("-inf", "inf")


def _pair(nodes: Sequence[ast.expr], write: Callable[[Sequence[str]], str]) -> tuple[str, str]:
    """Return code for both ends of what grows with each of its parts."""
    lows, highs = zip(*map(_enclose, nodes), strict=True)
    return (write(lows), write(highs))


def _compare(op: ast.cmpop, a: str, b: str, c: str, d: str) -> tuple[str, str]:
    """Return code that compares a value from a to b with one from c to d."""
    match op:
        case ast.Lt():
            return (f"({b} < {c})", f"({a} < {d})")
        case ast.LtE():
            return (f"({b} <= {c})", f"({a} <= {d})")
        case ast.Gt():
            return (f"({a} > {d})", f"({b} > {c})")
        case ast.GtE():
            return (f"({a} >= {d})", f"({b} >= {c})")
        case ast.Eq():
            return (f"({a} == {b} == {c} == {d})", f"overlap({a}, {b}, {c}, {d})")
        case ast.NotEq():
            return (f"(not overlap({a}, {b}, {c}, {d}))", f"(not {a} == {b} == {c} == {d})")
    return ("False", "True")


def _overlap(a: Any, b: Any, c: Any, d: Any) -> bool:
    """Return whether a value from a to b can be the same as one from c to d."""
    if isinstance(a, str) and isinstance(c, str):
        return a == c
    return isinstance(a, str) or isinstance(c, str) or (a <= d and c <= b)


def _multiply(*intervals: Interval) -> Interval:
    low, high = 1.0, 1.0
    for pair in intervals:
        ends = [x * y if x and y else 0.0 for x in (low, high) for y in pair]  # 0 also if infinite
        low, high = min(ends), max(ends)
    return (low, high)


NAMES: Final[dict[str, Any]] = {
    "__builtins__": {}, "inf": math.inf, "overlap": _overlap, "multiply": _multiply, "sum": sum,
}  # fmt: skip
"""What code may call."""
