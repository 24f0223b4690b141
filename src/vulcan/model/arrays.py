"""Models given as arrays: a row for each outcome of each action of each state.

    state        which state the action is taken in, a number from 0
    action       which action it is, a number from 0
    target       the state that the outcome leads to, or -1 for a failure
    probability  how likely the outcome is
    reward       what it earns

Nothing is asked row by row: state graphs take the arrays over as they are. A state without rows is
a safe terminal. Rows of one action that lead to the same state with the same reward can't be told
apart by an observer, and are added up. To whoever asks, states and actions are their numbers, or
the objects that stand for them (`state_names`, `action_names`).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vulcan.errors import ModelError
from vulcan.model.interface import Outcome, Start
from vulcan.model.rules import Rule, Violation
from vulcan.model.text import stable_text
from vulcan.parameters import shorten
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = ["FAILURE_TARGET", "ArrayModel", "limit_numbers"]

FAILURE_TARGET = -1

FEWEST: Final = 1 << 20
GAPS: Final = 64
MOST: Final = (1 << 31) - 1
"""Rows of graphs are numbered with 32 bits."""


def limit_numbers(rows: int) -> int:
    """Return how many states, or actions, so many rows may number.

    Arrays have a place for each of them, also for one that is never met: so a single row with a
    large number would take all memory.
    """
    return min(MOST, max(FEWEST, GAPS * rows))


class ArrayModel:
    """A model given as arrays, one row for each outcome.

    Parameters
    ----------
    state, action, target, probability, reward
        The rows, in any order; see the head of this module. `reward` may be one number for all.
    horizon
        How many actions a history has at most.
    start
        The number of the initial state, or the probability of each state to be it.
    discount
        As in every model.
    action_labels
        What people call each action; by default its number, or its own text.
    state_names, action_names
        What stands for each state and each action instead of its number: anything hashable.

    Attributes
    ----------
    states
        How many states there are.
    start
        The states that are drawn at the start, and how probably; one state with probability 1 is
        simply where every history begins.
    first_action, first_row
        The actions of state s are first_action[s] to first_action[s + 1] - 1, in the order of their
        numbers, and the rows of action k are first_row[k] to first_row[k + 1] - 1, safe ones first.
    number, target, probability, reward
        The number of each action, and the rows in that order.
    source
        The name of the file that it was read from; None without one.

    Raises
    ------
    ModelError
        If a row breaks a rule; the message names it.

    Examples
    --------
    >>> model = ArrayModel([0, 0, 0], [0, 1, 1], [1, 1, -1], [1.0, 0.9, 0.1], [1.0, 3.0, 0.0],
    ...                    horizon=1, action_labels=["walk", "run"])
    >>> [model.action_label(action) for action in model.actions(0)]
    ['walk', 'run']
    >>> model.outcomes(0, 0)
    [Outcome(probability=1.0, reward=1.0, state=1, label=None)]
    """

    source: str | None = None

    def __init__(
        self,
        state: ArrayLike,
        action: ArrayLike,
        target: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike = 0.0,
        *,
        horizon: int,
        start: int | ArrayLike = 0,
        discount: float = 1.0,
        action_labels: Sequence[str] | None = None,
        state_names: Sequence[Hashable] | None = None,
        action_names: Sequence[Hashable] | None = None,
    ) -> None:
        self.horizon, self.discount = horizon, discount
        rows = {
            "state": _to_numbers("state", state),
            "action": _to_numbers("action", action),
            "target": _to_numbers("target", target),
            "probability": np.asarray(probability, float),
        }
        rows["reward"] = np.broadcast_to(np.asarray(reward, float), rows["state"].shape)
        _check_rows(rows)
        kept = rows["probability"] > 0
        rows = _add_up_equal({name: column[kept] for name, column in rows.items()})
        self.start = _read_start(start)
        largest = (rows["state"].max(), rows["target"].max(), max(self.start))
        # A distribution has a place for every state, also for one that nothing leads to.
        self.states = max(1 + int(max(largest)), np.size(start))
        self._actions = 1 + int(rows["action"].max())
        most = limit_numbers(max(len(rows["state"]), np.size(start)))
        for what, count in (("states", self.states), ("actions", self._actions)):
            if count > most:
                message = f"{what} must be numbered without large gaps: from 0 to {most - 1}"
                raise _refuse(Rule.STATES, f"{message}, not to {count - 1}")
        self._state_names = _read_names("state_names", state_names, self.states)
        self._action_names = _read_names("action_names", action_names, self._actions)
        if self._state_names is not None:
            self.states = len(self._state_names)
        self._arrange(rows)
        self.action_labels = self._label_actions(action_labels)

    def __repr__(self) -> str:
        counts = f"{self.states:,} states, {len(self.target):,} rows"
        name = "ArrayModel" if self.source is None else f"{self.source} "
        return f"{name}({counts}, horizon={self.horizon})"

    def _arrange(self, rows: dict[str, NDArray[Any]]) -> None:
        """Give numbers to the actions of states, and to the rows of actions."""
        state, action = rows["state"], rows["action"]
        begins = np.ones(len(state), bool)
        begins[1:] = (state[1:] != state[:-1]) | (action[1:] != action[:-1])
        self.first_row = np.append(np.flatnonzero(begins), len(state))
        self.number = action[begins].astype(np.int32)
        counts = np.bincount(state[begins], minlength=self.states)
        self.first_action = np.concatenate(([0], np.cumsum(counts)))
        self.target, self.probability = rows["target"].astype(np.int32), rows["probability"]
        self.reward = rows["reward"]
        sums = np.add.reduceat(self.probability, self.first_row[:-1])
        wrong = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
        if len(wrong):
            place = int(self.first_row[wrong[0]])
            raise _refuse(
                Rule.PROBABILITIES_SUM,
                f"probabilities of action {int(action[place])} sum to {sums[wrong[0]]!r}, not to 1",
                int(state[place]),
            )

    @cached_property
    def fingerprint(self) -> str:
        """A string that differs between models that differ anywhere."""
        names = None if self._state_names is None else [stable_text(x) for x in self._state_names]
        frame = (self.horizon, self.start, self.discount, names, self.action_labels)
        digest = hashlib.sha256(repr(frame).encode())
        for array in (self.first_row, self.number, self.first_action, self.target):
            digest.update(np.ascontiguousarray(array, np.int64).tobytes())
        digest.update(self.probability.tobytes() + self.reward.tobytes())
        return digest.hexdigest()

    def begin_at(self, start: Any, horizon: int) -> ArrayModel:
        """Return the same rows with another initial state and horizon."""
        model = copy.copy(self)
        model.__dict__.pop("fingerprint", None)
        model.start, model.horizon = {self._find_state(start): 1.0}, horizon
        return model

    def _label_actions(self, labels: Sequence[str] | None) -> tuple[str, ...]:
        if labels is None:
            return tuple(map(stable_text, self._action_names or range(self._actions)))
        few = len(labels) < self._actions
        if isinstance(labels, str) or few or len(set(labels)) < len(labels):
            message = f"action_labels must be {self._actions} different names, not {labels!r}"
            raise _refuse(Rule.ACTION_LABELS_DIFFER, message)
        return tuple(map(str, labels))

    @property
    def is_drawn(self) -> bool:
        """Whether the start is drawn."""
        return len(self.start) > 1

    def initial_state(self) -> Any:
        """Return the state before any action, or the distribution that it is drawn from."""
        drawn = [Outcome(p, 0.0, self.state_name(state)) for state, p in self.start.items()]
        return Start.draw(drawn) if self.is_drawn else drawn[0].state

    def actions(self, state: Any) -> list[Any]:
        """Return the actions of a state, in the order of their numbers."""
        place = self._find_state(state)
        first, end = self.first_action[place : place + 2].tolist()
        numbers: list[int] = self.number[first:end].tolist()
        names = self._action_names
        return numbers if names is None else [names[number] for number in numbers]

    def action_label(self, action: Any) -> str:
        """Return what people call an action."""
        return self.action_labels[self._find_action(action)]

    def state_name(self, number: int) -> Any:
        """Return what stands for a state."""
        return number if self._state_names is None else self._state_names[number]

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the outcomes of an action in a state."""
        place = self._find_state(state)
        first, end = self.first_action[place : place + 2].tolist()
        row = first + int(np.searchsorted(self.number[first:end], self._find_action(action)))
        begin, stop = self.first_row[row : row + 2].tolist()
        return [
            Outcome.failure(p, r) if s == FAILURE_TARGET else Outcome(p, r, self.state_name(s))
            for p, r, s in zip(
                self.probability[begin:stop].tolist(),
                self.reward[begin:stop].tolist(),
                self.target[begin:stop].tolist(),
                strict=True,
            )
        ]

    @cached_property
    def _state_numbers(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(self._state_names or ())}

    @cached_property
    def _action_numbers(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(self._action_names or ())}

    def _find_state(self, state: Any) -> int:
        if self._state_names is not None and state in self._state_numbers:
            return self._state_numbers[state]
        if self._state_names is None and state in range(self.states):
            return int(state)
        known = self._state_names or range(self.states)
        raise LookupError(f"there is no state {shorten(state)}; states are {shorten(known)}")

    def _find_action(self, action: Any) -> int:
        number: int = action if self._action_names is None else self._action_numbers[action]
        return number


