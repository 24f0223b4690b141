"""The top of a tree that plans are made on: grown where the tree is, or merged from its parts.

See `vulcan.kernels.plan_top` for what belongs to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.layered_graph import EDGE, NODE, TARGET
from vulcan.kernels import codes
from vulcan.kernels.plan_top import GROWTH, Top
from vulcan.sentinels import NONE

if TYPE_CHECKING:
    from vulcan.solvers.tree.price_arrays import PriceArrays

__all__ = ["COARSE", "FINE", "Detail", "GrownTop", "grow_top", "make_top"]

FEWEST_VISITS: Final = 64
"""A history with fewer samples does not belong to the top, unless it is solved."""


class Detail(NamedTuple):
    """How many histories the top of a tree may have, and points a front."""

    nodes: int
    points: int


FINE: Final = Detail(1 << 12, 1 << 10)
COARSE: Final = Detail(1 << 11, 1 << 7)
"""For plans that will be followed, and for those that only guide or wait for a better one."""


@dataclass(frozen=True, eq=False)
class GrownTop:
    """A top, without the edges of stubs.

    Attributes
    ----------
    nodes, edges, targets
        The layered graph.
    reach
        How probable each of its nodes is, given its actions.
    histories
        What the tree calls each node.
    visits, action_counts, values
        Of each node: its samples, how many actions its state has, and its value for each price.
    """

    nodes: NDArray[Any]
    edges: NDArray[Any]
    targets: NDArray[Any]
    reach: NDArray[np.float64]
    histories: NDArray[np.int64]
    visits: NDArray[np.int32]
    action_counts: NDArray[np.int32]
    values: NDArray[np.float32]


def make_top(most: int) -> Top:
    """Return the arrays of a top that has one node, and may have so many."""
    growth = np.zeros(1, GROWTH)
    growth["nodes"] = growth["waiting"] = 1
    growth["most"], growth["fewest_visits"] = most, FEWEST_VISITS
    room = 2 * most + FINE.nodes
    top = Top(
        nodes=np.zeros(room, NODE),
        edges=np.zeros(room, EDGE),
        targets=np.zeros(2 * room, TARGET),
        reach=np.ones(room),
        haste=np.ones(room),
        heap=np.zeros(room, np.int32),
        growth=growth,
    )
    top.nodes["first_edge"][0] = NONE
    return top


def grow_top(
    run: PriceArrays, most: int, closeness: float, root: int = 0, reach: float = 1.0
) -> GrownTop:
    """Return the top of what lies below a node.

    Parameters
    ----------
    run
        The tree.
    most
        How many nodes it may have, but for the last ones that are added at once.
    closeness
        By how much actions may fall short, and still belong to it.
    root, reach
        Where it begins, and how probable that is.
    """
    from vulcan.kernels import plan_top

    top = make_top(most)
    top.growth["closeness"] = closeness
    top.nodes["state"][0], top.nodes["level"][0] = root, run.nodes["level"][root]
    top.reach[0] = reach
    if root_is_stub(run, root):
        top.growth["waiting"] = 0
    while (
        wants := plan_top.grow_top(run.arrays(), run.tree(), run.tops, run.judged, top)
    ) != codes.DONE:
        if wants == codes.NEEDS_ROOM:
            break  # that is enough of a top
        if not run.satisfy(wants, int(top.growth["state"][0]), math.inf):
            break
    nodes, edges, targets, reaches = cut_off(top)
    numbers = nodes["state"]
    return GrownTop(
        nodes=nodes,
        edges=edges,
        targets=targets,
        reach=reaches,
        histories=numbers.astype(np.int64),
        visits=run.nodes["visits"][numbers],
        action_counts=run.count_actions(run.nodes["state"][numbers]),
        values=run.node_values[numbers],
    )


def root_is_stub(run: PriceArrays, root: int) -> bool:
    """Whether too little is known of a history, below the root, for it to belong to the top."""
    node = run.nodes[root]
    if node["level"] == 0:
        return False
    if node["level"] + 1 == run.reader.levels:
        return bool(node["visits"] == 0)
    known = node["solved"] or node["visits"] > FEWEST_VISITS
    return bool(node["first_edge"] == NONE or not known)


def cut_off(
    top: Top,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Return copies of nodes, edges, targets and reach, as far as they are filled."""
    growth = top.growth[0]
    filled = {name: int(growth[name]) for name in ("nodes", "edges", "targets")}
    nodes, edges, targets = (getattr(top, name)[:count].copy() for name, count in filled.items())
    return nodes, edges, targets, top.reach[: filled["nodes"]].copy()
