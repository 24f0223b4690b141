"""Policies made by hand, compared, drawn, and followed."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import pytest

import vulcan
from tests.helpers.builder import PolicyBuilder
from tests.helpers.mixtures import CHOICE, mix, take
from tests.helpers.tables import Table, one_action
from vulcan import Outcome, Policy
from vulcan.domains import Bandit
from vulcan.errors import MismatchError, PolicyError
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.policy import RandomisedPolicy
from vulcan.policy.policy import About

ABOUT = About("Walk(5)", "123", 5, 0.5, None, "hand")


def make_chain(length: int = 5, wide: int = 2, last: int = END) -> Policy:
    """Return a policy that goes on after its first outcome; the others are ends."""
    builder = PolicyBuilder(ABOUT)
    for node in range(length):
        labels = [f"{k}" for k in range(wide)] + ["lost"]
        chances = [0.75 / wide] * wide + [0.25]
        then = node + 1 if node + 1 < length else last
        children = [then] + [END] * (wide - 1) + [FAILED]
        builder.add(f"walk {node}", labels, chances, [1.0] * wide + [0.0], children)
    return builder.build()


@pytest.mark.parametrize(
    ("discount", "initial", "first"),
    [(1.0, None, 1.0), (0.5, True, 1.0), (0.5, False, 0.5), (0.5, None, math.nan)],
)
def test_first_discount(discount: float, initial: bool | None, first: float) -> None:
    about = About("model", "", 3, discount, None, "", initial)
    assert about.first_discount == pytest.approx(first, nan_ok=True)


def test_a_policy_stays_as_it_is() -> None:
    policy = make_chain()
    for name in policy.ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(policy, name)[0] = 0


def test_a_policy_with_a_frontier_is_not_complete() -> None:
    whole, cut = make_chain(), make_chain(last=UNPLANNED)
    assert whole.complete
    assert not cut.complete
    assert RandomisedPolicy([whole, whole], [0.5, 0.5]).complete
    assert not RandomisedPolicy([whole, cut], [0.5, 0.5]).complete


def test_policies_differ_by_each_array_and_by_labels() -> None:
    policy = make_chain()
    arrays = {name: getattr(policy, name) for name in policy.ARRAYS}
    assert policy == Policy(ABOUT, policy.labels, **arrays)
    for name, array in arrays.items():
        changed = arrays | {name: array + array.dtype.type(1)}
        assert policy != Policy(ABOUT, policy.labels, **changed)
    assert policy != Policy(ABOUT, [*policy.labels[:-1], "other"], **arrays)


def test_policies_pass_to_other_processes_with_their_model() -> None:
    model = one_action(Outcome(1.0, 0.0, 1))
    policy = make_chain()
    copy = pickle.loads(pickle.dumps(policy))
    assert copy == policy
    assert copy.about == policy.about
    assert copy.reader is None
    bound = policy.attach(ModelReader(model))
    assert bound == policy
    assert pickle.loads(pickle.dumps(bound)).reader.model == model
    assert bound.attach(None).reader is None
    mixed = RandomisedPolicy([bound, policy], [0.25, 0.75])
    again = pickle.loads(pickle.dumps(mixed))
    assert again == mixed
    assert [member.reader is None for member in again.members] == [False, True]
    assert [member.reader for member in mixed.attach(None).members] == [None, None]


def test_randomised_policies_say_how_many_they_are() -> None:
    policy = make_chain()
    one, two = RandomisedPolicy([policy], [1]), RandomisedPolicy([policy, policy], [0.5, 0.5])
    assert repr(one) == "<RandomisedPolicy for Walk(5): 1 member, 5 decision nodes>"
    assert repr(two) == "<RandomisedPolicy for Walk(5): 2 members, 10 decision nodes>"
    assert two.about is policy.about


def test_drawing(policy: Policy) -> None:
    lines = str(policy).splitlines()
    assert lines[0] == "play 1  (fails 0.1 %)"
    assert lines[1].startswith("├─ 50.0 %  pays 0 → play")
    assert lines[-1].startswith("      └─ 63.7 %  pays 1 → play 1  (fails 0.1 %) …")
    assert policy.draw(depth=1).splitlines() == [
        "play 1  (fails 0.1 %)",
        "├─ 50.0 %  pays 0 → play 2  (fails 0.05 %) …",
        "└─ 50.0 %  pays 1 → play 1  (fails 0.1 %) …",
    ]
    short = policy.draw(depth=4, most_lines=5).splitlines()
    assert len(short) == 6
    assert "15 decision nodes" in short[-1]
    assert "nothing to decide" in str(
        vulcan.solve(
            vulcan.Problem(Table({}, 1), vulcan.Constant(0)), vulcan.ForwardSearch()
        ).policy
    )


# What it is


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
    with pytest.raises(PolicyError, match=problem):
        RandomisedPolicy([take("leap"), take("rest")], weights)


def test_members_are_policies_of_one_model(bandit: RandomisedPolicy) -> None:
    with pytest.raises(PolicyError, match="at least one member"):
        RandomisedPolicy([], [])
    with pytest.raises(PolicyError, match="must be a deterministic policy, not <Randomised"):
        RandomisedPolicy([bandit, bandit], [0.5, 0.5])
    other = vulcan.solve(
        vulcan.Problem(Bandit(2), vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy
    with pytest.raises(
        PolicyError,
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


def test_a_run_follows_the_member_that_was_drawn(bandit: RandomisedPolicy) -> None:
    for seed in range(20):
        run = bandit.start(seed)
        member = run.policy.start()
        while not run.finished:
            assert run.action == member.action
            run.observe(0)
            member.observe(0)
        assert member.finished


def test_bound_policies_give_the_models_own_actions(bandit, saved_bandit):
    loaded = Policy.load(saved_bandit)
    model = Bandit(3)
    bound = loaded.bind(model)
    assert bound == loaded
    for seed in range(20):
        label, action = loaded.start(seed).action, bound.start(seed).action
        assert isinstance(label, str)
        assert action in model.actions(model.initial_state())
    with pytest.raises(MismatchError, match=r"made for Bandit\(horizon=3\).*differently"):
        loaded.bind(Bandit(4))
