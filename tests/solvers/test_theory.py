"""The theory: local tests, prices, fronts and mixtures, against all policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import REWARDS, SEEDS, Table, bounds, random_table, tables
from tests.oracles.best_policies import acceptable, find_best_mixture, find_hull
from tests.oracles.brute_force import Plan, admits, enumerate_plans
from tests.oracles.priced_trees import Place, grow, thin
from tests.oracles.several import charge, draw_problem, list_summed
from vulcan import Outcome
from vulcan.numerics import SUM_TOLERANCE, TOLERANCE, find_sum_cost
from vulcan.planning import Status


@settings(max_examples=60)
@given(table=tables(sure_failure=False))
def test_lemmas_1_and_2_safe_histories_divided_by_survival(table: Table) -> None:
    for plan in enumerate_plans(table)[:50]:
        safe = [h for h in plan.histories if not h.failed]
        shares = [h.probability / h.survival for h in safe]
        assert math.fsum(shares) == pytest.approx(1, abs=1e-9)
        risk = math.fsum(p * (1 - h.survival) for p, h in zip(shares, safe, strict=True))
        assert plan.risk == pytest.approx(risk, abs=1e-9)


@pytest.mark.parametrize("kind", ["A", "A received", "A own", "B"])
@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_theorems_every_admissible_policy_satisfies_the_bound(kind, table, bound):
    for plan in enumerate_plans(table):
        if admits(kind, bound, plan):
            assert plan.risk <= bound(plan.reward) + 1e-11


def fit_least_bound(kind: str, plan: Plan) -> vulcan.RiskBound:
    """Return the least concave and nondecreasing function under which A admits a policy."""
    needed = [
        (
            0.0 if h.failed else (1 - h.survival) / h.survival,
            h.credit if kind == "A" else h.credit_own,
        )
        for h in plan.histories
    ]
    # Credits that differ by rounding alone would make it steep: it begins a little to the left.
    points = [(credit - 1e-9, risk) for risk, credit in find_hull(needed)]
    return vulcan.PiecewiseLinear(points) if len(points) > 1 else vulcan.Constant(points[0][1])


@pytest.mark.parametrize("kind", ["A", "A own"])
@settings(max_examples=60)
@given(table=tables(sure_failure=False))
def test_b_admits_whatever_a_with_f1_or_less_admits(kind: str, table: Table) -> None:
    # If it does so under the least bound, it does so under every other.
    for plan in enumerate_plans(table)[:300]:
        bound = fit_least_bound(kind, plan)
        assert admits(kind, bound, plan)
        assert admits("B", bound, plan)


def test_b_does_not_admit_whatever_a_with_received_rewards_admits() -> None:
    # After 10 a risk of 0.1 is taken, after 0 none: A counts the 10, and B the 5 of the draw.
    table = Table(
        {
            0: {"draw": [Outcome(0.5, 10.0, "rich"), Outcome(0.5, 0.0, "poor")]},
            "rich": {"dare": [Outcome(0.9, 0.0, "end"), Outcome.failure(0.1)]},
        },
        horizon=2,
    )
    (plan,) = enumerate_plans(table)
    bound = vulcan.Linear(0.0112)
    assert admits("A received", bound, plan)
    assert not admits("A", bound, plan)
    assert not admits("B", bound, plan)
    assert plan.risk <= bound(plan.reward)


PRICES = [0.0, 0.3, 1.0, 4.0, 20.0, 300.0]
FORBIDDING = 1e6  # at this price, risk decides alone


def find_edges(points: list[tuple[float, float]]) -> list[float]:
    """Return the prices at which the best policy changes; points are (reward, risk)."""
    corners = pairwise(find_hull(points))
    return [(g1 - g0) / (x1 - x0) for (g0, x0), (g1, x1) in corners if x1 > x0 + 1e-6]


def count_policies(table: Table, state: int, step: int) -> int:
    actions = table.table.get(state, {}) if step < table.horizon else {}
    after = [
        [count_policies(table, o.state, step + 1) for o in outcomes if not o.fails]
        for outcomes in actions.values()
    ]
    return sum(map(math.prod, after)) if actions else 1


def split_table(seed: int) -> Table:
    """Return a model with at most 3000 policies, some of which differ late."""
    random = Random(seed)
    while True:
        table = random_table(random, REWARDS, sure_failure=True)
        if table.horizon > 1 and 4 <= count_policies(table, 0, 0) <= 3000:
            return table


@settings(max_examples=60)
@given(table=tables())
def test_values_are_those_of_the_best_policies_and_convex_in_the_price(table: Table) -> None:
    root = grow(table)
    plans = enumerate_plans(table)
    for price in PRICES:
        best = max(plan.reward - price * plan.risk for plan in plans)
        assert root.value(price) == pytest.approx(best, abs=1e-9)
    for lower, between, upper in zip(PRICES, PRICES[1:], PRICES[2:], strict=False):
        for place, _ in root.walk(root.find_best(between, daring=True)):
            low, middle, high = (place.value(price) for price in (lower, between, upper))
            slope = (high - low) / (upper - lower)
            assert middle <= low + slope * (between - lower) + 1e-9  # a chord is above
            slope = (middle - low) / (between - lower)
            assert high >= low + slope * (upper - lower) - 1e-9  # and below, where it goes on
            least, most = (
                place.evaluate(place.find_best(price, daring))[0]
                for price, daring in ((between, False), (lower, True))
            )
            assert least - 1e-9 <= -slope <= most + 1e-9  # it falls as fast as best policies risk


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_a_first_action_is_worth_its_best_mixture(table: Table, bound: vulcan.RiskBound) -> None:
    root = grow(table)
    plans = enumerate_plans(table)
    for name, action in root.actions.items():
        points = [(plan.reward, plan.risk) for plan in plans if plan.choice[0] == name]
        prices = [0.0, *find_edges(points), FORBIDDING]
        best = find_best_mixture(points, bound)
        if best == -math.inf:
            continue

        def lack(y: float, prices: list[float] = prices, value: Callable = action.value) -> float:
            return max(y - price * bound(y) - value(price) for price in prices)

        assert lack(best) <= 1e-12 * FORBIDDING * 2  # at every price the mixture is possible
        assert lack(best + 1e-3) > 0  # and at some price nothing more is


@settings(max_examples=60)
@given(table=tables(), price=st.sampled_from(PRICES))
def test_dual_gaps_add_up(table: Table, price: float) -> None:
    root = grow(table)
    for plan in enumerate_plans(table)[:100]:
        lost = math.fsum(place.dual_gap(name, price) for place, name in root.walk(plan.choice))
        value = plan.reward - price * plan.risk
        assert value == pytest.approx(root.value(price) - lost, abs=1e-9)


@settings(max_examples=60)
@given(table=tables())
def test_the_front_over_the_whole_tree_is_that_of_all_policies(table: Table) -> None:
    front = grow(table).find_front()
    expected = thin([(plan.risk, plan.reward) for plan in enumerate_plans(table)])
    for one, other in ((front, expected), (expected, front)):
        for risk, reward in one:
            assert any(x <= risk + 1e-9 and g >= reward - 1e-9 for x, g in other)


def find_threshold(bound: vulcan.RiskBound, price: float, known: float, top: float) -> float:
    """Return the least y - λ Δ(y) for y from known to top: it is convex in y."""

    def lagrange(y: float) -> float:
        return y - price * bound(y)

    low, high = known, top
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if lagrange(left) <= lagrange(right) else (left, high)
    return min(lagrange(known), lagrange(low), lagrange(top))


def keep(
    place: Place, price: float, left: float, kept: set[tuple[int, str]]
) -> set[tuple[int, str]]:
    """Add the actions after which the dual gaps of a policy do not exceed what is left."""
    for name, action in place.actions.items():
        rest = left - place.dual_gap(name, price)
        if rest >= -1e-9:
            kept.add((id(place), name))
            for _, after in action.after:
                keep(after, price, rest, kept)
    return kept


def list_kept(
    root: Place, plans: list[Plan], bound: vulcan.RiskBound, known: float
) -> set[tuple[int, str]]:
    """Return the actions that may be part of a better policy than one that is known."""
    top = max(plan.reward for plan in plans)
    left = [root.value(price) - find_threshold(bound, price, known, top) for price in PRICES]
    return set.intersection(
        *(keep(root, price, most, set()) for price, most in zip(PRICES, left, strict=True))
    )


@settings(max_examples=60)
@given(seed=SEEDS, bound=bounds())
def test_nothing_is_dropped_that_a_better_policy_needs(seed: int, bound: vulcan.RiskBound) -> None:
    table = split_table(seed)
    root, plans = grow(table), enumerate_plans(table)
    known = acceptable(plans, bound)
    if not known:
        return
    rewards = sorted(plan.reward for plan in known)
    for start in (rewards[0], rewards[len(rewards) // 2], rewards[-1]):
        kept = list_kept(root, plans, bound, start)
        for plan in known:
            if plan.reward > start + 1e-9:
                assert all((id(place), name) in kept for place, name in root.walk(plan.choice))
        front = root.find_front(kept)
        found = [g for x, g in front if x <= bound(g) + 1e-11]
        assert max([start, *found]) == pytest.approx(rewards[-1], abs=1e-9)


@settings(max_examples=60)
@given(seed=SEEDS, share=st.floats(0.01, 0.99), steepness=st.floats(0, 0.95), which=SEEDS)
def test_switching_histories_comes_close_to_the_mixture(seed, share, steepness, which):
    table = split_table(seed)
    root = grow(table)
    prices = find_edges([(g, x) for x, g in root.find_front()])
    if not prices:
        return
    random = Random(which)
    lower, upper = sorted(random.choices([*prices, *PRICES], k=2))
    if random.random() < 0.5:
        lower = upper = random.choice(prices)
    safe, daring = root.find_best(upper, daring=False), root.find_best(lower, daring=True)
    (x0, g0), (x1, g1) = root.evaluate(safe), root.evaluate(daring)
    if x1 < x0 + 1e-6:
        return
    # A bound that the mixture of both with this share spends exactly.
    slope = (g1 - g0) / (x1 - x0)
    risk, reward = x0 + share * (x1 - x0), g0 + share * (g1 - g0)
    tangent = min(steepness / slope if slope > 0 else 1.0, 1e3)
    bound = vulcan.Linear(tangent, risk - tangent * reward)
    switches = []
    for place, one, other in root.split(safe, daring):
        (u0, v0), (u1, v1) = place.evaluate(one), place.evaluate(other)
        assert lower * (u1 - u0) - 1e-6 <= v1 - v0 <= upper * (u1 - u0) + 1e-6
        switches.append((place.reach * (u1 - u0), place.reach * (v1 - v0), place.reach))
    best = -math.inf
    for chosen in range(1 << min(len(switches), 10)):
        some = [switch for k, switch in enumerate(switches) if chosen >> k & 1]
        x, g = x0 + sum(s[0] for s in some), g0 + sum(s[1] for s in some)
        if x <= bound(g) + 1e-9:
            best = max(best, g)
    largest = max(gain for _, gain, _ in switches)
    assert largest <= upper * max(reach for _, _, reach in switches) + 1e-6
    assert best >= reward - largest - 1e-6
    # No policy at all is further above the mixture than the two prices allow.
    height = (upper - slope) * (slope - lower) / (upper - lower) if upper > lower else 0.0
    assert height <= (upper - lower) / 4 + 1e-6
    most = reward + height * (x1 - x0) / (1 - slope * tangent)
    for x, g in root.find_front():
        assert x > bound(g) + 1e-9 or g <= most + 1e-5


@pytest.mark.parametrize("solver", [vulcan.ForwardSearch(), vulcan.LocalVulcan()])
def test_sums_that_are_not_1_cost_more_than_the_tolerance(solver: vulcan.solvers.Solver) -> None:
    steps, risk = 4000, 0.0005
    table = Table(
        {0: {"go": [Outcome(1 - risk + 9e-13, 1.0, 0), Outcome.failure(risk)]}}, horizon=steps
    )
    # The only safe history passes B with equality.
    allowed = float(1 - (1 - Fraction(risk)) ** steps)
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(allowed)), solver)
    over = float(result.certificate.risk) - allowed
    assert 1000 * TOLERANCE < over <= find_sum_cost(steps) <= 1.0001 * steps * SUM_TOLERANCE
    assert not result.safe
    assert result.status is Status.DONE  # solved would mean a policy within the bound


@pytest.mark.parametrize("missing", [9e-13, -9e-13])
def test_risk_under_laws_that_sum_to_1(missing: float) -> None:
    steps, risk = 300, 0.004
    safe = 1 - risk - missing
    table = Table({0: {"go": [Outcome(safe, 1.0, 0), Outcome.failure(risk)]}}, horizon=steps)
    certified = vulcan.solve(vulcan.Problem(table, 1.0)).certificate.risk
    off = 1 - Fraction(safe) - Fraction(risk)
    whole = Fraction(safe) + Fraction(risk)
    for true in (Fraction(risk) + off, Fraction(risk), Fraction(risk) / whole):
        found = 1 - (1 - true) ** steps
        assert abs(found - Fraction(certified)) <= Fraction(find_sum_cost(steps) + 1e-14)


@pytest.mark.parametrize("seed", range(60))
def test_b_for_several_costs(seed: int) -> None:
    problem, random = draw_problem(seed), Random(seed)
    model, limited = problem.model, list_summed(problem)
    total = [Fraction(0)] * (1 + len(limited))
    histories: list[tuple[Fraction, list[Fraction]]] = []

    def follow(state, step, happened, p, survival, sums) -> None:
        if step == model.horizon:
            histories.append((p / survival, sums))
            return
        outcomes = model.outcomes(state, random.choice(model.actions(state)))
        means = [model.discount**step * sum(o.probability * o.reward for o in outcomes)]
        for constraint in limited:
            means.append(sum(o.probability * charge(constraint, o, happened) for o in outcomes))
        kept = sum(o.probability for o in outcomes if not o.fails)
        sums = [x + survival * mean for x, mean in zip(sums, means, strict=True)]
        total[:] = [x + p * mean for x, mean in zip(total, means, strict=True)]
        for o in outcomes:
            if not o.fails:
                after = happened | {o.event}
                follow(o.state, step + 1, after, p * o.probability, survival * kept, sums)

    one = Fraction(1)
    follow(model.initial_state(), 0, frozenset(), one, one, [0 * one] * len(total))
    for k, mean in enumerate(total):
        assert sum(q * sums[k] for q, sums in histories) == mean
        for slope in (Fraction(0), Fraction(1, 2)):  # the least limit that all histories pass
            least = max(sums[k] - slope * sums[0] for _, sums in histories)
            assert mean <= least + slope * total[0]


@pytest.mark.parametrize("seed", range(40))
def test_a_best_mixture_has_one_policy_more_than_constraints_at_most(seed: int) -> None:
    problem = draw_problem(2000 + seed)
    policy = vulcan.solve(problem, vulcan.Automatic(randomised=True)).policy
    if policy is not None:
        assert len(policy.members) <= 1 + 1 + len(list_summed(problem))


def test_the_policy_of_least_risk_does_not_decide_a_cap() -> None:
    # The ford has risk 0.05 on average, and 0.1 where the water is high; the bridge 0.08, always.
    table = Table(
        {
            0: {
                "ford": [Outcome(0.5, 1.0, "high"), Outcome(0.5, 1.0, "low")],
                "bridge": [Outcome(1.0, 0.0, "bridge")],
            },
            "high": {"wade": [Outcome(0.9, 0.0, "end"), Outcome.failure(0.1)]},
            "bridge": {"cross": [Outcome(0.92, 0.0, "end"), Outcome.failure(0.08)]},
        },
        horizon=2,
    )
    for level, reward in ((0.1, 1.0), (0.09, 0.0)):
        problem = vulcan.Problem(table, constraints=[vulcan.RiskAhead(level)])
        result = vulcan.solve(problem, gap=0)
        assert result.status is Status.SOLVED
        assert result.certificate.reward == reward
        (limited,) = result.certificate.constraints
        assert limited.value == pytest.approx(level if reward else 0.08, abs=1e-12)
    problem = vulcan.Problem(table, constraints=[vulcan.RiskAhead(0.07)])
    result = vulcan.solve(problem, gap=0)
    assert result.policy is None
    assert result.status is Status.INFEASIBLE
