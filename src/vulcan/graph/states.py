"""State graphs: the answers of a model as flat arrays that kernels read.

States become integers, actions and outcomes rows of arrays in compressed form, and a search is
arithmetic on integers and floats at compiled speed. A graph grows on demand: a kernel that reaches
a state that was not evaluated returns, and `expand` evaluates it, once for each distinct (state,
action).

    states    [S]  first_action, action_count (UNEVALUATED, RELEASED, 0 for a safe terminal)
    actions   [A]  expected_reward R̄, immediate_risk r, credit, first_outcome,
                   safe_count, outcome_count, open_count, number
    outcomes  [O]  probability, reward, state (safe outcomes of an action first; failures have -1),
                   outlook (upper bound on the reward to go; 0 where it is unknown)

`credit` is what constraint A may claim for the action: R̄, or the value of a user's function.
`open_count` counts the safe outcomes that were not known to be safe terminals when the row was
written; searches use it to count histories. `number` is the same for all actions with the same
label; in a compiled model (`vulcan.graph.compiled`), it is the index among all actions.

Where every history is a state of its own (`merges` False) states are never looked up, and `release`
drops every row that is neither on the search's path nor in the policy under construction.

A model that is given as arrays is taken over as a whole (`ArrayGraph`). The root is row 0 of every
graph: a single initial state changes places with state 0 of the model. Where the start is drawn,
the root is a state of its own, with one action that draws, and every state of the model comes one
row later.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.constraints import Constraint, Cost, Risk, RiskAhead, charge
from vulcan.errors import CheckpointError, OptionError
from vulcan.model.answers import Answers, label_answers, label_outcomes, list_states
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.compiled import ANSWER
from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.model.reader import Happened, ModelReader, StateNumbers
from vulcan.numerics import (
    FAILED,
    FAILURE_STATE,
    LARGEST_REWARD,
    NONE,
    RELEASED,
    TOLERANCE,
    UNEVALUATED,
)
from vulcan.parameters import shorten
from vulcan.policy.policy import About, Policy
from vulcan.runtime.arrays import (
    keep_rows,
    lengthen,
    ranges,
    require,
    require_names,
    starts,
    unpack_array,
)
from vulcan.runtime.limits import TimeUp, pause_collection

STATE: Final = np.dtype([("first_action", "i4"), ("action_count", "i4")], align=True)
ACTION: Final = np.dtype(
    [
        ("expected_reward", "f8"),
        ("immediate_risk", "f8"),
        ("credit", "f8"),
        ("first_outcome", "i4"),
        ("safe_count", "i4"),
        ("outcome_count", "i4"),
        ("open_count", "i4"),
        ("number", "i4"),
    ],
    align=True,
)
OUTCOME: Final = np.dtype(
    [("probability", "f8"), ("reward", "f8"), ("outlook", "f8"), ("state", "i4")], align=True
)

SOURCE: Final = np.dtype(
    [
        ("outcomes", "u8"),  # addresses of functions, 0 for none
        ("bound", "u8"),
        ("value_bound", "u8"),
        ("last_value", "u8"),
        ("parameters", "u8"),  # addresses of their arguments
        ("records", "u8"),
        ("answers", "u8"),
        ("following", "u8"),
        ("state_size", "i8"),
        ("numbers", "i8"),  # of actions
        ("most_outcomes", "i8"),
        ("last_steps", "i8"),  # that `last_value` can evaluate
        ("states", "i8"),  # numbers of filled rows
        ("actions", "i8"),
        ("outcome_rows", "i8"),
        ("evaluations", "i8"),
        ("state", "i8"),  # place of an invalid answer
        ("action", "i8"),
    ],
    align=True,
)
"""A compiled model and the filled rows, for kernels (`vulcan.kernels.expand`); else all 0."""

MOST_ROWS: Final = (1 << 31) - 1  # rows are numbered with 32 bits

SMALLEST_GROWTH: Final = 0.05

LARGE_GROWTH: Final = 3.0  # relative growth of arrays whose unfilled part is not counted


def find_growth(arrays: Sequence[NDArray[Any]], memory: float, most: float = 1.0) -> float:
    """Return the relative growth of arrays within this many bytes more: 1 doubles them.

    It is 0 if they could not grow by a twentieth, or would have more rows than can be numbered.
    Unfilled room is never touched, so arrays of which only the filled part counts may grow by more.
    """
    share = min(most, memory / max(1, sum(array.nbytes for array in arrays)))
    longest = max((len(array) for array in arrays), default=0)
    return share if share >= SMALLEST_GROWTH and (1 + share) * longest <= MOST_ROWS else 0.0


class Rows:
    """A growing array of rows; kernels use `array`, of which the first `count` are filled.

    The count is kept in an array of one number, such as a field of `SOURCE` that kernels update.
    """

    def __init__(self, dtype: np.dtype[Any], filled: NDArray[Any] | None = None) -> None:
        self.array: NDArray[np.void] = np.zeros(64, dtype)
        self._filled = np.zeros(1, np.int64) if filled is None else filled

    @property
    def count(self) -> int:
        """Number of filled rows."""
        return int(self._filled[0])

    @count.setter
    def count(self, count: int) -> None:
        self._filled[0] = count

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows at the end."""
        if rows:
            self.extend(len(rows))[:] = rows

    def extend(self, count: int) -> NDArray[np.void]:
        """Add this many rows at the end, and return them, to be filled."""
        begin, self.count = self.count, self.count + count
        if self.count > len(self.array):
            self.lengthen(max(self.count, 2 * len(self.array)))
        return self.array[begin : self.count]

    def lengthen(self, length: int) -> None:
        """Make room for this many rows."""
        self.array = lengthen(self.array, min(self.count, len(self.array)), length)

    def keep(self, kept: NDArray[np.intp]) -> None:
        """Drop every row but those given, in their order."""
        keep_rows(self.array, kept)
        self.count = len(kept)


