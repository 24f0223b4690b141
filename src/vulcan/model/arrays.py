"""Models given as arrays: a row for each outcome of each action of each state.

    state        which state the action is taken in, a number from 0
    action       which action it is, a number from 0
    target       the state that the outcome leads to, or -1 for a failure
    probability  how likely the outcome is
    reward       what it earns

Nothing is asked row by row: state graphs take the arrays over as they are. A state without rows is
a safe terminal. Rows of one action that lead to the same state with the same reward can't be told
apart by an observer, and are added up.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vulcan.errors import ModelError
from vulcan.model.interface import Outcome
from vulcan.model.rules import Rule, Violation
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = ["ArrayModel"]

FAILURE_TARGET = -1


class ArrayModel:
    """A model given as arrays, one row for each outcome.

    Parameters
    ----------
    state, action, target, probability, reward
        The rows, in any order; see the head of this module. `reward` may be one number for all.
    horizon
        How many actions a history has at most.
    start
        The initial state.
    discount
        As in every model.
    action_labels
        The name of each action; by default its number.

    Attributes
    ----------
    first_action, first_row
        The actions of state s are first_action[s] to first_action[s + 1] - 1, in the order of their
        numbers, and the rows of action k are first_row[k] to first_row[k + 1] - 1, safe ones first.
    number, target, probability, reward
        The number of each action, and the rows in that order.

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

    def __init__(
        self,
        state: ArrayLike,
        action: ArrayLike,
        target: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike = 0.0,
        *,
        horizon: int,
        start: int = 0,
        discount: float = 1.0,
        action_labels: Sequence[str] | None = None,
    ) -> None:
        self.horizon, self.start, self.discount = horizon, start, discount
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
        self.states = 1 + max(int(rows["state"].max()), int(rows["target"].max()), start)
        if not start >= 0:
            raise _refuse(Rule.STATES, f"start must be the number of a state, not {start!r}")
        self._arrange(rows)
        self.action_labels = self._name_actions(action_labels)

    def __repr__(self) -> str:
        counts = f"{self.states:,} states, {len(self.target):,} rows"
        return f"ArrayModel({counts}, horizon={self.horizon})"

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
        """A digest of all rows, the horizon, the start and the discount."""
        digest = hashlib.sha256(repr((self.horizon, self.start, self.discount)).encode())
        for array in (self.first_row, self.number, self.first_action, self.target):
            digest.update(np.ascontiguousarray(array, np.int64).tobytes())
        digest.update(self.probability.tobytes() + self.reward.tobytes())
        return digest.hexdigest()

    def begin_at(self, start: int, horizon: int) -> ArrayModel:
        """Return the same rows with another initial state and horizon."""
        model = copy.copy(self)
        model.__dict__.pop("fingerprint", None)
        model.start, model.horizon = start, horizon
        return model

    def _name_actions(self, labels: Sequence[str] | None) -> tuple[str, ...]:
        count = int(self.number.max()) + 1
        if labels is None:
            return tuple(map(str, range(count)))
        if isinstance(labels, str) or len(labels) < count or len(set(labels)) < len(labels):
            message = f"action_labels must be {count} different names, not {labels!r}"
            raise _refuse(Rule.ACTION_LABELS_DIFFER, message)
        return tuple(map(str, labels))

    def initial_state(self) -> int:
        """Return the state before any action."""
        return self.start

    def actions(self, state: int) -> list[int]:
        """Return the numbers of the actions of a state."""
        first, end = self.first_action[state : state + 2].tolist()
        numbers: list[int] = self.number[first:end].tolist()
        return numbers

    def action_label(self, action: int) -> str:
        """Return the name of an action."""
        return self.action_labels[action]

    def outcomes(self, state: int, action: int) -> list[Outcome]:
        """Return the outcomes of an action in a state."""
        first, end = self.first_action[state : state + 2].tolist()
        place = first + int(np.searchsorted(self.number[first:end], action))
        begin, stop = self.first_row[place : place + 2].tolist()
        return [
            Outcome.failure(p, r) if s == FAILURE_TARGET else Outcome(p, r, s)
            for p, r, s in zip(
                self.probability[begin:stop].tolist(),
                self.reward[begin:stop].tolist(),
                self.target[begin:stop].tolist(),
                strict=True,
            )
        ]


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
