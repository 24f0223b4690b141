"""Comparisons: several searches, measured against one upper bound."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import bounds, tables
from tests.oracles.brute_force import enumerate_plans
from vulcan import Linear, Pareto, Problem
from vulcan.baselines import Penalty
from vulcan.baselines.programs import LinearProgram
from vulcan.domains import Bandit, ThreeActions
from vulcan.errors import OptionError
from vulcan.planning.compare import compare
from vulcan.solvers import Solver

SMALL = Problem(Bandit(horizon=4), Linear(0.002))

BEST, BEST_RANDOMISED = 2.0627119821, 2.0673313852


@pytest.fixture(scope="module")
def everything():
    return compare(SMALL, samples=20_000)


def rows_by_name(comparison):
    return {row.name: row for row in comparison}


# What is found.


def test_rewards_and_gaps_of_all_solvers(everything):
    rows = rows_by_name(everything)
    assert everything.upper_bound == pytest.approx(BEST, abs=1e-9)
    assert everything.randomised_upper_bound == pytest.approx(BEST_RANDOMISED, abs=1e-9)
    for name in ("Pareto", "IntegerProgram", "Lagrangian"):
        assert rows[name].reward == pytest.approx(BEST, abs=1e-9)
        assert rows[name].gap < 1e-9
        assert rows[name].deterministic is True
    assert 2.0166 < rows["Vulcan"].reward <= BEST + 1e-9
    for name in ("ForwardSearch", "LocalVulcan"):
        assert rows[name].reward == pytest.approx(2.0166644, abs=1e-6)
        assert rows[name].gap == pytest.approx(1 - rows[name].reward / BEST, abs=1e-9)
    assert rows["Penalty"].reward < BEST - 1e-3
    linear = rows["LinearProgram"]
    assert linear.deterministic is False
    assert linear.reward == pytest.approx(BEST_RANDOMISED, abs=1e-9)
    assert linear.reward > everything.upper_bound
    assert linear.upper_bound == everything.randomised_upper_bound
    assert linear.gap < 1e-9
    assert "randomised" in linear.explanation
    assert "constant risk bound" in rows.pop("RAOStar").error
    for row in rows.values():
        assert row.risk <= row.allowed + 1e-12 or row.name == "UCT"


def test_a_policy_that_is_not_safe_has_no_gap(everything):
    uct = rows_by_name(everything)["UCT"]
    assert uct.reward > everything.randomised_upper_bound
    assert (uct.safe, uct.gap, uct.complete) == (False, None, True)
    assert "it risks 0.004794 where 0.004238 is allowed" in uct.explanation


@given(tables(), bounds())
@settings(max_examples=25)
def test_no_policy_earns_more_than_its_upper_bound(table, bound):
    problem = Problem(table, bound)
    solvers = [Pareto(), LinearProgram(), vulcan.ForwardSearch(), vulcan.baselines.UCT(), Penalty()]
    comparison = compare(problem, solvers, samples=300)
    best = max(
        (plan.reward for plan in enumerate_plans(table) if plan.risk <= bound(plan.reward)),
        default=-math.inf,
    )
    assert comparison.upper_bound >= best - 1e-9
    assert comparison.randomised_upper_bound >= comparison.upper_bound - 1e-9
    for row in comparison:
        assert row.error is None
        if row.safe:
            assert row.reward <= row.upper_bound + 1e-9
            assert row.gap >= 0


# Upper bounds.


@dataclass(frozen=True)
class Claiming(Solver):
    """A solver with a bound of its own, not known to hold for randomised policies."""

    upper: float = 2.06272

    def search(self, problem, reader, monitor, options):
        finding = Penalty().search(problem, reader, monitor, options)
        return replace(finding, upper_bound=self.upper)


def test_a_bound_on_deterministic_policies_is_not_held_against_randomised_ones():
    comparison = compare(SMALL, [Claiming(), LinearProgram()])
    mine, linear = comparison
    assert mine.upper_bound == comparison.upper_bound == 2.06272
    assert linear.upper_bound == comparison.randomised_upper_bound > 2.067
    (alone,) = compare(SMALL, [Claiming()])
    assert alone.upper_bound == 2.06272


# Limits and refusals.


@dataclass(frozen=True)
class Refusing(Solver):
    def search(self, problem, reader, monitor, options):
        raise OptionError("not on a Tuesday")


@dataclass(frozen=True)
class Broken(Solver):
    def search(self, problem, reader, monitor, options):
        raise ZeroDivisionError("oh")


def test_a_solver_that_refuses_has_a_row_with_its_reason(caplog):
    solvers = [Refusing(), Broken()]
    with caplog.at_level(logging.CRITICAL, logger="vulcan"):
        comparison = compare(Problem(ThreeActions(), Linear(0.004)), [*solvers, Pareto()])
    errors = [row.error for row in comparison]
    assert errors[:2] == ["not on a Tuesday", "ZeroDivisionError: oh"]
    assert errors[2] is None
    refused = comparison.rows[0]
    assert (
        refused.reward is refused.risk is refused.allowed is refused.gap is refused.seconds is None
    )
    assert refused.complete is refused.deterministic is refused.evaluations is None
    assert refused.explanation == "not on a Tuesday"
    assert comparison.rows[2].reward == 6.0
    lines = str(comparison).splitlines()
    assert lines[1].split()[:2] == ["–", "Refusing"]
    assert lines[1].endswith("not on a Tuesday")


# Names.


@pytest.mark.parametrize("solvers", [[], {}])
def test_a_comparison_needs_solvers(solvers):
    with pytest.raises(OptionError, match=r"not <class .*Pareto'>; write Pareto\(\)"):
        compare(SMALL, [Pareto])
    with pytest.raises(OptionError, match="at least one solver"):
        compare(SMALL, solvers)
