"""The only way into a model: call it, check each answer, merge what cannot be distinguished.

Searches, certificates and `check_model` read a model through `ModelCalls` or `ModelReader`. The
reader applies the rules of `vulcan.model.rules`, names the state, action and value of a violation,
and presents the initial action of a `Start` like any other action.

Levels. Decisions are numbered by *level*. Without an initial action, level = step t. With one,
level 0 is the initial action and level t + 1 is step t. With γ the discount, `discounts[level]`
multiplies the value after a decision (1 after an initial action, γ after a step), and
`weights[level]` is the product of those before it: γ^t at step t.

Observations. A policy acts on what can be observed. An observer distinguishes the outcomes of one
action

    by their labels, where the model gives labels,
    else by their next states (failure counts as one more state),
    else by their rewards, costs and events.

Outcomes that cannot be distinguished are merged into one, with the sum of their probabilities, for
searches and certificates alike: otherwise a certificate would describe a policy that cannot be
executed (`observe_outcomes`). Where two outcomes without labels lead to the same state, the reward
is part of the label, and so are costs and event where the rewards agree. States decide themselves
whether they are equal, also where `merges` is False; they are compared only within one action,
without labels, and if their hashes agree. Where a model has keys, the first state with a key stands
for all with that key (`vulcan.model.keys` tests whether they answer alike).

Strictness. Planners treat equal states as one state, and evaluate the first of them. Two faults of
a model make that wrong, and neither shows in a single answer: *duplicates*, equal states that
differ in something that is not compared and for which the model answers differently, and states
that a call of the model modifies. `StrictReader`, the reader of certificates, looks for both in
samples: everything up to a fixed number, then every second event, every fourth and so on, so that a
long walk is sampled from its beginning to its end. States that agree in all their parts
(`find_difference`) are never evaluated twice.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence, Set
from enum import Enum
from itertools import chain, islice, repeat, zip_longest
from operator import is_
from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace

from vulcan.errors import ModelError, PolicyError, VulcanError
from vulcan.model.answers import (
    Answers,
    Column,
    accept_answers,
    accept_columns,
    label_outcomes,
    observe_outcomes,
)
from vulcan.model.interface import FAILURE, Outcome, Start, stable_text
from vulcan.model.rules import (
    Number,
    Rule,
    Violation,
    check_actions,
    check_state,
    copy_value,
    describe_duplicate,
    describe_number,
    find_difference,
    is_equal,
    is_similar,
    read_attribute,
    read_frame,
    read_number,
    recheck_frame,
)
from vulcan.numerics import ANY, LARGEST_REWARD, NONE
from vulcan.parameters import shorten
from vulcan.runtime.limits import TimeUp, check_time, model_call, note_answer

PORTION: Final = 400  # answers that are checked at once: few stay in the processor's caches
FEWEST: Final = 8  # from which on `outcomes_batch` is called
LARGEST: Final = 8_000  # largest batch
SOON: Final = 1e-2  # seconds that a batch may take before the next one is smaller
BATCH_SAMPLE: Final = 32  # largest number of its answers that are compared before fewer are
SAMPLE_SIZE: Final = 128  # largest number of answers that are evaluated again
MOST_ANSWERS: Final = 100_000  # longer lists of actions or outcomes are assumed to be endless
BETWEEN_LOOKS: Final = 1e-3  # seconds between two looks at the time limit
MOST_BETWEEN: Final = 64  # largest number of calls between them
NOTABLE: Final = 0.1  # seconds from which on the duration of an answer is recorded
MOST_NAMED: Final = 1000  # number of checked lists of actions to remember

SAMPLED_STATES: Final = 1_000
"""States, and arrivals in them, that the strict reader looks at before it samples fewer."""

MOST_DUPLICATES: Final = 1_000  # largest number of evaluations of duplicates

T = TypeVar("T")


class StateNumbers(dict[Any, int]):
    """The numbers of states, in the order in which they were first looked up; NONE for failures."""

    def __init__(self, states: list[Any]) -> None:
        super().__init__({state: number for number, state in enumerate(states)})
        self[FAILURE] = NONE
        self.states = states

    def __missing__(self, state: Any) -> int:
        number = self[state] = len(self.states)
        self.states.append(state)
        return number


class ModelCalls:
    """Calls the methods of a model, and turns what they raise into a `ModelError`."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.merges = True
        self.events: frozenset[str] = frozenset()
        self._looked = 0.0  # when a call looked at the clock
        self._between = {"actions": 1, "outcomes": 1}  # number of calls between two such looks

    def label(self, state: Any, action: Any) -> str:
        """Return the label of an action of a state."""
        if not isinstance(state, Start) and hasattr(self.model, "action_label"):
            return str(self._call("action_label", (action,), state, action))
        return action.name if isinstance(action, Enum) else stable_text(action)

    def is_same_state(self, one: Any, other: Any) -> bool:
        """Return whether two states are the same; they need an equality only where they merge."""
        return is_equal(one, other) if self.merges else is_similar(one, other)

    def is_same_outcome(self, one: Any, other: Any) -> bool:
        """Return whether two outcomes are the same; equal states may have different texts."""
        if not isinstance(one, Outcome) or not isinstance(other, Outcome):
            return type(one) is type(other)
        return (
            is_equal(one.probability, other.probability)
            and is_equal(one.reward, other.reward)
            and is_equal(one.label, other.label)
            and is_equal(one.costs, other.costs)
            and one.event == other.event
            and self.is_same_state(one.state, other.state)
        )

    @model_call
    def _call(
        self, method: str, arguments: Sequence[Any] = (), state: Any = None, action: Any = None
    ) -> Any:
        began = time.perf_counter()
        if began - self._looked > BETWEEN_LOOKS:
            check_time()
            self._looked = began
        if self.events:
            arguments = [x.state if type(x) is Happened else x for x in arguments]
        try:
            answer = getattr(self.model, method)(*arguments)
        except (ModelError, PolicyError):
            raise  # the model, or its `locate`, has described the problem
        except TimeUp:
            raise self._give_up(method, began, state, action) from None
        except Exception as error:
            message = f"{type(self.model).__name__}.{method} raised {shorten(error)}"
            raise ModelError(Violation(Rule.ANSWERS, message, state, action)) from error
        if (seconds := time.perf_counter() - began) > NOTABLE:
            note_answer(seconds)
        return answer

    def _give_up(
        self, method: str, began: float, state: Any = None, action: Any = None
    ) -> ModelError:
        seconds = time.perf_counter() - began
        message = f"{type(self.model).__name__}.{method} gave no answer in {seconds:.1f} s"
        return ModelError(Violation(Rule.ANSWERS, message, state, action))

    @model_call
    def _call_each(self, kind: str, *places: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the actions of states, or the outcomes of (state, action) pairs, as sequences."""
        if self.events:
            return [self._call_list(kind, *place) for place in zip(*places, strict=True)]
        answers: list[Any] = []
        method = getattr(self.model, kind)
        while (done := len(answers)) < len(places[0]):
            end = done + self._between[kind]
            check_time()
            began = time.perf_counter()
            try:
                # What was answered before an exception stays in the list.
                answers.extend(map(method, *(column[done:end] for column in places)))
            except (ModelError, PolicyError):
                raise
            except TimeUp:
                place = (column[len(answers)] for column in places)
                raise self._give_up(kind, began, *place) from None
            except Exception as error:
                message = f"{type(self.model).__name__}.{kind} raised {shorten(error)}"
                place = (column[len(answers)] for column in places)
                raise ModelError(Violation(Rule.ANSWERS, message, *place)) from error
            for k in range(done, len(answers)):
                if type(answers[k]) not in (list, tuple) or len(answers[k]) > MOST_ANSWERS:
                    answers[k] = self._list(kind, answers[k], *(column[k] for column in places))
            seconds = time.perf_counter() - began
            if seconds > NOTABLE:
                note_answer(seconds)
            if seconds > BETWEEN_LOOKS:
                self._between[kind] = max(1, self._between[kind] // 2)
            elif len(answers) == end:
                self._between[kind] = min(2 * self._between[kind], MOST_BETWEEN)
        return answers

    def _call_list(self, kind: str, state: Any, *action: Any) -> Sequence[Any]:
        """Return the actions of a state, or the outcomes of an action, as a sequence."""
        where = (state, *action)
        return self._list(kind, self._call(kind, where, *where), *where)

    @model_call
    def _list(self, kind: str, answer: Any, state: Any, *action: Any) -> Sequence[Any]:
        where, began = (state, *action), time.perf_counter()
        if type(answer) in (list, tuple) and len(answer) <= MOST_ANSWERS:
            return tuple(answer)
        unordered = isinstance(answer, Set) and not isinstance(answer, KeysView)
        if not isinstance(answer, Iterable) or unordered or isinstance(answer, str):
            message = f"{kind} must be a list with a fixed order, not {shorten(answer)}"
            where = (state, action[0] if action else None)
            raise ModelError(Violation(Rule(f"{kind} are a list"), message, *where, answer))
        try:
            gathered = tuple(islice(answer, MOST_ANSWERS + 1))
        except ModelError:
            raise
        except TimeUp:
            raise self._give_up(kind, began, *where) from None
        except Exception as error:
            message = f"{kind} raised {shorten(error)}"
            raise ModelError(Violation(Rule.ANSWERS, message, *where)) from error
        if len(gathered) > MOST_ANSWERS:
            message = f"more than {MOST_ANSWERS:,} {kind}; the list may be endless"
            raise ModelError(Violation(Rule(f"{kind} end"), message, *where))
        return gathered


class _Sample:
    """Takes the first `size` events, then every second one, every fourth and so on."""

    def __init__(self, size: int) -> None:
        self._size, self._stride = size, 1
        self._seen = self._taken = 0

    def take(self) -> bool:
        """Return whether the next event is in the sample."""
        return bool(self.choose(1))

    def choose(self, count: int) -> list[int]:
        """Return which of the next events are in the sample, counted from 0."""
        before, chosen = self._seen, list[int]()
        self._seen += count
        number = before + self._stride - before % self._stride
        while number <= self._seen:
            chosen.append(number - before - 1)
            self._taken += 1
            if self._taken % self._size == 0:
                self._stride *= 2
            number += self._stride - number % self._stride
        return chosen


class Happened:
    """A state after limited events: the model's own state, and which of them have happened."""

    __slots__ = ("events", "state")

    def __init__(self, state: Any, events: frozenset[str]) -> None:
        self.state, self.events = state, events

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Happened)
            and self.events == other.events
            and bool(self.state == other.state)
        )

    def __hash__(self) -> int:
        return hash((self.state, self.events))

    def __str__(self) -> str:
        return stable_text(self.state)

    def __repr__(self) -> str:
        return f"{self.state!r} after {', '.join(sorted(self.events))}"


