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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.formats.archive import read_archive
from vulcan.formats.array_rows import plain, read_transitions, to_floats
from vulcan.formats.faults import in_file
from vulcan.formats.registry import Maker
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.numbers import is_number
from vulcan.parameters import shorten, suggest

__all__ = ["FORMS", "find_maker", "from_arrays"]

FORMS: Final = {"path/to/model.npz": "transitions and rewards as arrays"}


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
    table = read_transitions(transitions, order)
    if state_names is not None:
        table.widen(len(state_names))
    find = _StateFinder(table.states, state_names)
    ends, fails = find.mask("terminal", terminal), find.mask("failure", failure)
    if (both := np.flatnonzero(ends & fails)).size:
        raise OptionError(f"{find.name(both[0])} is in both failure and terminal")
    begins = find.start(start)
    if (failed := np.flatnonzero((begins != 0) & fails)).size:
        raise OptionError(f"start has {find.name(failed[0])}, which is in failure")
    reward = table.find_rewards(rewards)
    kept = (table.probability != 0) & ~(ends | fails)[table.state]
    table.check(reward, kept, state_names)
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
    values = read_archive(path)
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


class _StateFinder:
    """Reads what names states: numbers, names, masks and distributions."""

    def __init__(self, states: int, names: Sequence[Hashable] | None) -> None:
        self.states, self.names = states, names
        self._numbers = {name: number for number, name in enumerate(names or ())}
        # Numbers that are names of states must not be taken for others.
        self._numbered = all(isinstance(name, str) for name in names or ())

    def plain(self, number: int) -> Any:
        """Return what stands for a state."""
        return plain(number, self.names)

    def name(self, number: int) -> str:
        """Return what a message calls a state."""
        return f"state {shorten(self.plain(number))}"

    def number(self, what: str, given: Any) -> int:
        """Return the number of a state, given by it or by its name."""
        hashable = isinstance(given, Hashable)
        if hashable and given in self._numbers:
            return self._numbers[given]
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool | np.bool_)
        if whole and self._numbered and 0 <= given < self.states:
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
                if not is_number(chance):
                    raise OptionError(f"start[{state!r}] must be a probability, not {chance!r}")
                chances[self.number("start", state)] += chance
        elif isinstance(given, list) or (isinstance(given, np.ndarray) and given.ndim):
            chances = to_floats("start", given)
            if chances.shape != (self.states,):
                shape = list(chances.shape)
                raise OptionError(f"start must be of shape {[self.states]}, not {shape}")
        else:
            chances[self.number("start", given)] = 1.0
        return chances
