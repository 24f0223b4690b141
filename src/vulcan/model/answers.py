"""The answers of a model: columns of many outcomes, quick checks, merging, and labels.

Outcomes that an observer cannot distinguish are one (`merge_outcomes`); the head of
`vulcan.model.reader` says which these are. Usual answers are checked many at once, column by column
(`accept_answers`); others get all rules of `vulcan.model.rules`, one by one.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any, Final, NamedTuple, Self

import numpy as np
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE, Outcome, Start, stable_text
from vulcan.model.rules import Rule, Violation, check_outcomes, read_costs, read_number
from vulcan.numerics import LARGEST_REWARD, SMALLEST_PROBABILITY, SUM_TOLERANCE
from vulcan.parameters import shorten
from vulcan.runtime.arrays import ranges, starts

PLAIN_NUMBERS: Final = frozenset((float, int, np.float64))
"""Types whose values can all be compared with floats; bool is not among them."""
FAILED_ROW: Final = -1  # a failure in an array of next states
MIXING: Final = 0x5851F42D4C957F2D  # an odd number

Column = Any
"""A sequence, or an array."""


class Answers(NamedTuple):
    """Checked answers about many (state, action) pairs: columns of their outcomes, pair by pair.

    The outcomes of a pair are the observable ones: the safe ones first, then the failures. Columns
    of floats may be arrays, and states an array as `outcomes_batch` returns it, with a row for each
    outcome.
    """

    counts: NDArray[np.intp]  # outcomes of each pair
    probability: Column
    reward: Column
    state: Column
    label: Sequence[str | None]
    costs: Sequence[Any]
    event: Sequence[str | None]

    @classmethod
    def gather(cls, answers: Sequence[Sequence[Outcome]]) -> Self:
        """Return lists of outcomes as columns."""
        counts = np.array(list(map(len, answers)), np.intp)
        columns: Any = zip(*map(astuple, chain.from_iterable(answers)), strict=True)
        return cls(counts, *(map(list, columns) if counts.any() else ([] for _ in cls._fields[1:])))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the answers of several parts as one."""
        states = [part.state for part in parts if len(part.counts)]
        if len({isinstance(own, np.ndarray) and own.shape[1:] for own in states}) > 1:
            parts = [part.list_states() for part in parts]
        return cls(*map(_join, zip(*parts, strict=True)))

    def take(self, pairs: Sequence[int]) -> Self:
        """Return the answers about some of the pairs."""
        counts = self.counts[pairs]
        return type(self)(counts, *_take(self[1:], ranges(starts(self.counts)[pairs], counts)))

    def list_states(self) -> Self:
        """Return the same with states as the model's own objects."""
        if not isinstance(self.state, np.ndarray):
            return self
        return self._replace(state=list_states(self.state))

    def split(self) -> list[list[Outcome]]:
        """Return the outcomes of each pair."""
        columns = (
            column.tolist() if isinstance(column, np.ndarray) else column
            for column in self.list_states()[1:]
        )
        whole = (
            Outcome(*fields[:4], costs=fields[4], event=fields[5])
            for fields in zip(*columns, strict=True)
        )
        return [list(islice(whole, count)) for count in self.counts.tolist()]


def list_states(rows: NDArray[np.int64]) -> list[Any]:
    """Return the states that rows of integers stand for; see `outcomes_batch`."""
    if rows.ndim == 1:
        return [FAILURE if state == FAILED_ROW else state for state in rows.tolist()]
    states: list[Any] = list(map(tuple, rows.tolist()))
    for k in np.flatnonzero(find_failures(rows)).tolist():
        states[k] = FAILURE
    return states


def find_failures(states: Column) -> NDArray[np.bool_]:
    """Return which states of a column of answers are failures."""
    if not isinstance(states, np.ndarray):
        return np.array([state is FAILURE for state in states], np.bool_)
    return np.asarray((states == FAILED_ROW).reshape(len(states), -1).all(axis=1))