class ModelReader(ModelCalls):
    """Evaluates a model and checks each answer.

    `root` is the initial state, or the `Start`, and `levels` the number of decisions in the longest
    history; see the head of this module for `discounts` and `weights`. With some limited `events`
    states know which of them have happened (`Happened`).
    """

    def __init__(self, model: Any, events: frozenset[str] = frozenset()) -> None:
        super().__init__(model)
        self.events = events
        self._frame, violations = read_frame(model)
        for violation in violations:
            raise ModelError(violation.of(model))
        self.horizon, discount, self.merges = self._frame
        self.has_keys = hasattr(model, "key")
        self.merges = self.merges or self.has_keys
        self._of_key: dict[Any, Any] = {}  # the first state with each key, which stands for all
        self.discount = float(discount)
        least = self._guard(read_attribute, model, "least_reward")
        limits = (-LARGEST_REWARD, LARGEST_REWARD, "a finite number")
        self.least_reward = None if least is None else self._require("least_reward", least, *limits)
        self.compiled: Any = None  # the compiled form, if a search evaluates it
        self._kept: list[tuple[Any, Any, Any]] = []  # answers to evaluate again
        self._sample, self._batched = _Sample(SAMPLE_SIZE), _Sample(BATCH_SAMPLE)
        self._portion = PORTION  # pairs of a batch
        self._root_outcomes: dict[Any, list[Outcome]] = {}
        self._named: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.root = self.represent(self._guard(self._read_root))
        initial = isinstance(self.root, Start)
        self.levels = self.horizon + initial
        self.discounts = np.full(self.levels, self.discount)
        if initial:
            self.discounts[0] = 1.0
        self.weights = np.concatenate(([1.0], np.cumprod(self.discounts[:-1])))

    def actions(self, state: Any) -> dict[str, Any]:
        """Return the actions of a state by their labels, checked."""
        return self._guard(self._read_actions, state)

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the outcomes of an action, checked and merged: safe ones, then failures.

        Outcomes of probability 0 are omitted. Those of the root, which the fingerprint needs as
        well, are cached.
        """
        if state is not self.root:
            return self._guard(self._read_outcomes, state, action)
        if action not in self._root_outcomes:
            self._root_outcomes[action] = self._guard(self._read_outcomes, state, action)
        return self._root_outcomes[action]

    def evaluate(self, state: Any) -> list[tuple[str, Any, list[Outcome]]]:
        """Return each action of a state with its label and its outcomes."""
        return [
            (label, action, self.outcomes(state, action))
            for label, action in self.actions(state).items()
        ]

    def evaluate_pairs(self, pairs: Sequence[tuple[Any, Any]]) -> list[list[Outcome]]:
        """Return the outcomes of (state, action) pairs."""
        return [self.outcomes(*pair) for pair in pairs]

    def list_actions(self, states: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the actions of each state by their labels, checked, and not to be modified."""
        try:
            return self._guard(self._list_actions, states) if states else []
        except ModelError as error:
            if error.violation.state is not states:
                raise
            return list(map(self.actions, states))  # one by one: errors name the state

    def read(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        """Return the outcomes of (state, action) pairs, checked and merged, as columns."""
        return self.read_arrays(states, actions).list_states()

    def read_arrays(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        """Return the same, where states may be an array."""
        if not states:
            return Answers.gather(())
        root = self.root
        if any(map(is_, states, repeat(root))):
            return Answers.gather(list(map(self.outcomes, states, actions)))
        try:
            return self._guard(self._read_all, states, actions)
        except ModelError as error:
            if error.violation.state is not states:
                raise
            return Answers.gather(list(map(self.outcomes, states, actions)))

    def look_up(self, find: Callable[[Any], T], states: Sequence[Any]) -> list[T]:
        """Return what is found for each state; an error of a comparison names the state."""
        try:
            return list(map(find, states))
        except Exception:
            for state in states:
                try:
                    find(state)
                except Exception as error:
                    raise self.refuse_comparison(state, error) from error
            raise

    def discount_after(self, level: int) -> Number:
        """Return the discount after a decision, as exact as the model gave it."""
        return 1 if level == 0 and isinstance(self.root, Start) else self._frame[1]

    def default_label(self, state: Any, actions: Mapping[str, Any]) -> str:
        """Return the label of the model's own default action of a state."""
        action = self._call("default_action", (state,), state)
        for label, known in actions.items():
            if is_equal(known, action):
                return label
        message = f"default_action must be one of the actions of the state, not {shorten(action)}"
        raise self._refuse(Rule.ACTIONS_EXIST, message, state, action)

    def find_key(self, state: Any) -> Any:
        """Return the key of a state."""
        return self._call("key", (state,), state)

    def represent(self, state: Any) -> Any:
        """Return the state that stands for all with the key of this one; itself without keys."""
        if not self.has_keys or state is FAILURE or isinstance(state, Start) or state is None:
            return state
        if type(state) is Happened:
            return Happened(self.represent(state.state), state.events)
        key = self.find_key(state)
        try:
            return self._of_key.setdefault(key, state)
        except Exception as error:
            message = f"the key {shorten(key)} can't be hashed or compared: {shorten(error)}"
            raise self._refuse(Rule.KEYS, message, state, None, key) from error

    def represent_all(self, outcomes: Iterable[Any]) -> tuple[Any, ...]:
        """Return outcomes that lead to the states that stand for theirs."""
        return tuple(
            replace(outcome, state=self.represent(outcome.state))
            if isinstance(outcome, Outcome)
            else outcome
            for outcome in outcomes
        )

    def read_both(self, state: Any, action: Any) -> tuple[tuple[Any, ...], list[Outcome]]:
        """Return the outcomes of an action as the model gave them, and as planners see them."""
        own = state.choices[action] if isinstance(state, Start) else None
        given = tuple(self._call_list("outcomes", state, action) if own is None else own)
        return given, self._guard(ModelReader._observe, self, state, action, given)

    def subgoals(self, state: Any) -> tuple[Any, Sequence[Any]]:
        """Return where a state is, and the places that are worth reaching from it, checked."""
        answer = self._call("subgoals", (state,), state)
        try:
            place, others = answer
            hash(place)
            others = tuple(others)
            hash(others)
        except Exception as error:
            message = f"subgoals must be a place and a list of places, not {shorten(answer)}"
            raise self._refuse(Rule.ANSWERS, message, state, None, answer) from error
        return place, others

    def bound_continuation(self, claim: str, state: Any, level: int) -> tuple[Number, Number]:
        """Return the largest risk and the least reward from a state on, by a claim of the model.

        With `ANY`, no outcome pays less than `least_reward`, whatever happens. With `DEFAULT`,
        these are the model's `default_bounds`, if its default action is followed. `level` is the
        number of decisions before the state.
        """
        step = level - isinstance(self.root, Start)
        if claim == ANY:
            least, steps = min(0.0, float(self.least_reward or 0)), self.horizon - step
            most = steps if self.discount == 1 else min(steps, 1 / (1 - self.discount))
            return 1, least * most * (1 + 1e-12)  # more than the product is rounded by
        bounds = self._call("default_bounds", (state, step), state)
        pair = bounds if isinstance(bounds, tuple | list) and len(bounds) == 2 else (None, None)
        risk, reward = read_number(pair[0]), read_number(pair[1])
        finite = reward is not None and -LARGEST_REWARD <= reward <= LARGEST_REWARD
        if risk is None or not 0 <= risk <= 1 or reward is None or not finite:
            allowed = "a risk from 0 to 1 and a finite reward"
            message = f"default_bounds must be {allowed}, not {shorten(bounds)}"
            raise self._refuse(Rule.RISK_BOUNDS, message, state, None, bounds)
        return risk, reward

    def bound_reward(self, state: Any, step: int) -> float:
        """Return the model's upper bound on the reward to go, checked to be a number."""
        return self._bound("reward_to_go_bound", state, step)

    def bound_value(self, state: Any, step: int, price: float) -> float:
        """Return the model's upper bound on reward - price · risk, or else on the reward."""
        if not hasattr(self.model, "value_to_go_bound"):
            return self.bound_reward(state, step)
        return self._bound("value_to_go_bound", state, step, price)

    def bound_risk(self, state: Any, action: Any, step: int) -> float:
        """Return the model's lower bound on the risk to go, checked to be a probability."""
        bound = self._call("risk_to_go_bound", (state, action, step), state, action)
        limits = (0, 1, "a number from 0 to 1", Rule.RISK_BOUNDS)
        return float(self._require("risk_to_go_bound", bound, *limits, state, action))

    def _bound(self, method: str, state: Any, *arguments: Any) -> float:
        bound = self._call(method, (state, *arguments), state)
        limits = (-math.inf, math.inf, "a number", Rule.REWARD_BOUNDS)
        return float(self._require(method, bound, *limits, state))

    def _require(
        self,
        name: str,
        value: Any,
        low: float,
        high: float,
        allowed: str,
        rule: Rule = Rule.REWARD_BOUNDS,
        state: Any = None,
        action: Any = None,
    ) -> Number:
        """Return a number of the model, or raise the error that says what is allowed."""
        number = read_number(value)
        if number is None or not low <= number <= high:
            message = f"{name} must be {allowed}, not {describe_number(value)}"
            raise self._refuse(rule, message, state, action, value)
        return number

    def locate(self, state: Any, action: Any, measurement: Any) -> Any:
        """Return the label or next state of a measured outcome; None if it is impossible."""
        return self._call("locate", (state, action, measurement), state, action)

    def fingerprint(self) -> str:
        """Return a string that differs between models that differ at the start.

        It covers the model's class name, or its attribute `fingerprint`, the horizon, the discount,
        and the actions and outcomes of the root; labels that are texts of states are omitted.
        """
        if self.events:  # which label their outcomes
            return ModelReader(self.model).fingerprint()
        for violation in recheck_frame(self.model, self._frame):
            raise ModelError(violation.of(self.model))
        first = []
        for label, action in self.actions(self.root).items():
            outcomes = self.outcomes(self.root, action)
            seen = [
                (str(o.label), float(o.probability), float(o.reward), o.fails) for o in outcomes
            ]
            first.append((label, seen))
        own = self._guard(read_attribute, self.model, "fingerprint")
        identity = type(self.model).__name__ if own is None else self._guard(str, own)
        text = json.dumps([identity, self.horizon, self.discount, first])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def sample(
        self,
        states: Sequence[Any],
        available: Sequence[Mapping[str, Any]],
        places: Sequence[Any],
        taken: Sequence[Any],
        answers: Answers,
    ) -> None:
        """Keep a sample of answers, for `require_repeatable`.

        These are the actions of states, and the outcomes of (state, action) pairs.
        """
        if states and isinstance(states[0], Start):
            return  # its choices are no answers
        for k in self._sample.choose(len(states)):
            self._kept.append((states[k], None, list(available[k])))
        if chosen := self._sample.choose(len(places)):
            kept = answers.take(chosen)
            self._kept += [(places[k], taken[k], (kept, i)) for i, k in enumerate(chosen)]

    def require_repeatable(self, may_go_on: Callable[[], bool]) -> None:
        """Raise a `ModelError` if a sample of the answers differs when evaluated again.

        A proof depends on all answers, not only on those where the policy leads. Each evaluation
        is done twice in a row: a model that alternates between two answers contradicts itself at
        once, whatever its other answers were. `may_go_on` says whether there is time for another.
        """
        # In random order, so that the first few already come from all parts of the search.
        size = min(SAMPLE_SIZE, len(self._kept))
        self._kept = random.Random(0).sample(self._kept, size)  # noqa: S311
        while self._kept:
            for _ in range(2):
                if not may_go_on():
                    return
                self._compare_again(*self._kept[-1])
            self._kept.pop()  # other searches with this reader need not compare it again

    def _compare_again(self, state: Any, action: Any, before: Any) -> None:
        value: tuple[Any, Any] | None
        if action is None:
            now: Sequence[Any] = list(self.actions(state))
            kind, value = "actions", None if now == before else (before, now)
        else:
            now, (kept, k) = self._guard(self._read_outcomes, state, action), before
            (before,) = kept.take([k]).split()
            kind, value = "number of outcomes", (len(before), len(now))
            if len(now) == len(before):
                pairs = zip(before, now, strict=True)
                changed = (pair for pair in pairs if not self.is_same_outcome(*pair))
                kind, value = "outcomes", next(changed, None)
        if value is not None:
            text = "evaluated again, the {} changed from {} to {}"
            message = text.format(kind, *map(shorten, value))
            raise self._refuse(Rule.ANSWERS_REPEAT, message, state, action, value)

    def refuse_comparison(self, state: Any, error: Exception) -> ModelError:
        """Return the error for a state whose comparison with others raised."""
        message = f"comparing a state with others raised {shorten(error)}"
        return self._refuse(Rule.STATES_COMPARE, message, state)

    def _refuse(self, rule: Rule, message: str, *where: Any) -> ModelError:
        """Return the error for a broken rule; `where` is the state, the action and the value."""
        return ModelError(Violation(rule, message, *where).of(self.model))

    def _guard(self, read: Callable[..., T], *where: Any) -> T:
        """Return what `read` returns; any exception in it is an error of the model.

        Reading an answer may run user code in many places: hashes, comparisons, conversions, texts.
        """
        try:
            return read(*where)
        except ModelError as error:
            error.violation = error.violation.of(self.model)
            raise
        except VulcanError:
            raise
        except Exception as error:
            message = f"reading the model's answer raised {shorten(error)}"
            raise self._refuse(Rule.ANSWERS, message, *where) from error

    def _read_root(self) -> Any:
        root = self._call("initial_state")
        for violation in check_state(root, "the initial state"):
            raise ModelError(violation)
        return root

    def _read_actions(self, state: Any) -> dict[str, Any]:
        if isinstance(state, Start):
            return self._label_actions(state, tuple(state.choices))
        return self._name_actions(state, tuple(self._call_list("actions", state))).copy()

    def _list_actions(self, states: Sequence[Any]) -> list[dict[str, Any]]:
        if isinstance(states[0], Start):
            return list(map(self._read_actions, states))
        given = list(map(tuple, self._call_each("actions", states)))
        named = dict[int, dict[str, Any]]()  # many states return the very same tuple
        for state, actions in zip(states, given, strict=True):
            if id(actions) not in named:
                named[id(actions)] = self._name_actions(state, actions)
        return [named[id(actions)] for actions in given]

    def _name_actions(self, state: Any, actions: tuple[Any, ...]) -> dict[str, Any]:
        """Return the actions of a state by their labels."""
        if hasattr(self.model, "action_label") or not {str}.issuperset(map(type, actions)):
            return self._label_actions(state, actions)
        # Strings are their own labels. Most states have the same few, which are checked once.
        known = self._named.get(actions)
        if known is None:
            known = self._label_actions(state, actions)
            if len(self._named) < MOST_NAMED:
                self._named[actions] = known
        return known

    def _label_actions(self, state: Any, actions: tuple[Any, ...]) -> dict[str, Any]:
        labels = [self.label(state, action) for action in actions]
        for violation in check_actions(state, actions, labels):
            raise ModelError(violation)
        return dict(zip(labels, actions, strict=True))

    def _read_outcomes(self, state: Any, action: Any) -> list[Outcome]:
        if isinstance(state, Start):
            outcomes: Sequence[Any] = state.choices[action]
        else:
            outcomes = self._call_list("outcomes", state, action)
        observed = self._observe(state, action, outcomes)
        return self._note_events(state, observed) if self.events else observed

    def _read_all(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        special = bool(self.events) or self.has_keys  # states are not those of the model
        batch = not special and len(states) >= FEWEST and hasattr(self.model, "outcomes_batch")
        read, parts, done = self._read_batch if batch else self._read_each, list[Answers](), 0
        while done < len(states):
            some = slice(done, done := done + (self._portion if batch else PORTION))
            parts.append(read(states[some], actions[some]))
        return Answers.join(parts) if len(parts) > 1 else parts[0]

    def _read_each(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        special = self.events or self.has_keys
        given = self._call_each("outcomes", states, actions)
        return self._accept(states, actions, given, None if special else accept_answers(given))

    def _read_batch(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        began = time.perf_counter()
        answers = self._call_batch(states, actions)
        late = time.perf_counter() - began > SOON
        self._portion = max(FEWEST, self._portion // 2) if late else min(2 * self._portion, LARGEST)
        found = accept_columns(answers)
        found = self._accept(states, actions, answers.split() if found is None else (), found)
        if not (compared := self._batched.choose(len(states))):
            return found
        alone = self._read_each([states[k] for k in compared], [actions[k] for k in compared])
        for k, *both in zip(compared, found.take(compared).split(), alone.split(), strict=True):
            pairs = zip_longest(*both) if both[0] != both[1] else ()
            for value in (pair for pair in pairs if not self.is_same_outcome(*pair)):
                text = "outcomes_batch has {}, where outcomes has {}".format(*map(shorten, value))
                raise ModelError(Violation(Rule.ANSWERS_REPEAT, text, states[k], actions[k], value))
        return found

    def _accept(
        self,
        states: Sequence[Any],
        actions: Sequence[Any],
        given: Sequence[Sequence[Any]],
        found: Answers | None,
    ) -> Answers:
        """Return answers that passed the quick checks; else apply all rules to what was given."""
        least = self.least_reward
        if found is not None:
            if least is None or min(found.reward) >= least:
                return found
            given = found.split()
        observed = list(map(self._observe, states, actions, given))
        if self.events:
            observed = list(map(self._note_events, states, observed))
        return Answers.gather(observed)

    def _call_batch(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        """Return what `outcomes_batch` answers, not checked yet except that it has columns."""
        answer = self._call("outcomes_batch", (states, actions))
        try:
            probability, reward, after, *labels = answer
            numbers = [np.asarray(column) for column in (probability, reward)]
            (shape,) = {column.shape for column in numbers}
            size = shape[0] * shape[1]
            label = list(chain.from_iterable(labels[0])) if labels else [None] * size
            state: Column
            proper = {column.dtype.kind for column in numbers} <= set("fiu")
            proper &= len(shape) == 2 and shape[0] == len(states) and len(labels) < 2
            if isinstance(after, np.ndarray) and np.issubdtype(after.dtype, np.integer):
                proper &= after.shape[:2] == shape and after.ndim < 4
                state = after.astype(np.int64, casting="safe").reshape(size, *after.shape[2:])
            else:
                state = [FAILURE if own is None else own for own in chain.from_iterable(after)]
            proper &= len(state) == size == len(label)
        except (TypeError, ValueError, IndexError):
            proper = False
        if not proper:
            message = (
                "outcomes_batch must return probabilities, rewards, next states and perhaps "
                f"labels, each with {len(states)} rows of the same length, not {shorten(answer)}"
            )
            raise ModelError(Violation(Rule.OUTCOMES_LISTED, message, states[0], actions[0]))
        chances, rewards = (column.astype(float).ravel() for column in numbers)
        counts = np.full(shape[0], shape[1], np.intp)
        return Answers(counts, chances, rewards, state, label, [()] * size, [None] * size)

    def _note_events(self, state: Any, outcomes: list[Outcome]) -> list[Outcome]:
        """Return outcomes whose states know which events have happened."""
        before = state.events if type(state) is Happened else frozenset()
        if not before and self.events.isdisjoint(outcome.event for outcome in outcomes):
            return outcomes
        noted = []
        for outcome, label in zip(outcomes, label_outcomes(outcomes), strict=True):
            after = before | self.events.intersection((outcome.event,))
            safe = bool(after) and not outcome.fails
            state = Happened(outcome.state, after) if safe else outcome.state
            noted.append(replace(outcome, state=state, label=label))
        return noted

    def _observe(self, state: Any, action: Any, given: Sequence[Any]) -> list[Outcome]:
        shown = self.represent_all(given) if self.has_keys else given
        outcomes = observe_outcomes(state, action, shown)
        least = self.least_reward
        if least is not None and any(outcome.reward < least for outcome in outcomes):
            paid = min(float(outcome.reward) for outcome in outcomes)
            message = f"reward {paid!r} is below least_reward {float(least)!r}"
            raise ModelError(Violation(Rule.REWARD_BOUNDS, message, state, action, paid))
        return outcomes


class StrictReader(ModelReader):
    """A reader that also looks for duplicates and modified states; see the head of this module."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._states, self._arrivals = _Sample(SAMPLED_STATES), _Sample(SAMPLED_STATES)
        self._calls = _Sample(100)  # in which to look for a modified state
        self._visited: dict[Any, _Visited] = {self.root: _Visited(self.root)}
        self._waiting: deque[tuple[_Visited, Any, str | None]] = deque()
        self._duplicates_evaluated = 0

    def _read_actions(self, state: Any) -> dict[str, Any]:
        actions = super()._read_actions(state)
        if state in self._visited:
            self._note(state, list(actions))
        return actions

    def _list_actions(self, states: Sequence[Any]) -> list[dict[str, Any]]:
        found = super()._list_actions(states)
        for k in self._find_visited(states):
            self._note(states[k], list(found[k]))
        return found

    def _read_outcomes(self, state: Any, action: Any) -> list[Outcome]:
        outcomes = super()._read_outcomes(state, action)
        if state in self._visited:
            self._note(state, outcomes, action)
        return outcomes

    def _read_all(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        found = super()._read_all(states, actions).list_states()
        if self.merges and not self.has_keys:  # else `_observe` has noted them
            self._arrive([state for state in found.state if state is not FAILURE])
        for k in self._find_visited(states):
            self._note(states[k], *found.take([k]).split(), actions[k])
        return found

    def _find_visited(self, states: Sequence[Any]) -> list[int]:
        visited = map(self._visited.__contains__, states)
        return [k for k, known in enumerate(visited) if known]

    def _call_each(self, kind: str, *places: Sequence[Any]) -> list[Sequence[Any]]:
        answers: list[Sequence[Any]] = []

        def go_on(end: int | None) -> None:
            rest = [column[len(answers) : end] for column in places]
            answers.extend(super(StrictReader, self)._call_each(kind, *rest))

        for k in self._calls.choose(len(places[0])):
            go_on(k)
            answers.append(self._call_watched(kind, *(column[k] for column in places)))
        go_on(None)
        return answers

    def _call_list(self, kind: str, state: Any, *action: Any) -> Sequence[Any]:
        call = self._call_watched if self._calls.take() else super()._call_list
        return call(kind, state, *action)

    def _call_watched(self, kind: str, state: Any, *action: Any) -> Sequence[Any]:
        """Call the model, and refuse it if that modifies the state."""
        before, number = copy_value(state), hash(state)
        comparable = is_equal(before, state)
        answer = super()._call_list(kind, state, *action)
        if (comparable and not is_equal(before, state)) or hash(state) != number:
            message = f"the model changed the state itself when it returned its {kind}"
            where = (before, action[0] if action else None)
            raise ModelError(Violation(Rule.STATES_STAY, message, *where, state))
        return answer

    def _observe(self, state: Any, action: Any, given: Sequence[Any]) -> list[Outcome]:
        observed = super()._observe(state, action, given)
        # Where nothing merges, equal next states of one action still do.
        if self.merges or len(observed) < len(given):
            self._arrive([o.state for o in given if o.state is not FAILURE and o.probability])
        return observed

    def _arrive(self, states: Sequence[Any]) -> None:
        """Note next states: a sample of them, and those that equal one of the sample."""
        find: Callable[[Any], _Visited | None] = self._visited.get
        if self.has_keys:
            find = lambda state: self._visited.get(self.represent(state))  # noqa: E731
        found = self.look_up(find, states)
        unknown = [state for state, known in zip(states, found, strict=True) if not known]
        if new := [unknown[k] for k in self._states.choose(len(unknown))]:
            for state in new:
                self._visited.setdefault(self.represent(state), _Visited(state))
            found = self.look_up(find, states)
        pairs = zip(found, states, strict=True)
        again = [(known, own) for known, own in pairs if known and known.state is not own]
        for visited, state in (again[k] for k in self._arrivals.choose(len(again))):
            if visited.add(state):
                self._waiting += ((visited, state, label) for label in visited.answers)

    def _note(self, state: Any, answer: Sequence[Any], *action: Any) -> None:
        """Remember an answer, and evaluate the duplicates of the state as well."""
        if isinstance(state, Start):
            return
        visited = self._visited[state]
        visited.begin(state)
        label = self.label(state, *action) if action else None
        visited.answers[label] = answer
        self._waiting += ((visited, duplicate, label) for duplicate in visited.duplicates)
        while self._waiting:
            self._compare_duplicate(*self._waiting.popleft())

    def _compare_duplicate(self, visited: _Visited, duplicate: Any, label: str | None) -> None:
        if self._duplicates_evaluated == MOST_DUPLICATES:
            return
        self._duplicates_evaluated += 1
        before = visited.answers[label]
        actions = super()._read_actions(duplicate)
        answer: Sequence[Any] = list(actions)
        agrees = answer == before
        if label is not None and label in actions:
            answer = super()._read_outcomes(duplicate, actions[label])
            agrees = len(answer) == len(before) and all(map(self.is_same_outcome, before, answer))
        if not agrees:
            answers = (before, answer)
            raise ModelError(describe_duplicate(visited.state, duplicate, label, answers))


class _Visited:
    """A visited state, the answers about it by label (None for its actions), and its duplicates."""

    __slots__ = ("answers", "duplicates", "state")

    def __init__(self, state: Any) -> None:
        self.state = state
        self.answers: dict[str | None, Sequence[Any]] = {}
        self.duplicates: list[Any] = []

    def add(self, state: Any) -> bool:
        """Add an equal state, and return whether it is a new duplicate."""
        new = all(find_difference(known, state) for known in (self.state, *self.duplicates))
        if new:
            self.duplicates.append(state)
        return new

    def begin(self, state: Any) -> None:
        """Let the first state that is evaluated be the one that duplicates are compared with."""
        if state is not self.state and not self.answers:
            known, self.state, self.duplicates = (self.state, *self.duplicates), state, []
            for other in known:
                self.add(other)
