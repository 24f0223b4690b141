"""Comparisons: several solvers on one problem, measured against one upper bound."""

import logging
import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import bounds, tables
from tests.helpers.unrolled import allow_questions
from tests.oracles.brute_force import enumerate_plans
from vulcan import Constant, Lagrangian, Linear, OptionError, Pareto, Penalty, Problem
from vulcan.domains import Bandit, ThreeActions
from vulcan.planning.compare import compare
from vulcan.solvers.baselines.integer_program import IntegerProgram
from vulcan.solvers.baselines.linear_program import LinearProgram
from vulcan.solvers.registry import load_solvers

SMALL = Problem(Bandit(horizon=4), Linear(0.002))
EXACT = ("time_limit", "memory")
SAMPLED = ("time_limit", "samples", "histories", "memory")
LIMITS = {
    vulcan.Automatic: SAMPLED,
    vulcan.ForwardSearch: ("time_limit", "histories"),
    vulcan.Vulcan: SAMPLED,
    vulcan.LocalVulcan: SAMPLED,
    vulcan.UCT: SAMPLED,
    Penalty: EXACT,
    Lagrangian: EXACT,
    Pareto: EXACT,
    IntegerProgram: EXACT,
    vulcan.RAOStar: EXACT,
    LinearProgram: EXACT,
}
"""The limits that each solver knows, a target gap aside."""

BEST, BEST_RANDOMISED = 2.0627119821, 2.0673313852


@pytest.fixture(scope="module")
def everything():
    return compare(SMALL, time_limit=60)


def rows_by_name(comparison):
    return {row.name: row for row in comparison}


# What is found.


def test_one_of_each_kind_by_default(everything):
    kinds = [type(row.solver) for row in everything]
    assert kinds == [kind for kind in load_solvers().values() if kind is not vulcan.Automatic]
    assert {*kinds, vulcan.Automatic} == set(LIMITS)
    assert [row.name for row in everything] == [kind.__name__ for kind in kinds]
    assert all(row.error is None for row in everything)
    assert everything.stopped_by is None


def test_rewards_and_gaps_of_all_solvers(everything):
    rows = rows_by_name(everything)
    assert everything.upper_bound == pytest.approx(BEST, abs=1e-9)
    assert everything.randomised_upper_bound == pytest.approx(BEST_RANDOMISED, abs=1e-9)
    for name in ("Pareto", "IntegerProgram", "RAOStar", "Lagrangian"):
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
    for row in everything:
        assert row.risk <= row.allowed + 1e-12 or row.name == "UCT"


def test_a_policy_that_is_not_safe_has_no_gap(everything):
    uct = rows_by_name(everything)["UCT"]
    assert uct.reward > everything.randomised_upper_bound
    assert (uct.safe, uct.gap, uct.complete) == (False, None, True)
    assert "it risks 0.004794 where 0.004238 is allowed" in uct.explanation


def test_what_each_search_took(everything):
    rows = rows_by_name(everything)
    assert rows["Pareto"].evaluations == 336
    assert rows["RAOStar"].evaluations < 336  # its heuristics pay
    assert all(row.seconds > 0 for row in everything)
    text = dict(zip((row.name for row in everything), everything.tabulate().rows, strict=True))
    assert text["ForwardSearch"][8].endswith(" histories")
    assert text["Vulcan"][8].endswith(" samples")
    assert text["Pareto"][8] == "84 nodes"


@given(tables(), bounds())
@settings(max_examples=25)
def test_no_policy_earns_more_than_its_upper_bound(table, bound):
    problem = Problem(table, bound)
    solvers = [Pareto(), LinearProgram(), vulcan.ForwardSearch(), vulcan.UCT(), Penalty()]
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
class Claiming:
    """A solver with a bound of its own, which nobody knows to hold for randomised policies."""

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


def test_the_dual_bound_is_computed_once_and_serves_all():
    comparison = compare(SMALL, [vulcan.ForwardSearch(), vulcan.LocalVulcan(), Penalty()])
    seconds = [row.result.statistics.bound_seconds for row in comparison]
    assert seconds[0] > 0
    assert seconds[1:] == [0, 0]
    assert {row.upper_bound for row in comparison} == {comparison.randomised_upper_bound}
    assert comparison.upper_bound == pytest.approx(BEST_RANDOMISED, abs=1e-9)


def test_solvers_with_a_bound_of_their_own_need_no_other():
    comparison = compare(SMALL, [Lagrangian(), vulcan.ForwardSearch()])
    assert [row.result.statistics.bound_seconds for row in comparison] == [0, 0]
    assert comparison.rows[1].gap == pytest.approx(1 - 2.0166644 / BEST_RANDOMISED, abs=1e-6)


def test_a_bound_that_can_not_be_found_is_looked_for_once(monkeypatch):
    allow_questions(monkeypatch, -1)
    problem = Problem(ThreeActions(), Linear(0.004))
    comparison = compare(problem, [vulcan.ForwardSearch(), vulcan.LocalVulcan()], samples=100)
    assert comparison.upper_bound is comparison.randomised_upper_bound is None
    assert [row.gap for row in comparison] == [None, None]
    assert [row.result.statistics.bound_seconds > 0 for row in comparison] == [True, False]


def test_without_a_bound_only_solvers_know_theirs():
    comparison = compare(SMALL, [vulcan.ForwardSearch()], bound=False)
    assert comparison.upper_bound is comparison.rows[0].gap is None


