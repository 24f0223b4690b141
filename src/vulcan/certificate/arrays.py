"""The Markov chain of a policy for a model that is given as arrays, a level at a time.

The rows of an `ArrayModel` are its answers (`vulcan.model.arrays`), so that a level of the policy
takes a few operations on arrays. Its nodes are the places. The first one has the initial state; the
state of every other node is where the transitions to it lead, and all of them must agree. Every
row taken is compared with the policy's record, as `vulcan.policy.walk.ModelCheck` does.

Nothing is refused here: where model or policy are of another form, or differ in anything, there is
no answer, and `vulcan.certificate.walk` evaluates pair by pair and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.walk import Chain, Watch
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.numerics import (
    END,
    FAILED,
    LARGEST_REWARD,
    NONE,
    SMALLEST_PROBABILITY,
    SUM_TOLERANCE,
)
from vulcan.policy.policy import AnyPolicy, Policy
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import check_time

METHODS: Final = frozenset(name for name, own in vars(ArrayModel).items() if callable(own))
OTHERS: Final = frozenset({"key", "least_reward", "outcomes_batch"})
BLOCK: Final = 1 << 18  # outcomes that are compared with the model at once


def follow_arrays(policy: AnyPolicy, reader: ModelReader, watch: Watch) -> tuple[Chain, int] | None:
    """Return the chain of a policy and the number of pairs evaluated; None if it has another form.

    The policy records no charges.
    """
    model = reader.model
    plain = type(model) is ArrayModel and (METHODS | OTHERS).isdisjoint(vars(model))
    if not plain or isinstance(reader.root, Start) or not all(map(len, policy.members)):
        return None
    rows = _Rows(model)
    if policy.about.discount != reader.discount or not rows.are_sound():
        return None
    levels = []
    for number, member in enumerate(policy.members):
        found = rows.follow(member, reader.levels)
        if found is None:
            return None
        levels.append(found)
        watch((number + 1) / len(policy.members))
    sizes, *transitions = _join(policy.members, levels)
    discounts = map(reader.discount_after, range(len(sizes)))
    return Chain(sizes, transitions, discounts), int(np.count_nonzero(rows.taken))


class _Rows:
    """The rows of a model, and which of its actions are `taken`."""

    def __init__(self, model: ArrayModel) -> None:
        self._model = model
        self._counts = np.diff(model.first_row)
        self.taken = np.zeros(len(self._counts), np.bool_)
        self._actions = len(model.action_labels)
        state = np.repeat(np.arange(model.states), np.diff(model.first_action))
        self._keys = state * self._actions + model.number  # ascending

    def are_sound(self) -> bool:
        """Whether the rows are checked, in order, and told apart by targets and rewards."""
        model, counts = self._model, self._counts
        target, chance, reward = model.target, model.probability, model.reward
        if not len(self._keys) or counts.min() < 1 or model.costs or model.event is not None:
            return False
        order = np.where(target == FAILURE_TARGET, model.states, target)
        same = np.ones(len(target) - 1, np.bool_)  # whether a row is of the same action as the next
        same[model.first_row[1:-1] - 1] = False
        later = (order[1:] > order[:-1]) | ((order[1:] == order[:-1]) & (reward[1:] > reward[:-1]))
        off = np.abs(np.add.reduceat(chance, model.first_row[:-1]) - 1)
        return bool(
            np.all(self._keys[1:] > self._keys[:-1])
            and np.all((target >= FAILURE_TARGET) & (target < model.states))
            and np.all((chance >= SMALLEST_PROBABILITY) & (chance <= 1))
            and np.all(np.abs(reward) <= LARGEST_REWARD)
            and np.all(off <= SUM_TOLERANCE - 1e-15 * counts)
            and np.all(later | ~same)
        )

    def follow(self, member: Policy, most: int) -> list[int] | None:
        """Return the first node of each level, and the number of nodes; None if anything differs.

        `most` is the largest number of levels.
        """
        model = self._model
        (start,) = model.start
        numbers = {label: number for number, label in enumerate(model.action_labels)}
        own = np.array([numbers.get(label, NONE) for label in member.labels], np.int64)
        number, counts = own[member.action], np.diff(member.first_outcome)
        state, row = np.full(len(member), NONE, np.int64), np.zeros(len(member), np.intp)
        state[0], firsts, outcomes = start, [0, 1], member.first_outcome.tolist()
        while True:
            check_time()
            begin, end = firsts[-2:]
            wanted = state[begin:end] * self._actions + number[begin:end]
            found = np.minimum(self._keys.searchsorted(wanted), len(self._keys) - 1)
            child = member.child[outcomes[begin] : outcomes[end]]
            if (self._counts[found] != counts[begin:end]).any():
                return None
            row[begin:end] = found
            firsts.append(int(child.max()) + 1)
            if firsts[-1] <= 0:
                break
            onward = (child >= 0).nonzero()[0]
            then = child[onward]
            if len(firsts) > most + 1 or then.min() < end or firsts[-1] > len(member):
                return None
            rows = ranges(model.first_row[found], counts[begin:end])
            state[then] = model.target[rows[onward]]
        del firsts[-1]
        right = self._keys[row] == state * self._actions + number
        if firsts[-1] < len(member) or min(state.min(), number.min()) == NONE or not right.all():
            return None
        last = firsts[-2] if len(firsts) > most else len(member)  # from here on histories end
        return firsts if self._agrees(member, row, state, last) else None

    def _agrees(self, member: Policy, row: Any, state: Any, last: int) -> bool:
        """Return whether the outcomes are those that a member has recorded, and lead on alike."""
        model, used = self._model, np.zeros(len(self.taken), np.bool_)
        used[row] = True
        self.taken |= used
        taken = np.flatnonzero(used)
        texts, label = model.label_rows(taken)
        numbers = {text: number for number, text in enumerate(member.labels)}
        own = np.array([numbers.get(text, NONE) for text in texts], np.int32)
        expected = np.zeros(len(model.target), np.int32)
        expected[ranges(model.first_row[taken], self._counts[taken])] = own[label]
        ends = np.append(np.diff(model.first_action) == 0, False)  # of failure, too
        step = max(1, BLOCK // int(self._counts[taken].max()))
        for begin in range(0, len(row), step):
            check_time()
            part = row[begin : begin + step]
            rows = ranges(model.first_row[part], self._counts[part])
            outcomes = slice(*member.first_outcome[[begin, begin + len(part)]].tolist())
            child, after = member.child[outcomes], model.target[rows]
            onward = (child >= 0).nonzero()[0]
            ended = child[: member.first_outcome[max(begin, last)] - outcomes.start] == END
            if not (
                np.array_equal(expected[rows], member.label[outcomes])
                and np.array_equal(model.probability[rows], member.probability[outcomes])
                and np.array_equal(model.reward[rows], member.reward[outcomes])
                and np.array_equal(after == FAILURE_TARGET, child == FAILED)
                and np.array_equal(state[child[onward]], after[onward])
                and ends[after[: len(ended)][ended]].all()
            ):
                return False
        return True


def _join(members: Sequence[Policy], levels: Sequence[list[int]]) -> Iterator[Any]:
    """Yield the numbers of places of the levels, and the columns of the transitions."""
    most = max(map(len, levels))
    sizes = np.array([np.diff([*own, *own[-1:] * (most - len(own))]) for own in levels])
    yield sizes.sum(0)
    if len(members) == 1:
        (member,) = members
        counts = np.diff(member.first_outcome)
        yield np.repeat(np.arange(len(member), dtype=np.int32), counts)
        yield from (member.child, member.probability, member.reward)
        return
    # Level by level, and within a level member by member.
    firsts = starts(sizes.T.ravel()).reshape(sizes.T.shape).T
    parts: list[list[NDArray[Any]]] = [[] for _ in range(4)]
    places = [
        np.arange(len(member)) + np.repeat(first - starts(size), size)
        for member, first, size in zip(members, firsts, sizes, strict=True)
    ]
    for level in range(most - 1):
        for member, place, own in zip(members, places, levels, strict=True):
            if level + 1 >= len(own):
                continue
            nodes = slice(*own[level : level + 2])
            outcomes = slice(*member.first_outcome[list(own[level : level + 2])].tolist())
            counts = np.diff(member.first_outcome[nodes.start : nodes.stop + 1])
            child = member.child[outcomes]
            parts[0].append(np.repeat(place[nodes], counts))
            parts[1].append(np.where(child >= 0, place[np.maximum(child, 0)], child))
            parts[2].append(member.probability[outcomes])
            parts[3].append(member.reward[outcomes])
    yield from map(np.concatenate, parts)
