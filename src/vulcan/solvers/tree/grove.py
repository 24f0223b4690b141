"""The parts of a forest that one worker holds, and what it does with them.

All that it is asked depends on its arguments and on what it was asked before, and so it can be had
again from that (`adopt`).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.executors.base import Line
from vulcan.graphs.rows import ACTION
from vulcan.kernels.price_tree import PRICES
from vulcan.model.reader import ModelReader
from vulcan.runtime.memory import find_default_memory
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import NONE
from vulcan.solvers.layered.accuracy import Extremes, find_extremes, join_extremes
from vulcan.solvers.tree.completion import HistoryCompletion, Points
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.part_tree import Division, Packed, Parcel, PartTree, Seedling
from vulcan.solvers.tree.parts import Origin
from vulcan.solvers.tree.price_arrays import PriceArrays
from vulcan.solvers.tree.tops import GrownTop, grow_top
from vulcan.solvers.tree.warm_up import warm_up

__all__ = ["STANDING", "Expansions", "Fragment", "Grove", "Standing"]

STANDING: Final = np.dtype(
    [
        ("number", "i8"),
        ("visits", "i4"),
        ("solved", "i2"),
        ("ended", "i2"),  # its first state has no actions
        ("values", "f4", (PRICES,)),
        ("samples", "i8"),
        ("least", "f8"),  # of what samples collected from its first history on
        ("most", "f8"),
    ],
    align=True,
)
"""What the top must know of a part after it was sampled."""

AMPLE: Final = 2
"""A part grows this many times as much of a top as all parts together need, for those that are
equally probable."""

Event = tuple[str, tuple[Any, ...]]
"""Something that a grove was asked to do: a method of it, and its arguments."""


class Size(NamedTuple):
    """How large a part is: bytes that it has, nodes, and questions asked."""

    capacity: int
    histories: int
    evaluations: int


class Standing(NamedTuple):
    """What a grove answers.

    Attributes
    ----------
    parts
        Those that were asked for.
    histories, memory, evaluations
        Of all parts: nodes, bytes, and how often the model was asked.
    full
        Whether memory has run out.
    """

    parts: NDArray[Any]
    histories: int
    memory: int
    evaluations: int
    full: bool


class Expansions(NamedTuple):
    """How the top of a part grows: how probable expanded nodes are, and what each adds."""

    reach: NDArray[np.float64]
    added: NDArray[np.int64]


class Fragment(NamedTuple):
    """What a policy does in a part, as in a `Draft`, and what each decision earns and risks."""

    answers: NDArray[Any]
    firsts: NDArray[np.int32]
    below: NDArray[np.int32]
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]


class Grove:
    """What a worker of a forest holds.

    Parameters
    ----------
    line
        To the one who hired it.
    problem, seed, exploration
        As in `PriceRun`.
    """

    def __init__(self, line: Line, problem: Problem, seed: int, exploration: float) -> None:
        self._made = (line, problem, seed, exploration)
        reader = ModelReader(problem.model)
        self._like = PriceArrays(problem, reader, None, None, seed, exploration)
        self._trees: dict[int, PartTree] = {}
        self._sizes: dict[int, Size] = {}
        self._capacity = self._histories = self._evaluations = 0
        self._grown: dict[int, GrownTop] = {}
        self._most = float(find_default_memory())
        self._full = False

    def prepare(self) -> tuple[str, int]:
        """Load the kernels; return the machine and the bytes that searches may take on it."""
        warm_up()
        return socket.gethostname(), find_default_memory()

    def limit(self, most: float) -> None:
        """Take no more than so many bytes."""
        self._most = most

    def plant(self, prices: Any, seedlings: Iterable[Seedling]) -> None:
        """Begin with parts that were never sampled."""
        self._like.prices[:] = prices
        for seedling in seedlings:
            self._add(PartTree.plant(self._like, seedling))

    def sample(self, numbers: Sequence[int], counts: Sequence[int], orders: Any) -> Standing:
        """Carry out so many orders of each of some parts, one after the other."""
        begin = 0
        for number, count in zip(numbers, counts, strict=True):
            tree = self._trees[number]
            others = self._capacity - self._sizes[number].capacity
            self._full |= not tree.sample(orders[begin : begin + count], self._most - others)
            grown = tree.take_growth()
            self._measure(number, tree.capacity if grown else self._sizes[number].capacity)
            begin += count
            if self._full:
                break
        return self._report(numbers)

    def move(
        self,
        numbers: Iterable[int],
        prices: Any,
        left: NDArray[np.intp],
        share: NDArray[np.float32],
    ) -> Standing:
        """Go over to other prices with parts."""
        self._like.prices[:] = prices
        present = [number for number in numbers if number in self._trees]
        for number in present:
            self._trees[number].move(prices, left, share)
        return self._report(present)

    def follow(self, marks: Mapping[int, tuple[list[Any], list[Any]]]) -> None:
        """Mark a plan in parts, instead of the one before; see `PriceArrays.follow`."""
        for number, some in marks.items():
            if number in self._trees:
                self._trees[number].follow(*some)

    def divide(self, firsts: Mapping[int, int]) -> dict[int, Division]:
        """Let the top have the first histories of parts, and begin the parts below them.

        Parameters
        ----------
        firsts
            For each part the number of the first part below; others follow.
        """
        return {number: self._divide(number, first) for number, first in firsts.items()}

    def _divide(self, number: int, first: int) -> Division:
        tree = self._trees[number]
        division = tree.divide()
        state = tree.graph.states.array[division.node["state"]]
        names = tree.graph.actions.array["number"][state["first_action"] :]
        children, origins = iter(tree.list_children(0)), dict[int, Origin]()
        for k, edge in enumerate(division.edges):
            for _ in range(edge["children"] if edge["first_child"] != NONE else 0):
                child = next(children)
                if tree.nodes["visits"][child]:
                    earned = tree.origin.earned + float(tree.nodes["reward"][child])
                    origins[child] = Origin(first, int(names[k]), earned, division.returns)
                first += 1
        for part in tree.cut(origins):
            self._add(part)
        self._remove(number)
        return division

    def grow(self, places: Mapping[int, float], most: int, closeness: float) -> list[Expansions]:
        """Grow the tops of parts, given how probable these are, and return how they grow."""
        grown = {
            number: grow_top(self._trees[number], AMPLE * most, closeness, reach=reach)
            for number, reach in places.items()
        }
        self._grown |= grown
        return [_list_expansions(top) for top in grown.values()]

    def show(
        self, places: Mapping[int, tuple[float, int, float]], least: float
    ) -> dict[int, GrownTop]:
        """Return the tops of parts, as far as they are at least so probable."""
        for number, (reach, most, closeness) in places.items():
            if number not in self._grown:  # by a worker that is gone
                self.grow({number: reach}, most, closeness)
        shown = {number: _shorten(self._grown[number], least) for number in places}
        self._grown.clear()
        return shown

    def find_extremes(self, numbers: Iterable[int]) -> Extremes:
        """Return what is largest among the actions of parts."""
        return join_extremes(find_extremes(self._trees[number].graph) for number in numbers)

    def collect(self) -> dict[int, NDArray[Any]]:
        """Return what samples of parts collected."""
        return {number: tree.returns for number, tree in self._trees.items() if tree.begun}

    def evaluate(
        self, places: Sequence[tuple[int, int]], returns: Any
    ) -> list[tuple[tuple[int, int], Points, int]]:
        """Return what each price earns and risks from nodes of parts on, and the work of that."""
        found = []
        for number, node in places:
            completion = HistoryCompletion(self._trees[number], returns)
            [points] = completion.evaluate([node], lambda: True)
            found.append(((number, node), points, completion.work))
        return found

    def write(self, places: Mapping[int, tuple[int, float]], returns: Any) -> dict[int, Fragment]:
        """Return what the plan that is marked does in parts.

        Parameters
        ----------
        places
            For each part the price that it follows from above, or NONE, and how probable it is.
        returns
            What samples of all parts collected.
        """
        fragments = {}
        for number, (lane, reach) in places.items():
            tree = self._trees[number]
            draft = HistoryCompletion(tree, returns).write(lane)
            assert draft is not None
            answers = tree.graph.actions.array[draft.rows].astype(ACTION)
            answers["first_outcome"] = NONE  # rows of outcomes stay here
            weighed = _weigh(tree, draft, reach)
            fragments[number] = Fragment(answers, draft.firsts, draft.below, *weighed)
        return fragments

    def pack(self, numbers: Iterable[int]) -> dict[int, Packed]:
        """Return what was found in parts, as bytes."""
        return {number: self._trees[number].pack() for number in numbers}

    def give(self, numbers: Iterable[int]) -> dict[int, Parcel]:
        """Return parts, and let them go."""
        parcels = {number: self._trees[number].send() for number in numbers}
        for number in parcels:
            self._remove(number)
        return parcels

    def take(self, parcels: Mapping[int, Parcel]) -> None:
        """Take over parts."""
        for parcel in parcels.values():
            self._add(PartTree.unpack(self._like, parcel))

    def adopt(self, numbers: Iterable[int], events: Sequence[Event]) -> None:
        """Take over parts of a grove that is gone, by doing again what it did."""
        other = Grove(*self._made)
        for name, arguments in events:
            getattr(other, name)(*arguments)
        for number in numbers:
            if number in other._trees:
                self._add(other._trees[number])
        self._evaluations += other._evaluations

    def _add(self, tree: PartTree) -> None:
        number = tree.origin.number
        self._trees[number], self._sizes[number] = tree, Size(0, 0, 0)
        self._measure(number, tree.capacity)

    def _remove(self, number: int) -> None:
        self._trees.pop(number)
        size = self._sizes.pop(number)
        self._capacity -= size.capacity
        self._histories -= size.histories
        self._full = False

    def _measure(self, number: int, capacity: int) -> None:
        """Note how large a part is by now."""
        tree, before = self._trees[number], self._sizes[number]
        size = Size(capacity, tree.histories, tree.graph.evaluations)
        self._capacity += size.capacity - before.capacity
        self._histories += size.histories - before.histories
        self._evaluations += size.evaluations - before.evaluations
        self._sizes[number] = size

    def _report(self, numbers: Iterable[int]) -> Standing:
        trees = [self._trees[number] for number in numbers]
        parts = np.zeros(len(trees), STANDING)
        parts["number"] = [tree.origin.number for tree in trees]
        if trees:
            nodes = np.concatenate([tree.nodes[:1] for tree in trees])
            parts["values"] = np.concatenate([tree.node_values[:1] for tree in trees])
            parts["visits"], parts["solved"] = nodes["visits"], nodes["solved"]
            parts["ended"] = [tree.graph.states.array["action_count"][0] == 0 for tree in trees]
            seen = [tree.seen for tree in trees]
            for k, name in enumerate(("samples", "least", "most")):
                parts[name] = [record[k] for record in seen]
        sizes = (self._histories, self._capacity, self._evaluations)
        return Standing(parts, *sizes, self._full)


def _weigh(
    tree: PartTree, draft: Draft, reach: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each decision earns and risks, as the kernel that writes plans adds it up."""
    actions = tree.graph.actions.array[draft.rows]
    chances = tree.graph.outcomes.array["probability"]
    rewards, risks = np.zeros(len(draft)), np.zeros(len(draft))
    here: NDArray[Any] = np.arange(min(1, len(draft)))
    reaches = np.full(len(here), reach)
    for weight in tree.reader.weights[int(tree.nodes["level"][0]) :]:
        now = actions[here]
        rewards[here] = weight * reaches * now["expected_reward"]
        risks[here] = reaches * now["immediate_risk"]
        counts = np.diff(draft.firsts)[here]
        after = draft.below[ranges(draft.firsts[here], counts)]
        goes_on = after >= 0
        if not goes_on.any():
            break
        outcomes = ranges(now["first_outcome"], counts)[goes_on]
        reaches = np.repeat(reaches, counts)[goes_on] * chances[outcomes]
        here = after[goes_on]
    return rewards, risks


