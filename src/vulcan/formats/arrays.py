"""Models that are arrays: transitions, rewards, failure states and a start; `path/to/model.npz`.

Transitions come in one of three forms, for S states and A actions:

    dense     [A, S, S] or [S, A, S]: the probability of each next state
    sparse    a list of A matrices [S, S], such as those of `scipy.sparse`
    rows      [N, 4] or [N, 5]: state, action, next state (-1 for a failure), probability (, reward)

An action whose probabilities are all 0 in a state does not exist there, and a state without
actions is a safe terminal. Whatever form it is, numpy makes the rows of an `ArrayModel` of it, and
no row is looked at in Python.

A file is what `numpy.savez` writes, with the parameters of `from_arrays` as names, and perhaps
`bound`, the text of a risk bound. Nothing in it is run.
"""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError
from vulcan.formats.faults import in_file
from vulcan.formats.registry import Maker
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.rules import Rule, Violation
from vulcan.parameters import shorten, suggest
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = ["FORMS", "find_maker", "from_arrays"]

FORMS: Final = {"path/to/model.npz": "transitions and rewards as arrays"}

ORDERS: Final = ("action", "state")
FORMS_OF_TRANSITIONS: Final = (
    "transitions must be an array [A, S, S] or [S, A, S], a list of A sparse matrices [S, S], or "
    "rows [N, 4] or [N, 5]"
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
    order: str | None = None,
    action_labels: Sequence[str] | None = None,
    state_names: Sequence[Hashable] | None = None,
) -> ArrayModel:
    """Return the model that arrays describe.

    Parameters
    ----------
    transitions
        The probabilities of next states; see the head of this module for the forms.
    rewards
        One number for all, an array [S] (of every action in a state), [S, A], or in the form of
        the transitions (of every transition). Rows may have theirs as a fifth column.
    horizon
        How many actions a history has at most.
    failure
        The failure states, as a mask [S], or as numbers or names: every transition into one of
        them is a failure, whose reward still counts.
    terminal
        States that end a history well, likewise. What is said about their actions is passed over.
    start
        The initial state, a probability for each state, or a dictionary of probabilities.
    discount
        As in every model.
    order
        Which axis of a dense array comes first, "action" or "state". Needed only where there are as
        many actions as states.
    action_labels
        What people call each action; by default its number.
    state_names
        What stands for each state instead of its number.

    Raises
    ------
    OptionError
        If a shape, a name or a number of a state is wrong; the message says what is allowed.
    ModelError
        If probabilities or rewards break a rule; the message names the place.

    Examples
    --------
    >>> stay, leap = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0.9, 0.1], [0, 1, 0], [0, 0, 1]]
    >>> model = from_arrays([stay, leap], [[0, 5], [0, 0], [0, 0]], order="action", horizon=1,
    ...                     failure=[2], terminal=[1], action_labels=["stay", "leap"])
    >>> model.outcomes(0, 1)[1]
    Outcome(probability=0.1, reward=5.0, state=FAILURE, label=None)
    """
    table = _read_transitions(transitions, order)
    if state_names is not None:
        table.widen(len(state_names))
    find = _StateFinder(table.states, state_names)
    ends, fails = find.mask("terminal", terminal), find.mask("failure", failure)
    if (both := np.flatnonzero(ends & fails)).size:
        raise OptionError(f"{find.name(both[0])} is in both failure and terminal")
    begins = find.start(start)
    if (failed := np.flatnonzero(begins * fails)).size:
        raise OptionError(f"start has {find.name(failed[0])}, which is in failure")
    reward = table.find_rewards(rewards)
    kept = (table.probability != 0) & ~(ends | fails)[table.state]
    table.check(reward, kept, find)
    state, action, target, probability, reward = (
        column[kept]
        for column in (table.state, table.action, table.target, table.probability, reward)
    )
    if not len(state):
        raise OptionError("transitions leave nothing to decide: no state has an action")
    target = np.where((target >= 0) & fails[target], FAILURE_TARGET, target)
    return ArrayModel(
        *(state, action, target, probability, reward),
        horizon=horizon,
        start=begins,
        discount=discount,
        action_labels=action_labels,
        state_names=state_names,
    )


