"""Prints the proved gap of each problem with each step of the exact pipeline left out.

    python -m benchmarks.ablation --seconds 2 20 --maps 16 --only drone

Problems are the models of `benchmarks.fields`, and treasure maps (the first ones of
`benchmarks.test_treasure_maps`). The limit is for the steps after unrolling. A longer one is tried
where the gap was not closed within the one before. The last lines say how often the gap is larger
without a step, and the mean gap.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import fmean
from time import perf_counter

import vulcan
from benchmarks.fields import FIELDS
from benchmarks.test_treasure_maps import BOUND, make_maps
from vulcan.domains import TreasureGrid
from vulcan.exact.pipeline import AUTOMATIC, Step, narrow
from vulcan.exact.search import ExactSearch
from vulcan.graph.states import StateGraph, open_graph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor

LARGER = 1e-4  # gaps that differ by less are the same
VARIANTS = {"all": AUTOMATIC} | {
    f"no {step.__name__}": [other for other in AUTOMATIC if other is not step]
    for step in AUTOMATIC[1:]
}


def list_problems(maps: int, horizon: int) -> Iterator[tuple[str, vulcan.Problem]]:
    """Yield names and problems."""
    for field in FIELDS:
        if field.feasible:
            yield field.name, field.problem
    for number, text in enumerate(islice(make_maps(), maps)):
        yield f"map {number}", vulcan.Problem(TreasureGrid(horizon, map=text), BOUND)


def measure(
    problem: vulcan.Problem, graph: StateGraph, steps: Sequence[Step], seconds: float
) -> tuple[float, float]:
    """Return the proved gap after some steps, and the seconds that they took."""
    reader = graph.reader
    search = ExactSearch(problem, reader, Monitor(Limits()), vulcan.Automatic(), graph)
    if not search.unroll():
        raise MemoryError("too little memory to unroll the model")
    search.monitor = Monitor(Limits(time_limit=seconds))
    began = perf_counter()
    with search.monitor as monitor:
        monitor.start_clock()
        narrow(search, steps)
    return search.gap, perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0])
    parser.add_argument("--maps", type=int, default=16)
    parser.add_argument("--horizon", type=int, default=50)
    parser.add_argument("--most-states", type=int, default=50_000)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(f"{'gap in % (seconds)':<20}", *(f"{name:>24}" for name in VARIANTS))
    gaps: dict[float, list[list[float]]] = {seconds: [] for seconds in given.seconds}
    for name, problem in list_problems(given.maps, given.horizon):
        if given.only not in name:
            continue
        graph = open_graph(ModelReader(problem.model))
        probe = ExactSearch(problem, graph.reader, Monitor(Limits()), None, graph)
        if not probe.unroll(most_new=given.most_states):
            print(f"{name:<20} left out: too many states", flush=True)
            continue
        found: list[tuple[float, float]] = []
        for limit in given.seconds:
            if not found or any(gap > LARGER for gap, _ in found):
                found = [measure(problem, graph, steps, limit) for steps in VARIANTS.values()]
                shown = (f"{100 * gap:>15.4f} ({seconds:5.2f})" for gap, seconds in found)
                print(f"{name:<20}", *(f"{text:>24}" for text in shown), flush=True)
            gaps[limit].append([gap for gap, _ in found])
    for limit, rows in gaps.items():
        columns = list(zip(*rows, strict=True))
        differences = [
            [gap - best for gap, best in zip(column, columns[0], strict=True)] for column in columns
        ]
        print(f"of {len(rows)} problems, after {limit:g} s")
        for title, cells in (
            ("larger than all", [sum(d > LARGER for d in column) for column in differences]),
            ("smaller than all", [sum(d < -LARGER for d in column) for column in differences]),
            ("mean gap in %", [f"{100 * fmean(min(1, g) for g in c):.4f}" for c in columns]),
        ):
            print(f"{title:<20}", *(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
