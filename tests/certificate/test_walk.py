"""The chain of a policy: places, transitions, and models that differ from the policy's record."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

import vulcan
from tests.helpers.builder import PolicyBuilder
from tests.helpers.certified import CERTIFIED, FADING, TRIP, VANISHING
from tests.helpers.plans import build_merged
from tests.helpers.tables import Table, one_action
from vulcan import Outcome
from vulcan.certificate.walk import Chain, follow_policy
from vulcan.domains import Bandit, Grid
from vulcan.model import reader as strict_reader
from vulcan.model.reader import ModelReader, StrictReader
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.policy.policy import AnyPolicy, Policy, RandomisedPolicy


def follow(model: Any, policy: AnyPolicy) -> Chain:
    return follow_policy(policy, StrictReader(model))[0]


def test_members_share_the_evaluations_of_a_model_that_never_merges() -> None:
    bandit = Bandit(4, merges=False)
    member = build_merged(bandit)
    _, alone = follow_policy(member, ModelReader(bandit))
    chain, both = follow_policy(RandomisedPolicy([member] * 2, [0.5] * 2), ModelReader(bandit))
    assert both < 2 * alone
    assert chain.sizes[0] == 2


def test_decisions_need_not_be_numbered_level_by_level() -> None:
    start = {"a": [Outcome(0.5, 1.0, 1), Outcome(0.5, 0.0, 2)]}
    table = {0: start, 1: {"a": [Outcome(1.0, 2.0, 3)]}, 2: {"a": [Outcome(1.0, 3.0, 4)]}}
    last = {k: {"a": [Outcome(1.0, 1.0, 9)]} for k in (3, 4)}
    problem = vulcan.Problem(Table({**table, **last}, horizon=3), 0.0)
    policy = vulcan.solve(problem, vulcan.Lagrangian()).policy
    assert policy.child.tolist() == [1, 2, 3, 4, -1, -1]
    order = [0, 1, 3, 2, 4]  # depth first
    numbers = np.argsort(order).astype(np.int32)
    by_node = [policy.outcomes(node) for node in order]
    rows = np.concatenate([np.array(span) for span in by_node])
    child = np.array([c if c < 0 else numbers[c] for c in policy.child[rows]], np.int32)
    other = Policy(
        policy.about,
        policy.labels,
        policy.action[order],
        np.concatenate(([0], np.cumsum([len(span) for span in by_node]))),
        policy.label[rows],
        policy.probability[rows],
        policy.reward[rows],
        child,
    )
    assert vulcan.certify(problem, other).reward == vulcan.certify(problem, policy).reward


class Day:
    """A state that knows how many of them are alive."""

    alive: ClassVar[weakref.WeakSet[Day]] = weakref.WeakSet()
    most = 0

    def __init__(self, number: int) -> None:
        self.number = number
        Day.alive.add(self)
        Day.most = max(Day.most, len(Day.alive))


class Days:
    """A year whose days are all different, three of which may follow each."""

    horizon = 7
    merges = False

    def initial_state(self) -> Day:
        return Day(0)

    def actions(self, state: Day) -> list[str]:
        return ["live"]

    def outcomes(self, state: Day, action: str) -> list[Outcome]:
        days = (Outcome(0.25, 1.0, Day(3 * state.number + k), label=str(k)) for k in range(3))
        return [*days, Outcome.failure(0.25)]


def test_states_that_are_not_reached_again_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(Days(), vulcan.Constant(1.0))
    policy = vulcan.solve(problem, vulcan.LocalVulcan(), samples=10_000).policy
    assert len(policy) == sum(3**level for level in range(7))
    monkeypatch.setattr(strict_reader, "SAMPLED_STATES", 1)  # of which more are kept, to look twice
    gc.collect()
    before, Day.most = len(Day.alive), 0
    vulcan.certify(problem, policy)
    # A level of 3^6 = 729 states with the 2,187 after it, and not the 364 before.
    assert 2_187 < Day.most - before < 729 + 2_187 + 100


def test_watching_a_certificate_goes_from_the_first_level_to_the_last() -> None:
    shares: list[float] = []
    model = Grid(horizon=60)
    follow_policy(build_merged(model), ModelReader(model), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == 60


def test_histories_that_come_to_the_same_place_go_on_as_one() -> None:
    for model, sizes in ((TRIP, [1, 2, 3, 3, 3]), (VANISHING, [1, 2, 3, 3])):
        chain, evaluations = follow_policy(build_merged(model), ModelReader(model))
        assert chain.sizes.tolist() == sizes
        assert evaluations == 3
    assert follow(FADING, build_merged(FADING)).discounts == [0.9] * 5
    unmerged = replace(TRIP, horizon=4, merges=False)
    assert follow(unmerged, build_merged(unmerged)).sizes.tolist() == [1, 2, 5, 12]
    # Two members that do the same, and another one, are never in the same place.
    mixed = CERTIFIED["randomised"]
    chain, evaluations = follow_policy(mixed.policy, ModelReader(mixed.problem.model))
    assert chain.sizes.tolist() == [3, 6, 9, 9, 9]
    assert evaluations == 4


def test_a_policy_without_decisions() -> None:
    empty = build_merged(Table({}))
    assert len(follow(Table({}), empty)) == 0
    with pytest.raises(vulcan.errors.MismatchError, match="which has actions"):
        follow(TRIP, empty)


# Decisions 1 and 2 after the first one, and 3 and 4 after these.
MODEL = Table(
    {
        0: {"go": [Outcome(0.5, 1.0, 1), Outcome(0.25, 2.0, 2), Outcome.failure(0.25, 3.0)]},
        1: {"go": [Outcome(0.5, 1.0, 3), Outcome(0.5, 2.0, 9)], "on": [Outcome(1.0, 0.0, 9)]},
        2: {"go": [Outcome(0.5, 1.0, 4), Outcome(0.5, 2.0, 3)]},
        3: {"go": [Outcome(1.0, 1.0, 1)]},
        4: {"go": [Outcome(0.5, 1.0, 9), Outcome(0.5, 7.0, 8)]},
    },
    horizon=3,
)
PLANNED = build_merged(MODEL)


def change(name: str, place: int, value: float) -> Policy:
    """Return the policy with one number of one of its arrays changed."""
    arrays = {key: getattr(PLANNED, key).copy() for key in Policy.ARRAYS}
    arrays[name][place] = value
    return Policy(PLANNED.about, PLANNED.labels, **arrays)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        *(("probability", k, 0.125) for k in range(10)),
        *(("reward", k, -7.0) for k in range(10)),
        ("child", 0, FAILED),
        ("child", 2, END),  # where the model fails
        ("child", 0, END),  # where the state has actions
        ("child", 3, END),
        ("child", 0, 2),  # one decision in two states
        ("child", 5, 3),
        ("child", 0, 0),  # a decision that is taken at several levels
        ("child", 4, 0),
        ("child", 3, 1),
        ("child", 3, 2),
        ("child", 7, 4),  # beyond the horizon
        ("child", 9, 0),
    ],
)
def test_a_policy_that_differs_from_the_model_is_refused(name, place, value):
    assert PLANNED.child.tolist() == [1, 2, FAILED, 3, END, 4, 3, END, END, END]
    with pytest.raises(vulcan.errors.MismatchError):
        follow(MODEL, change(name, place, value))


def test_labels_of_the_model_must_be_those_of_the_policy() -> None:
    def answer(labels: str) -> Table:
        return one_action(*(Outcome(0.25, 1.0, 1, label) for label in labels))

    policy = build_merged(answer("abcd"))
    follow(answer("abcd"), policy)
    for labels in ("xbcd", "axcd", "abxd", "abcx", "bacd"):
        with pytest.raises(vulcan.errors.MismatchError):
            follow(answer(labels), policy)


def test_unreachable_decisions_are_not_evaluated() -> None:
    assert follow(MODEL, change("child", 1, UNPLANNED)).sizes.tolist() == [1, 1, 1]
    policy = build_merged(MODEL, lambda level, state, names: None if state == 4 else names[0])
    assert UNPLANNED in follow(MODEL, policy).target


def test_decisions_beyond_the_horizon_are_refused() -> None:
    longer = replace(MODEL, horizon=4)
    follow(longer, build_merged(longer))
    with pytest.raises(vulcan.errors.MismatchError, match="beyond the horizon"):
        follow(MODEL, build_merged(longer))


def test_a_decision_may_be_taken_at_several_levels() -> None:
    model = Table(
        {
            0: {"go": [Outcome(0.5, 1.0, 1), Outcome(0.5, 2.0, 2)]},
            1: {"go": [Outcome(1.0, 3.0, 2)]},
            2: {"go": [Outcome(1.0, 4.0, 9)]},
        },
        horizon=3,
    )
    builder = PolicyBuilder(build_merged(model).about)
    builder.add("go", ["1", "2"], [0.5, 0.5], [1.0, 2.0], [1, 2])
    builder.add("go", ["2"], [1.0], [3.0], [2])
    builder.add("go", ["9"], [1.0], [4.0], [END])
    policy = builder.build()
    assert vulcan.certify(vulcan.Problem(model, 0.0), policy).reward == 1.5 + 1.5 + 4.0


def rebuild(*decision: Any) -> Policy:
    """Return the policy with another first decision, after which nothing is planned."""
    builder = PolicyBuilder(PLANNED.about)
    builder.add(*decision, [UNPLANNED, UNPLANNED, FAILED, END][: len(decision[1])])
    return builder.build()


def test_another_number_of_outcomes_and_another_action() -> None:
    labels, chances, rewards = ["1", "2", "failure"], [0.5, 0.25, 0.25], [1.0, 2.0, 3.0]
    for wrong in (
        ("go", [*labels, "other"], [*chances, 0.0], [*rewards, 0.0]),
        ("go", labels[:2], chances[:2], rewards[:2]),
        ("fly", labels, chances, rewards),
    ):
        with pytest.raises(vulcan.errors.MismatchError):
            follow(MODEL, rebuild(*wrong))
    assert follow(MODEL, rebuild("go", labels, chances, rewards)).sizes.tolist() == [1]


def test_terminal_states_are_queried_once() -> None:
    class Counting(Table):
        """Counts how often actions are asked for."""

        def actions(self, state: Any) -> list[str]:
            self.calls[state, "actions"] = self.calls.get((state, "actions"), 0) + 1
            return super().actions(state)

    model = Counting(MODEL.table, horizon=3)
    follow_policy(RandomisedPolicy([PLANNED] * 2, [0.5] * 2), ModelReader(model))
    assert model.calls[9, "actions"] == 1
