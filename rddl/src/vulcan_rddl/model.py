"""RDDL, the language of the planning competitions, as models with exact outcomes.

pyRDDLGym parses and checks the files and orders the fluents of a step; `grounding` turns
expressions into code. The list `v` of values that this code reads has first the state fluents, then
action fluents, fluents of the next state, and intermediate fluents.

Fluents that other fluents or the reward read split a step into worlds, one for each combination of
their values. The other fluents are independent in each world, and their distributions are
multiplied out. Nothing is sampled.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from vulcan.errors import ModelError, OptionError
from vulcan.formats.registry import Maker
from vulcan.model.belief import BeliefModel, Transition
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.rules import Rule, Violation
from vulcan.parameters import suggest
from vulcan.runtime.files import read_text
from vulcan_rddl.grounding import (
    Distribution,
    Fluent,
    Grounder,
    GroundTerm,
    Scope,
    Values,
    apply_code,
    join_terms,
    list_fluents,
    list_values,
    name_fluent,
)

__all__ = ["FORMS", "RDDLModel", "find_maker", "from_rddl"]

FORMS: Final = {
    "path/to/domain.rddl": "an RDDL problem, with --set instance=path/to/instance.rddl",
    "rddl:DOMAIN/INSTANCE": "one of rddlrepository, such as rddl:Navigation_MDP_ippc2011/1",
}
MOST_OUTCOMES: Final = 100_000  # of an action
FEW_ACTIONS: Final = 2_000  # up to this many combinations of actions are listed once
MOST_ACTIONS: Final = 10_000  # of a state
MOST_STEPS: Final = 100_000  # of the search for the combinations that a state allows
NUMBERS: Final = ("bool", "int", "real")  # types of fluents that can be costs
ENDED: Final = "terminated"  # observed where a termination condition holds
COLOUR: Final = re.compile(r"\x1b\[\d+m")


class RDDLFiles(NamedTuple):
    """Paths of domain and instance; without the latter, the former has both."""

    domain: str
    instance: str | None

    def read(self) -> list[tuple[str, int, str]]:
        """Return file, line number and text of every line."""
        return [
            (path, number, line)
            for path in self
            if path is not None
            for number, line in enumerate(read_text(path, errors="replace").splitlines(), 1)
        ]

    def locate(self, name: str) -> str:
        """Return the file and line that define a fluent."""
        start = re.compile(rf"\s*{re.escape(name)}\s*(\([^)]*\))?\s*=[^=>]")
        found = (f"{path}, line {n}" for path, n, line in self.read() if start.match(line))
        return next(found, self.domain)

    def load(self) -> tuple[Any, Any]:
        """Return pyRDDLGym's lifted model and its simulator, which checks names and types."""
        from pyRDDLGym.core.compiler.model import RDDLLiftedModel
        from pyRDDLGym.core.simulator import RDDLSimulator

        tree = _parse(self.read(), f"{self.domain} and its instance")
        with _name_place(self.instance or self.domain):
            rddl = RDDLLiftedModel(tree)
        with _name_place(self.domain):
            return rddl, RDDLSimulator(rddl)


@cache
def _build_parser() -> Any:
    """Return pyRDDLGym's parser, whose tables take a second to build."""
    from ply.yacc import NullLogger
    from pyRDDLGym.core.parser.parser import RDDLParser

    parser = RDDLParser(lexer=None, verbose=False)
    parser.build(debug=False, write_tables=False, errorlog=NullLogger())
    return parser


