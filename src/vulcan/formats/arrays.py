"""Models that are arrays: transitions, rewards, failure states and a start; `path/to/model.npz`.

Transitions come in one of three forms, for S states and A actions:

    dense     [A, S, S]: the probability of each next state
    sparse    a list of A matrices [S, S], such as those of `scipy.sparse`
    rows      [N, 5]: state, action, next state (-1 for a failure), probability, reward

An action whose probabilities are all 0 in a state does not exist there, and a state without
actions is a safe terminal. All forms become the rows of an `ArrayModel`, which checks them.

A file is written by `numpy.savez`, with the parameters of `from_arrays` as names (`cost_fuel` for
`costs["fuel"]`), and optionally `bound`, the text of a risk bound, and `constraints`, texts such as
"fuel <= 5". No code in it is run.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError, VulcanError
from vulcan.formats.registry import Maker, make_from_file, require_known
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel, check_numbers
from vulcan.parameters import shorten
from vulcan.runtime.limits import find_default_memory

FORMS: Final = {"path/to/model.npz": "transitions and rewards as arrays"}

FORMS_OF_TRANSITIONS: Final = (
    "transitions must be an array [A, S, S], a list of A sparse matrices [S, S], or rows [N, 5]"
)


def from_arrays(
    transitions: Any,
    rewards: Any = 0.0,
    *,
    horizon: int,
    failure: Any = (),
    terminal: Any = (),
    start: Any = 0,
    discount: float = 1.0,
    action_labels: Sequence[str] | None = None,
    state_names: Sequence[Hashable] | None = None,
    costs: Mapping[str, Any] | None = None,
    events: Any = None,
) -> ArrayModel:
    """Return the model of some arrays.

    Parameters
    ----------
    transitions
        The probabilities of next states; see the head of this module for the forms.
    rewards
        One number for all, an array [S] (of every action in a state), [S, A], or [A, S, S] (of
        every transition). Rows have theirs as the fifth column.
    horizon
        Largest number of actions of a history.
    failure
        The failure states, as numbers or as a mask [S]: every transition into one of them is a
        failure, whose reward still counts.
    terminal
        Safe terminal states, likewise. Their actions are ignored.
    start
        The number of the initial state, or a probability for each state.
    discount
        As in every model.
    action_labels, state_names
        The label of each action, and the name of each state; by default their numbers.
    costs
        By names, in the forms of rewards; an array [N] beside rows [N, 5].
    events
        The event of every transition, a text ("" for none): by its next state, an array [S], or
        [A, S, S]; [N] beside rows.

    Examples
    --------
    >>> stay, leap = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0.9, 0.1], [0, 1, 0], [0, 0, 1]]
    >>> model = from_arrays([stay, leap], [[0, 5], [0, 0], [0, 0]], horizon=1,
    ...                     failure=[2], terminal=[1], action_labels=["stay", "leap"])
    >>> model.outcomes(0, 1)[1]
    Outcome(probability=0.1, reward=5.0, state=FAILURE, label=None)
    """
    columns, states, shape = _read_rows(transitions, rewards)
    state, action, target, probability, reward = columns
    charged = {
        name: _find_rewards(f"costs[{name!r}]", cost, shape, *columns[:3])
        for name, cost in (costs or {}).items()
    }
    if events is not None:
        places = _list_places(shape, *columns[:3])
        if len(shape) > 1:
            places = {(states,): target, shape: places[shape]}
        events = _pick("events must be", np.asarray(events), places)
    if state_names is not None:
        if len(state_names) < states:
            raise OptionError(f"state_names must be {states} names, not {len(state_names)}")
        states = len(state_names)
    ends, fails = _read_mask("terminal", terminal, states), _read_mask("failure", failure, states)
    begins = read_start(start, states)
    for what, where in (("terminal", ends), ("start", begins != 0)):
        if (both := np.flatnonzero(where & fails)).size:
            raise OptionError(f"state {both[0]} is in both failure and {what}")
    kept = (probability != 0) & ~(ends | fails)[state]
    if not kept.any():
        raise OptionError("transitions have no decisions: no state has an action")
    target = np.where((target >= 0) & fails[target], FAILURE_TARGET, target)
    return ArrayModel(
        *(column[kept] for column in (state, action, target, probability, reward)),
        horizon=horizon,
        start=begins,
        discount=discount,
        action_labels=action_labels,
        state_names=state_names,
        costs={name: column[kept] for name, column in charged.items()},
        events=None if events is None else events[kept],
    )


def _read_rows(transitions: Any, rewards: Any) -> tuple[list[NDArray[Any]], int, tuple[int, ...]]:
    """Return the columns of transitions in any form, the number of states, and the shape."""
    if isinstance(transitions, list | tuple) and transitions and hasattr(transitions[0], "tocoo"):
        entries = [matrix.tocoo() for matrix in transitions]
        shapes = {matrix.shape for matrix in entries}
        shape = (len(entries), *entries[0].shape)
        if len(shapes) > 1 or shape[1] != shape[2]:
            raise OptionError(f"{FORMS_OF_TRANSITIONS}, not matrices of shapes {sorted(shapes)}")
        action = np.repeat(np.arange(len(entries)), [len(entry.data) for entry in entries])
        state, target, probability = (
            np.concatenate([getattr(entry, name) for entry in entries])
            for name in ("row", "col", "data")
        )
    else:
        array = _to_floats("transitions", transitions)
        if array.ndim == 2 and array.shape[1] == 5 and len(array):
            return _split_rows(array, rewards)
        shape = array.shape
        if array.ndim != 3 or shape[1] != shape[2] or not array.size:
            raise OptionError(f"{FORMS_OF_TRANSITIONS}, not of shape {list(shape)}")
        action, state, target = np.nonzero(array)  # also those that are negative or NaN
        probability = array[action, state, target]
    reward = _find_rewards("rewards", rewards, shape, state, action, target)
    return [state, action, target, probability, reward], shape[1], shape


def _split_rows(
    array: NDArray[np.float64], rewards: Any
) -> tuple[list[NDArray[Any]], int, tuple[int, ...]]:
    numbers = np.nan_to_num(array[:, :3], nan=0.5, posinf=0.5, neginf=0.5).astype(np.int64)
    fine = (numbers == array[:, :3]) & (numbers >= (0, 0, FAILURE_TARGET))
    if not fine.all():
        row, column = np.argwhere(~fine)[0].tolist()
        name = ("a state", "an action", "a next state, or -1 for a failure")[column]
        raise OptionError(
            f"transitions[{row}, {column}] must be the number of {name}, not {array[row, column]}"
        )
    if np.ndim(rewards) or rewards != 0:
        raise OptionError("rewards are given twice: by rows [N, 5], and by themselves")
    state, action, target = numbers.T
    states = int(max(state.max(), target.max())) + 1
    check_numbers(states, int(action.max()) + 1, len(array))
    return [state, action, target, array[:, 3], array[:, 4]], states, (len(array),)


def _find_rewards(
    what: str, rewards: Any, shape: tuple[int, ...], *columns: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the reward of each row."""
    array = _to_floats(what, rewards)
    if array.ndim == 0:
        return np.full(len(columns[0]), float(array))
    return _pick(f"{what} must be one number, or", array, _list_places(shape, *columns))


