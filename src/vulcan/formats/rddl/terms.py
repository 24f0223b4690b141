"""Terms: what a grounded expression has become, as Python code over one list of values.

Every fluent of an instance has a place in a list `v`, and a term is a piece of code that reads it:

    (v[3] and not v[7])                                    a value
    (bernoulli(0.1 * v[4]) if v[0] else {False: 1.0})      a distribution: a random term

Whatever can be known without the list is computed at once, so that the many fluents of an instance
that never change, and whatever they switch off, leave no trace in the code. Only terms are made
into code: numbers, places, and the functions of `NAMES`, never a text from a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from vulcan.formats.rddl import distributions

__all__ = [
    "Term", "apply", "assume", "choose", "compile_term", "conjoin", "constant", "disjoin", "draw",
    "join", "negate", "place",
]  # fmt: skip


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; where whole numbers would have thousands of digits, that of real ones."""
    short = abs(base) < 1 << 64 and abs(exponent) < 1 << 10
    return base**exponent if short else float(base) ** exponent


NAMES: Final[dict[str, Any]] = {
    "__builtins__": {},
    "power": _power,
    **{name: getattr(distributions, name) for name in ("bernoulli", "binomial", "discrete")},
    **{name: getattr(distributions, name) for name in ("bind", "combine")},
    **{name: getattr(math, name) for name in ("prod", "floor", "ceil", "inf", "nan")},
    **{name: getattr(math, name) for name in ("cos", "sin", "tan", "acos", "asin", "atan")},
    **{name: getattr(math, name) for name in ("cosh", "sinh", "tanh", "exp", "log", "sqrt")},
    **{name: getattr(math, name) for name in ("lgamma", "gamma", "hypot")},
    **{kind.__name__: kind for kind in (abs, sum, min, max, int, float, round)},
    "sign": lambda x: (x > 0) - (x < 0),
    "best": lambda pick, values, objects: objects[values.index(pick(values))],
}
"""What code may call."""


class Term(NamedTuple):
    """A grounded expression.

    Attributes
    ----------
    code
        Python code for it: of its value, or of its distribution if it is random.
    kind
        "bool", "int", "real", or the type of the objects that it is one of.
    reads
        The places in the list that it reads.
    random
        Whether it is random.
    value
        What it is, if that is known; None otherwise.
    """

    code: str
    kind: str
    reads: frozenset[int] = frozenset()
    random: bool = False
    value: Any = None


def constant(value: Any, kind: str) -> Term:
    """Return a known value."""
    return Term(repr(value), kind, value=value)


def place(index: int, kind: str) -> Term:
    """Return what stands in a place of the list."""
    return Term(f"v[{index}]", kind, frozenset((index,)))


def apply(template: str, kind: str, *terms: Term) -> Term:
    """Return the value of some code, with a gap `{}` for each term.

    Of random terms, it is the distribution of that value.
    """
    reads = frozenset().union(*(term.reads for term in terms))
    if any(term.random for term in terms):
        return Term(_spread("combine", template, terms), kind, reads, random=True)
    code = template.format(*(term.code for term in terms))
    if reads:
        return Term(code, kind, reads)
    value = _try(code)
    return Term(code, kind) if value is None else constant(value, kind)


def draw(template: str, kind: str, *terms: Term) -> Term:
    """Return a draw from the distribution that some code makes, with a gap `{}` for each term."""
    reads = frozenset().union(*(term.reads for term in terms))
    if any(term.random for term in terms):
        return Term(_spread("bind", template, terms), kind, reads, random=True)
    code = template.format(*(term.code for term in terms))
    if not reads and (known := _try(code)) is not None:
        if len(known) == 1:
            return constant(next(iter(known)), kind)
        code = repr(known)
    return Term(code, kind, reads, random=True)


def join(operator: str, terms: Sequence[Term], kind: str) -> Term:
    """Return terms that are joined by " and ", " or ", or the function "sum" or "prod".

    What is random is joined in pairs: the sum of twenty coins has 21 values, not a million cases.
    """
    listed, pairwise = _JOINED[operator]
    plain = [term for term in terms if not term.random]
    random = [term for term in terms if term.random]
    if len(plain) == 1 and kind == plain[0].kind:
        result = plain[0]
    else:
        result = apply(listed(len(plain)), kind, *plain)
    for term in random:
        neutral = not plain and result.value is not None
        result = term if neutral and term.kind == kind else apply(pairwise, kind, result, term)
    return result


