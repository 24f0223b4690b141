"""Frontiers: the best certified reward over a range of bounds."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import bounds, tables
from tests.oracles.brute_force import enumerate_plans
from vulcan import Constant, Lagrangian, Linear, Pareto, Problem
from vulcan.domains import Bandit, ThreeActions
from vulcan.planning.frontier import Span, trace_frontier

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
    solver = vulcan.LocalVulcan()
    frontier = trace_frontier(SMALL, solver=solver, levels=[0.001, 0.003], samples=300)
    for point in frontier:
        problem = Problem(SMALL, Constant(point.level))
        alone = vulcan.solve(problem, vulcan.LocalVulcan(), samples=300, bound=True)
        assert point.policy == alone.policy
        assert point.certificate == alone.certificate
        # Both are rounded up, on different ways.
        assert point.upper_bound == pytest.approx(alone.upper_bound, rel=1e-12)
        assert point.price == alone.price


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
    class Lazy:
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
    class Careless:
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
    frontier = trace_frontier(SMALL, solver=vulcan.UCT(), levels=[0.001, 0.01], samples=2000)
    first, second = frontier
    assert first.policy is first.reward is None
    assert "it risks 0.004794 where 0.001 is allowed" in first.explanation
    assert second.reward == pytest.approx(2.119041, abs=1e-6)


# The model, progress, and Ctrl-C.


class Counting(Bandit):
    """A bandit that counts how often it is asked."""

    calls: ClassVar[Counter] = Counter()

    def outcomes(self, state, action):
        self.calls[state, action] += 1
        return super().outcomes(state, action)


@pytest.mark.parametrize(
    "solver", [None, vulcan.ForwardSearch(), vulcan.LocalVulcan(), Lagrangian()]
)
def test_searches_ask_the_model_once_for_all_points(solver):
    Counting.calls.clear()
    samples = {"samples": 200} if isinstance(solver, vulcan.LocalVulcan) else {}
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
    assert told[-1].reward in [point.reward for point in frontier]
    assert [progress.seconds for progress in told] == sorted(p.seconds for p in told)


def test_progress_in_the_terminal(capsys, monkeypatch):
    monkeypatch.setattr("vulcan.runtime.display.PATIENCE", 0.0)
    monkeypatch.setattr("vulcan.runtime.monitor.REPORT_INTERVAL", 0.0)
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
    assert frontier.solver == repr(vulcan.Automatic())
    assert (frontier.bound, frontier.stopped_by, len(frontier)) == (None, None, 2)
    scaled = trace_frontier(Problem(SMALL, Linear(0.002)), scales=[0.5])
    assert str(scaled).split()[0] == "scale"
    assert scaled.bound == Linear(0.002)
