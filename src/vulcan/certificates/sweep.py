"""The chain of a large policy, by arrays: the same as `follow_places` finds, sooner.

Where each decision that is taken at a level is taken in one state there, as in every policy over a
graph, the level is followed at once: a table has the model's answers, each (state, action) of which
is asked once, however many decisions take it. All that the plain walk compares is compared here as
well. At the first thing that is not as expected this gives up, and the plain walk says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.chain import Chain, Watch
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.runtime.ranges import ranges, starts
from vulcan.sentinels import END, FAILED, NONE

__all__ = ["sweep_policy"]

ANSWER: Final = np.dtype([("first", "i8"), ("count", "i8")])
OUTCOME: Final = np.dtype(
    [("probability", "f8"), ("reward", "f8"), ("state", "i4"), ("label", "i4"), ("fails", "?")]
)

MOST_ENTRIES: Final = 100_000_000
"""Pairs of a state and an action that are looked up in a table."""

OTHER_LABEL: Final = -2
"""A label that the policy does not know."""


class _UnexpectedError(Exception):
    """Something that the plain walk had better look at."""


class _Level(NamedTuple):
    """The places of one level of a member: how many there are, and the ways from them.

    Where a way leads, and where from, is counted from the first place of each level.
    """

    size: int
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    reward: NDArray[np.float64]


def sweep_policy(
    members: Sequence[Policy], reader: ModelReader, watch: Watch
) -> tuple[Chain, int] | None:
    """Return the chain of a policy, and how many (state, action) were asked.

    Parameters
    ----------
    members
        The policies of which one is followed; the first level has one place for each.
    reader
        The model, asked with care.
    watch
        Told which share is done.

    Returns
    -------
    tuple or None
        None if the policy is not of this kind, or the model's answers are not what it expects.
    """
    if any(len(member) == 0 for member in members):
        return None
    answers = _Answers(reader, forgetful=not reader.merges and len(members) == 1)
    try:
        swept = [_sweep_member(member, answers, watch) for member in members]
    except _UnexpectedError:
        return None
    discounts = map(reader.discount_after, range(max(map(len, swept))))
    return _join(swept, discounts), answers.count


def _sweep_member(policy: Policy, answers: _Answers, watch: Watch) -> list[_Level]:
    reader = answers.reader
    answers.know(policy)
    levels: list[_Level] = []
    nodes, states = np.zeros(1, np.intp), np.zeros(1, np.int32)
    for number in range(reader.levels):
        if not len(nodes):
            break
        last = number + 1 == reader.levels
        firsts = policy.first_outcome[nodes]
        counts = policy.first_outcome[nodes + 1] - firsts
        flat = ranges(firsts, counts)
        rows = answers.find(states, policy.action[nodes])
        if not np.array_equal(answers.rows["count"][rows], counts):
            raise _UnexpectedError
        said = answers.outcomes[ranges(answers.rows["first"][rows], counts)]
        child = policy.child[flat]
        _compare(policy, flat, said, answers.labels)
        if not last:
            answers.require_ends(said["state"][child == END])
        elif (child >= 0).any():
            raise _UnexpectedError
        level, nodes, states = _make_level(said, child, counts)
        levels.append(level)
        answers.forget_before(states)
        watch((number + 1) / reader.levels)
    return levels


def _compare(
    policy: Policy, flat: NDArray[np.intp], said: NDArray[np.void], labels: NDArray[np.intp]
) -> None:
    """Refuse answers that are not those that the policy was made with."""
    same = (
        np.array_equal(said["probability"], policy.probability[flat])
        and np.array_equal(said["reward"], policy.reward[flat])
        and np.array_equal(said["fails"], policy.child[flat] == FAILED)
        and np.array_equal(said["label"], labels[policy.label[flat]])
    )
    if not same:
        raise _UnexpectedError


def _make_level(
    said: NDArray[np.void], child: NDArray[np.int32], counts: NDArray[Any]
) -> tuple[_Level, NDArray[np.intp], NDArray[np.int32]]:
    """Return a level, and the decisions of the next with their states."""
    goes_on = child >= 0
    nodes, place = np.unique(child[goes_on], return_inverse=True)
    arrivals = said["state"][goes_on]
    states = np.zeros(len(nodes), np.int32)
    states[place] = arrivals
    if not np.array_equal(states[place], arrivals):
        raise _UnexpectedError  # a decision that is taken in several states
    source = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    target = child.copy()
    target[goes_on] = place
    chance, reward = said["probability"].copy(), said["reward"].copy()
    return _Level(len(counts), source, target, chance, reward), nodes.astype(np.intp), states


def _join(members: Sequence[list[_Level]], discounts: Iterable[Any]) -> Chain:
    """Return the chain of all members: at each level, the places of one after those of another."""
    depth = max(map(len, members))
    counts = [[level[0] for level in levels] + [0] * (depth - len(levels)) for levels in members]
    sizes = np.array(counts).T
    firsts = starts(sizes.ravel()).reshape(sizes.shape)
    columns: list[list[NDArray[Any]]] = [[], [], [], []]
    for number in range(depth):
        for member, levels in enumerate(members):
            if number < len(levels):
                _, source, target, probability, reward = levels[number]
                # Where the last level of a member leads on, there is none to lead to.
                following = firsts[min(number + 1, depth - 1), member]
                columns[0].append(source + np.int32(firsts[number, member]))
                columns[1].append(np.where(target >= 0, target + np.int32(following), target))
                columns[2].append(probability)
                columns[3].append(reward)
    return Chain(sizes.sum(axis=1).tolist(), map(np.concatenate, columns), discounts)


class _Answers:
    """What the model says of each (state, action) that decisions take.

    Parameters
    ----------
    reader
        The model, asked with care.
    forgetful
        Whether a state is met once, so that those of levels gone by need not be kept.

    Attributes
    ----------
    rows
        Of each answer, its first outcome and how many there are.
    outcomes
        The outcomes, with a number for each label.
    labels
        The number of each label of the member that is followed.
    count
        How many answers there are.
    """

    def __init__(self, reader: ModelReader, forgetful: bool) -> None:
        self.reader = reader
        self._forgetful, self._forgotten = forgetful, 0
        self.rows, self.outcomes = np.zeros(64, ANSWER), np.zeros(64, OUTCOME)
        self.count = self._outcome_count = 0
        self._states: list[Any] = [reader.root]
        self._numbers: dict[Any, int] = {reader.root: 0}
        self._labels: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._table = np.full((1, 0), NONE, np.int32)
        self._ends: set[int] = set()

    def know(self, policy: Policy) -> None:
        """Take over the labels of a member of the policy."""
        numbers = self._labels
        self.labels = np.array([numbers.setdefault(label, len(numbers)) for label in policy.labels])
        taken = np.unique(policy.action).tolist()
        for label in taken:
            self._names.setdefault(policy.labels[label], len(self._names))
        self._columns = np.zeros(len(policy.labels), np.intp)
        self._columns[taken] = [self._names[policy.labels[label]] for label in taken]
        wider = np.full((len(self._table), len(self._names)), NONE, np.int32)
        wider[:, : self._table.shape[1]] = self._table
        self._table = wider

    def find(self, states: NDArray[np.int32], actions: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the answer about each action in each state; what is missing is asked."""
        if len(self._table) < len(self._states):
            if 2 * len(self._states) * len(self._names) > MOST_ENTRIES:
                raise _UnexpectedError
            self._table = _double(self._table, len(self._states), NONE)
        columns = self._columns[actions]
        answers = self._table[states, columns]
        missing = answers == NONE
        if missing.any():
            pairs = np.stack([states[missing], columns[missing]], axis=1)
            names = list(self._names)
            for state, column in np.unique(pairs, axis=0).tolist():
                self._table[state, column] = self._ask(state, names[column])
            answers = self._table[states, columns]
        return answers

    def forget_before(self, states: NDArray[np.int32]) -> None:
        """Keep the states that are followed next, and drop those before them."""
        if self._forgetful and len(states):
            first = int(states.min())
            self._states[self._forgotten : first] = [None] * (first - self._forgotten)
            self._forgotten = first

    def require_ends(self, states: NDArray[np.int32]) -> None:
        """Refuse states that have actions."""
        for state in set(states.tolist()) - self._ends:
            if self.reader.actions(self._states[state]):
                raise _UnexpectedError
            self._ends.add(state)

    def _ask(self, state: int, label: str) -> int:
        place = self._states[state]
        actions = self.reader.actions(place)
        if label not in actions:
            raise _UnexpectedError
        outcomes = self.reader.outcomes(place, actions[label])
        if not all(_is_float(o.probability) and _is_float(o.reward) for o in outcomes):
            raise _UnexpectedError  # a fraction: arrays would round it
        begin = self._outcome_count
        self._outcome_count += len(outcomes)
        if self._outcome_count > len(self.outcomes):
            self.outcomes = _double(self.outcomes, self._outcome_count)
        if self.count == len(self.rows):
            self.rows = _double(self.rows, self.count + 1)
        self.outcomes[begin : self._outcome_count] = [
            (
                float(outcome.probability),
                float(outcome.reward),
                NONE if outcome.fails else self._number(outcome.state),
                self._labels.get(label, OTHER_LABEL),
                outcome.fails,
            )
            for outcome, label in zip(outcomes, label_outcomes(outcomes), strict=True)
        ]
        self.rows[self.count] = (begin, len(outcomes))
        self.count += 1
        return self.count - 1

    def _number(self, state: Any) -> int:
        number = count = len(self._states)
        if self.reader.merges:
            try:
                number = self._numbers.setdefault(state, count)
            except Exception as error:
                raise self.reader.refuse_comparison(state, error) from error
        if number == count:
            self._states.append(state)
        return number


def _is_float(number: Any) -> bool:
    """Whether a number is a float, or could be one without a rounding."""
    return type(number) is float or float(number) == number


def _double(array: NDArray[Any], least: int, blank: int = 0) -> NDArray[Any]:
    """Return an array twice as long as it must be, the rest of it blank."""
    longer = np.zeros((2 * least, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    if blank:
        longer[len(array) :] = blank
    return longer
