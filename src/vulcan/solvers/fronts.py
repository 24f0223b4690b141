"""Fronts of risk and reward over a layered graph, computed in arrays that grow.

What the fronts are, and what is dropped from them, is in `vulcan.kernels.pareto_fronts`.

The fronts of a level don't depend on each other, so that threads share them. Each writes points and
parts to stretches of its own. Where one runs out of room, it stops; when all have stopped, it gets
another stretch and goes on. Where a front is stored means nothing: its points, and their places in
it, are the same with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.layered_graph import KINDS, LayerArrays
from vulcan.kernels import codes
from vulcan.runtime.reservation import lengthen, set_apart
from vulcan.runtime.team import Team, cut_levels

__all__ = ["CHUNK", "FrontArrays", "Pruning", "load_kernels"]

CHUNK: Final = 1 << 22
"""Pairs of points between two looks at the clock; some hundredths of a second."""

LEAST_NODES: Final = 32
"""Nodes with fronts that a block of a level has at least."""

THINNESS: Final = 1e-14
"""Rewards closer than this share of the largest count as equal: the order of sums differs."""


@dataclass(frozen=True, eq=False)
class Pruning:
    """What is dropped from fronts.

    Attributes
    ----------
    price
        The price of failure.
    values
        The largest reward - price · risk from each node on.
    slack
        What falls short of the largest value of the root by more is dropped.
    reach
        The smallest probability of a history that leads to each node; inf for those that matter to
        nobody.
    size
        How large rewards are.
    most_points
        How many points a front may have.
    rare_points
        How many where a node is hardly ever reached; between, the more the larger the reach.
    """

    price: float
    values: NDArray[np.float64]
    slack: float
    reach: NDArray[np.float64]
    size: float
    most_points: int
    rare_points: int | None = None


STORES: Final = {codes.NEEDS_POINTS: "points", codes.NEEDS_PARTS: "parts"}
"""What all threads fill, by what is said where there is too little of it."""


class FrontArrays:
    """The fronts of all nodes of a layered graph.

    Parameters
    ----------
    layers
        The graph.
    first
        The nodes of level t are first[t] to first[t + 1] - 1; only needed by several threads.
    team
        Who shares the nodes of a level.
    """

    def __init__(
        self,
        layers: LayerArrays,
        first: NDArray[np.int64] | None = None,
        team: Team | None = None,
    ) -> None:
        from vulcan.kernels import pareto_fronts

        self._kernels = pareto_fronts
        self._layers = layers
        self._first = np.array([0, len(layers.nodes)]) if first is None else first
        self._team = Team() if team is None else team
        width = int(layers.edges["target_count"].max(initial=1))
        most = pareto_fronts.FIRST_DRAFTS
        shared = (
            np.zeros(len(layers.nodes), pareto_fronts.FRONT),
            np.zeros(1 << 12, pareto_fronts.POINT),
            np.zeros(1 << 13, np.int32),
        )
        self._hands = [
            pareto_fronts.Fronts(
                *shared,
                drafts=np.zeros(most, pareto_fronts.DRAFT),
                kept=np.zeros(most // 2, pareto_fronts.DRAFT),
                chosen=np.zeros((most // 2, width), np.int32),
                keys=np.zeros(most),
                bins=set_apart(pareto_fronts.BINS + 1, float),
                control=set_apart(1, pareto_fronts.CONTROL),
            )
            for _ in range(self._team.count)
        ]
        """One for each thread: the same fronts, points and parts, and scratch of its own."""

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        arrays = {id(array): array.nbytes for hand in self._hands for array in hand}
        return sum(arrays.values())

    @property
    def work(self) -> int:
        """Pairs of points that the last computation combined."""
        return self._add_up("work")

    @property
    def dropped(self) -> bool:
        """Whether anything was dropped that falls short by too much."""
        return self._add_up("dropped") > 0

    @property
    def thinned(self) -> bool:
        """Whether some front had more points than were allowed."""
        return self._add_up("thinned") > 0

    def _add_up(self, name: str) -> int:
        return sum(int(hand.control[name][0]) for hand in self._hands)

    @property
    def error(self) -> float:
        """How much reward a point of the root may stand for more than its own."""
        return float(self._hands[0].fronts[0]["error"])

    def compute(
        self,
        pruning: Pruning,
        tips: tuple[NDArray[np.float64], NDArray[np.float64]],
        may_go_on: Callable[[], bool],
    ) -> bool:
        """Compute all fronts; False if it may not go on.

        Parameters
        ----------
        pruning
            What to drop.
        tips
            What nodes without edges earn and risk; other entries don't matter.
        may_go_on
            Asked before each chunk of work.
        """
        for number, hand in enumerate(self._hands):
            self._begin(hand, number, pruning)
        given = (self._layers, *tips, pruning.values, pruning.reach)

        def work(number: int) -> int:
            return int(self._kernels.extend(*given, self._hands[number]))

        count, matters = self._team.count, pruning.reach < np.inf
        for blocks in cut_levels(self._first, LEAST_NODES, count, matters):
            for hand, (begin, end) in zip(self._hands, blocks, strict=False):
                hand.control["next_node"], hand.control["last_node"] = end - 1, begin
            waiting = list(range(len(blocks)))
            while waiting:
                if not may_go_on():
                    return False
                for number in waiting:
                    control = self._hands[number].control
                    control["pause"] = control["work"] + CHUNK
                wants = dict(zip(waiting, self._team.share(work, waiting), strict=True))
                waiting = [number for number in waiting if wants[number] != codes.DONE]
                for number in waiting:
                    self._satisfy(number, wants[number])
        return True

    def _begin(self, hand: Any, number: int, pruning: Pruning) -> None:
        """Tell a thread what to do, and give it its share of the room that there is."""
        control, count = hand.control, len(self._hands)
        control[:] = 0
        control["price"], control["slack"] = pruning.price, pruning.slack
        control["thinness"] = THINNESS * pruning.size
        control["most_points"] = pruning.most_points
        control["rare_points"] = pruning.rare_points or pruning.most_points
        control["patience"] = CHUNK
        for name in STORES.values():
            room = len(getattr(hand, name))
            control[name] = number * room // count
            control[f"{name}_end"] = (number + 1) * room // count

    def points(self, node: int) -> Any:
        """Return the points of a node's front, in the order of risk and reward."""
        front = self._hands[0].fronts[node]
        return self._hands[0].points[front["first"] : front["first"] + front["count"]]

    def follow(self, node: int, place: int) -> tuple[int, list[int]]:
        """Return the edge of a point, NONE at a tip, and the places of the points after it."""
        point = self.points(node)[place]
        edge, first = int(point["edge"]), int(point["first_part"])
        if edge < 0:
            return edge, []
        count = int(self._layers.edges["target_count"][edge])
        return edge, self._hands[0].parts[first : first + count].tolist()

    def _satisfy(self, number: int, wants: int) -> None:
        """Give a thread what it needs to go on."""
        hand = self._hands[number]
        if wants == codes.IMPATIENT:
            # One node takes long. It begins anew, so that patience must grow.
            hand.control["patience"] *= 2
        elif wants == codes.NEEDS_SCRATCH:
            arrays = {name: getattr(hand, name) for name in ("drafts", "kept", "chosen", "keys")}
            longer = {name: np.concatenate([a, np.zeros_like(a)]) for name, a in arrays.items()}
            self._hands[number] = hand._replace(**longer)
        elif wants in STORES:
            self._lengthen(STORES[wants], hand.control)

    def _lengthen(self, name: str, control: NDArray[np.void]) -> None:
        """Make an array longer, and give the new stretch to a thread: behind its own, if it can."""
        array = getattr(self._hands[0], name)
        if control[f"{name}_end"][0] != len(array):
            control[name] = len(array)
        length = len(array) + max(1, len(array) // len(self._hands))
        control[f"{name}_end"] = length
        longer = lengthen(array, len(array), length)
        self._hands = [hand._replace(**{name: longer}) for hand in self._hands]


@cache
def load_kernels() -> None:
    """Load or compile the kernels of fronts."""
    from vulcan.kernels import pareto_fronts
    from vulcan.kernels.compilation import announce_compilation

    announce_compilation(pareto_fronts.extend)
    arrays, number = LayerArrays(*(np.zeros(1, kind) for kind in KINDS)), np.zeros(1)
    pareto_fronts.find_least_reach(arrays, number, 0.0, 0.0, number)
    FrontArrays(arrays).compute(
        Pruning(0.0, number, 0.0, number, 1.0, 1), (number, number), lambda: True
    )
