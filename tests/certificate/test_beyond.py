"""Plans with a frontier, bounded by what the model claims of whatever follows."""

from __future__ import annotations

import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
import vulcan_check
from tests.helpers.builder import PolicyBuilder
from vulcan import Outcome, Policy
from vulcan.errors import MismatchError, PolicyError, PolicyFileError, VulcanError
from vulcan.model.reader import ModelReader
from vulcan.numerics import ANY, DEFAULT, END, FAILED, UNPLANNED
from vulcan.policy.policy import Beyond, RandomisedPolicy
from vulcan.solvers.base import describe_origin

TOLERANCE = 1e-9


class Coast:
    """Histories of a vehicle; numbers that depend on all that happened."""

    merges = False
    default_action_name = "wait"

    def __init__(self, seed: int = 0, horizon: int = 3, discount: float = 1.0) -> None:
        self.seed, self.horizon, self.discount = seed, horizon, discount
        self.least_reward = -1.5

    def initial_state(self) -> tuple[int, ...]:
        return ()

    def actions(self, state: tuple[int, ...]) -> list[str]:
        return ["wait", "go"]

    def outcomes(self, state: tuple[int, ...], action: str) -> list[Outcome]:
        random = np.random.default_rng([self.seed, len(state), *state, action == "go"])
        risk = float(random.choice([0.0, 0.01, 0.1])) * (1 + (action == "go"))
        share = float(random.uniform(0.2, 0.8))
        pay = random.uniform(-1.5, 3.0, 3)
        return [
            Outcome((1 - risk) * share, float(pay[0]), (*state, 0), "low"),
            Outcome(1 - risk - (1 - risk) * share, float(pay[1]), (*state, 1), "high"),
            Outcome.failure(risk, float(pay[2])),
        ]

    def default_action(self, state: tuple[int, ...]) -> str:
        return self.default_action_name

    def default_bounds(self, state: tuple[int, ...], step: int) -> tuple[float, float]:
        """The exact figures of waiting, with some room."""
        risk, reward = follow(self, state, step, lambda state, step: "wait")
        return min(1.0, risk + 0.01), reward - 0.05


def follow(model: Any, state: Any, step: int, choose: Any) -> tuple[float, float]:
    """Return risk and reward of a rule from a state on."""
    if step == model.horizon:
        return 0.0, 0.0
    risk = reward = 0.0
    for outcome in model.outcomes(state, choose(state, step)):
        reward += outcome.probability * outcome.reward
        if outcome.fails:
            risk += outcome.probability
        else:
            later = follow(model, outcome.state, step + 1, choose)
            risk += outcome.probability * later[0]
            reward += outcome.probability * model.discount * later[1]
    return risk, reward


def make_plan(model: Coast, depth: int, claim: str = DEFAULT, bits: int = 0) -> Policy:
    """Return a plan of some depth, its actions by the bits of a number, with a bounded frontier."""
    reader = ModelReader(model)
    builder = PolicyBuilder(describe_origin(vulcan.Problem(model, "0.5"), reader, "a test"))
    histories: list[tuple[int, ...]] = [()]
    claims: list[tuple[float, float]] = []
    for number, state in enumerate(histories):  # grows meanwhile
        action = ("wait", "go")[bits >> number & 1]
        outcomes, children = reader.outcomes(state, action), []
        for outcome in outcomes:
            child = FAILED if outcome.fails else END
            if not outcome.fails and len(state) + 1 < depth:
                child = len(histories)
                histories.append(outcome.state)
            elif not outcome.fails and depth < model.horizon:
                child = UNPLANNED
                risk, reward = reader.bound_continuation(claim, outcome.state, depth)
                claims.append((float(risk), float(reward)))
            children.append(child)
        builder.decide(action, outcomes, children)
    policy = builder.build()
    if claims:
        policy.beyond = Beyond(claim, *np.array(claims).T)
    return policy


def list_rules(model: Coast, depth: int, bits: int) -> list[Any]:
    """Return all ways to go on after a plan of some depth, as rules from histories to actions."""
    planned = histories_until(depth)
    later = [state for state in histories_until(model.horizon - 1) if len(state) >= depth]

    def rule(code: int) -> Any:
        def choose(state: tuple[int, ...], step: int) -> str:
            if step < depth:
                return ("wait", "go")[bits >> planned.index(state) & 1]
            return ("wait", "go")[code >> later.index(state) & 1]

        return choose

    return [rule(code) for code in range(2 ** len(later))]


