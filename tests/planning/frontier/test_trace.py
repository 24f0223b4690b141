"""Frontiers: the best certified reward over a range of bounds, and their prices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import bounds, tables
from tests.helpers.unrolled import allow_evaluations
from tests.oracles.brute_force import enumerate_plans
from vulcan import Constant, Lagrangian, Linear, Pareto, Problem
from vulcan.domains import Bandit, ThreeActions
from vulcan.errors import OptionError
from vulcan.exact import bound_reward
from vulcan.planning.frontier import Span, trace_frontier
from vulcan.solvers import Solver

SMALL = Bandit(horizon=4)


def levels_between(risks: set[float]) -> list[float]:
    """Levels with room on either side: what risks exactly as much is a matter of rounding."""
    known = sorted(risks)
    return [known[0] + 1e-9, *((a + b) / 2 for a, b in pairwise(known))][:12]


# Rewards.


@given(tables(sure_failure=False))
@settings(max_examples=25)
def test_every_point_is_the_best_of_all_policies(table):
    plans = enumerate_plans(table)
    levels = [
        level
        for level in levels_between({plan.risk for plan in plans})
        if all(abs(plan.risk - level) > 1e-10 for plan in plans)
    ]
    if not levels:
        return
    for point in trace_frontier(table, solver=Pareto(), levels=levels):
        best = max(plan.reward for plan in plans if plan.risk <= point.level)
        assert point.safe
        assert point.reward == pytest.approx(best, abs=1e-9)
        assert point.reward <= point.upper_bound + 1e-9
        assert point.allowed == point.level >= point.risk - 1e-12


@given(tables(), bounds())
@settings(max_examples=25)
def test_a_frontier_never_falls_and_every_policy_in_it_passes(table, bound):
    problem = Problem(table, bound)
    scaled = trace_frontier(problem, solver=vulcan.Vulcan(), scales=[0.3, 1, 2.5], samples=40)
    constant = trace_frontier(problem, solver=vulcan.ForwardSearch(), levels=[-0.1, 0, 0.1, 0.5, 1])
    for frontier in (scaled, constant):
        rewards = [-math.inf if point.reward is None else point.reward for point in frontier]
        uppers = [math.inf if p.upper_bound is None else p.upper_bound for p in frontier]
        assert rewards == sorted(rewards)
        assert uppers == sorted(uppers)
        assert all(low <= high + 1e-9 for low, high in zip(rewards, uppers, strict=True))
        for point in frontier:
            if point.policy is not None:
                certificate = vulcan.certify(Problem(table, point.bound), point.policy)
                assert certificate == point.certificate
                assert certificate.safe


def test_points_are_what_solve_finds():
    solver = vulcan.LocalVulcan()
    frontier = trace_frontier(SMALL, solver=solver, levels=[0.001, 0.003], samples=300)
    for point in frontier:
        problem = Problem(SMALL, Constant(point.level))
        alone = vulcan.solve(problem, vulcan.LocalVulcan(), samples=300)
        bound = bound_reward(problem)
        assert point.policy == alone.policy
        assert point.certificate == alone.certificate
        # Both are rounded up, on different ways.
        assert point.upper_bound == pytest.approx(bound.upper, rel=1e-12)
        assert point.price == bound.price


# Carrying forward and backwards.


@dataclass(frozen=True)
class Fading(Solver):
    """A solver that gets worse as more risk is allowed, and in the end finds nothing."""

    def search(self, problem, reader, monitor, options):
        level = problem.risk_bound(0.0)
        easy = problem if level < 0.002 else Problem(problem.model, Constant(0.0))
        finding = Pareto().search(easy, reader, monitor, options)
        upper = 9.0 - 1000 * level if level < 0.004 else 2.5
        if level >= 0.004:
            finding = replace(finding, policy=None, explanation="found nothing")
        return replace(finding, upper_bound=upper, lines=())


def test_a_better_policy_is_carried_forward_and_says_so():
    levels = [0.0, 0.001, 0.0019, 0.002, 0.003, 0.004]
    frontier = trace_frontier(SMALL, solver=Fading(), levels=levels)
    assert [point.carried_from for point in frontier] == [None, None, None, 0.0019, 0.0019, 0.0019]
    best = frontier.points[2]
    for point in frontier.points[3:]:
        assert point.policy is best.policy
        assert point.reward == best.reward > 1.5
        assert point.certificate.allowed == point.level
        assert point.certificate.slack > best.certificate.slack
        assert point.certificate.margin > best.certificate.margin
        assert point.explanation.startswith("policy for 0.0019; ")
    assert frontier.points[4].result.certificate.reward == pytest.approx(1.0)
    assert frontier.points[5].result.policy is None
    assert frontier.points[5].explanation.endswith("found nothing")
    table = str(frontier).splitlines()
    assert [line.endswith("policy for 0.0019") for line in table] == [False] * 4 + [True] * 3


def test_a_policy_found_for_more_risk_counts_wherever_it_is_acceptable():

    @dataclass(frozen=True)
    class Lazy(Solver):
        """Finds nothing where little is allowed, and a policy of little risk elsewhere."""

        def search(self, problem, reader, monitor, options):
            easy = Problem(problem.model, Constant(0.001))
            finding = Pareto().search(easy, reader, monitor, options)
            small = problem.risk_bound(0.0) < 0.002
            return replace(finding, policy=None if small else finding.policy, upper_bound=None)

    frontier = trace_frontier(SMALL, solver=Lazy(), levels=[0.0005, 0.0015, 0.003])
    assert [point.carried_from for point in frontier] == [None, 0.003, None]
    assert [point.safe for point in frontier] == [False, True, True]
    assert frontier.points[1].reward == frontier.points[2].reward
    assert frontier.points[1].certificate.allowed == 0.0015


def test_upper_bounds_are_carried_backwards():
    frontier = trace_frontier(SMALL, solver=Fading(), levels=[0.0, 0.001, 0.003, 0.004])
    assert [point.upper_bound for point in frontier] == [2.5] * 4
    assert [point.result.upper_bound for point in frontier] == [9.0, 8.0, 6.0, 2.5]
    assert frontier.points[-1].gap == pytest.approx((2.5 - frontier.points[-1].reward) / 2.5)


def test_a_policy_that_does_not_pass_is_never_carried():

    @dataclass(frozen=True)
    class Careless(Solver):
        def search(self, problem, reader, monitor, options):
            return Pareto().search(Problem(problem.model, Constant(1.0)), reader, monitor, options)

    problem = Problem(ThreeActions(), Linear(0.004, -0.2))
    frontier = trace_frontier(problem, solver=Careless(), scales=[1, 2])
    assert not any(point.safe for point in frontier)
    assert all(point.carried_from is None for point in frontier)


# No policy.


def test_where_there_is_no_policy_there_is_a_reason():
    frontier = trace_frontier(SMALL, levels=[-0.01, 0.0])
    point = frontier.points[0]
    assert not point.safe
    assert point.reward is point.risk is point.gap is point.price is None
    assert point.allowed == -0.01
    assert point.upper_bound == -math.inf
    assert point.explanation == "no policy is within the risk bound, proved"
    assert "–  no policy is within the risk bound, proved" in str(frontier)


def test_a_policy_that_does_not_pass_is_not_on_the_frontier():
    frontier = trace_frontier(
        SMALL, solver=vulcan.baselines.UCT(), levels=[0.001, 0.01], samples=2000
    )
    first, second = frontier
    assert first.policy is first.reward is None
    assert "it risks 0.004794 where 0.001 is allowed" in first.explanation
    assert second.reward == pytest.approx(2.119041, abs=1e-6)


# Progress.


def test_progress_is_that_of_the_whole_frontier():
    told = []
    frontier = trace_frontier(Bandit(horizon=5), points=5, progress=told.append)
    known = [progress.fraction for progress in told if progress.fraction is not None]
    assert known == sorted(known)
    assert known[-1] == 1
    assert len(known) >= 5
    assert told[-1].reward in [point.reward for point in frontier]
    assert [progress.seconds for progress in told] == sorted(p.seconds for p in told)


def bend(model, solver, place, step, **kind):
    """The frontier at three places close to each other."""
    (name,) = kind
    places = [place - step, place, place + step]
    return trace_frontier(model, solver=solver, **{name: places}).points


@pytest.mark.parametrize("horizon", [4, 6])
@pytest.mark.parametrize("level", [0.0004, 0.0011, 0.0017, 0.0023, 0.0031, 0.0037, 0.0045])
def test_the_price_is_the_slope_of_the_frontier_of_randomised_policies(horizon, level):
    step = 1e-6
    before, here, after = bend(Bandit(horizon), Lagrangian(), level, step, levels=None)
    slopes = [
        (here.upper_bound - before.upper_bound) / step,
        (after.upper_bound - here.upper_bound) / step,
    ]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-4), "not at a corner"
    assert here.price == pytest.approx(slopes[0], rel=1e-4)


@pytest.mark.parametrize("scale", [0.3, 0.7, 0.9, 1.05])
@pytest.mark.parametrize("text", ["0.002*x", "0.01*(1-exp(-0.25*x))", "0.003*x - 0.001"])
def test_the_price_of_a_scaled_bound(scale, text):
    """The allowed risk grows by Δ(reward) per unit of the scale."""
    step = 1e-6
    base = vulcan.parse(text)
    problem = Problem(SMALL, base)
    before, here, after = bend(problem, Lagrangian(), scale, step, scales=None)
    slope = (after.upper_bound - before.upper_bound) / (2 * step) / base(here.upper_bound)
    assert here.price == pytest.approx(slope, rel=1e-4, abs=1e-9)


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


def test_spans_have_both_ends_and_points_between_them():
    frontier = trace_frontier(SMALL, levels=Span(0.001, 0.003), points=5)
    levels = [point.level for point in frontier]
    assert (levels[0], levels[-1], len(levels)) == (0.001, 0.003, 5)
    assert levels == sorted(set(levels))
    half = trace_frontier(SMALL, levels=Span(low=0.001), points=2)
    assert half.points[0].level == 0.001
    assert half.points[-1].level == pytest.approx(0.004794, abs=1e-6)
    assert half.points[-1].reward == pytest.approx(2.119041, abs=1e-6)


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


def test_what_is_too_large_to_unroll_is_sampled_for_its_range(monkeypatch):
    allow_evaluations(monkeypatch, -1)
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
        ({"solver": vulcan.Vulcan}, r"a Solver such as Vulcan\(\), not <class"),
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