def find_maker(text: str) -> Maker:
    """Return what makes the model of a file, whose arrays are its defaults, and its bound."""
    values = _load(text)
    bound = values.pop("bound", None)
    if bound is not None and not isinstance(bound, str):
        raise OptionError(f'{text}: bound must be a string, such as "0.002*x", not {bound!r}')
    transitions = values.pop("transitions")
    return Maker(text, in_file(text, partial(from_arrays, transitions, **values)), bound)


def _load(path: str) -> dict[str, Any]:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise OptionError(f"{path}: this is one array; numpy.savez writes several")
        with file:
            values = {name: file[name] for name in file.files}
    except OSError as error:
        raise OptionError(f"{path}: can't be read: {error.strerror or error}") from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise OptionError(f"{path}: this is not what numpy.savez writes: {error}") from error
    allowed = [*inspect.signature(from_arrays).parameters, "bound"]
    for name in values:
        if name not in allowed:
            hint = f"allowed are {', '.join(allowed)}{suggest(name, allowed)}"
            raise OptionError(f"{path}: has an array {name!r}; {hint}")
    if "transitions" not in values:
        raise OptionError(f"{path}: has no array 'transitions'")
    # Numbers and texts are arrays of no dimension in such a file, and names arrays of texts.
    return {
        name: array.tolist() if array.ndim == 0 or array.dtype.kind == "U" else array
        for name, array in values.items()
    }


@dataclass
class _Table:
    """Transitions as rows, with what they were given as.

    Attributes
    ----------
    state, action, target, probability
        The rows.
    reward
        The rewards that were given with the rows; None without them.
    states, actions
        How many there are.
    shape
        Of a dense array; None otherwise.
    order
        The axis of it that comes first.
    """

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    target: NDArray[np.int64]
    probability: NDArray[np.float64]
    states: int
    actions: int
    reward: NDArray[np.float64] | None = None
    shape: tuple[int, ...] | None = None
    order: str = "action"

    def widen(self, states: int) -> None:
        """Let there be as many states as have names."""
        if states < self.states or (self.shape is not None and states != self.states):
            raise OptionError(f"state_names must be {self.states} names, not {states}")
        self.states = states

    def find_rewards(self, rewards: Any) -> NDArray[np.float64]:
        """Return the reward of each row."""
        if self.reward is not None:
            if not (np.ndim(rewards) == 0 and rewards == 0):
                raise OptionError("rewards are given twice: by rows [N, 5], and by themselves")
            return self.reward
        if _is_sparse_list(rewards):
            return self._find_sparse(rewards)
        array = _to_floats("rewards", rewards)
        pairs = (self.states, self.actions)
        if array.ndim == 0:
            return np.full(len(self.state), float(array))
        if array.shape == pairs[:1]:
            return array[self.state]
        if array.shape == pairs:
            return array[self.state, self.action]
        if array.ndim == 3 and array.shape == self.shape:
            axes = (
                (self.action, self.state) if self.order == "action" else (self.state, self.action)
            )
            return np.asarray(array[(*axes, self.target)])
        dense = f", or {list(self.shape)} like the transitions" if self.shape is not None else ""
        allowed = f"one number, an array [{self.states}], {list(pairs)}{dense}"
        turned = "; it may have to be transposed" if array.shape == pairs[::-1] else ""
        raise OptionError(f"rewards must be {allowed}, not of shape {list(array.shape)}{turned}")

    def _find_sparse(self, rewards: Sequence[Any]) -> NDArray[np.float64]:
        shapes = [tuple(matrix.shape) for matrix in rewards]
        wanted = [(self.states, self.states)] * self.actions
        if shapes != wanted:
            described = f"{self.actions} matrices {list(wanted[0])}"
            raise OptionError(f"rewards must be {described}, not {shorten(shapes)}")
        found = np.zeros(len(self.state))
        for action, matrix in enumerate(rewards):
            rows = np.flatnonzero((self.action == action) & (self.target >= 0))
            chosen = matrix.tocsr()[self.state[rows], self.target[rows]]
            found[rows] = np.asarray(chosen, float).ravel()
        return found

    def check(
        self, reward: NDArray[np.float64], kept: NDArray[np.bool_], find: _StateFinder
    ) -> None:
        """Refuse probabilities and rewards that break a rule, by the place where they were."""
        chance = self.probability
        for rule, fine, values, allowed in (
            (Rule.PROBABILITIES, (chance >= 0) & (chance <= 1), chance, "from 0 to 1"),
            (Rule.REWARDS, np.abs(reward) <= LARGEST_REWARD, reward, f"at most {LARGEST_REWARD:g}"),
        ):
            if (wrong := np.flatnonzero(kept & ~fine)).size:
                row = int(wrong[0])
                what = "a probability" if rule is Rule.PROBABILITIES else "a reward"
                target = self.target[row]
                into = "failure" if target == FAILURE_TARGET else find.name(target)
                message = f"{what} must be {allowed}, not {values[row]} (into {into})"
                self._refuse(rule, row, message, find)
        pairs = self.state * self.actions + self.action
        sums = np.bincount(pairs[kept], chance[kept], minlength=self.states * self.actions)
        if (wrong := np.flatnonzero(kept & (np.abs(sums - 1) > SUM_TOLERANCE)[pairs])).size:
            row = int(wrong[0])
            message = f"probabilities sum to {sums[pairs[row]]:.12g}, not to 1"
            self._refuse(Rule.PROBABILITIES_SUM, row, message, find)

    def _refuse(self, rule: Rule, row: int, message: str, find: _StateFinder) -> None:
        state, action = int(self.state[row]), int(self.action[row])
        if self.shape is None:
            place = ""
        else:
            axes = (action, state) if self.order == "action" else (state, action)
            place = f"transitions[{axes[0]}, {axes[1]}]: "
        raise ModelError(Violation(rule, place + message, find.plain(state), action))


