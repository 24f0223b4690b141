"""The model checker: walk a model breadth first and report every rule that it breaks.

The rules are those of `vulcan.model.rules`, at the first of which a planner gives up, and some that
planners have no time to check:

    answers repeat          a second evaluation gives the same answer, and so does the root at the
                            end of the walk
    states stay the same    no call modifies a state that was visited before
    hashes stay the same    nor its hash
    states compare          states with the same hash can be compared
    equal states are alike  equal states that differ in what is not compared answer the same
    merges                  two histories reach equal states only where `merges` is not False
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from vulcan.errors import ModelError, OptionError
from vulcan.model.answers import add_up, group_outcomes, label_outcomes, make_plain
from vulcan.model.interface import Outcome, Start
from vulcan.model.keys import advise_to_merge, require_honest_keys
from vulcan.model.reader import ModelCalls, ModelReader
from vulcan.model.rules import (
    Rule,
    Violation,
    attempt,
    check_actions,
    check_outcomes,
    check_state,
    copy_value,
    describe_duplicate,
    find_difference,
    is_equal,
    is_similar,
    read_frame,
    recheck_frame,
)
from vulcan.parameters import shorten

MOST_VIOLATIONS: Final = 1_000  # number of violations that are kept; all are counted
MOST_SHOWN: Final = 20  # number of violations in the text of a report
MOST_DUPLICATES: Final = 10_000  # number of duplicates that are evaluated
MOST_OF_ONE: Final = 20  # number of duplicates of one state that are evaluated

Answer = tuple[Any, ...] | None
"""Actions or outcomes; None if the model gave none that can be listed."""


def check_model(model: Any, *, most_states: int = 100_000) -> ModelReport:
    """Walk a model up to its horizon and report every rule that it breaks.

    The walk goes on after a violation wherever it can. Every evaluation is done twice.

    Parameters
    ----------
    model
        Any object that is meant to be a model; see `vulcan.model.Model`.
    most_states
        Stop when there are more distinct states than this: a whole number of at least 1.

    Returns
    -------
    ModelReport
        Its `ok` says whether the model keeps the rules; its text says where not.

    Examples
    --------
    In a test of your own model:

    >>> from vulcan.domains import Bandit
    >>> report = check_model(Bandit(horizon=4))
    >>> assert report.ok, report
    >>> report.states, report.evaluations
    (211, 336)
    """
    if type(most_states) is not int or most_states < 1:
        raise OptionError(f"most_states must be a whole number of at least 1, not {most_states!r}")
    walk = _CheckWalk(model, most_states)
    walk.run()
    if walk.report.ok and hasattr(model, "key"):
        try:
            require_honest_keys(ModelReader(model))
        except ModelError as error:
            walk.report.violations.append(error.violation)
            walk.report.violation_count += 1
    return walk.report


@dataclass
class ModelReport:
    """The findings of `check_model`.

    Attributes
    ----------
    violations
        The first 1,000 violations, in the order in which they were found.
    violation_count
        Number of all violations.
    states
        Number of distinct states visited.
    terminals
        Number of evaluated states without actions. States first visited at the horizon are not
        evaluated.
    evaluations
        Number of (state, action) pairs evaluated.
    outcomes
        Number of their outcomes, merged and without those of probability 0.
    reward_range
        The smallest and largest reward of an outcome; None if there is none. Like the next, it
        covers the lists of outcomes that break no rule.
    costs, events
        The smallest and largest of each cost by its name, and the names of events, of the same.
    largest_immediate_risk
        The largest probability that an action fails immediately.
    levels
        Decisions in the longest history: the horizon, and 1 more with an initial action.
    finished
        Whether the walk visited all states; False if it stopped at `most_states` or could not
        begin.
    merged, first_merged
        Number of places where outcomes without labels lead to the same state with the same reward,
        and so count as one, and a description of the first. That breaks no rule; add labels if
        they can be distinguished.
    duplicates
        Number of evaluated states that equal others and differ from them in something that is not
        compared: they must answer the same. At most 10,000 are evaluated, 20 for each state.
    advice
        What merging would win where many histories give few different answers; else empty.
    """

    violations: list[Violation] = field(default_factory=list)
    violation_count: int = 0
    states: int = 0
    terminals: int = 0
    evaluations: int = 0
    outcomes: int = 0
    reward_range: tuple[float, float] | None = None
    costs: dict[str, tuple[float, float]] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    largest_immediate_risk: float = 0.0
    levels: int = 0
    finished: bool = False
    merged: int = 0
    first_merged: str = ""
    duplicates: int = 0
    advice: str = ""

    @property
    def ok(self) -> bool:
        """Whether no rule was broken, as far as the walk went; see `finished`."""
        return self.violation_count == 0

    def rows(self) -> list[tuple[str, str]]:
        """Return the report as pairs of a name and a string, for people."""
        verdict = "ok" if self.ok else f"NOT OK: {_count(self.violation_count, 'violation')}"
        if not self.finished:
            verdict += ", but not all states were walked"
        low, high = self.reward_range or (math.nan, math.nan)
        more = f"; and in {self.merged - 1:,} more places" if self.merged > 1 else ""
        beside = f"{_count(self.duplicates, 'state')} beside equal ones; equality ignores parts"
        rows = [
            ("model", verdict),
            ("states", f"{self.states:,}, {self.terminals:,} of them without actions"),
            ("evaluations", f"{self.evaluations:,}"),
            ("outcomes", f"{self.outcomes:,}"),
            ("merged", f"{self.first_merged}{more}" if self.merged else ""),
            ("duplicates", beside if self.duplicates else ""),
            ("advice", self.advice),
            ("rewards", f"{low:.6g} to {high:.6g}" if self.reward_range else "none"),
            ("costs", ", ".join(f"{n} {a:.6g} to {b:.6g}" for n, (a, b) in self.costs.items())),
            ("events", ", ".join(sorted(self.events))),
            ("largest risk", f"{self.largest_immediate_risk:.6g} of a single action"),
            ("levels", f"{_count(self.levels, 'decision')} in the longest history"),
        ]
        return [row for row in rows if row[1]]

    def __str__(self) -> str:
        lines = [f"{name:<13} {text}" for name, text in self.rows()]
        lines += [f"{violation.rule}: {violation}" for violation in self.violations[:MOST_SHOWN]]
        if self.violation_count > MOST_SHOWN:
            lines.append(f"… and {self.violation_count - MOST_SHOWN:,} more")
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class _CheckWalk(ModelCalls):
    """Evaluates all states; it records violations and goes on, where a reader raises."""

    def __init__(self, model: Any, most_states: int) -> None:
        super().__init__(model)
        self.report = ModelReport()
        self._most_states = most_states
        self._seen: dict[Any, list[Any]] = {}  # each state with its duplicates
        self._answers: set[int] = set()  # hashes of what evaluated states answer
        self._evaluated = self._arrivals = 0  # states, and safe outcomes

    def run(self) -> None:
        """Check the attributes of the model, then its initial state, then all reachable states."""
        frame, violations = read_frame(self.model)
        self._note_all(violations)
        broken = {violation.rule for violation in violations}
        if not broken <= {Rule.HORIZON, Rule.DISCOUNT}:
            return
        # Without a horizon only the initial state can be checked; the discount does not matter.
        self.horizon, _, self.merges = frame
        root = self._visit_root()
        if root is None or not self._note_all(check_state(root.state, "the initial state")):
            return
        self.report.finished = self.horizon > 0
        self.report.levels = self.horizon + isinstance(root.state, Start)
        if not isinstance(root.state, Start):
            self._seen[root.copy] = [root.copy]
            self.report.states = 1
        self._walk(root)
        self._compare_root(root)
        self._note_all(recheck_frame(self.model, frame) if not broken else ())

    def _visit_root(self) -> _VisitedState | None:
        try:
            return _VisitedState(self._call("initial_state"))
        except ModelError as error:
            self._note(error.violation)
            return None

    def _walk(self, root: _VisitedState) -> None:
        """Visit the states breadth first."""
        waiting = deque([(root, 0)])
        self._visit_all(waiting)
        if not hasattr(self.model, "key"):
            counts = (self._evaluated, len(self._answers), self._arrivals)
            self.report.advice = advise_to_merge(*counts, self.report.states)

    def _visit_all(self, waiting: deque[tuple[_VisitedState, int]]) -> None:
        while waiting and waiting[0][1] < self.report.levels:
            place, level = waiting.popleft()
            if place.equal is None:
                self._read(place)
            else:
                self._read_duplicate(place)
            for reached in self._follow(place):
                if reached.equal is None:
                    if self.report.states == self._most_states:
                        self.report.finished = False
                        return
                    self.report.states += 1
                waiting.append((reached, level + 1))

    def _read(self, place: _VisitedState) -> None:
        """Evaluate a state and all its actions, and check the answers."""
        self._check_unchanged(place)
        actions = place.actions = self._evaluate(place)
        self._repeat(actions, place)
        if actions is None:
            return
        labels = [text for action in actions if (text := self._name(place, action)) is not None]
        self._note_all(check_actions(place.copy, actions, labels), place.copy)
        self.report.terminals += not actions
        for action in actions:
            outcomes = self._evaluate(place, action)
            place.outcomes.append(outcomes)
            self.report.evaluations += 1
            if outcomes is not None:
                found = check_outcomes(place.copy, action, outcomes)
                sound = self._note_all(found, place.copy, action)
                observed = self._merge(outcomes, place, action) if sound else outcomes
                self._measure(observed, sound)
                # Before the next call: the model may reuse its state objects.
                place.reach(action, observed, outcomes)
            self._repeat(outcomes, place, action)
        self._evaluated += 1
        numbers = [
            (one.probability, one.reward, one.fails, one.costs, one.event)
            for outcomes in place.outcomes
            for one in outcomes or ()
            if isinstance(one, Outcome)
        ]
        self._arrivals += sum(not fails for _, _, fails, *_ in numbers)
        self._answers.add(hash(repr((labels, numbers))))

    def _read_duplicate(self, place: _VisitedState) -> None:
        """Evaluate a duplicate beside the state that it equals, and compare the answers."""
        one = _VisitedState(place.equal)
        for action in self._answer_alike(one, place) or ():
            outcomes = self._answer_alike(one, place, action)
            if outcomes is None:
                return
            place.reach(action, (), outcomes)

    def _follow(self, place: _VisitedState) -> Iterator[_VisitedState]:
        """Yield the next states that are new, or duplicates of visited ones."""
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
                if self._is_duplicate(reached.copy, known):
                    reached.equal = known[0]
                    yield reached
            else:
                message = f"merges is False, but two histories reach {shorten(reached.copy)}"
                self._note(Violation(Rule.MERGES, message, *where))

    def _is_duplicate(self, state: Any, known: list[Any]) -> bool:
        """Return whether a state is a new duplicate of known ones, and add it to them."""
        if self.report.duplicates == MOST_DUPLICATES or len(known) > MOST_OF_ONE:
            return False
        if not all(find_difference(other, state) for other in known):
            return False
        known.append(state)
        self.report.duplicates += 1
        return True

    def _merge(
        self, outcomes: tuple[Any, ...], place: _VisitedState, action: Any
    ) -> Sequence[Outcome]:
        """Return the merged outcomes, and record which ones were merged."""
        counted = list(_possible(outcomes))
        together = attempt(group_outcomes, counted)
        if together is None:  # `_follow` finds states that can't be compared
            return counted
        observed = [add_up(parts) for parts in together]
        for outcome, parts in zip(observed, together, strict=True):
            if len(parts) > 1:
                self.report.merged += 1
                end = "failure" if outcome.fails else shorten(outcome.state)
                self.report.first_merged = self.report.first_merged or (
                    f"{len(parts)} outcomes without labels end in {end} with the same reward, and "
                    f"count as one (state {shorten(place.copy)}, action {shorten(action)})"
                )
        try:
            label_outcomes(observed)
        except ModelError as error:
            where = {"state": place.copy, "action": action, "value": error.violation.state}
            self._note(replace(error.violation, **where))
        return observed

    def _measure(self, outcomes: Sequence[Any], sound: bool) -> None:
        report, counted = self.report, list(_possible(outcomes))
        report.outcomes += len(counted)
        if sound:
            rewards = [*(report.reward_range or ()), *(float(one.reward) for one in counted)]
            report.reward_range = (min(rewards), max(rewards))
            risk = math.fsum(outcome.probability for outcome in counted if outcome.fails)
            for name, cost in ((n, float(cost)) for one in counted for n, cost in one.costs):
                low, high = report.costs.get(name, (cost, cost))
                report.costs[name] = (min(low, cost), max(high, cost))
            report.events |= {one.event for one in counted if one.event is not None}
            report.largest_immediate_risk = max(report.largest_immediate_risk, risk)

    # Without an action, these evaluate the actions of a state; with one, its outcomes.

    def _evaluate(self, place: _VisitedState, *action: Any) -> Answer:
        state, answer = place.state, None
        if isinstance(state, Start):
            answer = state.choices.get(*action) if action else tuple(state.choices)
        else:
            try:
                answer = self._call_list("outcomes" if action else "actions", state, *action)
            except ModelError as error:
                self._note(replace(error.violation, state=place.copy))
        return tuple(map(make_plain, answer)) if action and answer is not None else answer

    def _repeat(self, first: Answer, place: _VisitedState, *action: Any) -> None:
        if self._check_unchanged(place, *action) and first is not None:
            self._compare(first, self._evaluate(place, *action), place, *action)
            self._check_unchanged(place, *action)

    def _compare(self, first: Answer, again: Answer, place: _VisitedState, *action: Any) -> None:
        """Record the first difference between two answers."""

        def agree(one: Any, other: Any) -> bool:
            labels = (attempt(label_outcomes, [outcome]) for outcome in (one, other))
            return self.is_same_outcome(one, other) and is_equal(*labels)

        if first is None or again is None:
            return
        kind = "outcomes" if action else "actions"
        value: tuple[Any, Any] | None = (len(first), len(again))
        if len(first) == len(again):
            alike = agree if action else self._is_same_action
            pairs = zip(first, again, strict=True)
            value = next((pair for pair in pairs if not alike(*pair)), None)
        if value is not None:
            before, after = map(shorten, value)
            message = f"evaluated again, the {kind} changed from {before} to {after}"
            where = (place.copy, action[0] if action else None)
            self._note(Violation(Rule.ANSWERS_REPEAT, message, *where, value))

    def _is_same_action(self, one: Any, other: Any) -> bool:
        labels = (attempt(self.label, None, action) for action in (one, other))
        return is_similar(one, other) and is_equal(*labels)

    def _answer_alike(self, one: _VisitedState, other: _VisitedState, *action: Any) -> Answer:
        """Return the second answer of two equal states; None, and a violation, if they differ."""
        answers = self._evaluate(one, *action), self._evaluate(other, *action)
        first, second = answers
        if first is None or second is None:
            return None
        agree = self.is_same_outcome if action else self._is_same_action
        if len(first) == len(second) and all(map(agree, first, second)):
            return second
        where = (one.copy, other.copy, action[0] if action else None)
        self._note(describe_duplicate(*where, answers))
        return None

    def _compare_root(self, root: _VisitedState) -> None:
        """Evaluate the root once more at the end, which exposes a model that drifts."""
        again = self._visit_root()
        if again is None:
            return
        started = isinstance(root.copy, Start) and isinstance(again.copy, Start)
        repeats = all(one.rule is not Rule.ANSWERS_REPEAT for one in self.report.violations)
        if not started and not self.is_same_state(root.copy, again.copy):
            value = (root.copy, again.copy)
            message = "the initial state was {}, and then {}".format(*map(shorten, value))
            self._note(Violation(Rule.ANSWERS_REPEAT, message, value=value))
        elif root.actions is not None and repeats:
            self._compare(root.actions, self._evaluate(again), again)
            for action, outcomes in zip(root.actions, root.outcomes, strict=True):
                if outcomes is not None:
                    self._compare(outcomes, self._evaluate(again, action), again, action)

    def _name(self, place: _VisitedState, action: Any) -> str | None:
        try:
            return self.label(place.state, action)
        except Exception as error:
            message = f"the label of the action raised {error.__cause__ or error!r}"
            self._note(Violation(Rule.ANSWERS, message, place.copy, action))
            return None

    def _check_unchanged(self, place: _VisitedState, action: Any = None) -> bool:
        """Record a state that has changed, and go on with its copy."""
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
        place.set_state(place.copy)
        return False

    def _note(self, violation: Violation) -> None:
        self.report.violation_count += 1
        if len(self.report.violations) < MOST_VIOLATIONS:
            self.report.violations.append(violation)

    def _note_all(self, found: Iterable[Violation], state: Any = None, action: Any = None) -> bool:
        """Record the violations of a check, or its exception; return whether there are none."""
        before = self.report.violation_count
        try:
            for violation in found:
                self._note(violation)
        except Exception as error:
            message = f"reading the model's answer raised {shorten(error)}"
            self._note(Violation(Rule.ANSWERS, message, state, action))
        return self.report.violation_count == before


class _VisitedState:
    """A state with its hash and a copy that the model cannot modify, and the answers about it.

    Where a copy does not equal the state, the state itself stands in, and only its hash can tell
    whether it was changed.
    """

    def __init__(self, state: Any) -> None:
        self.set_state(state)
        self.actions: Answer = None
        self.outcomes: list[Answer] = []
        # The action, the next state, and whether that is only part of a merged outcome.
        self.reached: list[tuple[Any, _VisitedState, bool]] = []
        self.equal: Any = None  # the copy of a visited state that this one is a duplicate of

    def set_state(self, state: Any) -> None:
        self.state, self.hash, copy = state, attempt(hash, state), copy_value(state)
        same = is_equal(copy, state) and attempt(hash, copy) == self.hash
        self.copy = copy if same else state

    def reach(self, action: Any, observed: Iterable[Any], given: Iterable[Any]) -> None:
        """Add the next states of an action: of the merged outcomes, and of those given."""
        seen = list(_next_states(observed))
        known = set(map(id, seen))
        self.reached += [(action, _VisitedState(state), False) for state in seen]
        parts = (state for state in _next_states(given) if id(state) not in known)
        self.reached += [(action, _VisitedState(state), True) for state in parts]


def _possible(outcomes: Iterable[Any]) -> Iterator[Outcome]:
    """Yield the outcomes of positive probability."""
    for outcome in outcomes:
        if isinstance(outcome, Outcome) and not is_equal(outcome.probability, 0):
            yield outcome


def _next_states(outcomes: Iterable[Any]) -> Iterator[Any]:
    """Yield the next states that can be evaluated."""
    for outcome in _possible(outcomes):
        if not (outcome.fails or outcome.state is None or attempt(hash, outcome.state) is None):
            yield outcome.state