def _take(columns: Sequence[Column], rows: NDArray[np.intp]) -> Iterator[Column]:
    """Yield some rows of each column."""
    places = rows.tolist()
    for column in columns:
        yield column[rows] if isinstance(column, np.ndarray) else [column[k] for k in places]


def _join(columns: Sequence[Column]) -> Column:
    filled = [column for column in columns if len(column)]
    if filled and all(isinstance(column, np.ndarray) for column in filled):
        return np.concatenate(filled) if len(filled) > 1 else filled[0]
    joined: list[Any] = []
    for column in filled:
        joined += column.tolist() if isinstance(column, np.ndarray) else column
    return joined


def observe_outcomes(state: Any, action: Any, outcomes: Sequence[Any]) -> list[Outcome]:
    """Return the observable outcomes of an answer: the safe ones, then the failures."""
    accepted = _accept(outcomes)
    if accepted is not None:
        return accepted
    plain = [make_plain(outcome) for outcome in outcomes]
    for violation in check_outcomes(state, action, plain):
        raise ModelError(violation)
    possible = (outcome for outcome in plain if float(outcome.probability))
    try:
        return merge_outcomes(sorted(possible, key=lambda outcome: outcome.fails))
    except Exception as error:
        message = f"comparing the next states with each other raised {shorten(error)}"
        raise ModelError(Violation(Rule.STATES_COMPARE, message, state, action)) from error


def make_plain(outcome: Any) -> Any:
    """Return an `Outcome`, not of a derived class, with Python's own numbers.

    Such an outcome reads the same every time. Anything that is no outcome, or has no numbers, is
    returned unchanged, for `check_outcomes` to describe.
    """
    if not isinstance(outcome, Outcome):
        return outcome
    try:
        probability, reward = outcome.probability, outcome.reward
        chance, paid = read_number(probability), read_number(reward)
        return Outcome(
            probability if chance is None else chance,
            reward if paid is None else paid,
            outcome.state,
            outcome.label,
            costs=freeze_costs(outcome.costs),
            event=outcome.event,
        )
    except Exception:
        return outcome


def freeze_costs(costs: Any) -> Any:
    """Return costs as pairs in the order of their names; as they are, if they are invalid."""
    known = read_costs(costs) if costs != () else {}
    return costs if known is None else tuple(sorted(known.items()))


def _accept(outcomes: Sequence[Any]) -> list[Outcome] | None:
    """Return the observable outcomes of a usual answer; None for one that needs all checks.

    Every answer passes through this fast path. It accepts nothing that `check_outcomes` refuses.
    """
    safe: list[Outcome] = []
    failing: list[Outcome] = []
    probabilities, labels, states, nameless = [], [], [], 0
    try:
        for outcome in outcomes:
            if type(outcome) is not Outcome:
                return None
            probability, reward, state = outcome.probability, outcome.reward, outcome.state
            label = outcome.label
            if not (
                outcome.costs == ()
                and (outcome.event is None or type(outcome.event) is str)
                and (type(probability) is float or type(probability) in PLAIN_NUMBERS)
                and (type(reward) is float or type(reward) in PLAIN_NUMBERS)
                and (SMALLEST_PROBABILITY <= probability <= 1 or probability == 0)
                and -LARGEST_REWARD <= reward <= LARGEST_REWARD
                and state is not None
                and not isinstance(state, Start)
            ):
                return None
            probabilities.append(probability)
            if label is not None:
                labels.append(label if type(label) is str else str(label))
            if state is FAILURE:
                failing.append(outcome)
                nameless += label is None
            else:
                safe.append(outcome)
                if label is None:
                    states.append(state)
                else:
                    hash(state)
        if abs(math.fsum(probabilities) - 1) > SUM_TOLERANCE or len(set(labels)) < len(labels):
            return None
        observed = safe + failing
        if 0 in probabilities:
            observed = [outcome for outcome in observed if outcome.probability]
        alike = nameless > 1 or len(set(states)) < len(states)
        return merge_outcomes(observed) if alike else observed
    except Exception:
        return None  # `check_outcomes` describes it


