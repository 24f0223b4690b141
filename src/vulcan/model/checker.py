"""The model checker: everything that is wrong with a model, found before it is planned with.

`check_model` walks a model breadth first, one distinct state after the other, and reports every
rule that it breaks. The rules are those of `vulcan.model.rules`, at the first of which a planner
gives up, and some that no planner has the time to check:

    answers repeat          asked twice, a model gives the same answer, and at the end of the walk
                            its root still answers as it did at first
    states stay the same    no call changes a state that was met before
    hashes stay the same    nor its hash
    states compare          states with the same hash can be compared
    equal states are alike  states that are equal, but differ in what is not compared, answer the
                            same
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from vulcan.errors import ModelError, OptionError
from vulcan.model.agreement import Agreement
from vulcan.model.interface import Outcome, Start
from vulcan.model.likeness import attempt, copy_value, find_difference, is_equal
from vulcan.model.met_state import Answer, MetState, possible
from vulcan.model.observations import add_up, group_outcomes, label_outcomes, make_plain
from vulcan.model.reader import Questions
from vulcan.model.report import MOST_VIOLATIONS, Merged, ModelReport
from vulcan.model.rules import (
    Rule,
    Violation,
    check_actions,
    check_frame_again,
    check_outcomes,
    check_state,
    read_frame,
    refuse_double,
)
from vulcan.parameters import shorten

__all__ = ["Walk", "check_model"]

MOST_DOUBLES: Final = 10_000
"""So many states are asked that equal others and are not alike."""

MOST_OF_ONE: Final = 20
"""So many of them that equal the same state."""


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


class Walk(Questions):
    """Asks a model everything, notes what is wrong and goes on, where a reader raises."""

    def __init__(self, model: Any, most_states: int) -> None:
        super().__init__(model)
        self.levels = 0
        self._most_states = most_states
        self._seen: dict[Any, list[Any]] = {}  # each with itself, and those that are not alike
        self._finished = False
        self._violations: list[Violation] = []
        self._violation_count = 0
        self._merged: list[Merged] = []
        self._states = self._terminals = self._evaluations = self._outcomes = self._doubles = 0
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
            doubles=self._doubles,
        )

    def run(self) -> None:
        """Check the model as such, then its initial state, then all states that it leads to."""
        frame, violations = read_frame(self.model)
        self._note_all(violations)
        broken = {violation.rule for violation in violations}
        if not broken <= {Rule.HORIZON, Rule.DISCOUNT}:
            return
        # Without a horizon only the initial state can be checked; the discount plays no part.
        self.horizon, self.merges = frame.horizon, frame.merges
        self._agreement = Agreement(self, frame.merges)
        root = self._ask_initial_state()
        if root is None or not self._note_all(check_state(root.state, "the initial state")):
            return
        self._finished = self.horizon > 0
        self.levels = self.horizon + isinstance(root.state, Start)
        if not isinstance(root.state, Start):
            self._seen[root.copy] = [root.copy]
            self._states = 1
        self._walk(root)
        self._ask_root_again(root)
        self._note_all(check_frame_again(self.model, frame) if not broken else ())

    def _ask_initial_state(self) -> MetState | None:
        try:
            return MetState(self._call("initial_state"))
        except ModelError as error:
            self._note(error.violation)
            return None

    def _walk(self, root: MetState) -> None:
        """Visit the states breadth first."""
        waiting = deque([(root, 0)])
        while waiting and waiting[0][1] < self.levels:
            place, level = waiting.popleft()
            if place.equal is None:
                self._read(place)
            else:
                self._read_double(place)
            for reached in self._follow(place):
                if reached.equal is None:
                    if self._states == self._most_states:
                        self._finished = False
                        return
                    self._states += 1
                waiting.append((reached, level + 1))

    def _read(self, place: MetState) -> None:
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
                place.reach(action, observed, outcomes)
            self._ask_again(outcomes, place, action)

    def _read_double(self, place: MetState) -> None:
        """Ask a state and one that equals it the same, and compare what they answer."""
        one = MetState(place.equal)
        actions = (self._ask(one), self._ask(place))
        alike = self._compare_doubles(one, place, actions)
        for action in actions[1] or () if alike else ():
            outcomes = (self._ask(one, action), self._ask(place, action))
            if not self._compare_doubles(one, place, outcomes, action):
                return
            place.reach(action, (), outcomes[1] or ())

    def _follow(self, place: MetState) -> Iterator[MetState]:
        """Yield the states after a state that were never met before, and doubles of others."""
        for action, reached, part in place.reached:
            self._check_unchanged(reached)
            where = (place.copy, action, reached.copy)
            try:
                known = self._seen.setdefault(reached.copy, [])
            except Exception as error:
                message = f"comparing the next state with others raised {shorten(error)}"
                self._note(Violation(Rule.STATES_COMPARE, message, *where))
                continue
            if not known:
                known.append(reached.copy)
                yield reached
            elif self.merges or part:
                if self._is_double(reached.copy, known):
                    reached.equal = known[0]
                    yield reached
            else:
                message = f"merges is False, but two histories reach {shorten(reached.copy)}"
                self._note(Violation(Rule.MERGES, message, *where))

    def _is_double(self, state: Any, known: list[Any]) -> bool:
        """Whether a state equals others and is like none of them; if so it is one of them."""
        if self._doubles == MOST_DOUBLES or len(known) > MOST_OF_ONE:
            return False
        if not all(find_difference(other, state) for other in known):
            return False
        known.append(state)
        self._doubles += 1
        return True

    def _merge(self, outcomes: tuple[Any, ...], place: MetState, action: Any) -> Sequence[Outcome]:
        """Return what can be observed, and note what can't be told apart."""
        counted = list(possible(outcomes))
        together = attempt(group_outcomes, counted)
        if together is None:  # states that can't be compared are found when they are followed
            return counted
        observed = [add_up(parts) for parts in together]
        self._merged += [
            Merged(place.copy, action, outcome, len(parts))
            for outcome, parts in zip(observed, together, strict=True)
            if len(parts) > 1
        ]
        try:
            label_outcomes(observed)
        except ModelError as error:
            where = {"state": place.copy, "action": action, "value": error.violation.state}
            self._note(replace(error.violation, **where))
        return observed

    def _measure(self, outcomes: Sequence[Any], sound: bool) -> None:
        counted = list(possible(outcomes))
        self._outcomes += len(counted)
        self._most_outcomes = max(self._most_outcomes, len(counted))
        if sound:
            rewards = [*(self._rewards or ()), *(float(outcome.reward) for outcome in counted)]
            self._rewards = (min(rewards), max(rewards))
            risk = math.fsum(outcome.probability for outcome in counted if outcome.fails)
            self._largest_risk = max(self._largest_risk, risk)

    # Without an action these ask for the actions of a state, with one for its outcomes.

    def _ask(self, place: MetState, *action: Any) -> Answer:
        state, answer = place.state, None
        if isinstance(state, Start):
            answer = state.choices.get(*action) if action else tuple(state.choices)
        else:
            try:
                answer = self._ask_model("outcomes" if action else "actions", state, *action)
            except ModelError as error:
                self._note(replace(error.violation, state=place.copy))
        return tuple(map(make_plain, answer)) if action and answer is not None else answer

    def _ask_again(self, first: Answer, place: MetState, *action: Any) -> None:
        if self._check_unchanged(place, *action) and first is not None:
            self._compare(first, self._ask(place, *action), place, *action)
            self._check_unchanged(place, *action)

    def _compare(self, first: Answer, again: Answer, place: MetState, *action: Any) -> None:
        """Note where two answers to the same question differ first."""
        if first is None or again is None:
            return
        kind, agree = "actions", self._agreement.on_actions
        if action:
            kind, agree = "outcomes", self._agreement.on_outcomes
        value: tuple[Any, Any] | None = (len(first), len(again))
        if len(first) == len(again):
            pairs = zip(first, again, strict=True)
            value = next((pair for pair in pairs if not agree(*pair)), None)
        if value is not None:
            before, after = map(shorten, value)
            message = f"asked again, the {kind} changed from {before} to {after}"
            where = (place.copy, action[0] if action else None)
            self._note(Violation(Rule.ANSWERS_REPEAT, message, *where, value))

    def _compare_doubles(
        self, one: MetState, other: MetState, said: tuple[Answer, Answer], *action: Any
    ) -> bool:
        """Return whether equal states answer the same; what raised was noted already."""
        first, second = said
        if first is None or second is None:
            return False
        agreement = self._agreement
        agree = agreement.on_outcomes_but_texts if action else agreement.on_actions
        alike = len(first) == len(second) and all(map(agree, first, second))
        if not alike:
            self._note(refuse_double(one.copy, other.copy, action[0] if action else None, said))
        return alike

    def _ask_root_again(self, root: MetState) -> None:
        """Ask about the root after everything else: there a model that drifts betrays itself."""
        again = self._ask_initial_state()
        if again is None:
            return
        started = isinstance(root.copy, Start) and isinstance(again.copy, Start)
        repeats = not any(violation.rule is Rule.ANSWERS_REPEAT for violation in self._violations)
        if not started and not self._agreement.on_states(root.copy, again.copy):
            value = (root.copy, again.copy)
            message = "the initial state was {}, and then {}".format(*map(shorten, value))
            self._note(Violation(Rule.ANSWERS_REPEAT, message, value=value))
        elif root.actions is not None and repeats:
            self._compare(root.actions, self._ask(again), again)
            for action, outcomes in zip(root.actions, root.outcomes, strict=True):
                if outcomes is not None:
                    self._compare(outcomes, self._ask(again, action), again, action)

    def _name(self, place: MetState, action: Any) -> str | None:
        try:
            return self.label(place.state, action)
        except Exception as error:
            message = f"the label of the action raised {error.__cause__ or error!r}"
            self._note(Violation(Rule.ANSWERS, message, place.copy, action))
            return None

    def _check_unchanged(self, place: MetState, action: Any = None) -> bool:
        """Note a state that is not what it was, and go on with what it was."""
        if not is_equal(place.state, place.copy):
            now = copy_value(place.state)
            message = f"the model changed the state itself, into {shorten(now)}"
            self._note(Violation(Rule.STATES_STAY, message, place.copy, action, now))
        elif attempt(hash, place.state) != place.hash:
            hashes = (place.hash, attempt(hash, place.state))
            message = "the hash of the state changed from {} to {}".format(*hashes)
            self._note(Violation(Rule.HASHES_STAY, message, place.copy, action, hashes))
        else:
            return True
        place.take(place.copy)
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
            message = f"looking at the model's answer raised {shorten(error)}"
            self._note(Violation(Rule.ANSWERS, message, state, action))
        return self._violation_count == before
