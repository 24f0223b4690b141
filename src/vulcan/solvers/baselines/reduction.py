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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.decisions import Decisions, Plan, collect_decisions
from vulcan.graphs.layered_graph import LayerArrays, Layers
from vulcan.graphs.levels import Levels
from vulcan.runtime.ranges import ranges, starts
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
    complete
        Whether nothing was dropped.
    """

    layers: Layers
    complete: bool

    def follow(self, levels: Levels, plan: Plan) -> Choice | None:
        """Return the edges that a plan for the whole graph takes; None if one was dropped.

        Parameters
        ----------
        levels
            The whole graph.
        plan
            The plan.
        """
        nodes, edges, _ = self.layers.arrays
        choice = np.array(nodes["first_edge"], np.int32)
        decisions = plan.decide()
        first_child = starts(levels.arrays.safe_count[decisions.rows])
        pending = {0: 0}  # of nodes, the decision that is taken there
        while pending:
            node, decision = pending.popitem()
            first = int(nodes["first_edge"][node])
            here = edges["action"][first : first + int(nodes["edge_count"][node])]
            taken = np.flatnonzero(here == decisions.rows[decision])
            if not len(taken):
                return None
            choice[node] = first + taken[0]
            after = self.layers.follow(int(choice[node]))
            begin = int(first_child[decision])
            children = decisions.children[begin : begin + len(after)].tolist()
            pending.update((n, d) for n, d in zip(after, children, strict=True) if n != END)
        return choice


@dataclass(frozen=True)
class ReducedPlan:
    """A plan for the whole graph, from the edges that it takes in a reduced one."""

    reduced: Reduced
    choice: Choice

    def decide(self) -> Decisions:
        """Return its decisions; the nodes are those of the reduced graph."""
        layers = self.reduced.layers

        def choose(node: int) -> tuple[int, int, list[int | None]]:
            edge = int(self.choice[node])
            after = [None if target == END else target for target in layers.follow(edge)]
            return node, int(layers.arrays.edges["action"][edge]), after

        return collect_decisions(0, choose)


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
        arrays = LayerArrays(*(np.concatenate(kind) for kind in zip(*parts, strict=True)))
        return Reduced(Layers(arrays), complete)

    def prune_graph(self, slack: float) -> Reduced:
        """Return the layered graph without what no policy of state and step may do.

        Parameters
        ----------
        slack
            What a policy may fall short.
        """
        links, count = self._links, len(self._run.levels)
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
        layers = Layers(LayerArrays(new_nodes, new_edges, new_targets))
        return Reduced(layers, len(rows) == len(edges))