def histories_until(depth: int) -> list[tuple[int, ...]]:
    """Return the safe histories of at most this many steps, level by level."""
    found: list[tuple[int, ...]] = [()]
    for state in found:
        if len(state) < depth:
            found += [(*state, 0), (*state, 1)]
    return found


seeds = st.integers(0, 10_000)
depths = st.integers(1, 2)
discounts = st.sampled_from([1.0, 0.9])


@settings(max_examples=40, deadline=None)
@given(seeds, depths, discounts, st.integers(0, 7), st.floats(0, 0.4))
def test_whatever_follows_is_within_the_certificate(seed, depth, discount, bits, slope):
    model = Coast(seed, 3, discount)
    problem = vulcan.Problem(model, vulcan.Linear(slope, 0.6))
    certificate = vulcan.certify(problem, make_plan(model, depth, ANY, bits))
    assert certificate.beyond == ANY
    for choose in list_rules(model, depth, bits):
        risk, reward = follow(model, (), 0, choose)
        assert risk <= certificate.risk + TOLERANCE
        assert reward >= certificate.reward - TOLERANCE
        assert not certificate.safe or risk <= problem.risk_bound(reward) + TOLERANCE


@settings(max_examples=40, deadline=None)
@given(seeds, depths, discounts, st.integers(0, 7))
def test_the_default_action_keeps_what_is_claimed_of_it(seed, depth, discount, bits):
    model = Coast(seed, 3, discount)
    certificate = vulcan.certify(vulcan.Problem(model, "0.5"), make_plan(model, depth, bits=bits))
    risk, reward = follow(model, (), 0, list_rules(model, depth, bits)[0])  # always "wait"
    assert risk <= certificate.risk + TOLERANCE <= risk + 0.01 * certificate.frontier + 1e-6
    assert reward >= certificate.reward - TOLERANCE >= reward - 0.05 - 1e-6


def test_the_arithmetic_is_exact() -> None:
    """Sums along the plan, in fractions; and a certificate in floats is within its errors."""
    model = Coast(5, 3, 0.9)
    problem = vulcan.Problem(model, "0.5")
    policy = make_plan(model, 2, bits=5)
    exact, rounded = (vulcan.certify(problem, policy, exact=flag) for flag in (True, False))
    beyond = iter(zip(policy.beyond.risk, policy.beyond.reward, strict=True))
    reward, risk, frontier = Fraction(0), Fraction(0), Fraction(0)
    reach = {0: (Fraction(1), Fraction(1))}
    for node in range(len(policy)):
        chance, weight = reach[node]
        for row in policy.outcomes(node):
            p, child = chance * Fraction(policy.probability[row]), int(policy.child[row])
            reward += weight * p * Fraction(policy.reward[row])
            later = weight * Fraction(0.9)
            if child >= 0:
                reach[child] = p, later
            elif child == FAILED:
                risk += p
            elif child == UNPLANNED:
                u, low = map(Fraction, next(beyond))
                risk, reward, frontier = risk + p * u, reward + p * later * low, frontier + p
    assert (exact.reward, exact.risk, exact.frontier) == (reward, risk, frontier)
    for name in ("reward", "risk", "frontier"):
        off = abs(Fraction(getattr(rounded, name)) - getattr(exact, name))
        assert off <= getattr(rounded, f"{name}_error")


@settings(max_examples=20, deadline=None)
@given(seeds, depths, discounts, st.integers(0, 7), st.sampled_from([ANY, DEFAULT]))
def test_the_parts_of_an_explanation_are_those_of_the_certificate(
    seed, depth, discount, bits, claim
):
    model = Coast(seed, 3, discount)
    problem, plan = vulcan.Problem(model, "0.5"), make_plan(model, depth, claim, bits)
    certificate, found = vulcan.certify(problem, plan), vulcan.explain(problem, plan)
    whole = pytest.approx((certificate.reward, certificate.risk))
    assert (found.reward, found.risk) == whole
    for parts in (found.choices, found.actions):
        assert (sum(part.reward for part in parts), sum(part.risk for part in parts)) == whole
    accepted = sum(part.accepted for part in found.actions)
    assert found.unavoidable + accepted == pytest.approx(certificate.risk)
    assert found.claimed == pytest.approx(certificate.risk - sum(found.steps))


