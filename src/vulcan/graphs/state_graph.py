"""The state graph of a model in Python, which is asked once for each distinct (state, action).

A kernel that meets a state whose actions were never asked returns, and `expand` asks. What the rows
are is at the head of `vulcan.graphs.base`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError, ConstraintError
from vulcan.graphs.base import Graph, Numbers
from vulcan.graphs.rows import ACTION, OUTCOME, STATE, Rows
from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.parameters import shorten
from vulcan.policies.policy import About, Policy
from vulcan.runtime.garbage import pause_collection
from vulcan.runtime.packing import require, require_names, unpack_array
from vulcan.runtime.ranges import ranges
from vulcan.runtime.sizes import ObjectSizes
from vulcan.sentinels import FAILED, FAILURE_STATE, NONE, UNASKED
from vulcan.tolerance import LARGEST_REWARD, TOLERANCE

__all__ = ["StateGraph"]

Credit = Callable[[Any, Any], float]
"""What a history may claim against the risk bound for a (state, action)."""

PLACE_BYTES: Final = 9
"""What a place in a list takes, with the room that lists have for more."""

INDEX_BYTES: Final = 70
"""What a place in the index takes, and its number."""

NUMBER_BYTES: Final = 41
"""What a number in a list takes."""


class StateGraph(Graph):
    """The part of a model that was asked so far.

    Parameters
    ----------
    reader
        The model, asked with care.
    credit
        A user's credit of a (state, action), checked to be nowhere above the expected reward.

    Attributes
    ----------
    expanded
        The states that were asked, in that order; `release` does not renumber it.
    asking_seconds
        The time that this took.
    """

    def __init__(self, reader: ModelReader, credit: Credit | None = None) -> None:
        super().__init__(reader)
        self._credit = credit
        self.states, self.actions, self.outcomes = Rows(STATE), Rows(ACTION), Rows(OUTCOME)
        self._evaluations = 0
        self.asking_seconds = 0.0
        self.expanded: list[int] = []
        self._state_objects: list[Any] = []
        self._action_labels: list[str] = []
        self._outcome_labels: list[str | None] = []
        self._index: dict[Any, int] = {}
        self._label_numbers: dict[str, int] = {}
        self._ended: set[int] = set()
        self._state_sizes, self._label_sizes = ObjectSizes(), ObjectSizes()
        self._state_objects.append(reader.root)
        if reader.merges:
            self._index[reader.root] = self.ROOT
        self._write(_Gathered())

    def expand(self, state: int) -> None:
        """Ask the model for the actions of a state and all their outcomes."""
        self.expand_all((state,))

    def expand_all(self, states: Sequence[int]) -> None:
        """Ask the model for the actions of some states and all their outcomes.

        Nothing of a state is written before every answer about it has passed its checks.
        """
        began = perf_counter()
        gathered = _Gathered()
        asked = self.reader.answer_all([self._state_objects[state] for state in states])
        try:
            with pause_collection():
                for state, answers in zip(states, asked, strict=True):
                    self._gather(state, answers, gathered)
        finally:
            self._write(gathered)
            self.asking_seconds += perf_counter() - began

    def begin_at(self, reader: ModelReader) -> None:
        """Go on as the graph of a model that begins elsewhere, and answers the same.

        The new initial state changes places with the old one: the first row is always the root.

        Parameters
        ----------
        reader
            That model, whose states merge.
        """
        self.reader = reader
        there = self.add_state(reader.root)
        if there == self.ROOT:
            return
        swap = {self.ROOT: there, there: self.ROOT}
        both, turned = list(swap), list(swap.values())
        self.states.array[both] = self.states.array[turned]
        arrivals = self.outcomes.array["state"][: self.outcomes.count]
        places = [np.flatnonzero(arrivals == number) for number in both]
        for place, number in zip(places, turned, strict=True):
            arrivals[place] = number
        objects = self._state_objects
        objects[self.ROOT], objects[there] = objects[there], objects[self.ROOT]
        for number in both:
            self._index[objects[number]] = number
        self.expanded = [swap.get(state, state) for state in self.expanded]
        self._ended = {swap.get(state, state) for state in self._ended}

    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        rows = np.asarray(action_rows, np.int32)
        actions, outcomes = self.actions.array, self.outcomes.array[: self.outcomes.count]
        # The labels of a row are written once, in the order in which the rows are first taken.
        first_taken = np.full(self.actions.count, NONE, np.int32)
        first_taken[rows[::-1]] = np.arange(len(rows), dtype=np.int32)[::-1]
        distinct = np.flatnonzero(first_taken != NONE)
        distinct = distinct[np.argsort(first_taken[distinct])]
        numbers: dict[str, int] = {}
        action_label = np.zeros(self.actions.count, np.int32)
        outcome_label = np.zeros(self.outcomes.count, np.int32)
        for row in distinct.tolist():
            action_label[row] = numbers.setdefault(self._name_action(row), len(numbers))
            first = int(actions["first_outcome"][row])
            for k, label in enumerate(label_outcomes(self._list_outcomes(row))):
                outcome_label[first + k] = numbers.setdefault(label, len(numbers))
        counts = actions["outcome_count"][rows]
        taken = ranges(actions["first_outcome"][rows], counts)
        child = np.full(len(taken), FAILED, np.int32)
        child[(outcomes["state"] != FAILURE_STATE)[taken]] = children
        return Policy(
            about,
            tuple(numbers),
            action_label[rows],
            np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
            outcome_label[taken],
            np.ascontiguousarray(outcomes["probability"])[taken],
            np.ascontiguousarray(outcomes["reward"])[taken],
            child,
        )

    @property
    def evaluations(self) -> int:
        return self._evaluations

    @property
    def merges(self) -> bool:
        return self.reader.merges

    @property
    def memory(self) -> int:
        rows = sum(row.count * row.array.itemsize for row in self.kinds())
        states, labels = len(self._state_objects), self._count_labels()
        places = PLACE_BYTES * (states + labels)
        places += INDEX_BYTES * len(self._index) + NUMBER_BYTES * len(self.expanded)
        objects = self._state_sizes.total(states) + self._label_sizes.total(labels)
        return int(rows + places + objects)

    def _count_labels(self) -> int:
        return len(self._action_labels) + len(self._outcome_labels)

    def pack(self) -> dict[str, bytes]:
        return {"expanded": np.array(self.expanded, np.int32).tobytes(), "digest": self._digest()}

    def unpack(self, data: Mapping[str, bytes]) -> None:
        """Ask the model again what was asked before a checkpoint."""
        require_names(data, ("expanded", "digest"))
        expanded = unpack_array(data, "expanded", np.zeros(0, np.int32)).tolist()
        # The first of them may have been asked already.
        known = len(self.expanded)
        require(expanded[:known] == self.expanded, "other states were asked first")
        for state in expanded[known:]:
            fresh = 0 <= state < self.states.count
            fresh = fresh and self.states.array["action_count"][state] == UNASKED
            require(fresh, f"state {state} was asked before it was met, or twice")
            self.expand(state)
        self._compare_digest(data)

    def _compare_digest(self, data: Mapping[str, bytes]) -> None:
        if self._digest() != data["digest"]:
            raise CheckpointError("the model no longer answers as it did before the checkpoint")

    def _digest(self) -> bytes:
        """Return bytes that differ between graphs whose rows differ."""
        digest = hashlib.sha256()
        for rows in (self.states, self.actions, self.outcomes):
            for name in rows.array.dtype.names or ():
                digest.update(np.ascontiguousarray(rows.array[name][: rows.count]).tobytes())
        return digest.digest()

    def state_object(self, state: int) -> Any:
        """Return the model's own object of a state."""
        return self._state_objects[state]

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state]
        return self._action_labels[first : first + max(0, count)]

    @property
    def labels(self) -> Sequence[str]:
        return list(self._label_numbers)

    def number_of(self, label: str) -> int:
        return self._label_numbers.setdefault(label, len(self._label_numbers))

    def pack_state(self, state: int) -> Any:
        return self.state_object(state)

    def add_state(self, packed: Any) -> int:
        number = new = len(self._state_objects)
        if self.reader.merges:
            try:
                number = self._index.setdefault(packed, new)
            except Exception as error:
                raise self.reader.refuse_comparison(packed, error) from error
        if number == new:
            self._state_objects.append(packed)
            self.states.append([(0, UNASKED)])
        return number

    def describe_outcome(self, action: int, outcome: int) -> tuple[str, str]:
        """Return the labels of an action row and of one of its outcome rows."""
        first = int(self.actions.array["first_outcome"][action])
        labels = label_outcomes(self._list_outcomes(action))
        return self._name_action(action), labels[outcome - first]

    def _keep_objects(
        self,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        self._take_objects(self, kept_states, kept_actions, kept_outcomes)

    def _open_other(self, state: int, reader: ModelReader) -> StateGraph:
        other = StateGraph(reader)
        other._label_numbers = dict(self._label_numbers)
        # Nothing was asked there yet; how long answers take is known all the same.
        other.asking_seconds = self.asking_seconds / max(1, self.evaluations)
        return other

    def _take_objects(
        self,
        other: StateGraph,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        kept, there = len(kept_actions) + len(kept_outcomes), other._count_labels()
        self._label_sizes = other._label_sizes.share(kept, there)
        kept, there = len(kept_states), len(other._state_objects)
        self._state_sizes = other._state_sizes.share(kept, there)
        self._state_objects = [other._state_objects[k] for k in kept_states]
        self._action_labels = [other._action_labels[k] for k in kept_actions]
        self._outcome_labels = [other._outcome_labels[k] for k in kept_outcomes]
        counts = self.states.array["action_count"][: self.states.count]
        self._ended = set(np.flatnonzero(counts == 0).tolist())
        if other is not self:
            self.expanded = np.flatnonzero(counts >= 0).tolist()

    def _gather(
        self, state: int, answers: Sequence[tuple[str, Any, Sequence[Outcome]]], to: _Gathered
    ) -> None:
        """Gather what the model said of a state."""
        place = self._state_objects[state]
        before = len(self._state_objects), len(self._action_labels), len(self._outcome_labels)
        rows = []
        for label, action, outcomes in answers:
            number = self._label_numbers.setdefault(label, len(self._label_numbers))
            numbers = [(float(o.probability), float(o.reward)) for o in outcomes]
            mean = math.fsum(probability * reward for probability, reward in numbers)
            credit = self._credit_of(place, action, mean)
            rows.append((number, label, outcomes, numbers, mean, credit, self._find_all(outcomes)))
        self._evaluations += len(rows)
        to.states.append((state, self.actions.count + len(to.actions), len(rows)))
        if not rows:
            self._ended.add(state)
        for number, label, outcomes, numbers, mean, credit, reached in rows:
            safe = len(reached)
            risk = math.fsum([p for p, _ in numbers[safe:]]) if reached else 1.0
            first = self.outcomes.count + len(to.reached)
            open_count = safe
            if self._ended and not self._ended.isdisjoint(reached):
                open_count = sum(target not in self._ended for target in reached)
            to.actions.append((mean, risk, credit, first, safe, len(numbers), open_count, number))
            to.numbers += numbers
            to.reached += reached
            to.reached += [FAILURE_STATE] * (len(numbers) - safe)
            self._action_labels.append(label)
            self._outcome_labels += [outcome.label for outcome in outcomes]
        self.expanded.append(state)
        self._look(place, *before)

    def _look(self, place: Any, states: int, actions: int, outcomes: int) -> None:
        """See from time to time what objects take: those that came after so many of each kind."""
        count, labels = len(self._state_objects), self._count_labels()
        if count > states and self._state_sizes.is_due(count):
            self._state_sizes.look(count, self._state_objects[states:], (place,))
        if labels > actions + outcomes and self._label_sizes.is_due(labels):
            new = [*self._action_labels[actions:], *self._outcome_labels[outcomes:]]
            self._label_sizes.look(labels, new)

    def _find_all(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the numbers of the states that outcomes lead to, new ones for new states."""
        states = [outcome.state for outcome in outcomes if outcome.state is not FAILURE]
        if self.reader.merges:
            index, objects, numbers = self._index, self._state_objects, []
            try:
                for state in states:
                    number = index.setdefault(state, len(objects))
                    if number == len(objects):
                        objects.append(state)
                    numbers.append(number)
            except Exception as error:
                raise self.reader.refuse_comparison(state, error) from error
            return numbers
        first = len(self._state_objects)
        self._state_objects += states
        return list(range(first, first + len(states)))

    def _write(self, gathered: _Gathered) -> None:
        """Write the rows of what was gathered."""
        new = len(self._state_objects) - self.states.count
        self.states.append([(0, UNASKED)] * new)
        for state, first, count in gathered.states:
            self.states.array[state] = (first, count)
        self.actions.append(gathered.actions)
        rows = self.outcomes.extend(len(gathered.reached))
        rows["probability"], rows["reward"] = np.array(gathered.numbers).reshape(-1, 2).T
        rows["state"] = gathered.reached

    def _credit_of(self, state: Any, action: Any, mean: float) -> float:
        if self._credit is None or isinstance(state, Start):
            return mean
        try:
            credit = float(self._credit(state, action))
        except Exception as error:
            place = f"in state {shorten(state)}, action {shorten(action)}"
            raise ConstraintError(f"credit raised {shorten(error)} {place}") from error
        if not -LARGEST_REWARD <= credit <= mean + TOLERANCE:
            place = f"in state {shorten(state)}, action {shorten(action)}"
            raise ConstraintError(
                f"credit {credit!r} {place}: it must be a number from {-LARGEST_REWARD:g} to the "
                f"expected reward, {mean!r}"
            )
        return credit

    def _name_action(self, row: int) -> str:
        return self._action_labels[row]

    def _list_outcomes(self, row: int) -> list[Outcome]:
        """Return all outcomes of an action row, as far as their labels need them."""
        first, count = self.actions.array[["first_outcome", "outcome_count"]][row].item()
        states = self.outcomes.array["state"][first : first + count].tolist()
        rewards = self.outcomes.array["reward"][first : first + count].tolist()
        given = self._outcome_labels[first : first + count]
        return [
            Outcome(0, reward, FAILURE if s == FAILURE_STATE else self._state_objects[s], label)
            for s, reward, label in zip(states, rewards, given, strict=True)
        ]


class _Gathered:
    """What the model said, on its way to the rows: one conversion for many answers."""

    def __init__(self) -> None:
        self.states: list[tuple[int, int, int]] = []  # state, first_action, action_count
        self.actions: list[tuple[Any, ...]] = []
        self.numbers: list[tuple[float, float]] = []  # probability, reward
        self.reached: list[int] = []
