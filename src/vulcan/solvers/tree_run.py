"""A tree search in progress: its arrays, the answers to its kernels, and its policies.

Memory is counted and capped. The arrays of the tree grow by doubling, never past the cap; a search
that has no room left ends with the policy that it has. A quarter of the cap is kept for completion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vulcan.constraint import UNCONSTRAINED, LocalConstraint
from vulcan.errors import CheckpointError, ModelError, OptionError
from vulcan.graph import StateGraph
from vulcan.problem import Problem
from vulcan.progress import DEFAULT_MEMORY, Monitor, Progress
from vulcan.reader import ModelReader, Violation
from vulcan.solvers.checkpoint import (
    Snapshot,
    pack_array,
    pack_graph,
    unpack_array,
    unpack_graph,
)
from vulcan.solvers.draft import Draft
from vulcan.solvers.kernel_run import KernelRun

__all__ = ["DefaultPolicy", "TreeRun"]

FIRST_LENGTH: Final = 1 << 12
"""Decisions of a policy for which there is room at first."""

CHUNK: Final = 1 << 14
"""Samples, or histories of a policy, between two looks at the clock."""

SHARE_OF_SAMPLING: Final = 0.75
SMALLEST_GROWTH: Final = 0.05
MOST_ROWS: Final = (1 << 31) - 1
"""Rows are numbered with 32 bits."""

DefaultPolicy = Callable[[list[tuple[str, str]], Any], str]
"""From a history, as pairs (action label, outcome label), and its last state to an action label."""

NONE: Final = -1
NO_LIMIT: Final = 1 << 62

WORTH: Final = ("reward", "risk", "frontier")

FIXED: Final = ("_sizes", "_returns", "_path", "control", "test")
"""The arrays of a search that do not grow."""


class TreeRun(KernelRun):
    """One tree search.

    Parameters
    ----------
    problem, reader, constraint
        What is searched.
    memory
        Bytes that tree and graph may take.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        memory: int | None,
        known: StateGraph | None = None,
        compiled: bool = True,
    ) -> None:
        from vulcan.kernels import settle, tree, tree_search
        from vulcan.kernels.compile import announce_compilation

        super().__init__(problem, reader, constraint, known, compiled)
        announce_compilation(tree_search.sample)
        self._search, self._settle, self._tree_class = tree_search, settle, tree.Tree
        self._memory = DEFAULT_MEMORY if memory is None else memory
        levels = reader.levels
        self._nodes: NDArray[Any] = np.zeros(64, tree.NODE)
        self._edges: NDArray[Any] = np.zeros(256, tree.EDGE)
        self._children: NDArray[Any] = np.zeros(256, np.int32)
        self._choice: NDArray[Any] = np.zeros(64, np.int32)
        self._sizes = np.zeros(1, tree.SIZE)
        self._returns = np.zeros(levels, tree_search.RETURNS)
        self._returns["least"], self._returns["most"] = math.inf, -math.inf
        self._path = np.zeros(levels + 1, tree_search.STEP)
        self._places = np.zeros(levels + 1, settle.PLACE)
        self.control = np.zeros(1, tree_search.CONTROL)
        self._walk = np.zeros(1, settle.WALK)
        self._sizes["nodes"] = 1
        root = self._nodes[0]
        root["state"], root["first_edge"] = StateGraph.ROOT, tree.NONE
        root["survival"], root["value"] = 1.0, -math.inf
        self.full = False
        self._largest_answer = 0
        self._known_bounds: dict[tuple[int, int], float] = {}

    def prepare(
        self,
        *,
        seed: int,
        exploration: float,
        default_policy: Literal["random", "greedy"] | DefaultPolicy,
        counted: bool,
        bounded: bool,
    ) -> None:
        """Set how to sample, and compile the kernels."""
        self.control["random"] = np.uint64(seed)
        self.control["exploration"] = exploration
        self.control["choice"] = NONE
        kinds = {"random": self._search.RANDOM, "greedy": self._search.GREEDY}
        self._default_policy = default_policy if callable(default_policy) else None
        self.control["default_policy"] = (
            self._search.ASKED if callable(default_policy) else kinds[default_policy]
        )
        self._sizes["counted"] = counted
        self._sizes["bounded"] = bounded
        self.test["foresight"] = not counted and self.test["form"][0] != UNCONSTRAINED
        # Nothing is sampled or settled yet; what counts is that kernels are compiled now.
        self.control["budget"], self.control["most_histories"] = 0, NO_LIMIT
        self._call_sample()
        self._walk["complete"], self._walk["budget"] = 1, 0
        self._call_settle()
        self._choice[0] = NONE
        self._write_outline()

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return int(self.control["samples"][0])

    @property
    def histories(self) -> int:
        """Histories in the tree."""
        return int(self._sizes["nodes"][0])

    @property
    def solved(self) -> bool:
        """Whether the root is solved: its value is that of the best admissible policy."""
        return bool(self._nodes["solved"][0])

    @property
    def exhausted(self) -> bool:
        """Whether every action of the root was deleted: no admissible policy exists."""
        proved = self._walk["exhausted"][0] and self._walk["complete"][0]
        return bool(self.control["exhausted"][0] or proved)

    @property
    def estimate(self) -> float | None:
        """The value of the root; None before it was sampled."""
        value = float(self._nodes["value"][0])
        return value if math.isfinite(value) else None

    @property
    def memory(self) -> int:
        """Bytes of tree and graph."""
        arrays = (self._nodes, self._edges, self._children, self._choice)
        return sum(array.nbytes for array in arrays) + self.graph.memory

    def _bytes_in_use(self) -> int:
        """Return the same without the room that is not filled yet."""
        size = self._sizes[0]
        nodes = int(size["nodes"]) * (self._nodes.itemsize + self._choice.itemsize)
        edges = int(size["edges"]) * self._edges.itemsize
        children = int(size["children"]) * self._children.itemsize
        return nodes + edges + children + self.graph.bytes_in_use

    def _lengthen_rows(self, most: float) -> bool:
        """Give a compiled model room for more rows, within so many bytes."""
        return self.make_rows(most - (self.memory - self.graph.memory))

    def _has_room_for_an_answer(self) -> bool:
        """Whether the largest answer so far would fit once more."""
        return self.memory + self._largest_answer <= self._memory

    def sample(
        self,
        monitor: Monitor,
        target: int,
        reserve: float,
        describe: Callable[[], Progress],
        keep: Callable[[], None],
    ) -> None:
        """Sample until there are so many samples, or there is a reason to stop before.

        Parameters
        ----------
        monitor
            Who says when to stop.
        target
            How many samples.
        reserve
            Seconds to leave for what comes after.
        describe
            Tells the progress when it is asked for.
        keep
            Called often, wherever the search could be interrupted: to write checkpoints.
        """
        search = self._search
        most = monitor.limits.histories
        self.control["most_histories"] = NO_LIMIT if most is None else most
        while (
            self.samples < target
            and not self.solved
            and not self.exhausted
            and not self.full
            and not monitor.wants_stop(self.histories, self.samples, reserve)
        ):
            self.control["budget"] = min(target, self.samples + CHUNK)
            wants = self._call_sample()
            if self._bytes_in_use() > SHARE_OF_SAMPLING * self._memory:
                self.full = True
            elif wants == self._ask.NEEDS_STATE:
                self._expand(self._path["node"][self.control["depth"][0]])
            elif wants == self._ask.NEEDS_ROWS:
                self.full = not self._lengthen_rows(SHARE_OF_SAMPLING * self._memory)
            elif wants == self._ask.BROKEN:
                self.raise_fault()
            elif wants == search.NEEDS_BOUND:
                self.refine_bound()
            elif wants == search.NEEDS_LIMITS:
                self._limit_actions()
            elif wants == search.NEEDS_CHOICE:
                self._ask_default_policy()
            elif wants == search.NEEDS_ROOM:
                self.full = not self._grow(SHARE_OF_SAMPLING * self._memory)
            monitor.report(describe)
            keep()

    def take_snapshot(self, identity: str, target: int, best: Draft | None) -> Snapshot:
        """Return all that is needed to go on from here."""
        size = self._sizes[0]
        fills = {"_nodes": size["nodes"], "_edges": size["edges"], "_children": size["children"]}
        arrays = {name: pack_array(getattr(self, name)[:count]) for name, count in fills.items()}
        arrays |= {name: pack_array(getattr(self, name)) for name in FIXED}
        return Snapshot(
            identity=identity,
            graph=pack_graph(self.graph),
            credits=[
                (credit, self.problem.risk_bound(credit))
                for credit in self.table.evaluated(-math.inf, math.inf)[1:-1]
            ],
            capacities={name: len(getattr(self, name)) for name in fills},
            arrays=arrays,
            target=target,
            best=None if best is None else best.pack(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot: ask the model again, and take over the arrays."""
        unpack_graph(snapshot.graph, self.graph)
        for credit, allowed in snapshot.credits:
            if self.problem.risk_bound(credit) != allowed:
                raise CheckpointError("the risk bound is not the one of the checkpoint")
            self.table.cover(credit)
        self._read_table()
        for name, length in snapshot.capacities.items():
            setattr(self, name, np.zeros(length, getattr(self, name).dtype))
        self._choice = np.zeros(len(self._nodes), np.int32)
        for name, data in snapshot.arrays.items():
            unpack_array(data, getattr(self, name))
        self._read_table()

    def bound_reward(self) -> float:
        """Return an upper bound on the reward of any policy that the constraint admits."""
        from vulcan.kernels.upper_bound import bound_root

        return float(bound_root(self.world(), self._tree(), np.zeros(self.histories)))

    def plan(self, complete: bool, give_up: Callable[[], bool]) -> Draft | None:
        """Return the policy of the tree; None without room or time for it, or without any.

        Cleanup deletes actions of histories that it tested only up to the frontier. That is no
        proof, so the search gets its actions back afterwards.

        Parameters
        ----------
        complete
            Plan what was not sampled, too.
        give_up
            Says when it takes too long.
        """
        before = self._sizes[0].copy()
        nodes, edges = int(before["nodes"]), int(before["edges"])
        kept = None if complete else (self._nodes[:nodes].copy(), self._edges[:edges].copy())
        settled = self._settle_tree(complete, give_up) and not self._walk["exhausted"][0]
        draft = self._write_outline() if settled else None
        if kept is not None:
            self._nodes[:nodes], self._edges[:edges] = kept
        if kept is not None or not settled:
            self._roll_back(before)
        return draft

    def _roll_back(self, before: Any) -> None:
        """Forget what was added to the tree since it had these sizes."""
        nodes, edges, children = (int(before[name]) for name in ("nodes", "edges", "children"))
        added = self._children[:children] >= nodes
        self._children[:children][added] = NONE
        opened = self._nodes["first_edge"][:nodes] >= edges
        self._nodes["first_edge"][:nodes][opened] = NONE
        tried = self._edges["first_child"][:edges] >= children
        self._edges["first_child"][:edges][tried] = NONE
        for name in ("nodes", "edges", "children"):
            self._sizes[name] = before[name]

    def _settle_tree(self, complete: bool, give_up: Callable[[], bool]) -> bool:
        """Settle every history of the policy; False if there was no room, or it took too long."""
        settle = self._settle
        self._walk[["depth", "phase", "visited", "budget", "exhausted"]] = 0
        self._walk["complete"] = complete
        self._places["node"][0] = 0
        while True:
            wants = self._call_settle()
            if wants == settle.DONE:
                return True
            if wants == self._ask.NEEDS_STATE and not self._has_room_for_an_answer():
                return False
            if wants == self._ask.NEEDS_STATE:
                self._expand(self._places["node"][self._walk["depth"][0]])
            elif wants == self._ask.NEEDS_ROWS and not self._lengthen_rows(self._memory):
                return False
            elif wants == self._ask.BROKEN:
                self.raise_fault()
            elif wants == settle.NEEDS_BOUND:
                self.refine_bound()
            elif wants == settle.NEEDS_ROOM and not self._grow(self._memory):
                return False
            elif wants == settle.PAUSED:
                if self._walk["visited"][0] and give_up():
                    return False
                self._walk["budget"] += CHUNK

    def _write_outline(self) -> Draft:
        """Return the policy that was settled."""
        from vulcan.kernels import outline

        levels = np.zeros(self.reader.levels, outline.LEVEL)
        summary = np.zeros(1, outline.SUMMARY)
        length = FIRST_LENGTH
        while True:
            rows, firsts = np.empty(length, np.int32), np.empty(length + 1, np.int32)
            below = np.empty(2 * length, np.int32)
            arrays = (self._choice, levels, rows, firsts, below, summary)
            if outline.write_outline(self.world(), self._tree(), *arrays):
                break
            length *= 2
        decisions, entries = int(summary["decisions"][0]), int(summary["entries"][0])
        reward, risk, frontier = (float(summary[name][0]) for name in WORTH)
        return Draft(
            rows[:decisions].copy(),
            firsts[: decisions + 1].copy(),
            below[:entries].copy(),
            reward,
            risk,
            float(self.problem.risk_bound(reward)),
            frontier,
        )

    def _tree(self) -> Any:
        return self._tree_class(self._nodes, self._edges, self._children, self._sizes)

    def _call_sample(self) -> int:
        state = (self._returns, self._path, self.test, self.control)
        return int(self._search.sample(self.world(), self._tree(), *state))

    def _call_settle(self) -> int:
        state = (self._choice, self._places, self.test, self._walk)
        return int(self._settle.settle(self.world(), self._tree(), *state))

    def _expand(self, node: int) -> None:
        before = self.graph.memory
        self.graph.expand(int(self._nodes["state"][node]))
        self._largest_answer = max(self._largest_answer, self.graph.memory - before)

    def _limit_actions(self) -> None:
        """Bound the value of each action of the history that was just opened."""
        depth = int(self.control["depth"][0])
        node = self._nodes[self._path["node"][depth]]
        first, count = self.graph.states.array[node["state"]]
        for k in range(int(count)):
            action = self.graph.actions.array[int(first) + k]
            limit = float(action["expected_reward"])
            start = int(action["first_outcome"])
            if depth + 1 < self.reader.levels:
                for outcome in self.graph.outcomes.array[start : start + action["safe_count"]]:
                    bound = self._bound_state(int(outcome["state"]), depth + 1)
                    limit += self.reader.discounts[depth] * outcome["probability"] * bound
            self._edges["limit"][node["first_edge"] + k] = limit

    def _bound_state(self, state: int, level: int) -> float:
        if (state, level) not in self._known_bounds:
            step = level - (self.reader.levels - self.reader.horizon)
            bound = self.reader.bound_reward(self.graph.state_object(state), step)
            self._known_bounds[state, level] = bound
        return self._known_bounds[state, level]

    def _ask_default_policy(self) -> None:
        """Let the user's function choose an action for a history that was never sampled."""
        assert self._default_policy is not None
        depth = int(self.control["depth"][0])
        history = [self._describe_step(step) for step in self._path[:depth]]
        state = int(self._nodes["state"][self._path["node"][depth]])
        place = self.graph.state_object(state)
        try:
            chosen = str(self._default_policy(history, place))
        except Exception as error:
            violation = Violation("answers", f"default_policy raised {error!r}", place)
            raise ModelError(violation) from error
        labels = self.graph.action_labels(state)
        if chosen not in labels:
            raise OptionError(
                f"default_policy chose {chosen!r} in state {place!r}; there are {', '.join(labels)}"
            )
        self.control["choice"] = labels.index(chosen)

    def _describe_step(self, step: Any) -> tuple[str, str]:
        node = self._nodes[step["node"]]
        first = int(self.graph.states.array["first_action"][node["state"]])
        row = first + int(step["edge"]) - int(node["first_edge"])
        return self.graph.describe_outcome(row, int(step["outcome"]))

    def _grow(self, most: float) -> bool:
        """Lengthen the arrays that are more than half full, to the double if memory allows it."""
        size = self._sizes[0]
        filled = {"_nodes": size["nodes"], "_edges": size["edges"], "_children": size["children"]}
        short = [n for n, count in filled.items() if 2 * count >= len(getattr(self, n))]
        names = short or list(filled)
        if "_nodes" in names:
            names = [*names, "_choice"]
        more = sum(getattr(self, name).nbytes for name in names)
        share = min(1.0, (most - self.memory) / more)
        longest = max(len(getattr(self, name)) for name in names)
        if share < SMALLEST_GROWTH or (1 + share) * longest > MOST_ROWS:
            return False
        for name in names:
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(int(share * len(old)), old.dtype)]))
        return True
