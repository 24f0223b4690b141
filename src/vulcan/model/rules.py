"""The rules that every answer of a model must keep, and checks that find violations.

A check yields a `Violation` for each broken rule, with its place. `ModelReader` raises the first;
the model checker lists them all.

Numbers. An instance of a user's numeric class may be one number when it is compared and another
when it is converted. `read_number` therefore reads each number once and returns a float, an integer
or a fraction, as exact as what was given. A value that contradicts itself, or raises, is no number.

Deep equality. Planners treat equal states as one, but a model may see more: a field that is not
compared, the class of a tuple, the sign of a zero. Where two equal states differ in such a part the
model may answer differently; `find_difference` finds it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from inspect import getattr_static
from itertools import chain
from numbers import Integral, Rational, Real
from typing import Any, Final

import numpy as np

from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.numerics import LARGEST_REWARD, SMALLEST_PROBABILITY, SUM_TOLERANCE
from vulcan.parameters import shorten

Number = float | int | Fraction

PLAIN: Final = frozenset((float, int, Fraction))

PLAIN_TYPES: Final = frozenset((bool, int, float, complex, str, bytes, type(None)))
"""Types without parts, whose texts determine their values."""

LONGEST_HORIZON: Final = 1_000_000

ATTRIBUTES: Final = {
    **dict.fromkeys(("initial_state", "actions", "outcomes", "horizon")),
    "discount": 1.0,
    "merges": True,
}
"""Attributes of a model, with their defaults."""


class Rule(StrEnum):
    """The rules of a model; users see their texts."""

    INTERFACE = "interface"
    HORIZON = "horizon"
    DISCOUNT = "discount"
    MERGES = "merges"
    ANSWERS = "answers"
    ANSWERS_REPEAT = "answers repeat"
    STATES = "states"
    STATES_HASHABLE = "states are hashable"
    STATES_COMPARE = "states compare"
    STATES_STAY = "states stay the same"
    STATES_ALIKE = "equal states are alike"
    KEYS = "equal keys are alike"
    HASHES_STAY = "hashes stay the same"
    ACTIONS_EXIST = "actions exist"
    ACTIONS_LISTED = "actions are a list"
    ACTIONS_END = "actions end"
    ACTIONS_HASHABLE = "actions are hashable"
    ACTIONS_DIFFER = "actions differ"
    ACTION_LABELS_DIFFER = "action labels differ"
    OUTCOMES_EXIST = "outcomes exist"
    OUTCOMES_LISTED = "outcomes are a list"
    OUTCOMES_END = "outcomes end"
    OUTCOMES_TYPED = "outcomes are Outcomes"
    OUTCOME_LABELS_DIFFER = "outcome labels differ"
    PROBABILITIES = "probabilities"
    PROBABILITIES_SUM = "probabilities sum to 1"
    REWARDS = "rewards"
    COSTS = "costs"
    EVENTS = "events"
    REWARD_BOUNDS = "reward bounds"
    RISK_BOUNDS = "risk bounds"
    BOUNDS = "bounds"
    COMPILED = "compiled"


@dataclass(frozen=True)
class Violation:
    """One broken rule: what was found and what is allowed, the place and the offending value.

    `model` is the name of the model's class; None in a report, which is about one model.
    """

    rule: Rule
    message: str
    state: Any = None
    action: Any = None
    value: Any = None
    model: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        named = (("state", self.state), ("action", self.action))
        place = [f"{name} {shorten(x)}" for name, x in named if x is not None]
        if self.model is not None:
            place.append(f"model {self.model}")
        return f"{self.message} ({', '.join(place)})" if place else self.message

    def of(self, model: Any) -> Violation:
        """Return the violation with the name of the model."""
        return self if self.model else replace(self, model=type(model).__name__)


FRAME: Final = ("horizon", "discount", "merges")

Frame = tuple[int, Number, bool]
"""These attributes of a model, each read once, the discount as exact as it was given; an invalid
one has its default, and a horizon is 0 then."""


def read_frame(model: Any) -> tuple[Frame, list[Violation]]:
    """Return the attributes of a model and their violations."""
    if isinstance(model, type):
        name = model.__name__
        message = f"{name} is a class, not a model; make one, as in {name}(...)"
        return (0, 1.0, True), [Violation(Rule.INTERFACE, message)]
    try:
        given = {name: read_attribute(model, name, default) for name, default in ATTRIBUTES.items()}
    except ModelError as error:
        return (0, 1.0, True), [error.violation]
    hidden = hasattr(model, "initial_belief")
    hint = "; its states are hidden: use vulcan.BeliefModel(model)" if hidden else ""
    found = [
        Violation(Rule.INTERFACE, f"{type(model).__name__} has no method {name}(){hint}")
        for name in ("initial_state", "actions", "outcomes")
        if not callable(given[name])
    ]
    horizon, discount, merges = (given[name] for name in FRAME)
    steps, rate = read_number(horizon), read_number(discount)
    whole = isinstance(horizon, Integral) and attempt(int, horizon) == steps
    if not (whole and isinstance(steps, int) and 1 <= steps <= LONGEST_HORIZON):
        allowed = f"a whole number from 1 to {LONGEST_HORIZON:,}"
        message = f"horizon must be {allowed}, not {describe_number(horizon)}"
        found.append(Violation(Rule.HORIZON, message, value=horizon))
        steps = 0
    if rate is None or not 0 <= rate <= 1:
        message = f"discount must be a number from 0 to 1, not {describe_number(discount)}"
        found.append(Violation(Rule.DISCOUNT, message, value=discount))
        rate = 1.0
    if not isinstance(merges, bool):
        message = f"merges must be True or False, not {shorten(merges)}"
        found.append(Violation(Rule.MERGES, message, value=merges))
    return (steps, rate, merges is not False), found


def read_attribute(model: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of a model, or the default; raise `ModelError` if a property raises."""
    try:
        return getattr(model, name)
    except Exception as error:
        if isinstance(error, AttributeError) and getattr_static(model, name, None) is None:
            return default  # it is absent, not a property that raised
        message = f"{type(model).__name__}.{name} raised {shorten(error)}"
        raise ModelError(Violation(Rule.ANSWERS, message)) from error


