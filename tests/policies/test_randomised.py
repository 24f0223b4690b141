"""Randomised policies: what they are, and how they are followed."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

import vulcan
from tests.helpers.mixtures import CHOICE, mix, take
from vulcan import Policy
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.policies.randomised import RandomisedPolicy

# What it is


def test_it_looks_like_a_policy(bandit: RandomisedPolicy) -> None:
    first, second = bandit.members
    assert len(bandit) == len(first) + len(second) == 14
    assert bandit.about == first.about
    assert bandit.complete
    assert repr(bandit) == "<RandomisedPolicy for Bandit(horizon=3): 2 members, 14 decision nodes>"
    assert "1 member, 7 decision nodes" in repr(RandomisedPolicy([first], [1.0]))
    assert first.members == (first,)
    assert first.weights == (1.0,)


def test_equality_is_about_members_and_weights(bandit: RandomisedPolicy) -> None:
    first, second = bandit.members
    assert bandit == RandomisedPolicy([first, second], [0.6, 0.4])
    assert bandit != RandomisedPolicy([first, second], [0.4, 0.6])
    assert bandit != RandomisedPolicy([second, first], [0.6, 0.4])
    assert bandit != first
    assert first != RandomisedPolicy([first], [1.0])


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1.0], "members and weights differ in number: 2 and 1"),
        ([0.5, 0.25, 0.25], "members and weights differ in number: 2 and 3"),
        ([1.0, 0.0], r"the weight 0\.0 is not positive"),
        ([1.5, -0.5], r"the weight -0\.5 is not positive"),
        ([0.5, math.nan], "the weight nan is not positive"),
        ([0.5, math.inf], "the weights sum to inf, not to 1"),
        ([0.5, 0.5 + 2e-12], r"the weights sum to 1\.000000000002\d*, not to 1"),
        ([0.5, 0.25], r"the weights sum to 0\.75, not to 1"),
    ],
)
def test_weights_are_probabilities(weights: list[float], problem: str) -> None:
    with pytest.raises(vulcan.PolicyError, match=problem):
        RandomisedPolicy([take("leap"), take("rest")], weights)


def test_members_are_policies_of_one_model(bandit: RandomisedPolicy) -> None:
    with pytest.raises(vulcan.PolicyError, match="at least one member"):
        RandomisedPolicy([], [])
    with pytest.raises(vulcan.PolicyError, match="must be a deterministic policy, not <Randomised"):
        RandomisedPolicy([bandit, bandit], [0.5, 0.5])
    other = vulcan.solve(
        vulcan.Problem(Bandit(2), vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy
    with pytest.raises(
        vulcan.PolicyError,
        match=r"members 1 and 2 .* different models: Bandit\(horizon=3\) and Bandit\(horizon=2\)",
    ):
        RandomisedPolicy([bandit.members[0], other], [0.5, 0.5])


def test_each_member_is_drawn_under_its_weight(bandit: RandomisedPolicy) -> None:
    assert bandit.draw(depth=1).splitlines() == [
        "member 1 of 2, drawn with probability 60.0 %",
        *bandit.members[0].draw(depth=1).splitlines(),
        "",
        "member 2 of 2, drawn with probability 40.0 %",
        *bandit.members[1].draw(depth=1).splitlines(),
    ]
    assert str(bandit) == bandit.draw()


def test_drawings_keep_to_the_number_of_lines(bandit: RandomisedPolicy) -> None:
    whole = len(bandit.draw(depth=9, most_lines=1000).splitlines())
    for most in range(12, whole + 3):
        lines = bandit.draw(depth=9, most_lines=most).splitlines()
        assert len(lines) <= most
        assert "member 2 of 2, drawn with probability 40.0 %" in lines
        assert any("decision nodes" in line for line in lines) == (len(lines) < whole)
    many = RandomisedPolicy([bandit.members[0]] * 50, [0.02] * 50).draw(depth=9, most_lines=20)
    assert len(many.splitlines()) <= 24
    assert many.splitlines()[-1].startswith("… (and 4")


# Following it


def test_draws_follow_the_weights() -> None:
    policy = RandomisedPolicy([take("leap"), take("rest"), take("leap")], [0.1, 0.7, 0.2])
    runs = [policy.start(seed) for seed in range(4000)]
    drawn = Counter(
        next(k for k, m in enumerate(policy.members) if m is run.policy) for run in runs
    )
    for k, weight in enumerate(policy.weights):
        # Four standard deviations; the seeds, and so the draws, are always the same.
        assert drawn[k] / 4000 == pytest.approx(weight, abs=4 * math.sqrt(weight / 4000))


def test_a_seed_draws_the_same_member_again() -> None:
    policy = mix(0.5)
    drawn = [policy.start(seed).action for seed in range(50)]
    assert set(drawn) == {"leap", "rest"}
    assert [policy.start(seed).action for seed in range(50)] == drawn
    assert [policy.attach(ModelReader(CHOICE)).start(k).action for k in range(50)] == drawn


def test_without_a_seed_every_start_draws_afresh() -> None:
    policy = mix(0.5)
    assert {policy.start().action for _ in range(200)} == {"leap", "rest"}


def test_a_run_follows_the_member_that_was_drawn(bandit: RandomisedPolicy) -> None:
    for seed in range(20):
        run = bandit.start(seed)
        member = run.policy.start()
        while not run.finished:
            assert run.action == member.action
            run.observe(0)
            member.observe(0)
        assert member.finished


def test_bound_policies_give_the_models_own_actions(
    bandit: RandomisedPolicy, saved_bandit: Path
) -> None:
    loaded = Policy.load(saved_bandit)
    model = Bandit(3)
    bound = loaded.bind(model)
    assert bound == loaded
    for seed in range(20):
        label, action = loaded.start(seed).action, bound.start(seed).action
        assert isinstance(label, str)
        assert action in model.actions(model.initial_state())
    with pytest.raises(vulcan.MismatchError, match=r"made for Bandit\(horizon=3\).*differently"):
        loaded.bind(Bandit(4))