def _read_transitions(transitions: Any, order: str | None) -> _Table:
    if order not in (None, *ORDERS):
        raise OptionError(f'order must be "action" or "state", not {order!r}')
    if _is_sparse_list(transitions):
        return _read_sparse(transitions)
    array = _to_floats("transitions", transitions)
    if array.ndim == 2 and array.shape[1] in (4, 5) and len(array):
        return _read_rows(array)
    if array.ndim != 3 or not array.size:
        raise OptionError(f"{FORMS_OF_TRANSITIONS}, not of shape {list(array.shape)}")
    first, second, states = array.shape
    possible = [name for name, axis in zip(ORDERS, (second, first), strict=True) if axis == states]
    if not possible or order not in (None, *possible):
        wanted = "" if order is None else f" with order={order!r}"
        raise OptionError(f"{FORMS_OF_TRANSITIONS}, not of shape {list(array.shape)}{wanted}")
    if order is None and len(possible) > 1:
        raise OptionError(
            f"transitions of shape {list(array.shape)} may be [A, S, S] or [S, A, S]: "
            'say order="action" or order="state"'
        )
    order = order or possible[0]
    # A negative or missing number must be met, rather than passed over.
    one, two, target = np.nonzero(array)
    action, state = (one, two) if order == "action" else (two, one)
    actions = first if order == "action" else second
    columns = (state, action, target, array[one, two, target])
    return _Table(*columns, states, actions, shape=array.shape, order=order)


def _read_rows(array: NDArray[np.float64]) -> _Table:
    """Read rows: state, action, next state, probability and perhaps reward."""
    numbers = np.nan_to_num(array[:, :3], nan=0.5, posinf=0.5, neginf=0.5).astype(np.int64)
    fine = (numbers == array[:, :3]) & (numbers >= (0, 0, FAILURE_TARGET))
    if not fine.all():
        row, column = np.argwhere(~fine)[0].tolist()
        name = ("a state", "an action", "a next state, or -1 for a failure")[column]
        raise OptionError(
            f"transitions[{row}, {column}] must be the number of {name}, not {array[row, column]}"
        )
    state, action, target = numbers.T
    states, actions = int(max(state.max(), target.max())) + 1, int(action.max()) + 1
    reward = array[:, 4] if array.shape[1] == 5 else None
    return _Table(state, action, target, array[:, 3], states, actions, reward)