def recheck_frame(model: Any, before: Frame) -> Iterator[Violation]:
    """Yield the attributes that have changed since the frame was read."""
    now, violations = read_frame(model)
    yield from violations
    for name, old, new in zip(FRAME, before, now, strict=True):
        if old != new and not violations:
            message = f"evaluated again, the {name} changed from {old!r} to {new!r}"
            yield Violation(Rule.ANSWERS_REPEAT, message, value=(old, new))


def check_state(
    state: Any, what: str, source: Any = None, action: Any = None
) -> Iterator[Violation]:
    """Yield the violations of a single state."""
    if state is None or state is FAILURE:
        message = f"{what} is {state!r}; a failure is written Outcome.failure(probability, reward)"
        yield Violation(Rule.STATES, message, source, action, state)
    if attempt(hash, state) is None:
        message = f"{what}, {shorten(state)}, can't be hashed; use a tuple or a frozen dataclass"
        yield Violation(Rule.STATES_HASHABLE, message, source, action, state)


def describe_duplicate(one: Any, other: Any, action: Any, answers: tuple[Any, Any]) -> Violation:
    """Return the violation of equal states with different outcomes of an action, or actions."""
    kind = "actions" if action is None else "outcomes"
    first, second = map(shorten, answers)
    message = (
        f"equal states answer differently: {shorten(one)} has the {kind} {first}, and "
        f"{shorten(other)} has {second}; the states differ in that "
        f"{find_difference(one, other)}"
    )
    return Violation(Rule.STATES_ALIKE, message, one, action, other)


def check_actions(state: Any, actions: Sequence[Any], labels: Sequence[str]) -> Iterator[Violation]:
    """Yield the violations of the actions of a state."""
    if isinstance(state, Start) and not actions:
        yield Violation(Rule.ACTIONS_EXIST, "a Start needs at least one choice", state)
    unhashable = [action for action in actions if attempt(hash, action) is None]
    for action in unhashable:
        message = f"action {shorten(action)} can't be hashed"
        yield Violation(Rule.ACTIONS_HASHABLE, message, state, None, action)
    repeated = _repeated(labels)
    for twice in repeated:
        message = f"two actions have the same label {twice!r}"
        yield Violation(Rule.ACTION_LABELS_DIFFER, message, state, None, twice)
    for twice in _repeated(actions) if not (unhashable or repeated) else ():
        message = f"two actions are equal: {shorten(twice)}"
        yield Violation(Rule.ACTIONS_DIFFER, message, state, None, twice)


