"""A certified policy can be executed by an observer who sees only what is observable."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import SEEDS, Table
from vulcan import Outcome, Start


def follow(policy: Any, model: Any) -> tuple[Fraction, Fraction]:
    """Return the expected reward and the risk of a policy, each member as often as its weight."""
    weights = [Fraction(weight) for weight in policy.weights]
    weights[weights.index(max(weights))] += 1 - sum(weights)
    parts = [_follow_from(member, model, (), model.initial_state(), 0) for member in policy.members]
    reward, risk = (
        sum(w * part[k] for w, part in zip(weights, parts, strict=True)) for k in (0, 1)
    )
    return reward, risk


def _follow_from(
    policy: vulcan.Policy, model: Any, seen: tuple[str, ...], state: Any, step: int
) -> tuple[Fraction, Fraction]:
    run = policy.start()
    for label in seen:
        run.observe(label)
    if run.finished:
        assert not isinstance(state, Start)
        assert step == model.horizon or not model.actions(state)
        return Fraction(0), Fraction(0)
    started = isinstance(state, Start)
    action = run.action_label
    outcomes = state.choices[action] if started else model.outcomes(state, action)
    reward = risk = Fraction(0)
    for outcome in outcomes:
        chance = Fraction(outcome.probability)
        later_reward = later_risk = Fraction(0)
        label = name(outcome, run.expected)
        if outcome.fails:
            later_risk = Fraction(1)
        else:
            later_reward, later_risk = _follow_from(
                policy, model, (*seen, label), outcome.state, step + (not started)
            )
        discount = 1 if started else Fraction(model.discount)
        reward += chance * (Fraction(outcome.reward) + discount * later_reward)
        risk += chance * later_risk
    return reward, risk


def name(outcome: Outcome, expected: dict[str, float]) -> str:
    """Return how an observer of this outcome would report it."""
    if outcome.label is not None:
        return outcome.label
    place = "failure" if outcome.fails else str(outcome.state)
    if place in expected:
        return place
    told = f"{place}, reward {outcome.reward:g}"
    assert told in expected, (told, expected)
    return told


SOLVERS = [
    vulcan.Pareto(),
    vulcan.Lagrangian(),
    vulcan.ForwardSearch(),
    vulcan.Vulcan(),
    vulcan.LocalVulcan(),
    vulcan.baselines.LinearProgram(),
]


def draw_outcomes(random: Random, states: int) -> list[Outcome]:
    """Return outcomes of which many lead to the same state, with labels or without."""
    weights = [random.randint(1, 6) for _ in range(random.randint(1, 5))]
    risks = [Fraction(random.randint(1, 5), 100) for _ in range(random.choice([0, 0, 1, 2]))]
    outcomes = [
        Outcome(
            Fraction(weight, sum(weights)) * (1 - sum(risks)),
            random.choice([0, 1, 1, 2]),
            random.randrange(states),
            f"sign {k}" if random.random() < 0.25 else None,
        )
        for k, weight in enumerate(weights)
    ]
    outcomes += [
        Outcome.failure(risk, random.choice([0, 0, 1]), random.choice([None, None, f"crash {k}"]))
        for k, risk in enumerate(risks)
    ]
    random.shuffle(outcomes)
    return outcomes


def draw_model(random: Random) -> Table:
    """Return a model whose outcomes can often not be told apart."""
    states = random.choice([1, 2, 3])
    table = {
        state: {name: draw_outcomes(random, states) for name in "ab"[: random.choice([1, 2, 2])]}
        for state in range(states)
    }
    if states > 1 and random.random() < 0.3:
        table[states - 1] = {}
    start = random.choice(
        [
            0,
            Start.draw(draw_outcomes(random, states)),
            Start({"east": draw_outcomes(random, states), "west": [Outcome(1, 0, 0)]}),
        ]
    )
    return Table(table, random.choice([1, 2, 2, 3]), random.choice([1, Fraction(1, 2)]), start)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_certificates_hold_for_who_follows_what_can_be_seen(solver: Any, seed: int) -> None:
    random = Random(seed)
    model = draw_model(random)
    bound = vulcan.Linear(0.02, random.choice([0.01, 0.03, 0.1]))
    problem = vulcan.Problem(model, bound)
    limits = {"samples": 300} if solver.sampling else {}
    result = vulcan.solve(problem, solver, **limits)
    if result.policy is not None and result.policy.complete:
        certificate = vulcan.certify(problem, result.policy, exact=True)
        assert (certificate.reward, certificate.risk) == follow(result.policy, model)


TREATMENT = Table(
    {
        "ill": {"treat": [Outcome(0.5, 0.0, "mild"), Outcome(0.5, 0.0, "mild")]},
        "mild": {
            "operate": [Outcome(0.98, 1.0, "well"), Outcome.failure(0.02)],
            "wait": [Outcome(1.0, 0.0, "well")],
        },
    },
    horizon=2,
    start="ill",
)
"""Two causes of the same state, which are not observable."""


@pytest.mark.parametrize("solver", SOLVERS[:4], ids=str)
def test_no_policy_acts_on_what_is_not_observed(solver: Any) -> None:
    # To operate in half of the cases would be within the bound, but there are no halves to see.
    result = vulcan.solve(vulcan.Problem(TREATMENT, vulcan.Constant(0.01)), solver)
    assert (result.certificate.reward, result.certificate.risk) == (0, 0)
    run = result.policy.start()
    assert run.expected == {"mild": 1.0}


def test_rewards_that_differ_are_seen() -> None:
    seen = Table(
        TREATMENT.table | {"ill": {"treat": [Outcome(0.5, k, "mild") for k in (0.0, 2.5)]}},
        horizon=2,
        start="ill",
    )
    result = vulcan.solve(vulcan.Problem(seen, vulcan.Constant(0.01)))
    assert result.certificate.risk == pytest.approx(0.01)
    assert result.policy.start().expected == {"mild, reward 0": 0.5, "mild, reward 2.5": 0.5}
    assert follow(result.policy, seen)[1] == pytest.approx(0.01)


class Turning(Table):
    """A model whose two equally probable outcomes change places."""

    turned = False

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        outcomes = super().outcomes(state, action)
        return outcomes[::-1] if self.turned else outcomes


def test_outcomes_that_change_places_get_no_certificate() -> None:
    # Its numbers are as they were: only the texts of states show that they are others.
    cure = {"operate": [Outcome(0.9, 1.0, "well"), Outcome.failure(0.1)]}
    wait = {"wait": [Outcome(1.0, 0.0, "well")]}
    turning = Turning(
        {
            "ill": {"treat": [Outcome(0.5, 0.0, "mild"), Outcome(0.5, 0.0, "bad")]},
            "mild": cure | wait,
            "bad": {"operate": [Outcome(0.5, 1.0, "well"), Outcome.failure(0.5)]} | wait,
        },
        horizon=2,
        start="ill",
    )
    problem = vulcan.Problem(turning, vulcan.Constant(0.05))
    policy = vulcan.solve(problem).policy
    assert vulcan.certify(problem, policy).risk == pytest.approx(0.05)
    turning.turned = True
    changed = r"\['bad', 'mild'\]; the policy was made with \['mild', 'bad'\]"
    with pytest.raises(vulcan.errors.MismatchError, match=changed):
        vulcan.certify(problem, policy)
    with pytest.raises(vulcan.errors.MismatchError, match=changed):
        policy.bind(turning).start().observe("mild")
