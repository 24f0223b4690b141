"""The model checker: everything that is wrong with a model, found before it is planned with.

`check_model` walks a model breadth first, one distinct state after the other, and reports every
rule that it breaks. The rules are those of `vulcan.model.rules`, at the first of which a planner
gives up, and some that no planner has the time to check:

    answers repeat          asked twice, a model gives the same answer, and at the end of the walk
                            its root still answers as it did at first
    states stay the same    no call changes a state that was met before
    hashes stay the same    nor its hash
    states compare          states with the same hash can be compared
    merges                  two histories reach equal states only where `merges` is not False

Examples
--------
>>> from vulcan.domains import Bandit
>>> report = check_model(Bandit(horizon=4))
>>> report.ok, report.states, report.evaluations
(True, 211, 336)
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from vulcan.errors import ModelError, OptionError
from vulcan.model.interface import Outcome, Start
from vulcan.model.observations import add_up, group_outcomes, label_outcomes
from vulcan.model.reader import Questions
from vulcan.model.report import MOST_VIOLATIONS, Merged, ModelReport
from vulcan.model.rules import (
    Rule,
    Violation,
    check_actions,
    check_frame,
    check_outcomes,
    check_state,
)
from vulcan.parameters import shorten

__all__ = ["Walk", "check_model"]

Answer = tuple[Any, ...] | None
"""Actions or outcomes; None if the model gave none that can be listed."""


def check_model(model: Any, *, most_states: int = 100_000) -> ModelReport:
    """Walk a model up to its horizon and report every rule that it breaks.

    The walk goes on after a violation wherever it can. Each question is asked twice.

    Parameters
    ----------
    model
        Any object that is meant to be a model; see `vulcan.Model`.
    most_states
        Stop when there are more distinct states than this.

    Returns
    -------
    ModelReport
        Its `ok` says whether the model may be planned with; printed, it says why not.

    Raises
    ------
    OptionError
        If `most_states` is not a whole number of at least 1.

    Examples
    --------
    In a test of your own model:

    >>> from vulcan.domains import Bandit
    >>> report = check_model(Bandit(horizon=3))
    >>> assert report.ok, report
    """
    if type(most_states) is not int or most_states < 1:
        raise OptionError(f"most_states must be a whole number of at least 1, not {most_states!r}")
    walk = Walk(model, most_states)
    walk.run()
    return walk.report()


class _Place:
    """A state that was met, and what it was like then.

    The copy is out of the model's reach. Where a copy is not equal to the state, the state itself
    has to do, and only its hash can tell whether it was changed.
    """

    def __init__(self, state: Any) -> None:
        self.state = state
        self.hash = _try(hash, state)
        copy = _copy(state)
        self.copy = copy if _equal(copy, state) and _try(hash, copy) == self.hash else state
        self.actions: Answer = None
        self.outcomes: list[Answer] = []  # of each action
        self.reached: list[tuple[Any, _Place]] = []  # each with the action that leads there


class Walk(Questions):
    """Asks a model everything, notes what is wrong and goes on, where a reader raises."""

    def __init__(self, model: Any, most_states: int) -> None:
        super().__init__(model)
        self.levels = 0
        self._most_states = most_states
        self._seen: set[Any] = set()
        self._finished = False
        self._violations: list[Violation] = []
        self._violation_count = 0
        self._merged: list[Merged] = []
        self._states = self._terminals = self._evaluations = self._outcomes = 0
        self._most_actions = self._most_outcomes = 0
        self._rewards: tuple[float, float] | None = None
        self._largest_risk = 0.0

    def report(self) -> ModelReport:
        """Return what was found so far."""
        return ModelReport(
            violations=tuple(self._violations),
            violation_count=self._violation_count,
            states=self._states,
            terminals=self._terminals,
            evaluations=self._evaluations,
            outcomes=self._outcomes,
            most_actions=self._most_actions,
            most_outcomes=self._most_outcomes,
            reward_range=self._rewards,
            largest_immediate_risk=self._largest_risk,
            levels=self.levels,
            finished=self._finished,
            merged=tuple(self._merged[:MOST_VIOLATIONS]),
            merged_count=len(self._merged),
        )

    def run(self) -> None:
        """Check the model as such, then its initial state, then all states that it leads to."""
        self._note_all(check_frame(self.model))
        broken = {violation.rule for violation in self._violations}
        if not broken <= {Rule.HORIZON, Rule.DISCOUNT}:
            return
        # Without a horizon only the initial state can be checked; the discount plays no part.
        self.horizon = 0 if Rule.HORIZON in broken else int(self.model.horizon)
        self.merges = bool(getattr(self.model, "merges", True))
        root = self._ask_initial_state()
        if root is None or not self._note_all(check_state(root.state, "the initial state")):
            return
        self._finished = self.horizon > 0
        self.levels = self.horizon + isinstance(root.state, Start)
        if not isinstance(root.state, Start):
            self._seen.add(root.copy)
            self._states = 1
        self._walk(root)
        self._ask_root_again(root)

    def _ask_initial_state(self) -> _Place | None:
        try:
            return _Place(self._call("initial_state"))
        except ModelError as error:
            self._note(error.violation)
            return None

    def _walk(self, root: _Place) -> None:
        """Visit the states breadth first."""
        waiting = deque([(root, 0)])
        while waiting and waiting[0][1] < self.levels:
            place, level = waiting.popleft()
            self._read(place)
            for reached in self._follow(place):
                if self._states == self._most_states:
                    self._finished = False
                    return
                self._states += 1
                waiting.append((reached, level + 1))

    def _read(self, place: _Place) -> None:
        """Ask for the actions of a state and all their outcomes, and check the answers."""
        self._check_unchanged(place)
        actions = place.actions = self._ask(place)
        self._ask_again(actions, place)
        if actions is None:
            return
        labels = [text for action in actions if (text := self._name(place, action)) is not None]
        self._note_all(check_actions(place.copy, actions, labels), place.copy)
        self._terminals += not actions
        self._most_actions = max(self._most_actions, len(actions))
        for action in actions:
            outcomes = self._ask(place, action)
            place.outcomes.append(outcomes)
            self._evaluations += 1
            if outcomes is not None:
                found = check_outcomes(place.copy, action, outcomes)
                sound = self._note_all(found, place.copy, action)
                observed = self._merge(outcomes, place, action) if sound else outcomes
                self._measure(observed, sound)
                # Before the model is asked again: it may reuse its state objects.
                place.reached += [(action, _Place(state)) for state in _next_states(observed)]
            self._ask_again(outcomes, place, action)

    def _follow(self, place: _Place) -> Iterator[_Place]:
        """Yield the states after a state that were never met before."""
        for action, reached in place.reached:
            self._check_unchanged(reached)
            where = (place.copy, action, reached.copy)
            try:
                known = reached.copy in self._seen
                self._seen.add(reached.copy)
            except Exception as error:
                message = f"comparing the next state with others raised {error!r}"
                self._note(Violation(Rule.STATES_COMPARE, message, *where))
                continue
            if not known:
                yield reached
            elif not self.merges:
                message = f"merges is False, but two histories reach {shorten(reached.copy)}"
                self._note(Violation(Rule.MERGES, message, *where))

    def _merge(self, outcomes: tuple[Any, ...], place: _Place, action: Any) -> Sequence[Outcome]:
        """Return what can be observed, and note what can't be told apart."""
        possible = list(_possible(outcomes))
        together = _try(group_outcomes, possible)
        if together is None:  # states that can't be compared are found when they are followed
            return possible
        observed = [add_up(parts) for parts in together]
        self._merged += [
            Merged(place.copy, action, outcome, len(parts))
            for outcome, parts in zip(observed, together, strict=True)
            if len(parts) > 1
        ]
        return observed

    def _measure(self, outcomes: Sequence[Any], sound: bool) -> None:
        possible = list(_possible(outcomes))
        self._outcomes += len(possible)
        self._most_outcomes = max(self._most_outcomes, len(possible))
        if sound:
            rewards = [*(self._rewards or ()), *(float(outcome.reward) for outcome in possible)]
            self._rewards = (min(rewards), max(rewards))
            risk = math.fsum(outcome.probability for outcome in possible if outcome.fails)
            self._largest_risk = max(self._largest_risk, risk)

    # Without an action these ask for the actions of a state, with one for its outcomes.

    def _ask(self, place: _Place, *action: Any) -> Answer:
        state = place.state
        if isinstance(state, Start):
            return state.choices.get(*action) if action else tuple(state.choices)
        try:
            return self._ask_model("outcomes" if action else "actions", state, *action)
        except ModelError as error:
            self._note(replace(error.violation, state=place.copy))
            return None

    def _ask_again(self, first: Answer, place: _Place, *action: Any) -> None:
        if self._check_unchanged(place, *action) and first is not None:
            self._compare(first, self._ask(place, *action), place, *action)
            self._check_unchanged(place, *action)

    def _compare(self, first: Answer, again: Answer, place: _Place, *action: Any) -> None:
        """Note where two answers to the same question differ first."""
        if first is None or again is None:
            return
        kind, agree = "actions", self._agree_on_actions
        if action:
            kind, agree = "outcomes", self._agree_on_outcomes
        value: tuple[Any, Any] | None = (len(first), len(again))
        if len(first) == len(again):
            pairs = zip(first, again, strict=True)
            value = next((pair for pair in pairs if not agree(*pair)), None)
        if value is not None:
            before, after = map(shorten, value)
            message = f"asked again, the {kind} changed from {before} to {after}"
            where = (place.copy, action[0] if action else None)
            self._note(Violation(Rule.ANSWERS_REPEAT, message, *where, value))

    def _ask_root_again(self, root: _Place) -> None:
        """Ask about the root after everything else: there a model that drifts betrays itself."""
        again = self._ask_initial_state()
        if again is None:
            return
        started = isinstance(root.copy, Start) and isinstance(again.copy, Start)
        repeats = not any(violation.rule is Rule.ANSWERS_REPEAT for violation in self._violations)
        if not started and not self._agree_on_states(root.copy, again.copy):
            value = (root.copy, again.copy)
            message = "the initial state was {}, and then {}".format(*map(shorten, value))
            self._note(Violation(Rule.ANSWERS_REPEAT, message, value=value))
        elif root.actions is not None and repeats:
            self._compare(root.actions, self._ask(again), again)
            for action, outcomes in zip(root.actions, root.outcomes, strict=True):
                if outcomes is not None:
                    self._compare(outcomes, self._ask(again, action), again, action)

    def _name(self, place: _Place, action: Any) -> str | None:
        try:
            return self.label(place.state, action)
        except Exception as error:
            message = f"the label of the action raised {error.__cause__ or error!r}"
            self._note(Violation(Rule.ANSWERS, message, place.copy, action))
            return None

    # Policies know actions and outcomes by their labels, so those have to repeat as well.

    def _agree_on_actions(self, one: Any, other: Any) -> bool:
        labels = (_try(self.label, None, action) for action in (one, other))
        return _agree(one, other) and _equal(*labels)

    def _agree_on_outcomes(self, one: Any, other: Any) -> bool:
        if not isinstance(one, Outcome) or not isinstance(other, Outcome):
            return type(one) is type(other)
        labels = (_try(label_outcomes, [outcome]) for outcome in (one, other))
        return (
            _equal(one.probability, other.probability)
            and _equal(one.reward, other.reward)
            and self._agree_on_states(one.state, other.state)
            and _equal(*labels)
        )

    def _agree_on_states(self, one: Any, other: Any) -> bool:
        """Whether two states are the same; only states that merge need an equality."""
        return _equal(one, other) if self.merges else _agree(one, other)

    def _check_unchanged(self, place: _Place, action: Any = None) -> bool:
        """Note a state that is not what it was, and go on with what it was."""
        if not _equal(place.state, place.copy):
            now = _copy(place.state)
            message = f"the model changed the state itself, into {shorten(now)}"
            self._note(Violation(Rule.STATES_STAY, message, place.copy, action, now))
        elif _try(hash, place.state) != place.hash:
            hashes = (place.hash, _try(hash, place.state))
            message = "the hash of the state changed from {} to {}".format(*hashes)
            self._note(Violation(Rule.HASHES_STAY, message, place.copy, action, hashes))
        else:
            return True
        restored = _Place(place.copy)
        place.state, place.hash, place.copy = restored.state, restored.hash, restored.copy
        return False

    def _note(self, violation: Violation) -> None:
        self._violation_count += 1
        if len(self._violations) < MOST_VIOLATIONS:
            self._violations.append(violation)

    def _note_all(self, found: Iterable[Violation], state: Any = None, action: Any = None) -> bool:
        """Note what a check finds and return whether it is nothing; a check that raises counts."""
        before = self._violation_count
        try:
            for violation in found:
                self._note(violation)
        except Exception as error:
            message = f"looking at the model's answer raised {error!r}"
            self._note(Violation(Rule.ANSWERS, message, state, action))
        return self._violation_count == before


def _possible(outcomes: Iterable[Any]) -> Iterator[Outcome]:
    """Yield the outcomes that are not of probability 0."""
    for outcome in outcomes:
        if isinstance(outcome, Outcome) and not _equal(outcome.probability, 0):
            yield outcome


def _next_states(outcomes: Iterable[Any]) -> Iterator[Any]:
    """Yield the states that possible outcomes lead to, if the model can be asked about them."""
    for outcome in _possible(outcomes):
        if not (outcome.fails or outcome.state is None or _try(hash, outcome.state) is None):
            yield outcome.state


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, or both of a kind that equals nothing: NaN."""
    try:
        return one is other or bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124
    except Exception:
        return False


def _agree(one: Any, other: Any) -> bool:
    """Whether two values are equal or, if not even a copy would be, of the same type."""
    return _equal(one, other) or (type(one) is type(other) and not _equal(one, _copy(one)))


def _copy(value: Any) -> Any:
    """Return a copy; the value itself if it can't be copied."""
    copy = _try(deepcopy, value)
    return value if copy is None else copy


def _try(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, None if it raises: users write all sorts of things."""
    try:
        return function(*arguments)
    except Exception:
        return None