class RowNumbers:
    """The numbers of states that are given as rows of integers, without an object for each row."""

    def __init__(self, size: int) -> None:
        self._keys = np.zeros((0, size), np.int64)  # the different rows so far
        self._slots = np.zeros(0, np.int32)
        self._numbers = np.zeros(0, np.int64)  # of their states

    def find(
        self, rows: NDArray[np.int64], find_all: Callable[[NDArray[np.int64]], Any]
    ) -> NDArray[np.int64]:
        """Return the number of each row; `find_all` returns those of rows that are new."""
        from vulcan.kernels.rows import number_rows

        before = known = len(self._numbers)
        found, done = np.empty(len(rows), np.int64), 0
        while done < len(rows):
            if known == len(self._keys):
                keys = self._keys
                self._keys = lengthen(keys, known, max(64, 4 * known))
                self._slots = np.full(2 * len(self._keys), NONE, np.int32)
                places = np.empty(known, np.int64)
                number_rows(keys, self._keys, self._slots, 0, places, 0)
            done, known = number_rows(rows, self._keys, self._slots, known, found, done)
        if known > before:
            self._numbers = np.append(self._numbers, find_all(self._keys[before:known]))
        return self._numbers[found]


Numbers = Sequence[int] | NDArray[np.int32]
Rowset = NDArray[np.intp]