def test_the_margin_multiplies_what_is_claimed_too() -> None:
    model = Coast(1)
    policy = make_plan(model, 2)
    certificate = vulcan.certify(vulcan.Problem(model, "0.5"), policy)
    tight = vulcan.certify(vulcan.Problem(model, f"{2 * certificate.risk}"), policy)
    assert 1 < tight.margin < 2.5


def test_files(tmp_path: Path) -> None:
    model = Coast(3)
    for claim in (ANY, DEFAULT):
        policy = make_plan(model, 2, claim)
        path = tmp_path / "plan.vulcan"
        policy.save(path)
        assert path.read_bytes()[8] == 3  # the format
        loaded = Policy.load(path)
        assert loaded == policy
        assert loaded.beyond.claim == claim
        assert loaded != policy.cut_off()
        certificate = vulcan.certify(vulcan.Problem(model, "2*x + 9"), loaded, exact=True)
        answers = {"2*x + 9": vulcan_check.SAFE, "0.0001": vulcan_check.NOT_SAFE}
        for bound, answer in answers.items():
            assert vulcan_check.main([str(path), "--bound", bound]) == answer
        _, sums, _ = vulcan_check.evaluate_policy(str(path))
        assert sums == [certificate.reward, certificate.risk, certificate.frontier]
        policy.cut_off().save(path)
        assert path.read_bytes()[8] == 1
        assert vulcan_check.main([str(path), "--bound", "2*x + 9"]) == vulcan_check.NOT_SAFE


@pytest.mark.parametrize("wrong", ["claim", "count", "risk", "reward"])
def test_damaged_bounds_are_refused(wrong: str, tmp_path: Path) -> None:
    policy = make_plan(Coast(3), 2)
    claim, risk, reward = policy.beyond
    policy.beyond = {
        "claim": Beyond("hope", risk, reward),
        "count": Beyond(claim, risk[1:], reward),
        "risk": Beyond(claim, risk + 1, reward),
        "reward": Beyond(claim, risk, reward + np.nan),
    }[wrong]
    policy.save(tmp_path / "plan.vulcan")
    with pytest.raises(PolicyFileError, match="frontier"):
        Policy.load(tmp_path / "plan.vulcan")
    assert vulcan_check.main([str(tmp_path / "plan.vulcan")]) == vulcan_check.BAD_FILE
    with pytest.raises(MismatchError, match="damaged"):
        vulcan.certify(vulcan.Problem(Coast(3), "0.5"), policy)


class Bolder(Coast):
    def default_bounds(self, state: tuple[int, ...], step: int) -> tuple[float, float]:
        risk, reward = super().default_bounds(state, step)
        return risk / 2, reward

    fingerprint = "Coast"


def test_a_model_that_claims_something_else_is_refused() -> None:
    honest, bold = Coast(3), Bolder(3)
    honest.fingerprint = "Coast"
    with pytest.raises(MismatchError, match=r"recorded \(largest risk, least reward\) is"):
        vulcan.certify(vulcan.Problem(honest, "0.5"), make_plan(bold, 2))
    honest.least_reward = None
    with pytest.raises(MismatchError, match="no least_reward"):
        vulcan.certify(vulcan.Problem(honest, "0.5"), make_plan(Coast(3), 2, ANY))


def test_the_least_reward_is_checked_on_every_answer() -> None:
    model = Coast(3)
    model.least_reward = 0.5
    with pytest.raises(VulcanError, match="is below least_reward"):
        vulcan.certify(vulcan.Problem(model, "0.5"), make_plan(Coast(3), 2))


@pytest.mark.parametrize("claimed", [0.1, (2.0, 0.0), (0.1, float("nan")), ("a", 0.0), (0.1,)])
def test_claims_must_be_numbers(claimed: Any) -> None:
    model = Coast(3, horizon=80)
    model.default_bounds = lambda state, step: claimed
    with pytest.raises(VulcanError, match="default_bounds must be a risk from 0 to 1"):
        vulcan.solve(vulcan.Problem(model, "0.5"), vulcan.Growth(), samples=500)


def test_no_member_of_a_mixture() -> None:
    plan = make_plan(Coast(3), 2)
    with pytest.raises(PolicyError, match="frontier"):
        RandomisedPolicy([plan, plan], [0.5, 0.5])


