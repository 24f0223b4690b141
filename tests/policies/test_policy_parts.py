"""Policies made by hand, and what each part of them says."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from tests.helpers.tables import one_action
from vulcan import Outcome, Policy, RandomisedPolicy
from vulcan.errors import PolicyError
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About, PolicyBuilder
from vulcan.policies.text import draw_policy, draw_randomised
from vulcan.sentinels import END, FAILED, UNPLANNED

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
    [(1.0, None, 1.0), (1.0, False, 1.0), (0.5, True, 1.0), (0.5, False, 0.5)],
)
def test_first_discount(discount: float, initial: bool | None, first: float) -> None:
    about = About("model", "", 3, discount, None, "", initial)
    assert about.first_discount == first


def test_first_discount_of_a_file_that_does_not_say_it() -> None:
    assert math.isnan(ABOUT.first_discount)


def test_rows_are_numbered_in_order() -> None:
    policy = make_chain(3)
    assert len(policy) == 3
    assert [list(policy.outcomes(node)) for node in range(3)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert policy.first_outcome.tolist() == [0, 3, 6, 9]
    assert policy.labels == ("walk 0", "0", "1", "lost", "walk 1", "walk 2")
    assert policy.label.tolist() == [1, 2, 3] * 3
    assert policy.action.tolist() == [0, 4, 5]
    assert policy.child.tolist() == [1, END, FAILED, 2, END, FAILED, END, END, FAILED]
    assert (policy.members, policy.weights) == ((policy,), (1.0,))
    assert repr(policy) == "<Policy for Walk(5): 3 decision nodes>"


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


def test_drawings_show_three_levels_and_sixty_lines() -> None:
    deep, wide = make_chain(), make_chain(1, wide=70)
    assert deep.draw() == draw_policy(deep, 3, 60) == str(deep)
    assert deep.draw() not in (draw_policy(deep, 2, 60), draw_policy(deep, 4, 60))
    assert wide.draw() == draw_policy(wide, 3, 60)
    assert len(wide.draw().splitlines()) == 61  # the last one says that there are more
    both = RandomisedPolicy([deep, wide], [0.5, 0.5])
    assert both.draw() == draw_randomised(both, 3, 60) == str(both)
    assert both.draw() not in (draw_randomised(both, 2, 60), draw_randomised(both, 4, 60))
    assert both.draw() not in (draw_randomised(both, 3, 59), draw_randomised(both, 3, 61))


def test_prospects_are_computed_once_for_each_discount() -> None:
    policy = make_chain(2)
    own = policy.prospects()
    assert policy.prospects() is own
    assert policy.prospects(0.5) is own
    assert policy.prospects(1.0) is not own
    # 0.75 for each step, and the second one counts half, or as much, where it is reached.
    assert own["mean"][0] == pytest.approx(0.75 + 0.5 * 0.375 * 0.75)
    assert policy.prospects(1.0)["mean"][0] == pytest.approx(0.75 + 0.375 * 0.75)


def test_policies_pass_to_other_processes_with_their_model() -> None:
    model = one_action(Outcome(1.0, 0.0, 1))
    policy = make_chain()
    policy.knowledge = "a search"
    copy = pickle.loads(pickle.dumps(policy))
    assert copy == policy
    assert copy.about == policy.about
    assert copy.reader is None
    assert copy.knowledge is None
    bound = policy.attach(ModelReader(model))
    assert bound == policy
    assert pickle.loads(pickle.dumps(bound)).reader.model == model
    assert bound.detach().reader is None
    mixed = RandomisedPolicy([bound, policy], [0.25, 0.75])
    again = pickle.loads(pickle.dumps(mixed))
    assert again == mixed
    assert [member.reader is None for member in again.members] == [False, True]
    assert [member.reader for member in mixed.detach().members] == [None, None]


def test_randomised_policies_say_how_many_they_are() -> None:
    policy = make_chain()
    one, two = RandomisedPolicy([policy], [1]), RandomisedPolicy([policy, policy], [0.5, 0.5])
    assert repr(one) == "<RandomisedPolicy for Walk(5): 1 member, 5 decision nodes>"
    assert repr(two) == "<RandomisedPolicy for Walk(5): 2 members, 10 decision nodes>"
    assert two.about is policy.about


def test_a_run_knows_the_whole_and_what_a_search_knew() -> None:
    mixed = RandomisedPolicy([make_chain(), make_chain(2)], [0.5, 0.5])
    mixed.knowledge = "a search"
    run = mixed.start(seed=0)
    assert run.whole is mixed
    assert run.knowledge == "a search"
    assert any(run.policy is member for member in mixed.members)


def test_policies_are_shown_as_tables_and_cards() -> None:
    policy = make_chain()
    mixed = RandomisedPolicy([policy, policy], [0.5, 0.5])
    assert len(policy.table()["action"]) == 5
    assert len(mixed.table()["action"]) == 10
    assert "Walk(5)" in policy._repr_html_()
    assert "Walk(5)" in mixed._repr_html_()


def test_weights_may_miss_one_by_the_tolerance_alone() -> None:
    policy = make_chain()
    assert RandomisedPolicy([policy, policy], [0.5, 0.5 + 5e-13]).weights[1] > 0.5
    with pytest.raises(PolicyError, match="sum to"):
        RandomisedPolicy([policy, policy], [0.5, 0.5 + 5e-12])


def test_arrays_have_the_types_of_a_file() -> None:
    policy = make_chain()
    types = [getattr(policy, name).dtype for name in policy.ARRAYS]
    assert types == [np.int32, np.int64, np.int32, np.float64, np.float64, np.int32]
