"""The layered graph: a state graph unrolled over the levels of decisions.

Exact solvers work on *nodes*: pairs (state, level) that some policy can be in and that have a
decision to take. On merged states ("graph") there is one node for each pair, on histories ("tree")
one for each history. Nodes are numbered level by level, so that what comes after a node always has
a larger number: a loop from the last node to the first is a dynamic program backwards, and one from
the first to the last follows probabilities forwards.

    nodes    [N]  state, level, first_edge, edge_count
    edges    [E]  reward γ^t R̄, risk r, first_target, target_count, action (row of the state graph)
    targets  [T]  probability, node: one for each safe outcome, END where the history ends there

Rewards of edges are discounted from the start of the mission, so that reward and risk of a policy
are plain sums: with reach(n) the probability of being in node n,

    E g = Σ reach(n) reward(edge),    er = Σ reach(n) risk(edge).

A node that is not expanded (an exact solver expands all of them, heuristic search does not) is a
*tip*: it has no edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.rows import ranges, starts
from vulcan.graphs.state_graph import StateGraph
from vulcan.policies.policy import About, Policy
from vulcan.sentinels import END, UNASKED

__all__ = ["KINDS", "ChoicePlan", "LayerArrays", "Layers", "Plan", "build_layers"]

NODE: Final = np.dtype(
    [("state", "i4"), ("level", "i4"), ("first_edge", "i4"), ("edge_count", "i4")], align=True
)
EDGE: Final = np.dtype(
    [
        ("reward", "f8"),
        ("risk", "f8"),
        ("first_target", "i4"),
        ("target_count", "i4"),
        ("action", "i4"),
    ],
    align=True,
)
TARGET: Final = np.dtype([("probability", "f8"), ("node", "i4")], align=True)
KINDS: Final = (NODE, EDGE, TARGET)

Integers = NDArray[np.intp]
MayGoOn = Callable[[int, int], bool]
Opens = Callable[[Integers, int], NDArray[np.bool_]]


class LayerArrays(NamedTuple):
    """What kernels are given: the three arrays of the head of this module."""

    nodes: Any
    edges: Any
    targets: Any


Key = Any
"""What a plan remembers of a history: anything hashable."""


class Plan(Protocol):
    """A policy over a layered graph, in a form that solvers find handy.

    Attributes
    ----------
    root
        The key of the initial node.
    """

    @property
    def root(self) -> Key:
        """The key of the initial node."""

    def choose(self, layers: Layers, key: Key) -> tuple[int, Sequence[Key]]:
        """Return the edge that a history with this key takes, and the keys of its targets."""


@dataclass(frozen=True)
class ChoicePlan:
    """A function of state and step: an edge for each node, which is its own key."""

    choice: NDArray[np.int32]
    root: int = 0

    def choose(self, layers: Layers, key: int) -> tuple[int, Sequence[int]]:
        """Return the edge of a node, and the nodes after it."""
        edge = int(self.choice[key])
        return edge, layers.follow(edge)


@dataclass(frozen=True)
class Layers:
    """A layered graph with the state graph that it was made from.

    Attributes
    ----------
    graph
        The state graph.
    arrays
        Nodes, edges and targets; see the head of this module.
    """

    graph: StateGraph
    arrays: LayerArrays

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.arrays.nodes)

    def follow(self, edge: int) -> list[int]:
        """Return the nodes after an edge, END where the history ends."""
        first, count = self.arrays.edges[["first_target", "target_count"]][edge].tolist()
        nodes: list[int] = self.arrays.targets["node"][first : first + count].tolist()
        return nodes

    def policy(self, plan: Plan, about: About) -> Policy:
        """Return the policy of a plan: a decision for each key that it reaches at each level.

        Parameters
        ----------
        plan
            The plan; none of the nodes that it reaches is a tip.
        about
            Where the policy comes from.
        """
        rows: list[int] = []
        children: list[list[int]] = []
        level: list[Key] = [plan.root] if len(self) else []
        count = len(level)
        while level:
            following: dict[Key, int] = {}
            for key in level:
                edge, keys = plan.choose(self, key)
                rows.append(int(self.arrays.edges["action"][edge]))
                children.append(
                    [
                        END if node == END else following.setdefault(next_, count + len(following))
                        for node, next_ in zip(self.follow(edge), keys, strict=True)
                    ]
                )
            count += len(following)
            level = list(following)
        return self.graph.policy(rows, children, about)

    def find_tips(self, plan: Plan) -> list[int]:
        """Return the tips that a plan reaches."""
        tips = self.arrays.nodes["edge_count"] == 0
        found: set[int] = set()
        level: dict[Key, int] = {plan.root: 0} if len(self) else {}
        while level:
            following: dict[Key, int] = {}
            for key, node in level.items():
                if tips[node]:
                    found.add(node)
                    continue
                edge, keys = plan.choose(self, key)
                pairs = zip(keys, self.follow(edge), strict=True)
                following.update((next_, after) for next_, after in pairs if after != END)
            level = following
        return sorted(found)


def build_layers(
    graph: StateGraph,
    *,
    tree: bool = False,
    may_go_on: MayGoOn = lambda nodes, memory: True,
    opens: Opens | None = None,
) -> Layers | None:
    """Unroll a state graph, asking the model for what is missing.

    Parameters
    ----------
    graph
        The state graph; it grows.
    tree
        One node for each history, instead of one for each state and level.
    may_go_on
        Asked with the nodes and bytes so far before each question to the model.
    opens
        Which states are expanded at a level; all by default.

    Returns
    -------
    Layers or None
        None if it was not allowed to go on.
    """
    builder = _Builder(graph, tree, may_go_on, opens)
    arrays = builder.build()
    return None if arrays is None else Layers(graph, arrays)


class _Builder:
    """Collects the arrays level by level."""

    def __init__(
        self, graph: StateGraph, tree: bool, may_go_on: MayGoOn, opens: Opens | None
    ) -> None:
        self._graph = graph
        self._tree = tree
        self._may_go_on = may_go_on
        self._opens = opens
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._sizes = np.zeros(3, int)

    def build(self) -> LayerArrays | None:
        """Return the arrays; None if it was not allowed to go on."""
        reader = self._graph.reader
        states = np.zeros(1, np.intp)
        if not self._ask(states, 0):
            return None
        if self._counts(states)[0] == 0:
            states = states[:0]
        for level in range(reader.levels):
            if not len(states):
                break
            following = self._unroll(states, level, level + 1 == reader.levels)
            if following is None:
                return None
            states = following
        return LayerArrays(
            *(
                np.concatenate([part[k] for part in self._parts] or [np.zeros(0, kind)])
                for k, kind in enumerate(KINDS)
            )
        )

    def _unroll(self, states: Integers, level: int, last: bool) -> Integers | None:
        """Add the nodes of a level; return the states of the next."""
        graph = self._graph
        opened = self._which_open(states, level)
        if not self._has_room(states[opened]):
            return None
        nodes = np.zeros(len(states), NODE)
        nodes["state"], nodes["level"] = states, level
        nodes["edge_count"][opened] = self._counts(states[opened])
        nodes["first_edge"] = self._sizes[1] + starts(nodes["edge_count"])
        rows = ranges(graph.states.array["first_action"][states], nodes["edge_count"])
        actions = graph.actions.array[rows]
        edges = np.zeros(len(rows), EDGE)
        edges["action"] = rows
        edges["reward"] = graph.reader.weights[level] * actions["expected_reward"]
        edges["risk"] = actions["immediate_risk"]
        edges["target_count"] = actions["safe_count"]
        edges["first_target"] = self._sizes[2] + starts(edges["target_count"])
        reached = graph.outcomes.array[ranges(actions["first_outcome"], actions["safe_count"])]
        targets = np.zeros(len(reached), TARGET)
        targets["probability"], targets["node"] = reached["probability"], END
        self._sizes += (len(nodes), len(edges), len(targets))
        following = np.zeros(0, np.intp)
        if not last:
            found = self._find_following(reached["state"].astype(np.intp), level + 1, targets)
            if found is None:
                return None
            following = found
        self._parts.append((nodes, edges, targets))
        return following

    def _find_following(
        self, reached: Integers, level: int, targets: NDArray[Any]
    ) -> Integers | None:
        """Return the states of the next level, and enter their numbers in the targets."""
        if not self._ask(np.unique(reached), level):
            return None
        goes_on = self._counts(reached) != 0
        if self._tree:
            following, numbers = reached[goes_on], np.arange(int(goes_on.sum()))
        else:
            following, numbers = np.unique(reached[goes_on], return_inverse=True)
        targets["node"][goes_on] = self._sizes[0] + numbers
        return np.asarray(following, np.intp)

    def _has_room(self, states: Integers) -> bool:
        """Whether the level of some states may be written down, by its size."""
        graph = self._graph
        rows = graph.states.array[states]
        # Summed state by state: a level of a tree may be far too large for its rows.
        outcomes = np.concatenate(([0], np.cumsum(graph.actions.array["safe_count"], dtype=int)))
        last = rows["first_action"] + np.maximum(0, rows["action_count"])
        targets = outcomes[last] - outcomes[rows["first_action"]]
        sizes = (len(states), int(np.maximum(0, rows["action_count"]).sum()), int(targets.sum()))
        return self._may_go_on(*self._measure(self._sizes + np.array(sizes, np.intp)))

    def _measure(self, sizes: NDArray[np.intp]) -> tuple[int, int]:
        """Return nodes and bytes of this many nodes, edges and targets."""
        return int(sizes[0]), int(sizes @ [kind.itemsize for kind in KINDS])

    def _counts(self, states: Integers) -> NDArray[np.int32]:
        return np.asarray(self._graph.states.array["action_count"][states])

    def _which_open(self, states: Integers, level: int) -> NDArray[np.bool_]:
        return np.ones(len(states), bool) if self._opens is None else self._opens(states, level)

    def _ask(self, states: Integers, level: int) -> bool:
        """Ask the model about states that are expanded and were not asked; False if forbidden."""
        wanted = self._which_open(states, level) & (self._counts(states) == UNASKED)
        size = self._measure(self._sizes)
        for state in states[wanted].tolist():
            if not self._may_go_on(*size):
                return False
            self._graph.expand(state)
        return self._may_go_on(*size)
