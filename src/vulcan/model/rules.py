"""The rules that every answer of a model must keep, and what it looks like when one is broken.

A check yields a `Violation` for each rule that is broken, and says where. `ModelReader` raises the
first of them; the model checker lists them all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from inspect import getattr_static
from typing import Any, Final, NamedTuple

from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.model.likeness import find_difference
from vulcan.model.numbers import Number, describe_number, read_number, read_whole
from vulcan.parameters import shorten
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

LONGEST_HORIZON: Final = 1_000_000


PARTS: Final = {
    **dict.fromkeys(("initial_state", "actions", "outcomes", "horizon")),
    "discount": 1.0,
    "merges": True,
}
"""What a model has before it is asked anything, and what that is where it is absent."""


class Rule(StrEnum):
    """The rules that a model must keep; users see their texts."""

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
    REWARD_BOUNDS = "reward bounds"
    RISK_BOUNDS = "risk bounds"
    BOUNDS = "bounds"
    COMPILED = "compiled"


@dataclass(frozen=True)
class Violation:
    """One broken rule.

    Attributes
    ----------
    rule
        Which rule.
    message
        What was found, and what is allowed.
    state, action, value
        Where it was found and the offending value; None where there is none.
    model
        The name of the model's class; None in a report, which is about one model.
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
        """Return the same, naming the model that broke the rule."""
        return self if self.model else replace(self, model=type(model).__name__)


class Frame(NamedTuple):
    """What a model says once and for all, each part read once; what can't be used is as if absent.

    Attributes
    ----------
    horizon
        The number of steps; 0 if it can't be used.
    discount
        As exact as the model gave it.
    merges
        Whether histories that reach equal states go on as one.
    """

    horizon: int
    discount: Number
    merges: bool


def read_frame(model: Any) -> tuple[Frame, list[Violation]]:
    """Return what a model says before it is asked anything, and what is wrong with that."""
    try:
        given = {name: read_attribute(model, name, default) for name, default in PARTS.items()}
    except ModelError as error:
        return Frame(0, 1.0, True), [error.violation]
    found = [
        Violation(Rule.INTERFACE, f"{type(model).__name__} has no method {name}()")
        for name in ("initial_state", "actions", "outcomes")
        if not callable(given[name])
    ]
    horizon, discount, merges = (given[name] for name in Frame._fields)
    steps, rate = read_whole(horizon), read_number(discount)
    if steps is None or not 1 <= steps <= LONGEST_HORIZON:
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
    return Frame(steps, rate, merges is not False), found


def read_attribute(model: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of a model, the default if it has none such.

    Raises
    ------
    ModelError
        If it is computed, and that raises.
    """
    try:
        return getattr(model, name)
    except Exception as error:
        if isinstance(error, AttributeError) and getattr_static(model, name, None) is None:
            return default  # and not a property that raised it
        message = f"{type(model).__name__}.{name} raised {shorten(error)}"
        raise ModelError(Violation(Rule.ANSWERS, message)) from error


def check_frame(model: Any) -> list[Violation]:
    """Return what is wrong with a model before it is asked anything."""
    return read_frame(model)[1]


def check_frame_again(model: Any, before: Frame) -> Iterator[Violation]:
    """Yield what is no longer what it was when the frame was read first."""
    now, violations = read_frame(model)
    yield from violations
    for name, old, new in zip(Frame._fields, before, now, strict=True):
        if old != new and not violations:
            message = f"asked again, the {name} changed from {old!r} to {new!r}"
            yield Violation(Rule.ANSWERS_REPEAT, message, value=(old, new))


def check_state(
    state: Any, what: str, source: Any = None, action: Any = None
) -> Iterator[Violation]:
    """Yield what is wrong with a state as such."""
    if state is None or state is FAILURE:
        message = f"{what} is {state!r}; a failure is written Outcome.failure(probability, reward)"
        yield Violation(Rule.STATES, message, source, action, state)
    try:
        hash(state)
    except Exception:
        message = f"{what}, {shorten(state)}, can't be hashed; use a tuple or a frozen dataclass"
        yield Violation(Rule.STATES_HASHABLE, message, source, action, state)


def refuse_double(one: Any, other: Any, action: Any, said: tuple[Any, Any]) -> Violation:
    """Return what is wrong with equal states that answer differently.

    Parameters
    ----------
    one, other
        The states.
    action
        The action whose outcomes were asked for; None if it was the actions.
    said
        What they answered.
    """
    kind = "actions" if action is None else "outcomes"
    one_said, other_said = map(shorten, said)
    message = (
        f"equal states answer differently: {shorten(one)} has the {kind} {one_said}, and "
        f"{shorten(other)} has {other_said}; what differs in the states is that "
        f"{find_difference(one, other)}"
    )
    return Violation(Rule.STATES_ALIKE, message, one, action, other)


def check_actions(state: Any, actions: Sequence[Any], labels: Sequence[str]) -> Iterator[Violation]:
    """Yield what is wrong with the actions of a state."""
    if isinstance(state, Start) and not actions:
        yield Violation(Rule.ACTIONS_EXIST, "a Start needs at least one choice", state)
    hashable = True
    for action in actions:
        try:
            hash(action)
        except Exception:
            message = f"action {shorten(action)} can't be hashed"
            yield Violation(Rule.ACTIONS_HASHABLE, message, state, None, action)
            hashable = False
    repeated = _repeated(labels)
    for twice in repeated:
        message = f"two actions have the same label {twice!r}"
        yield Violation(Rule.ACTION_LABELS_DIFFER, message, state, None, twice)
    for twice in _repeated(actions) if hashable and not repeated else ():
        message = f"two actions are equal: {shorten(twice)}"
        yield Violation(Rule.ACTIONS_DIFFER, message, state, None, twice)


def _repeated(values: Sequence[Any]) -> list[Any]:
    """Return the values that occur more than once."""
    if len(set(values)) == len(values):
        return []
    return [value for value, count in Counter(values).items() if count > 1]


def check_outcomes(state: Any, action: Any, outcomes: Sequence[Any]) -> Iterator[Violation]:
    """Yield what is wrong with the outcomes of an action."""
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
        for violation in _check_numbers(state, action, outcome):
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
    given = outcome.reward
    reward = read_number(given)
    if reward is None or not -LARGEST_REWARD <= reward <= LARGEST_REWARD:
        most = f"a number of at most {LARGEST_REWARD:g}"
        message = f"reward must be {most}, not {describe_number(given)}"
        yield Violation(Rule.REWARDS, message, state, action, given)


def _check_together(state: Any, action: Any, outcomes: Sequence[Outcome]) -> Iterator[Violation]:
    total = math.fsum(outcome.probability for outcome in outcomes)
    if abs(total - 1) > SUM_TOLERANCE:
        message = f"probabilities sum to {total!r}, not to 1"
        yield Violation(Rule.PROBABILITIES_SUM, message, state, action, total)
    given = [str(outcome.label) for outcome in outcomes if outcome.label is not None]
    for twice in _repeated(given):
        message = f"two outcomes have the same label {twice!r}"
        yield Violation(Rule.OUTCOME_LABELS_DIFFER, message, state, action, twice)
