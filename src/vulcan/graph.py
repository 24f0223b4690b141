"""The state graph: what a model said, as flat arrays.

A Python model is asked once for each distinct (state, action). States become integers, actions and
outcomes rows of flat arrays in compressed form, and from then on a search is arithmetic on
integers and floats that kernels do at compiled speed. The graph grows on demand: a kernel that
meets a state whose actions were never asked returns, and `expand` asks.

    states    [S]  first_action, action_count (UNASKED, RELEASED, 0 for a safe terminal)
    actions   [A]  expected_reward R̄, immediate_risk r, credit, first_outcome,
                   safe_count, outcome_count, open_count, number
    outcomes  [O]  probability, reward, state (safe outcomes of an action first; failures have -1),
                   outlook (what can still be earned at most; 0 where nobody knows)

`credit` is what constraint A may claim for the action, R̄ unless the user has a function of his
own. `open_count` counts the safe outcomes that were not known to be safe terminals when the row was
read; searches use it to count histories. `number` is the place of the action among those of its
state; in a compiled model (`vulcan.compiled_graph`), among all actions.

Where every history is a state of its own (`merges` False) nothing is looked up, and `release`
drops every row that is neither on the search's path nor in the policy under construction.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.compiled import ANSWER
from vulcan.constraint import Credit
from vulcan.errors import CheckpointError, ConstraintError
from vulcan.model import FAILURE, Outcome, Start, label_outcomes
from vulcan.policy import FAILED, About, Policy, PolicyBuilder
from vulcan.reader import LARGEST_REWARD, ModelReader
from vulcan.rows import (
    ACTION,
    FAILURE_STATE,
    OUTCOME,
    RELEASED,
    SOURCE,
    STATE,
    UNASKED,
    Rows,
    ranges,
)
from vulcan.tolerance import TOLERANCE

__all__ = ["StateGraph"]

BYTES_PER_STATE: Final = 300
"""What a state object, its labels and its place in the index take in Python, roughly."""


class StateGraph:
    """The part of a model that was asked so far.

    Parameters
    ----------
    reader
        The model, asked with care.
    credit
        A user's credit of a (state, action), checked to be nowhere above the expected reward.

    Attributes
    ----------
    states, actions, outcomes
        The rows; see the head of this module.
    source, answers
        A compiled model, as kernels know it; see `vulcan.compiled_graph`.
    evaluations
        How many (state, action) were asked.
    expanded
        The states that were asked, in that order; `release` does not renumber it.
    """

    ROOT: Final = 0

    def __init__(self, reader: ModelReader, credit: Credit | None = None) -> None:
        self.reader = reader
        self._credit = credit
        self.states, self.actions, self.outcomes = Rows(STATE), Rows(ACTION), Rows(OUTCOME)
        self.source, self.answers = np.zeros(1, SOURCE), np.zeros(0, ANSWER)
        self.evaluations = 0
        self.expanded: list[int] = []
        self._state_objects: list[Any] = []
        self._action_labels: list[str] = []
        self._outcome_labels: list[str | None] = []
        self._index: dict[Any, int] = {}
        self._find(reader.root)

    def expand(self, state: int) -> None:
        """Ask the model for the actions of a state and all their outcomes.

        Nothing is written before every answer has passed its checks.
        """
        place = self._state_objects[state]
        answers = []
        for label, action, outcomes in self.reader.answers(place):
            self.evaluations += 1
            mean = math.fsum(float(o.probability) * float(o.reward) for o in outcomes)
            answers.append((label, outcomes, mean, self._credit_of(place, action, mean)))
        first = self.actions.count
        for number, answer in enumerate(answers):
            self._append(number, *answer)
        self.states.array[state] = (first, len(answers))
        self.expanded.append(state)

    def policy(
        self, action_rows: Sequence[int], children: Sequence[Sequence[int]], about: About
    ) -> Policy:
        """Return the policy whose node k takes an action row, with a child per safe outcome."""
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
    def merges(self) -> bool:
        """Whether equal states are one row, that stays."""
        return self.reader.merges

    @property
    def memory(self) -> int:
        """Bytes of the rows, and about those of the objects behind them."""
        rows = (self.states, self.actions, self.outcomes)
        known = sum(row.count * row.array.itemsize for row in rows)
        return known + BYTES_PER_STATE * self.states.count

    @property
    def bytes_in_use(self) -> int:
        """The same: rows are counted as far as they are filled."""
        return self.memory

    def pack(self) -> dict[str, bytes]:
        """Return what is needed to have the same rows again, for a checkpoint."""
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

    def release(
        self, states: NDArray[np.intp], actions: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Drop all rows but some states with all their actions, and some further actions.

        Returns
        -------
        tuple
            For states, actions and outcomes, the new number of each old one (-1 for dropped ones).
        """
        state_rows = self.states.array[: self.states.count]
        action_rows = self.actions.array[: self.actions.count]
        own = [
            np.arange(row["first_action"], row["first_action"] + max(0, row["action_count"]))
            for row in state_rows[states]
        ]
        kept_actions = np.unique(np.concatenate([actions, *own]).astype(np.intp))
        stored = kept_actions[action_rows["first_outcome"][kept_actions] >= 0]
        kept_outcomes = ranges(
            action_rows["first_outcome"][stored], action_rows["outcome_count"][stored]
        )
        reached = self.outcomes.array["state"][kept_outcomes].astype(np.intp)
        kept_states = np.unique(np.concatenate([states, reached[reached >= 0]]))
        maps = tuple(
            _renumber(kept, rows.count)
            for kept, rows in (
                (kept_states, self.states),
                (kept_actions, self.actions),
                (kept_outcomes, self.outcomes),
            )
        )
        self._drop(states, kept_states, kept_actions, kept_outcomes, maps)
        return maps[0], maps[1], maps[2]

    def _drop(
        self,
        whole: NDArray[np.intp],
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
        maps: tuple[NDArray[np.intp], ...],
    ) -> None:
        state_map, action_map, outcome_map = maps
        counts = self.states.array["action_count"]
        asked = counts[: self.states.count] > 0
        asked[whole] = False
        counts[: self.states.count][asked] = RELEASED
        self.states.keep(kept_states)
        self.actions.keep(kept_actions)
        self.outcomes.keep(kept_outcomes)
        rows = self.states.array[: self.states.count]
        present = rows["action_count"] > 0
        rows["first_action"][present] = action_map[rows["first_action"][present]]
        filled = self.actions.array[: self.actions.count]
        stored = filled["first_outcome"] >= 0
        filled["first_outcome"][stored] = outcome_map[filled["first_outcome"][stored]]
        arrivals = self.outcomes.array["state"][: self.outcomes.count]
        safe = arrivals >= 0
        arrivals[safe] = state_map[arrivals[safe]]
        self._keep_objects(kept_states, kept_actions, kept_outcomes)

    def _keep_objects(
        self,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        """Drop what belongs to the rows that were dropped."""
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


def _renumber(kept: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    numbers = np.full(count, -1, np.intp)
    numbers[kept] = np.arange(len(kept))
    return numbers
