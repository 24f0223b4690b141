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
from collections.abc import Callable, Iterable, Iterator, KeysView, Sequence, Set
from enum import Enum
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeVar

import numpy as np

from vulcan.errors import ModelError, PolicyError, VulcanError
from vulcan.model.interface import Outcome, Start
from vulcan.model.numbers import Number, describe_number, read_number
from vulcan.model.observations import observe_outcomes
from vulcan.model.rules import (
    Rule,
    Violation,
    check_actions,
    check_frame_again,
    check_state,
    read_attribute,
    read_frame,
)
from vulcan.model.text import stable_text
from vulcan.parameters import shorten
from vulcan.runtime.monitor import note_answer
from vulcan.runtime.patience import LateAnswer, question

MOST_ANSWERS: Final = 100_000
"""More actions of one state, or outcomes of one action, are taken for a list that never ends."""

NOTABLE: Final = 0.1
"""Seconds from which on it is noted how long an answer took."""

MOST_NAMED: Final = 1000
"""Of so many different lists of actions it is remembered that they keep the rules."""


Found = TypeVar("Found")


class Questions:
    """The questions that a model can be asked, and what becomes of what it raises.

    Parameters
    ----------
    model
        The model to ask.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def label(self, state: Any, action: Any) -> str:
        """Return the text by which people know an action of a state."""
        if not isinstance(state, Start) and hasattr(self.model, "action_label"):
            return str(self._call("action_label", action, state=state, action=action))
        return action.name if isinstance(action, Enum) else stable_text(action)

    @question
    def _call(self, method: str, *arguments: Any, state: Any = None, action: Any = None) -> Any:
        began = perf_counter()
        try:
            answer = getattr(self.model, method)(*arguments)
        except (ModelError, PolicyError):
            raise  # the model, or its `locate`, says itself what is wrong, and where
        except LateAnswer:
            raise self._give_up(method, began, state, action) from None
        except Exception as error:
            message = f"{type(self.model).__name__}.{method} raised {shorten(error)}"
            raise ModelError(Violation(Rule.ANSWERS, message, state, action)) from error
        if (seconds := perf_counter() - began) > NOTABLE:
            note_answer(seconds)
        return answer

    def _give_up(self, method: str, began: float, state: Any, action: Any) -> ModelError:
        seconds = perf_counter() - began
        message = f"{type(self.model).__name__}.{method} gave no answer in {seconds:.1f} s"
        return ModelError(Violation(Rule.ANSWERS, message, state, action))

    @question
    def _ask_model(self, kind: str, state: Any, *action: Any) -> tuple[Any, ...]:
        """Return the actions of a state, or the outcomes of an action, as a tuple."""
        where, began = (state, *action), perf_counter()
        answer = self._call(kind, *where, state=state, action=action[0] if action else None)
        if type(answer) in (list, tuple) and len(answer) <= MOST_ANSWERS:
            return tuple(answer)
        if not isinstance(answer, Iterable) or _is_unordered(answer):
            message = f"{kind} must be a list, in an order that stays, not {shorten(answer)}"
            where = (state, action[0] if action else None)
            raise ModelError(Violation(Rule(f"{kind} are a list"), message, *where, answer))
        try:
            gathered = tuple(islice(answer, MOST_ANSWERS + 1))
        except ModelError:
            raise
        except LateAnswer:
            raise self._give_up(kind, began, state, action[0] if action else None) from None
        except Exception as error:
            message = f"{kind} raised {shorten(error)}"
            raise ModelError(Violation(Rule.ANSWERS, message, *where)) from error
        if len(gathered) > MOST_ANSWERS:
            message = f"more than {MOST_ANSWERS:,} {kind}: does the list end?"
            raise ModelError(Violation(Rule(f"{kind} end"), message, *where))
        return gathered


class ModelReader(Questions):
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
        super().__init__(model)
        self._frame, violations = read_frame(model)
        for violation in violations:
            raise self.sign(ModelError(violation))
        self.horizon: int = self._frame.horizon
        self.discount: float = float(self._frame.discount)
        self.merges: bool = self._frame.merges
        self._first_answers: dict[Any, list[Outcome]] = {}
        self._named: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.root = self._take_care(self._ask_root)
        initial = isinstance(self.root, Start)
        self.levels = self.horizon + initial
        self.discounts = np.full(self.levels, self.discount)
        if initial:
            self.discounts[0] = 1.0
        self.weights = np.concatenate(([1.0], np.cumprod(self.discounts[:-1])))

    def sign(self, error: ModelError) -> ModelError:
        """Return an error that names the model as well."""
        error.violation = error.violation.of(self.model)
        return error

    def refuse_comparison(self, state: Any, error: Exception) -> ModelError:
        """Return the error of a state that can't be looked up among others."""
        message = f"comparing a state with others raised {shorten(error)}"
        return self.sign(ModelError(Violation(Rule.STATES_COMPARE, message, state)))

    def _take_care(self, ask: Callable[..., Found], *where: Any) -> Found:
        """Return what asking gives; whatever goes wrong meanwhile is the model's error.

        An answer is looked at in many ways, any of which may call what a user wrote: hashes,
        comparisons, conversions, texts.
        """
        try:
            return ask(*where)
        except ModelError as error:
            self.sign(error)
            raise
        except VulcanError:
            raise
        except Exception as error:
            message = f"looking at the model's answer raised {shorten(error)}"
            raise self.sign(ModelError(Violation(Rule.ANSWERS, message, *where))) from error

    def _ask_root(self) -> Any:
        root = self._call("initial_state")
        for violation in check_state(root, "the initial state"):
            raise ModelError(violation)
        return root

    def actions(self, state: Any) -> dict[str, Any]:
        """Return the actions of a state by their labels, checked."""
        return self._take_care(self._read_actions, state)

    def _read_actions(self, state: Any) -> dict[str, Any]:
        if isinstance(state, Start):
            actions: tuple[Any, ...] = tuple(state.choices)
        else:
            actions = self._ask_model("actions", state)
            if self._are_names(actions):
                # Most states have the same few actions, so that these need not be checked again.
                if actions not in self._named:
                    self._named[actions] = self._label_actions(state, actions)
                return self._named[actions].copy()
        return self._label_actions(state, actions)

    def _are_names(self, actions: tuple[Any, ...]) -> bool:
        """Whether actions are strings, which are their own labels whatever the state."""
        if hasattr(self.model, "action_label") or len(self._named) >= MOST_NAMED:
            return False
        return set(map(type, actions)) == {str}

    def _label_actions(self, state: Any, actions: tuple[Any, ...]) -> dict[str, Any]:
        labels = [self.label(state, action) for action in actions]
        for violation in check_actions(state, actions, labels):
            raise ModelError(violation)
        return dict(zip(labels, actions, strict=True))

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the outcomes of an action, checked: the safe ones, then the failures.

        Outcomes of probability 0 are omitted, and those that can't be told apart are one; see
        `vulcan.model.observations`. Answers about the root, which the fingerprint asks for as well,
        are remembered.
        """
        return self._take_care(self._read_outcomes, state, action)

    def _read_outcomes(self, state: Any, action: Any) -> list[Outcome]:
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
        return self._examine(state, action, outcomes)

    def _examine(self, state: Any, action: Any, given: tuple[Any, ...]) -> list[Outcome]:
        """Return what can be observed of the outcomes that a model gave, checked."""
        return observe_outcomes(state, action, given)

    def discount_after(self, level: int) -> Number:
        """Return the discount after a decision, as exact as the model gave it."""
        first = level == 0 and isinstance(self.root, Start)
        return 1 if first else self._frame.discount

    def require_steady(self) -> None:
        """Refuse a model whose horizon, discount or merging are no longer what they were."""
        for violation in check_frame_again(self.model, self._frame):
            raise self.sign(ModelError(violation))

    def bound_reward(self, state: Any, step: int) -> float:
        """Return the model's upper bound on the reward still to come, checked to be a number."""
        bound = self._call("reward_to_go_bound", state, step, state=state)
        return self._read_bound("reward_to_go_bound", bound, state)

    def bound_value(self, state: Any, step: int, price: float) -> float:
        """Return the model's upper bound on reward less price times risk, checked likewise.

        Without one, the bound on the reward serves.
        """
        if not hasattr(self.model, "value_to_go_bound"):
            return self.bound_reward(state, step)
        bound = self._call("value_to_go_bound", state, step, price, state=state)
        return self._read_bound("value_to_go_bound", bound, state)

    def _read_bound(self, name: str, bound: Any, state: Any) -> float:
        number = read_number(bound)
        if number is None or math.isnan(number):
            message = f"{name} must be a number, not {describe_number(bound)}"
            violation = Violation(Rule.REWARD_BOUNDS, message, state, None, bound)
            raise self.sign(ModelError(violation))
        return float(number)

    def bound_risk(self, state: Any, action: Any, step: int) -> float:
        """Return the model's lower bound on the risk still to come, checked to be a probability."""
        where = (state, action)
        bound = self._call("risk_to_go_bound", *where, step, state=state, action=action)
        number = read_number(bound)
        if number is None or not 0 <= number <= 1:
            allowed = "a number from 0 to 1"
            message = f"risk_to_go_bound must be {allowed}, not {describe_number(bound)}"
            violation = Violation(Rule.RISK_BOUNDS, message, *where, bound)
            raise self.sign(ModelError(violation))
        return float(number)

    def locate(self, state: Any, action: Any, measurement: Any) -> Any:
        """Return the label or the next state of the outcome that a measurement stands for.

        None is the model's word for a measurement that is impossible.
        """
        where = (state, action)
        return self._call("locate", *where, measurement, state=state, action=action)

    def given(self, state: Any, measurements: Sequence[Any]) -> ModelReader:
        """Return the model given what was measured on the way to a state."""
        return ModelReader(self._call("given", state, measurements, state=state))

    def answers(self, state: Any) -> list[tuple[str, Any, list[Outcome]]]:
        """Return each action of a state with its label and its outcomes."""
        return [
            (label, action, self.outcomes(state, action))
            for label, action in self.actions(state).items()
        ]

    def answer_all(self, states: Sequence[Any]) -> Iterator[list[tuple[str, Any, list[Outcome]]]]:
        """Yield the answers about each of some states."""
        return map(self.answers, states)

    def fingerprint(self) -> str:
        """Return a string that differs between models that answer differently at the start.

        It covers the model's class name, horizon, discount, and all answers about the first
        actions, as far as the model gave them: labels that are the strings of states are omitted. A
        model may set an attribute `fingerprint` to say it better.

        Raises
        ------
        ModelError
            If horizon or discount are no longer what they were.
        """
        self.require_steady()
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
        identity = self._take_care(self._identify)
        text = json.dumps([identity, self.horizon, self.discount, first])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _identify(self) -> str:
        own = read_attribute(self.model, "fingerprint")
        return type(self.model).__name__ if own is None else str(own)


def _is_unordered(answer: object) -> bool:
    return isinstance(answer, str) or (isinstance(answer, Set) and not isinstance(answer, KeysView))
