"""Transitions and rewards as arrays: all forms say the same, and errors name the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vulcan
from vulcan import ModelError, OptionError, Outcome
from vulcan.formats import from_arrays, open_model

# Cells 0 1 2 in a row; 2 is the goal and 3 a hole. Walking is sure, and leaping is not.
WALK = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
LEAP = np.array([[0, 0, 0.75, 0.25], [0, 0, 0.5, 0.5], [0, 0, 1, 0], [0, 0, 0, 1.0]])
MOVES = np.array([WALK, LEAP])
PAIRS = np.array([[-1, 5], [-1, 5], [0, 0], [0, 0.0]])
OPTIONS = {"horizon": 3, "failure": [3], "terminal": [2], "action_labels": ["walk", "leap"]}


class Sparse:
    """As much of a matrix of scipy.sparse as is used."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = np.asarray(matrix)
        self.shape = self._matrix.shape
        self.row, self.col = np.nonzero(self._matrix)
        self.data = self._matrix[self.row, self.col]

    def tocoo(self) -> Sparse:
        return self

    def tocsr(self) -> Any:
        return self._matrix


def list_rows(rewards: bool = True) -> np.ndarray:
    action, state, target = np.nonzero(MOVES)
    columns = [state, action, target, MOVES[action, state, target], PAIRS[state, action]]
    return np.array(columns if rewards else columns[:-1]).T


def answers(model: Any) -> dict[Any, list[Outcome]]:
    return {
        (state, action): model.outcomes(state, action)
        for state in range(model.states)
        for action in model.actions(state)
    }


EXPECTED = {
    (0, 0): [Outcome(1.0, -1.0, 1)],
    (0, 1): [Outcome(0.75, 5.0, 2), Outcome.failure(0.25, 5.0)],
    (1, 0): [Outcome(1.0, -1.0, 2)],
    (1, 1): [Outcome(0.5, 5.0, 2), Outcome.failure(0.5, 5.0)],
}
PER_TRANSITION = np.broadcast_to(PAIRS.T[:, :, None], MOVES.shape)


@pytest.mark.parametrize(
    ("transitions", "rewards"),
    [
        (MOVES, PAIRS),
        (MOVES.tolist(), PAIRS.tolist()),
        (MOVES.transpose(1, 0, 2), PAIRS),
        (MOVES, PER_TRANSITION),
        (MOVES.transpose(1, 0, 2), PER_TRANSITION.transpose(1, 0, 2)),
        ([Sparse(WALK), Sparse(LEAP)], PAIRS),
        ([Sparse(WALK), Sparse(LEAP)], [Sparse(matrix) for matrix in PER_TRANSITION]),
        (list_rows(), 0.0),
        (list_rows(rewards=False), PAIRS),
    ],
    ids=["ass", "lists", "sas", "ass-3d", "sas-3d", "sparse", "sparse-3d", "rows", "rows-pairs"],
)
def test_all_forms_say_the_same(transitions: Any, rewards: Any) -> None:
    model = from_arrays(transitions, rewards, **OPTIONS)
    assert answers(model) == EXPECTED
    assert model.states == 4
    assert model.action_label(1) == "leap"


def test_matrices_of_scipy() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for kind in (sparse.csr_matrix, sparse.coo_array, sparse.csr_array):
        rewards = [kind(matrix) for matrix in PER_TRANSITION]
        model = from_arrays([kind(WALK), kind(LEAP)], rewards, **OPTIONS)
        assert answers(model) == EXPECTED


def test_an_action_that_is_nowhere_has_no_rewards() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrices = [sparse.csr_array(WALK), sparse.csr_array(LEAP), sparse.csr_array(WALK.shape)]
    rewards = [sparse.csr_array(matrix) for matrix in (*PER_TRANSITION, np.zeros(WALK.shape))]
    assert answers(from_arrays(matrices, rewards, **OPTIONS)) == EXPECTED


def test_rewards_of_states_and_of_everything() -> None:
    by_state = from_arrays(MOVES, [1.0, 2.0, 0.0, 0.0], **OPTIONS)
    assert [o.reward for o in by_state.outcomes(1, 1)] == [2.0, 2.0]
    assert from_arrays(MOVES, 0.5, **OPTIONS).outcomes(0, 0) == [Outcome(1.0, 0.5, 1)]


