"""Problems with several constraints: the best policies against enumeration of all policies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import vulcan
from tests.oracles.several import draw_problem, is_within, list_worths
from vulcan import Outcome, Problem
from vulcan.baselines import IntegerProgram, LinearProgram
from vulcan.constraints import Cost, RiskAhead
from vulcan.errors import OptionError


@pytest.mark.parametrize("seed", range(60))
def test_the_best_deterministic_policy_is_that_of_enumeration(seed):
    problem = draw_problem(seed, horizon=2 + seed % 2)
    acceptable = [worth for worth in list_worths(problem) if is_within(problem, worth)]
    result = vulcan.solve(problem, gap=0)
    if not acceptable:
        assert result.certificate is None or not result.safe
        assert result.upper_bound is None or result.status is not vulcan.planning.Status.SOLVED
        return
    best = max(float(worth[0]) for worth in acceptable)
    assert result.safe
    assert float(result.certificate.reward) == pytest.approx(best, abs=1e-9)
    assert result.upper_bound >= best - 1e-9


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("level", [0.1, 0.25])
def test_the_best_policy_under_a_cap_alone_is_proved_by_fronts(seed, level):
    given = draw_problem(seed, horizon=2 + seed % 2)
    problem = vulcan.Problem(given.model, given.risk_bound, constraints=[RiskAhead(level)])
    rewards = [worth[0] for worth in list_worths(problem) if is_within(problem, worth)]
    result = vulcan.solve(problem, gap=0)
    if not rewards:
        assert result.status is vulcan.planning.Status.INFEASIBLE
        return
    assert result.status is vulcan.planning.Status.SOLVED
    assert result.safe
    assert float(result.certificate.reward) == pytest.approx(float(max(rewards)), abs=1e-9)
    near = vulcan.solve(problem, vulcan.Lagrangian())
    assert near.upper_bound >= float(max(rewards)) - 1e-9


def without_caps(problem):
    summed = [c for c in problem.constraints if not isinstance(c, RiskAhead)] or [Cost("fuel", 3)]
    return vulcan.Problem(problem.model, problem.risk_bound, constraints=summed)


@pytest.mark.parametrize("seed", range(60))
def test_the_certificate_of_a_policy_is_one_of_the_enumerated_worths(seed):
    problem = draw_problem(seed, horizon=2)
    policy = vulcan.solve(vulcan.Problem(problem.model, problem.risk_bound)).policy
    if policy is None:
        return
    exact = vulcan.certify(problem, policy, exact=True)
    rough = vulcan.certify(problem, policy)
    for fine, coarse in zip(exact.constraints, rough.constraints, strict=True):
        assert abs(float(fine.value) - coarse.value) <= coarse.value_error
        assert fine.passes == coarse.passes
    summed = [
        limited.value
        for limited, constraint in zip(exact.constraints, problem.constraints, strict=True)
        if not isinstance(constraint, RiskAhead)
    ]
    ahead = [x.value for x in exact.constraints if x.quantity == "risk ahead"]
    known = [
        (worth[1], [worth[3]] * len(ahead))
        for worth in list_worths(problem)
        if math.isclose(worth[0], exact.reward, abs_tol=1e-12)
    ]
    assert any(
        np.allclose(
            [*map(float, charges), *map(float, worst)], [*map(float, summed), *map(float, ahead)]
        )
        for charges, worst in known
    )


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize(
    "solver",
    [IntegerProgram(), IntegerProgram(reduced=False), IntegerProgram(on="graph")],
    ids=["reduced", "published", "graph"],
)
def test_integer_programs_find_the_best_policy_of_enumeration(seed, solver):
    problem = without_caps(draw_problem(3000 + seed, horizon=2 + seed % 2))
    rewards = [worth[0] for worth in list_worths(problem) if is_within(problem, worth)]
    result = vulcan.solve(problem, solver, gap=0)
    if not rewards:
        assert result.policy is None or not result.safe
        return
    best = float(max(rewards))
    assert result.upper_bound is None or result.upper_bound >= best - 1e-9
    if solver.on == "tree":
        assert result.safe
        assert float(result.certificate.reward) == pytest.approx(best, abs=1e-9)
    elif result.safe:
        assert result.certificate.reward <= best + 1e-9


@pytest.mark.parametrize("solver", [LinearProgram(), IntegerProgram()])
def test_programs_refuse_caps_on_the_risk_ahead(solver):
    problem = vulcan.Problem(draw_problem(1).model, constraints=[RiskAhead(0.1)])
    with pytest.raises(OptionError, match=r"totals only, not risk ahead <= 0\.1; .* Pareto"):
        vulcan.solve(problem, solver)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(
    "solver",
    [vulcan.Automatic(randomised=True), LinearProgram(), LinearProgram(on="tree")],
    ids=["automatic", "graph", "tree"],
)
def test_the_best_mixture_is_that_of_a_linear_program_over_all_policies(seed, solver):
    problem = draw_problem(1000 + seed, horizon=2)
    if any(isinstance(c, RiskAhead) for c in problem.constraints):
        return
    worths = list(list_worths(problem))
    bounds = [problem.risk_bound, *(c.bound for c in problem.constraints)]
    rewards = np.array([float(worth[0]) for worth in worths])
    charges = np.array([[float(worth[2]), *map(float, worth[1])] for worth in worths])
    rows = [charges[:, k] - (b(1.0) - b(0.0)) * rewards for k, b in enumerate(bounds)]
    limits = [b(0.0) for b in bounds]
    program = linprog(-rewards, A_ub=rows, b_ub=limits, A_eq=[np.ones(len(worths))], b_eq=[1.0])
    limits = {} if isinstance(solver, LinearProgram) else {"gap": 0}
    result = vulcan.solve(problem, solver, **limits)
    if program.status == 2:
        assert result.policy is None
        assert result.status is vulcan.planning.Status.INFEASIBLE
        return
    assert float(result.certificate.reward) == pytest.approx(-program.fun, abs=1e-7)
    assert result.upper_bound >= -program.fun - 1e-9
    assert result.safe


@pytest.mark.parametrize("seed", [12, 27, 30, 34, 55])
def test_the_best_mixture_keeps_its_limits_where_all_of_its_members_break_one(seed):
    problem = draw_problem(seed, horizon=7)
    result = vulcan.solve(problem, vulcan.Automatic(randomised=True), gap=0)
    assert result.status is vulcan.planning.Status.SOLVED
    assert result.safe
    assert float(result.certificate.reward) == pytest.approx(result.upper_bound, rel=1e-8)


def test_mixtures_are_found_where_no_action_fails_under_a_linear_risk_bound():
    problem = draw_problem(487, horizon=4)
    result = vulcan.solve(problem, vulcan.Automatic(randomised=True), gap=0)
    assert result.status is vulcan.planning.Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_of_lagrangian_holds_for_randomised_policies_too(seed):
    problem = draw_problem(seed, horizon=2)
    best = vulcan.solve(problem, vulcan.Lagrangian(randomised=True))
    bound = vulcan.solve(problem, vulcan.Lagrangian()).upper_bound
    if best.policy is not None:
        assert bound >= float(best.certificate.reward) - 1e-12


@pytest.mark.parametrize("seed", range(60))
def test_a_limit_that_is_raised_as_said_is_enough_and_less_is_not(seed):
    problem = draw_problem(2000 + seed, horizon=2)
    constraints = [c for c in problem.constraints if isinstance(c, Cost)]
    if not constraints:
        return
    model = problem.model
    tight = [Cost(c.name, -2.0 if k == 0 else 0.3) for k, c in enumerate(constraints)]
    result = vulcan.solve(vulcan.Problem(model, 0.3, constraints=tight))
    if result.status is not vulcan.planning.Status.INFEASIBLE:
        return
    randomised = vulcan.Automatic(randomised=True)
    for name, more in result.relaxations:
        for factor in (1 - 1e-6, 1 + 1e-6):
            raised = 0.0 if more is None else more * factor
            costs = [
                Cost(c.name, c.bound(0.0) + (raised if c.name == name else 0.0)) for c in tight
            ]
            if more is None:
                costs = [c for c in tight if c.name != name]
            risk = 0.3 + (raised if name == "risk" else 0.0)
            risk = 1.0 if more is None and name == "risk" else risk
            if not costs:
                continue
            again = vulcan.solve(vulcan.Problem(model, risk, constraints=costs), randomised)
            assert again.safe == (more is not None and factor > 1)


def test_tangents_too_steep_for_floats_are_left_out():
    outcomes = [Outcome(1 - 1.4e-12, 1e22, "end"), Outcome.failure(1.4e-12)]
    problem = Problem(OneAction(outcomes), 0.0, constraints=["risk(crash) <= 6e299*x"])
    result = vulcan.solve(problem, "pareto")
    assert result.certificate is None or not result.certificate.passes
    assert vulcan.solve(Problem(problem.model, 0.1, constraints=problem.constraints)).safe


class OneAction:
    horizon = 1

    def __init__(self, outcomes):
        self._outcomes = outcomes

    def initial_state(self):
        return "start"

    def actions(self, state):
        return ["go"] if state == "start" else []

    def outcomes(self, state, action):
        return self._outcomes