def accept_answers(given: Sequence[Sequence[Any]]) -> Answers | None:
    """Return usual answers as columns; None if one of them needs all checks.

    This is `_accept` for many answers at once, where it takes half the time.
    """
    plain = {Outcome}.issuperset(map(type, chain.from_iterable(given)))
    return accept_columns(Answers.gather(given)) if plain else None


def accept_columns(answers: Answers) -> Answers | None:
    """Return usual answers, in order and without impossible outcomes; see `accept_answers`."""
    try:
        return _accept_columns(answers)
    except Exception:
        return None  # `check_outcomes` describes it


def _accept_columns(answers: Answers) -> Answers | None:
    counts, probability, reward, state, label, costs, event = answers
    numbers, exact = [], list[Column]()
    for column in (probability, reward):
        kinds = {float} if isinstance(column, np.ndarray) else set(map(type, column))
        if not PLAIN_NUMBERS.issuperset(kinds):
            return None
        numbers.append(np.asarray(column, float))
        # Integers stay as they are: they may be too large for a float.
        exact.append(numbers[-1] if kinds == {float} else column)
    chances, paid = numbers
    off = np.abs(np.add.reduceat(chances, starts(counts)) - 1)
    if not (
        counts.all()
        and ((chances >= SMALLEST_PROBABILITY) & (chances <= 1) | (chances == 0)).all()
        and (np.abs(paid) <= LARGEST_REWARD).all()
        and (off <= SUM_TOLERANCE - 1e-15 * counts).all()
        and costs.count(()) == len(costs)
        and _are_names(event)
        and _are_names(label)
        and _are_distinct(answers, chances)
    ):
        return None
    place, fails = np.repeat(np.arange(len(counts)), counts), find_failures(state)
    before = fails[:-1] & ~fails[1:] & (place[:-1] == place[1:])
    if chances.all() and not before.any():
        return answers._replace(probability=exact[0], reward=exact[1])
    kept = np.lexsort((fails, place))
    kept = kept[chances[kept] > 0]
    columns = _take((*exact, state, label, costs, event), kept)
    return Answers(np.bincount(place[kept], minlength=len(counts)), *columns)


def _are_names(column: Sequence[Any]) -> bool:
    """Return whether all entries are strings or None."""
    return column.count(None) == len(column) or {str, type(None)}.issuperset(map(type, column))


def _are_distinct(answers: Answers, chances: NDArray[np.float64]) -> bool:
    """Return whether observers tell all outcomes of each answer apart, and states are valid.

    It may return False where they do: such answers are read one by one.
    """
    counts, state, label = answers.counts, answers.state, answers.label
    unnamed = label.count(None) == len(label)
    if unnamed and isinstance(state, np.ndarray):
        # Rows that are equal have equal codes. Those of impossible outcomes count for nothing.
        codes = state if state.ndim == 1 else state @ np.cumprod(np.full(state.shape[1], MIXING))
        codes = np.where(chances > 0, codes, FAILED_ROW - 1 - np.arange(len(codes)))
        codes = np.sort(codes.reshape(len(counts), -1), axis=1)
        return bool(np.all(codes[:, 1:] != codes[:, :-1]))
    seen = state = answers.list_states().state
    kinds = set(map(type, state))
    if type(None) in kinds or any(issubclass(kind, Start) for kind in kinds):
        return False
    if not unnamed:  # an outcome is known by its label, or else by its next state
        seen = [own if name is None else name for own, name in zip(state, label, strict=True)]
        deque(map(hash, state), maxlen=0)  # may raise
    return _all_differ(seen, counts)


def _all_differ(column: Sequence[Any], counts: NDArray[Any]) -> bool:
    """Return whether the elements of a column differ within each answer."""
    answer = map(islice, repeat(iter(column)), counts.tolist())
    return sum(map(len, map(set, answer))) == len(column)


