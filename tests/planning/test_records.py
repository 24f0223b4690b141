"""Sweeps that were interrupted: what was found is kept, and certified anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vulcan
from vulcan import CheckpointError, OptionError, Problem
from vulcan.domains import Bandit
from vulcan.planning import sweep as sweep_module
from vulcan.planning.sweep import Searcher

PROBLEM = Problem(Bandit(4), vulcan.Linear(0.002))
SOLVERS = [vulcan.Pareto(), vulcan.LinearProgram(), vulcan.Penalty(), vulcan.Vulcan()]
LIMITS: dict[str, Any] = {"time_limit": None, "samples": 200}


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list to which every search adds its job."""
    jobs: list[Any] = []
    search = Searcher.search

    def note(self: Searcher, job: Any) -> Any:
        jobs.append(job)
        return search(self, job)

    monkeypatch.setattr(Searcher, "search", note)
    return jobs


def describe(rows: Any) -> list[Any]:
    return [
        (row.name, row.certificate, row.upper_bound, row.result.status, row.result.policy)
        for row in rows
    ]


def stop(_: Any) -> None:
    raise KeyboardInterrupt


def test_a_comparison_goes_on_where_it_was(tmp_path: Path, searched: list[Any]) -> None:
    path = tmp_path / "solvers.sweep"
    whole = vulcan.compare(PROBLEM, SOLVERS, **LIMITS)
    searched.clear()
    part = vulcan.compare(PROBLEM, SOLVERS, **LIMITS, checkpoint=path, on_row=stop)
    assert (len(part.rows), len(searched)) == (1, 1)
    resumed = vulcan.compare(PROBLEM, SOLVERS, **LIMITS, checkpoint=path, resume=True)
    assert len(searched) == len(SOLVERS)
    assert describe(resumed) == describe(whole)
    more = [*SOLVERS, vulcan.Lagrangian()]
    assert len(vulcan.compare(PROBLEM, more, **LIMITS, checkpoint=path, resume=True).rows) == 5
    assert len(searched) == len(more)


def test_other_limits_seeds_and_bounds_are_searched_for(
    tmp_path: Path, searched: list[Any]
) -> None:
    path = tmp_path / "one.sweep"
    uct, line = [vulcan.UCT()], PROBLEM.risk_bound
    kept: dict[str, Any] = {"checkpoint": path, "resume": True, "bound": False}
    for bound, samples, seed, count in (
        (line, 200, 0, 1),
        (line, 200, 0, 1),
        (line, 201, 0, 2),
        (line, 200, 1, 3),
        (vulcan.Linear(0.003), 200, 0, 4),
    ):
        problem = Problem(PROBLEM.model, bound)
        vulcan.compare(problem, uct, time_limit=None, samples=samples, seed=seed, **kept)
        assert len(searched) == count


def test_a_frontier_goes_on_where_it_was(tmp_path: Path, searched: list[Any]) -> None:
    path, limits = tmp_path / "levels.sweep", {"solver": vulcan.Vulcan(), "samples": 100}
    whole = vulcan.trace_frontier(PROBLEM.model, points=6, **limits)
    searched.clear()
    asked = {**limits, "checkpoint": path, "points": 6}
    vulcan.trace_frontier(PROBLEM.model, **asked, on_point=stop)
    assert len(searched) < 6
    resumed = vulcan.trace_frontier(PROBLEM.model, **asked, resume=True)
    assert len(searched) == 6
    assert [(p.at, p.certificate, p.upper_bound) for p in resumed] == [
        (p.at, p.certificate, p.upper_bound) for p in whole
    ]


def test_failures_and_interrupted_searches_are_searched_for_again(
    tmp_path: Path, searched: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {**LIMITS, "checkpoint": tmp_path / "s.sweep", "resume": True}
    right = sweep_module.plan_and_certify

    def refuse(problem: Problem, solver: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(solver, vulcan.Penalty):
            raise vulcan.ModelError("it is ill today")
        return right(problem, solver, *arguments, **options)

    monkeypatch.setattr(sweep_module, "plan_and_certify", refuse)
    assert [row.error for row in vulcan.compare(PROBLEM, SOLVERS, **asked)].count(None) == 3
    monkeypatch.setattr(sweep_module, "plan_and_certify", right)
    searched.clear()
    assert all(row.error is None for row in vulcan.compare(PROBLEM, SOLVERS, **asked))
    assert [type(job.solver) for job in searched] == [vulcan.Penalty]


def test_files_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.sweep"
    asked: dict[str, Any] = {**LIMITS, "checkpoint": path}
    vulcan.compare(PROBLEM, SOLVERS[:1], **asked)
    with pytest.raises(CheckpointError, match="exists already"):
        vulcan.compare(PROBLEM, SOLVERS[:1], **asked)
    with pytest.raises(CheckpointError, match="another model"):
        vulcan.compare(Problem(Bandit(5), PROBLEM.risk_bound), **asked, resume=True)
    vulcan.compare(PROBLEM, SOLVERS[:1], **asked, overwrite=True)
    data = path.read_bytes()
    for damaged in (data[:-1], data[:50], b"", bytes(reversed(data))):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=str(path)):
            vulcan.compare(PROBLEM, SOLVERS[:1], **asked, resume=True)


def test_a_bound_without_a_text_cannot_be_kept(tmp_path: Path) -> None:
    problem = Problem(PROBLEM.model, vulcan.Concave(lambda x: 0.002 * x))
    with pytest.raises(OptionError, match=r"vulcan\.parse"):
        vulcan.compare(problem, SOLVERS[:1], checkpoint=tmp_path / "s.sweep")