def _parse(lines: Sequence[tuple[str, int, str]], files: str) -> Any:
    """Return the syntax tree; errors name the line of the file, not that of the joined text."""
    from pyRDDLGym.core.debug.exception import RDDLParseError

    parser = _build_parser()
    parser.lexer.build()  # it counts lines from 1 again
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore")
            warnings.filterwarnings("error", message=".*illegal character")
            return parser.parse("\n".join(line for _, _, line in lines) + "\n")
    except (RDDLParseError, UserWarning) as error:
        text = COLOUR.sub("", str(error))
        found = re.search(r"[ao][tn] line (\d+)", text)
        path, number, line = lines[min(int(found[1]), len(lines)) - 1] if found else (files, 0, "")
        reason = text.rpartition("...\n")[2].strip()
        raise OptionError(f"{path}, line {number}: {reason}\n  {line.strip()}") from None
    except (KeyError, AttributeError) as error:  # the text ends early
        missing = f"there is no {error.args[0]}" if isinstance(error, KeyError) else "it ends early"
        raise OptionError(
            f"{files} must have a domain, non-fluents and an instance: {missing}\n"
            "an instance in another file is given by --set instance=path/to/instance.rddl"
        ) from None


def _parse_condition(text: str, place: str) -> Any:
    frame = (
        "domain d { pvariables { p : { state-fluent, bool, default = false }; }; cpfs { p' = p; }; "
        f"reward = 0; state-invariants {{\n{text}\n; }}; }} non-fluents n {{ domain = d; }} "
        "instance i { domain = d; non-fluents = n; horizon = 1; discount = 1.0; }"
    )
    tree = _parse([(place, 1, line) for line in frame.splitlines()], place)
    if len(tree.domain.invariants) != 1:
        raise OptionError(f"{place} is not one condition")
    return tree.domain.invariants[0]


@contextmanager
def _name_place(place: str) -> Iterator[None]:
    """Add the file to errors of pyRDDLGym."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        raise OptionError(f"{place}: {COLOUR.sub('', str(error)).strip()}") from None


def _enclose(value: Any) -> tuple[Any, Any]:
    return (value.low, value.high) if isinstance(value, Interval) else (value, value)


def _operator(ends: Callable[[Any, Any, Any, Any], tuple[Any, Any]]) -> Any:
    """Return an operator on intervals from a to b and from c to d."""
    return lambda self, other: Interval(*ends(self.low, self.high, *_enclose(other)))


class Interval:  # noqa: PLW1641 - never hashed
    """Bounds of a value that is not chosen yet, with the operators of conditions."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    def __bool__(self) -> bool:
        if self.low != self.high:
            raise ValueError("the value is not known yet")
        return bool(self.low)

    __add__ = __radd__ = _operator(lambda a, b, c, d: (a + c, b + d))
    __sub__ = _operator(lambda a, b, c, d: (a - d, b - c))
    __rsub__ = _operator(lambda a, b, c, d: (c - b, d - a))
    __mul__ = __rmul__ = _operator(
        lambda a, b, c, d: (min(a * c, a * d, b * c, b * d), max(a * c, a * d, b * c, b * d))
    )
    __and__ = __rand__ = _operator(lambda a, b, c, d: (a and c, b and d))
    __or__ = __ror__ = _operator(lambda a, b, c, d: (a or c, b or d))
    __rxor__ = _operator(lambda a, b, c, d: (not b, not a))  # True ^ x stands for not x
    __lt__ = _operator(lambda a, b, c, d: (b < c, a < d))
    __le__ = _operator(lambda a, b, c, d: (b <= c, a <= d))
    __gt__ = _operator(lambda a, b, c, d: (a > d, b > c))
    __ge__ = _operator(lambda a, b, c, d: (a >= d, b >= c))
    __eq__ = _operator(lambda a, b, c, d: (a == b == c == d, a <= d and c <= b))
    __ne__ = _operator(lambda a, b, c, d: (not (a <= d and c <= b), not (a == b == c == d)))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)


def _compile_possible(term: GroundTerm) -> Callable[[Sequence[Any]], Any]:
    """Return a function that tells whether a condition can hold, given values and intervals."""
    code = term.code.replace(" and ", " & ").replace(" or ", " | ").replace("(not ", "(True ^ ")
    function = GroundTerm(code).compile()

    def can_hold(v: Sequence[Any]) -> Any:
        try:
            return _enclose(function(v))[1]
        except (ArithmeticError, ValueError, TypeError):
            return True  # not supported by intervals

    return can_hold