def test_failures_ends_and_starts_have_several_forms() -> None:
    names = ["left", "right", "goal", "hole"]
    model = from_arrays(
        MOVES,
        PAIRS,
        horizon=3,
        failure=np.array([False, False, False, True]),
        terminal="goal",
        start={"left": 0.5, "right": 0.5},
        state_names=names,
    )
    assert model.outcomes("left", 1) == [Outcome(0.75, 5.0, "goal"), Outcome.failure(0.25, 5.0)]
    assert model.initial_state().choices["start"] == (
        Outcome(0.5, 0.0, "left"),
        Outcome(0.5, 0.0, "right"),
    )
    assert from_arrays(MOVES, start=[0, 1, 0, 0], **OPTIONS).initial_state() == 1
    assert from_arrays(MOVES, **OPTIONS | {"terminal": ()}).actions(2) == [0, 1]


def test_an_action_that_leads_nowhere_does_not_exist() -> None:
    moves = MOVES.copy()
    moves[1, 0] = 0
    assert from_arrays(moves, **OPTIONS).actions(0) == [0]


def test_the_order_of_as_many_actions_as_states_has_to_be_said() -> None:
    moves = np.array([[[0.5, 0.5], [0, 1]], [[1, 0], [0, 1]]])
    with pytest.raises(OptionError, match=r"may be \[A, S, S\] or \[S, A, S\]: say order="):
        from_arrays(moves, horizon=1)
    by_action, by_state = (from_arrays(moves, horizon=1, order=o) for o in ("action", "state"))
    assert len(by_action.outcomes(1, 0)) == len(by_state.outcomes(0, 1)) == 1
    assert len(by_action.outcomes(0, 0)) == len(by_state.outcomes(0, 0)) == 2
    assert by_action.outcomes(1, 0)[0].state == 1
    assert by_state.outcomes(1, 0)[0].state == 0


def spoil(place: tuple[int, ...], value: float) -> np.ndarray:
    moves = MOVES.copy()
    moves[place] = value
    return moves