def test_a_run_goes_on_by_the_default_action_to_the_end() -> None:
    model = Coast(3, horizon=4)
    run = make_plan(model, 2, bits=7).bind(model).start()
    for step in range(4):
        assert not run.finished
        assert run.action == ("go" if step < 2 else "wait")
        assert set(run.expected) == {"low", "high"} | ({"failure"} & set(run.expected))
        if step >= 2:
            claims = model.default_bounds(run.state, step)
            assert (run.risk, run.reward_ahead) == pytest.approx(claims)
        run.observe("low")
    assert run.finished
    assert not run.unplanned
    assert run.risk == 0.0


def test_replans_on_both_sides_of_the_frontier_keep_the_promise() -> None:
    """The whole, over all histories, when every step before and after the frontier is replanned."""
    improved = 0
    for seed in range(12):
        model = Coast(seed, horizon=4)
        problem = vulcan.Problem(model, vulcan.Linear(0.02, 0.35))
        plan = make_plan(model, 2).bind(model)
        first = vulcan.certify(problem, plan)
        if not first.safe:
            continue
        plan = Policy(
            vulcan.solve(problem, vulcan.Growth(), samples=50).policy.about,
            plan.labels,
            *(getattr(plan, name) for name in Policy.ARRAYS),
            plan.beyond,
        ).bind(model)
        risk, reward = act(plan.start(), set(range(1, 4)))
        assert risk <= problem.risk_bound(reward) + TOLERANCE
        assert reward >= first.reward - TOLERANCE
        improved += reward > first.reward + 0.06
    assert improved > 3


def act(run: Any, levels: set[int]) -> tuple[float, float]:
    """Return risk and reward from here on, where runs replan at some levels."""
    if run.finished:
        return 0.0, 0.0
    if run.level in levels:
        vulcan.replan(run, vulcan.Growth(), samples=60)
    risk = reward = 0.0
    for outcome in run.reader.outcomes(run.state, run.action):
        then = copy.copy(run)
        then.observe(outcome.label or "failure")
        later = act(then, levels)
        risk += outcome.probability * (1.0 if outcome.fails else later[0])
        reward += outcome.probability * (outcome.reward + later[1])
    return risk, reward


class Contradicting(Coast):
    """Its claim for the first history is bolder than for those after it."""

    def default_bounds(self, state: tuple[int, ...], step: int) -> tuple[float, float]:
        risk, reward = super().default_bounds(state, step)
        return (risk, reward) if step < 3 else (min(1.0, risk + 0.3), reward)


def test_claims_that_contradict_each_other_are_not_exchanged_for_risk() -> None:
    model = Contradicting(3, horizon=4)
    plan = make_plan(model, 2).bind(model)
    run = plan.start()
    for _ in range(3):
        run.observe("low")
    assert run.action == "wait"
    assert not run.replaceable
    assert not vulcan.replan(run, vulcan.Growth(), samples=60, risk_bound="0.5").changed


def test_growth_bounds_what_it_does_not_plan() -> None:
    model = Coast(2, horizon=80)
    problem = vulcan.Problem(model, vulcan.Linear(0.05, 0.99))
    model.default_bounds = lambda state, step: (0.001 * (80 - step), 0.0)
    result = vulcan.solve(problem, vulcan.Growth(), samples=3_000)
    assert result.certificate.beyond == DEFAULT
    assert result.certificate.complete is False
    assert "claimed by the model" in str(result)
    more = vulcan.solve(problem, vulcan.Growth(), samples=9_000)
    assert more.certificate.reward >= result.certificate.reward


class Narrow:
    """Nearly always the same happens, so that little is left beyond a small plan."""

    horizon, merges, least_reward = 70, False, 0.0

    def initial_state(self) -> tuple[int, ...]:
        return ()

    def actions(self, state: tuple[int, ...]) -> list[str]:
        return ["wait", "go"]

    def outcomes(self, state: tuple[int, ...], action: str) -> list[Outcome]:
        pay = 1.0 if action == "wait" else 1.5
        return [
            Outcome(0.9995, pay, (*state, 0), "low"),
            Outcome(0.0005, 0.0, (*state, 1), "high"),
        ]


def test_growth_without_any_default_is_safe_whatever_happens() -> None:
    problem = vulcan.Problem(Narrow(), "0.1")
    result = vulcan.solve(problem, vulcan.Growth(), samples=20_000)
    assert result.safe
    assert result.certificate.beyond == ANY
    assert "safe whatever happens beyond its frontier, probability" in str(result)
    assert result.certificate.reward > 60