def check_outcomes(state: Any, action: Any, outcomes: Sequence[Any]) -> Iterator[Violation]:
    """Yield the violations of the outcomes of an action."""
    if not outcomes:
        message = "no outcomes; a safe terminal is a state without actions"
        yield Violation(Rule.OUTCOMES_EXIST, message, state, action)
        return
    sound = True
    for outcome in outcomes:
        if not isinstance(outcome, Outcome):
            message = f"an outcome must be a vulcan.Outcome, not {shorten(outcome)}"
            yield Violation(Rule.OUTCOMES_TYPED, message, state, action, outcome)
            sound = False
            continue
        for violation in chain(
            _check_numbers(state, action, outcome), _check_costs(state, action, outcome)
        ):
            yield violation
            sound = False
        if isinstance(outcome.state, Start):
            message = "a Start is only for initial_state(), not a next state"
            yield Violation(Rule.STATES, message, state, action, outcome.state)
        elif not outcome.fails:
            yield from check_state(outcome.state, "a next state", state, action)
    if sound:
        yield from _check_together(state, action, outcomes)


def _check_numbers(state: Any, action: Any, outcome: Outcome) -> Iterator[Violation]:
    given = outcome.probability
    probability = read_number(given)
    if probability is None or not 0 <= probability <= 1:
        message = f"probability must be a number from 0 to 1, not {describe_number(given)}"
        yield Violation(Rule.PROBABILITIES, message, state, action, given)
    elif probability and float(probability) < SMALLEST_PROBABILITY:
        name = "failure" if outcome.fails else f"next state {shorten(outcome.state)}"
        if outcome.label is not None:
            name = f"outcome {shorten(str(outcome.label))}"
        message = refuse_small(name, shorten(given))
        yield Violation(Rule.PROBABILITIES, message, state, action, given)
    given = outcome.reward
    reward = read_number(given)
    if reward is None or not -LARGEST_REWARD <= reward <= LARGEST_REWARD:
        most = f"a number of at most {LARGEST_REWARD:g}"
        message = f"reward must be {most}, not {describe_number(given)}"
        yield Violation(Rule.REWARDS, message, state, action, given)


def _check_costs(state: Any, action: Any, outcome: Outcome) -> Iterator[Violation]:
    costs = read_costs(outcome.costs)
    if costs is None:
        allowed = f"names with numbers of at most {LARGEST_REWARD:g}, each name once"
        message = f"costs must be {allowed}, not {shorten(outcome.costs)}"
        yield Violation(Rule.COSTS, message, state, action, outcome.costs)
    if outcome.event is not None and type(outcome.event) is not str:
        message = f"an event must be a string or None, not {shorten(outcome.event)}"
        yield Violation(Rule.EVENTS, message, state, action, outcome.event)


def read_costs(given: Any) -> dict[str, Number] | None:
    """Return the costs of an outcome by their names; None if they are invalid."""
    pairs = attempt(lambda: [(name, cost) for name, cost in dict(given).items()])
    if pairs is None or len(pairs) != len(given):
        return None
    costs = {name: read_number(cost) for name, cost in pairs}
    valid = all(
        type(name) is str and cost is not None and -LARGEST_REWARD <= cost <= LARGEST_REWARD
        for name, cost in costs.items()
    )
    return costs if valid else None  # type: ignore[return-value]


def refuse_small(outcome: str, value: str) -> str:
    """Return the message about a probability that is too small."""
    allowed = f"0 or at least {SMALLEST_PROBABILITY:g}"
    return f"the probability of {outcome} must be {allowed}, not {value}"


def _check_together(state: Any, action: Any, outcomes: Sequence[Outcome]) -> Iterator[Violation]:
    total = math.fsum(outcome.probability for outcome in outcomes)
    if abs(total - 1) > SUM_TOLERANCE:
        message = f"probabilities sum to {total!r}, not to 1"
        yield Violation(Rule.PROBABILITIES_SUM, message, state, action, total)
    given = [str(outcome.label) for outcome in outcomes if outcome.label is not None]
    for twice in _repeated(given):
        message = f"two outcomes have the same label {twice!r}"
        yield Violation(Rule.OUTCOME_LABELS_DIFFER, message, state, action, twice)


