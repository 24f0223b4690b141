"""Expressions of RDDL as Python code, with exact distributions.

pyRDDLGym's grounder supports neither `Discrete`, `switch` and `argmax` nor fluents whose values are
objects, and expands all expressions before it evaluates any. `Grounder` therefore expands
expressions itself, with the semantics of pyRDDLGym's simulator, and evaluates constants at once.

Each grounded fluent, such as ("robot-at", ("x1", "y2")), has an index in a list `v` of values. An
expression becomes a `GroundTerm`, Python code that reads this list:

    (v[3] and not v[7])                                    a value
    (bernoulli(0.1 * v[4]) if v[0] else {False: 1.0})      a distribution: a random term

Each random expression is drawn independently of all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from textwrap import shorten
from typing import Any, Final, NamedTuple

from vulcan.errors import OptionError
from vulcan.numerics import SMALLEST_PROBABILITY, SUM_TOLERANCE
from vulcan.parameters import suggest

__all__ = [
    "Distribution",
    "Fluent",
    "GroundTerm",
    "Grounder",
    "Scope",
    "Values",
    "apply_code",
    "join_terms",
    "list_fluents",
    "list_values",
    "name_fluent",
]

MOST_TRIALS: Final = 10_000  # of a binomial distribution
LOOSE_SUM: Final = 1e-5  # files round probabilities: a sum is 1 within this, as in pyRDDLGym

Fluent = tuple[str, tuple[str, ...]]
Values = tuple[Any, ...]
Distribution = dict[Any, float]
Scope = Mapping[str, str]  # the object that each variable stands for


def name_fluent(name: str, objects: Sequence[str]) -> str:
    """Return the text of a grounded fluent."""
    return f"{name}({','.join(objects)})" if objects else name


def list_fluents(rddl: Any, names: Iterable[str]) -> list[Fluent]:
    """Return the grounded fluents of some names."""
    return [(n, tuple(o)) for n in names for o in rddl.ground_types(rddl.variable_params[n])]


def list_values(rddl: Any, values: Mapping[str, Any]) -> dict[Fluent, Any]:
    """Return the value of each grounded fluent; by default false, 0 or the first object."""
    found = {}
    for name, listed in values.items():
        kind = rddl.variable_ranges[name]
        make: Any = {"bool": bool, "int": int, "real": float}.get(kind, str)
        default = rddl.type_to_objects[kind][0] if make is str else make()
        given = listed if rddl.variable_params[name] else [listed]
        for fluent, value in zip(list_fluents(rddl, [name]), given, strict=True):
            found[fluent] = make(default if value is None else value)
    return found


def _check_probability(name: str, probability: float) -> float:
    if not -SUM_TOLERANCE <= probability <= 1 + SUM_TOLERANCE:
        raise ValueError(f"{name} takes a probability from 0 to 1, not {probability!r}")
    return min(max(float(probability), 0.0), 1.0)


def _bernoulli(probability: float) -> Distribution:
    p = _check_probability("Bernoulli", probability)
    return {value: q for value, q in ((True, p), (False, 1 - p)) if q > 0}


def _binomial(n: int, probability: float) -> Distribution:
    if not 0 <= n <= MOST_TRIALS:
        raise ValueError(f"Binomial takes from 0 to {MOST_TRIALS:,} trials, not {n!r}")
    p = _check_probability("Binomial", probability)
    if p in (0.0, 1.0):
        return {n if p else 0: 1.0}
    return _require_floats({k: math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)})


def _discrete(values: Values, weights: Sequence[float], normal: bool) -> Distribution:
    """Return the distribution over some values; only `normal` weights must sum to 1."""
    total, cases = math.fsum(weights), list(zip(values, weights, strict=True))
    listed = ", ".join(f"{value}: {weight!r}" for value, weight in cases)
    if not all(weight >= 0 for weight in weights) or not 0 < total < math.inf:
        raise ValueError(f"Discrete takes weights of at least 0, not all 0, and not {listed}")
    if normal and abs(total - 1) > LOOSE_SUM:
        raise ValueError(f"Discrete takes probabilities that sum to 1, not to {total!r}: {listed}")
    return _require_floats({value: weight / total for value, weight in cases if weight > 0})


def _bind(function: Callable[..., Distribution], *arguments: Distribution) -> Distribution:
    """Return the distribution of a draw from `function` of independent random arguments."""
    result: Distribution = {}
    for cases in product(*(argument.items() for argument in arguments)):
        probability = math.prod([p for _, p in cases])
        for value, share in function(*[value for value, _ in cases]).items():
            result[value] = result.get(value, 0.0) + probability * share
    return _require_floats(result)


def _require_floats(distribution: Distribution) -> Distribution:
    """Raise an error if a positive probability became 0; the reader refuses other small ones."""
    for value, probability in distribution.items():
        if probability == 0:
            allowed = f"at least {SMALLEST_PROBABILITY:g}"
            raise ValueError(f"the probability of {value!r} is too small: it must be {allowed}")
    return distribution


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; in floats where an integer would have thousands of digits."""
    short = abs(base) < 1 << 64 and abs(exponent) < 1 << 10
    return base**exponent if short else float(base) ** exponent


