"""Checks that any model can be run through before it is planned with.

`check_model` walks a model breadth first, one distinct state after the other, and reports every
rule that it breaks. The rules are those of `vulcan.reader`, at the first of which a planner gives
up, and some that no planner has the time to check:

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
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from vulcan.errors import ModelError, OptionError
from vulcan.model import Outcome, Start
from vulcan.reader import (
    ModelReader,
    Violation,
    check_actions,
    check_frame,
    check_outcomes,
    check_state,
)

__all__ = ["ModelReport", "check_model"]

MOST_VIOLATIONS: Final = 1_000
"""So many violations are kept; all are counted."""

MOST_SHOWN: Final = 20
"""So many violations are shown to people."""

Answers = list[tuple[Any, tuple[Any, ...] | None]]
"""The actions of a state, each with its outcomes; None where it has no sound list of them."""


@dataclass(frozen=True)
class ModelReport:
    """What `check_model` found.

    Attributes
    ----------
    violations
        The broken rules in the order in which they were found, the first 1,000 at the most.
    violation_count
        How many there are in all.
    states
        Distinct states met.
    terminals
        Those among them that were asked and have no actions. A state first met at the horizon is
        not asked.
    evaluations
        (state, action) asked.
    outcomes
        Their outcomes; those of probability 0 do not count.
    most_actions, most_outcomes
        The largest number of actions of a state, and of outcomes of an action.
    reward_range
        The smallest and largest reward of an outcome; None if there is none. This and the next are
        taken from the outcome lists that break no rule.
    largest_immediate_risk
        The largest probability with which an action fails at once.
    levels
        Decisions in the longest history: the horizon, and 1 more with an initial action.
    finished
        Whether the walk went through all states; False if it stopped at `most_states` or could not
        even begin.
    """

    violations: tuple[Violation, ...]
    violation_count: int
    states: int
    terminals: int
    evaluations: int
    outcomes: int
    most_actions: int
    most_outcomes: int
    reward_range: tuple[float, float] | None
    largest_immediate_risk: float
    levels: int
    finished: bool

    @property
    def ok(self) -> bool:
        """Whether no rule was broken, as far as the walk went; see `finished`."""
        return self.violation_count == 0

    def rows(self) -> list[tuple[str, str]]:
        """Return the report as pairs of a name and a text, for people."""
        verdict = "ok" if self.ok else f"NOT OK: {_count(self.violation_count, 'violation')}"
        if not self.finished:
            verdict += ", but not all states were walked"
        rewards = "none"
        if self.reward_range is not None:
            rewards = "{:.6g} to {:.6g}".format(*self.reward_range)
        shown = [(violation.rule, str(violation)) for violation in self.violations[:MOST_SHOWN]]
        if self.violation_count > len(shown) > 0:
            shown.append(("…", f"and {self.violation_count - len(shown):,} more"))
        return [
            ("model", verdict),
            ("states", f"{self.states:,}, {self.terminals:,} of them without actions"),
            ("actions", f"{self.evaluations:,} asked, up to {self.most_actions:,} in a state"),
            ("outcomes", f"{self.outcomes:,}, up to {self.most_outcomes:,} of an action"),
            ("rewards", rewards),
            ("largest risk", f"{self.largest_immediate_risk:.6g} of a single action"),
            ("levels", f"{_count(self.levels, 'decision')} in the longest history"),
            *shown,
        ]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


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
    walk = _Walk(model, most_states)
    walk.run()
    return walk.report()


class _Place:
    """A state that was met, and what it was like then."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.hash = _hash(state)
        self.copy = _copy(state)


