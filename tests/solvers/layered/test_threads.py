"""Threads that share the nodes of levels: they work at once, and change nothing."""

from __future__ import annotations

import threading
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.merging import Treasure
from tests.helpers.tables import REWARDS, SEEDS, Table, bounds, random_outcomes, tables
from vulcan.domains import TreasureGrid
from vulcan.executors.here import Here, Threads
from vulcan.executors.processes import Processes
from vulcan.kernels import backward_induction, pareto_fronts, thin_fronts
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.team import Team, cut_levels
from vulcan.solvers import fronts
from vulcan.solvers.base import Options
from vulcan.solvers.finding import Finding
from vulcan.solvers.fronts import load_kernels
from vulcan.solvers.layered import coins, pareto, sweeps
from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.pareto import FrontRun
from vulcan.solvers.layered.run import LayeredRun

SOLVERS = (
    vulcan.Lagrangian(),
    vulcan.Lagrangian(randomised=True),
    vulcan.Pareto(),
    vulcan.Automatic(),
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every level that has two nodes."""
    monkeypatch.setattr(sweeps, "LEAST_OUTCOMES", 1)
    monkeypatch.setattr(coins, "LEAST_NODES", 1)
    monkeypatch.setattr(fronts, "LEAST_NODES", 1)


def search(
    problem: vulcan.Problem, solver: vulcan.Solver, workers: int, gap: float | None = None
) -> Finding:
    reader = ModelReader(problem.model)
    with Monitor(Limits(gap=gap)) as monitor:
        return solver.search(problem, reader, monitor, Options(workers=workers))


def describe(finding: Finding) -> dict[str, Any]:
    """Return all that a search says, but for the seconds and the memory that it took."""
    names = ("status", "explanation", "policy", "reward", "risk", "credits", "upper_bound")
    names += ("trials", "price", "lines", "relaxed", "safest", "sufficient")
    counts = (finding.statistics.nodes, finding.statistics.evaluations)
    return {name: getattr(finding, name) for name in names} | {"counts": counts}


def require_same(problem: vulcan.Problem, solver: vulcan.Solver, gap: float) -> Finding:
    """Require that one, two and three threads find the same, bit for bit, and return it."""
    one, *others = (search(problem, solver, workers, gap) for workers in (1, 2, 3))
    for other in others:
        assert describe(other) == describe(one)
    return one


def make_wide(seed: int) -> Table:
    """Return a random model with levels of up to a dozen nodes."""
    random = Random(seed)
    states = random.randint(6, 12)
    table: dict[Any, dict[str, Any]] = {
        state: {name: random_outcomes(random, states, REWARDS) for name in "ab"}
        for state in range(states)
    }
    return Table(table, random.randint(4, 6), random.choice([1.0, 0.9]))


@settings(max_examples=60)
@given(
    table=st.one_of(tables(), SEEDS.map(make_wide)),
    bound=bounds(),
    solver=st.sampled_from(SOLVERS),
)
def test_threads_change_nothing(
    table: Table, bound: vulcan.RiskBound, solver: vulcan.Solver
) -> None:
    require_same(vulcan.Problem(table, bound), solver, gap=0.01)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_threads_change_nothing_where_fronts_are_large(
    solver: vulcan.Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All kinds of room run out on the way, and threads pause.
    monkeypatch.setattr(fronts, "CHUNK", 1 << 14)
    monkeypatch.setattr(coins, "CHUNK", 1 << 14)
    problem = vulcan.Problem(Treasure(12), vulcan.Constant(0.15))
    found = require_same(problem, solver, gap=3e-4)
    assert found.policy is not None


def open_run(threads: int) -> tuple[LayeredRun, Dual]:
    """Return a run that has found its dual."""
    problem = vulcan.Problem(Treasure(10), vulcan.Constant(0.15))
    reader, monitor = ModelReader(problem.model), Monitor(Limits())
    run = LayeredRun(problem, reader, monitor, vulcan.Pareto(), threads=threads)
    assert run.unroll()
    return run, run.find_relaxed()


def test_too_much_work_for_fronts_is_the_same_for_any_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fronts, "CHUNK", 1000)
    load_kernels()
    done = []
    for threads in (1, 2, 3):
        run, dual = open_run(threads)
        whole = FrontRun(run, dual, None)
        slack = whole.first_slack()
        assert whole.compute(slack, 64)
        done.append(whole._fronts.work)
        enough = done[-1] - pareto.CHUNK
        assert FrontRun(run, dual, enough).compute(slack, 64)
        assert not FrontRun(run, dual, enough - 1).compute(slack, 64)
    assert done == 3 * done[:1]
    assert done[0] > 10_000


def test_too_much_work_for_thin_fronts_is_the_same_for_any_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coins.load_kernels()
    found: list[list[Any]] = []
    for threads in (1, 2, 3):
        run, dual = open_run(threads)
        ways = run.sweeps.follow_weights(1.0, dual.multiplier)
        values = ways.rewards - dual.multiplier * ways.risks
        given = (run.levels.arrays, run.referee, dual.multiplier, values, (0.0, dual.upper_bound))
        found.append([])
        for most in (1 << 40, *range(10_000, 200_000, 5_000)):
            monkeypatch.setattr(coins, "MOST_WORK", most)
            monkeypatch.setattr(coins, "CHUNK", 20_000)
            one = coins.Coins(*given, team=run.team)
            corner = one.search(1.0, 8)
            found[-1].append((one.stopped, corner and (corner.reward, corner.risk)))
    assert found == 3 * found[:1]
    assert len(set(found[0])) == 2


def test_all_blocks_of_a_level_are_worked_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [(backward_induction, "sweep"), (thin_fronts, "extend"), (pareto_fronts, "extend")]
    seen: list[set[int]] = []
    share = Team.share

    def note(kernel: Any, idents: set[int]) -> Any:
        assert kernel.targetoptions["nogil"]

        def call(*arguments: Any) -> Any:
            idents.add(threading.get_ident())
            return kernel(*arguments)

        call.py_func = kernel.py_func  # type: ignore[attr-defined]
        return call

    def share_at_once(self: Team, work: Any, parts: Any) -> Any:
        meeting = threading.Barrier(len(parts))

        def meet(part: Any) -> Any:
            meeting.wait(timeout=20)  # in vain, if one is only begun when another has ended
            return work(part)

        return share(self, meet, parts)

    problem = vulcan.Problem(Treasure(12), vulcan.Constant(0.15))
    search(problem, vulcan.Automatic(), 1, gap=3e-4)  # loads all kernels
    for module, name in kernels:
        seen.append(set())
        monkeypatch.setattr(module, name, note(getattr(module, name), seen[-1]))
    monkeypatch.setattr(Team, "share", share_at_once)
    search(problem, vulcan.Automatic(), 2, gap=3e-4)
    assert [len(idents) for idents in seen] == [2, 2, 2]


def test_small_levels_are_not_cut() -> None:
    first = np.array([0, 1, 5, 105, 112, 312, 320])
    assert list(cut_levels(first, 50, 1)) == [[(0, 320)]]
    assert list(cut_levels(first, 50, 3)) == [
        [(312, 320)],
        [(112, 178), (178, 245), (245, 312)],
        [(105, 112)],
        [(5, 55), (55, 105)],
        [(0, 5)],
    ]
    assert list(cut_levels(first, 101, 3)) == [[(0, 320)]]
    assert list(cut_levels(first[:1], 1, 3)) == []


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    least=st.integers(1, 12),
    most=st.integers(1, 5),
    seed=SEEDS,
)
def test_blocks_are_the_whole_graph_and_large_enough(
    sizes: list[int], least: int, most: int, seed: int
) -> None:
    first = np.concatenate([[0], np.cumsum(sizes)])
    counted = np.array([Random(seed + k).random() < 0.5 for k in range(first[-1])])
    at = int(first[-1])
    for blocks in cut_levels(first, least, most, counted):
        assert len(blocks) <= most
        assert blocks[-1][1] == at
        assert all(end == begin for (_, end), (begin, _) in pairwise(blocks))
        if len(blocks) > 1:
            assert (first == at).any()
            assert at - blocks[0][0] in sizes
            assert min(counted[begin:end].sum() for begin, end in blocks) >= least
        at = blocks[0][0]
    assert at == 0


def test_an_error_of_any_thread_is_raised_when_all_have_ended() -> None:
    ended = []

    def work(part: int) -> None:
        if part in (0, 2):
            raise ValueError(str(part))
        ended.append(part)

    team = Team(4)
    with pytest.raises(ValueError, match="0"):
        team.share(work, range(4))
    with pytest.raises(ValueError, match="2"):
        team.share(work, range(1, 4))
    assert sorted(ended) == [1, 1, 3, 3]


def test_there_is_a_thread_for_each_worker_of_this_machine() -> None:
    assert Options().threads == 1
    assert Options(workers=3).threads == 3
    assert Options(executor=Threads(3)).threads == 3
    assert Options(executor=Processes(3)).threads == 3
    assert Options(executor=Here()).threads == 1


def test_processes_ask_and_threads_compute() -> None:
    problem = vulcan.Problem(TreasureGrid(8), vulcan.Constant(0.15))
    alone, shared = (vulcan.solve(problem, vulcan.Pareto(), workers=w) for w in (None, 2))
    assert shared.policy == alone.policy
    assert shared.certificate == alone.certificate
    assert shared.upper_bound == alone.upper_bound


def test_nobody_is_asked_for_a_model_that_is_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("no process is needed")

    monkeypatch.setattr("vulcan.model.workers.WorkerReader.__init__", refuse)
    states, actions = np.arange(4).repeat(3), np.tile([0, 0, 1], 4)
    targets = np.array([1, -1, 2, 2, -1, 3, 3, -1, 0, 0, -1, 1])
    chances, rewards = np.tile([0.9, 0.1, 1.0], 4), np.tile([1.0, 0.0, 0.1], 4)
    model = vulcan.ArrayModel(states, actions, targets, chances, rewards, horizon=6)
    alone, shared = (vulcan.solve(vulcan.Problem(model, 0.15), workers=w) for w in (None, 2))
    assert shared.policy == alone.policy
    assert shared.upper_bound == alone.upper_bound