# The names that code may use, beside numbers, indices and quoted objects.
NAMES: Final[dict[str, Any]] = {
    "__builtins__": {}, "bernoulli": _bernoulli, "binomial": _binomial, "discrete": _discrete,
    "bind": _bind, "power": _power, "sign": lambda x: (x > 0) - (x < 0),
    "best": lambda pick, values, objects: objects[values.index(pick(values))],
    **{f.__name__: f for f in (abs, sum, min, max, round)},
    **{name: getattr(math, name) for name in (
        "prod", "floor", "ceil", "inf", "nan", "cos", "sin", "tan", "acos", "asin", "atan", "cosh",
        "sinh", "tanh", "exp", "log", "sqrt", "lgamma", "gamma", "hypot")},
}  # fmt: skip


class GroundTerm(NamedTuple):
    """A grounded expression."""

    code: str  # of its value, or of its distribution if it is random
    reads: frozenset[int] = frozenset()  # indices of values
    random: bool = False
    value: Any = None  # if it is constant

    def compile(self) -> Callable[[Sequence[Any]], Any]:
        """Return the function from a list of values to the value or distribution."""
        return eval(f"lambda v: {self.code}", NAMES)  # type: ignore[no-any-return]  # noqa: S307


def _constant(value: Any) -> GroundTerm:
    return GroundTerm(repr(value), value=value)


def apply_code(template: str, *terms: GroundTerm, draws: bool = False) -> GroundTerm:
    """Return code with a gap `{}` for each term, filled; with `draws` it is a distribution."""
    reads = frozenset[int]().union(*(term.reads for term in terms))
    if any(term.random for term in terms):
        names = [f"a{i}" if term.random else "" for i, term in enumerate(terms)]
        code = template.format(*(n or t.code for n, t in zip(names, terms, strict=True)))
        arguments = ", ".join(term.code for term in terms if term.random)
        code = code if draws else f"{{{code}: 1.0}}"
        function = f"lambda {', '.join(filter(None, names))}: {code}"
        return GroundTerm(f"bind({function}, {arguments})", reads, random=True)
    code = template.format(*(term.code for term in terms))
    if reads:
        return GroundTerm(code, reads, draws)
    try:
        value = eval(code, NAMES)  # noqa: S307
    except (ArithmeticError, ValueError, IndexError, KeyError):
        return GroundTerm(code, reads, draws)  # an error only if some state evaluates it
    if draws and len(value) > 1:
        return GroundTerm(repr(value), reads, random=True)
    return _constant(next(iter(value)) if draws else value)


