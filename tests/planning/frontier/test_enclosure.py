"""What is proved between the points of a frontier: nothing that is drawn is wrong."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.helpers.unrolled import allow_evaluations
from tests.oracles.brute_force import enumerate_plans
from vulcan import Lagrangian, Linear, Outcome, Pareto, Problem
from vulcan.bounds.base import RewardLine
from vulcan.domains import Bandit
from vulcan.planning.frontier import Frontier, Span, trace_frontier, trim_lines

SMALL = Bandit(horizon=4)


def interpolate(curve, place):
    """The height of a drawn curve; NaN where nothing is drawn."""
    for (left, low), (right, high) in pairwise(curve):
        if left <= place <= right:
            share = (place - left) / (right - left) if right > left else 1.0
            return low + share * (high - low) if 0 < share < 1 else (low, high)[round(share)]
    return math.nan


def check(frontier, plans, grid=1e-9):
    """No plan lies above the drawn limit, and the staircase is no better than the best plan."""
    first, last = (frontier.points[k].at for k in (0, -1))
    limit = frontier.trace_limit(first, last)
    for plan in plans:
        place = max(first, frontier.find_place(plan.risk, plan.reward))
        if place <= last - 1e-9:
            assert plan.reward <= frontier.find_limit(place) + 1e-9
            room = grid * max(1.0, abs(plan.reward))
            assert not plan.reward > interpolate(limit, place) + room
    for place in [first + (last - first) * k / 20 for k in range(21)]:
        within = [p for p in plans if frontier.find_place(p.risk, p.reward) <= place + 1e-9]
        best = max((plan.reward for plan in within), default=-math.inf)
        earned = frontier.find_reward(place)
        assert earned <= best + 1e-9
        assert earned <= frontier.find_limit(place) + 1e-9


@pytest.mark.slow
@given(tables(sure_failure=False))
@settings(max_examples=60)
def test_every_policy_lies_under_the_drawn_limit(table):
    plans = enumerate_plans(table)
    risks = sorted({plan.risk for plan in plans})
    check(trace_frontier(table, points=4), plans)
    check(trace_frontier(table, levels=[risks[0], risks[-1]]), plans)
    for solver in (
        vulcan.ForwardSearch(),
        vulcan.baselines.RAOStar(update="exact"),
        vulcan.baselines.IntegerProgram(),
    ):
        check(trace_frontier(table, solver=solver, levels=[0.1, 0.3, 1]), plans)


@pytest.mark.slow
@given(tables(), bounds())
@settings(max_examples=60)
def test_every_policy_lies_under_the_drawn_limit_of_scaled_bounds(table, bound):
    plans = enumerate_plans(table)
    problem = Problem(table, bound)
    # The curve is bent there, and drawn as straight pieces.
    check(trace_frontier(problem, solver=Pareto(), scales=[0.2, 1, 4]), plans, grid=1e-3)
    check(trace_frontier(problem, solver=Lagrangian(), scales=[0.5, 2]), plans, grid=1e-3)


def test_the_limit_of_scaled_bounds_is_drawn_as_bent_as_it_is():
    """Far apart, the points of the curve would leave policies above the line between them."""
    careful = [Outcome(0.9, -2.0, 1), Outcome.failure(0.1)]
    daring = [Outcome(0.5, 1.0, 1), Outcome.failure(0.5)]
    problem = Problem(
        Table({0: {"care": careful, "dare": daring}}), vulcan.parse("0.2 - 0.02 * exp(-2 * x)")
    )
    frontier = trace_frontier(problem, solver=Lagrangian(), scales=[0.2, 4])
    drawn = frontier.trace_limit(0.2, 4.0)
    heights = [height for _, height in drawn if not math.isnan(height)]
    for place in [0.2 + 3.8 * k / 997 for k in range(998)]:
        height = interpolate(drawn, place)
        limit = frontier.find_limit(place)
        assert math.isnan(height) or height == pytest.approx(
            limit, abs=2e-4 * (max(heights) - min(heights))
        )


def test_between_two_points_the_limit_is_not_the_line_through_them():
    """Two points far apart: certified policies lie above that line, and under the limit."""
    coarse = trace_frontier(SMALL, levels=[0.0, 0.0047])
    (between,) = trace_frontier(SMALL, levels=[0.003])
    ends = [point.upper_bound for point in coarse]
    assert between.reward > ends[0] + (ends[1] - ends[0]) * 0.003 / 0.0047
    assert between.reward <= coarse.find_limit(0.003)


def test_without_any_line_the_limit_is_a_staircase(monkeypatch):
    allow_evaluations(monkeypatch, -1)
    frontier = trace_frontier(SMALL, solver=vulcan.ForwardSearch(), levels=[0.001, 0.003])
    assert frontier.lines == ()
    first, last = frontier
    assert frontier.find_limit(0.002) == (
        math.inf if last.upper_bound is None else last.upper_bound
    )
    assert frontier.find_reward(0.002) == first.reward


def test_the_staircase_begins_where_a_policy_is_acceptable():
    frontier = trace_frontier(SMALL, levels=[0.0, 0.003])
    policy = frontier.points[1]
    assert policy.risk < 0.003
    assert frontier.find_reward(policy.risk) == policy.reward
    assert frontier.find_reward(policy.risk - 1e-9) == frontier.points[0].reward
    scaled = trace_frontier(Problem(SMALL, Linear(0.002)), scales=[0.5, 1])
    place = scaled.points[1].risk / (0.002 * scaled.points[1].reward)
    assert scaled.find_reward(place + 1e-9) == scaled.points[1].reward
    assert scaled.find_reward(place - 1e-9) < scaled.points[1].reward


def test_lines_that_are_nowhere_the_least_are_dropped():
    lines = [RewardLine(k, 1 - (1 - k) ** 2 + shift) for k in (0.9, 0.5, 0.1) for shift in (0, 0.5)]
    kept = trim_lines([*lines, RewardLine(0.5, 2.0), RewardLine(0.0, 5.0)])
    assert [line.price for line in kept] == sorted((line.price for line in kept), reverse=True)
    for risk in [k / 50 for k in range(51)]:
        assert min(line(risk) for line in kept) == min(line(risk) for line in lines)
    assert trim_lines([]) == ()


def test_nothing_is_claimed_where_nothing_is_known():
    nothing = Frontier("model", None, "solver", points=(), seconds=0.0)
    assert nothing.find_reward(0.5) == -math.inf
    assert nothing.find_limit(0.5) == math.inf


# Where points are placed.


def area(frontier):
    low, high = frontier.points[0].at, frontier.points[-1].at
    places = [low + (high - low) * (k + 0.5) / 400 for k in range(400)]
    gaps = [frontier.find_limit(place) - frontier.find_reward(place) for place in places]
    return sum(gaps) * (high - low) / 400


@pytest.mark.parametrize("horizon", [4, 6])
@pytest.mark.parametrize("points", [6, 12])
def test_chosen_points_go_to_where_the_frontier_bends(horizon, points):
    """All of the reward is earned in the first tenth of the range; the rest is flat."""
    model = Bandit(horizon)
    chosen = trace_frontier(model, levels=Span(0, 0.05), points=points)
    even = trace_frontier(model, levels=[0.05 * k / (points - 1) for k in range(points)])
    assert len(chosen) <= points
    assert area(chosen) < area(even) / 2
    assert sum(point.level < 0.01 for point in chosen) >= points - 2


def test_a_staircase_of_a_few_steps_is_found_exactly_and_no_more_points_are_spent():
    frontier = trace_frontier(vulcan.domains.ThreeActions())
    assert len(frontier) < 10
    assert [reward for _, reward in frontier.steps] == [5.0, 6.0, 10.0]
    assert area(frontier) < 1e-4 * 0.04 * 5


def test_more_points_never_enclose_less():
    areas = [area(trace_frontier(SMALL, points=points)) for points in (3, 5, 9, 17)]
    assert areas == sorted(areas, reverse=True)
    assert areas[-1] < areas[0] / 4


def test_a_flat_frontier_has_one_point():
    (point,) = trace_frontier(one_action(Outcome(1.0, 2.0, 1)))
    assert (point.level, point.reward) == (0.0, 2.0)
