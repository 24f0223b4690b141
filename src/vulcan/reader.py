"""Asking a model, and trusting none of its answers.

Everything that Vulcan learns of a model passes through a `ModelReader`: searches, certificates and
`check_model` alike. It knows the rules that every answer must keep, names the state, action and
value where one is broken, and hides the initial action of a `Start` behind the same questions.

Decisions are numbered by *level*. Without an initial action, level = step t. With one, level 0 is
the initial action and level t + 1 is step t. With γ the discount, `discounts[level]` is what the
value after a decision is multiplied with (1 after an initial action, γ after a step), and
`weights[level]` is the product of those before it: γ^t at step t.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from numbers import Real
from typing import Any, Final

import numpy as np

from vulcan.errors import ModelError
from vulcan.model import FAILURE, Outcome, Start
from vulcan.tolerance import SUM_TOLERANCE

__all__ = ["MOST_ANSWERS", "ModelReader", "Violation"]

MOST_ANSWERS: Final = 100_000
"""More actions of one state, or outcomes of one action, are taken for a list that never ends."""

LONGEST_HORIZON: Final = 1_000_000

LARGEST_REWARD: Final = 1e100
"""Sums of larger rewards could leave the range of floating point."""


@dataclass(frozen=True)
class Violation:
    """One broken rule.

    Attributes
    ----------
    rule
        Short name of the rule, such as "probabilities sum to 1".
    message
        What was found, and what is allowed.
    state, action, value
        Where it was found and the offending value; None where there is none.
    """

    rule: str
    message: str
    state: Any = None
    action: Any = None
    value: Any = None

    def __str__(self) -> str:
        named = (("state", self.state), ("action", self.action))
        place = ", ".join(f"{name} {shorten(x)}" for name, x in named if x is not None)
        return f"{self.message} ({place})" if place else self.message


def shorten(value: object, most: int = 200) -> str:
    """Return the text of any value, also of one that can't show itself, at most so long."""
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


