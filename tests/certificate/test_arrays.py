"""Certificates of array models, a level at a time: the same as pair by pair."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.plans import edit
from vulcan.certificate.arrays import follow_arrays
from vulcan.certificate.walk import follow_policy
from vulcan.errors import MismatchError, ModelError
from vulcan.model import ArrayModel
from vulcan.model.reader import StrictReader


class Derived(ArrayModel):
    """The same model, whose methods are called for each pair."""


def make_columns(seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the columns and the options of a random model."""
    random = Random(seed)
    states, rows = random.randint(2, 8), []
    for state in range(states - 1):
        for action in range(random.randint(0 if state else 1, 3)):
            parts = [random.randint(1, 9) for _ in range(random.randint(1, 5))]
            for part in parts:
                # Equal targets with different rewards, and several failures.
                target, reward = random.randrange(-1, states), random.choice([0.0, 1.0, 2.0])
                rows.append((state, action, target, part / sum(parts), reward))
    names = [f"x={state // 2}" for state in range(states)]
    kinds = [None, list(range(states)), [("failure", state) for state in range(states)]]
    texts = [Named(name, number) for number, name in enumerate(names)]
    options = {"horizon": random.randint(1, 6), "state_names": [*kinds, texts][seed % 4]}
    return [list(column) for column in zip(*rows, strict=True)], options


class Named:
    """A state whose text is not its own alone."""

    def __init__(self, text: str, number: int) -> None:
        self.text, self.number = text, number

    def __str__(self) -> str:
        return self.text


@pytest.mark.parametrize("seed", range(24))
def test_the_chain_is_that_of_single_answers(seed: int) -> None:
    columns, options = make_columns(seed)
    problem = vulcan.Problem(ArrayModel(*columns, **options), vulcan.Constant(0.05 * (seed % 7)))
    result = vulcan.solve(problem, vulcan.Lagrangian(randomised=True))
    if result.policy is None or not len(result.policy):
        return
    reader = StrictReader(problem.model)
    assert follow_arrays(result.policy, reader, print) is not None
    ours, evaluations = follow_policy(result.policy, reader)
    derived = Derived(*columns, **options)
    theirs, counted = follow_policy(result.policy, StrictReader(derived))
    assert evaluations == counted
    for name in ("sizes", "source", "target", "probability", "reward", "discounts", "leaves"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


@pytest.fixture
def solved() -> vulcan.Result:
    model = ArrayModel(
        [0, 0, 0, 1, 1], [0, 1, 1, 0, 0], [1, 1, -1, 0, 2], [1, 0.9, 0.1, 0.5, 0.5], horizon=3
    )
    model.reward[:] = [1.0, 3.0, 0.0, 0.0, 0.0]
    return vulcan.solve(vulcan.Problem(model, 0.15))


@pytest.mark.parametrize("name", ["probability", "reward", "child", "label", "action"])
def test_a_policy_that_differs_is_refused(solved: vulcan.Result, name: str) -> None:
    policy = solved.policy
    column = getattr(policy, name).copy()
    two = int(policy.first_outcome[np.flatnonzero(np.diff(policy.first_outcome) == 2)[0]])
    if name == "label":
        column[two : two + 2] = column[[two + 1, two]]
    else:
        column[-1] = {"probability": 0.25, "reward": 7.0, "child": 0}.get(name, 1 - column[-1] % 2)
    with pytest.raises(MismatchError):
        vulcan.certify(solved.problem, edit(policy, **{name: column}))


@pytest.mark.parametrize("change", [("probability", 0, 0.7), ("reward", 1, np.nan)])
def test_arrays_that_were_changed_are_refused(
    solved: vulcan.Result, change: tuple[str, int, float]
) -> None:
    name, row, value = change
    model = solved.problem.model
    getattr(model, name)[row] = value
    with pytest.raises((ModelError, MismatchError)):
        vulcan.certify(solved.problem, solved.policy)


def test_a_method_of_its_own_is_called(solved: vulcan.Result) -> None:
    model, called = solved.problem.model, []
    model.outcomes = lambda *where: called.append(where) or ArrayModel.outcomes(model, *where)
    assert vulcan.certify(solved.problem, solved.policy).reward == solved.certificate.reward
    assert called
