"""Levels: a state graph unrolled over the levels of decisions, without a copy of it per level.

Exact solvers work on *nodes*: pairs (state, level) that some policy can be in and that have a
decision to take. What can be done there, and where that leads, does not depend on the level, so
that the rows of the state graph are there once, and a node is only the number of its state:

    first  [L + 1]  the nodes of level t are first[t] to first[t + 1] - 1
    state  [N]      the state of each node, ascending within a level

Nodes are numbered level by level. Rewards are discounted from the start of the mission: with reach
the probability of being in a node and γ^t the weight of its level, a policy has

    E g = Σ reach(n) γ^t R̄(row),    er = Σ reach(n) r(row).

Two other forms serve the solvers that programs and heuristic search are. With a node for each
history instead ("tree"), the nodes after a node follow one another from `first_child` on, in the
order of actions and outcomes. And a node that is not `expanded` is a *tip*: nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.decisions import Choice, Decisions
from vulcan.graphs.state_graph import StateGraph
from vulcan.runtime.ranges import ranges, starts
from vulcan.sentinels import END, NONE, UNASKED

if TYPE_CHECKING:
    from vulcan.kernels.level_arrays import LevelArrays

__all__ = ["ChoicePlan", "Levels", "build_levels"]

Integers = NDArray[np.int32]
MayGoOn = Callable[[int, int], bool]
Opens = Callable[[Integers, int], NDArray[np.bool_]]

Decided = tuple[int, int, Sequence[tuple[int, int]]]
"""Node, row, and mode and number of each way; see `Levels.decide`."""

NODE_BYTES: Final = 4
SHORT: Final = 0.02
"""Seconds between two looks at the limits while the model is asked."""


@dataclass(frozen=True)
class Levels:
    """A state graph unrolled over the levels.

    Attributes
    ----------
    graph
        The state graph.
    arrays
        What kernels are given; see the head of this module.
    """

    graph: StateGraph
    arrays: LevelArrays

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.arrays.state)

    @property
    def width(self) -> int:
        """How many values a level has room for: one for each state, or each history of it."""
        widest = int(np.diff(self.arrays.first).max()) if len(self.arrays.first_child) else 0
        return max(widest, len(self.arrays.action_count))

    @property
    def levels(self) -> NDArray[np.intp]:
        """The level of each node."""
        sizes = np.diff(self.arrays.first)
        return np.repeat(np.arange(len(sizes)), sizes)

    def follow(self, node: int, row: int) -> list[int]:
        """Return the nodes after the safe outcomes of an action in a node, END at ends.

        It looks one up at a time; kernels have other ways. Not for levels that are a tree.
        """
        arrays = self.arrays
        level = int(np.searchsorted(arrays.first, node, side="right"))
        begin = int(arrays.first_outcome[row])
        targets = arrays.target[begin : begin + int(arrays.safe_count[row])]
        if level + 1 == len(arrays.first):
            return [END] * len(targets)
        first = int(arrays.first[level])
        places = np.searchsorted(arrays.state[first : int(arrays.first[level + 1])], targets)
        ends = arrays.action_count[targets] == 0
        nodes: list[int] = np.where(ends, END, first + places).tolist()
        return nodes

    def list_targets(self, node: int, row: int) -> list[tuple[float, int]]:
        """Return probability and node of each safe outcome of an action in a node."""
        nodes = self.follow(node, row)
        first = int(self.arrays.first_outcome[row])
        chances = self.arrays.probability[first : first + len(nodes)].tolist()
        return list(zip(chances, nodes, strict=True))

    def decide(self, choices: NDArray[np.int32], decided: Sequence[Decided] = ()) -> Decisions:
        """Return the decisions of a policy that follows a choice, or one of several.

        Parameters
        ----------
        choices
            The row of each node in each *mode* in which histories can be.
        decided
            Decisions that are taken one by one before: the node, the row, and for each safe outcome
            the mode in which it goes on and NONE, or `DECIDED` and the number of a decided one. The
            first is that of the root. Without any, all is done in mode 0.
        """
        from vulcan.kernels.unrolling import DECISION, WAY, Found, number_decisions

        arrays, modes = self.arrays, len(choices)
        if not len(self):
            return Decisions(*np.zeros((3, 0), np.int32))
        ways = [way for _, _, after in decided for way in after]
        counts = np.array([len(after) for _, _, after in decided], np.intp)
        firsts = [
            (node, row, first)
            for (node, row, _), first in zip(decided, starts(counts).tolist(), strict=True)
        ]
        size = modes * len(self) + len(decided)
        outcomes = sum(
            int(arrays.safe_count[rows[rows != NONE]].sum(dtype=np.int64)) for rows in choices
        )
        found = Found(
            rows=np.zeros(size, np.int32),
            nodes=np.zeros(size, np.int32),
            modes=np.zeros(size, np.int8),
            children=np.zeros(outcomes + len(ways), np.int32),
            numbers=np.full((modes, len(arrays.action_count)), NONE, np.int32),
        )
        given = (np.array(firsts, DECISION), np.array(ways, WAY))
        count, written = number_decisions(arrays, choices, *given, found)
        kept = (found.rows[:count], found.children[:written], found.nodes[:count])
        return Decisions(*(part.copy() for part in kept))


@dataclass(frozen=True)
class ChoicePlan:
    """A function of state and step: a row for each node.

    Attributes
    ----------
    levels
        The graph.
    choice
        The row of the action that is taken in each node.
    """

    levels: Levels
    choice: Choice

    def decide(self) -> Decisions:
        """Return the decisions in the nodes that are reached."""
        return self.levels.decide(self.choice[None])


def build_levels(
    graph: StateGraph,
    *,
    tree: bool = False,
    may_go_on: MayGoOn = lambda nodes, memory: True,
    opens: Opens | None = None,
) -> Levels | None:
    """Unroll a state graph, asking the model for what is missing.

    Parameters
    ----------
    graph
        The state graph; it grows.
    tree
        One node for each history, instead of one for each state and level.
    may_go_on
        Asked with the nodes and bytes so far, again and again while the model is asked.
    opens
        Which states are expanded at a level; all by default.

    Returns
    -------
    Levels or None
        None if it was not allowed to go on.
    """
    builder = _Builder(graph, tree, may_go_on, opens)
    return Levels(graph, builder.finish()) if builder.unroll() else None


class _Builder:
    """Collects the states of each level."""

    def __init__(
        self, graph: StateGraph, tree: bool, may_go_on: MayGoOn, opens: Opens | None
    ) -> None:
        self._graph, self._tree = graph, tree
        self._may_go_on, self._opens = may_go_on, opens
        self._states: list[Integers] = []
        self._expanded: list[NDArray[np.bool_]] = []
        self._first_child: list[Integers] = []
        self._nodes = 0
        self._met = np.zeros(0, np.int32)

    def unroll(self) -> bool:
        """Find the states of all levels; False if it was not allowed to go on."""
        states = np.zeros(1, np.int32)
        if not self._ask(states, 0):
            return False
        states = states[self._counts(states) != 0]
        for level in range(self._graph.reader.levels):
            if not len(states):
                break
            if not self._add(states, level):
                return False
            if level + 1 == self._graph.reader.levels:
                break
            repeated = self._find_repeated(states)
            following = self._find_following(level) if repeated is None else repeated
            if following is None:
                return False
            states = following
        return True

    def finish(self) -> LevelArrays:
        """Return the arrays."""
        from vulcan.kernels.level_arrays import LevelArrays

        graph = self._graph
        states = graph.states.array[: graph.states.count]
        actions = graph.actions.array[: graph.actions.count]
        outcomes = graph.outcomes.array[: graph.outcomes.count]
        sizes = [len(states) for states in self._states]
        last = [np.zeros_like(self._states[-1])] if self._first_child else []

        def join(parts: Sequence[NDArray[np.generic]], kind: type) -> NDArray[np.generic]:
            return np.concatenate(parts) if parts else np.zeros(0, kind)

        return LevelArrays(
            first=np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64),
            state=join(self._states, np.int32),
            expanded=join(self._expanded, np.bool_),
            first_child=join([*self._first_child, *last], np.int32),
            weights=np.ascontiguousarray(graph.reader.weights),
            **{
                name: np.ascontiguousarray(states[name])
                for name in ("first_action", "action_count")
            },
            **{
                name: np.ascontiguousarray(actions[name])
                for name in ("expected_reward", "immediate_risk", "first_outcome", "safe_count")
            },
            probability=np.ascontiguousarray(outcomes["probability"]),
            target=np.ascontiguousarray(outcomes["state"]),
            place=np.full(len(states), NONE, np.int32),
        )

    def _add(self, states: Integers, level: int) -> bool:
        """Add a level."""
        self._nodes += len(states)
        self._states.append(states)
        if self._opens is not None:
            self._expanded.append(self._opens(states, level))
        return self._may_go_on(self._nodes, NODE_BYTES * self._nodes)

    def _find_repeated(self, states: Integers) -> Integers | None:
        """Return the states of the next level if these were all of a level before.

        What comes after some states does not depend on the level. Where moves change the colour of
        a cell, as on a chessboard, every other level is the same.
        """
        if self._tree or self._opens is not None:
            return None
        for period in (1, 2):
            if len(self._states) > period and np.array_equal(states, self._states[-1 - period]):
                return self._states[-period]
        return None

    def _find_following(self, level: int) -> Integers | None:
        """Return the states of the next level; None if it was not allowed to go on."""
        here = self._states[-1]
        if self._opens is not None:
            here = here[self._expanded[-1]]
        reached = self._list_targets(here) if self._tree else self._find_targets(here, level)
        if reached is None or not self._ask(
            np.unique(reached) if self._tree else reached, level + 1
        ):
            return None
        goes_on = self._counts(reached) != 0
        following: Integers = reached[goes_on]
        if self._tree:
            self._number_children(goes_on)
            return following
        following.sort()
        return following

    def _find_targets(self, here: Integers, level: int) -> Integers:
        """Return the states that some states lead to, each once."""
        from vulcan.kernels.unrolling import find_following

        graph = self._graph
        if len(self._met) < len(graph.states.array):
            longer = np.full(len(graph.states.array), NONE, np.int32)
            longer[: len(self._met)] = self._met
            self._met = longer
        following = np.zeros(graph.states.count, np.int32)
        rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
        count = find_following(*rows, here, level, self._met, following)
        return following[:count].copy()

    def _list_targets(self, here: Integers) -> Integers | None:
        """Return the states after each safe outcome of each action of some states."""
        graph = self._graph
        states = graph.states.array[here]
        # Summed state by state: a level of a tree may be far too large for its rows.
        outcomes = np.concatenate(([0], np.cumsum(graph.actions.array["safe_count"], dtype=int)))
        last = states["first_action"] + states["action_count"]
        nodes = self._nodes + int((outcomes[last] - outcomes[states["first_action"]]).sum())
        if not self._may_go_on(nodes, NODE_BYTES * nodes):
            return None
        actions = graph.actions.array[ranges(states["first_action"], states["action_count"])]
        rows = ranges(actions["first_outcome"], actions["safe_count"])
        targets: Integers = graph.outcomes.array["state"][rows].astype(np.int32)
        return targets

    def _number_children(self, goes_on: NDArray[np.bool_]) -> None:
        """Note the first node after each node of the last level, given which outcomes go on."""
        graph, here = self._graph, self._states[-1]
        counts = np.where(self._counts(here) > 0, self._counts(here), 0)
        if self._opens is not None:
            counts[~self._expanded[-1]] = 0
        actions = graph.actions.array[ranges(graph.states.array["first_action"][here], counts)]
        ends = np.concatenate(([0], np.cumsum(actions["safe_count"])))[np.cumsum(counts)]
        before = np.concatenate(([0], np.cumsum(goes_on)))[np.concatenate(([0], ends[:-1]))]
        self._first_child.append((self._nodes + before).astype(np.int32))

    def _counts(self, states: Integers) -> NDArray[np.int32]:
        return np.asarray(self._graph.states.array["action_count"][states])

    def _ask(self, states: Integers, level: int) -> bool:
        """Ask the model about states that are expanded and were not asked; False if forbidden."""
        unasked = states[self._counts(states) == UNASKED]
        if self._opens is not None and len(unasked):
            unasked = unasked[self._opens(unasked, level)]
        waiting: list[int] = np.sort(unasked).tolist()
        done, portion = 0, 1
        while self._may_go_on(self._nodes, NODE_BYTES * self._nodes):
            if done == len(waiting):
                return True
            began = perf_counter()
            self._graph.expand_all(waiting[done : done + portion])
            done = min(done + portion, len(waiting))
            portion = 2 * portion if perf_counter() - began < SHORT else max(1, portion // 2)
        return False