class ModelReader:
    """Asks a model and checks each answer.

    Parameters
    ----------
    model
        The model to ask.

    Attributes
    ----------
    horizon, discount, merges
        As the model has them, checked.
    root
        The initial state, or the `Start`.
    levels
        Number of decisions in the longest history: the horizon, and 1 more with an initial action.
    discounts, weights
        See the head of this module.

    Raises
    ------
    ModelError
        If the horizon, the discount or the initial state break a rule.
    """

    def __init__(self, model: Any) -> None:
        for violation in check_frame(model):
            raise ModelError(violation)
        self.model = model
        self.horizon: int = int(model.horizon)
        self.discount: float = float(getattr(model, "discount", 1.0))
        self.merges: bool = bool(getattr(model, "merges", True))
        self._first_answers: dict[Any, list[Outcome]] = {}
        self.root = self._call("initial_state")
        for violation in check_state(self.root, "the initial state"):
            raise ModelError(violation)
        initial = isinstance(self.root, Start)
        self.levels = self.horizon + initial
        self.discounts = np.full(self.levels, self.discount)
        if initial:
            self.discounts[0] = 1.0
        self.weights = np.concatenate(([1.0], np.cumprod(self.discounts[:-1])))

    def actions(self, state: Any) -> dict[str, Any]:
        """Return the actions of a state by their labels, checked."""
        if isinstance(state, Start):
            actions: tuple[Any, ...] = tuple(state.choices)
        else:
            actions = self._ask_model("actions", state)
        labels = [self.label(state, action) for action in actions]
        for violation in check_actions(state, actions, labels):
            raise ModelError(violation)
        return dict(zip(labels, actions, strict=True))

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the outcomes of an action, checked: the safe ones, then the failures.

        Outcomes of probability 0 are left out. Answers about the root, which the fingerprint asks
        for as well, are remembered.
        """
        if state is self.root:
            if action not in self._first_answers:
                self._first_answers[action] = self._ask_outcomes(state, action)
            return self._first_answers[action]
        return self._ask_outcomes(state, action)

    def _ask_outcomes(self, state: Any, action: Any) -> list[Outcome]:
        if isinstance(state, Start):
            outcomes: tuple[Any, ...] = state.choices[action]
        else:
            outcomes = self._ask_model("outcomes", state, action)
        for violation in check_outcomes(state, action, outcomes):
            raise ModelError(violation)
        return sorted((o for o in outcomes if float(o.probability)), key=_fails)

    def discount_after(self, level: int) -> Any:
        """Return the discount after a decision, as the model gave it."""
        first = level == 0 and isinstance(self.root, Start)
        return 1 if first else getattr(self.model, "discount", 1)

    def bound_reward(self, state: Any, step: int) -> float:
        """Return the model's upper bound on the reward still to come, checked to be a number."""
        bound = self._call("reward_to_go_bound", state, step, state=state)
        if not _is_number(bound) or math.isnan(bound):
            message = f"reward_to_go_bound must be a number, not {shorten(bound)}"
            raise ModelError(Violation("reward bounds", message, state, None, bound))
        return float(bound)

    def bound_risk(self, state: Any, action: Any, step: int) -> float:
        """Return the model's lower bound on the risk still to come, checked to be a probability."""
        where = (state, action)
        bound = self._call("risk_to_go_bound", *where, step, state=state, action=action)
        if not _is_number(bound) or not 0 <= bound <= 1:
            message = f"risk_to_go_bound must be a number from 0 to 1, not {shorten(bound)}"
            raise ModelError(Violation("risk bounds", message, *where, bound))
        return float(bound)

    def answers(self, state: Any) -> list[tuple[str, Any, list[Outcome]]]:
        """Return each action of a state with its label and its outcomes."""
        return [
            (label, action, self.outcomes(state, action))
            for label, action in self.actions(state).items()
        ]

    def label(self, state: Any, action: Any) -> str:
        """Return the text by which people know an action of a state."""
        if not isinstance(state, Start) and hasattr(self.model, "action_label"):
            return str(self._call("action_label", action, state=state, action=action))
        return action.name if isinstance(action, Enum) else str(action)

    def fingerprint(self) -> str:
        """Return a text that differs between models that answer differently at the start.

        It covers the model's class name, horizon, discount, and all answers about the first
        actions, as far as the model gave them: labels that are the texts of states are left out. A
        model may set an attribute `fingerprint` to say it better.
        """
        own = getattr(self.model, "fingerprint", None)
        first = [
            [
                label,
                [
                    [str(o.label), float(o.probability), float(o.reward), o.fails]
                    for o in self.outcomes(self.root, action)
                ],
            ]
            for label, action in self.actions(self.root).items()
        ]
        identity = type(self.model).__name__ if own is None else str(own)
        text = json.dumps([identity, self.horizon, self.discount, first])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _call(self, method: str, *arguments: Any, state: Any = None, action: Any = None) -> Any:
        try:
            return getattr(self.model, method)(*arguments)
        except Exception as error:
            message = f"{type(self.model).__name__}.{method} raised {error!r}"
            raise ModelError(Violation("answers", message, state, action)) from error

    def _ask_model(self, kind: str, state: Any, *action: Any) -> tuple[Any, ...]:
        """Return the actions of a state, or the outcomes of an action, as a tuple."""
        where = (state, *action)
        answer = self._call(kind, *where, state=state, action=action[0] if action else None)
        if not isinstance(answer, Iterable) or _is_unordered(answer):
            message = f"{kind} must be a list, in an order that stays, not {shorten(answer)}"
            where = (state, action[0] if action else None)
            raise ModelError(Violation(f"{kind} are a list", message, *where, answer))
        try:
            gathered = tuple(islice(answer, MOST_ANSWERS + 1))
        except Exception as error:
            message = f"{kind} raised {error!r}"
            raise ModelError(Violation("answers", message, *where)) from error
        if len(gathered) > MOST_ANSWERS:
            message = f"more than {MOST_ANSWERS:,} {kind}: does the list end?"
            raise ModelError(Violation(f"{kind} end", message, *where))
        return gathered


def _is_unordered(answer: object) -> bool:
    return isinstance(answer, str) or (isinstance(answer, Set) and not isinstance(answer, KeysView))


def _fails(outcome: Outcome) -> bool:
    return outcome.fails


