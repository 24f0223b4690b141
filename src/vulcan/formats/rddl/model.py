"""A grounded RDDL problem as a model: exact outcomes, states as tuples of fluent values.

The list `v` that terms read has, one after the other, the values of state fluents, of action
fluents, of the next state's fluents and of intermediate fluents. The fluents of a step are
computed in the order of pyRDDLGym. Those that others read, or the reward does, split the step into
worlds, one for each of their values; the others are independent of each other in each world, and
their values are multiplied out. Nothing is sampled, and only what has a probability is listed.

What must not happen is a state invariant: a next state that violates one is a failure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

from vulcan.errors import ModelError, OptionError
from vulcan.formats.rddl.actions import Actions
from vulcan.formats.rddl.fluents import list_fluents, list_values, name_fluent
from vulcan.formats.rddl.grounding import Grounder
from vulcan.formats.rddl.reading import Source, check_problem, parse_condition, read_problem
from vulcan.formats.rddl.terms import Term, assume, compile_term, conjoin, disjoin, negate
from vulcan.model.interface import Outcome
from vulcan.model.rules import Rule, Violation
from vulcan.parameters import suggest

__all__ = ["RDDLModel", "State"]

MOST_OUTCOMES: Final = 100_000

World = tuple[list[Any], float]
"""Values of the list, and their probability."""


class State(tuple[Any, ...]):
    """The values of all state fluents; its text names those that hold."""

    __slots__ = ()
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = [
            name if value is True else f"{name}={value}"
            for name, value in zip(self.names, self, strict=True)
            if value is not False
        ]
        return ", ".join(shown) or "nothing holds"

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass between processes: each makes the class of these names for itself."""
        return (_restore, (self.names, tuple(self)))


@cache
def make_state_class(names: tuple[str, ...]) -> type[State]:
    """Return the class of states with these fluents."""
    return type("State", (State,), {"__slots__": (), "names": names})


def _restore(names: tuple[str, ...], values: tuple[Any, ...]) -> State:
    return make_state_class(names)(values)


class Step(NamedTuple):
    """How a fluent, or the reward, gets its value.

    Attributes
    ----------
    name
        What messages call it.
    place
        Where its value goes in the list; None for the reward.
    value
        Its value, or distribution, from the list.
    random
        Which of both.
    reads
        The places that it depends on.
    """

    name: str
    place: int | None
    value: Callable[[Sequence[Any]], Any]
    random: bool
    reads: frozenset[int]


