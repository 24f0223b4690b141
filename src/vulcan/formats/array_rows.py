"""Transitions of an array model in any of their forms, as rows (`vulcan.formats.arrays`).

Rows remember what they were given as, so that a message can say where something is wrong, and
rewards can be given in the same form.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError
from vulcan.model.arrays import FAILURE_TARGET, limit_numbers
from vulcan.model.rules import Rule, Violation
from vulcan.parameters import shorten
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = ["Table", "plain", "read_transitions", "to_floats"]

ORDERS: Final = ("action", "state")
FORMS_OF_TRANSITIONS: Final = (
    "transitions must be an array [A, S, S] or [S, A, S], a list of A sparse matrices [S, S], or "
    "rows [N, 4] or [N, 5]"
)


def plain(number: int, names: Sequence[Hashable] | None) -> Any:
    """Return what stands for a state."""
    return int(number) if names is None else names[number]


@dataclass
class Table:
    """Transitions as rows, with what they were given as.

    Attributes
    ----------
    state, action, target, probability
        The rows.
    reward
        The rewards that were given with the rows; None without them.
    states, actions
        How many there are.
    shape
        Of a dense array; None otherwise.
    order
        The axis of it that comes first.
    """

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    target: NDArray[np.int64]
    probability: NDArray[np.float64]
    states: int
    actions: int
    reward: NDArray[np.float64] | None = None
    shape: tuple[int, ...] | None = None
    order: str = "action"

    def __post_init__(self) -> None:
        """Refuse numbers for which there would be no room."""
        most = limit_numbers(len(self.state))
        for what, count in (("states", self.states), ("actions", self.actions)):
            if self.shape is None and count > most:
                raise OptionError(
                    f"{what} must be numbered without large gaps: those of {len(self.state)} "
                    f"transitions from 0 to {most - 1}, not to {count - 1}"
                )

    def widen(self, states: int) -> None:
        """Let there be as many states as have names."""
        if states < self.states or (self.shape is not None and states != self.states):
            raise OptionError(f"state_names must be {self.states} names, not {states}")
        self.states = states

    def find_rewards(self, rewards: Any) -> NDArray[np.float64]:
        """Return the reward of each row."""
        if self.reward is not None:
            if not (np.ndim(rewards) == 0 and rewards == 0):
                raise OptionError("rewards are given twice: by rows [N, 5], and by themselves")
            return self.reward
        if _is_sparse_list(rewards):
            return self._find_sparse(rewards)
        array = to_floats("rewards", rewards)
        pairs = (self.states, self.actions)
        if array.ndim == 0:
            return np.full(len(self.state), float(array))
        if array.shape == pairs[:1]:
            return array[self.state]
        if array.shape == pairs:
            return array[self.state, self.action]
        if array.ndim == 3 and array.shape == self.shape:
            axes = (
                (self.action, self.state) if self.order == "action" else (self.state, self.action)
            )
            return np.asarray(array[(*axes, self.target)])
        dense = f", or {list(self.shape)} like the transitions" if self.shape is not None else ""
        allowed = f"one number, an array [{self.states}], {list(pairs)}{dense}"
        turned = "; it may have to be transposed" if array.shape == pairs[::-1] else ""
        raise OptionError(f"rewards must be {allowed}, not of shape {list(array.shape)}{turned}")

    def _find_sparse(self, rewards: Sequence[Any]) -> NDArray[np.float64]:
        shapes = [tuple(matrix.shape) for matrix in rewards]
        wanted = [(self.states, self.states)] * self.actions
        if shapes != wanted:
            described = f"{self.actions} matrices {list(wanted[0])}"
            raise OptionError(f"rewards must be {described}, not {shorten(shapes)}")
        found = np.zeros(len(self.state))
        for action, matrix in enumerate(rewards):
            rows = np.flatnonzero((self.action == action) & (self.target >= 0))
            if len(rows):  # scipy returns another kind of nothing
                chosen = matrix.tocsr()[self.state[rows], self.target[rows]]
                found[rows] = np.asarray(chosen, float).ravel()
        return found

    def check(
        self, reward: NDArray[np.float64], kept: NDArray[np.bool_], names: Sequence[Hashable] | None
    ) -> None:
        """Refuse probabilities and rewards that break a rule, by the place where they were."""
        chance = self.probability
        for rule, fine, values, allowed in (
            (Rule.PROBABILITIES, (chance >= 0) & (chance <= 1), chance, "from 0 to 1"),
            (Rule.REWARDS, np.abs(reward) <= LARGEST_REWARD, reward, f"at most {LARGEST_REWARD:g}"),
        ):
            if (wrong := np.flatnonzero(kept & ~fine)).size:
                row = int(wrong[0])
                what = "a probability" if rule is Rule.PROBABILITIES else "a reward"
                target = self.target[row]
                into = (
                    "failure"
                    if target == FAILURE_TARGET
                    else f"state {shorten(plain(target, names))}"
                )
                message = f"{what} must be {allowed}, not {values[row]} (into {into})"
                self._refuse(rule, row, message, names)
        # There may be far fewer pairs of a state and an action than products of their numbers.
        pairs, where = np.unique(self.state * self.actions + self.action, return_inverse=True)
        sums = np.bincount(where[kept], chance[kept], minlength=len(pairs))
        if (wrong := np.flatnonzero(kept & (np.abs(sums - 1) > SUM_TOLERANCE)[where])).size:
            row = int(wrong[0])
            message = f"probabilities sum to {sums[where[row]]:.12g}, not to 1"
            self._refuse(Rule.PROBABILITIES_SUM, row, message, names)

    def _refuse(self, rule: Rule, row: int, message: str, names: Sequence[Hashable] | None) -> None:
        state, action = int(self.state[row]), int(self.action[row])
        if self.shape is None:
            place = ""
        else:
            axes = (action, state) if self.order == "action" else (state, action)
            place = f"transitions[{axes[0]}, {axes[1]}]: "
        raise ModelError(Violation(rule, place + message, plain(state, names), action))


def read_transitions(transitions: Any, order: str | None) -> Table:
    """Return the rows of transitions, whatever form they are in."""
    if order not in (None, *ORDERS):
        raise OptionError(f'order must be "action" or "state", not {order!r}')
    if _is_sparse_list(transitions):
        return _read_sparse(transitions)
    array = to_floats("transitions", transitions)
    if array.ndim == 2 and array.shape[1] in (4, 5) and len(array):
        return _read_rows(array)
    if array.ndim != 3 or not array.size:
        raise OptionError(f"{FORMS_OF_TRANSITIONS}, not of shape {list(array.shape)}")
    first, second, states = array.shape
    possible = [name for name, axis in zip(ORDERS, (second, first), strict=True) if axis == states]
    if not possible or order not in (None, *possible):
        wanted = "" if order is None else f" with order={order!r}"
        raise OptionError(f"{FORMS_OF_TRANSITIONS}, not of shape {list(array.shape)}{wanted}")
    if order is None and len(possible) > 1:
        raise OptionError(
            f"transitions of shape {list(array.shape)} may be [A, S, S] or [S, A, S]: "
            'say order="action" or order="state"'
        )
    order = order or possible[0]
    # A negative or missing number must be met, rather than passed over.
    one, two, target = np.nonzero(array)
    action, state = (one, two) if order == "action" else (two, one)
    actions = first if order == "action" else second
    columns = (state, action, target, array[one, two, target])
    return Table(*columns, states, actions, shape=array.shape, order=order)


def _read_rows(array: NDArray[np.float64]) -> Table:
    """Read rows: state, action, next state, probability and perhaps reward."""
    numbers = np.nan_to_num(array[:, :3], nan=0.5, posinf=0.5, neginf=0.5).astype(np.int64)
    fine = (numbers == array[:, :3]) & (numbers >= (0, 0, FAILURE_TARGET))
    if not fine.all():
        row, column = np.argwhere(~fine)[0].tolist()
        name = ("a state", "an action", "a next state, or -1 for a failure")[column]
        raise OptionError(
            f"transitions[{row}, {column}] must be the number of {name}, not {array[row, column]}"
        )
    state, action, target = numbers.T
    states, actions = int(max(state.max(), target.max())) + 1, int(action.max()) + 1
    reward = array[:, 4] if array.shape[1] == 5 else None
    return Table(state, action, target, array[:, 3], states, actions, reward)


def _read_sparse(matrices: Sequence[Any]) -> Table:
    states = int(matrices[0].shape[0])
    for action, matrix in enumerate(matrices):
        if tuple(matrix.shape) != (states, states):
            shape = list(matrix.shape)
            raise OptionError(
                f"transitions[{action}] must be of shape {[states, states]}, not {shape}"
            )
    entries = [matrix.tocoo() for matrix in matrices]
    counts = [len(entry.data) for entry in entries]
    return Table(
        np.concatenate([entry.row for entry in entries]).astype(np.int64),
        np.repeat(np.arange(len(entries)), counts),
        np.concatenate([entry.col for entry in entries]).astype(np.int64),
        np.concatenate([entry.data for entry in entries]).astype(float),
        states,
        len(entries),
    )


def _is_sparse_list(value: Any) -> bool:
    if hasattr(value, "tocoo"):
        raise OptionError(f"{FORMS_OF_TRANSITIONS}, not one sparse matrix")
    listed = isinstance(value, list | tuple) and len(value) > 0
    return listed and all(hasattr(matrix, "tocoo") for matrix in value)


def to_floats(what: str, value: Any) -> NDArray[np.float64]:
    """Return numbers as an array; a message calls them `what`."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{what} must be numbers, all rows of one length: {error}") from None
