"""The arrays of a tree with several prices on disk: what is kept, and how it is had again.

Between two samples the state of a search is its tree, what samples collected, the random numbers,
and the orders that are left of a batch. All else follows from the problem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from vulcan.errors import CheckpointError
from vulcan.runtime.packing import pack_array, require, require_names, unpack_array
from vulcan.sentinels import NONE
from vulcan.solvers.tree.checkpoint import Snapshot
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.parts import make_returns
from vulcan.solvers.tree.price_arrays import GROWING, NOWHERE, PriceArrays
from vulcan.solvers.tree.soundness import are_lanes, check_price_tree, check_returns
from vulcan.tolerance import LARGEST_REWARD

__all__ = ["LARGEST_BATCH", "KeptArrays"]

FIXED: Final = ("prices", "judged", "_draws")
LISTS: Final = ("tops", "_marked", "_orders", "_roots")
"""Arrays that don't grow, and those that are as long as they happen to be."""

PARTS: Final = ("parts", "returns", "random", "retired")
"""What is kept of parts: their first nodes, what samples collected, and their random numbers."""

NUMBERS: Final = 6

LARGEST_BATCH: Final = 1 << 14
"""Of samples, which are ordered at once."""

FEW: Final = 64
"""As many searches may have ended in the middle of a batch, and gone on."""