@pytest.mark.parametrize(
    ("transitions", "options", "error", "message"),
    [
        (WALK[:3, :3], {}, OptionError, r"an array \[A, S, S\] or .* not of shape \[3, 3\]"),
        (MOVES[:, :, :3], {}, OptionError, r"not of shape \[2, 4, 3\]"),
        (MOVES, {"order": "state"}, OptionError, r"shape \[2, 4, 4\] with order='state'"),
        (MOVES, {"order": "rows"}, OptionError, 'order must be "action" or "state", not \'rows\''),
        ([[1, 2], [3]], {}, OptionError, "transitions must be numbers, all rows of one length"),
        (Sparse(WALK), {}, OptionError, "not one sparse matrix"),
        (
            [Sparse(WALK), Sparse(LEAP[:3, :3])],
            {},
            OptionError,
            r"transitions\[1\] must be of shape \[4, 4\], not \[3, 3\]",
        ),
        (
            spoil((1, 0, 2), 0.5),
            {},
            ModelError,
            r"transitions\[1, 0\]: probabilities sum to 0.75, not to 1 \(state 0, action 1\)",
        ),
        (
            spoil((1, 0, 2), 0.5).transpose(1, 0, 2),
            {},
            ModelError,
            r"transitions\[0, 1\]: probabilities sum to 0.75",
        ),
        (spoil((1, 0, 1), -0.5), {}, ModelError, r"from 0 to 1, not -0.5 \(into state 1\)"),
        (spoil((0, 1, 2), np.nan), {}, ModelError, r"transitions\[0, 1\]: a probability.*not nan"),
        ([[0, 0, 1.5, 1]], {}, OptionError, r"transitions\[0, 2\] must be the number of a next"),
        ([[0, -1, 1, 1]], {}, OptionError, r"transitions\[0, 1\] must be the number of an action"),
        (
            [[0, 0, 1, 0.5]],
            {"failure": ()},
            ModelError,
            r"sum to 0.5, not to 1 \(state 0, action 0\)",
        ),
        (MOVES, {"start": [1, np.nan, 0, 0]}, ModelError, "not nan for state 1"),
        (list_rows(), {"rewards": 1.0}, OptionError, "rewards are given twice"),
        (MOVES, {"rewards": PAIRS.T}, OptionError, "it may have to be transposed"),
        (
            MOVES,
            {"rewards": [1, 2]},
            OptionError,
            r"an array \[4\], \[4, 2\], or \[2, 4, 4\] like the transitions, not of shape \[2\]",
        ),
        (MOVES, {"rewards": [np.inf, 0, 0, 0]}, ModelError, r"a reward must be at most .* not inf"),
        (
            MOVES,
            {"failure": [3, 9]},
            OptionError,
            r"failure\[1\] must be a state, not 9; .* 0 to 3",
        ),
        (MOVES, {"failure": [True, False]}, OptionError, "failure is a mask of 2 for 4 states"),
        (MOVES, {"failure": 0.5}, OptionError, "failure must be a state, not 0.5"),
        (MOVES, {"terminal": [3]}, OptionError, "state 3 is in both failure and terminal"),
        (MOVES, {"start": 3}, OptionError, "start has state 3, which is in failure"),
        (MOVES, {"start": 4}, OptionError, "start must be a state, not 4; states are 0 to 3"),
        (MOVES, {"start": [0.5, 0.5]}, OptionError, r"start must be of shape \[4\], not \[2\]"),
        (MOVES, {"start": [0.5, 0, 0, 0]}, ModelError, "start sums to 0.5, not to 1"),
        (MOVES, {"start": {0: 1.5, 1: -0.5}}, ModelError, "start must be from 0 to 1 for each"),
        (MOVES, {"state_names": ["a", "b"]}, OptionError, "state_names must be 4 names, not 2"),
        (
            MOVES,
            {"state_names": ["left", "right", "goal", "hole"], "failure": ["hoel"]},
            OptionError,
            r"failure\[0\] must be a state, not 'hoel'.*did you mean 'hole'",
        ),
        (MOVES, {"terminal": [0, 1, 2]}, OptionError, "nothing to decide"),
        (MOVES, {"action_labels": ["walk"]}, ModelError, "action_labels must be 2 different names"),
    ],
)
def test_what_is_wrong_is_named(
    transitions: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_arrays(transitions, **{"horizon": 3, "failure": [3], "start": 0} | options)


def test_a_file_is_solved(tmp_path: Path) -> None:
    path = tmp_path / "cells.npz"
    np.savez(
        path,
        transitions=MOVES,
        rewards=PAIRS,
        horizon=3,
        failure=[3],
        terminal=[False, False, True, False],
        action_labels=["walk", "leap"],
        bound="0.3",
    )
    model, bound = open_model(str(path))
    assert answers(model) == EXPECTED
    assert bound == "0.3"
    result = vulcan.solve(vulcan.Problem(model, bound))
    assert result.certificate.reward == pytest.approx(5.0)
    assert result.certificate.risk == pytest.approx(0.25)
    assert open_model(str(path), ["horizon=2"]).model.horizon == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"transition": MOVES}, "'transition'; allowed are .*did you mean 'transitions'"),
        ({"horizon": 3}, "has no array 'transitions'"),
        ({"transitions": MOVES, "horizon": 3, "failure": [7]}, "cells.npz: failure.* not 7"),
        ({"transitions": MOVES}, "needs --set horizon=..."),
        ({"transitions": MOVES, "horizon": 3, "bound": 0.1}, "bound must be a string"),
        ({"transitions": np.array([{}], dtype=object)}, "not what numpy.savez writes"),
    ],
)
def test_files_with_mistakes_are_named(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    path = tmp_path / "cells.npz"
    np.savez(path, **arrays)
    with pytest.raises(OptionError, match=message) as caught:
        open_model(str(path))
    assert "cells.npz" in str(caught.value)


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cells.npz"
    with pytest.raises(OptionError, match=r"cells.npz: can't be read: No such file"):
        open_model(str(path))
    path.write_bytes(b"PK no archive")
    with pytest.raises(OptionError, match=r"cells.npz: this is not what numpy.savez writes"):
        open_model(str(path))
    with path.open("wb") as file:
        np.save(file, MOVES)
    with pytest.raises(OptionError, match=r"cells.npz: this is one array"):
        open_model(str(path))


def test_states_that_have_names_may_be_told_by_their_numbers() -> None:
    names = ["left", "right", "goal", "hole"]
    by_name = from_arrays(MOVES, horizon=3, failure=["hole"], start="left", state_names=names)
    by_number = from_arrays(MOVES, horizon=3, failure=[3], start=0, state_names=names)
    assert by_name.fingerprint == by_number.fingerprint
    with pytest.raises(OptionError, match="must be a state, not 3"):
        from_arrays(MOVES, horizon=3, failure=[3], state_names=[10, 11, 12, 13])


def test_a_start_of_texts_is_refused() -> None:
    with pytest.raises(OptionError, match=r"start\[0\] must be a probability, not 'x'"):
        from_arrays(MOVES, horizon=3, start={0: "x"})


def test_states_that_there_are_not() -> None:
    model = from_arrays(MOVES, horizon=3)
    for state in (77, -1, "left", None):
        with pytest.raises(LookupError, match="there is no state"):
            model.actions(state)