# Code that joins two terms, the absorbing value, and the neutral value.
JOINS: Final[dict[str, tuple[str, Any, Any]]] = {
    "and": ("({} and {})", False, True), "or": ("({} or {})", True, False),
    "sum": ("({} + {})", None, 0), "prod": ("({} * {})", 0, 1),
}  # fmt: skip


def join_terms(operator: str, terms: Iterable[GroundTerm]) -> GroundTerm:
    """Return terms joined by "and", "or", "sum" or "prod", up to the first absorbing value.

    Random terms are joined in pairs: the sum of twenty coins has 21 values, not a million cases.
    """
    pair, absorbing, neutral = JOINS[operator]
    plain, random, total = [], [], 0
    for term in terms:
        if term.value is not None and term.value == absorbing:
            return _constant(absorbing)
        if term.random:
            random.append(term)
        elif term.value is None or (operator == "prod" and term.value != 1):
            plain.append(term)
        elif operator == "sum":
            total += term.value
    if total:
        plain.append(_constant(total))
    gaps = ["{}"] * len(plain)
    every = f"{operator}(({', '.join(gaps)}))" if pair[4] in "+*" else f"({pair[3:-3].join(gaps)})"
    several = [apply_code(every, *plain)] if len(plain) > 1 else plain
    result, *others = [*several, *random] or [_constant(neutral)]
    for term in others:
        result = apply_code(pair, result, term)
    return result


def _choose(chooser: GroundTerm, cases: Mapping[Any, GroundTerm]) -> GroundTerm:
    """Return the case for the value of `chooser`; the last one for all other values."""
    if chooser.value is not None:
        return cases.get(chooser.value, [*cases.values()][-1])
    random = chooser.random or any(term.random for term in cases.values())
    codes = [t.code if t.random or not random else f"{{{t.code}: 1.0}}" for t in cases.values()]
    chosen = "a" if chooser.random else chooser.code
    tests = [chosen if value is True else f"{chosen} == {value!r}" for value in cases][:-1]
    parts = [f"{code} if {test} else " for code, test in zip(codes, tests, strict=False)]
    code = f"({''.join(parts)}{codes[-1]})"
    if chooser.random:
        code = f"bind(lambda a: {code}, {chooser.code})"
    reads = chooser.reads.union(*(term.reads for term in cases.values()))
    return GroundTerm(code, reads, random)


# Code of operators and functions, by name and number of arguments.
OPERATORS: Final = {
    ("-", 1): "(-{})", ("-", 2): "({} - {})", ("/", 2): "({} / {})", ("~", 1): "(not {})",
    ("<=>", 2): "({} == {})", ("~=", 2): "({} != {})",
    **{(sign, 2): f"({{}} {sign} {{}})" for sign in ("==", "<", "<=", ">", ">=")},
}  # fmt: skip
FUNCTIONS: Final = {
    **{(name, 1): f"{name}({{}})" for name in (
        "abs", "round", "floor", "ceil", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos",
        "asin", "atan", "exp", "sqrt", "gamma")},
    ("sgn", 1): "sign({})", ("ln", 1): "log({})", ("lngamma", 1): "lgamma({})",
    ("div", 2): "({} // {})", ("mod", 2): "({} % {})", ("fmod", 2): "({} % {})",
    ("min", 2): "min({}, {})", ("max", 2): "max({}, {})", ("pow", 2): "power({}, {})",
    ("log", 2): "log({}, {})", ("hypot", 2): "hypot({}, {})",
}  # fmt: skip
JOINING: Final = {"^": "and", "&": "and", "|": "or", "+": "sum", "*": "prod",
                  "forall": "and", "exists": "or", "sum": "sum", "prod": "prod"}  # fmt: skip


