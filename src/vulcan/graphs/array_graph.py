"""The state graph of a model that is arrays already: its rows are taken over, and nothing is asked.

The initial state is row 0 of every graph; it changes places with state 0 of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.state_graph import Credit, StateGraph
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.reader import ModelReader
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
        self._fill_states()
        self._fill_outcomes()
        self._fill_actions()
        self._evaluations = self.actions.count

    @property
    def memory(self) -> int:
        return sum(rows.array.nbytes for rows in (self.states, self.actions, self.outcomes))

    def unpack(self, data: Mapping[str, bytes]) -> None:
        self._compare_digest(data)

    def state_object(self, state: int) -> int:
        """Return the model's own number of a state."""
        start = self._model.start
        return {0: start, start: 0}.get(state, state)

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state].item()
        return [self._name_action(row) for row in range(first, first + count)]

    def _fill_states(self) -> None:
        model = self._model
        self.states.extend(model.states - self.states.count)
        rows = self.states.array[: model.states]
        rows["first_action"] = model.first_action[:-1]
        rows["action_count"] = np.diff(model.first_action)
        rows[[0, model.start]] = rows[[model.start, 0]]

    def _fill_outcomes(self) -> None:
        model = self._model
        rows = self.outcomes.extend(len(model.target))
        rows["probability"], rows["reward"] = model.probability, model.reward
        rows["state"] = model.target
        rows["state"][model.target == 0] = model.start
        rows["state"][model.target == model.start] = 0

    def _fill_actions(self) -> None:
        model, outcomes = self._model, self.outcomes.array[: self.outcomes.count]
        rows = self.actions.extend(len(model.number))
        begin = model.first_row[:-1]

        def add(values: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(np.add.reduceat(values, begin))

        safe = model.target != FAILURE_TARGET
        counts = self.states.array["action_count"]
        rows["expected_reward"] = rows["credit"] = add(model.probability * model.reward)
        rows["safe_count"] = add(safe.astype(np.int64))
        rows["immediate_risk"] = np.where(
            rows["safe_count"] > 0, add(model.probability * ~safe), 1.0
        )
        rows["first_outcome"], rows["outcome_count"] = begin, np.diff(model.first_row)
        goes_on = safe & (counts[np.where(safe, outcomes["state"], 0)] > 0)
        rows["open_count"] = add(goes_on.astype(np.int64))
        rows["number"] = model.number

    def _name_action(self, row: int) -> str:
        return self._model.action_labels[int(self._model.number[row])]

    def _list_outcomes(self, row: int) -> list[Outcome]:
        first, count = self.actions.array[["first_outcome", "outcome_count"]][row].item()
        rows = self.outcomes.array[first : first + count]
        return [
            Outcome(0, reward, FAILURE if s == FAILURE_STATE else self.state_object(s))
            for s, reward in zip(rows["state"].tolist(), rows["reward"].tolist(), strict=True)
        ]
