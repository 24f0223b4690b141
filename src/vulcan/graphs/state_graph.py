"""The state graph of a model in Python, which is asked once for each distinct (state, action).

A kernel that meets a state whose actions were never asked returns, and `expand` asks. What the rows
are is at the head of `vulcan.graphs.base`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError, ConstraintError
from vulcan.graphs.base import Graph
from vulcan.graphs.rows import ACTION, OUTCOME, STATE, Rows
from vulcan.model.interface import FAILURE, Outcome, Start, label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About, Policy, PolicyBuilder
from vulcan.sentinels import FAILED, FAILURE_STATE, UNASKED
from vulcan.tolerance import LARGEST_REWARD, TOLERANCE

__all__ = ["StateGraph"]

Credit = Callable[[Any, Any], float]
"""What a history may claim against the risk bound for a (state, action)."""

BYTES_PER_STATE: Final = 300
"""What a state object, its labels and its place in the index take in Python, roughly."""


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
    """

    def __init__(self, reader: ModelReader, credit: Credit | None = None) -> None:
        super().__init__(reader)
        self._credit = credit
        self.states, self.actions, self.outcomes = Rows(STATE), Rows(ACTION), Rows(OUTCOME)
        self._evaluations = 0
        self.expanded: list[int] = []
        self._state_objects: list[Any] = []
        self._action_labels: list[str] = []
        self._outcome_labels: list[str | None] = []
        self._index: dict[Any, int] = {}
        self._label_numbers: dict[str, int] = {}
        self._find(reader.root)

    def expand(self, state: int) -> None:
        """Ask the model for the actions of a state and all their outcomes.

        Nothing is written before every answer has passed its checks.
        """
        place = self._state_objects[state]
        answers = []
        for label, action, outcomes in self.reader.answers(place):
            self._evaluations += 1
            mean = math.fsum(float(o.probability) * float(o.reward) for o in outcomes)
            answers.append((label, outcomes, mean, self._credit_of(place, action, mean)))
        first = self.actions.count
        for answer in answers:
            number = self._label_numbers.setdefault(answer[0], len(self._label_numbers))
            self._append(number, *answer)
        self.states.array[state] = (first, len(answers))
        self.expanded.append(state)

    def policy(
        self, action_rows: Sequence[int], children: Sequence[Sequence[int]], about: About
    ) -> Policy:
        builder = PolicyBuilder(about)
        described: dict[int, list[str]] = {}
        for row, below in zip(action_rows, children, strict=True):
            action = self.actions.array[row]
            span = slice(action["first_outcome"], action["first_outcome"] + action["outcome_count"])
            outcomes = self.outcomes.array[span]
            if row not in described:
                described[row] = self._label_outcomes(span)
            ends = [*below, *[FAILED] * (len(outcomes) - len(below))]
            builder.add(
                self._action_labels[row],
                described[row],
                outcomes["probability"].tolist(),
                outcomes["reward"].tolist(),
                ends,
            )
        return builder.build()

    @property
    def evaluations(self) -> int:
        return self._evaluations

    @property
    def merges(self) -> bool:
        return self.reader.merges

    @property
    def memory(self) -> int:
        rows = (self.states, self.actions, self.outcomes)
        known = sum(row.count * row.array.itemsize for row in rows)
        return known + BYTES_PER_STATE * self.states.count

    @property
    def bytes_in_use(self) -> int:
        return self.memory  # rows are counted as far as they are filled

    def pack(self) -> dict[str, bytes]:
        return {"expanded": np.array(self.expanded, np.int32).tobytes(), "digest": self._digest()}

    def unpack(self, data: Mapping[str, bytes]) -> None:
        """Ask the model again what was asked before a checkpoint."""
        for state in np.frombuffer(data["expanded"], np.int32).tolist():
            self.expand(state)
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
        """Return the labels of the actions of a state."""
        first, count = self.states.array[state]
        return self._action_labels[first : first + count]

    def describe_outcome(self, action: int, outcome: int) -> tuple[str, str]:
        """Return the labels of an action row and of one of its outcome rows."""
        row = self.actions.array[action]
        first = int(row["first_outcome"])
        labels = self._label_outcomes(slice(first, first + int(row["outcome_count"])))
        return self._action_labels[action], labels[outcome - first]

    def _keep_objects(
        self,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        self._state_objects = [self._state_objects[k] for k in kept_states]
        self._action_labels = [self._action_labels[k] for k in kept_actions]
        self._outcome_labels = [self._outcome_labels[k] for k in kept_outcomes]

    def _find(self, state: Any) -> int:
        """Return the number of a state, a new one if it was never met or nothing merges."""
        merges = self.reader.merges
        number = self._index.get(state) if merges else None
        if number is None:
            number = self.states.count
            self.states.append([(0, UNASKED)])
            self._state_objects.append(state)
            if merges:
                self._index[state] = number
        return number

    def _append(
        self, number: int, label: str, outcomes: Sequence[Outcome], mean: float, credit: float
    ) -> None:
        rows = [
            (
                float(o.probability),
                float(o.reward),
                0.0,
                FAILURE_STATE if o.fails else self._find(o.state),
            )
            for o in outcomes
        ]
        reached = [row[3] for row in rows if row[3] != FAILURE_STATE]
        ended = sum(self.states.array[state]["action_count"] == 0 for state in reached)
        risk = math.fsum(row[0] for row in rows[len(reached) :]) if reached else 1.0
        counts = (self.outcomes.count, len(reached), len(rows), len(reached) - ended)
        self.actions.append([(mean, risk, credit, *counts, number)])
        self.outcomes.append(rows)
        self._action_labels.append(label)
        self._outcome_labels.extend(outcome.label for outcome in outcomes)

    def _credit_of(self, state: Any, action: Any, mean: float) -> float:
        if self._credit is None or isinstance(state, Start):
            return mean
        place = f"in state {state!r}, action {action!r}"
        try:
            credit = float(self._credit(state, action))
        except Exception as error:
            raise ConstraintError(f"credit raised {error!r} {place}") from error
        if not -LARGEST_REWARD <= credit <= mean + TOLERANCE:
            raise ConstraintError(
                f"credit {credit!r} {place}: it must be a number from {-LARGEST_REWARD:g} to the "
                f"expected reward, {mean!r}"
            )
        return credit

    def _label_outcomes(self, span: slice) -> list[str]:
        states = self.outcomes.array["state"][span]
        given = self._outcome_labels[span]
        return label_outcomes(
            [
                Outcome(0, 0, FAILURE if s == FAILURE_STATE else self._state_objects[s], label)
                for s, label in zip(states, given, strict=True)
            ]
        )