class Grounder:
    """Turns expressions into terms, given the index of each fluent in the list of values."""

    def __init__(self, rddl: Any, places: Mapping[Fluent, int]) -> None:
        self.rddl, self.places = rddl, places
        self.constants, self.objects = list_values(rddl, rddl.non_fluents), rddl.type_to_objects
        # Types are slow to compute. The expression is kept too: a freed one's id is used again.
        self._types: dict[int, tuple[Any, tuple[str, str]]] = {}

    def ground(self, expression: Any, scope: Scope) -> GroundTerm:
        """Return an expression as a term, with objects for its variables."""
        if id(expression) not in self._types:
            self._types[id(expression)] = expression, expression.etype
        _, (family, name) = self._types[id(expression)]
        arguments = expression.args
        match family:
            case "constant":
                return _constant(arguments)
            case "pvar":
                return self._ground_fluent(name, arguments[1] or (), scope)
            case "control":
                return self._ground_control(name, arguments, scope)
            case "randomvar":
                return self._ground_random(expression, name, scope)
            case "aggregation":
                *variables, inside = arguments
                terms = (self.ground(inside, s) for s in self._list_scopes(variables, scope))
                return self._aggregate(name, variables, terms)
            case "arithmetic" | "relational" | "boolean" | "func":
                terms = (self.ground(part, scope) for part in arguments)
                if name in JOINING and len(arguments) > 1 and family != "func":
                    return join_terms(JOINING[name], terms)
                if name == "=>":
                    pairs = enumerate(terms)
                    return join_terms(
                        "or", (t if i else apply_code("(not {})", t) for i, t in pairs)
                    )
                templates = FUNCTIONS if family == "func" else OPERATORS
                if (name, len(arguments)) in templates:
                    return apply_code(templates[name, len(arguments)], *terms)
        listed = ", ".join(f"{f}[{', '.join('xy'[:n])}]" for f, n in FUNCTIONS)
        raise OptionError(f"{_describe(expression)} is not supported; there are {listed}")

    def _list_scopes(self, variables: Sequence[Any], scope: Scope) -> Iterator[Scope]:
        names, kinds = zip(*(variable for _, variable in variables), strict=True)
        for kind in kinds:
            if kind not in self.objects:
                there = f"{suggest(kind, self.objects)}\nthere are {', '.join(self.objects)}"
                raise OptionError(f"there is no type {kind!r}{there}")
        for objects in self.rddl.ground_types(kinds):
            yield {**scope, **dict(zip(names, objects, strict=True))}

    def _aggregate(
        self, name: str, variables: Sequence[Any], terms: Iterable[GroundTerm]
    ) -> GroundTerm:
        if name in JOINING:
            return join_terms(JOINING[name], terms)
        listed = list(terms)
        if name == "avg":
            return apply_code(f"({{}} / {len(listed)})", join_terms("sum", listed))
        gaps = "{}, " * len(listed)
        if name in ("minimum", "maximum"):
            return apply_code(f"{name[:3]}(({gaps}))", *listed)
        ((_, (_, kind)),) = variables  # argmin, argmax: the first of equals, as in the simulator
        return apply_code(f"best({name[3:]}, ({gaps}), {tuple(self.objects[kind])!r})", *listed)

    def _ground_fluent(self, name: str, arguments: Sequence[Any], scope: Scope) -> GroundTerm:
        ranges, objects = self.rddl.variable_ranges, self.rddl.object_to_type
        if name[0] == "?" or (not arguments and self.rddl.is_object(name)):
            return self._ground_object(name, scope)
        if name not in ranges:
            kinds = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in self.objects.items())
            raise OptionError(
                f"there is no fluent or object {name!r}{suggest(name, [*ranges, *objects])}\n"
                f"objects are {shorten(kinds, 1000, placeholder=' …')}"
            )
        ground = (self.ground, self._ground_object)
        return self._find(name, [ground[isinstance(part, str)](part, scope) for part in arguments])

    def _ground_object(self, name: str, scope: Scope) -> GroundTerm:
        if name[0] == "?" and name not in scope:
            known = f"; known here are {', '.join(scope)}" if scope else ""
            raise OptionError(
                f"variable {name} is not bound{known}: "
                f"write exists_{{{name} : type}} [...] or forall_{{{name} : type}} [...]"
            )
        return _constant(scope[name] if name[0] == "?" else name.removeprefix("@"))

    def _find(self, name: str, terms: Sequence[GroundTerm]) -> GroundTerm:
        """Return a fluent whose objects may depend on other fluents."""
        parameters = self.rddl.variable_params.get(name, ())
        for i, (term, kind) in enumerate(zip(terms, parameters, strict=False)):
            if term.value is None:
                known = {o: [*terms[:i], _constant(o), *terms[i + 1 :]] for o in self.objects[kind]}
                return _choose(term, {o: self._find(name, these) for o, these in known.items()})
        key = (name, tuple(term.value for term in terms))
        if (value := self.constants.get(key)) is not None:
            return _constant(value)
        if (index := self.places.get(key)) is not None:
            return GroundTerm(f"v[{index}]", frozenset((index,)))
        raise OptionError(
            f"{name_fluent(*key)} can't be read here; there is {name_fluent(name, parameters)}"
        )

    def _ground_control(self, name: str, arguments: Sequence[Any], scope: Scope) -> GroundTerm:
        chooser, (_, *rest) = self.ground(arguments[0], scope), arguments
        if name == "if":
            parts: dict[Any, Any] = dict(zip((True, False), rest, strict=True))
        else:
            parts = {case[0].removeprefix("@"): case[1] for word, case in rest if word == "case"}
            for default in (case for word, case in rest if word == "default"):
                parts[None] = default
        if chooser.value is not None:  # the other parts may be invalid here
            return self.ground(parts.get(chooser.value, parts.get(None)), scope)
        return _choose(chooser, {value: self.ground(part, scope) for value, part in parts.items()})

    def _ground_random(self, expression: Any, name: str, scope: Scope) -> GroundTerm:
        arguments = expression.args
        if name in ("KronDelta", "DiracDelta"):
            return self.ground(arguments[0], scope)
        if name in ("Bernoulli", "Binomial"):
            template = f"{name.lower()}({', '.join(['{}'] * len(arguments))})"
            return apply_code(
                template, *(self.ground(part, scope) for part in arguments), draws=True
            )
        if name in ("Discrete(p)", "UnnormDiscrete(p)"):
            variable, (weight,) = arguments
            values = tuple(self.objects[variable[1][1]])
            weights = [self.ground(weight, s) for s in self._list_scopes([variable], scope)]
        elif name in ("Discrete", "UnnormDiscrete"):
            values = tuple(value.removeprefix("@") for _, (value, _) in arguments[1:])
            weights = [self.ground(weight, scope) for _, (_, weight) in arguments[1:]]
        else:
            raise OptionError(
                f"{_describe(expression)} has infinitely many values; allowed are "
                "KronDelta, DiracDelta, Bernoulli, Binomial, Discrete, UnnormDiscrete"
            )
        template = f"discrete({values!r}, ({'{}, ' * len(weights)}), {name.startswith('Discrete')})"
        return apply_code(template, *weights, draws=True)

    def split(self, expression: Any, scope: Scope) -> Iterator[GroundTerm]:
        """Yield the conditions that all hold if an expression holds."""
        if expression.etype in (("boolean", "^"), ("boolean", "&")):
            for part in expression.args:
                yield from self.split(part, scope)
        elif expression.etype == ("aggregation", "forall"):
            for inner in self._list_scopes(expression.args[:-1], scope):
                yield from self.split(expression.args[-1], inner)
        else:
            yield self.ground(expression, scope)


def _describe(expression: Any) -> str:
    """Return an expression as files write it, on one line."""
    from pyRDDLGym.core.debug.decompiler import RDDLDecompiler

    return shorten(RDDLDecompiler().decompile_expr(expression), 200, placeholder=" …")
