"""What an observer can tell apart, and what it is called."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.helpers.lying_models import Mission, Sulky
from tests.helpers.tables import SEEDS, one_action
from vulcan import Outcome, Start
from vulcan.errors import ModelError
from vulcan.model.answers import label_outcomes, make_plain, merge_outcomes, observe_outcomes
from vulcan.model.interface import FAILURE
from vulcan.model.reader import ModelReader
from vulcan.model.rules import check_outcomes


def observe(*outcomes: Outcome) -> list[Outcome]:
    return ModelReader(one_action(*outcomes)).outcomes(0, "go")


def test_same_state_and_reward_are_one_outcome() -> None:
    assert observe(
        Outcome(0.25, 1, "mild"), Outcome(0.5, 0, "well"), Outcome(0.25, 1.0, "mild")
    ) == [Outcome(0.5, 1, "mild"), Outcome(0.5, 0, "well")]


def test_failures_are_one_outcome_if_their_rewards_agree() -> None:
    safe = Outcome(0.5, 0.0, 1)
    assert observe(Outcome.failure(0.25), safe, Outcome.failure(0.25)) == [
        safe,
        Outcome.failure(0.5),
    ]
    apart = observe(Outcome.failure(0.25, 1), safe, Outcome.failure(0.25, -0.5))
    assert label_outcomes(apart) == ["1", "failure, reward 1", "failure, reward -0.5"]
    negative_zero = observe(Outcome.failure(0.25, -0.0), safe, Outcome.failure(0.25, 1))
    assert label_outcomes(negative_zero) == ["1", "failure, reward 0", "failure, reward 1"]


def test_given_labels_are_observations_of_their_own() -> None:
    outcomes = [
        Outcome(0.25, 0.0, "mild", "sun"),
        Outcome(0.25, 0.0, "mild", "rain"),
        Outcome(0.25, 0.0, "mild"),
        Outcome(0.25, 0.0, "mild"),
    ]
    assert observe(*outcomes) == [*outcomes[:2], Outcome(0.5, 0.0, "mild")]
    assert label_outcomes(observe(*outcomes)) == ["sun", "rain", "mild"]


def test_rationals_stay_exact_and_floats_are_summed_at_once() -> None:
    third = [Outcome(Fraction(1, 3), Fraction(1, 7), 1)] * 3
    assert observe(*third) == [Outcome(1, Fraction(1, 7), 1)]
    tenths = [Outcome(0.1, 0.0, 1)] * 10
    assert observe(*tenths) == [Outcome(1.0, 0.0, 1)]
    mixed = [Outcome(Fraction(1, 2), 0, 1), Outcome(0.5, 0, 1)]
    assert observe(*mixed) == [Outcome(1.0, 0, 1)]


def test_no_merged_probability_is_above_one() -> None:
    above = math.nextafter(0.5, 1)
    outcome = observe(Outcome(above, 0.0, 1), Outcome(above, 0.0, 1))[0]
    assert outcome.probability == 1


def test_impossible_outcomes_are_not_observed() -> None:
    possible = [Outcome(1.0, 0.0, 1)]
    assert observe(Outcome(0.0, 0.0, 1), *possible, Outcome.failure(0)) == possible


def test_start_is_observed_like_any_action() -> None:
    start = Start.draw([Outcome(0.5, 0, "here"), Outcome(0.5, 0, "here")])
    reader = ModelReader(Mission(initial_state=lambda: start))
    assert reader.outcomes(reader.root, "start") == [Outcome(1.0, 0, "here")]


def test_different_states_of_the_same_text_are_numbered() -> None:
    outcomes = observe(Outcome(0.5, 0, 1), Outcome(0.25, 0, "1"), Outcome(0.25, 0, "2", "1 (2)"))
    assert label_outcomes(outcomes) == ["1", "1 (3)", "1 (2)"]
    taken = observe(Outcome(0.5, 0, "rain", "sun"), Outcome(0.5, 0, "sun"))
    assert label_outcomes(taken) == ["sun", "sun (2)"]


@given(seed=SEEDS)
def test_labels_are_all_different(seed: int) -> None:
    random = Random(seed)
    states = [1, "1", "1 (2)", "1, reward 1", "failure", FAILURE]
    count = random.randint(1, 6)
    names: list[str | None] = ["1", "failure", "1 (2)", "1, reward 1"]
    random.shuffle(names)
    outcomes = [
        Outcome(
            1 / count,
            random.choice([0, 1, np.float32(0.1), 0.1]),
            random.choice(states),
            names.pop() if names and random.random() < 0.3 else None,
        )
        for _ in range(count)
    ]
    observed = merge_outcomes(outcomes)
    labels = label_outcomes(observed)
    assert len(set(labels)) == len(labels) == len(observed)
    assert labels == label_outcomes(merge_outcomes(observed))


def test_states_that_can_not_be_compared_can_not_be_observed() -> None:
    outcomes = [Outcome(0.5, 0.0, Sulky("a")), Outcome(0.5, 0.0, Sulky("b"))]
    with pytest.raises(ModelError, match="not with me") as caught:
        observe(*outcomes)
    violation = caught.value.violation
    assert (violation.rule, violation.state, violation.action) == ("states compare", 0, "go")
    labelled = [Outcome(0.5, 0.0, Sulky(name), name) for name in "ab"]
    assert observe(*labelled) == labelled  # labels make comparing unnecessary


NUMBERS: list[Any] = [
    *(0, 1, 0.5, -0.0, 1.5, -0.1, math.nan, math.inf, -math.inf, 1e101, 10**400),
    *(True, False, None, "0.5", 1j, Fraction(1, 2), np.float64(0.5), np.float32(0.5)),
    *(np.int64(1), np.float64("nan"), np.bool_(True)),
]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("place", ["probability", "reward"])
def test_quick_look_and_slow_one_agree_on_numbers(place: str, value: Any) -> None:
    fields = {"probability": 0.5, "reward": 0.0} | {place: value}
    outcomes = (Outcome(fields["probability"], fields["reward"], 1), Outcome(0.5, 0.0, 2))
    violations = list(check_outcomes(0, "go", list(map(make_plain, outcomes))))
    if not violations:
        assert [o.state for o in observe_outcomes(0, "go", outcomes)] == [1, 2]
        return
    with pytest.raises(ModelError) as caught:
        observe_outcomes(0, "go", outcomes)
    assert repr(caught.value.violation) == repr(violations[0])