class _Walk(ModelReader):
    """A reader that notes what is wrong and goes on, where the plain one raises."""

    def __init__(self, model: Any, most_states: int) -> None:
        # Without the reader's own constructor, which raises at the first violation.
        self.model = model
        self.levels = 0
        self._most_states = most_states
        self._violations: list[Violation] = []
        self._violation_count = 0
        self._seen: set[Any] = set()
        self._finished = False
        self._states = self._terminals = self._evaluations = self._outcomes = 0
        self._most_actions = self._most_outcomes = 0
        self._least_reward, self._largest_reward = math.inf, -math.inf
        self._largest_risk = 0.0

    def report(self) -> ModelReport:
        """Return what was found so far."""
        rewards = (self._least_reward, self._largest_reward)
        return ModelReport(
            violations=tuple(self._violations),
            violation_count=self._violation_count,
            states=self._states,
            terminals=self._terminals,
            evaluations=self._evaluations,
            outcomes=self._outcomes,
            most_actions=self._most_actions,
            most_outcomes=self._most_outcomes,
            reward_range=rewards if rewards[0] <= rewards[1] else None,
            largest_immediate_risk=self._largest_risk,
            levels=self.levels,
            finished=self._finished,
        )

    def run(self) -> None:
        """Check the model as such, then its initial state, then all states that it leads to."""
        self._note_all(check_frame(self.model))
        broken = {violation.rule for violation in self._violations}
        if not broken <= {"horizon", "discount"}:
            return
        # Without a horizon only the initial state can be checked; the discount plays no part.
        self.horizon = 0 if "horizon" in broken else int(self.model.horizon)
        self.merges = bool(getattr(self.model, "merges", True))
        try:
            self.root = self._call("initial_state")
        except ModelError as error:
            self._note(error.violation)
            return
        if not self._note_all(check_state(self.root, "the initial state")):
            return
        root = _Place(self.root)
        if isinstance(self.root, Start):
            self.levels = self.horizon + 1
        else:
            self.levels = self.horizon
            self._seen.add(root.copy)
            self._states = 1
        self._finished = self.horizon > 0
        self._ask_root_again(root, self._walk(root))

    def _walk(self, root: _Place) -> Answers | None:
        """Visit the states breadth first; return what the model said about the root."""
        first_answers = None
        waiting = deque([(root, 0)])
        while waiting and waiting[0][1] < self.levels:
            place, level = waiting.popleft()
            answers = self._read(place)
            if place is root:
                first_answers = answers
            for reached in self._follow(place, answers or []):
                if self._states == self._most_states:
                    self._finished = False
                    return first_answers
                self._states += 1
                waiting.append((reached, level + 1))
        return first_answers

    def _read(self, place: _Place) -> Answers | None:
        """Ask for the actions of a state and all their outcomes, and check the answers."""
        self._check_unchanged(place)
        actions = self._ask_twice(place)
        if actions is None:
            return None
        labels = [text for action in actions if (text := self._name(place, action)) is not None]
        self._note_all(check_actions(place.copy, actions, labels), place.copy)
        self._terminals += not actions
        self._most_actions = max(self._most_actions, len(actions))
        answers = []
        for action in actions:
            self._evaluations += 1
            outcomes = self._ask_twice(place, action)
            if outcomes is not None:
                found = check_outcomes(place.copy, action, outcomes)
                self._measure(outcomes, self._note_all(found, place.copy, action))
            answers.append((action, outcomes))
        return answers

    def _follow(self, place: _Place, answers: Answers) -> Iterator[_Place]:
        """Yield the states after a state that were never met before."""
        for action, outcomes in answers:
            for state in _next_states(outcomes or ()):
                reached = _Place(state)
                where = (place.copy, action, reached.copy)
                try:
                    known = reached.copy in self._seen
                    self._seen.add(reached.copy)
                except Exception as error:
                    message = f"comparing the next state with others raised {error!r}"
                    self._note(Violation("states compare", message, *where))
                    continue
                if not known:
                    yield reached
                elif not self.merges:
                    message = f"merges is False, but two histories reach {reached.copy!r}, again"
                    self._note(Violation("merges", message, *where))

    def _measure(self, outcomes: tuple[Any, ...], sound: bool) -> None:
        possible = list(_possible(outcomes))
        self._outcomes += len(possible)
        self._most_outcomes = max(self._most_outcomes, len(possible))
        if sound:
            rewards = [float(outcome.reward) for outcome in possible]
            risk = math.fsum(outcome.probability for outcome in possible if outcome.fails)
            self._least_reward = min(self._least_reward, *rewards)
            self._largest_reward = max(self._largest_reward, *rewards)
            self._largest_risk = max(self._largest_risk, risk)

    # Without an action these ask for the actions of a state, with one for its outcomes.

    def _ask(self, place: _Place, *action: Any) -> tuple[Any, ...] | None:
        """Return the answer; None, and a violation noted, if there is none."""
        state = place.state
        if isinstance(state, Start):
            return state.choices.get(*action) if action else tuple(state.choices)
        try:
            answer = self._call("outcomes" if action else "actions", state, *action)
            return self._gather(answer, state, *action)
        except ModelError as error:
            self._note(replace(error.violation, state=place.copy))
            return None
        finally:
            self._check_unchanged(place, *action)

    def _ask_twice(self, place: _Place, *action: Any) -> tuple[Any, ...] | None:
        """Return the first answer; None, and a violation noted, if there is none."""
        first = self._ask(place, *action)
        if first is not None:
            self._compare(first, self._ask(place, *action), place, *action)
        return first

    def _compare(
        self, first: tuple[Any, ...], again: tuple[Any, ...] | None, place: _Place, *action: Any
    ) -> None:
        """Note where two answers to the same question differ first."""
        if again is None:
            return
        kind, agree = ("outcome", self._agree_on_outcomes) if action else ("action", _agree)
        where = (place.copy, *action) if action else (place.copy, None)
        if len(first) != len(again):
            counts = (len(first), len(again))
            message = f"the model gave {_count(counts[0], kind)}, and {counts[1]} when asked again,"
            self._note(Violation("answers repeat", message, *where, counts))
            return
        pairs = zip(first, again, strict=True)
        differing = next((pair for pair in pairs if not agree(*pair)), None)
        if differing is not None:
            message = "the model gave {!r}, and {!r} when asked again,".format(*differing)
            self._note(Violation("answers repeat", message, *where, differing))

    def _ask_root_again(self, root: _Place, first_answers: Answers | None) -> None:
        """Ask about the root after everything else: there a model that drifts betrays itself."""
        try:
            again = self._call("initial_state")
        except ModelError as error:
            self._note(error.violation)
            return
        started = isinstance(root.copy, Start) and isinstance(again, Start)
        if not started and not self._agree_on_states(root.copy, again):
            message = f"the initial state was {root.copy!r}, and {again!r} when asked again"
            self._note(Violation("answers repeat", message, value=(root.copy, again)))
        elif first_answers is not None and not self._knows("answers repeat"):
            place = _Place(again)
            self._compare(tuple(action for action, _ in first_answers), self._ask(place), place)
            for action, outcomes in first_answers:
                if outcomes is not None:
                    self._compare(outcomes, self._ask(place, action), place, action)

    def _name(self, place: _Place, action: Any) -> str | None:
        try:
            return self.label(place.state, action)
        except Exception as error:
            message = f"the label of the action raised {error.__cause__ or error!r}"
            self._note(Violation("answers", message, place.copy, action))
            return None

    def _agree_on_outcomes(self, one: Any, other: Any) -> bool:
        if not isinstance(one, Outcome) or not isinstance(other, Outcome):
            return type(one) is type(other)
        return (
            _equal(one.probability, other.probability)
            and _equal(one.reward, other.reward)
            and _equal(one.label, other.label)
            and self._agree_on_states(one.state, other.state)
        )

    def _agree_on_states(self, one: Any, other: Any) -> bool:
        """Whether two states are equal; where nothing merges, nobody needs to be able to tell."""
        return _equal(one, other) if self.merges else _agree(one, other)

    def _check_unchanged(self, place: _Place, action: Any = None) -> None:
        """Note a state that is not what it was, and go on with what it was."""
        if not _equal(place.state, place.copy):
            message = f"the model changed the state itself, into {place.state!r},"
            self._note(Violation("states stay the same", message, place.copy, action, place.state))
        elif _hash(place.state) != place.hash:
            hashes = (place.hash, _hash(place.state))
            message = "the hash of the state changed from {} to {},".format(*hashes)
            self._note(Violation("hashes stay the same", message, place.copy, action, hashes))
        else:
            return
        place.__init__(place.copy)

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
            self._note(Violation("answers", message, state, action))
        return self._violation_count == before

    def _knows(self, rule: str) -> bool:
        return any(violation.rule == rule for violation in self._violations)


