"""Plans over a forest.

The top is merged from those of the parts, stubs are evaluated where they are, and the policy is
written in parts.

A history is named by a number of 64 bits: that of its part in the upper half, 0 for the top, and
that of its node there in the lower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.executors.base import Worker
from vulcan.graphs.rows import ACTION
from vulcan.kernels.plan_top import PartLayers
from vulcan.sentinels import END, NONE
from vulcan.solvers.tree.completion import Points, SharedCompletion
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.grove import Expansions, Fragment
from vulcan.solvers.tree.tops import GrownTop, cut_off, grow_top, make_top

if TYPE_CHECKING:
    from vulcan.solvers.tree.forest import Forest

__all__ = ["ForestCompletion", "grow_forest_top"]

LOWER: Final = (1 << 32) - 1

AT_ONCE: Final = 16
"""Stubs that a worker evaluates between two looks at the clock."""


def grow_forest_top(forest: Forest, most: int, closeness: float) -> GrownTop:
    """Return the top that the tree would have if it were in one memory.

    Parts tell first how their tops would grow, and then send as much of them as is needed.
    """
    own = grow_top(forest, most, closeness)
    numbers = {
        n: forest.number_of(int(root))
        for n, root in enumerate(own.histories.tolist())
        if own.nodes["edge_count"][n] == 0 and forest.is_part(int(root))
    }
    reaches = {number: float(own.reach[n]) for n, number in numbers.items()}
    sampled = [number for number in reaches if forest.is_planted(number)]

    def grow(worker: Worker, some: list[int]) -> Any:
        places = {number: reaches[number] for number in some}
        return worker.call("grow", places, most, closeness)

    grown = [expansions for answer in forest.ask_workers(sampled, grow) for expansions in answer]
    least = find_least(grown, most)
    shown: dict[int, GrownTop] = {}
    show = {number: (reaches[number], most, closeness) for number in sampled}
    for answer in forest.ask_workers(
        sampled, lambda worker, some: worker.call("show", {n: show[n] for n in some}, least)
    ):
        shown |= answer
    return merge(forest, own, numbers, {number: shown[number] for number in sampled}, most)


def find_least(grown: Sequence[Expansions], most: int) -> float:
    """Return how probable a node is at least that is expanded before there are so many nodes."""
    if not grown:
        return 0.0
    reach = np.concatenate([expansions.reach for expansions in grown])
    added = np.concatenate([expansions.added for expansions in grown])
    order = np.argsort(-reach, kind="stable")
    enough = np.flatnonzero(np.cumsum(added[order]) >= most)
    return float(reach[order[enough[0]]]) if len(enough) else 0.0


def merge(
    forest: Forest,
    own: GrownTop,
    numbers: Mapping[int, int],
    shown: Mapping[int, GrownTop],
    most: int,
) -> GrownTop:
    """Return one top of that of the coordinator and those of parts.

    Parameters
    ----------
    forest
        The search.
    own
        The coordinator's.
    numbers
        The parts that begin with its nodes.
    shown
        Tops of parts.
    most
        How many nodes it may have.
    """
    from vulcan.kernels.plan_top import merge_tops

    tops = [own, *shown.values()]
    starts = np.cumsum([0, *(len(top.nodes) for top in tops)])
    places = dict(zip(shown, starts[1:].tolist(), strict=False))
    links = np.arange(starts[-1])
    for n, number in numbers.items():
        links[n] = places.get(number, n)
    histories = [own.histories.copy()]
    for n, number in numbers.items():
        histories[0][n] = number << 32
    histories += [(number << 32) + top.histories for number, top in shown.items()]
    mine = np.zeros(starts[-1], bool)
    mine[: len(own.nodes)] = np.isin(own.histories, forest.tops)
    top = make_top(most)
    top.nodes["level"][0] = 0
    merge_tops(PartLayers(*join(tops), mine), links, top)
    nodes, edges, targets, reach = cut_off(top)
    sources = nodes["state"]

    def gather(name: str) -> NDArray[Any]:
        return np.asarray(np.concatenate([getattr(top, name) for top in tops])[sources])

    return GrownTop(
        nodes,
        edges,
        targets,
        reach,
        np.concatenate(histories)[sources],
        gather("visits"),
        gather("action_counts"),
        gather("values"),
    )


def join(tops: Sequence[GrownTop]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the layered graphs of several tops as one."""
    counts = np.zeros(3, np.int64)
    joined: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for top in tops:
        nodes, edges, targets = top.nodes.copy(), top.edges.copy(), top.targets.copy()
        nodes["first_edge"] += counts[1]
        edges["first_target"] += counts[2]
        targets["node"][targets["node"] >= 0] += counts[0]
        for rows, more in zip(joined, (nodes, edges, targets), strict=True):
            rows.append(more)
        counts += (len(nodes), len(edges), len(targets))
    nodes, edges, targets = map(np.concatenate, joined)
    return nodes, edges, targets


