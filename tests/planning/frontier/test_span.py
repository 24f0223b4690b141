"""The range of a frontier: levels, scales and spans."""

import math

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import tables
from tests.helpers.unrolled import allow_questions
from tests.oracles.brute_force import enumerate_plans
from vulcan import Constant, Linear, OptionError, Pareto, Problem
from vulcan.domains import Bandit
from vulcan.planning.frontier import Span, trace_frontier

SMALL = Bandit(horizon=4)


@given(tables(sure_failure=False))
@settings(max_examples=40)
def test_levels_go_from_the_least_risk_to_that_of_the_best_policy(table):
    plans = enumerate_plans(table)
    frontier = trace_frontier(table, points=3)
    best = max(plan.reward for plan in plans)
    # Among plans that earn the same but for a rounding, the rounding may decide.
    risks = [plan.risk for plan in plans if plan.reward >= best - 1e-12]
    assert frontier.points[0].level == pytest.approx(min(plan.risk for plan in plans), abs=1e-12)
    assert any(frontier.points[-1].level == pytest.approx(risk, abs=1e-9) for risk in risks)
    assert frontier.points[-1].reward == pytest.approx(best, abs=1e-9)
    assert 1 <= len(frontier) <= 3


def test_levels_are_sorted_and_given_once():
    frontier = trace_frontier(SMALL, levels=[0.003, 0.001, 0.003])
    assert [point.level for point in frontier] == [0.001, 0.003]


def test_spans_have_both_ends_and_points_between_them():
    frontier = trace_frontier(SMALL, levels=Span(0.001, 0.003), points=5)
    levels = [point.level for point in frontier]
    assert (levels[0], levels[-1], len(levels)) == (0.001, 0.003, 5)
    assert levels == sorted(set(levels))
    half = trace_frontier(SMALL, levels=Span(low=0.001), points=2)
    assert half.points[0].level == 0.001
    assert half.points[-1].level == pytest.approx(0.004794, abs=1e-6)
    assert half.points[-1].reward == pytest.approx(2.119041, abs=1e-6)


def test_long_spans_have_their_quarters():
    levels = [p.level for p in trace_frontier(SMALL, levels=Span(0.0, 0.004), points=17)]
    assert {0.001, 0.002, 0.003} <= set(levels)


def test_scales_end_where_the_bound_no_longer_binds_and_have_the_bound_itself():
    frontier = trace_frontier(Problem(SMALL, Linear(0.002)), scales=Span(), points=4)
    scales = [point.scale for point in frontier]
    last = frontier.points[-1]
    assert len(scales) == 4
    assert 1.0 in scales
    assert scales[0] == pytest.approx(last.scale / 4)
    assert last.allowed == pytest.approx(last.risk, abs=1e-12)
    assert last.reward == pytest.approx(2.119041, abs=1e-6)
    assert last.price == 0
    generous = trace_frontier(Problem(SMALL, Constant(0.5)), scales=Span(), points=3)
    assert generous.points[-1].scale == 1.0
    assert generous.points[-2].scale == pytest.approx(0.004794 / 0.5, rel=1e-3)


def test_a_bound_that_allows_nothing_is_scaled_up_to_itself():
    frontier = trace_frontier(Problem(SMALL, Constant(0.0)), scales=Span(), points=2)
    assert [point.scale for point in frontier] == [0.5, 1.0]


def test_what_is_too_large_to_unroll_is_sampled_for_its_range(monkeypatch):
    allow_questions(monkeypatch, -1)
    frontier = trace_frontier(SMALL, solver=vulcan.Vulcan(), points=3, samples=2000)
    assert frontier.points[0].level == 0
    assert frontier.points[-1].level == pytest.approx(0.004794, abs=1e-6)
    unlimited = trace_frontier(SMALL, solver=vulcan.ForwardSearch(), points=2)
    assert unlimited.points[-1].level == pytest.approx(0.004794, abs=1e-6)
    with pytest.raises(OptionError, match="the range of risk can't be found within the limits"):
        trace_frontier(SMALL, solver=vulcan.Vulcan(), samples=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": [0.1], "scales": [1]}, "levels or scales, not both"),
        ({"levels": []}, "levels are needed, and none are given"),
        ({"levels": [math.nan]}, "each of the levels must be a finite number, not nan"),
        ({"levels": ["0.1"]}, "each of the levels must be a finite number, not '0.1'"),
        ({"levels": [True]}, "each of the levels must be a finite number, not True"),
        ({"levels": Span(0, math.inf)}, "each of the levels must be a finite number, not inf"),
        ({"scales": [1, 0]}, "scales must be above 0; level 0 allows no risk at all"),
        ({"scales": Span(-1, 1)}, "each of the scales must be a finite number above 0, not -1"),
        ({"levels": Span(0.2, 0.1)}, r"levels can't go up from 0\.2 to 0\.1$"),
        ({"levels": Span(low=0.2)}, r"up from 0\.2 to 0\.0047.*; by themselves they go from 0 to"),
        ({"points": 1}, "points must be a whole number from 2 to 10,000, not 1"),
        ({"points": 2.5}, "points must be a whole number"),
        ({"solver": vulcan.Vulcan}, r"an instance such as Vulcan\(\), not <class"),
        ({"solver": Pareto(), "samples": 3}, "Pareto has no limit 'samples'"),
        ({"time_limit": -1}, "time_limit must be a number of at least 0"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_what_can_not_be_used_is_named(options, message):
    with pytest.raises(OptionError, match=message):
        trace_frontier(Problem(SMALL, Linear(0.002)), **options)


def test_scales_need_a_bound():
    with pytest.raises(OptionError, match="scales need a bound to scale"):
        trace_frontier(SMALL, scales=[1.0])


def test_what_is_no_model_is_named():
    with pytest.raises(vulcan.ModelError, match="int has no method"):
        trace_frontier(3, levels=[0.1])