def _list_places(
    shape: tuple[int, ...], state: NDArray[Any], action: NDArray[Any], target: NDArray[Any]
) -> dict[tuple[int, ...], Any]:
    """Return where each row is in an array of one of some shapes."""
    if len(shape) == 1:
        return {shape: slice(None)}
    actions, states, _ = shape
    return {(states,): state, (states, actions): (state, action), shape: (action, state, target)}


def _pick(what: str, array: NDArray[Any], places: dict[tuple[int, ...], Any]) -> NDArray[Any]:
    if array.shape not in places:
        *some, last = (str(list(shape)) for shape in places)
        listed = f"{', '.join(some)} or {last}" if some else last
        raise OptionError(f"{what} an array {listed}, not of shape {list(array.shape)}")
    return np.asarray(array[places[array.shape]])


def _read_mask(what: str, given: Any, states: int) -> NDArray[np.bool_]:
    """Return the mask of states given by numbers or as a mask."""
    array = np.asarray(given)
    if array.dtype == bool and array.shape == (states,):
        return array
    mask = np.zeros(states, bool)
    if array.size:
        whole = array.ndim == 1 and array.dtype.kind in "iu"
        if not whole or array.min() < 0 or array.max() >= states:
            allowed = f"numbers of states, 0 to {states - 1}, or a mask of {states}"
            raise OptionError(f"{what} must be {allowed}, not {shorten(given)}")
        mask[array] = True
    return mask


def read_start(start: Any, states: int) -> NDArray[Any]:
    """Return the probability of starting in each state."""
    given = np.asarray(start)
    if given.ndim == 0 and given.dtype.kind in "iu" and 0 <= given < states:
        return np.asarray(np.eye(1, states, int(given))[0])
    if given.shape != (states,):
        allowed = f"a state, 0 to {states - 1}, or {states} probabilities"
        raise OptionError(f"start must be {allowed}, not {shorten(start)}")
    return given


def _to_floats(what: str, value: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{what} must be numbers, all rows of one length: {error}") from None


def find_maker(text: str) -> Maker:
    """Return the maker of the model of a file, whose arrays are its defaults."""
    values = _read_archive(text)
    allowed = [*inspect.signature(from_arrays).parameters, "bound", "constraints"]
    costs = {name: values.pop(name) for name in [*values] if name.startswith("cost_")}
    require_known(f"{text}: ", "an array", values, [name for name in allowed if name != "costs"])
    if "transitions" not in values:
        raise OptionError(f"{text}: has no array 'transitions'")
    # Numbers and texts are stored as arrays of no dimension, and names as arrays of texts.
    defaults = {
        name: array.tolist() if array.ndim == 0 or array.dtype.kind == "U" else array
        for name, array in values.items()
    }
    if costs:
        defaults["costs"] = {name.removeprefix("cost_"): cost for name, cost in costs.items()}
    return make_from_file(text, partial(from_arrays, defaults.pop("transitions")), defaults)


def _read_archive(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive, by name, if they fit into the default memory limit."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            size = sum(member.file_size for member in archive.zip.infolist())
            if size > (limit := find_default_memory()):
                most = f"{limit / 1e9:.3g} GB are allowed on this machine"
                raise OptionError(f"{path}: its arrays take {size / 1e9:.3g} GB; {most}")
            return {name: np.asarray(archive[name]) for name in archive.files}
    except VulcanError:
        raise
    except OSError as error:
        raise OptionError(f"{path}: can't be read: {error.strerror or error}") from None
    except Exception as error:  # numpy and zipfile raise many kinds
        raise OptionError(f"{path}: this is not what numpy.savez writes: {error}") from None