class RDDLModel:
    """An RDDL problem.

    States are tuples of fluent values, in the order of `fluents`; actions are strings, such as
    "noop", "move-north" or "reboot(c1), reboot(c4)".

    Parameters
    ----------
    source
        Its files.
    failure
        What must not happen, beside what violates a state invariant: a state fluent, or a
        condition on state fluents.
    horizon, discount
        Instead of those of the instance.

    Attributes
    ----------
    name
        That of the instance.
    fluents
        The names of the state fluents.
    fingerprint
        Tells the files and the failure from others.
    """

    def __init__(
        self,
        source: Source,
        failure: str | None = None,
        horizon: int | None = None,
        discount: float | None = None,
    ) -> None:
        self.source, self.failure = source, failure
        rddl = read_problem(source)
        self.horizon = rddl.horizon if horizon is None else horizon
        self.discount = rddl.discount if discount is None else discount
        self.name = rddl.instance_name
        self.fingerprint = f"RDDL {source.digest()} {failure}"
        simulator = check_problem(source.domain, rddl)
        _refuse_unobservable(source, rddl)
        states, acted = (list_fluents(rddl, part) for part in (rddl.next_state, rddl.action_ranges))
        following = [(rddl.next_state[name], objects) for name, objects in states]
        between = list_fluents(rddl, [*rddl.derived_fluents, *rddl.interm_fluents])
        self._count, self._begin = len(states), len(states) + len(acted)
        self._blank = [None] * (len(following) + len(between))
        places = {fluent: i for i, fluent in enumerate([*states, *acted, *following, *between])}
        grounder = Grounder(rddl, places, list_values(rddl, rddl.non_fluents))
        self._make_steps(grounder, simulator)
        self.fluents = tuple(name_fluent(*fluent) for fluent in states)
        self._class = make_state_class(self.fluents)
        self._make_conditions(grounder)
        constraints = (*rddl.preconditions, *rddl.ast.domain.constraints)
        wanted = self._ground_all(grounder, "action-preconditions", constraints)
        acting = {fluent: places[fluent] for fluent in acted}
        self._actions = Actions(source, rddl, simulator, acting, wanted)
        first = list_values(rddl, rddl.state_fluents)
        self._first = self._class(first[fluent] for fluent in states)
        if not self._is_safe(self._first):
            raise OptionError(
                f"{source.instance or source.domain}: the initial state is a failure already: "
                f"{self._first}"
            )

    def __repr__(self) -> str:
        failure = f", failure={self.failure!r}" if self.failure else ""
        return f"RDDLModel({self.name!r}{failure}, horizon={self.horizon})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass between processes: each reads the files for itself."""
        return (RDDLModel, (self.source, self.failure, self.horizon, self.discount))

    def initial_state(self) -> State:
        """Return the state that the instance begins in."""
        return self._first

    def actions(self, state: State) -> list[str]:
        """Return the combinations of actions that are allowed; none where the problem ends."""
        return [] if self._ends(state) else self._actions.list_allowed(state)

    def outcomes(self, state: State, action: str) -> list[Outcome]:
        """Return the next states of an action, with their exact probabilities."""
        found: dict[tuple[State | None, float], float] = {}
        try:
            for values, chance in self._list_worlds(state, action):
                rewards = _compute(self._reward, values)
                for after, probability in self._multiply_out(values, chance):
                    safe = after if self._is_safe(after) else None
                    for reward, share in rewards.items():
                        key = (safe, reward)
                        found[key] = found.get(key, 0.0) + probability * share
                _check_count(len(found))
        except (ArithmeticError, ValueError) as error:
            raise ModelError(Violation(Rule.ANSWERS, str(error), state, action)) from None
        return [_make_outcome(total, *key) for key, total in found.items()]

    def _list_worlds(self, state: State, action: str) -> list[World]:
        """Return the values of whatever is read by others, in all combinations."""
        worlds: list[World] = [([*state, *self._actions.find(state, action), *self._blank], 1.0)]
        for step in self._shared:
            split: list[World] = []
            for values, chance in worlds:
                distribution = _compute(step, values)
                for value, share in distribution.items():
                    world = values if len(distribution) == 1 else values.copy()
                    world[step.place] = value  # type: ignore[index]
                    split.append((world, chance * share))
            worlds = split
            _check_count(len(worlds))
        return worlds

    def _multiply_out(self, values: list[Any], chance: float) -> Iterator[tuple[State, float]]:
        """Yield the next states of a world."""
        open_places, distributions = [], []
        for step in self._single:
            distribution = _compute(step, values)
            if len(distribution) == 1:
                (values[step.place],) = distribution  # type: ignore[index]
            else:
                open_places.append(step.place)
                distributions.append(distribution.items())
        _check_count(math.prod(map(len, distributions)))
        after = slice(self._begin, self._begin + self._count)
        for cases in product(*distributions):
            probability = chance
            for place, (value, share) in zip(open_places, cases, strict=True):
                values[place] = value  # type: ignore[index]
                probability *= share
            yield self._class(values[after]), probability

    def _make_steps(self, grounder: Grounder, simulator: Any) -> None:
        """Order the fluents of a step: first those that others read, then those that none does."""
        rddl, steps = grounder.rddl, []
        for name, expression, _ in simulator.cpfs:
            variables = [variable for variable, _ in rddl.cpfs[name][0]]
            kind = rddl.variable_ranges[name]
            for fluent in list_fluents(rddl, [name]):
                scope = dict(zip(variables, fluent[1], strict=True))
                term = self._ground(grounder, name, expression, scope, kind)
                steps.append(_make_step(name_fluent(*fluent), grounder.places[fluent], term))
        reward = self._ground(grounder, "reward", rddl.reward, {}, "real")
        self._reward = _make_step("reward", None, reward)
        read = self._reward.reads.union(*(step.reads for step in steps))
        kept = range(self._begin + self._count)  # what lies between is there to be read
        self._shared = [step for step in steps if step.place in read]
        self._single = [step for step in steps if step.place not in read and step.place in kept]

    def _make_conditions(self, grounder: Grounder) -> None:
        """Say which states are safe, and where the problem ends."""
        rddl = grounder.rddl
        safe = self._ground_all(grounder, "state-invariants", rddl.invariants)
        if self.failure is not None:
            safe.append(self._ground_failure(grounder, self.failure))
        self._is_safe = compile_term(conjoin(safe))
        self._ends = compile_term(
            disjoin(self._ground_all(grounder, "termination", rddl.terminations))
        )

    def _ground_all(self, grounder: Grounder, name: str, conditions: Iterable[Any]) -> list[Term]:
        terms = [self._ground(grounder, name, condition, {}, "bool") for condition in conditions]
        if any(term.random for term in terms):
            raise OptionError(f"{self.source.domain}: {name} must not be random")
        return terms

    def _ground_failure(self, grounder: Grounder, failure: str) -> Term:
        """Return the term that says that a fluent, or a condition, does not hold."""
        rddl, condition = grounder.rddl, failure.strip()
        place = f"failure={failure!r}"
        if re.fullmatch(r"[\w-]+", condition) and condition not in rddl.state_fluents:
            raise OptionError(
                f"{place} is no state fluent of {self.source.domain}"
                f"{suggest(condition, rddl.state_fluents)}\nit has {', '.join(rddl.state_fluents)}"
            )
        if kinds := rddl.variable_params.get(condition):  # it holds for any objects
            variables = [f"?v{i}" for i in range(len(kinds))]
            typed = ", ".join(f"{v} : {kind}" for v, kind in zip(variables, kinds, strict=True))
            condition = f"exists_{{{typed}}} [{name_fluent(condition, variables)}]"
        try:
            term = grounder.ground(parse_condition(condition, place), {})
        except OptionError as error:
            text = str(error)
            raise OptionError(text if text.startswith(place) else f"{place}: {text}") from None
        if term.kind != "bool" or term.random or not term.reads <= set(range(self._count)):
            raise OptionError(f"{place} must be a condition on state fluents, such as x ^ ~y")
        return negate(term)

    def _ground(
        self, grounder: Grounder, name: str, expression: Any, scope: dict[str, str], kind: str
    ) -> Term:
        """Return an expression of the file as a term of a kind."""
        try:
            term = grounder.ground(expression, scope)
        except OptionError as error:
            raise OptionError(f"{self.source.locate(name)}: {name}: {error}") from None
        wider = {"int": ("bool", "int"), "real": ("bool", "int", "real")}.get(kind, (kind,))
        if term.kind not in wider:
            raise OptionError(f"{self.source.locate(name)}: {name} is {kind}, not {term.kind}")
        return assume(term, kind)


def _make_outcome(total: float, after: State | None, reward: float) -> Outcome:
    probability = min(total, 1.0)  # a rounded sum may be above 1
    if after is None:
        return Outcome.failure(probability, reward)
    return Outcome(probability, reward, after)


def _make_step(name: str, place: int | None, term: Term) -> Step:
    return Step(name, place, compile_term(term), term.random, term.reads)


def _compute(step: Step, values: Sequence[Any]) -> dict[Any, float]:
    """Return the distribution of a fluent, or of the reward."""
    try:
        value = step.value(values)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{step.name} has no value: {error}") from None
    return value if step.random else {value: 1.0}


def _check_count(count: int) -> None:
    if count > MOST_OUTCOMES:
        raise ValueError(f"an action has more than {MOST_OUTCOMES:,} outcomes, too many to list")


def _refuse_unobservable(source: Source, rddl: Any) -> None:
    if rddl.observ_fluents:
        listed = ", ".join(rddl.observ_fluents)
        raise OptionError(
            f"{source.domain}: the state is observed only through {listed} (observ-fluent); "
            "plans are for problems whose state is seen"
        )