class Graph(ABC):
    """The part of a model that was evaluated so far; its rows are those of the module's head."""

    ROOT: Final = 0

    states: Rows
    actions: Rows
    outcomes: Rows

    def __init__(self, reader: ModelReader) -> None:
        self.reader = reader
        self.source = np.zeros(1, SOURCE)  # a compiled model, for kernels; else empty
        self.answers = np.zeros(0, ANSWER)

    def kinds(self) -> tuple[Rows, Rows, Rows]:
        """Return the rows of states, actions and outcomes."""
        return self.states, self.actions, self.outcomes

    @abstractmethod
    def action_labels(self, state: int) -> list[str]:
        """Return the labels of the actions of a state."""

    @property
    @abstractmethod
    def evaluations(self) -> int:
        """Number of (state, action) pairs evaluated so far."""

    @property
    @abstractmethod
    def merges(self) -> bool:
        """Whether equal states are one row, which is never released."""

    @property
    @abstractmethod
    def memory(self) -> int:
        """Bytes of the filled rows, without the Python objects behind them."""

    @property
    def capacity(self) -> int:
        """Bytes of the allocated rows, filled or not."""
        return self.memory

    def evaluate_unstored(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield actions whose outcomes are not stored, and their outcomes."""
        yield from ()

    @abstractmethod
    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        """Return the policy whose decision k takes the k-th of some action rows.

        `children` has the next decision after each safe outcome, one decision after the other.
        """

    @abstractmethod
    def pack(self) -> dict[str, bytes]:
        """Return the content of a checkpoint from which `unpack` restores the rows."""

    @abstractmethod
    def unpack(self, data: Mapping[str, bytes]) -> None:
        """Restore the rows of a checkpoint."""

    def release(self, states: Rowset, actions: Rowset) -> tuple[Rowset, ...]:
        """Drop all rows but some states with all their actions, and some further actions.

        It returns the new numbers of old states, actions and outcomes, -1 for dropped ones.
        """
        state_rows = self.states.array[: self.states.count]
        action_rows = self.actions.array[: self.actions.count]
        counts = np.maximum(state_rows["action_count"][states], 0)
        taken, known = np.zeros(len(action_rows), bool), np.zeros(len(state_rows), bool)
        taken[actions] = taken[ranges(state_rows["first_action"][states], counts)] = True
        kept_actions = np.flatnonzero(taken)
        firsts = action_rows["first_outcome"][kept_actions]
        stored = firsts >= 0
        kept_outcomes = ranges(firsts[stored], action_rows["outcome_count"][kept_actions[stored]])
        reached = self.outcomes.array["state"][kept_outcomes]
        known[states] = known[reached[reached >= 0]] = True
        kept_states = np.flatnonzero(known)
        dropped = state_rows["action_count"] > 0
        dropped[states] = False
        state_rows["action_count"][dropped] = RELEASED
        kept = (kept_states, kept_actions, kept_outcomes)
        maps = tuple(np.full(rows.count, -1, np.intp) for rows in self.kinds())
        for rows, numbers, new in zip(self.kinds(), kept, maps, strict=True):
            new[numbers] = np.arange(len(numbers))
            rows.keep(numbers)
        # References between rows become the new numbers.
        state_map, action_map, outcome_map = maps
        state_rows, action_rows = self.states.array[: self.states.count], self.actions.array
        present = state_rows["action_count"] > 0
        state_rows["first_action"][present] = action_map[state_rows["first_action"][present]]
        state_rows["first_action"][~present] = 0  # unused; the old number may be out of range
        firsts = action_rows["first_outcome"][: self.actions.count]
        firsts[firsts >= 0] = outcome_map[firsts[firsts >= 0]]
        arrivals = self.outcomes.array["state"][: self.outcomes.count]
        arrivals[arrivals >= 0] = state_map[arrivals[arrivals >= 0]]
        self._keep_objects(*kept)
        return maps

    @abstractmethod
    def _keep_objects(self, states: Rowset, actions: Rowset, outcomes: Rowset) -> None:
        """Drop the objects of released rows."""


Credit = Callable[[Any, Any], float]
"""The credit of a (state, action) against the risk bound."""

SHORT: Final = 0.02  # seconds between two checks of the limits during evaluations


def charge_outcomes(
    constraints: Sequence[Constraint], state: Any, outcomes: Sequence[Outcome]
) -> tuple[list[list[float]], list[float]]:
    """Return what each outcome of an action is charged, and on average only the first time."""
    charges = [[float(charge(c, o)) for c in constraints] for o in outcomes]
    happened = state.events if type(state) is Happened else ()
    chances = [float(o.probability) for o in outcomes]
    means = [
        0.0
        if isinstance(constraint, Risk) and constraint.event in happened
        else math.fsum(p * own[k] for p, own in zip(chances, charges, strict=True))
        for k, constraint in enumerate(constraints)
    ]
    return charges, means


class StateGraph(Graph):
    """The evaluated part of a model in Python, perhaps with a user's own credit of actions.

    With `constraints`, `charges` has what each action is charged for each of them on average, and
    `outcome_charges` what each outcome is charged, whether or not its event has happened before.
    """

    def __init__(
        self,
        reader: ModelReader,
        credit: Credit | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        super().__init__(reader)
        self._credit, self._constraints = credit, constraints
        self.charges = Rows(np.dtype([("mean", "f8", (len(constraints),))]))
        self.outcome_charges = Rows(np.dtype([("own", "f8", (len(constraints),))]))
        self.states, self.actions, self.outcomes = Rows(STATE), Rows(ACTION), Rows(OUTCOME)
        self._evaluations = 0
        self.evaluation_seconds = 0.0
        self.expanded: list[int] = []  # states in order; `release` does not renumber them
        self._state_objects: list[Any] = []
        self._action_labels: list[str] = []
        self._outcome_labels: list[str | None] = []
        self._label_numbers = StateNumbers([])
        self._state_objects.append(reader.root)
        self._numbers = StateNumbers(self._state_objects if reader.merges else [])
        self._tables: dict[tuple[int, ...], RowNumbers] = {}  # by the shape of a state
        self._add_states()

    def expand(self, state: int) -> None:
        """Evaluate all actions of a state."""
        self.expand_all((state,))

    def expand_all(self, states: Sequence[int]) -> None:
        """Evaluate all actions of some states; each is written once all its answers are checked."""
        began, reader = perf_counter(), self.reader
        objects = [self._state_objects[state] for state in states]
        try:
            with pause_collection():
                available = reader.list_actions(objects)
                counts = map(len, available)
                taken = list(chain.from_iterable(own.values() for own in available))
                places = list(chain.from_iterable(map(repeat, objects, counts)))
                answers = reader.read_arrays(places, taken)
                self._add(states, available, places, taken, answers)
                reader.sample(objects, available, places, taken, answers)
        finally:
            self.evaluation_seconds += perf_counter() - began

    def expand_while(self, states: Sequence[int], may_go_on: Callable[[], bool]) -> bool:
        """Evaluate some states while `may_go_on`; return whether all of them are done.

        `may_go_on` is called every few hundredths of a second, or after each slower evaluation.
        """
        done, portion = 0, 1
        while may_go_on():
            if done == len(states):
                return True
            began = perf_counter()
            try:
                self.expand_all(states[done : done + portion])
            except TimeUp:
                return False
            done = min(done + portion, len(states))
            portion = 2 * portion if perf_counter() - began < SHORT else max(1, portion // 2)
        return False

    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        rows = np.asarray(action_rows, np.int32)
        actions, outcomes = self.actions.array, self.outcomes.array[: self.outcomes.count]
        # The labels of a row are written once, in the order of the first use of rows.
        first_taken = np.full(self.actions.count, NONE, np.int32)
        first_taken[rows[::-1]] = np.arange(len(rows), dtype=np.int32)[::-1]
        distinct = np.flatnonzero(first_taken != NONE)
        labels, action_label, outcome_label = self._label(
            distinct[np.argsort(first_taken[distinct])]
        )
        counts = actions["outcome_count"][rows]
        taken = ranges(actions["first_outcome"][rows], counts)
        child = np.full(len(taken), FAILED, np.int32)
        child[(outcomes["state"] != FAILURE_STATE)[taken]] = children
        own = self.outcome_charges.array["own"]
        return Policy(
            about,
            labels,
            action_label[rows],
            np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
            outcome_label[taken],
            np.ascontiguousarray(outcomes["probability"])[taken],
            np.ascontiguousarray(outcomes["reward"])[taken],
            child,
            charges={
                constraint.quantity: own[taken, k]
                for k, constraint in enumerate(self._constraints)
                if not isinstance(constraint, RiskAhead)
            },
        )

    def _label(self, rows: Rowset) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.int32]]:
        """Return the labels of action rows and their outcomes, and their numbers for each row."""
        numbers: dict[str, int] = {}
        action_label = np.zeros(self.actions.count, np.int32)
        outcome_label = np.zeros(self.outcomes.count, np.int32)
        for row in rows.tolist():
            action_label[row] = numbers.setdefault(self._name_action(row), len(numbers))
            first = int(self.actions.array["first_outcome"][row])
            for k, label in enumerate(label_outcomes(self._list_outcomes(row))):
                outcome_label[first + k] = numbers.setdefault(label, len(numbers))
        return tuple(numbers), action_label, outcome_label

    @property
    def evaluations(self) -> int:
        return self._evaluations

    @property
    def merges(self) -> bool:
        return self.reader.merges

    @property
    def memory(self) -> int:
        return sum(row.count * row.array.itemsize for row in self.kinds())

    def pack(self) -> dict[str, bytes]:
        return {"expanded": np.array(self.expanded, np.int32).tobytes(), "digest": self._digest()}

    def unpack(self, data: Mapping[str, bytes]) -> None:
        """Evaluate the states of a checkpoint again, and compare the digest of the rows."""
        require_names(data, ("expanded", "digest"))
        expanded = unpack_array(data, "expanded", np.zeros(0, np.int32)).tolist()
        # The first of them may be evaluated already.
        known = len(self.expanded)
        require(expanded[:known] == self.expanded, "states were evaluated in a different order")
        for state in expanded[known:]:
            fresh = 0 <= state < self.states.count
            fresh = fresh and self.states.array["action_count"][state] == UNEVALUATED
            require(fresh, f"state {state} is evaluated before it is reached, or twice")
            self.expand(state)
        self._compare_digest(data)

    def _compare_digest(self, data: Mapping[str, bytes]) -> None:
        if self._digest() != data["digest"]:
            raise CheckpointError("the model no longer answers as it did before the checkpoint")

    def _digest(self) -> bytes:
        """Return bytes that differ between graphs whose rows differ."""
        digest = hashlib.sha256()
        for rows in self.kinds():
            for name in rows.array.dtype.names or ():
                digest.update(np.ascontiguousarray(rows.array[name][: rows.count]).tobytes())
        return digest.digest()

    def state_object(self, state: int) -> Any:
        """Return the model's own object of a state."""
        return self._state_objects[state]

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state]
        return self._action_labels[first : first + max(0, count)]

    def _keep_objects(self, states: Rowset, actions: Rowset, outcomes: Rowset) -> None:
        self._state_objects = [self._state_objects[k] for k in states]
        self._action_labels = [self._action_labels[k] for k in actions]
        self._outcome_labels = [self._outcome_labels[k] for k in outcomes]
        if self._constraints:
            self.charges.keep(actions)
            self.outcome_charges.keep(outcomes)

    def _add(
        self,
        states: Sequence[int],
        available: Sequence[Mapping[str, Any]],
        places: Sequence[Any],
        taken: Sequence[Any],
        answers: Answers,
    ) -> None:
        """Add the rows of some states."""
        from vulcan.kernels.rows import sum_outcomes

        reached = self._find_all(answers.state)
        claims = None if self._credit is None else self._find_credits(places, taken, answers)
        self._add_states()
        counts = np.fromiter(map(len, available), np.int32, len(available))
        expanded = np.array(states, np.intp)
        self.states.array["first_action"][expanded] = self.actions.count + starts(counts)
        self.states.array["action_count"][expanded] = counts
        first, labels = self.outcomes.count, list(chain.from_iterable(available))
        outcomes, actions = self.outcomes.extend(len(reached)), self.actions.extend(len(labels))
        outcomes["probability"], outcomes["reward"] = answers.probability, answers.reward
        outcomes["state"] = reached
        actions["outcome_count"] = answers.counts
        actions["number"] = list(map(self._label_numbers.__getitem__, labels))
        sum_outcomes(actions, self.outcomes.array, self.states.array, first)
        if claims is not None:
            actions["credit"] = claims
        self._evaluations += len(labels)
        self._action_labels += labels
        self._outcome_labels += self._list_labels(answers)
        if self._constraints:
            self._charge(places, answers)
        self.expanded += states

    def _list_labels(self, answers: Answers) -> Sequence[str | None]:
        """Return the labels of outcomes as the model gave them, where rows determine the others."""
        if None in answers.label and (any(answers.costs) or any(answers.event)):
            return label_answers(answers)
        return answers.label

    def _charge(self, places: Sequence[Any], answers: Answers) -> None:
        """Add what the outcomes of actions are charged."""
        for place, outcomes in zip(places, answers.split(), strict=True):
            charges, means = charge_outcomes(self._constraints, place, outcomes)
            self.outcome_charges.append([(own,) for own in charges])
            self.charges.append([(means,)])

    def _find_all(self, states: Sequence[Any]) -> Sequence[int] | NDArray[np.int64]:
        """Return the numbers of next states, adding those that are new."""
        if isinstance(states, np.ndarray):
            if not self.reader.merges:
                return self._find_all(list_states(states))
            shape = states.shape[1:]
            table = self._tables.setdefault(shape, RowNumbers(math.prod(shape)))
            return table.find(
                states.reshape(len(states), math.prod(shape)),
                lambda new: self._find_all(list_states(new.reshape(-1, *shape))),
            )
        if self.reader.merges:
            return self.reader.look_up(self._numbers.__getitem__, states)
        numbers, objects = list[int](), self._state_objects
        for state in states:
            fails = state is FAILURE
            numbers.append(FAILURE_STATE if fails else len(objects))
            if not fails:
                objects.append(state)
        return numbers

    def _add_states(self) -> None:
        """Add rows for the states that have none."""
        new = len(self._state_objects) - self.states.count
        self.states.extend(new)["action_count"] = UNEVALUATED

    def _find_credits(
        self, places: Sequence[Any], taken: Sequence[Any], answers: Answers
    ) -> list[float]:
        means = (
            math.fsum(float(outcome.probability) * float(outcome.reward) for outcome in outcomes)
            for outcomes in answers.split()
        )
        return list(map(self._credit_of, places, taken, means))

    def _credit_of(self, state: Any, action: Any, mean: float) -> float:
        if self._credit is None or isinstance(state, Start):
            return mean
        try:
            credit = float(self._credit(state, action))
        except Exception as error:
            place = f"in state {shorten(state)}, action {shorten(action)}"
            raise OptionError(f"credit raised {shorten(error)} {place}") from error
        if not -LARGEST_REWARD <= credit <= mean + TOLERANCE:
            place = f"in state {shorten(state)}, action {shorten(action)}"
            raise OptionError(
                f"credit {credit!r} {place}: it must be a number from {-LARGEST_REWARD:g} to the "
                f"expected reward, {mean!r}"
            )
        return credit

    def _name_action(self, row: int) -> str:
        return self._action_labels[row]

    def _list_outcomes(self, row: int) -> list[Outcome]:
        """Return the outcomes of an action row, with what their labels depend on."""
        first, count = self.actions.array[["first_outcome", "outcome_count"]][row].item()
        states = self.outcomes.array["state"][first : first + count].tolist()
        rewards = self.outcomes.array["reward"][first : first + count].tolist()
        return [
            Outcome(0, reward, FAILURE if s == FAILURE_STATE else self.state_object(s), **others)
            for s, reward, others in zip(
                states, rewards, self._list_others(first, count), strict=True
            )
        ]

    def _list_others(self, first: int, count: int) -> list[dict[str, Any]]:
        """Return what labels depend on beside states and rewards, as an `Outcome` takes it."""
        return [{"label": label} for label in self._outcome_labels[first : first + count]]