class ForestCompletion(SharedCompletion):
    """What lies below the top of a plan, with the workers.

    Parameters
    ----------
    forest
        The search.
    """

    def __init__(self, forest: Forest) -> None:
        super().__init__(AT_ONCE * forest.size_of_crew)
        self._forest, self._returns = forest, forest.merge_returns()

    def _walk(self, nodes: Sequence[int]) -> list[tuple[Points, int]]:
        forest, points = self._forest, dict[int, tuple[Points, int]]()
        forest.plant({history >> 32 for history in nodes})

        def call(worker: Worker, some: list[int]) -> Any:
            here = set(some)
            places = [
                (history >> 32, history & LOWER) for history in nodes if history >> 32 in here
            ]
            return worker.call("evaluate", places, self._returns)

        numbers = {history >> 32 for history in nodes}
        for answer in forest.ask_workers(numbers, call):
            for (number, node), found, work in answer:
                points[(number << 32) + node] = found, work
        return [points[history] for history in nodes]

    def write(self) -> Draft | None:
        """Return the plan that is marked in the forest as a policy."""
        forest = self._forest
        writing = _Writing(forest)
        writing.walk(0, NONE)
        places = writing.parts
        forest.plant(places)
        fragments: dict[int, Fragment] = {}

        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("write", {number: places[number] for number in some}, self._returns)

        for answer in forest.ask_workers(places, call):
            fragments |= answer
        draft = writing.put_together(fragments)
        return replace(draft, allowed=forest.allow(draft.reward))


class _Writing:
    """The decisions of the top, and where parts follow them."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self.parts: dict[int, tuple[int, float]] = {}
        """The parts that are reached: the price to follow or NONE, and how probable they are."""
        self._pieces: list[tuple[int, float, int, int]] = []
        """In preorder: a decision's row, or that of a part, negative; its reach; and, of what
        comes after, the decision above and the position there."""

    def walk(self, node: int, lane: int, reach: float = 1.0, above: int = NONE) -> None:
        """Write the decisions from a node of the top on."""
        forest = self._forest
        if forest.is_part(node):
            number = forest.number_of(node)
            self.parts[number] = lane, reach
            self._pieces.append((-number, reach, above, 0))
            return
        marked = forest.nodes[node]
        if lane == NONE and marked["plan"] != NONE:
            position = int(marked["plan"])
        else:
            lane = int(marked["lane"]) if lane == NONE else lane
            position = forest.prefer(node, lane)
        row, children, chances = forest.list_after(node, position)
        number = len(self._pieces)
        self._pieces.append((row, reach, above, len(children)))
        for child, chance in zip(children, chances, strict=True):
            self.walk(child, lane, reach * chance, number)

    def put_together(self, fragments: Mapping[int, Fragment]) -> Draft:
        """Return the whole policy."""
        rows = self._forest.graph.actions.array
        weights = self._forest.reader.weights
        starts = self._number(fragments)
        answers, counts, below = [], [], []
        rewards, risks = [], []
        following = self._find_following(starts, fragments)
        levels = self._find_levels()
        for k, (row, reach, _, count) in enumerate(self._pieces):
            if row >= 0:
                answer = rows[row : row + 1].astype(ACTION)
                answer["first_outcome"] = NONE
                answers.append(answer)
                counts.append(np.array([count]))
                below.append(np.array(following[k], np.int32))
                rewards.append(weights[levels[k]] * reach * answer["expected_reward"])
                risks.append(reach * answer["immediate_risk"])
            else:
                fragment = fragments[-row]
                moved = fragment.below.copy()
                moved[moved >= 0] += starts[k]
                answers.append(fragment.answers)
                counts.append(np.diff(fragment.firsts))
                below.append(moved)
                rewards.append(fragment.rewards)
                risks.append(fragment.risks)
        told = np.concatenate(answers)
        firsts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
        numbers = np.arange(len(told), dtype=np.int32)
        entries = np.concatenate(below).astype(np.int32)
        # One after the other, as if all were written at once: sums depend on the order.
        reward, risk = (float(np.cumsum(np.concatenate(some))[-1]) for some in (rewards, risks))
        return Draft(numbers, firsts, entries, reward, risk, 0.0, 0.0, answers=told)

    def _number(self, fragments: Mapping[int, Fragment]) -> list[int]:
        """Return the first decision of each piece."""
        sizes = [1 if row >= 0 else len(fragments[-row].answers) for row, *_ in self._pieces]
        return [0, *(int(end) for end in np.cumsum(sizes))]

    def _find_following(
        self, starts: Sequence[int], fragments: Mapping[int, Fragment]
    ) -> dict[int, list[int]]:
        """Return what comes after each decision of the top."""
        following: dict[int, list[int]] = {k: [] for k in range(len(self._pieces))}
        for k, (row, _, above, _) in enumerate(self._pieces):
            if above != NONE:
                ended = row < 0 and not len(fragments[-row].answers)
                following[above].append(END if ended else starts[k])
        return following

    def _find_levels(self) -> list[int]:
        levels: list[int] = []
        for _, _, above, _ in self._pieces:
            levels.append(0 if above == NONE else levels[above] + 1)
        return levels