_JOINED: Final[dict[str, tuple[Callable[[int], str], str]]] = {
    " and ": (lambda n: f"({' and '.join(['{}'] * n)})" if n else "True", "({} and {})"),
    " or ": (lambda n: f"({' or '.join(['{}'] * n)})" if n else "False", "({} or {})"),
    "sum": (lambda n: f"sum(({'{}, ' * n}))", "({} + {})"),
    "prod": (lambda n: f"prod(({'{}, ' * n}))", "({} * {})"),
}


def negate(term: Term) -> Term:
    """Return whether a term does not hold."""
    return apply("(not {})", "bool", term)


def conjoin(terms: Iterable[Term]) -> Term:
    """Return whether all terms hold."""
    kept = []
    for term in terms:
        if term.value is None:
            kept.append(term)
        elif not term.value:
            return term
    return join(" and ", kept, "bool") if kept else constant(True, "bool")


def disjoin(terms: Iterable[Term]) -> Term:
    """Return whether any of the terms holds."""
    kept = []
    for term in terms:
        if term.value is None:
            kept.append(term)
        elif term.value:
            return term
    return join(" or ", kept, "bool") if kept else constant(False, "bool")


def choose(chooser: Term, values: Sequence[Any], terms: Sequence[Term], kind: str) -> Term:
    """Return the term that belongs to the value of a chooser, which has one of these values."""
    if chooser.value is not None:
        return terms[values.index(chooser.value)]
    reads = chooser.reads.union(*(term.reads for term in terms))
    if all(term.value is not None for term in terms):
        table = {value: term.value for value, term in zip(values, terms, strict=True)}
        return apply(f"{{{table!r}}}[{{}}]", kind, chooser)
    random = any(term.random for term in terms)
    if random or chooser.random:
        terms = [_certain(term) for term in terms]
    asked = "a" if chooser.random else chooser.code
    tests = [asked if value is True else f"{asked} == {value!r}" for value in values[:-1]]
    cases = [f"{term.code} if {test}" for test, term in zip(tests, terms[:-1], strict=True)]
    code = f"({' else '.join([*cases, terms[-1].code])})"
    if chooser.random:
        code = f"bind(lambda a: {code}, {chooser.code})"
    return Term(code, kind, reads, random or chooser.random)


def assume(term: Term, kind: str) -> Term:
    """Return a term as a value of another kind, which can take it."""
    if term.kind == kind:
        return term
    return apply({"int": "int({})", "real": "float({})"}[kind], kind, term)


def compile_term(term: Term) -> Callable[[Sequence[Any]], Any]:
    """Return the function from a list of values to what the term is there."""
    function: Callable[[Sequence[Any]], Any] = _evaluate(f"lambda v: {term.code}")
    return function


def _certain(term: Term) -> Term:
    """Return a term as a random one."""
    if term.random:
        return term
    return term._replace(code=f"{{{term.code}: 1.0}}", random=True, value=None)


def _spread(function: str, template: str, terms: Sequence[Term]) -> str:
    """Return code that calls a function of distributions with the random ones of some terms."""
    names = [f"a{i}" if term.random else "" for i, term in enumerate(terms)]
    inside = template.format(*(n or term.code for n, term in zip(names, terms, strict=True)))
    random = ", ".join(term.code for term in terms if term.random)
    return f"{function}(lambda {', '.join(filter(None, names))}: {inside}, {random})"


def _try(code: str) -> Any:
    """Return the value of code that reads nothing, or None if it has none."""
    try:
        return _evaluate(code)
    except (ArithmeticError, ValueError, IndexError, KeyError):
        return None  # it may never be asked for; who does is told why


def _evaluate(code: str) -> Any:
    return eval(code, NAMES)  # noqa: S307 - made of numbers, places and NAMES; see the head
