"""Many answers read at once are those that are read one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from vulcan import Outcome, Start
from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE
from vulcan.model.reader import ModelReader, StrictReader
from vulcan.model.rules import Rule

USUAL = (0.25, 0.5, 1.0)
ODD = (Fraction(1, 4), 0, 1, -0.5, math.nan, math.inf, True, "0.5", 1e-301, np.float64(0.5), 1e301)
STATES = (1, 2, "a", (1, 2), 1.0, FAILURE, FAILURE)
ODD_STATES = (None, [1], Start.draw([Outcome(1.0, 0.0, 1)]), True)
LABELS = (None, None, "a", "b", 3, "")


def mostly(usual: Sequence[Any], odd: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Draw usual values, and now and then an odd one."""
    usually = st.sampled_from(usual)
    return st.integers(0, 40).flatmap(lambda k: usually if k else st.sampled_from(odd))


OUTCOMES = st.builds(
    Outcome,
    mostly(USUAL, ODD),
    mostly(USUAL, ODD),
    mostly(STATES, ODD_STATES),
    mostly(LABELS[:4], LABELS),
    costs=mostly(((),), ({"fuel": 1.0}, {"fuel": math.nan})),
    event=mostly((None,), ("late", 7)),
)
ANSWERS = st.lists(st.one_of(OUTCOMES, OUTCOMES, mostly((None,), ("no outcome",))), max_size=4)


class Given:
    """A model that gives answers by their numbers, beginning with a usual one."""

    horizon = 3

    def __init__(self, answers: Sequence[Sequence[Any]]) -> None:
        self._answers = [[Outcome(1.0, 0.0, 1)], *answers]

    def initial_state(self) -> int:
        return 0

    def actions(self, state: Any) -> list[str]:
        return ["go"]

    def outcomes(self, state: int, action: str) -> Sequence[Any]:
        return self._answers[int(state)]


def balance(outcomes: list[Any]) -> list[Any]:
    """Return outcomes whose probabilities sum to 1, as far as these are usual."""
    usual = all(isinstance(o, Outcome) and type(o.probability) is float for o in outcomes)
    total = math.fsum(o.probability for o in outcomes) if usual else 0.0
    if not 0 < total < math.inf:
        return outcomes
    return [
        Outcome(o.probability / total, o.reward, o.state, o.label, costs=o.costs, event=o.event)
        for o in outcomes
    ]


@given(answers=st.lists(ANSWERS.map(balance), min_size=1, max_size=5), strict=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_batch_is_read_like_single_answers(answers: list[list[Any]], strict: bool) -> None:
    kind = StrictReader if strict else ModelReader
    states, single, error = range(1, len(answers) + 1), [], None
    alone = kind(Given(answers))
    try:
        single = [alone.outcomes(state, "go") for state in states]
    except ModelError as refusal:
        error = refusal
    together = kind(Given(answers))
    if error is None:
        read = together.read(list(states), ["go"] * len(states)).split()
        assert read == single
        assert repr(read) == repr(single)  # of the same types
    else:
        with pytest.raises(ModelError) as caught:
            together.read(list(states), ["go"] * len(states))
        # Duplicates may be found before or after other violations.
        assert strict or str(caught.value) == str(error)


class Walk:
    """A walk on a circle that risks a little."""

    horizon = 6

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return ["1", "2", "3", "4"]

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        pace = int(action)
        safe = Outcome(1 - 0.01 * pace, 0.5 * pace, (state + pace) % 97)
        return [Outcome.failure(0.01 * pace), safe, Outcome(0.0, 0.0, 3)]


class BatchWalk(Walk):
    """The same, with answers about many pairs at once."""

    def __init__(self, **odd: Any) -> None:
        self.odd, self.batches = odd, 0

    def outcomes_batch(self, states: list[int], actions: list[str]) -> Any:
        self.batches += 1
        pace = np.array(actions, int)
        after = ((np.array(states) + pace) % 97).tolist()
        risk = 0.01 * pace
        columns = {
            "probability": np.transpose([risk, 1 - risk]),
            "reward": np.transpose([0 * pace, 0.5 * pace]),
            "state": [[None, state] for state in after],
        }
        return tuple((columns | self.odd).values())


def test_plans_are_the_same_with_answers_in_batches() -> None:
    model = BatchWalk()
    policy = vulcan.solve(vulcan.Problem(model, "0.05*x")).policy
    assert model.batches
    assert policy == vulcan.solve(vulcan.Problem(Walk(), "0.05*x")).policy
    assert vulcan.certify(vulcan.Problem(model, "0.05*x"), policy).safe


MANY = list(range(1, 10)), ["2"] * 9


@pytest.mark.parametrize(
    ("odd", "rule"),
    [
        ({"probability": np.full((9, 2), 0.5)}, Rule.ANSWERS_REPEAT),
        ({"reward": np.ones((9, 2))}, Rule.ANSWERS_REPEAT),
        ({"state": [[None, 0]] * 9}, Rule.ANSWERS_REPEAT),
        ({"label": [["x", "y"]] * 9}, Rule.ANSWERS_REPEAT),
        ({"label": [["x"]] * 9}, Rule.OUTCOMES_LISTED),
        ({"label": [["x", "y"]] * 9, "more": 1}, Rule.OUTCOMES_LISTED),
        ({"probability": np.full((9, 2), "0.5")}, Rule.OUTCOMES_LISTED),
        ({"probability": np.full((9, 3), 1 / 3)}, Rule.OUTCOMES_LISTED),
        ({"reward": np.ones(9)}, Rule.OUTCOMES_LISTED),
        ({"state": [[None, 0]] * 8}, Rule.OUTCOMES_LISTED),
        ({"state": 3}, Rule.OUTCOMES_LISTED),
        ({"probability": np.full((9, 2), 0.6)}, Rule.PROBABILITIES_SUM),
        ({"probability": np.full((9, 2), math.nan)}, Rule.PROBABILITIES),
        ({"state": [[None, [0]]] * 9}, Rule.STATES_HASHABLE),
    ],
)
def test_a_wrong_batch_is_refused(odd: dict[str, Any], rule: Rule) -> None:
    with pytest.raises(ModelError) as caught:
        ModelReader(BatchWalk(**odd)).read(*MANY)
    assert caught.value.violation.rule is rule
    assert "BatchWalk" in str(caught.value)
    assert "state" in str(caught.value)


def test_a_batch_that_lies_rarely_is_found_where_it_is_compared() -> None:
    class Liar(BatchWalk):
        def outcomes_batch(self, states: list[int], actions: list[str]) -> Any:
            probability, reward, after = super().outcomes_batch(states, actions)
            reward = reward.astype(float)
            reward[np.array(states) == 5, 1] += 1e-9
            return probability, reward, after

    with pytest.raises(ModelError, match=r"outcomes_batch has .* where outcomes has .*state 5"):
        ModelReader(Liar()).read(*MANY)