class KeptArrays(PriceArrays):
    """What a search with several prices knows, and keeps; see `PriceArrays`."""

    def take_snapshot(self, identity: dict[str, str], target: int, best: Draft | None) -> Snapshot:
        """Return all that is needed to go on from here."""
        arrays = self.pack_tree()
        arrays |= {name: pack_array(getattr(self, name)) for name in (*FIXED, *LISTS)}
        roots = sorted(self._parts)
        parts = [self._parts[root] for root in roots]
        arrays["parts"] = pack_array(np.array(roots, np.int64))
        arrays["returns"] = b"".join(pack_array(part.returns) for part in parts)
        arrays["random"] = b"".join(pack_array(part.control["random"]) for part in parts)
        arrays["retired"] = b"".join(map(pack_array, self._retired.values()))
        numbers = (self._samples, self._next_guide, *self._span, *self._bounded)
        arrays["numbers"] = pack_array(np.array(numbers, np.float64))
        return Snapshot(
            identity=identity,
            graph=self.graph.pack(),
            credits=[(low, self.allow(low)) for low in sorted(self.accepted)],
            capacities={kind: len(getattr(self, kind)) for kind in GROWING},
            arrays=arrays,
            target=target,
            best=None if best is None else best.pack(),
        )

    def restore(self, snapshot: Snapshot, elsewhere: int = 0) -> None:
        """Go on from a snapshot: ask the model again, and take over the arrays, once checked.

        Parameters
        ----------
        snapshot
            What was kept.
        elsewhere
            How many nodes and edges of the tree are not in these arrays.
        """
        packed, levels = snapshot.arrays, self.reader.levels
        growing = [name for names in GROWING.values() for name in names]
        require_names(packed, (*growing, *FIXED, *LISTS, *PARTS, "numbers"))
        require_names(snapshot.capacities, GROWING)
        root, children = int(self.nodes["first_edge"][0]), self.list_children(0)
        self.graph.unpack(snapshot.graph)
        self._restore_credits(snapshot.credits)
        self._restore_numbers(unpack_array(packed, "numbers", np.zeros(0), NUMBERS).tolist())
        self.unpack_tree(packed, snapshot.capacities)
        for name in FIXED[:2]:
            array = getattr(self, name)
            array[:] = unpack_array(packed, name, array, len(array))
        self._draws["random"] = unpack_array(packed, "_draws", self._draws, 1)["random"]
        for name in LISTS[1:]:
            setattr(self, name, unpack_array(packed, name, getattr(self, name)))
        require(self.nodes["level"][0] == 0, "the tree begins on another level")
        check_price_tree(self.filled_tree(), self.graph, self.reader.weights, 2 * self._samples + 1)
        first = self.nodes["first_edge"][0] == root
        require(first and self.list_children(0) == children, "the tree begins with other histories")
        tops = unpack_array(packed, "tops", self.tops)
        retired = unpack_array(packed, "retired", make_returns(0), levels * len(tops))
        check_returns(retired)
        for top, returns in zip(tops.tolist(), retired.reshape(-1, levels), strict=True):
            self._require_part(top)
            level = int(self.nodes["level"][top])
            require(abs(returns["least"][level]) < math.inf, "a history of the top was not sampled")
            self.add_top(top, returns)
        self._restore_parts(packed)
        self._check_orders()
        self._check_samples(elsewhere + sum(int(self.sizes[kind][0]) for kind in GROWING))

    def _restore_credits(self, accepted: Sequence[tuple[float, float]]) -> None:
        for reward, allowed in accepted:
            require(math.isfinite(reward), "an accepted reward is not a number")
            if self.allow(reward) != allowed:
                raise CheckpointError("the risk bound is not the one of the checkpoint")
        self.accepted = {reward for reward, _ in accepted}

    def _restore_numbers(self, numbers: Sequence[float]) -> None:
        samples, guide, *spans = numbers
        for count in (samples, guide):
            require(0 <= count < 1 << 53 and count == int(count), "samples were not counted")
        most = LARGEST_REWARD * self.reader.levels
        for low, high in (spans[:2], spans[2:]):
            known = -2 * most <= low <= high <= 2 * most
            require(known or (low, high) == NOWHERE, "rewards are between no numbers")
        self._samples, self._next_guide = int(samples), int(guide)
        self._span, self._bounded = (spans[0], spans[1]), (spans[2], spans[3])

    def _restore_parts(self, packed: Mapping[str, bytes]) -> None:
        roots, levels = unpack_array(packed, "parts", np.zeros(0, np.int64)), self.reader.levels
        require(len(np.unique(roots)) == len(roots), "a part is there twice")
        returns = unpack_array(packed, "returns", make_returns(0), levels * len(roots))
        random = unpack_array(packed, "random", np.zeros(0, np.uint64), len(roots))
        check_returns(returns)
        for k, root in enumerate(roots.tolist()):
            self._require_part(root)
            part = self._find_part(root)
            part.returns[:] = returns[k * levels : (k + 1) * levels]
            part.control["random"] = random[k]

    def _require_part(self, root: int) -> None:
        """Refuse a node with which no part begins."""
        known = root in self._origins and root not in self._retired
        require(known, "a part begins where none can")

    def _check_orders(self) -> None:
        """Refuse orders, marks and judgements that lead nowhere."""
        orders, judged = self._orders, self.judged
        require(are_lanes(judged["lane"]) and are_lanes(orders["lane"]), "a price is not there")
        require(not np.isnan(judged["reward"]).any(), "what can be hoped for is not a number")
        require(((orders["guided"] == 0) | (orders["guided"] == 1)).all(), "an order is unclear")
        require(len(orders) == len(self._roots) <= LARGEST_BATCH, "orders lead to no parts")
        for root in np.unique(self._roots).tolist():
            self._require_part(root)
        marked = (self._marked >= 0) & (self._marked < self.histories)
        require(marked.all(), "a plan goes where nothing is")
        for top in (0, *self.tops.tolist()):
            self._check_top(top)

    def _check_top(self, top: int) -> None:
        """Refuse a history of the top from which an order would lead nowhere."""
        node = self.nodes[top]
        edges = self.edges[node["first_edge"] : node["first_edge"] + node["edge_count"]]
        if node["first_edge"] == NONE:
            require(top == 0 and node["solved"], "a history of the top has no actions")
            return
        left = edges[edges["solved"] == 0]
        require((left["first_child"] != NONE).all(), "an action of the top leads nowhere")
        if len(self._orders):
            return  # what samples of a batch solved is not known at the top before its end
        children = [self.nodes[edge["first_child"] :][: edge["children"]] for edge in left]
        unsolved = all((some["solved"] == 0).any() for some in children)
        require(
            unsolved and (node["solved"] or len(left)), "nothing is left of an action to sample"
        )

    def _check_samples(self, places: int) -> None:
        """Refuse more samples than can have been taken to fill this many nodes and edges.

        Each sample solves something, but for those of a batch whose part was solved before.
        """
        most = 2 * places + (len(self._origins) + FEW) * LARGEST_BATCH
        require(self._samples <= most, "there were more samples than histories to be met")