def _possible(outcomes: Iterable[Any]) -> Iterator[Outcome]:
    """Yield the outcomes that are not of probability 0."""
    for outcome in outcomes:
        if isinstance(outcome, Outcome) and not _equal(outcome.probability, 0):
            yield outcome


def _next_states(outcomes: Iterable[Any]) -> Iterator[Any]:
    """Yield the safe states that outcomes lead to, if they can be asked about."""
    for outcome in _possible(outcomes):
        if not outcome.fails and next(check_state(outcome.state, ""), None) is None:
            yield outcome.state


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, or both are no numbers (NaN), as their own words have it."""
    try:
        return one is other or bool(one == other) or bool(one != one and other != other)
    except Exception:
        return False


def _agree(one: Any, other: Any) -> bool:
    """Whether two values are equal, or can't be told to be: not even a copy equals the first."""
    if _equal(one, other):
        return True
    try:
        return type(one) is type(other) and not _equal(one, deepcopy(one))
    except Exception:
        return True


def _hash(state: Any) -> int | None:
    try:
        return hash(state)
    except Exception:
        return None


def _copy(state: Any) -> Any:
    """Return a copy that is out of the model's reach; the state itself if no copy is as good."""
    try:
        copy = deepcopy(state)
    except Exception:
        return state
    return copy if _equal(copy, state) and _hash(copy) == _hash(state) else state


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
