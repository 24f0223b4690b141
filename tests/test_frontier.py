"""Frontiers: the best certified reward, and the price of risk, over a range of bounds."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import given, settings

import vulcan
from tests.brute_force import enumerate_plans
from tests.tables import bounds, tables
from vulcan import Constant, Lagrangian, Linear, OptionError, Pareto, Problem
from vulcan.domains import Bandit, ThreeActions
from vulcan.frontier import Span, trace_frontier
from vulcan.solvers import size

SMALL = Bandit(horizon=4)


def levels_between(risks: set[float]) -> list[float]:
    """Levels with room on either side: what risks exactly as much is a matter of rounding."""
    known = sorted(risks)
    return [known[0] + 1e-9, *((a + b) / 2 for a, b in pairwise(known))][:12]


# Rewards.


@given(tables(sure_failure=False))
@settings(max_examples=40)
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
    assert len(frontier) == (3 if frontier.points[0].level < frontier.points[-1].level else 1)


@given(tables(), bounds())
@settings(max_examples=40)
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


def test_known_optima_of_the_bandit():
    problem = Problem(SMALL, Linear(0.002))
    (point,) = trace_frontier(problem, scales=[1.0])
    assert (point.level, point.scale) == (None, 1.0)
    assert point.bound == Linear(0.002)
    assert point.reward == pytest.approx(2.0627119821, abs=1e-9)
    assert point.allowed == pytest.approx(0.002 * point.reward)
    assert point.gap < 1e-9


def test_known_optima_of_randomised_policies():
    (point,) = trace_frontier(
        Problem(Bandit(horizon=8), Linear(0.001)), solver=Lagrangian(), scales=[2.0]
    )
    assert point.upper_bound == pytest.approx(4.2529, abs=5e-5)
    assert point.bound == Linear(0.002)
    (point,) = trace_frontier(Bandit(horizon=10), solver=Lagrangian(), levels=[0.0125])
    assert point.reward == pytest.approx(5.434855, abs=5e-7)
    assert point.upper_bound == pytest.approx(point.reward, abs=1e-12)
    assert point.price == 0  # the bound does not bind


def test_points_are_what_solve_finds():
    frontier = trace_frontier(SMALL, solver=vulcan.Vulcan(), levels=[0.001, 0.003], samples=300)
    for point in frontier:
        problem = Problem(SMALL, Constant(point.level))
        alone = vulcan.solve(problem, vulcan.Vulcan(), samples=300, bound=True)
        assert point.policy == alone.policy
        assert point.certificate == alone.certificate
        assert (point.upper_bound, point.price) == (alone.upper_bound, alone.price)


# Carrying forward and backwards.


@dataclass(frozen=True)
class Fading:
    """A solver that gets worse as more risk is allowed, and in the end finds nothing."""

    def search(self, problem, reader, monitor, options):
        level = problem.risk_bound(0.0)
        easy = problem if level < 0.002 else Problem(problem.model, Constant(0.0))
        finding = Pareto().search(easy, reader, monitor, options)
        upper = 9.0 - 1000 * level if level < 0.004 else 2.5
        if level >= 0.004:
            finding = replace(finding, policy=None, explanation="found nothing")
        return replace(finding, upper_bound=upper)


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


def test_upper_bounds_are_carried_backwards():
    frontier = trace_frontier(SMALL, solver=Fading(), levels=[0.0, 0.001, 0.003, 0.004])
    assert [point.upper_bound for point in frontier] == [2.5] * 4
    assert [point.result.upper_bound for point in frontier] == [9.0, 8.0, 6.0, 2.5]
    assert frontier.points[-1].gap == pytest.approx((2.5 - frontier.points[-1].reward) / 2.5)


def test_a_policy_that_does_not_pass_is_never_carried():

    @dataclass(frozen=True)
    class Careless:
        def search(self, problem, reader, monitor, options):
            return Pareto().search(Problem(problem.model, Constant(1.0)), reader, monitor, options)

    problem = Problem(ThreeActions(), Linear(0.004, -0.2))
    frontier = trace_frontier(problem, solver=Careless(), scales=[1, 2])
    assert not any(point.safe for point in frontier)
    assert all(point.carried_from is None for point in frontier)


# Prices.


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
    assert here.price_from == "dual"
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-4), "not at a corner"
    assert here.price == pytest.approx(slopes[0], rel=1e-4)


@pytest.mark.parametrize("scale", [0.3, 0.7, 0.9, 1.05])
@pytest.mark.parametrize("text", ["0.002*x", "0.01*(1-exp(-0.25*x))", "0.003*x - 0.001"])
def test_the_price_of_a_scaled_bound(scale, text):
    """The allowance grows by Δ(reward) per unit of the scale."""
    step = 1e-6
    base = vulcan.parse(text)
    problem = Problem(SMALL, base)
    before, here, after = bend(problem, Lagrangian(), scale, step, scales=None)
    slope = (after.upper_bound - before.upper_bound) / (2 * step) / base(here.upper_bound)
    assert here.price == pytest.approx(slope, rel=1e-4, abs=1e-9)


def test_without_a_dual_the_price_comes_from_the_neighbours(monkeypatch):
    monkeypatch.setattr(size, "MOST_NODES", 0)
    levels = [0.0, 0.001, 0.0015, 0.003]
    frontier = trace_frontier(SMALL, solver=vulcan.ForwardSearch(), levels=levels)
    rewards = [point.reward for point in frontier]
    assert [point.price_from for point in frontier] == ["difference"] * 4
    assert [point.price for point in frontier] == pytest.approx(
        [
            (rewards[1] - rewards[0]) / 0.001,
            (rewards[2] - rewards[0]) / 0.0015,
            (rewards[3] - rewards[1]) / 0.002,
            (rewards[3] - rewards[2]) / 0.0015,
        ]
    )
    assert str(frontier).count("≈ ") == 4
    (alone,) = trace_frontier(SMALL, solver=vulcan.ForwardSearch(), levels=[0.001])
    assert alone.price is alone.price_from is None


def test_differences_of_scales_are_per_unit_of_allowed_risk(monkeypatch):
    monkeypatch.setattr(size, "MOST_NODES", 0)
    base = Linear(0.002)
    frontier = trace_frontier(
        Problem(SMALL, base), solver=vulcan.ForwardSearch(), scales=[0.5, 0.9]
    )
    low, high = (point.reward for point in frontier)
    for point in frontier:
        expected = (high - low) / (0.4 * (base(low) + base(high)) / 2)
        assert point.price == pytest.approx(expected)


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
    frontier = trace_frontier(SMALL, solver=vulcan.UCT(), levels=[0.001, 0.01], samples=2000)
    first, second = frontier
    assert first.policy is first.reward is None
    assert "it risks 0.004794 where 0.001 is allowed" in first.explanation
    assert second.reward == pytest.approx(2.119041, abs=1e-6)


# The range.


def test_levels_are_sorted_and_given_once():
    frontier = trace_frontier(SMALL, levels=[0.003, 0.001, 0.003])
    assert [point.level for point in frontier] == [0.001, 0.003]


def test_spans_are_evenly_spaced_with_both_ends():
    frontier = trace_frontier(SMALL, levels=Span(0.001, 0.003), points=5)
    assert [point.level for point in frontier] == pytest.approx(
        [0.001, 0.0015, 0.002, 0.0025, 0.003]
    )
    assert frontier.points[-1].level == 0.003
    half = trace_frontier(SMALL, levels=Span(low=0.001), points=2)
    assert half.points[0].level == 0.001
    assert half.points[-1].level == pytest.approx(0.004794, abs=1e-6)
    assert half.points[-1].reward == pytest.approx(2.119041, abs=1e-6)


def test_scales_end_where_the_bound_no_longer_binds_and_have_the_bound_itself():
    frontier = trace_frontier(Problem(SMALL, Linear(0.002)), scales=Span(), points=4)
    scales = [point.scale for point in frontier]
    last = frontier.points[-1]
    assert len(scales) == 5
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
    monkeypatch.setattr(size, "MOST_NODES", 0)
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
        ({"levels": [math.nan]}, "levels must be finite numbers, not nan"),
        ({"levels": ["0.1"]}, "levels must be finite numbers, not '0.1'"),
        ({"levels": [True]}, "levels must be finite numbers, not True"),
        ({"levels": Span(0, math.inf)}, "levels must be finite numbers, not inf"),
        ({"scales": [1, 0]}, "scales must be positive, not 0; level 0 allows no risk at all"),
        ({"scales": Span(-1, 1)}, "scales must be positive, not -1"),
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


# The model, progress, and Ctrl-C.


class Counting(Bandit):
    """A bandit that counts how often it is asked."""

    calls: ClassVar[Counter] = Counter()

    def outcomes(self, state, action):
        self.calls[state, action] += 1
        return super().outcomes(state, action)


@pytest.mark.parametrize("solver", [None, vulcan.ForwardSearch(), vulcan.Vulcan(), Lagrangian()])
def test_searches_ask_the_model_once_for_all_points(solver):
    Counting.calls.clear()
    samples = {"samples": 200} if isinstance(solver, vulcan.Vulcan) else {}
    frontier = trace_frontier(
        Counting(horizon=4), solver=solver, points=8, levels=Span(0, 0.004), **samples
    )
    assert frontier.evaluations == len(Counting.calls) == 336
    # Certificates ask again, for the decisions of their policies and the first actions.
    certified = sum(point.certificate.evaluations + 4 for point in frontier)
    assert sum(Counting.calls.values()) <= 336 + 4 + 2 * certified
    assert Counter(Counting.calls.values())[1] > 336 / 2


def test_progress_is_that_of_the_whole_frontier():
    told = []
    frontier = trace_frontier(Bandit(horizon=5), points=5, on_progress=told.append)
    known = [progress.fraction for progress in told if progress.fraction is not None]
    assert known == sorted(known)
    assert known[-1] == 1
    assert len(known) >= 5
    assert told[-1].reward == frontier.points[-1].reward
    assert [progress.seconds for progress in told] == sorted(p.seconds for p in told)


def test_progress_in_the_terminal(capsys, monkeypatch):
    monkeypatch.setattr("vulcan.display.PATIENCE", 0.0)
    trace_frontier(SMALL, levels=[0.001, 0.002], progress=True)
    assert "searching" in capsys.readouterr().err


def test_each_point_is_told_when_it_is_done():
    told = []
    frontier = trace_frontier(SMALL, levels=[0.001, 0.003], on_point=told.append)
    assert [point.level for point in told] == [0.001, 0.003]
    assert [point.reward for point in told] == [point.reward for point in frontier]


def test_an_interruption_leaves_the_points_so_far():
    told = []

    def interrupt(point):
        told.append(point)
        if len(told) == 2:
            raise KeyboardInterrupt

    frontier = trace_frontier(SMALL, levels=[0, 0.001, 0.002, 0.003], on_point=interrupt)
    assert frontier.stopped_by == "Ctrl-C"
    assert [point.level for point in frontier] == [0, 0.001]
    assert frontier.points[1].reward > frontier.points[0].reward


def test_a_frontier_as_text():
    frontier = trace_frontier(SMALL, levels=[0.001, 0.003])
    header, first, _ = str(frontier).splitlines()
    assert header.split() == ["allowed", "reward", "risk", "at", "most", "gap", "price"]
    assert first.split() == ["0.001000", "1.306894", "0.001000", "1.306894", "0", "%", "325.6"]
    assert frontier.model == "Bandit(horizon=4)"
    assert frontier.solver == "Automatic()"
    assert (frontier.bound, frontier.stopped_by, len(frontier)) == (None, None, 2)
    scaled = trace_frontier(Problem(SMALL, Linear(0.002)), scales=[0.5])
    assert str(scaled).split()[0] == "scale"
    assert scaled.bound == Linear(0.002)
