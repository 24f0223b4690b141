"""What objects take is found from a few of them."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vulcan
from vulcan import Outcome
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.sizes import ObjectSizes, measure


def test_shared_parts_count_once():
    table = b"x" * 10_000
    known: set[int] = set()
    first = measure([(1000, table)], known)
    assert first > 10_000
    assert measure([(2000, table)], known) < 200


def test_arrays_count_with_what_they_are_views_of():
    assert measure([np.zeros(1000)[::2]], set()) > 8000


def test_what_an_object_is_made_of_is_not_its_own():
    sizes = ObjectSizes()
    history: Any = ()
    for count in range(1, 200):
        longer = (history, count)  # which leads to all that were before
        sizes.look(count, [longer], [history])
        history = longer
    assert sizes.total(200) == pytest.approx(200 * 105, rel=0.2)


def test_an_object_that_says_nothing_of_its_size():
    class Secret:
        def __sizeof__(self) -> int:
            raise RuntimeError("none of your business")

    assert measure([Secret()], set()) > 0


@dataclass(frozen=True)
class Noted:
    place: int
    note: str


@dataclass
class Growing:
    """States of various kinds, of which there is no end."""

    kind: str
    horizon: int = 10_000
    merges: bool = True

    def initial_state(self) -> Any:
        return self._make(0)

    def actions(self, state: Any) -> list[str]:
        return ["go"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        place = state.place if isinstance(state, Noted) else state[0]
        chances = ((2 * place + 1, 0.5), (2 * place + 2, 0.5))
        return [Outcome(chance, 1.0, self._make(to)) for to, chance in chances]

    def _make(self, place: int) -> Any:
        if self.kind == "small":
            return (place, 1.5 * place)
        if self.kind == "fat":
            return (place, place.to_bytes(8, "big") * 600)
        if self.kind == "growing":
            return (place, *(1000 + place + k for k in range(place // 64)))
        return Noted(place, f"a note about place {place}")


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("kind", ["small", "fat", "growing", "noted"])
def test_a_graph_knows_what_its_states_take(kind, merges):
    """Compared with what Python says that it handed out meanwhile."""
    reader = ModelReader(Growing(kind, merges=merges))
    tracemalloc.start()
    try:
        graph = StateGraph(reader)
        for state in range(3000):
            graph.expand(state)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.8 * taken < graph.memory < 1.4 * taken


def test_fat_states_come_to_the_limit():
    problem = vulcan.Problem(Growing("fat"), vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.Lagrangian(), memory=10_000_000)
    assert result.stopped_by == "limit of memory"
    assert result.statistics.evaluations < 2500  # of 5 kB each; it was 25,000 by a guess