class Actions:
    """The combinations of action values that a state allows.

    At most `most` fluents differ from their default, which is the first of their choices. Few
    combinations are listed once, and filtered in each state. Many are searched in each state:
    fluents get values one after the other, and intervals prune conditions that can't hold any more.
    """

    def __init__(
        self, names: Sequence[str], choices: Sequence[Values], most: int,
        conditions: Sequence[GroundTerm], begin: int,
    ) -> None:  # fmt: skip
        self._names, self._choices, self._most = names, choices, min(most, len(names))
        self._unknown = [Interval(min(choice), max(choice)) for choice in choices]
        self._allows = join_terms("and", conditions).compile()
        self._labels: dict[Values, str] = {}
        self._values: dict[str, Values] = {}
        self._parts: list[list[Callable[[Sequence[Any]], Any]]] = [[] for _ in choices]
        ways = [1] + [0] * self._most  # numbers of combinations by the number of non-default values
        for choice in choices:
            ways = [1, *(ways[k] + (len(choice) - 1) * ways[k - 1] for k in range(1, len(ways)))]
        self._listed = self._search((), lambda v: True) if sum(ways) <= FEW_ACTIONS else None
        for term in conditions:
            can_hold = _compile_possible(term)
            for index in term.reads:
                if index >= begin:
                    self._parts[index - begin].append(can_hold)

    def list_allowed(self, state: Values) -> list[str]:
        """Return the labels of the combinations that a state allows: few actions first."""
        found = self._listed
        if found is None:
            return [self._label(values) for values in self._search(state, self._allows)]
        return [self._label(values) for values in found if self._allows((*state, *values))]

    def find(self, state: Values, label: str) -> Values:
        """Return the values of the action fluents for a label."""
        if label not in self._values:
            self.list_allowed(state)  # it was listed in another process
        return self._values[label]

    def _search(self, state: Values, allows: Callable[[Values], Any]) -> list[Values]:
        v, values = [*state, *self._unknown], [choice[0] for choice in self._choices]
        found: list[Values] = []
        free: list[tuple[int, Any, list[Any]]] = []  # index, default, other values
        steps = 0

        def fix(i: int, value: Any) -> bool:
            """Set a fluent; return whether its conditions can still hold."""
            values[i] = v[len(state) + i] = value
            return all(can_hold(v) for can_hold in self._parts[i])

        def change(first: int, left: int) -> None:
            """List the combinations that change at most `left` free fluents from `first` on."""
            nonlocal steps
            if allows((*state, *values)):
                found.append(tuple(values))
            for k, (i, default, others) in enumerate(free[first:] if left else (), first + 1):
                for value in others:
                    if fix(i, value):
                        change(k, left - 1)
                steps += 1 + len(others)
                if steps > MOST_STEPS or len(found) > MOST_ACTIONS:
                    message = (
                        f"combinations of actions are too many to list: more than "
                        f"{MOST_ACTIONS:,}, or a search of more than {MOST_STEPS:,} steps; "
                        "max-nondef-actions and action-preconditions limit them"
                    )
                    raise ModelError(Violation(Rule.ACTIONS_END, message, state))
                if not fix(i, default):
                    break
            for i, default, _ in free[first:]:
                values[i], v[len(state) + i] = default, self._unknown[i]

        for i, choice in enumerate(self._choices):
            allowed = [value for value in choice if fix(i, value)]
            if len(allowed) == 1:
                fix(i, allowed[0])
            else:
                values[i], v[len(state) + i] = choice[0], self._unknown[i]
                free.append((i, choice[0], [value for value in allowed if value != choice[0]]))
        left = self._most - sum(a != b[0] for a, b in zip(values, self._choices, strict=True))
        if left >= 0:
            change(0, left)
        return sorted(found, key=self._rank)

    def _rank(self, values: Values) -> tuple[Any, ...]:
        """Return a sorting key: fewer actions first, then earlier ones."""
        numbers = [c.index(value) for c, value in zip(self._choices, values, strict=True)]
        changed = [place for place, number in enumerate(numbers) if number]
        return (len(changed), changed, numbers)

    def _label(self, values: Values) -> str:
        label = self._labels.get(values)
        if label is None:
            cases = zip(self._names, self._choices, values, strict=True)
            changed = [(name, value) for name, choice, value in cases if value != choice[0]]
            label = ", ".join(n if x is True else f"{n}={x}" for n, x in changed) or "noop"
            self._labels[values], self._values[label] = label, values
        return label