def check_frame(model: Any) -> Iterator[Violation]:
    """Yield what is wrong with a model before it is asked anything."""
    name = type(model).__name__
    for method in ("initial_state", "actions", "outcomes"):
        if not callable(getattr(model, method, None)):
            yield Violation("interface", f"{name} has no method {method}()")
    horizon: Any = getattr(model, "horizon", None)
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
    if not whole or not 1 <= int(horizon) <= LONGEST_HORIZON:
        message = f"horizon must be a whole number from 1 to {LONGEST_HORIZON:,}, not {horizon!r}"
        yield Violation("horizon", message, value=horizon)
    discount: Any = getattr(model, "discount", 1.0)
    if not _is_number(discount) or not 0 <= discount <= 1:
        message = f"discount must be a number from 0 to 1, not {discount!r}"
        yield Violation("discount", message, value=discount)
    merges = getattr(model, "merges", True)
    if not isinstance(merges, bool):
        yield Violation("merges", f"merges must be True or False, not {merges!r}", value=merges)


def check_state(
    state: Any, what: str, source: Any = None, action: Any = None
) -> Iterator[Violation]:
    """Yield what is wrong with a state as such."""
    if state is None or state is FAILURE:
        message = f"{what} is {state!r}; a failure is written Outcome.failure(probability, reward)"
        yield Violation("states", message, source, action, state)
    try:
        hash(state)
    except Exception:
        message = f"{what}, {shorten(state)}, can't be hashed; use a tuple or a frozen dataclass"
        yield Violation("states are hashable", message, source, action, state)


def check_actions(state: Any, actions: Sequence[Any], labels: Sequence[str]) -> Iterator[Violation]:
    """Yield what is wrong with the actions of a state."""
    if isinstance(state, Start) and not actions:
        yield Violation("actions exist", "a Start needs at least one choice", state)
    hashable = True
    for action in actions:
        try:
            hash(action)
        except Exception:
            message = f"action {shorten(action)} can't be hashed"
            yield Violation("actions are hashable", message, state, None, action)
            hashable = False
    repeated = _repeated(labels)
    for twice in repeated:
        message = f"two actions have the same label {twice!r}"
        yield Violation("action labels differ", message, state, None, twice)
    for twice in _repeated(actions) if hashable and not repeated else ():
        message = f"two actions are equal: {shorten(twice)}"
        yield Violation("actions differ", message, state, None, twice)


def _repeated(values: Sequence[Any]) -> list[Any]:
    """Return the values that occur more than once."""
    if len(set(values)) == len(values):
        return []
    return [value for value, count in Counter(values).items() if count > 1]


def check_outcomes(state: Any, action: Any, outcomes: Sequence[Any]) -> Iterator[Violation]:
    """Yield what is wrong with the outcomes of an action."""
    if not outcomes:
        message = "no outcomes; a safe terminal is a state without actions"
        yield Violation("outcomes exist", message, state, action)
        return
    sound = True
    for outcome in outcomes:
        if not isinstance(outcome, Outcome):
            message = f"an outcome must be a vulcan.Outcome, not {shorten(outcome)}"
            yield Violation("outcomes are Outcomes", message, state, action, outcome)
            sound = False
            continue
        for violation in _check_numbers(state, action, outcome):
            yield violation
            sound = False
        if isinstance(outcome.state, Start):
            message = "a Start is only for initial_state(), not a next state"
            yield Violation("states", message, state, action, outcome.state)
        elif not outcome.fails:
            yield from check_state(outcome.state, "a next state", state, action)
    if sound:
        yield from _check_together(state, action, outcomes)


def _check_numbers(state: Any, action: Any, outcome: Outcome) -> Iterator[Violation]:
    probability, reward = outcome.probability, outcome.reward
    if not _is_number(probability) or not 0 <= probability <= 1:
        message = f"probability must be a number from 0 to 1, not {shorten(probability)}"
        yield Violation("probabilities", message, state, action, probability)
    if not _is_number(reward) or not _is_moderate(reward):
        message = f"reward must be a number of at most {LARGEST_REWARD:g}, not {shorten(reward)}"
        yield Violation("rewards", message, state, action, reward)


def _is_moderate(reward: Any) -> bool:
    try:
        return abs(float(reward)) <= LARGEST_REWARD
    except OverflowError:
        return False


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def _check_together(state: Any, action: Any, outcomes: Sequence[Outcome]) -> Iterator[Violation]:
    total = math.fsum(outcome.probability for outcome in outcomes)
    if abs(total - 1) > SUM_TOLERANCE:
        message = f"probabilities sum to {total!r}, not to 1"
        yield Violation("probabilities sum to 1", message, state, action, total)
    given = [str(outcome.label) for outcome in outcomes if outcome.label is not None]
    for twice in _repeated(given):
        message = f"two outcomes have the same label {twice!r}"
        yield Violation("outcome labels differ", message, state, action, twice)
