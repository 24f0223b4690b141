"""The layered graph: pairs of state and step, or histories."""

from __future__ import annotations

import math

import pytest

from tests.helpers.unrolled import unroll_layers
from vulcan.domains import Bandit


def test_layers_of_the_bandit_count_states_and_histories() -> None:

    for horizon in (2, 3, 4):
        merged, tree = unroll_layers(Bandit(horizon)), unroll_layers(Bandit(horizon), tree=True)
        # Pairs of state and step before the horizon, and histories that have not stopped.
        assert len(merged) == math.comb(horizon - 1 + 6, 6)
        assert len(tree) == sum(6**k for k in range(horizon))
        for layers in (merged, tree):
            nodes, edges, targets = layers.arrays
            owners = [k for k, count in enumerate(nodes["edge_count"]) for _ in range(count)]
            for edge in range(len(edges)):
                assert all(after == -1 or after > owners[edge] for after in layers.follow(edge))
            sums = [
                sum(targets["probability"][f : f + c])
                for f, c in edges[["first_target", "target_count"]].tolist()
            ]
            assert sums == pytest.approx(list(1 - edges["risk"]))
