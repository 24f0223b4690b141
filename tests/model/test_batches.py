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
from vulcan.graph.states import RowNumbers, StateGraph
from vulcan.model.answers import Answers
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


class ArrayWalk(Walk):
    """The same walk, with next states as an array."""

    def outcomes_batch(self, states: Sequence[Any], actions: list[str]) -> Any:
        place, pace = np.array(states).reshape(len(states), -1)[:, 0], np.array(actions, int)
        risk = 0.01 * pace
        after = np.transpose([0 * pace - 1, (place + pace) % 97, 0 * pace + 3])
        probability = np.transpose([risk, 1 - risk, 0 * risk])
        return probability, np.transpose([0 * pace, 0.5 * pace, 0 * pace]), after


class PairWalk(Walk):
    """Two walks in turn: states are pairs of integers, and parts may be -1."""

    def initial_state(self) -> Any:
        return (0, -1)

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        return [
            Outcome(o.probability, o.reward, o.state if o.fails else (state[1] % 97, o.state - 1))
            for o in super().outcomes(state[0], action)
        ]


class PairArrayWalk(PairWalk):
    """The same, with next states as an array."""

    def outcomes_batch(self, states: Sequence[Any], actions: list[str]) -> Any:
        probability, reward, after = ArrayWalk.outcomes_batch(self, states, actions)  # type: ignore[arg-type]
        other = np.array(states)[:, [1] * after.shape[1]] % 97
        pairs = np.stack([np.where(after < 0, -1, other), np.where(after < 0, -1, after - 1)], 2)
        return probability, reward, pairs


def list_rows(model: Any) -> list[Any]:
    """Return the rows of four levels of a model's graph, with the states as texts."""
    graph, begin = StateGraph(ModelReader(model)), 0
    for _ in range(4):
        end = graph.states.count
        graph.expand_all(range(begin, end))
        begin = end
    rows = [rows.array[: rows.count].tolist() for rows in graph.kinds()]
    return [*rows, [repr(graph.state_object(k)) for k in range(graph.states.count)]]


@pytest.mark.parametrize(
    ("plain", "batch"), [(Walk, BatchWalk), (Walk, ArrayWalk), (PairWalk, PairArrayWalk)]
)
@pytest.mark.parametrize("merges", [True, False])
def test_batches_give_the_graph_of_single_answers(plain: Any, batch: Any, merges: bool) -> None:
    models = plain(), batch()
    for model in models:
        model.merges = merges
    one, other = map(list_rows, models)
    assert one == other
    assert len(one[-1]) > 16


def test_answers_in_arrays_and_in_lists_are_joined() -> None:
    parts = [ModelReader(kind()).read_arrays(*MANY) for kind in (ArrayWalk, Walk, BatchWalk)]
    parts.append(ModelReader(PairArrayWalk()).read_arrays([(1, 2)] * 9, ["2"] * 9))
    for some in (parts[:1] * 2, parts[:2], parts[1:3], parts):
        whole = [outcomes for part in some for outcomes in part.split()]
        assert repr(Answers.join(some).split()) == repr(whole)


def test_rows_of_integers_have_the_numbers_of_tuples() -> None:
    random, table = np.random.default_rng(5), RowNumbers(3)
    expected: dict[tuple[int, ...], int] = {}
    asked: list[tuple[int, ...]] = []

    def number_all(rows: Any) -> list[int]:
        asked.extend(map(tuple, rows.tolist()))
        return [expected.setdefault(row, len(expected)) for row in map(tuple, rows.tolist())]

    for size in (1, 100, 5_000):
        rows = random.integers(-2, 15, (size, 3)) * [1, 1 << 40, -(1 << 58)]
        found = table.find(rows, number_all).tolist()
        assert found == [expected[row] for row in map(tuple, rows.tolist())]
    assert len(asked) == len(expected) > 1_000  # each different row once


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
        ({"state": np.ones((9, 3), int)}, Rule.OUTCOMES_LISTED),
        ({"state": np.ones((9, 2), np.uint64)}, Rule.OUTCOMES_LISTED),
        ({"state": np.ones((9, 2), int)}, Rule.ANSWERS_REPEAT),
        ({"state": np.ones((9, 2, 2), int)}, Rule.ANSWERS_REPEAT),
        ({"state": np.full((9, 2), -1)}, Rule.ANSWERS_REPEAT),
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