class RDDLState(tuple[Any, ...]):
    """The values of all state fluents; its text names those that hold."""

    __slots__ = ()
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        held = [(n, value) for n, value in zip(self.names, self, strict=True) if value is not False]
        return ", ".join(n if x is True else f"{n}={x}" for n, x in held) or "nothing holds"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self.names, tuple(self)))


@cache
def _make_state_class(names: tuple[str, ...]) -> type[RDDLState]:
    return type("RDDLState", (RDDLState,), {"__slots__": (), "names": names})


def _restore(names: tuple[str, ...], values: Values) -> RDDLState:
    return _make_state_class(names)(values)


WIDER: Final[dict[type, tuple[type, ...]]] = {int: (bool, int), float: (bool, int, float)}


class FluentUpdate(NamedTuple):
    """The update of a fluent, or of the reward."""

    name: str
    place: int  # index of its value in the list
    kind: type
    random: bool
    function: Callable[[Sequence[Any]], Any]

    def distribute(self, values: Sequence[Any]) -> Distribution:
        """Return the distribution of its value."""
        try:
            value = self.function(values)
            kind = self.kind
            if not self.random:
                return {value if type(value) is kind else self._cast(value): 1.0}
            for x in value:
                if type(x) is not kind:
                    return {self._cast(x): p for x, p in value.items()}
            found: Distribution = value
            return found
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"{self.name} has no value: {error}") from None

    def _cast(self, value: Any) -> Any:
        if type(value) in WIDER.get(self.kind, (self.kind,)):
            return self.kind(value)
        raise ValueError(f"it must be {self.kind.__name__}, not {value!r}")


