"""Deterministic policies by thin fronts: attained, acceptable, the best where nothing is cut."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import vulcan
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import acceptable
from tests.oracles.brute_force import enumerate_plans
from vulcan.domains import Bandit, Grid, TreasureGrid
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.sentinels import END
from vulcan.solvers.base import describe_origin
from vulcan.solvers.layered import coins as module
from vulcan.solvers.layered.coins import Coins, find_between
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.layered.run import LayeredRun

CAVE = TreasureGrid(horizon=30)
BOUND = vulcan.Constant(0.15)


class Search:
    """A run with its dual, and thin fronts at some price."""

    def __init__(self, model: Any, bound: vulcan.RiskBound, price: float | None = None) -> None:
        self.problem = vulcan.Problem(model, bound)
        reader = ModelReader(model)
        self.run = LayeredRun(self.problem, reader, Monitor(Limits()), vulcan.Lagrangian())
        assert self.run.unroll()
        self.dual: Dual = self.run.find_relaxed()
        self.price = self.dual.multiplier if price is None else price
        self.about: About = describe_origin(self.problem, reader, vulcan.Lagrangian())

    def make(self, **options: Any) -> Coins:
        ways = self.run.sweeps.follow_weights(1.0, self.price)
        values = ways.rewards - self.price * ways.risks
        span = (min(self.dual.corners, key=lambda c: c.risk).reward, self.dual.upper_bound)
        levels = self.run.levels.arrays
        return Coins(levels, Referee(self.problem.risk_bound), self.price, values, span, **options)

    def certify(self, corner: Corner) -> vulcan.Certificate:
        rows, children, _ = corner.plan.decide()
        return vulcan.certify(self.problem, self.run.graph.policy(rows, children, self.about))


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_a_corner_is_what_its_policy_attains_and_the_best_if_nothing_is_cut(
    table: Table, bound: vulcan.RiskBound
) -> None:
    search = Search(table, bound)
    assume(search.dual.upper_bound > -math.inf and len(search.run.levels))
    best = max((plan.reward for plan in acceptable(enumerate_plans(table), bound)), default=None)
    found = {points: search.make().search(math.inf, points) for points in (1, 3, 1024)}
    for corner in filter(None, found.values()):
        certificate = search.certify(corner)
        assert certificate.reward == pytest.approx(corner.reward, abs=1e-12)
        assert certificate.risk == pytest.approx(corner.risk, abs=1e-12)
        assert certificate.safe
        assert certificate.complete
    if best is not None:
        # A front of 1024 points has everything that matters here, up to points that nearly agree.
        assert found[1024] is not None
        assert found[1024].reward >= best - 0.002 * max(1.0, abs(best))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        *product([Bandit(7), Grid(horizon=40)], ["0.002*x", "0.01", "0.02 * (1 - exp(-0.4*x))"]),
        *product([CAVE], ["0.05 + 0.1*x", "0.15", "0.3 - 0.2 * exp(-x)"]),
    ],
    ids=str,
)
def test_each_policy_is_better_acceptable_and_certified(model: Any, text: str) -> None:
    search = Search(model, vulcan.parse(text))
    bound, upper = search.problem.risk_bound, search.dual.upper_bound
    last = -math.inf
    for corner in find_between(search.make(), upper, None):
        assert last < corner.reward <= upper + 1e-12
        last = corner.reward
        certificate = search.certify(corner)
        assert certificate.reward == pytest.approx(corner.reward, abs=1e-12)
        assert certificate.risk == pytest.approx(corner.risk, abs=1e-12)
        assert Referee(bound).accepts(corner)
        assert certificate.complete
    assert last > -math.inf


def test_slides_are_coins() -> None:
    # All the gold is behind a trap that is too risky to be entered for sure, and moves on the free
    # cells slide: whoever waits for a slide may enter it.
    grid = TreasureGrid(horizon=20, map="####\nB..#\n..T#\n##G#")
    search = Search(grid, BOUND)
    assert not any(Referee(BOUND).accepts(c) and c.reward > 0 for c in search.dual.corners)
    found = list(find_between(search.make(), search.dual.upper_bound, search.run.best))
    assert found[-1].reward > 0.9 * search.dual.upper_bound


def test_no_policy_is_found_where_the_first_step_is_too_risky() -> None:
    grid = TreasureGrid(horizon=20, map="BTG")
    search = Search(grid, BOUND)
    assert search.dual.upper_bound > 0
    assert list(find_between(search.make(), search.dual.upper_bound, search.run.best)) == []


def test_pauses_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(CAVE, BOUND)
    whole = search.make().search(1.0, 8)
    monkeypatch.setattr(module, "CHUNK", 1)
    monkeypatch.setattr(module, "FIRST_DECISIONS", 1)
    asked = []
    paused = search.make(may_go_on=lambda: asked.append(1) is None).search(1.0, 8)
    assert whole is not None
    assert paused is not None
    assert len(asked) > 1000
    assert (whole.reward, whole.risk) == (paused.reward, paused.risk)
    assert np.array_equal(whole.plan.decisions.rows, paused.plan.decisions.rows)
    assert np.array_equal(whole.plan.decisions.children, paused.plan.decisions.children)


def test_it_stops_when_it_may_not_go_on_or_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(CAVE, BOUND)
    monkeypatch.setattr(module, "CHUNK", 1)
    for stop in (0, 5, 1000):
        left = iter(range(stop))
        coins = search.make(may_go_on=lambda left=left: next(left, None) is not None)
        assert coins.search(1.0, 4) is None
        assert coins.stopped
    coins = search.make(memory=1000)
    assert list(find_between(coins, search.dual.upper_bound, None)) == []
    assert coins.stopped


def test_decisions_come_level_by_level() -> None:
    search = Search(CAVE, BOUND)
    corner = search.make().search(1.0, 8)
    assert corner is not None
    children = corner.plan.decisions.children
    parents = np.repeat(
        np.arange(len(corner.plan.decisions.rows)),
        search.run.graph.actions.array["safe_count"][corner.plan.decisions.rows],
    )
    assert (children[children != END] > parents[children != END]).all()
    assert set(children.tolist()) - {END} == set(range(1, len(corner.plan.decisions.rows)))
