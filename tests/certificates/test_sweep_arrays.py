"""The chain by arrays: the very chain that the plain walk finds, or none at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.certified import CERTIFIED, FADING, FORKED, TRIP
from tests.helpers.plans import build, build_merged
from tests.helpers.tables import SEEDS, Table, one_action, tables
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome, Policy
from vulcan.certificates import sweep
from vulcan.certificates.chain import Chain, follow_places
from vulcan.domains import Bandit
from vulcan.model.careful import CarefulReader
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import PolicyBuilder
from vulcan.policies.randomised import AnyPolicy, RandomisedPolicy
from vulcan.policies.walk import PolicyWalk
from vulcan.sentinels import END, FAILED, UNPLANNED


def sweep_model(model: Any, members: Sequence[Policy]) -> tuple[Chain, int] | None:
    return sweep.sweep_policy(members, CarefulReader(model), lambda share: None)


def expect_the_same_chain(model: Any, policy: AnyPolicy) -> Chain:
    """Expect that arrays find the chain of the plain walk, and return it."""
    reader, shares, others = CarefulReader(model), [], []
    walk = PolicyWalk(policy, reader)
    plain = follow_places(walk, reader, others.append)
    swept = sweep.sweep_policy(policy.members, CarefulReader(model), shares.append)
    assert swept is not None
    chain, evaluations = swept
    assert chain.sizes.tolist() == plain.sizes.tolist()
    assert chain.source.tolist() == plain.source.tolist()
    assert chain.target.tolist() == plain.target.tolist()
    assert [said.tolist() for said in chain.said] == [list(map(float, n)) for n in plain.said]
    assert chain.discounts == plain.discounts
    assert evaluations == walk.evaluations
    assert len(shares) == sum(len(cut_levels(model, member)) for member in policy.members)
    if len(policy.members) == 1:
        assert shares == others
    return chain


def cut_levels(model: Any, member: Policy) -> list[int]:
    reader = CarefulReader(model)
    walk = PolicyWalk(member, reader)
    return follow_places(walk, reader, lambda share: None).sizes.tolist()


@pytest.mark.parametrize("name", [n for n in CERTIFIED if n[:5] not in ("empty", "fract")])
def test_recorded_policies(name: str) -> None:
    expect_the_same_chain(CERTIFIED[name].problem.model, CERTIFIED[name].policy)


@settings(max_examples=10, deadline=None)
@given(table=tables(), seed=SEEDS)
def test_random_trees_and_mixtures(table: Table, seed: int) -> None:
    random = Random(seed)
    trees = [build(table, random.choice(enumerate_plans(table))) for _ in range(3)]
    if not all(map(len, trees)):
        assert sweep_model(table, trees) is None
        return
    # A tree has the outcomes of each action with failures at the end, which the model need not.
    table = replace(
        table,
        table={
            state: {name: sorted(o, key=lambda o: o.fails) for name, o in actions.items()}
            for state, actions in table.table.items()
        },
    )
    plans = enumerate_plans(table)
    trees = [build(table, random.choice(plans)) for _ in range(3)]
    for tree in trees:
        expect_the_same_chain(table, tree)
    expect_the_same_chain(table, RandomisedPolicy(trees, [0.5, 0.25, 0.25]))


def test_members_of_different_lengths_labels_and_actions() -> None:
    table = Table(
        {
            0: {
                "stop": [Outcome(0.5, 1.0, 9, "x"), Outcome.failure(0.5, 2.0, "y")],
                "go": [Outcome(0.25, 1.0, 1, "z"), Outcome(0.75, 0.5, 2, "x")],
                "run": [Outcome(1.0, 1.5, 2, "w")],
            },
            1: {"run": [Outcome(1.0, 2.0, 0, "v")]},
            2: {"go": [Outcome(0.5, 3.0, 1, "y"), Outcome.failure(0.5, 0.0, "stop")]},
        },
        horizon=4,
    )
    policies = {
        name: build_merged(
            table, lambda level, state, names, name=name: name if state == 0 else names[0]
        )
        for name in ("stop", "go", "run")
    }
    for order in (["stop", "go", "run"], ["go", "stop"], ["run", "stop", "go"], ["stop"]):
        members = [policies[name] for name in order]
        weights = [1.0 / len(order)] * len(order)
        chain = expect_the_same_chain(table, RandomisedPolicy(members, weights))
        assert chain.sizes[0] == len(order)


def make_wide(states: int, horizon: int, actions: int = 1) -> Table:
    """Return a model in which ever more states are met, each with answers of its own."""

    def answer(state: int, action: int) -> list[Outcome]:
        following = [(3 * state + k + action) % states for k in (1, 2, 3)]
        risk = (1 + state) / 4096
        likely = (0.5, 0.25, 0.25 - risk)
        safe = [
            Outcome(p, float(state + k), s)
            for k, (p, s) in enumerate(zip(likely, following, strict=True))
        ]
        return [*safe, Outcome.failure(risk, -float(state))]

    names = [chr(ord("a") + k) for k in range(actions)]
    return Table(
        {
            state: {name: answer(state, k) for k, name in enumerate(names)}
            for state in range(states)
        },
        horizon,
    )


@pytest.mark.parametrize("states", [5, 150])
def test_tables_grow_with_states_answers_and_outcomes(states: int) -> None:
    model = make_wide(states, 6, actions=3)
    chain = expect_the_same_chain(model, build_merged(model))
    assert max(chain.sizes) > states // 2
    choose = lambda level, state, names: names[(level + state) % len(names)]  # noqa: E731
    members = [build_merged(model), build_merged(model, choose)]
    expect_the_same_chain(model, RandomisedPolicy(members, [0.5, 0.5]))


def test_histories_are_never_the_same_state() -> None:
    model = replace(TRIP, horizon=4, merges=False)
    chain = expect_the_same_chain(model, build_merged(model))
    assert chain.sizes.tolist() == [1, 2, 5, 12]
    bandit = Bandit(4, merges=False)
    expect_the_same_chain(bandit, build_merged(bandit))


def test_a_state_may_come_again_at_any_level() -> None:
    for model in (TRIP, FADING, FORKED):
        expect_the_same_chain(replace(model, horizon=30), build_merged(replace(model, horizon=30)))


def test_numbers_of_other_kinds_that_are_floats() -> None:
    safe = [Outcome(np.float32(0.5), 3, 1), Outcome(Fraction(1, 4), np.int64(2), 2)]
    expect_the_same_chain(model := one_action(*safe, Outcome.failure(0.25)), build_merged(model))


def test_fractions_that_are_no_floats_are_left_to_the_plain_walk() -> None:
    third = Fraction(1, 3)
    for outcomes in (
        [Outcome(third, 1.0, 1), Outcome(1 - third, 1.0, 2)],
        [Outcome(0.5, third, 1), Outcome(0.5, 1.0, 2)],
        [Outcome(0.5, 1.0, 1), Outcome(0.5, third, 2)],
    ):
        model = one_action(*outcomes)
        assert sweep_model(model, [build_merged(model)]) is None


def test_policies_without_decisions_are_left_to_the_plain_walk() -> None:
    model, empty = TRIP, build_merged(Table({}))
    assert sweep_model(Table({}), [empty]) is None
    assert sweep_model(model, [build_merged(model), empty]) is None


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


def test_the_policy_to_be_changed() -> None:
    assert PLANNED.child.tolist() == [1, 2, FAILED, 3, END, 4, 3, END, END, END]
    expect_the_same_chain(MODEL, PLANNED)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        *(("probability", k, 0.125) for k in range(10)),
        *(("reward", k, -7.0) for k in range(10)),
        *(("label", k, n) for k in (0, 2, 4, 9) for n in range(5) if n != PLANNED.label[k]),
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
def test_anything_else_is_left_to_the_plain_walk(name: str, place: int, value: float) -> None:
    changed = change(name, place, value)
    assert changed != PLANNED
    assert sweep_model(MODEL, [changed]) is None


def test_decisions_that_nothing_leads_to_are_not_asked_for() -> None:
    chain = expect_the_same_chain(MODEL, change("child", 1, UNPLANNED))
    assert chain.sizes.tolist() == [1, 1, 1]


def test_decisions_beyond_the_horizon_are_left_to_the_plain_walk() -> None:
    longer = replace(MODEL, horizon=4)
    expect_the_same_chain(longer, build_merged(longer))
    assert sweep_model(MODEL, [build_merged(longer)]) is None


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
    expect_the_same_chain(model, policy)


def test_where_nothing_is_planned_nothing_is_asked() -> None:
    policy = build_merged(MODEL, lambda level, state, names: None if state == 4 else names[0])
    chain = expect_the_same_chain(MODEL, policy)
    assert UNPLANNED in chain.target


def rebuild(change: Callable[[PolicyBuilder], None]) -> Policy:
    builder = PolicyBuilder(PLANNED.about)
    change(builder)
    return builder.build()


def test_another_number_of_outcomes_and_another_action() -> None:
    def more(builder: PolicyBuilder) -> None:
        labels = ["1", "2", "failure", "other"]
        builder.add("go", labels, [0.5, 0.25, 0.25, 0.0], [1.0, 2.0, 3.0, 0.0], [END] * 4)

    def fewer(builder: PolicyBuilder) -> None:
        builder.add("go", ["1", "2"], [0.5, 0.25], [1.0, 2.0], [UNPLANNED] * 2)

    def other(builder: PolicyBuilder) -> None:
        builder.add(
            "fly", ["1", "2", "failure"], [0.5, 0.25, 0.25], [1.0, 2.0, 3.0], [UNPLANNED] * 3
        )

    def same(builder: PolicyBuilder) -> None:
        children = [UNPLANNED, UNPLANNED, FAILED]
        builder.add("go", ["1", "2", "failure"], [0.5, 0.25, 0.25], [1.0, 2.0, 3.0], children)

    for wrong in (more, fewer, other):
        assert sweep_model(MODEL, [rebuild(wrong)]) is None
    assert sweep_model(MODEL, [rebuild(same)]) is not None


def test_a_label_that_the_policy_does_not_know_is_none_of_its_own() -> None:
    def answer(labels: str) -> Table:
        return one_action(*(Outcome(0.25, 1.0, 1, label) for label in labels))

    policy = build_merged(answer("abcd"))
    assert sweep_model(answer("abcd"), [policy]) is not None
    for labels in ("xbcd", "axcd", "abxd", "abcx", "bacd"):
        assert sweep_model(answer(labels), [policy]) is None


def test_states_that_end_are_asked_once() -> None:
    class Counting(Table):
        """Counts how often actions are asked for."""

        def actions(self, state: Any) -> list[str]:
            self.calls[state, "actions"] = self.calls.get((state, "actions"), 0) + 1
            return super().actions(state)

    model = Counting(MODEL.table, horizon=3)
    reader = ModelReader(model)
    assert sweep.sweep_policy([PLANNED] * 3, reader, lambda share: None) is not None
    assert model.calls[9, "actions"] == 1


def test_states_that_can_not_be_compared_are_an_error() -> None:
    class Odd:
        """Is looked up where 0 is, and can't be told from it."""

        def __hash__(self) -> int:
            return hash(0)

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

    model = one_action(Outcome(1.0, 1.0, Odd(), "odd"))
    policy = build_merged(one_action(Outcome(1.0, 1.0, 1, "odd")))
    with pytest.raises(vulcan.ModelError, match="comparing a state with others raised"):
        sweep.sweep_policy([policy], ModelReader(model), lambda share: None)


def test_too_many_pairs_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    # Three states are known when the second level is looked up, and there is room for six then.
    both = build_merged(MODEL, lambda level, state, names: names[-1])
    for policy, most in ((PLANNED, 6), (both, 12)):  # with one action, and with two
        monkeypatch.setattr(sweep, "MOST_ENTRIES", most)
        assert sweep_model(MODEL, [policy]) is not None
        monkeypatch.setattr(sweep, "MOST_ENTRIES", most - 1)
        assert sweep_model(MODEL, [policy]) is None


def test_arrays_become_twice_as_long_as_they_must() -> None:
    longer = sweep._double(np.array([1, 2]), 3, -1)
    assert longer.tolist() == [1, 2, -1, -1, -1, -1]
    assert sweep._double(np.array([[1, 2]]), 2).tolist() == [[1, 2], [0, 0], [0, 0], [0, 0]]
    assert longer.dtype == np.array([1]).dtype