class RDDLModel:
    """An RDDL problem.

    States are tuples of fluent values, in the order of `fluents`; actions are strings, such as
    "noop", "move-north" or "reboot(c1), reboot(c4)". A next state that violates a state invariant
    is a failure.

    Parameters
    ----------
    source
        The files.
    failure, horizon, discount
        As for `from_rddl`.

    Attributes
    ----------
    name
        The name of the instance.
    fluents
        The names of the state fluents.
    fingerprint
        Identifies the files and the failure.
    """

    def __init__(
        self,
        source: RDDLFiles,
        failure: str | None = None,
        horizon: int | None = None,
        discount: float | None = None,
        costs: Sequence[str] = (),
        events: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.source, self.failure = source, failure
        self.costs, self.events = tuple(costs), dict(events)
        rddl, simulator = source.load()
        self.horizon = rddl.horizon if horizon is None else horizon
        self.discount = rddl.discount if discount is None else discount
        self.name = rddl.instance_name
        text = "\n".join(line for _, _, line in source.read())
        self.fingerprint = f"RDDL {hashlib.sha256(text.encode()).hexdigest()[:16]} {failure}"
        if costs or events:
            self.fingerprint += f" {self.costs} {self.events}"
        states, acted = (list_fluents(rddl, part) for part in (rddl.next_state, rddl.action_ranges))
        following = [(rddl.next_state[name], objects) for name, objects in states]
        between = list_fluents(rddl, [*rddl.derived_fluents, *rddl.interm_fluents])
        observed = list_fluents(rddl, rddl.observ_fluents)
        ordered = [*states, *acted, *following, *between, *observed]
        places = {fluent: i for i, fluent in enumerate(ordered)}
        self.observed = tuple(name_fluent(*fluent) for fluent in observed)
        self._begin = len(states) + len(acted)
        self._acted = slice(len(states), self._begin)
        self._after = slice(self._begin, self._begin + len(states))
        self._blank = [None] * (len(places) - self._begin)
        first = list_values(rddl, rddl.state_fluents)
        self.fluents = tuple(name_fluent(*fluent) for fluent in states)
        self._first = _restore(self.fluents, tuple(first[fluent] for fluent in states))
        grounder = Grounder(rddl, places)
        self._make_steps(grounder, simulator)
        safe = self._ground_all(grounder, "state-invariants", rddl.invariants)
        if failure is not None:
            safe.append(self._ground_failure(grounder, failure))
        self._spared = {
            name: self._ground_failure(grounder, text, f"event {name}").compile()
            for name, text in self.events.items()
        }
        self._spent = [(name, _find_cost(source, rddl, name, states)) for name in self.costs]
        self._is_safe = join_terms("and", safe).compile()
        ends = [self._ground_all(grounder, "termination", [part]) for part in rddl.terminations]
        self._ends = join_terms("or", (join_terms("and", terms) for terms in ends)).compile()
        wanted = (*rddl.preconditions, *rddl.ast.domain.constraints)
        allowed = self._ground_all(grounder, "action-preconditions", wanted)
        self._actions = Actions(
            [name_fluent(*fluent) for fluent in acted],
            _list_choices(source, rddl, simulator, acted),
            rddl.max_allowed_actions,
            allowed,
            len(states),
        )
        _check_types(source.domain, simulator)
        if not self._is_safe(self._first):
            file = source.instance or source.domain
            raise OptionError(f"{file}: the initial state is a failure already: {self._first}")

    def __repr__(self) -> str:
        failure = f", failure={self.failure!r}" if self.failure else ""
        return f"RDDLModel({self.name!r}{failure}, horizon={self.horizon})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pass the files and options to another process, which reads the files again."""
        limited = (self.costs, self.events)
        return (RDDLModel, (self.source, self.failure, self.horizon, self.discount, *limited))

    def initial_state(self) -> RDDLState:
        """Return the initial state of the instance."""
        return self._first

    def actions(self, state: RDDLState) -> list[str]:
        """Return the allowed combinations of actions; none where the problem ends."""
        return [] if self._ends(state) else self._actions.list_allowed(state)

    def outcomes(self, state: RDDLState, action: str) -> list[Outcome]:
        """Return the next states of an action, with their exact probabilities."""
        found: dict[tuple[Any, ...], float] = {}
        try:
            for values, chance in self._list_worlds(state, action):
                rewards = self._reward.distribute(values)
                for after, probability in self._multiply_out(values, chance):
                    safe = after if self._is_safe(after) else None
                    charged = self._charge(after)
                    for reward, share in rewards.items():
                        key = (safe, reward, *charged)
                        found[key] = found.get(key, 0.0) + probability * share
                _check_count(len(found))
        except (ArithmeticError, ValueError) as error:
            raise ModelError(Violation(Rule.ANSWERS, str(error), state, action)) from None
        outcomes = []
        for (target, reward, costs, event), total in found.items():
            p = min(total, 1.0)  # rounding may have brought it above 1
            reached = FAILURE if target is None else target
            outcomes.append(Outcome(p, reward, reached, costs=costs, event=event))
        return outcomes

    def observe(self, after: RDDLState, action: str) -> dict[RDDLState, float]:
        """Return the probabilities of the values of observation fluents after a step."""
        v: list[Any] = [None] * len(after)
        v += [*self._actions.find(self._first, action), *after]
        v += [None] * (len(self._blank) - len(after))
        found = [step.distribute(v) for step in self._sights]
        _check_count(math.prod(map(len, found)))
        make = _make_state_class(self.observed)
        return {
            make(value for value, _ in case): math.prod(chance for _, chance in case)
            for case in product(*(one.items() for one in found))
        }

    def _charge(self, after: RDDLState) -> tuple[tuple[tuple[str, float], ...], str | None]:
        """Return the costs and the event of a step into a state."""
        events = [name for name, spared in self._spared.items() if not spared(after)]
        if len(events) > 1:
            raise ValueError(f"an outcome has one event, not {' and '.join(events)}")
        costs = ((name, float(sum(after[k] for k in places))) for name, places in self._spent)
        return tuple(costs), events[0] if events else None

    def _list_worlds(self, state: RDDLState, action: str) -> list[tuple[list[Any], float]]:
        """Return all worlds of a step, with their probabilities."""
        worlds = [([*state, *self._actions.find(state, action), *self._blank], 1.0)]
        for step in self._shared:
            split = []
            for values, chance in worlds:
                distribution = step.distribute(values)
                for value, share in distribution.items():
                    world = values if len(distribution) == 1 else values.copy()
                    world[step.place] = value
                    split.append((world, chance * share))
            worlds = split
            _check_count(len(worlds))
        return worlds

    def _multiply_out(self, values: list[Any], chance: float) -> Iterator[tuple[RDDLState, float]]:
        """Yield the next states of a world."""
        indices, distributions, make = [], [], type(self._first)
        for step in self._single:
            distribution = step.distribute(values)
            if len(distribution) == 1:
                (values[step.place],) = distribution
            else:
                indices.append(step.place)
                distributions.append(distribution.items())
        _check_count(math.prod(map(len, distributions)))
        for cases in product(*distributions):
            probability = chance
            for index, (value, share) in zip(indices, cases, strict=True):
                values[index] = value
                probability *= share
            yield make(values[self._after]), probability

    def _make_steps(self, grounder: Grounder, simulator: Any) -> None:
        """Make the updates of a step: those that others read first, in order."""
        rddl, steps, read = grounder.rddl, [], set[int]()
        seen = range(len(grounder.places) - len(self.observed), len(grounder.places))
        kinds = {"bool": bool, "int": int, "real": float}

        def make_step(name: str, place: int, kind: type, term: GroundTerm) -> FluentUpdate:
            if place not in seen:
                read.update(term.reads)
            elif outside := set(term.reads) - set(range(self._acted.start, self._after.stop)):
                found = next(name_fluent(*f) for f, k in grounder.places.items() if k in outside)
                raise OptionError(
                    f"{self.source.domain}: the observation {name} reads {found}; it may read "
                    "actions and fluents of the next state"
                )
            return FluentUpdate(name, place, kind, term.random, term.compile())

        for name, expression, _ in simulator.cpfs:
            variables = [variable for variable, _ in rddl.cpfs[name][0]]
            kind = kinds.get(rddl.variable_ranges[name], str)
            for fluent in list_fluents(rddl, [name]):
                scope = dict(zip(variables, fluent[1], strict=True))
                term = self._ground(grounder, name, expression, scope)
                steps.append(make_step(name_fluent(*fluent), grounder.places[fluent], kind, term))
        reward = self._ground(grounder, "reward", rddl.reward, {})
        self._reward = make_step("reward", -1, float, reward)
        self._sights = [step for step in steps if step.place in seen]
        steps = [step for step in steps if step.place not in seen]
        self._shared = [step for step in steps if step.place in read]
        self._single = [s for s in steps if s.place not in read and s.place < self._after.stop]

    def _ground(self, grounder: Grounder, name: str, expression: Any, scope: Scope) -> GroundTerm:
        try:
            return grounder.ground(expression, scope)
        except OptionError as error:
            raise OptionError(f"{self.source.locate(name)}: {name}: {error}") from None

    def _ground_all(
        self, grounder: Grounder, name: str, conditions: Iterable[Any]
    ) -> list[GroundTerm]:
        try:
            terms = [term for condition in conditions for term in grounder.split(condition, {})]
        except OptionError as error:
            raise OptionError(f"{self.source.locate(name)}: {name}: {error}") from None
        if any(term.random for term in terms):
            raise OptionError(f"{self.source.domain}: {name} must not be random")
        return terms

    def _ground_failure(
        self, grounder: Grounder, failure: str, what: str = "failure"
    ) -> GroundTerm:
        """Return the negation of `failure`, a state fluent or a condition."""
        rddl, condition, place = grounder.rddl, failure.strip(), f"{what}={failure!r}"
        if re.fullmatch(r"[\w-]+", condition) and condition not in rddl.state_fluents:
            raise OptionError(
                f"{place} is no state fluent of {self.source.domain}"
                f"{suggest(condition, rddl.state_fluents)}\nit has {', '.join(rddl.state_fluents)}"
            )
        if kinds := rddl.variable_params.get(condition):  # for any objects
            typed = ", ".join(f"?v{i} : {kind}" for i, kind in enumerate(kinds))
            variables = [f"?v{i}" for i in range(len(kinds))]
            condition = f"exists_{{{typed}}} [{name_fluent(condition, variables)}]"
        try:
            term = grounder.ground(_parse_condition(condition, place), {})
        except OptionError as error:
            text = str(error)
            raise OptionError(text if text.startswith(place) else f"{place}: {text}") from None
        read = max(term.reads, default=0)
        if term.random or read >= len(self._first) or type(term.compile()(self._first)) is not bool:
            raise OptionError(f"{place} must be a condition on state fluents, such as x ^ ~y")
        return apply_code("(not {})", term)


class HiddenRDDL:
    """An RDDL problem whose state is seen through observation fluents alone."""

    def __init__(self, model: RDDLModel) -> None:
        if model.costs:
            raise OptionError("hidden states have no costs: leave costs out")
        self.model, self.fingerprint = model, model.fingerprint
        self.horizon, self.discount = model.horizon, model.discount

    def __repr__(self) -> str:
        return repr(self.model)

    def initial_belief(self) -> dict[RDDLState, float]:
        """Return the initial state of the instance."""
        return {self.model.initial_state(): 1.0}

    def actions(self, observation: Any) -> list[str]:
        """Return the actions, none where the problem ends: both must not depend on the state."""
        return [] if observation == ENDED else self.model.actions(self.model.initial_state())

    def transitions(self, state: RDDLState, action: str) -> list[Transition]:
        """Return the next states of an action."""
        if action not in self.model.actions(state):
            message = "an action-precondition depends on what is not observed"
            raise ModelError(Violation(Rule.ACTIONS_EXIST, message, state, action))
        return [
            Transition(o.probability, state if o.fails else o.state, o.reward, o.fails, o.event)
            for o in self.model.outcomes(state, action)
        ]

    def observations(self, next_state: RDDLState, action: str) -> dict[Any, float]:
        """Return the values of the observation fluents, or that the problem has ended."""
        ended = not self.model.actions(next_state)
        return {ENDED: 1.0} if ended else self.model.observe(next_state, action)


def _find_cost(source: RDDLFiles, rddl: Any, name: str, states: Sequence[Fluent]) -> list[int]:
    """Return the places of a state fluent in a state, for all objects."""
    known = [fluent for fluent in rddl.state_fluents if rddl.variable_ranges[fluent] in NUMBERS]
    if name not in known:
        raise OptionError(
            f"cost {name!r} is no state fluent of {source.domain} with numbers"
            f"{suggest(name, known)}\nit has {', '.join(known) or 'none'}"
        )
    return [k for k, (fluent, _) in enumerate(states) if fluent == name]


def _check_types(place: str, simulator: Any) -> None:
    """Have pyRDDLGym check the types of expressions, in a step from the initial state."""
    from pyRDDLGym.core.debug.exception import RDDLTypeError

    with _name_place(place):
        try:
            simulator.seed(0)
            simulator.reset()
            simulator.step(simulator.prepare_actions_for_sim({}))
        except RDDLTypeError:
            raise
        except Exception:  # noqa: S110 - reported with state and action on evaluation
            pass


def _check_count(count: int) -> None:
    if count > MOST_OUTCOMES:
        raise ValueError(f"an action has more than {MOST_OUTCOMES:,} outcomes, too many to list")


def _list_choices(
    source: RDDLFiles, rddl: Any, simulator: Any, acted: list[Fluent]
) -> list[Values]:
    """Return the values of each action fluent, its default first."""
    from pyRDDLGym.core.constraints import RDDLConstraints

    defaults, choices = list_values(rddl, rddl.action_fluents), []
    with _name_place("bounds"):
        whole = "int" in rddl.action_ranges.values()
        bounds = RDDLConstraints(simulator).bounds if whole else {}
    for fluent in acted:
        kind = rddl.variable_ranges[fluent[0]]
        values = (False, True) if kind == "bool" else rddl.type_to_objects.get(kind)
        if values is None:
            low, high = bounds.get(rddl.ground_var(*fluent), (-math.inf, math.inf))
            if kind == "real" or not high - low < MOST_ACTIONS:
                raise OptionError(
                    f"{source.domain}: action fluent {name_fluent(*fluent)} is {kind} and has too "
                    "many values to list; allowed are bool, enumerated types, and int with bounds "
                    "among the action-preconditions"
                )
            values = range(math.ceil(low), math.floor(high) + 1)
        default = defaults[fluent]
        choices.append((default, *(value for value in values if value != default)))
    return choices


def from_rddl(
    domain: str,
    instance: str | int | None = None,
    *,
    failure: str | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    costs: str = "",
    events: str | Mapping[str, str] = "",
) -> RDDLModel | BeliefModel:
    """Return an RDDL problem as a model with exact outcomes.

    Parameters
    ----------
    domain
        A file, or the name of a problem in rddlrepository.
    instance
        A file, or the number of an instance in rddlrepository; None if the file of the domain has
        the instance as well.
    failure
        What is a failure, beside a violated state invariant: the name of a state fluent (if it
        holds for any objects), or a condition in RDDL on state fluents, such as
        `"~alive"`, `"running(c1) ^ hot"` or `"exists_{?c : computer} [~running(?c)]"`.
    horizon, discount
        Override those of the instance.
    costs
        State fluents, with commas between them: a step costs the value in the state that it leads
        to, added up over objects.
    events
        State fluents, with commas between them, or names with conditions as in `failure`: a step
        into such a state has the event of that name.

    Returns
    -------
    RDDLModel or BeliefModel
        States are tuples of the values of the state fluents, actions are strings. With observation
        fluents, the state is hidden: what is observed are their values, after each action.

    Raises
    ------
    OptionError
        If a file can't be read or has a mistake, or if distributions or actions are not finite;
        the message says where, and what is allowed.
    """
    place, number = str(domain), None if instance is None else str(instance)
    source = RDDLFiles(place, number) if place.endswith(".rddl") else _find_stored(place, number)
    if not isinstance(events, Mapping):
        events = {name: name for name in re.findall(r"[^,\s]+", str(events))}
    limited = (re.findall(r"[^,\s]+", str(costs)), events)
    model = RDDLModel(
        source, None if failure is None else str(failure), horizon, discount, *limited
    )
    return BeliefModel(HiddenRDDL(model)) if model.observed else model


def find_maker(text: str) -> Maker:
    """Return the maker of the problem that a string names."""
    if not text.startswith("rddl:"):
        return text, partial(from_rddl, text), None
    domain, _, instance = text.removeprefix("rddl:").partition("/")
    _find_stored(domain, instance or None)
    return text, partial(from_rddl, domain, instance), None


def _find_stored(domain: str, instance: str | None) -> RDDLFiles:
    """Return the files of a problem of rddlrepository."""
    from rddlrepository.core.manager import RDDLRepoManager

    try:
        # Its index is rebuilt: one that another process is writing would be read in part.
        manager = RDDLRepoManager(rebuild=True)
    except OSError:  # where it may not write one
        manager = RDDLRepoManager()
    known: dict[str, Any] = manager.archiver_dict
    if domain not in known:
        close = [name for name in known if domain and domain.lower() in name.lower()] or known
        raise OptionError(
            f"rddlrepository has no problem {domain!r}{suggest(domain, known)}\n"
            f"it has {', '.join(sorted(close))}"
        )
    problem = manager.get_problem(domain)
    numbers = problem.list_instances()
    if instance not in numbers:
        wrong = "needs an instance" if instance is None else f"has no instance {instance!r}"
        raise OptionError(f"{domain} {wrong}: rddl:{domain}/N with N one of {', '.join(numbers)}")
    return RDDLFiles(problem.get_domain(), problem.get_instance(instance))
