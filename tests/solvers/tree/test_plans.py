"""Plans: fronts over the top of a tree, and what they may claim."""

from __future__ import annotations

import math

import pytest

import vulcan
from benchmarks.random_problems import make_problem
from tests.helpers.price_runs import sample_tree
from vulcan.domains import Bandit
from vulcan.solvers.fronts import load_kernels
from vulcan.solvers.tree import plans
from vulcan.solvers.tree.completion import HistoryCompletion
from vulcan.solvers.tree.plans import Detail, Planning


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    load_kernels()


@pytest.mark.parametrize("number", [2, 5])
def test_a_plan_that_is_cut_short_is_not_called_the_best(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first fronts are so coarse that only the next ones have the best plan.
    monkeypatch.setattr(plans, "COARSER", 1 << 14)
    monkeypatch.setattr(plans, "FEWEST_POINTS", 2)
    problem = make_problem(number)
    best = float(vulcan.solve(problem, vulcan.Pareto()).certificate.reward)
    run = sample_tree(problem, 100_000)
    assert run.solved
    proved = 0
    for allowed in range(12):
        left = iter([True] * allowed)
        completion = HistoryCompletion(run)
        detail = Detail(1 << 16, 1 << 15)
        planning = Planning(run, completion, lambda left=left: next(left, False), detail, math.inf)
        plan = planning.settle()
        if planning.exhaustive:
            assert plan is not None
            assert plan.reward == pytest.approx(best, abs=1e-9)
            proved += 1
    assert proved


@pytest.mark.parametrize("samples", [1, 100, 3000])
@pytest.mark.parametrize("merges", [True, False])
def test_a_plan_is_worth_what_the_certificate_says(samples: int, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(6, merges=merges), vulcan.Linear(0.002))
    run = sample_tree(problem, samples)
    planning = Planning(run, HistoryCompletion(run), lambda: True)
    plan = planning.settle()
    assert plan is not None
    draft = planning.write(plan)
    assert draft is not None
    assert draft.reward == pytest.approx(plan.reward, abs=1e-12)
    assert draft.risk == pytest.approx(plan.risk, abs=1e-12)
    assert plan.risk <= problem.risk_bound(plan.reward) + 1e-12