def _read_sparse(matrices: Sequence[Any]) -> _Table:
    states = int(matrices[0].shape[0])
    for action, matrix in enumerate(matrices):
        if tuple(matrix.shape) != (states, states):
            shape = list(matrix.shape)
            raise OptionError(
                f"transitions[{action}] must be of shape {[states, states]}, not {shape}"
            )
    entries = [matrix.tocoo() for matrix in matrices]
    counts = [len(entry.data) for entry in entries]
    return _Table(
        np.concatenate([entry.row for entry in entries]).astype(np.int64),
        np.repeat(np.arange(len(entries)), counts),
        np.concatenate([entry.col for entry in entries]).astype(np.int64),
        np.concatenate([entry.data for entry in entries]).astype(float),
        states,
        len(entries),
    )


def _is_sparse_list(value: Any) -> bool:
    if hasattr(value, "tocoo"):
        raise OptionError(f"{FORMS_OF_TRANSITIONS}, not one sparse matrix")
    listed = isinstance(value, list | tuple) and len(value) > 0
    return listed and all(hasattr(matrix, "tocoo") for matrix in value)


def _to_floats(what: str, value: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{what} must be numbers, all rows of one length: {error}") from None


class _StateFinder:
    """Reads what names states: numbers, names, masks and distributions."""

    def __init__(self, states: int, names: Sequence[Hashable] | None) -> None:
        self.states, self.names = states, names
        self._numbers = {name: number for number, name in enumerate(names or ())}

    def plain(self, number: int) -> Any:
        """Return what stands for a state."""
        return int(number) if self.names is None else self.names[number]

    def name(self, number: int) -> str:
        """Return what a message calls a state."""
        return f"state {shorten(self.plain(number))}"

    def number(self, what: str, given: Any) -> int:
        """Return the number of a state, given by it or by its name."""
        hashable = isinstance(given, Hashable)
        if hashable and given in self._numbers:
            return self._numbers[given]
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool | np.bool_)
        if whole and self.names is None and 0 <= given < self.states:
            return int(given)
        known = f"0 to {self.states - 1}" if self.names is None else shorten(list(self.names))
        hint = suggest(given, [name for name in self._numbers if isinstance(name, str)])
        raise OptionError(f"{what} must be a state, not {shorten(given)}; states are {known}{hint}")

    def mask(self, what: str, given: Any) -> NDArray[np.bool_]:
        """Return which states are meant by a mask, by numbers or by names."""
        mask = np.zeros(self.states, bool)
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if isinstance(given, list | tuple) and given and all(type(x) is bool for x in given):
            if len(given) != self.states:
                raise OptionError(f"{what} is a mask of {len(given)} for {self.states} states")
            return np.array(given)
        named = isinstance(given, Hashable) and given in self._numbers
        single = named or isinstance(given, str) or not isinstance(given, Iterable)
        listed = [given] if single else list(given)
        for place, state in enumerate(listed):
            mask[self.number(what if single else f"{what}[{place}]", state)] = True
        return mask

    def start(self, given: Any) -> NDArray[np.float64]:
        """Return the probability of each state to be the start."""
        chances = np.zeros(self.states)
        if isinstance(given, Mapping):
            for state, chance in given.items():
                chances[self.number("start", state)] += chance
        elif isinstance(given, list) or (isinstance(given, np.ndarray) and given.ndim):
            chances = _to_floats("start", given)
            if chances.shape != (self.states,):
                shape = list(chances.shape)
                raise OptionError(f"start must be of shape {[self.states]}, not {shape}")
        else:
            chances[self.number("start", given)] = 1.0
        return chances