def _list_expansions(top: GrownTop) -> Expansions:
    """Return how probable the expanded nodes of a top are, and how many nodes each added."""
    expanded = np.flatnonzero(top.nodes["edge_count"] > 0)
    arrivals = (top.targets["node"] >= 0).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(arrivals)])
    ends = top.edges["first_target"] + top.edges["target_count"]
    per_edge = before[ends] - before[top.edges["first_target"]]
    before = np.concatenate([[0], np.cumsum(per_edge)])
    first = top.nodes["first_edge"][expanded]
    added = before[first + top.nodes["edge_count"][expanded]] - before[first]
    return Expansions(top.reach[expanded], added)


def _shorten(top: GrownTop, least: float) -> GrownTop:
    """Return a top in which only nodes that are at least so probable are expanded."""
    # Nodes come in the order in which they were added, and edges in that of expansions, which is
    # from the most probable node to the least.
    kept = top.reach >= least
    nodes = top.nodes.copy()
    nodes["edge_count"][~kept] = 0
    expanded = nodes["edge_count"] > 0
    edges = int((nodes["first_edge"] + nodes["edge_count"])[expanded].max(initial=0))
    ends = top.edges["first_target"][:edges] + top.edges["target_count"][:edges]
    targets = int(ends.max(initial=0))
    count = 1 + int(top.targets["node"][:targets].max(initial=0))
    return GrownTop(
        nodes[:count],
        top.edges[:edges],
        top.targets[:targets],
        top.reach[:count],
        top.histories[:count],
        top.visits[:count],
        top.action_counts[:count],
        top.values[:count],
    )
