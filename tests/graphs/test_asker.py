"""Threads that ask a compiled model: stretches of their own, in one graph."""

from __future__ import annotations

import math

import numpy as np

from tests.helpers.charts import HONEST, Chart
from vulcan.graphs.asker import KINDS, Asker
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.model.reader import ModelReader


def make_graph() -> CompiledGraph:
    chart = Chart(HONEST, 3)
    return CompiledGraph(ModelReader(chart), chart.compiled)


def test_stretches_do_not_overlap() -> None:
    graph = make_graph()
    askers = [Asker(graph) for _ in range(3)]
    assert all(asker.is_short(graph.largest_answer) for asker in askers)
    taken: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
    for _ in range(4):
        for asker in askers:
            assert asker.take_stretch(100, math.inf)
            assert not asker.is_short(graph.largest_answer)
            for kind, rows in zip(KINDS, asker.rows(), strict=True):
                begin = int(asker.source[kind][0])
                assert len(rows) == begin + 100
                taken[kind].append((begin, begin + 100))
    for kind, stretches in taken.items():
        ends = [end for _, end in stretches]
        assert [begin for begin, _ in stretches[1:]] == ends[:-1]
        assert int(graph.source[kind][0]) == ends[-1]


def test_a_stretch_that_is_nearly_full_is_short() -> None:
    graph = make_graph()
    asker = Asker(graph)
    asker.take_stretch(100, math.inf)
    end = int(asker.source["actions"][0]) + 100
    asker.source["actions"] = end - graph.largest_answer
    assert not asker.is_short(graph.largest_answer)
    asker.source["actions"] += 1
    assert asker.is_short(graph.largest_answer)


def test_no_stretch_without_memory() -> None:
    graph = make_graph()
    asker = Asker(graph)
    before = {kind: int(graph.source[kind][0]) for kind in KINDS}
    assert not asker.take_stretch(1000, 0)
    assert {kind: int(graph.source[kind][0]) for kind in KINDS} == before
    assert asker.is_short(graph.largest_answer)


def test_what_was_asked_is_reported_once() -> None:
    graph = make_graph()
    before = graph.evaluations
    first, second = Asker(graph), Asker(graph)
    first.source["evaluations"], second.source["evaluations"] = 5, 7
    for _ in range(2):
        first.report()
        second.report()
    assert graph.evaluations == before + 12


def test_each_has_its_own_parameters_and_answers() -> None:
    graph = make_graph()
    askers = [Asker(graph) for _ in range(2)]
    for asker in askers:
        asker.take_stretch(10, math.inf)
        asker.rows()
    for name in ("parameters", "answers", "following"):
        places = {int(asker.source[name][0]) for asker in askers}
        assert len(places) == 2
        assert int(graph.source[name][0]) not in places
    assert np.array_equal(askers[0].answers, askers[1].answers)