def test_a_problem_without_a_policy():
    comparison = compare(Problem(Bandit(horizon=3), Constant(-1)), time_limit=60)
    assert comparison.upper_bound == -math.inf
    for row in comparison:
        assert not row.safe
        assert row.gap is None
    assert str(comparison).count("✗") == 1  # UCT's


# Limits and refusals.


@pytest.mark.parametrize("kind", LIMITS)
def test_each_solver_gets_the_limits_that_it_knows(kind):
    comparison = compare(SMALL, [kind()], time_limit=60, samples=500, histories=10**6, memory=10**9)
    assert comparison.rows[0].error is None


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("limit", ["time_limit", "samples", "histories", "memory"])
def test_the_limits_of_each_solver_are_all_that_it_knows(kind, limit):
    if limit in LIMITS[kind]:
        enough = {"samples": 100} if "samples" in LIMITS[kind] else {}
        vulcan.solve(SMALL, kind(), **{**enough, limit: 10**9})
        return
    with pytest.raises(OptionError, match=f"has no limit '{limit}'"):
        vulcan.solve(SMALL, kind(), **{limit: 10})


def test_limits_that_were_reached_are_told():
    problem = Problem(Bandit(horizon=9, merges=False), Linear(0.002))
    comparison = compare(problem, [vulcan.Vulcan(), Pareto()], time_limit=0)
    for row in comparison:
        assert row.result.stopped_by == "time limit"
        assert "stopped by time limit" in row.explanation


@dataclass(frozen=True)
class Refusing:
    def search(self, problem, reader, monitor, options):
        raise OptionError("not on a Tuesday")


@dataclass(frozen=True)
class Broken:
    def search(self, problem, reader, monitor, options):
        raise ZeroDivisionError("oh")


def test_a_solver_that_refuses_has_a_row_with_its_reason(caplog):
    solvers = [Refusing(), Broken(), vulcan.LocalVulcan(bounded=True), Pareto]
    with caplog.at_level(logging.CRITICAL, logger="vulcan"):
        comparison = compare(Problem(ThreeActions(), Linear(0.004)), [*solvers, Pareto()])
    errors = [row.error for row in comparison]
    assert errors[:2] == ["not on a Tuesday", "ZeroDivisionError: oh"]
    assert errors[2] == "bounded needs a model with reward_to_go_bound(state, step)"
    assert errors[3].startswith("solver must be an instance such as Vulcan(), not <class")
    assert errors[4] is None
    refused = comparison.rows[0]
    assert (
        refused.reward is refused.risk is refused.allowed is refused.gap is refused.seconds is None
    )
    assert refused.complete is refused.deterministic is refused.evaluations is None
    assert refused.explanation == "not on a Tuesday"
    assert comparison.rows[4].reward == 6.0
    lines = str(comparison).splitlines()
    assert lines[1].split()[:2] == ["–", "Refusing"]
    assert lines[1].endswith("not on a Tuesday")


def test_what_a_broken_solver_raised_is_logged(caplog):
    with caplog.at_level(logging.ERROR, logger="vulcan"):
        compare(SMALL, {"mine": Broken()})
    assert "mine failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


# Names.


def test_names_are_those_given_or_tell_what_is_unusual():
    solvers = [
        *(vulcan.Vulcan(), vulcan.Vulcan(exploration=0.5), vulcan.Vulcan()),
        *(LinearProgram(on="tree"), IntegerProgram()),
    ]
    comparison = compare(Problem(ThreeActions(), Linear(0.004)), solvers, samples=50)
    assert [row.name for row in comparison] == [
        *("Vulcan", "Vulcan(exploration=0.5)", "Vulcan (2)"),
        *("LinearProgram(on='tree')", "IntegerProgram"),
    ]
    named = compare(SMALL, {"mine": Pareto()})
    assert [row.name for row in named] == ["mine"]


@pytest.mark.parametrize("solvers", [[], {}])
def test_a_comparison_needs_solvers(solvers):
    with pytest.raises(OptionError, match="at least one solver"):
        compare(SMALL, solvers)


# Progress and Ctrl-C.


def test_the_same_seed_gives_the_same_comparison():
    first, second, third = (
        compare(SMALL, [vulcan.LocalVulcan()], samples=12, seed=seed).rows[0].reward
        for seed in (1, 1, 2)
    )
    assert first == second != third


def test_progress_and_rows_are_told():
    told, rows = [], []
    compare(SMALL, [Pareto(), Penalty()], on_progress=told.append, on_row=rows.append)
    assert [row.name for row in rows] == ["Pareto", "Penalty"]
    fractions = [progress.fraction for progress in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


def test_an_interruption_leaves_the_rows_so_far():
    def interrupt(row):
        raise KeyboardInterrupt

    comparison = compare(SMALL, [Pareto(), Penalty()], on_row=interrupt)
    assert comparison.stopped_by == "Ctrl-C"
    assert [row.name for row in comparison] == ["Pareto"]
    assert comparison.upper_bound == pytest.approx(BEST, abs=1e-9)


def test_a_comparison_as_text(everything):
    header, *lines = str(everything).splitlines()
    assert header.split()[:4] == ["solver", "reward", "risk", "allowed"]
    assert len(lines) == len(everything) == 10
    assert lines[0].startswith("✓  ForwardSearch   2.016664  0.003693  0.004033  2.2 %")
    assert lines[3].startswith("✗  UCT ")
    assert "searched" not in everything.tabulate(wide=False).header