def open_graph(
    reader: ModelReader, credit: Credit | None = None, constraints: Sequence[Constraint] = ()
) -> StateGraph:
    """Return the state graph of a model: complete for an `ArrayModel`, else empty."""
    model = reader.model
    whole = isinstance(model, ArrayModel) and credit is None
    if whole and reader.events and model.event is not None:
        # Where a mission goes on, states know which events have happened.
        whole = reader.events.isdisjoint(model.event[model.target != FAILURE_TARGET].tolist())
    return (ArrayGraph if whole else StateGraph)(reader, credit, constraints)


class ArrayGraph(StateGraph):
    """The complete graph of an `ArrayModel`."""

    def __init__(
        self,
        reader: ModelReader,
        credit: Credit | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        super().__init__(reader, credit, constraints)
        self._model: ArrayModel = reader.model
        # Rows of states and actions before the model's: one of each if the start is drawn.
        self._drawn = int(len(self._model.start) > 1)
        self._first = next(iter(self._model.start))  # the initial state, where it is not drawn
        self._rows = np.arange(self._model.states) + self._drawn  # of each state of the model
        if not self._drawn:
            self._rows[[0, self._first]] = self._rows[[self._first, 0]]
        self._fill()
        self._evaluations = self.actions.count

    @property
    def memory(self) -> int:
        return sum(rows.array.nbytes for rows in self.kinds())

    def unpack(self, data: Mapping[str, bytes]) -> None:
        require_names(data, ("expanded", "digest"))
        self._compare_digest(data)

    def state_object(self, state: int) -> Any:
        """Return the model's own object of a state."""
        if self._drawn:
            return self.reader.root if state == self.ROOT else self._model.state_name(state - 1)
        return self._model.state_name({0: self._first, self._first: 0}.get(state, state))

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state].item()
        return [self._name_action(row) for row in range(first, first + count)]

    def _fill(self) -> None:
        """Fill the rows of states, of outcomes, and then of actions."""
        model, shift = self._model, self._drawn
        self.states.extend(model.states + shift - self.states.count)
        rows = self.states.array[: model.states + shift]
        if shift:
            rows[0] = (0, 1)
        rows["first_action"][self._rows] = model.first_action[:-1] + shift
        rows["action_count"][self._rows] = np.diff(model.first_action)
        drawn = model.start if self._drawn else {}
        rows = self.outcomes.extend(len(drawn) + len(model.target))
        rows["probability"] = np.concatenate((list(drawn.values()), model.probability))
        rows["reward"] = np.concatenate((np.zeros(len(drawn)), model.reward))
        target = np.concatenate((np.array(list(drawn), np.int32), model.target))
        fails = target == FAILURE_TARGET
        rows["state"] = np.where(fails, FAILURE_STATE, self._rows[np.where(fails, 0, target)])
        outcomes = self.outcomes.array[: self.outcomes.count]
        first_row = np.concatenate((np.zeros(self._drawn, np.int64), model.first_row + len(drawn)))
        rows = self.actions.extend(len(first_row) - 1)
        begin = first_row[:-1]

        def add(values: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(np.add.reduceat(values, begin))

        probability, safe = outcomes["probability"], outcomes["state"] != FAILURE_STATE
        counts = self.states.array["action_count"]
        rows["expected_reward"] = rows["credit"] = add(probability * outcomes["reward"])
        rows["safe_count"] = add(safe.astype(np.int64))
        rows["immediate_risk"] = np.where(rows["safe_count"] > 0, add(probability * ~safe), 1.0)
        rows["first_outcome"], rows["outcome_count"] = begin, np.diff(first_row)
        goes_on = safe & (counts[np.where(safe, outcomes["state"], 0)] > 0)
        rows["open_count"] = add(goes_on.astype(np.int64))
        rows["number"][self._drawn :] = model.number
        rows["number"][: self._drawn] = len(model.action_labels)
        means = self.charges.extend(len(rows))["mean"]
        charged = self.outcome_charges.extend(len(outcomes))["own"]
        for k, constraint in enumerate(self._constraints):
            own: Any = np.zeros(len(model.target))
            if isinstance(constraint, Cost):
                own = model.costs.get(constraint.name, own)
            elif isinstance(constraint, Risk) and model.event is not None:
                own = model.event == constraint.event
            charged[len(drawn) :, k] = own
            means[:, k] = add(probability * charged[:, k])

    def _label(self, rows: Rowset) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.int32]]:
        if self._drawn:
            return super()._label(rows)
        model, actions = self._model, self.actions.array
        texts, label = model.label_rows(rows)
        counts, known = actions["outcome_count"][rows], dict[str, int]()
        # The number of each action's label before those of its outcomes.
        place = starts(counts + 1)
        others = np.ones(len(label) + len(rows), np.bool_)
        others[place] = False
        texts += model.action_labels
        number = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
        sequence = np.empty(len(others), np.int32)
        sequence[place] = number[len(texts) - len(model.action_labels) + model.number[rows]]
        sequence[others] = number[label]
        first = np.full(len(known), len(sequence))
        first[sequence[::-1]] = np.arange(len(sequence))[::-1]
        used = np.argsort(first)[: np.count_nonzero(first < len(sequence))]
        number[used] = np.arange(len(used))
        action_label = np.zeros(self.actions.count, np.int32)
        outcome_label = np.zeros(self.outcomes.count, np.int32)
        action_label[rows] = number[sequence[place]]
        outcome_label[ranges(actions["first_outcome"][rows], counts)] = number[sequence[others]]
        names = list(known)
        return tuple(names[k] for k in used.tolist()), action_label, outcome_label

    def _list_others(self, first: int, count: int) -> list[dict[str, Any]]:
        begin = first - self._drawn * len(self._model.start)
        return [{}] * count if begin < 0 else self._model.list_charges(begin, begin + count)

    def _name_action(self, row: int) -> str:
        if row < self._drawn:
            return str(next(iter(self.reader.root.choices)))
        return self._model.action_labels[int(self._model.number[row - self._drawn])]
