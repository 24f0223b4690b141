"""From the expressions of a file to terms: objects for variables, and constants for non-fluents.

pyRDDLGym has a grounder, which knows neither `Discrete` nor fluents whose values are objects; here
an expression is expanded and evaluated as far as it can be in one go. Meanings are those of
pyRDDLGym's simulator, except that objects stay names, and that nothing is drawn: see `terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.formats.rddl.fluents import name_fluent
from vulcan.formats.rddl.terms import (
    Term,
    apply,
    choose,
    conjoin,
    constant,
    disjoin,
    draw,
    join,
    negate,
    place,
)  # fmt: skip
from vulcan.parameters import suggest

__all__ = ["ALLOWED_DISTRIBUTIONS", "Grounder"]

ALLOWED_DISTRIBUTIONS: Final = (
    "KronDelta, DiracDelta, Bernoulli, Binomial, Discrete, UnnormDiscrete"
)

Scope = Mapping[str, str]
"""The object that each variable stands for."""

RELATIONS: Final = {"==": "==", "~=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
NUMBERS: Final = ("bool", "int", "real")
WIDEST: Final = ""  # of a function: the widest kind of its arguments, at least int

FUNCTIONS: Final = {
    "abs": ("abs({})", WIDEST), "sgn": ("sign({})", "int"), "round": ("round({})", "int"),
    "floor": ("floor({})", "int"), "ceil": ("ceil({})", "int"),
    **{name: (f"{name}({{}})", "real") for name in ("cos", "sin", "tan", "cosh", "sinh", "tanh")},
    **{name: (f"{name}({{}})", "real") for name in ("acos", "asin", "atan", "exp", "sqrt")},
    "gamma": ("gamma({})", "real"),
    "ln": ("log({})", "real"), "lngamma": ("lgamma({})", "real"),
    "div": ("({} // {})", "int"), "mod": ("({} % {})", "int"), "fmod": ("({} % {})", WIDEST),
    "min": ("min({}, {})", WIDEST), "max": ("max({}, {})", WIDEST),
    "pow": ("power({}, {})", WIDEST),
    "log": ("log({}, {})", "real"), "hypot": ("hypot({}, {})", "real"),
}  # fmt: skip
"""Code for each function, and the kind of its value."""


class Grounder:
    """What makes terms of expressions.

    Parameters
    ----------
    rddl
        The problem, as pyRDDLGym's `RDDLLiftedModel`.
    places
        The place in the list of each fluent of each tuple of objects.
    constants
        The value of each non-fluent of each tuple of objects.
    """

    def __init__(
        self,
        rddl: Any,
        places: Mapping[tuple[str, tuple[str, ...]], int],
        constants: Mapping[tuple[str, tuple[str, ...]], Any],
    ) -> None:
        self.rddl, self.places, self.constants = rddl, places, constants
        self._ways: dict[str, Callable[[Any, str, Scope], Term]] = {
            "constant": self._ground_constant,
            "pvar": self._ground_fluent,
            "arithmetic": self._ground_arithmetic,
            "relational": self._ground_relation,
            "boolean": self._ground_logic,
            "aggregation": self._ground_aggregation,
            "func": self._ground_function,
            "control": self._ground_control,
            "randomvar": self._ground_random,
        }
        self._types: dict[int, tuple[str, str]] = {}  # of expressions, which take long to say it

    def ground(self, expression: Any, scope: Scope) -> Term:
        """Return an expression as a term, with objects for its variables."""
        known = self._types.get(id(expression))
        if known is None:
            known = self._types[id(expression)] = expression.etype
        family, name = known
        way = self._ways.get(family)
        if way is None:
            raise OptionError(
                f"{describe(expression)} is a {family}, which has no finite distribution that is "
                "known here"
            )
        return way(expression, name, scope)

    def _ground_constant(self, expression: Any, name: str, scope: Scope) -> Term:
        value = expression.args
        kind = {bool: "bool", int: "int", float: "real"}[type(value)]
        return constant(value, kind)

    def _ground_fluent(self, expression: Any, name: str, scope: Scope) -> Term:
        _, arguments = expression.args
        rddl = self.rddl
        if name[0] == "?":
            bound = _look_up(name, scope)
            return constant(bound, rddl.object_to_type[bound])
        if not arguments and rddl.is_object(name):
            bare = name.removeprefix("@")
            return constant(bare, rddl.object_to_type[bare])
        if name not in rddl.variable_ranges:
            raise OptionError(self._refuse_name(name, bool(arguments)))
        terms = [self._ground_argument(argument, scope) for argument in arguments or ()]
        kind = rddl.variable_ranges[name]
        return self._find_any(name, terms, kind)

    def _refuse_name(self, name: str, called: bool) -> str:
        """Return a message about a name that is none, with those that there are."""
        fluents, kinds = self.rddl.variable_ranges, self.rddl.type_to_objects
        if called:
            return f"there is no fluent {name!r}{suggest(name, fluents)}"
        listed = "; ".join(f"{kind}: {', '.join(objects)}" for kind, objects in kinds.items())
        return (
            f"there is no fluent or object {name!r}"
            f"{suggest(name, [*fluents, *self.rddl.object_to_type])}\n"
            f"objects are {shorten(listed, 1000, placeholder=' …')}"
        )

    def _find_any(self, name: str, terms: Sequence[Term], kind: str) -> Term:
        """Return a fluent of objects that may depend on other fluents."""
        for i, term in enumerate(terms):
            if term.value is None:
                values = self.rddl.type_to_objects[term.kind]
                objects = (constant(value, term.kind) for value in values)
                meant = [[*terms[:i], value, *terms[i + 1 :]] for value in objects]
                found = [self._find_any(name, known, kind) for known in meant]
                return choose(term, values, found, kind)
        return self._find(name, tuple(term.value for term in terms), kind)

    def _ground_argument(self, argument: Any, scope: Scope) -> Term:
        if not isinstance(argument, str):
            return self.ground(argument, scope)
        name = _look_up(argument, scope) if argument[0] == "?" else argument.removeprefix("@")
        return constant(name, self.rddl.object_to_type[name])

    def _find(self, name: str, objects: tuple[str, ...], kind: str) -> Term:
        key = (name, objects)
        if (value := self.constants.get(key)) is not None:
            return constant(value, kind)
        if (index := self.places.get(key)) is not None:
            return place(index, kind)
        raise OptionError(
            f"there is no {name_fluent(*key)} that may be read here; its parameters are "
            f"{name_fluent(name, self.rddl.variable_params.get(name, ()))}"
        )

    def _ground_arithmetic(self, expression: Any, name: str, scope: Scope) -> Term:
        first, *rest = expression.args
        if not rest:
            term = self._ground_number(first, scope)
            return apply(f"({name}{{}})", _widen([term]), term)
        if name == "+":
            return self._add(self._ground_number(part, scope) for part in expression.args)
        if name == "*":
            return self._multiply(self._ground_number(part, scope) for part in expression.args)
        terms = [self._ground_number(part, scope) for part in expression.args]
        return apply(f"({{}} {name} {{}})", "real" if name == "/" else _widen(terms), *terms)

    def _add(self, terms: Iterable[Term]) -> Term:
        listed = list(terms)
        kind = _widen(listed)
        kept = [term for term in listed if term.value is None]
        if len(kept) < len(listed):
            known = sum(term.value for term in listed if term.value is not None)
            if known or not kept:
                kept.append(constant(known, _widen([t for t in listed if t.value is not None])))
        return join("sum", kept, kind)

    def _multiply(self, terms: Iterable[Term]) -> Term:
        listed = []
        for term in terms:
            # 0 times whatever is 0: nothing else is looked at, as in the simulator.
            if term.value is not None and term.value == 0:
                return constant(0, "int")
            listed.append(term)
        kept = [term for term in listed if term.value is None or term.value != 1]
        return join("prod", kept, _widen(listed))

    def _ground_relation(self, expression: Any, name: str, scope: Scope) -> Term:
        terms = [self.ground(part, scope) for part in expression.args]
        objects = [term for term in terms if term.kind not in NUMBERS]
        if objects and (name not in ("==", "~=") or len(objects) == 1):
            raise OptionError(f"{describe(expression)}: objects can be == or ~= other objects only")
        return apply(f"({{}} {RELATIONS[name]} {{}})", "bool", *terms)

    def _ground_logic(self, expression: Any, name: str, scope: Scope) -> Term:
        terms = (self._ground_truth(part, expression, scope) for part in expression.args)
        if name in ("^", "&"):
            return conjoin(terms)
        if name == "|":
            return disjoin(terms)
        if name == "=>":
            return disjoin(negate(term) if i == 0 else term for i, term in enumerate(terms))
        one, *other = terms
        if not other:
            return negate(one)
        return apply("({} == {})" if name == "<=>" else "({} != {})", "bool", one, *other)

    def _ground_aggregation(self, expression: Any, name: str, scope: Scope) -> Term:
        *variables, inside = expression.args
        if name in ("forall", "exists"):
            truths = (
                self._ground_truth(inside, expression, s) for s in self._list(variables, scope)
            )
            return conjoin(truths) if name == "forall" else disjoin(truths)
        terms = (self._ground_number(inside, s) for s in self._list(variables, scope))
        if name == "prod":
            return self._multiply(terms)
        if name == "sum":
            return self._add(terms)
        listed = list(terms)
        if name == "avg":
            return apply(f"({{}} / {len(listed)})", "real", self._add(listed))
        gaps = ", ".join(["{}"] * len(listed))
        if name in ("minimum", "maximum"):
            return apply(f"{name[:3]}(({gaps},))", _widen(listed), *listed)
        ((_, (_, kind)),) = variables
        objects = tuple(self.rddl.type_to_objects[kind])
        # The first of several equals, as in the simulator.
        return apply(f"best({name[3:]}, ({gaps},), {objects!r})", kind, *listed)

    def _list(self, variables: Sequence[Any], scope: Scope) -> Iterator[Scope]:
        """Yield the scopes of an expression under a quantifier."""
        names = [name for _, (name, _) in variables]
        kinds, known = [kind for _, (_, kind) in variables], self.rddl.type_to_objects
        for kind in kinds:
            if kind not in known:
                raise OptionError(
                    f"there is no type {kind!r}{suggest(kind, known)}\nthere are {', '.join(known)}"
                )
        for objects in self.rddl.ground_types(kinds):
            yield {**scope, **dict(zip(names, objects, strict=True))}

    def _ground_function(self, expression: Any, name: str, scope: Scope) -> Term:
        template, kind = FUNCTIONS.get(name, ("", ""))
        if template.count("{}") != len(expression.args):
            known = ", ".join(
                f"{f}[{', '.join('xy'[: t.count('{}')])}]" for f, (t, _) in FUNCTIONS.items()
            )
            raise OptionError(f"{describe(expression)} is no function; there are {known}")
        terms = [self._ground_number(part, scope) for part in expression.args]
        if name in ("div", "mod") and "real" in [term.kind for term in terms]:
            raise OptionError(f"{describe(expression)} takes whole numbers; fmod and / take others")
        return apply(template, kind or _widen(terms), *terms)

    def _ground_control(self, expression: Any, name: str, scope: Scope) -> Term:
        first, *rest = expression.args
        if name == "if":
            condition = self._ground_truth(first, expression, scope)
            if condition.value is not None:
                return self.ground(rest[0] if condition.value else rest[1], scope)
            one, other = (self.ground(part, scope) for part in rest)
            return choose(
                condition, (True, False), (one, other), self._meet(expression, one, other)
            )
        chosen = self.ground(first, scope)
        cases = {case[0].removeprefix("@"): case[1] for word, case in rest if word == "case"}
        default = [case for word, case in rest if word == "default"]
        values = self.rddl.type_to_objects[chosen.kind] if chosen.value is None else [chosen.value]
        terms = [self.ground(cases[v] if v in cases else default[0], scope) for v in values]
        return choose(chosen, values, terms, self._meet(expression, *terms))

    def _ground_random(self, expression: Any, name: str, scope: Scope) -> Term:
        if name in ("KronDelta", "DiracDelta"):
            (inside,) = expression.args
            term = self.ground(inside, scope)
            if name == "KronDelta" and term.kind == "real":
                raise OptionError(
                    f"{describe(expression)} is of a real number; DiracDelta takes one"
                )
            return term
        if name in ("Bernoulli", "Binomial"):
            terms = [self._ground_number(part, scope) for part in expression.args]
            if name == "Bernoulli":
                return draw("bernoulli({})", "bool", *terms)
            return draw("binomial({}, {})", "int", *terms)
        if name in ("Discrete(p)", "UnnormDiscrete(p)"):
            variable, (weight,) = expression.args
            _, (_, kind) = variable
            values = list(self.rddl.type_to_objects[kind])
            weights = [self._ground_number(weight, s) for s in self._list([variable], scope)]
        elif name in ("Discrete", "UnnormDiscrete"):
            (_, kind), *cases = expression.args
            values = [value.removeprefix("@") for _, (value, _) in cases]
            weights = [self._ground_number(weight, scope) for _, (_, weight) in cases]
        else:
            raise OptionError(
                f"{describe(expression)} has infinitely many values; allowed are "
                f"{ALLOWED_DISTRIBUTIONS}"
            )
        gaps = "{}, " * len(weights)
        normal = name.startswith("Discrete")
        return draw(f"discrete({tuple(values)!r}, ({gaps}), {normal})", kind, *weights)

    def _ground_truth(self, expression: Any, whole: Any, scope: Scope) -> Term:
        term = self.ground(expression, scope)
        if term.kind != "bool":
            raise OptionError(f"{describe(whole)} takes truth values, not {term.kind}")
        return term

    def _ground_number(self, expression: Any, scope: Scope) -> Term:
        term = self.ground(expression, scope)
        if term.kind not in NUMBERS:
            raise OptionError(f"{describe(expression)} is an object, where a number is wanted")
        return term

    def _meet(self, expression: Any, *terms: Term) -> str:
        """Return the kind that all branches of an expression can be taken for."""
        kinds = {term.kind for term in terms}
        if len(kinds) == 1:
            return terms[0].kind
        if not kinds <= set(NUMBERS):
            raise OptionError(f"{describe(expression)} is either of {', '.join(sorted(kinds))}")
        return _widen(terms)


def _look_up(variable: str, scope: Scope) -> str:
    """Return the object that a variable stands for."""
    if variable not in scope:
        known = f"; known here are {', '.join(scope)}" if scope else ""
        raise OptionError(
            f"nothing says what {variable} is{known}: "
            f"write exists_{{{variable} : type}} [...] or forall_{{{variable} : type}} [...]"
        )
    return scope[variable]


def describe(expression: Any) -> str:
    """Return an expression as a file would write it, on one line."""
    from pyRDDLGym.core.debug.decompiler import RDDLDecompiler

    text = " ".join(RDDLDecompiler().decompile_expr(expression).split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def _widen(terms: Sequence[Term]) -> str:
    return "real" if any(term.kind == "real" for term in terms) else "int"
