"""Fronts of risk and reward over a layered graph, computed in arrays that grow.

What the fronts are, and what is dropped from them, is in `vulcan.kernels.pareto_fronts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.layered_graph import KINDS, LayerArrays
from vulcan.kernels import codes

__all__ = ["CHUNK", "FrontArrays", "Pruning", "load_kernels"]

CHUNK: Final = 1 << 22
"""Pairs of points between two looks at the clock; some hundredths of a second."""

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


class FrontArrays:
    """The fronts of all nodes of a layered graph.

    Parameters
    ----------
    layers
        The graph.
    """

    def __init__(self, layers: LayerArrays) -> None:
        from vulcan.kernels import pareto_fronts

        self._kernels = pareto_fronts
        self._layers = layers
        width = int(layers.edges["target_count"].max(initial=1))
        self._memory = pareto_fronts.Fronts(
            fronts=np.zeros(len(layers.nodes), pareto_fronts.FRONT),
            points=np.zeros(1 << 12, pareto_fronts.POINT),
            parts=np.zeros(1 << 13, np.int32),
            drafts=np.zeros(1 << 14, pareto_fronts.DRAFT),
            kept=np.zeros(1 << 13, pareto_fronts.DRAFT),
            chosen=np.zeros((1 << 13, width), np.int32),
            keys=np.zeros(1 << 14),
            bins=np.zeros(pareto_fronts.BINS + 1),
            control=np.zeros(1, pareto_fronts.CONTROL),
        )

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return sum(array.nbytes for array in self._memory)

    @property
    def work(self) -> int:
        """Pairs of points that the last computation combined."""
        return int(self._memory.control["work"][0])

    @property
    def dropped(self) -> bool:
        """Whether anything was dropped that falls short by too much."""
        return bool(self._memory.control["dropped"][0])

    @property
    def thinned(self) -> bool:
        """Whether some front had more points than were allowed."""
        return bool(self._memory.control["thinned"][0])

    @property
    def error(self) -> float:
        """How much reward a point of the root may stand for more than its own."""
        return float(self._memory.fronts[0]["error"])

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
        control = self._memory.control
        control[:] = 0
        control["price"], control["slack"] = pruning.price, pruning.slack
        control["thinness"] = THINNESS * pruning.size
        control["most_points"] = pruning.most_points
        control["rare_points"] = pruning.rare_points or pruning.most_points
        control["next_node"] = len(self._layers.nodes) - 1
        control["patience"] = CHUNK
        while may_go_on():
            control["pause"] = self.work + CHUNK
            arrays = (*tips, pruning.values, pruning.reach)
            wants = self._kernels.extend(self._layers, *arrays, self._memory)
            if wants == codes.DONE:
                return True
            if wants == codes.IMPATIENT:
                # One node takes long. It begins anew, so that patience must grow.
                control["patience"] *= 2
            self._grow(wants)
        return False

    def points(self, node: int) -> Any:
        """Return the points of a node's front, in the order of risk and reward."""
        front = self._memory.fronts[node]
        return self._memory.points[front["first"] : front["first"] + front["count"]]

    def follow(self, node: int, place: int) -> tuple[int, list[int]]:
        """Return the edge of a point, NONE at a tip, and the places of the points after it."""
        point = self.points(node)[place]
        edge, first = int(point["edge"]), int(point["first_part"])
        if edge < 0:
            return edge, []
        count = int(self._layers.edges["target_count"][edge])
        return edge, self._memory.parts[first : first + count].tolist()

    def _grow(self, wants: int) -> None:
        """Double the arrays that are too short."""
        names = {
            codes.NEEDS_POINTS: ("points",),
            codes.NEEDS_PARTS: ("parts",),
            codes.NEEDS_SCRATCH: ("drafts", "kept", "chosen", "keys"),
        }.get(wants, ())
        longer = {
            name: np.concatenate([array, np.zeros_like(array)])
            for name in names
            for array in [getattr(self._memory, name)]
        }
        self._memory = self._memory._replace(**longer)


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