def _read_start(start: Any) -> dict[int, float]:
    """Return the states that a history may begin in, and how probably."""
    given = np.asarray(start)
    if given.ndim == 0:
        if np.issubdtype(given.dtype, np.integer) and given >= 0:
            return {int(given): 1.0}
        raise _refuse(Rule.STATES, f"start must be the number of a state, not {start!r}")
    if given.ndim != 1 or given.dtype.kind not in "fiu":
        message = f"start must be a state, or a probability for each, not {given.dtype} array"
        raise _refuse(Rule.PROBABILITIES, f"{message} {given.shape}")
    fine = (given >= 0) & (given <= 1)
    if not fine.all():
        place = int(np.argmin(fine))
        message = f"start must be from 0 to 1 for each state, not {given[place]} for state {place}"
        raise _refuse(Rule.PROBABILITIES, message)
    if abs(float(given.sum()) - 1) > SUM_TOLERANCE:
        raise _refuse(Rule.PROBABILITIES_SUM, f"start sums to {float(given.sum())!r}, not to 1")
    drawn = np.flatnonzero(given)
    return dict(zip(drawn.tolist(), given[drawn].astype(float).tolist(), strict=True))


def _read_names(
    what: str, names: Sequence[Hashable] | None, least: int
) -> tuple[Hashable, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or len(names) < least or len(set(names)) < len(names):
        message = f"{what} must be {least} different names, not {shorten(names)}"
        raise _refuse(Rule.STATES, message)
    return tuple(names)


def _to_numbers(name: str, column: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(column)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        message = f"{name} must be a flat array of whole numbers, not {array.dtype} {array.shape}"
        raise _refuse(Rule.STATES, message)
    return array.astype(np.int64)


def _check_rows(rows: dict[str, NDArray[Any]]) -> None:
    """Refuse rows that break a rule."""
    lengths = {name: len(column) for name, column in rows.items()}
    if len(set(lengths.values())) > 1 or not lengths["state"]:
        described = ", ".join(f"{name} {length}" for name, length in lengths.items())
        message = f"columns must be of one length above 0, not {described}"
        raise _refuse(Rule.OUTCOMES_EXIST, message)
    chance, reward = rows["probability"], rows["reward"]
    for rule, name, allowed, fine in (
        (Rule.STATES, "state", "at least 0", rows["state"] >= 0),
        (Rule.STATES, "action", "at least 0", rows["action"] >= 0),
        (Rule.STATES, "target", "a state, or -1 for failure", rows["target"] >= FAILURE_TARGET),
        (Rule.PROBABILITIES, "probability", "from 0 to 1", (chance >= 0) & (chance <= 1)),
        (Rule.REWARDS, "reward", f"at most {LARGEST_REWARD:g}", np.abs(reward) <= LARGEST_REWARD),
    ):
        if not fine.all():
            row = int(np.argmin(fine))
            raise _refuse(rule, f"{name} of row {row} must be {allowed}, not {rows[name][row]!r}")


def _add_up_equal(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the rows by state, action, safety and target; those that look the same as one."""
    fails = rows["target"] == FAILURE_TARGET
    keys = [rows["state"], rows["action"], fails, rows["target"], rows["reward"]]
    order = np.lexsort(keys[::-1])
    rows = {name: column[order] for name, column in rows.items()}
    differs = np.ones(len(order), bool)
    differs[1:] = False
    for name in ("state", "action", "target", "reward"):
        differs[1:] |= rows[name][1:] != rows[name][:-1]
    begins = np.flatnonzero(differs)
    sums = np.add.reduceat(rows["probability"], begins)
    return {name: column[begins] for name, column in rows.items()} | {"probability": sums}


def _refuse(rule: Rule, message: str, state: Any = None) -> ModelError:
    return ModelError(Violation(rule, message, state))
