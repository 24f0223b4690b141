"""What every state graph is: what a model said, as flat arrays.

States become integers, actions and outcomes rows of flat arrays in compressed form, and from then
on a search is arithmetic on integers and floats that kernels do at compiled speed. A graph grows on
demand.

    states    [S]  first_action, action_count (UNASKED, RELEASED, 0 for a safe terminal)
    actions   [A]  expected_reward R̄, immediate_risk r, credit, first_outcome,
                   safe_count, outcome_count, open_count, number
    outcomes  [O]  probability, reward, state (safe outcomes of an action first; failures have -1),
                   outlook (what can still be earned at most; 0 where nobody knows)

`credit` is what constraint A may claim for the action, R̄ unless the user has a function of his
own. `open_count` counts the safe outcomes that were not known to be safe terminals when the row was
read; searches use it to count histories. `number` is the same for all actions of
the same label; in a compiled model (`vulcan.graphs.compiled_graph`), their place among all actions.

Where every history is a state of its own (`merges` False) nothing is looked up, and `release`
drops every row that is neither on the search's path nor in the policy under construction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.rows import SOURCE, Rows
from vulcan.model.compiled import ANSWER
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About, Policy
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import RELEASED

__all__ = ["Graph", "Numbers", "renumber"]

Numbers = Sequence[int] | NDArray[np.int32]


class Graph(ABC):
    """The part of a model that was asked so far.

    Parameters
    ----------
    reader
        The model, asked with care.

    Attributes
    ----------
    states, actions, outcomes
        The rows; see the head of this module.
    source, answers
        A compiled model, as kernels know it; empty for a model in Python.
    """

    ROOT: Final = 0

    states: Rows
    actions: Rows
    outcomes: Rows

    def __init__(self, reader: ModelReader) -> None:
        self.reader = reader
        self.source = np.zeros(1, SOURCE)
        self.answers = np.zeros(0, ANSWER)

    def kinds(self) -> tuple[Rows, Rows, Rows]:
        """Return the rows of states, actions and outcomes."""
        return self.states, self.actions, self.outcomes

    @abstractmethod
    def action_labels(self, state: int) -> list[str]:
        """Return the labels of the actions of a state."""

    @property
    @abstractmethod
    def labels(self) -> Sequence[str]:
        """The label of each `number` that actions have."""

    def number_of(self, label: str) -> int:
        """Return the `number` of the actions of a label."""
        return self.labels.index(label)

    @abstractmethod
    def pack_state(self, state: int) -> Any:
        """Return a state in a form that another graph of the same model can add."""

    @abstractmethod
    def add_state(self, packed: Any) -> int:
        """Return the number of a state that was packed, a new one unless it is known."""

    @property
    @abstractmethod
    def evaluations(self) -> int:
        """How many (state, action) the model was asked."""

    @property
    @abstractmethod
    def merges(self) -> bool:
        """Whether equal states are one row, that stays."""

    @property
    def capacity(self) -> int:
        """The same with the room that is not filled yet."""
        return self.memory

    @property
    @abstractmethod
    def memory(self) -> int:
        """Bytes of the rows that are filled, and about those of the objects behind them."""

    def ask_unstored(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield actions whose outcomes are not stored, and what the model says of them."""
        yield from ()

    @abstractmethod
    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        """Return the policy whose node k takes an action row.

        Parameters
        ----------
        action_rows
            The row of each node.
        children
            What comes after each safe outcome of each node's row, one node after the other.
        about
            Where the policy comes from.
        """

    @abstractmethod
    def pack(self) -> dict[str, bytes]:
        """Return what is needed to have the same rows again, for a checkpoint."""

    @abstractmethod
    def unpack(self, data: Mapping[str, bytes]) -> None:
        """Have the rows again that were packed for a checkpoint."""

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
        kept = (kept_states, kept_actions, kept_outcomes)
        maps = tuple(renumber(k, rows.count) for k, rows in zip(kept, self.kinds(), strict=True))
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
        counts = self.states.array["action_count"]
        asked = counts[: self.states.count] > 0
        asked[whole] = False
        counts[: self.states.count][asked] = RELEASED
        self.states.keep(kept_states)
        self.actions.keep(kept_actions)
        self.outcomes.keep(kept_outcomes)
        self._follow_numbers(maps)
        self._keep_objects(kept_states, kept_actions, kept_outcomes)

    def cut(self, state: int, reader: ModelReader) -> tuple[Graph, NDArray[np.intp]] | None:
        """Return what is known below a state as a graph of its own, where nothing merges.

        Parameters
        ----------
        state
            The state, which is the root of the other graph.
        reader
            The model that begins there.

        Returns
        -------
        tuple or None
            The graph, and the new number of each old state, -1 for those that are not in it. None
            if the other model has another form.
        """
        other = self._open_other(state, reader)
        return None if other is None else (other, self.cut_into(other, state))

    def cut_into(
        self, other: Graph, state: int, scratch: Sequence[NDArray[np.intp]] = ()
    ) -> NDArray[np.intp]:
        """Let an empty graph of the same kind have what is known below a state.

        Parameters
        ----------
        other
            The graph.
        state
            The state.
        scratch
            Arrays for the numbers of states, actions and outcomes, which may have been used for
            others that have nothing in common with these.

        Returns
        -------
        array
            The new number of each old state, -1 for those that are not in it.
        """
        kept = self._list_below(state)
        for numbers, ours, theirs in zip(kept, self.kinds(), other.kinds(), strict=True):
            theirs.array, theirs.count = ours.array[numbers], len(numbers)
        places = scratch or (None, None, None)
        maps = tuple(
            renumber(k, rows.count, place)
            for k, rows, place in zip(kept, self.kinds(), places, strict=True)
        )
        other._follow_numbers(maps)
        other._take_objects(self, *kept)
        return maps[0]

    def _list_below(
        self, state: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of states, actions and outcomes below a state, level by level."""
        none = np.zeros(0, np.intp)
        states, actions, outcomes = [np.array([state], np.intp)], [none], [none]
        while len(states[-1]):
            here = self.states.array[states[-1]]
            here = here[here["action_count"] > 0]
            actions.append(ranges(here["first_action"], here["action_count"]))
            taken = self.actions.array[actions[-1]]
            taken = taken[taken["first_outcome"] >= 0]
            outcomes.append(ranges(taken["first_outcome"], taken["outcome_count"]))
            reached = self.outcomes.array["state"][outcomes[-1]].astype(np.intp)
            states.append(reached[reached >= 0])
        return np.concatenate(states), np.concatenate(actions), np.concatenate(outcomes)

    def _follow_numbers(self, maps: tuple[NDArray[np.intp], ...]) -> None:
        """Have rows name each other by their new numbers."""
        state_map, action_map, outcome_map = maps
        rows = self.states.array[: self.states.count]
        present = rows["action_count"] > 0
        rows["first_action"][present] = action_map[rows["first_action"][present]]
        rows["first_action"][~present] = 0  # none: there may be less rows than its number now
        filled = self.actions.array[: self.actions.count]
        stored = filled["first_outcome"] >= 0
        filled["first_outcome"][stored] = outcome_map[filled["first_outcome"][stored]]
        arrivals = self.outcomes.array["state"][: self.outcomes.count]
        safe = arrivals >= 0
        arrivals[safe] = state_map[arrivals[safe]]

    @abstractmethod
    def _keep_objects(
        self,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        """Drop what belongs to the rows that were dropped."""

    @abstractmethod
    def _open_other(self, state: int, reader: ModelReader) -> Any:
        """Return an empty graph of the same kind for a model that begins in a state, or None."""

    @abstractmethod
    def _take_objects(
        self,
        other: Any,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        """Take over from another graph what belongs to the rows that were taken over."""


def renumber(
    kept: NDArray[np.intp], count: int, numbers: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Return the new number of each old row if some are kept, in their order; -1 for others.

    An array that is given is written to instead, where nobody looks at others.
    """
    if numbers is None:
        numbers = np.full(count, -1, np.intp)
    numbers[kept] = np.arange(len(kept))
    return numbers
