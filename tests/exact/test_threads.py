"""Threads that share the nodes of levels: they work at once, and change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import bounds, tables
from vulcan.domains import TreasureGrid
from vulcan.exact import sweeps
from vulcan.model.reader import ModelReader
from vulcan.parallel.executors import Threads
from vulcan.runtime.limits import Limits, Monitor
from vulcan.solvers.base import Options

SOLVERS = (vulcan.Lagrangian(randomised=True), vulcan.Pareto(), vulcan.Automatic())


@settings(max_examples=30, deadline=None)
@given(table=tables(), bound=bounds(), solver=st.sampled_from(SOLVERS))
def test_threads_change_nothing(table, bound, solver):
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "LEAST_OUTCOMES", 1)  # cut every level that has two pairs
        for workers in (1, 2, 3):
            problem, monitor = vulcan.Problem(table, bound), Monitor(Limits(gap=0.01))
            options = Options(executor=Threads(workers))
            finding = solver.search(problem, ModelReader(table), monitor, options)
            names = ("status", "explanation", "policy", "reward", "risk", "upper_bound", "trials")
            found.append([getattr(finding, name) for name in names])
    assert found[0] == found[1] == found[2]


def test_processes_ask_and_threads_compute() -> None:
    problem = vulcan.Problem(TreasureGrid(8), vulcan.Constant(0.15))
    alone, shared = (vulcan.solve(problem, vulcan.Pareto(), parallel=w) for w in (None, 2))
    assert shared.policy == alone.policy
    assert shared.certificate == alone.certificate
    assert shared.upper_bound == alone.upper_bound


def test_array_models_need_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("no process is needed")

    monkeypatch.setattr("vulcan.model.workers.WorkerReader.__init__", refuse)
    states, actions = np.arange(4).repeat(3), np.tile([0, 0, 1], 4)
    targets = np.array([1, -1, 2, 2, -1, 3, 3, -1, 0, 0, -1, 1])
    chances, rewards = np.tile([0.9, 0.1, 1.0], 4), np.tile([1.0, 0.0, 0.1], 4)
    model = vulcan.model.ArrayModel(states, actions, targets, chances, rewards, horizon=6)
    alone, shared = (vulcan.solve(vulcan.Problem(model, 0.15), parallel=w) for w in (None, 2))
    assert shared.policy == alone.policy
    assert shared.upper_bound == alone.upper_bound
