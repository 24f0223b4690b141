"""The state graph of a model that is arrays already: its rows are taken over, and nothing is asked.

The root is row 0 of every graph. A single initial state changes places with state 0 of the model.
Where the start is drawn, the root is a state of its own, with one action that draws, and every
state of the model comes one row later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.state_graph import Credit, StateGraph
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.reader import ModelReader
from vulcan.runtime.packing import require_names
from vulcan.sentinels import FAILURE_STATE

__all__ = ["ArrayGraph", "open_graph"]


def open_graph(reader: ModelReader, credit: Credit | None = None) -> StateGraph:
    """Return the state graph of a model, empty unless the model is arrays."""
    whole = isinstance(reader.model, ArrayModel) and credit is None
    return ArrayGraph(reader) if whole else StateGraph(reader, credit)


class ArrayGraph(StateGraph):
    """All of a model that is arrays.

    Parameters
    ----------
    reader
        The model, an `ArrayModel`.
    """

    def __init__(self, reader: ModelReader) -> None:
        super().__init__(reader)
        self._model: ArrayModel = reader.model
        self._drawing = int(self._model.is_drawn)  # rows of actions, and states, before the model's
        self._rows = np.arange(self._model.states) + self._drawing
        """The row of each state of the model."""
        if not self._drawing:
            self._rows[[0, self._first]] = self._rows[[self._first, 0]]
        self._fill_states()
        self._fill_outcomes()
        self._fill_actions()
        self._evaluations = self.actions.count

    @property
    def memory(self) -> int:
        return sum(rows.array.nbytes for rows in (self.states, self.actions, self.outcomes))

    def unpack(self, data: Mapping[str, bytes]) -> None:
        require_names(data, ("expanded", "digest"))
        self._compare_digest(data)

    @property
    def _first(self) -> int:
        """The initial state, where it is not drawn."""
        return next(iter(self._model.start))

    def state_object(self, state: int) -> Any:
        """Return the model's own object of a state."""
        if self._drawing:
            return self.reader.root if state == self.ROOT else self._model.state_name(state - 1)
        return self._model.state_name({0: self._first, self._first: 0}.get(state, state))

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state].item()
        return [self._name_action(row) for row in range(first, first + count)]

    @property
    def labels(self) -> Sequence[str]:
        drawn = [self._name_action(row) for row in range(self._drawing)]
        return [*self._model.action_labels, *drawn]

    def number_of(self, label: str) -> int:
        return self.labels.index(label)

    def pack_state(self, state: int) -> Any:
        return state

    def add_state(self, packed: Any) -> int:
        return int(packed)

    def _fill_states(self) -> None:
        model, shift = self._model, self._drawing
        self.states.extend(model.states + shift - self.states.count)
        rows = self.states.array[: model.states + shift]
        if shift:
            rows[0] = (0, 1)
        rows["first_action"][self._rows] = model.first_action[:-1] + shift
        rows["action_count"][self._rows] = np.diff(model.first_action)

    def _fill_outcomes(self) -> None:
        model = self._model
        drawn = model.start if self._drawing else {}
        rows = self.outcomes.extend(len(drawn) + len(model.target))
        rows["probability"] = np.concatenate((list(drawn.values()), model.probability))
        rows["reward"] = np.concatenate((np.zeros(len(drawn)), model.reward))
        target = np.concatenate((np.array(list(drawn), np.int32), model.target))
        fails = target == FAILURE_TARGET
        rows["state"] = np.where(fails, FAILURE_STATE, self._rows[np.where(fails, 0, target)])

    def _fill_actions(self) -> None:
        model, outcomes = self._model, self.outcomes.array[: self.outcomes.count]
        shift = len(model.start) if self._drawing else 0  # outcomes before the model's
        first_row = np.concatenate((np.zeros(self._drawing, np.int64), model.first_row + shift))
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
        rows["number"][self._drawing :] = model.number
        rows["number"][: self._drawing] = len(model.action_labels)

    def _name_action(self, row: int) -> str:
        if row < self._drawing:
            return str(next(iter(self.reader.root.choices)))
        return self._model.action_labels[int(self._model.number[row - self._drawing])]

    def _list_outcomes(self, row: int) -> list[Outcome]:
        first, count = self.actions.array[["first_outcome", "outcome_count"]][row].item()
        rows = self.outcomes.array[first : first + count]
        return [
            Outcome(0, reward, FAILURE if s == FAILURE_STATE else self.state_object(s))
            for s, reward in zip(rows["state"].tolist(), rows["reward"].tolist(), strict=True)
        ]
