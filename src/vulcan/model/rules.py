"""The rules that every answer of a model must keep, and what it looks like when one is broken.

A check yields a `Violation` for each rule that is broken, and says where. `ModelReader` raises the
first of them; the model checker lists them all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any, Final

import numpy as np

from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.parameters import shorten
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

LONGEST_HORIZON: Final = 1_000_000


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
    """

    rule: Rule
    message: str
    state: Any = None
    action: Any = None
    value: Any = None

    def __str__(self) -> str:
        named = (("state", self.state), ("action", self.action))
        place = ", ".join(f"{name} {shorten(x)}" for name, x in named if x is not None)
        return f"{self.message} ({place})" if place else self.message


def check_frame(model: Any) -> Iterator[Violation]:
    """Yield what is wrong with a model before it is asked anything."""
    name = type(model).__name__
    for method in ("initial_state", "actions", "outcomes"):
        if not callable(getattr(model, method, None)):
            yield Violation(Rule.INTERFACE, f"{name} has no method {method}()")
    horizon: Any = getattr(model, "horizon", None)
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
    if not whole or not 1 <= int(horizon) <= LONGEST_HORIZON:
        message = f"horizon must be a whole number from 1 to {LONGEST_HORIZON:,}, not {horizon!r}"
        yield Violation(Rule.HORIZON, message, value=horizon)
    discount: Any = getattr(model, "discount", 1.0)
    if not is_number(discount) or not 0 <= discount <= 1:
        message = f"discount must be a number from 0 to 1, not {discount!r}"
        yield Violation(Rule.DISCOUNT, message, value=discount)
    merges = getattr(model, "merges", True)
    if not isinstance(merges, bool):
        yield Violation(Rule.MERGES, f"merges must be True or False, not {merges!r}", value=merges)


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
    probability, reward = outcome.probability, outcome.reward
    if not is_number(probability) or not 0 <= probability <= 1:
        message = f"probability must be a number from 0 to 1, not {shorten(probability)}"
        yield Violation(Rule.PROBABILITIES, message, state, action, probability)
    if not is_number(reward) or not _is_moderate(reward):
        message = f"reward must be a number of at most {LARGEST_REWARD:g}, not {shorten(reward)}"
        yield Violation(Rule.REWARDS, message, state, action, reward)


def _is_moderate(reward: Any) -> bool:
    try:
        return abs(float(reward)) <= LARGEST_REWARD
    except OverflowError:
        return False


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are none."""
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def _check_together(state: Any, action: Any, outcomes: Sequence[Outcome]) -> Iterator[Violation]:
    total = math.fsum(outcome.probability for outcome in outcomes)
    if abs(total - 1) > SUM_TOLERANCE:
        message = f"probabilities sum to {total!r}, not to 1"
        yield Violation(Rule.PROBABILITIES_SUM, message, state, action, total)
    given = [str(outcome.label) for outcome in outcomes if outcome.label is not None]
    for twice in _repeated(given):
        message = f"two outcomes have the same label {twice!r}"
        yield Violation(Rule.OUTCOME_LABELS_DIFFER, message, state, action, twice)
