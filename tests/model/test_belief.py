"""Models with hidden states: optima against all observation policies, bounds, merging, errors."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vulcan
from tests.oracles.hidden import (
    RandomHidden,
    enumerate_ahead,
    enumerate_policies,
    find_ahead,
    follow,
    start,
)
from vulcan import BeliefModel, Transition
from vulcan.baselines.rao_star import RAOStar
from vulcan.domains import Tiger
from vulcan.errors import ModelError
from vulcan.testing import check_model

CLOSE = 1e-9


def agree(seed: int, events: bool) -> None:
    """Compare the optimum and its certificate with all observation policies of a random model."""
    horizon = 3 if seed % 4 == 0 and not events else 2
    model = RandomHidden(
        seed, horizon, events, exact=seed % 3 > 0, states=2 + seed % 2, discount=1 - seed % 2 / 4
    )
    worths = enumerate_policies(model, start(model), None, horizon)
    risks = sorted({worth[1] for worth in worths})
    # Between two risks, so that rounding decides nothing.
    allowed = float(sum(risks[len(risks) // 3 :][:2]) / 2) if len(risks) > 1 else 1.0
    late = sorted({worth[2] for worth in worths})
    limit = float(sum(late[len(late) // 2 :][:2]) / 2) if len(late) > 1 else 1.0
    constraints = [vulcan.Risk(limit, event="late")] if events else []
    if any(abs(float(r) - allowed) < CLOSE for r in risks):
        return
    if events and any(abs(float(e) - limit) < CLOSE for e in late):
        return
    best = max(
        (g for g, x, e in worths if x <= allowed and (not events or e <= limit)), default=None
    )
    problem = vulcan.Problem(BeliefModel(model), allowed, constraints=constraints)
    result = vulcan.solve(problem, gap=0.0) if not events else vulcan.solve(problem)
    if best is None:
        assert result.policy is None or not result.certificate.safe
        return
    assert result.certificate.safe
    assert float(result.certificate.reward) == pytest.approx(float(best), abs=CLOSE)
    exact = vulcan.certify(problem, result.policy, exact=True)
    reward, risk, event = follow(model, result.policy, 0, start(model))
    assert (exact.reward, exact.risk) == (reward, risk)
    assert not events or exact.constraints[0].value == event


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("events", [False, True])
def test_optimum_is_that_of_all_observation_policies(seed: int, events: bool) -> None:
    agree(seed, events)


@pytest.mark.slow
@pytest.mark.parametrize("events", [False, True])
def test_optimum_on_many_models(events: bool) -> None:
    for seed in range(1000, 1250):
        agree(seed, events)


def values(model: BeliefModel, state: Any, step: int, price: float) -> dict[str, float]:
    """Return the largest (reward - price · risk) from a belief on, by action."""
    found = {}
    for action in model.actions(state) if step < model.horizon else ():
        total = 0.0
        for outcome in model.outcomes(state, action):
            total += float(outcome.probability) * (outcome.reward - price * outcome.fails)
            if not outcome.fails:
                # Failing is not discounted.
                later = values(model, outcome.state, step + 1, price / float(model.discount))
                best = max(later.values(), default=0.0)
                total += float(outcome.probability * model.discount) * best
        found[action] = total
    return found


def risks(model: BeliefModel, state: Any, step: int) -> dict[str, float]:
    """Return the least risk from a belief on, by action."""
    found = {}
    for action in model.actions(state) if step < model.horizon else ():
        found[action] = 0.0
        for outcome in model.outcomes(state, action):
            least = 1.0
            if not outcome.fails:
                least = min(risks(model, outcome.state, step + 1).values(), default=0.0)
            found[action] += float(outcome.probability) * least
    return found


@given(st.integers(0, 10**6), st.floats(0, 50))
def test_bounds_are_admissible(seed: int, price: float) -> None:
    hidden = RandomHidden(seed, 3, exact=False, states=3, discount=1 - seed % 2 / 4)
    model = BeliefModel(hidden)
    root = model.initial_state()
    reached = [(root, 0)] if root.menu else []
    for action in model.actions(root):
        reached += [(o.state, 1) for o in model.outcomes(root, action) if not o.fails]
    for state, step in reached:
        best = max(values(model, state, step, price).values(), default=0.0)
        assert model.value_to_go_bound(state, step, price) >= best - CLOSE
        plain = max(values(model, state, step, 0.0).values(), default=0.0)
        assert model.reward_to_go_bound(state, step) >= plain - CLOSE
        for action, least in risks(model, state, step).items():
            assert model.risk_to_go_bound(state, action, step) <= least + CLOSE


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7, 10, 11, 13])
def test_rao_star_keeps_the_bound_and_finds_no_more_than_there_is(seed: int) -> None:
    hidden = RandomHidden(seed, 2, exact=seed % 3 > 0, states=2 + seed % 2)
    worths = enumerate_ahead(hidden, start(hidden), None, 2)
    risks = sorted({risk for _, risk, _ in worths})
    bound = float(sum(risks[len(risks) // 3 :][:2]) / 2) if len(risks) > 1 else 1.0
    if any(abs(float(x) - bound) < CLOSE for worth in worths for x in worth[1:]):
        return
    problem = vulcan.Problem(BeliefModel(hidden), bound)
    for mode in ("overall", "everywhere"):
        kept = [g for g, x, ahead in worths if max(x, ahead * (mode != "overall")) <= bound]
        found = vulcan.solve(problem, RAOStar(mode=mode))
        if found.policy is not None:
            assert found.certificate.safe
            assert found.certificate.reward <= float(max(kept)) + CLOSE
            worst = find_ahead(hidden, found.policy, 0, start(hidden))[1]
            assert mode == "overall" or worst <= bound + CLOSE
    best = max((float(g) for g, x, _ in worths if x <= bound), default=None)
    exact = vulcan.solve(problem, RAOStar(update="exact"))
    assert (exact.policy is None) == (best is None)
    assert best is None or exact.certificate.reward == pytest.approx(best, abs=CLOSE)


def test_last_decision_is_bounded_exactly() -> None:
    model = BeliefModel(Tiger(6))
    state = model.initial_state()
    assert model.value_to_go_bound(state, 5, 100.0) == pytest.approx(-1.0)
    assert model.reward_to_go_bound(state, 5) == pytest.approx(0.0)
    assert model.risk_to_go_bound(state, "open left", 5) == pytest.approx(0.25)
    assert model.risk_to_go_bound(state, "listen", 0) == 0.0


def test_equal_beliefs_merge() -> None:
    model = BeliefModel(Tiger(6))
    root = model.initial_state()
    left, right = (o.state for o in model.outcomes(root, "listen"))
    again = [o.state for o in model.outcomes(left, "listen")]
    assert root in again
    assert again[1] is next(o.state for o in model.outcomes(right, "listen"))
    assert left != right
    copy = pickle.loads(pickle.dumps(left))
    assert copy == left
    assert hash(copy) == hash(left)
    assert [o.state for o in model.outcomes(copy, "listen")] == again


def test_whole_numbers_beside_floats_are_floats() -> None:
    hidden = RandomHidden(5, 3)
    hidden.belief = {"s0": 0.7, "s1": 0.3}
    assert check_model(BeliefModel(hidden)).ok


def test_fractions_stay_exact() -> None:
    model = BeliefModel(Tiger(6, Fraction(17, 20), Fraction(1, 2)))
    hidden = RandomHidden(5, 3, exact=True)
    model = BeliefModel(hidden)
    root = model.initial_state()
    for outcome in model.outcomes(root, "a"):
        assert isinstance(outcome.probability, int | Fraction)
        assert isinstance(outcome.reward, int | Fraction)
        if not outcome.fails:
            assert sum(outcome.state.probabilities.values()) == 1


def test_belief_model_is_a_model() -> None:
    for hidden in (Tiger(4), RandomHidden(7, 3), RandomHidden(8, 3, events=True, exact=False)):
        report = check_model(BeliefModel(hidden))
        assert report.ok, report


class Changed(Tiger):
    """A tiger with an answer that breaks a rule."""

    def __init__(self, method: str, answer: Any) -> None:
        super().__init__(3)
        object.__setattr__(self, method, lambda *_: answer)


@pytest.mark.parametrize(
    ("method", "answer", "said"),
    [
        ("initial_belief", {"left": 0.5, "right": 0.6}, "the initial belief sum to 1.1"),
        ("initial_belief", ["left"], "must be a mapping from each hidden state"),
        ("initial_belief", {}, "must be a mapping"),
        ("initial_belief", {"left": float("nan")}, "the probability of hidden state 'left'"),
        ("transitions", [Transition(0.4, "left", 0.0)], "transitions sum to 0.4, not to 1"),
        ("transitions", [Transition(1.5, "left", 0.0)], "next state 'left' must be a number from"),
        ("transitions", [Transition(1.0, "left", float("inf"))], "the reward of next state 'left'"),
        ("transitions", [Transition(1.0, ["left"], 0.0)], "can't be hashed"),
        ("transitions", [Transition(1.0, None, 0.0)], "a next state can't be None"),
        ("transitions", [Transition(1.0, "left", 0.0, event=3)], "must be a string or None, not 3"),
        ("transitions", [Transition(1.0, "left", 0.0, fails="no")], "fails must be True or False"),
        ("transitions", [(1.0, "left", 0.0)], "must be a vulcan.Transition"),
        ("transitions", "left", "must be a list of vulcan.Transition"),
        ("observations", {"growl": 0.7}, "the probabilities of observations sum to 0.7"),
        ("observations", {"growl": -0.5, "hiss": 1.5}, "the probability of observation 'growl'"),
        ("observations", {1: 0.5, "1": 0.5}, "two observations have the same text"),
        ("observations", {None: 1.0}, "can't be None"),
        ("actions", ["listen", "listen"], "two actions have the same label"),
    ],
)
def test_bad_answers_name_the_place(method: str, answer: Any, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        vulcan.solve(vulcan.Problem(BeliefModel(Changed(method, answer)), 0.5))
    assert said in str(caught.value)
    if method in ("transitions", "observations"):
        assert caught.value.violation.action == "listen"
        assert caught.value.violation.state in ("left", "right")
    else:
        assert "(state" not in str(caught.value)
    assert "model Changed" in str(caught.value)


def test_what_a_hidden_model_raises_names_its_class() -> None:
    class Forgetful(Tiger):
        def observations(self, state: str, action: str) -> dict[str, float]:
            return {}[action]

    with pytest.raises(ModelError, match=r"KeyError\('listen'\) .*, model Forgetful"):
        vulcan.solve(vulcan.Problem(BeliefModel(Forgetful(3)), 0.5))


def test_missing_method_is_named() -> None:
    class Half:
        horizon = 3

    with pytest.raises(ModelError, match=r"no method initial_belief\(\)"):
        BeliefModel(Half())
    with pytest.raises(ModelError, match="is a class"):
        BeliefModel(Tiger)