def merge_outcomes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes of an action, with those merged that cannot be distinguished."""
    return [add_up(parts) for parts in group_outcomes(outcomes)]


def group_outcomes(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Return groups of outcomes that cannot be distinguished, in the order of their first ones."""
    groups: dict[Any, list[Outcome]] = {}
    for outcome in outcomes:
        seen: Any = str(outcome.label)
        if outcome.label is None:
            seen = (outcome.state, outcome.reward, outcome.costs, outcome.event)
        groups.setdefault(seen, []).append(outcome)
    return list(groups.values())


def add_up(parts: Sequence[Outcome]) -> Outcome:
    """Return the union of indistinguishable outcomes; rational probabilities stay exact."""
    if len(parts) == 1:
        return parts[0]
    probabilities = [outcome.probability for outcome in parts]
    rounded = any(isinstance(probability, float) for probability in probabilities)
    total = math.fsum(probabilities) if rounded else sum(probabilities)
    # Probabilities may sum to a little more than 1.
    return replace(parts[0], probability=min(total, 1))


def label_answers(answers: Answers) -> Sequence[str]:
    """Return a label for each outcome of some answers, as `label_outcomes` does."""
    if None not in answers.label:
        return answers.label  # type: ignore[return-value]
    if answers.label.count(None) == len(answers.label):
        # Usually all states and texts differ, and the texts are the labels.
        states = answers.list_states().state
        texts = ["failure" if state is FAILURE else _write(state) for state in states]
        if all(_all_differ(column, answers.counts) for column in (texts, states)):
            return texts
    return [label for outcomes in answers.split() for label in label_outcomes(outcomes)]


def label_outcomes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a distinct label for each outcome of one action.

    Labels of the model are kept. Other labels are the text of the state, with the reward where
    several outcomes lead to that state. States with the same text, or with that of a label, are
    numbered.
    """
    if all(outcome.label is not None for outcome in outcomes):
        return [str(outcome.label) for outcome in outcomes]
    used = {str(outcome.label) for outcome in outcomes if outcome.label is not None}
    reached = Counter(outcome.state for outcome in outcomes if outcome.label is None)
    paid = Counter((outcome.state, outcome.reward) for outcome in outcomes if outcome.label is None)
    labels = []
    for outcome in outcomes:
        if outcome.label is not None:
            labels.append(str(outcome.label))
            continue
        text = "failure" if outcome.fails else _write(outcome.state)
        if reached[outcome.state] > 1:  # -0 is written 0
            text = f"{text}, reward {_write_number(outcome.reward)}"
            if paid[outcome.state, outcome.reward] > 1:
                parts = [f"{name} {_write_number(cost)}" for name, cost in outcome.costs]
                text = ", ".join([text, *parts, *([outcome.event] if outcome.event else [])])
        base, number = text, 2
        while text in used:
            text = f"{base} ({number})"
            number += 1
        used.add(text)
        labels.append(text)
    return labels


def _write_number(number: Any) -> str:
    return repr(float(number) + 0.0).removesuffix(".0")


def _write(state: Any) -> str:
    try:
        return stable_text(state)
    except Exception as error:
        message = f"the text of a state, which is its label, raised {shorten(error)}"
        raise ModelError(Violation(Rule.ANSWERS, message, state)) from error


def fit_labels(outcomes: Sequence[Outcome], labels: Sequence[str], recorded: Sequence[str]) -> bool:
    """Return whether outcomes with these labels can be those that a policy has recorded.

    Their numbers agree, and labels of the model have not changed. Equal states may have different
    texts, but a text that another outcome has recorded means that the order has changed.
    """
    return len(labels) == len(recorded) and all(
        now == before or (outcome.label is None and now not in recorded)
        for outcome, now, before in zip(outcomes, labels, recorded, strict=True)
    )
