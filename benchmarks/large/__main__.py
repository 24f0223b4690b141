"""Solves one large graph and prints what came out: `python -m benchmarks.large NAME`.

A process of its own for each, so that its peak of memory is that of this graph.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import vulcan
from benchmarks.large import LARGE, Crossing
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import Sweeps
from vulcan.graph.states import open_graph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor
from vulcan.solvers.base import Options


def measure(name: str) -> dict[str, Any]:
    """Solve a large graph with `Lagrangian` and return what came out."""
    make, bound = LARGE[name]
    vulcan.solve(vulcan.Problem(Crossing(4, 6), 0.05), vulcan.Lagrangian())  # compiles
    model = make()
    problem, reader = vulcan.Problem(model, bound), ModelReader(model)
    began = time.perf_counter()
    graph = open_graph(reader)
    with Monitor(Limits()) as monitor:
        run = ExactSearch(problem, reader, monitor, None, graph)
        assert run.unroll()
    unrolled = time.perf_counter() - began
    sweeps = Sweeps(run.levels)
    began = time.perf_counter()
    sweeps.find_best(1.0, 1.0)
    program = time.perf_counter() - began
    del run, sweeps
    began = time.perf_counter()
    with Monitor(Limits()) as monitor:
        finding = vulcan.Lagrangian().search(problem, reader, monitor, Options(graph=graph))
    searched = time.perf_counter() - began
    began = time.perf_counter()
    assert finding.policy is not None
    certificate = vulcan.certify(problem, finding.policy)
    certified = time.perf_counter() - began
    return {
        "pairs": finding.statistics.nodes,
        "decisions": len(finding.policy),
        "reward": float(certificate.reward),
        "upper": finding.upper_bound,
        "safe": certificate.safe,
        "unrolling": unrolled,
        "program": program,
        "search": searched,
        "certificate": certified,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