def _repeated(values: Sequence[Any]) -> list[Any]:
    """Return the values that occur more than once."""
    if len(set(values)) == len(values):
        return []
    return [value for value, count in Counter(values).items() if count > 1]


def read_number(value: Any) -> Number | None:
    """Return a real number; None if the value is none, a bool, or contradicts itself."""
    if type(value) in PLAIN:
        number: Number = value
        return number
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number, converted = _convert(value), float(value)
        agrees = float(number) == converted or (math.isnan(number) and math.isnan(converted))
        return number if agrees else None
    except Exception:
        return None


def _convert(value: Any) -> Number:
    """Convert a number without the methods of a derived class, where Python has its own."""
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return float(value)


def describe_number(value: Any) -> str:
    """Return the text of an invalid number in messages."""
    text, kind = shorten(value), type(value)
    if isinstance(value, bool) or not isinstance(value, Real) or read_number(value) is not None:
        return text
    try:
        converted = shorten(float(value))
    except Exception as error:
        return f"{text}, whose class {kind.__name__} raised {shorten(error)} when it was read"
    return f"{text}, which its class {kind.__name__} says is {converted}"


def find_difference(one: Any, other: Any) -> str | None:
    """Return where two values differ in a part, equal or not; None if they agree in all parts.

    Values whose parts can't be listed differ from all but themselves.

    >>> find_difference(("north", 1), ("north", True))
    '[1] is 1 and True'
    """
    try:
        return _find(one, other, "")
    except Exception as error:  # of user code
        return f"they can't be compared part by part: {shorten(error)}"


def _find(one: Any, other: Any, path: str) -> str | None:
    if one is other:
        return None
    kind = type(one)
    alike, pairs = kind is type(other), list[tuple[str, Any, Any]]()
    if alike and (kind in PLAIN_TYPES or isinstance(one, np.generic)):
        alike = repr(one) == repr(other)
    elif alike and kind is tuple:  # the fast path: most states
        alike = len(one) == len(other)
        both = enumerate(zip(one, other, strict=False))
        pairs = [(f"[{k}]", part, partner) for k, (part, partner) in both if part is not partner]
    elif alike:
        if kind in (set, frozenset):  # their elements in the same order
            partners = {element: element for element in other}
            one, other = list(one), [partners[element] for element in one]
        parts, others = dict(_list_parts(one)), dict(_list_parts(other))
        alike = bool(parts) and parts.keys() == others.keys()
        pairs = [(name, part, others[name]) for name, part in parts.items()] if alike else []
    if not alike:
        return f"{path or 'the value'} is {shorten(one)} and {shorten(other)}"
    found = (_find(part, partner, path + name) for name, part, partner in pairs)
    return next((difference for difference in found if difference is not None), None)


def _list_parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each part of a value."""
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype.hasobject else value.tobytes()
        yield from ((".dtype", str(value.dtype)), (".shape", value.shape), ("", content))
    if isinstance(value, tuple | list):
        yield " length", len(value)  # so that an empty one has a part
        yield from ((f"[{k}]", part) for k, part in enumerate(value))
    if isinstance(value, dict):
        yield " length", len(value)
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    own = object.__getstate__(value)
    for fields in own if isinstance(own, tuple) else (own,):
        yield from ((f".{name}", part) for name, part in (fields or {}).items())
    for name in getattr(type(value), "__struct_fields__", ()):
        yield f".{name}", getattr(value, name)


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal, or both unequal to themselves, like NaN."""
    try:
        return one is other or bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124
    except Exception:
        return False


def is_similar(one: Any, other: Any) -> bool:
    """Return whether two values are equal or, if even a copy is not, of the same type."""
    return is_equal(one, other) or (type(one) is type(other) and not is_equal(one, copy_value(one)))


def copy_value(value: Any) -> Any:
    """Return a copy; the value itself if it can't be copied."""
    copy = attempt(deepcopy, value)
    return value if copy is None else copy


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of user code, or None if it raises."""
    try:
        return function(*arguments)
    except Exception:
        return None
