"""Transitions and rewards as arrays: all forms say the same, and errors name the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import vulcan
from vulcan import Outcome
from vulcan.errors import ModelError, OptionError
from vulcan.formats import from_arrays, open_model

# Cells 0 1 2 in a row; 2 is the goal and 3 a hole. Walking is sure, and leaping is not.
WALK = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
LEAP = np.array([[0, 0, 0.75, 0.25], [0, 0, 0.5, 0.5], [0, 0, 1, 0], [0, 0, 0, 1.0]])
MOVES = np.array([WALK, LEAP])
PAIRS = np.array([[-1, 5], [-1, 5], [0, 0], [0, 0.0]])
OPTIONS = {"horizon": 3, "failure": [3], "terminal": [2], "action_labels": ["walk", "leap"]}


def list_rows() -> np.ndarray:
    action, state, target = np.nonzero(MOVES)
    columns = [state, action, target, MOVES[action, state, target], PAIRS[state, action]]
    return np.array(columns).T


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
        (MOVES, PER_TRANSITION),
        ([csr_array(WALK), csr_array(LEAP)], PAIRS),
        ([csr_array(WALK), csr_array(LEAP)], PER_TRANSITION),
        (list_rows(), 0.0),
    ],
    ids=["dense", "lists", "dense-3d", "sparse", "sparse-3d", "rows"],
)
def test_all_forms_say_the_same(transitions: Any, rewards: Any) -> None:
    model = from_arrays(transitions, rewards, **OPTIONS)
    assert answers(model) == EXPECTED
    assert model.states == 4
    assert model.action_label(1) == "leap"


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
        terminal=[2],
        start=[0.5, 0.5, 0, 0],
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


def spoil(place: tuple[int, ...], value: float) -> np.ndarray:
    moves = MOVES.copy()
    moves[place] = value
    return moves


@pytest.mark.parametrize(
    ("transitions", "options", "error", "message"),
    [
        (WALK[:3, :3], {}, OptionError, r"an array \[A, S, S\], .* not of shape \[3, 3\]"),
        ([[1, 2], [3]], {}, OptionError, "transitions must be numbers, all rows of one length"),
        ([csr_array(WALK), csr_array(LEAP[:3, :3])], {}, OptionError, "not matrices of shapes"),
        (
            spoil((1, 0, 2), 0.5),
            {},
            ModelError,
            r"probabilities sum to 0.75, not to 1 \(state 0, action 1\)",
        ),
        (spoil((1, 0, 1), -0.5), {}, ModelError, r"of next state 1 must be from 0 to 1, not -0.5"),
        (spoil((0, 1, 2), np.nan), {}, ModelError, r"not nan \(state 1, action 0\)"),
        ([[0, 0, 1.5, 1, 0]], {}, OptionError, r"transitions\[0, 2\] must be the number of a next"),
        ([[0, -1, 1, 1, 0]], {}, OptionError, r"\[0, 1\] must be the number of an action"),
        ([[0, 0, 1, 0.5, 0]], {"failure": ()}, ModelError, r"sum to 0.5, not to 1 \(state 0"),
        (MOVES, {"start": [1, np.nan, 0, 0]}, ModelError, "not nan for state 1"),
        (list_rows(), {"rewards": 1.0}, OptionError, "rewards are given twice"),
        (MOVES, {"rewards": [1, 2]}, OptionError, r"\[4, 2\] or \[2, 4, 4\], not of shape \[2\]"),
        (MOVES, {"rewards": [np.inf, 0, 0, 0]}, ModelError, "next state 1 must be at most .* inf"),
        (MOVES, {"failure": [3, 9]}, OptionError, r"failure must be .* 0 to 3, or a mask of 4"),
        (MOVES, {"failure": [True, False]}, OptionError, "or a mask of 4, not"),
        (MOVES, {"terminal": [3]}, OptionError, "state 3 is in both failure and terminal"),
        (MOVES, {"start": 3}, OptionError, "state 3 is in both failure and start"),
        (MOVES, {"start": 4}, OptionError, "start must be a state, 0 to 3, .*, not 4"),
        (MOVES, {"start": [0.5, 0, 0, 0]}, ModelError, "start sums to 0.5, not to 1"),
        (MOVES, {"state_names": ["a", "b"]}, OptionError, "state_names must be 4 names, not 2"),
        (MOVES, {"terminal": [0, 1, 2]}, OptionError, "transitions have no decisions"),
    ],
)
def test_what_is_wrong_is_named(transitions, options, error, message):
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
        (
            {"transitions": MOVES, "horizon": 3, "failure": [7]},
            r"cells.npz: failure.* not array\(\[7\]\)",
        ),
        ({"transitions": MOVES}, "needs --set horizon=..."),
        ({"transitions": MOVES, "horizon": 3, "bound": 0.1}, "bound must be a string"),
        ({"transitions": np.array([{}], dtype=object)}, "not what numpy.savez writes"),
    ],
)
def test_files_with_mistakes_are_named(tmp_path, arrays, message):
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
    with pytest.raises(OptionError, match=r"cells.npz: this is not what numpy.savez writes"):
        open_model(str(path))


def test_states_that_there_are_not() -> None:
    model = from_arrays(MOVES, horizon=3)
    for state in (77, -1, "left", None):
        with pytest.raises(LookupError, match="there is no state"):
            model.actions(state)
