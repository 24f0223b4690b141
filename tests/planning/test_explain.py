"""Where a policy takes its risk, and what else could be done."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.convoys import CONVOY
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.several import draw_problem
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.planning.explain import describe_sure_failures


def explain(model: object, bound: object) -> vulcan.planning.Explanation:
    problem = vulcan.Problem(model, bound)
    return vulcan.explain(problem, vulcan.solve(problem).policy)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_parts_are_those_of_the_certificate(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)
    result = vulcan.solve(
        problem, vulcan.baselines.LinearProgram()
    )  # whose policies are randomised
    if result.policy is None:
        return
    found = vulcan.explain(problem, result.policy)
    assert found.reward == pytest.approx(float(result.certificate.reward), abs=1e-9)
    assert found.risk == pytest.approx(float(result.certificate.risk), abs=1e-12)
    for parts in (found.choices, found.actions):
        assert math.fsum(part.risk for part in parts) == pytest.approx(found.risk, abs=1e-12)
        assert math.fsum(part.reward for part in parts) == pytest.approx(found.reward, abs=1e-9)
    assert 0 <= found.tempting + found.deliberate <= found.risk + 1e-12
    told = describe_sure_failures(result.policy)
    assert (told is not None) == bool(found.failures)


def test_failures_on_purpose_are_told_from_those_that_cannot_be_helped() -> None:
    found = explain(CONVOY, 1.0)
    assert [choice.action for choice in found.actions] == ["ditch", "ford"]
    first, second = found.failures
    assert (first.action, first.state, first.instead) == ("ditch", "1", "road")
    assert (first.times, first.instead_risk) == (pytest.approx(0.7), pytest.approx(0.02))
    assert (second.action, second.state, second.instead) == ("ditch", "2", None)
    assert second.times == pytest.approx(0.2)
    assert found.deliberate == pytest.approx(0.7)
    # Fording costs something where it does not fail, and nothing where it does.
    assert found.tempting == pytest.approx(0.1)


def test_another_model_is_refused() -> None:
    problem = vulcan.Problem(Bandit(3), 0.01)
    policy = vulcan.solve(problem).policy
    with pytest.raises(vulcan.errors.MismatchError):
        vulcan.explain(vulcan.Problem(Bandit(4), 0.01), policy)
    with pytest.raises(vulcan.errors.OptionError, match="a Problem is missing"):
        vulcan.explain(Bandit(3), policy)


@settings(max_examples=60, deadline=None)
@given(table=tables(), bound=bounds())
def test_no_alternative_is_better_than_the_best_policy(table, bound):
    problem = vulcan.Problem(table, bound)
    result = vulcan.solve(problem, vulcan.Pareto(), gap=0)
    if result.policy is None or result.gap != 0:
        return
    for place in vulcan.explain(problem, result.policy, places=100).places:
        other = place.alternative
        if other is None:
            continue
        assert other.verdict in ("worth less", "as good", "too risky")
        if other.verdict == "too risky":
            risk = float(result.certificate.risk) + other.risk_change
            assert risk > other.allowed
            assert other.reward_change > 0


@settings(max_examples=40, deadline=None)
@given(table=tables(), bound=bounds())
def test_places_are_parts_of_the_risk(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)
    result = vulcan.solve(problem, vulcan.baselines.LinearProgram())
    if result.policy is None:
        return
    found = vulcan.explain(problem, result.policy, places=1000)
    risks = [place.alike_accepted for place in found.places]
    assert math.fsum(risks) + found.unavoidable == pytest.approx(found.risk, abs=1e-12)
    assert math.fsum(found.steps) == pytest.approx(found.risk, abs=1e-12)
    assert risks == sorted(risks, reverse=True)
    assert len({(place.action, place.state) for place in found.places}) == len(found.places)
    for place in found.places:
        assert len(place.history) == place.step
        most = place.accepted * place.alike * (1 + 1e-9)
        assert place.accepted <= place.alike_accepted <= most


FORK = {
    # Running pays 3 and fails one time in ten; both lead to a last step that may pay more.
    0: {
        "walk": [Outcome(1.0, 1.0, 1)],
        "run": [Outcome(0.9, 3.0, 1), Outcome.failure(0.1)],
        "crawl": [Outcome(1.0, 0.0, 1)],
    },
    1: {"rest": [Outcome(1.0, 0.0, 2)], "jump": [Outcome(0.8, 2.0, 2), Outcome.failure(0.2)]},
}


def test_an_alternative_is_put_into_the_plan_and_nothing_else_is_changed() -> None:
    problem = vulcan.Problem(Table(FORK, horizon=2), 0.1)
    found = vulcan.explain(problem, vulcan.solve(problem).policy)
    assert (found.reward, found.risk) == (pytest.approx(2.7), pytest.approx(0.1))
    (place,) = found.places
    assert (place.action, place.step, place.history, place.risk) == ("run", 0, (), 0.1)
    other = place.alternative
    assert other is not None
    # Walking, and then what the price of risk makes of the last step: a jump would be too risky.
    assert other.action == "walk"
    assert other.verdict == "worth less"
    assert other.risk_change in (pytest.approx(-0.1), pytest.approx(0.1))
    assert "exactly over all" in found.compared


def test_what_is_as_good_is_not_called_worth_less() -> None:
    # Both ways pay the same; the bound does not bind, and so the price of risk is 0.
    ways = {"left": [Outcome(0.9, 1.0, 0), Outcome.failure(0.1, 1.0)]}
    steps = {0: ways | {"right": [Outcome(0.9, 1.0, 0), Outcome.failure(0.1, 1.0)]}}
    found = explain(Table(steps, horizon=3), 0.5)
    (place,) = found.places
    assert (place.alike, place.step) == (3, 0)
    assert place.alternative is not None
    assert place.alternative.verdict == "as good"
    assert found.price == 0


def leap(climbing: float) -> Table:
    """Two risky steps, of which the second may be left out."""
    steps = {
        0: {
            "ford": [Outcome(0.99, 1.0, 1), Outcome.failure(0.01)],
            "leap": [Outcome(0.98, 2.0, 1), Outcome.failure(0.02)],
        },
        1: {
            "rest": [Outcome(1.0, 0.0, 2)],
            "climb": [Outcome(0.99, climbing, 2), Outcome.failure(0.01)],
        },
    }
    return Table(steps, horizon=2)


def test_what_is_too_risky_says_so_and_what_care_would_cost() -> None:
    problem = vulcan.Problem(leap(3.0), 0.0205)
    blamed, first = vulcan.explain(problem, vulcan.solve(problem).policy).places
    assert (blamed.action, blamed.accepted) == ("climb", pytest.approx(0.99 * 0.01))
    # Any first step fails as often as that, or more often.
    assert (first.action, first.alternative.action, first.accepted) == ("ford", "leap", 0.0)
    # 0.98 · (2 + 0.99 · 3) instead of 0.99 · (1 + 0.99 · 3), and 0.98 · 2 without the climb.
    assert first.alternative.verdict == "too risky"
    assert first.alternative.reward_change == pytest.approx(0.98 * 4.97 - 0.99 * 3.97)
    assert first.alternative.risk_change == pytest.approx(0.99**2 - 0.98 * 0.99)
    assert first.alternative.safest_change == pytest.approx(0.98 * 2 - 0.99 * 3.97)
    tighter = vulcan.Problem(leap(3.0), 0.0199)
    _, first = vulcan.explain(tighter, vulcan.solve(tighter).policy).places
    assert (first.alternative.verdict, first.alternative.safest_change) == ("too risky", None)


def test_a_plan_that_is_not_the_best_is_told_so() -> None:
    plan = vulcan.solve(vulcan.Problem(leap(0.5), 0.0199)).policy
    found = vulcan.explain(vulcan.Problem(leap(0.5), 1.0), plan).places
    other = next(place.alternative for place in found if place.action == "ford")
    assert (other.action, other.verdict) == ("leap", "better")
    # 0.98 · (2 + 0.99 · 0.5) instead of 0.99 · (1 + 0.99 · 0.5).
    assert other.reward_change == pytest.approx(0.98 * 2.495 - 0.99 * 1.495)
    assert other.risk_change == pytest.approx(0.99**2 - 0.98 * 0.99)


def test_where_states_do_not_merge_only_the_step_is_compared() -> None:
    risky = {
        0: {
            "bridge": [Outcome(0.9, 0.0, 1), Outcome.failure(0.1)],
            "shore": [Outcome(1.0, 1.0, 2)],
            "swim": [Outcome(0.5, 0.5, 2), Outcome.failure(0.5)],
        },
        1: {"dig": [Outcome(1.0, 9.0, 3)]},
        2: {"dig": [Outcome(1.0, 0.0, 4)]},
    }
    problem = vulcan.Problem(Table(risky, horizon=2, merges=False), 0.2)
    found = vulcan.explain(problem, vulcan.solve(problem).policy)
    (place,) = found.places
    assert place.action == "bridge"
    # On the shore, if there were as much to dig: 1 + 9 instead of 8.1. There is not.
    assert place.alternative.action == "shore"
    assert place.alternative.verdict == "not known"
    assert place.alternative.reward_change == pytest.approx(10 - 8.1)
    assert place.alternative.risk_change == pytest.approx(-0.1)
    assert found.compared.startswith("the step alone")
    assert found.price is None


def test_the_price_says_what_more_risk_brings() -> None:
    problem = vulcan.Problem(Bandit(5), "0.002*x")
    found = vulcan.explain(problem, vulcan.solve(problem).policy)
    width = 1e-4
    best = [
        vulcan.solve(
            vulcan.Problem(Bandit(5), problem.risk_bound.scale(scale)),
            vulcan.Lagrangian(randomised=True),
        ).certificate.reward
        for scale in (1 - width, 1 + width)
    ]
    slope = (best[1] - best[0]) / (2 * width)
    assert found.price * problem.risk_bound(found.reward) == pytest.approx(slope, rel=0.05)


FLIGHT = {
    "depot": {
        "fly far": [Outcome(0.8, 5.0, "home"), Outcome(0.2, 0.0, "battery low")],
        "fly near": [Outcome(1.0, 1.0, "home")],
    },
    "battery low": {"hover": [Outcome(1.0, 0.0, "battery 1")]},
    "battery 1": {"hover": [Outcome.failure(1.0)], "land": [Outcome.failure(1.0)]},
    "home": {"rest": [Outcome(0.99, 0.0, "home"), Outcome.failure(0.01)]},
}


@pytest.mark.parametrize("merges", [True, False])
def test_the_decision_that_accepted_the_risk_is_blamed(merges: bool) -> None:
    problem = vulcan.Problem(Table(FLIGHT, horizon=3, start="depot", merges=merges), 0.5)
    policy = vulcan.solve(problem).policy
    found = vulcan.explain(problem, policy)
    (place,) = found.places
    assert (place.action, place.fails) == ("fly far", 0.0)
    assert "depot" in place.state
    safest = 1 - 0.99**2
    assert found.risk == pytest.approx(0.2 + 0.8 * safest)
    assert found.unavoidable == pytest.approx(safest if merges else 0.0)
    if merges:
        assert place.alike_accepted == pytest.approx(0.2 - 0.2 * safest)
        assert found.choices[0].action == "fly far"
    assert found.deliberate == 0
    told = describe_sure_failures(policy, found)
    assert "1 of" in told
    assert "only where every action fails" in told
    assert "vulcan explain says which" in describe_sure_failures(policy)


@pytest.mark.parametrize("seed", range(12))
def test_what_constraints_are_spent_on_adds_up_to_the_certificate(seed):
    model = draw_problem(seed).model
    limits = ["fuel <= 9", "dose <= 9", "risk(late) <= 1", "risk(wet) <= 1", "risk ahead <= 1"]
    problem = vulcan.Problem(model, 1.0, constraints=limits)
    result = vulcan.solve(problem)
    explanation = vulcan.explain(problem, result.policy)
    for spending, limited in zip(explanation.spent, result.certificate.constraints, strict=True):
        value = float(limited.value)
        assert spending.quantity == limited.quantity
        assert spending.total == pytest.approx(value, abs=1e-12)
        assert sum(amount for *_, amount in spending.choices) == pytest.approx(value, abs=1e-12)


def test_spending_names_the_choices_that_are_charged_and_the_riskiest_history():
    fails = Outcome.failure(0.25)
    table = {
        0: {"drive": [Outcome(0.5, 0.0, 1, "east", costs={"fuel": 2}, event="late"),
                      Outcome(0.5, 0.0, 2, "west")]},
        1: {"rest": [Outcome(1.0, 0.0, 3, event="late")]},
        2: {"dig": [Outcome(0.75, 1.0, 3, "ore", costs={"fuel": 8}, event="late"), fails]},
    }  # fmt: skip
    limits = ["fuel <= 9", "risk(late) <= 1", "risk ahead <= 1"]
    problem = vulcan.Problem(Table(table, 2), constraints=limits)
    fuel, late, ahead = vulcan.explain(problem, vulcan.solve(problem).policy).spent
    assert fuel.choices == (("dig", "2", 3.0), ("drive", "0", 1.0))
    assert late.choices == (("drive", "0", 0.5), ("dig", "2", 0.375))  # resting is late already
    assert ahead.choices == (("dig", "2", 0.25),)
    assert ahead.history == (("drive", "west"),)


def test_no_plan_is_called_improvable_by_the_risk_bound_alone():
    rich = [Outcome(1.0, 3.0, 0, costs={"fuel": 3})]
    table = {0: {"rich": rich, "poor": [Outcome(0.9, 1.0, 0), Outcome.failure(0.1)]}}
    problem = vulcan.Problem(Table(table, 1), 0.2, constraints=["fuel <= 2"])
    found = vulcan.explain(problem, vulcan.solve(problem).policy)
    assert found.places[0].alternative.verdict == "better by the risk bound alone"
    assert found.price is None
