"""What an exact solver need not look at: actions that fall too short of the Lagrangian optimum.

With a price of failure k, let V(n) be the largest E g - k er from a node on, and s(e) >= 0 what an
edge of the node falls short of it. Any policy, dependent on the history or not, has

    E g - k er  =  V(root) - Σ_h q(h) s(e(h)),

the sum over the histories h that it can be in, each with its probability q(h) and the edge e(h)
that is taken there. So a policy that takes e after h falls short by at least the sum along h, e
included: the *loss* of that step. A policy that is acceptable, and better than one that is known,
can't fall short by much (`vulcan.solvers.layered.shortfall`), and steps that lose more are dropped.
Of a tree with millions of histories a few hundred are often left.

On merged states a node has many histories. If a policy that depends on state and step only takes an
edge of the node, some history of it comes there: the least loss and the smallest probability of
them all bound the loss from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.layered_graph import Key, LayerArrays, Layers, Plan
from vulcan.graphs.rows import ranges, starts
from vulcan.sentinels import END
from vulcan.solvers.baselines.links import Choice, Links
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.shortfall import Shortfall

__all__ = ["Reduced", "ReducedPlan", "Reduction"]


@dataclass(frozen=True)
class Reduced:
    """What is left of a layered graph, or of the tree of its histories.

    Attributes
    ----------
    layers
        A layered graph by itself.
    origin
        The edge of the whole graph that each of its edges comes from.
    complete
        Whether nothing was dropped.
    """

    layers: Layers
    origin: NDArray[np.intp]
    complete: bool

    def follow(self, whole: Layers, plan: Plan) -> Choice | None:
        """Return the edges that a plan for the whole graph takes; None if one was dropped."""
        nodes = self.layers.arrays.nodes
        choice = np.array(nodes["first_edge"], np.int32)
        level: dict[int, Key] = {0: plan.root}
        while level:
            following: dict[int, Key] = {}
            for node, key in level.items():
                edge, keys = plan.choose(whole, key)
                first = int(nodes["first_edge"][node])
                here = self.origin[first : first + int(nodes["edge_count"][node])]
                taken = np.flatnonzero(here == edge)
                if not len(taken):
                    return None
                choice[node] = first + taken[0]
                pairs = zip(self.layers.follow(int(choice[node])), keys, strict=True)
                following.update((after, next_) for after, next_ in pairs if after != END)
            level = following
        return choice


@dataclass(frozen=True)
class ReducedPlan:
    """A plan for the whole graph, from the edges that it takes in a reduced one."""

    reduced: Reduced
    choice: Choice
    root: int = 0

    def choose(self, layers: Layers, key: int) -> tuple[int, Sequence[int]]:
        """Return the edge of a node of the reduced graph, and the nodes after it."""
        edge = int(self.choice[key])
        return int(self.reduced.origin[edge]), self.reduced.layers.follow(edge)


class Reduction:
    """What need not be looked at, of a layered graph or of the tree of its histories.

    Parameters
    ----------
    run
        The search, with its layered graph, best policy and upper bound.
    shortfall
        What policies may fall short.
    """

    def __init__(self, run: LayeredRun, shortfall: Shortfall) -> None:
        self._run = run
        nodes, edges, _ = run.layers.arrays
        self._links = Links(run.layers)
        arriving = self._links.probability * shortfall.values[self._links.node]
        worth = edges["reward"] - shortfall.price * edges["risk"]
        worth = worth + np.bincount(self._links.edge, arriving, len(edges))
        best = np.maximum.reduceat(worth, nodes["first_edge"])
        self._short = np.repeat(best, nodes["edge_count"]) - worth

    def grow_histories(self, slack: float, most: float) -> Reduced | None:
        """Return the tree of histories without the steps that lose more than a slack.

        Parameters
        ----------
        slack
            The largest loss of a step.
        most
            None is returned if there are more edges than this.
        """
        nodes, edges, targets = self._run.layers.arrays
        parts: list[tuple[NDArray[np.void], ...]] = []
        origins: list[NDArray[np.intp]] = []
        node_count = edge_count = target_count = 0
        complete = True
        here, chance, loss = np.zeros(1, np.intp), np.ones(1), np.zeros(1)
        while len(here):
            rows = ranges(nodes["first_edge"][here], nodes["edge_count"][here])
            owner = np.repeat(np.arange(len(here)), nodes["edge_count"][here])
            losses = loss[owner] + chance[owner] * self._short[rows]
            kept = losses <= slack
            complete = complete and bool(kept.all())
            rows, owner, losses = rows[kept], owner[kept], losses[kept]
            level_nodes, level_edges = nodes[here], edges[rows]
            level_nodes["edge_count"] = np.bincount(owner, minlength=len(here))
            level_nodes["first_edge"] = edge_count + starts(level_nodes["edge_count"])
            level_edges["first_target"] = target_count + starts(level_edges["target_count"])
            reached = ranges(edges["first_target"][rows], edges["target_count"][rows])
            level_targets = targets[reached]
            way = np.repeat(np.arange(len(rows)), level_edges["target_count"])
            inner = level_targets["node"] != END
            node_count += len(here)
            edge_count += len(rows)
            target_count += len(level_targets)
            if edge_count > most:
                return None
            here = level_targets["node"][inner].astype(np.intp)
            chance = chance[owner[way[inner]]] * level_targets["probability"][inner]
            loss = losses[way[inner]]
            level_targets["node"][inner] = node_count + np.arange(len(here))
            parts.append((level_nodes, level_edges, level_targets))
            origins.append(rows)
        arrays = LayerArrays(*(np.concatenate(kind) for kind in zip(*parts, strict=True)))
        return Reduced(Layers(self._run.graph, arrays), np.concatenate(origins), complete)

    def prune_graph(self, slack: float) -> Reduced:
        """Return the layered graph without what no policy of state and step may do.

        Parameters
        ----------
        slack
            What a policy may fall short.
        """
        links, count = self._links, len(self._run.layers)
        loss, chance = np.full(count, np.inf), np.ones(count)
        loss[0] = 0.0
        for whole_level in links.levels:
            level = whole_level[np.isfinite(loss[links.source[whole_level]])]
            source, node = links.source[level], links.node[level]
            losses = loss[source] + chance[source] * self._short[links.edge[level]]
            kept = losses <= slack
            np.minimum.at(loss, node[kept], losses[kept])
            arriving = chance[source] * links.probability[level]
            np.minimum.at(chance, node[kept], arriving[kept])
        alive = np.isfinite(loss)
        losses = loss[links.owner] + chance[links.owner] * self._short
        return self._select(alive, np.flatnonzero(alive[links.owner] & (losses <= slack)))

    def _select(self, alive: NDArray[np.bool_], rows: NDArray[np.intp]) -> Reduced:
        """Return the part of the layered graph that is made of some nodes and edges."""
        nodes, edges, targets = self._run.layers.arrays
        numbers = np.cumsum(alive) - 1
        counts = np.bincount(self._links.owner[rows], minlength=len(nodes))
        new_nodes, new_edges = nodes[alive], edges[rows]
        new_nodes["edge_count"] = counts[alive]
        new_nodes["first_edge"] = starts(new_nodes["edge_count"])
        new_targets = targets[ranges(edges["first_target"][rows], edges["target_count"][rows])]
        new_edges["first_target"] = starts(new_edges["target_count"])
        inner = new_targets["node"] != END
        new_targets["node"][inner] = numbers[new_targets["node"][inner]]
        layers = Layers(self._run.graph, LayerArrays(new_nodes, new_edges, new_targets))
        return Reduced(layers, rows, len(rows) == len(edges))
