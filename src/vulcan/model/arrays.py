"""Models given as arrays: a row for each outcome of each action of each state.

    state        the state in which the action is taken, a number from 0
    action       the action, a number from 0
    target       the state that the outcome leads to, or -1 for a failure
    probability  the probability of the outcome
    reward       its reward
    costs        by name, its costs
    events       its event, a text; "" for none

State graphs take the arrays over without evaluating the model row by row. A state without rows is a
safe terminal. An observer can't distinguish rows of one action with the same target, reward, costs
and event; they are added up. As a model, it represents states and actions by their numbers, or by
`state_names` and `action_names`.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vulcan.errors import ModelError
from vulcan.model.answers import label_outcomes
from vulcan.model.interface import FAILURE, Outcome, Start, stable_text
from vulcan.model.rules import Rule, Violation, refuse_small
from vulcan.numerics import LARGEST_REWARD, SMALLEST_PROBABILITY, SUM_TOLERANCE
from vulcan.parameters import shorten
from vulcan.runtime.arrays import ranges, starts

FAILURE_TARGET: Final = -1

FEWEST: Final = 1 << 20
GAPS: Final = 64
MOST: Final = (1 << 31) - 1  # rows of graphs are numbered with 32 bits


def check_numbers(states: int, actions: int, rows: int) -> None:
    """Refuse large gaps between the numbers of states or actions: each number takes memory."""
    most = min(MOST, max(FEWEST, GAPS * rows))
    for what, count in (("states", states), ("actions", actions)):
        if count > most:
            message = f"{what} must be numbered without large gaps: from 0 to {most - 1}"
            raise _refuse(Rule.STATES, f"{message}, not to {count - 1}")


class Names(Sequence[str]):
    """Names of states by the values of variables, `x=3, gold=1`, written on demand.

    `columns` has the value of each variable in each state.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)
        self._given: dict[str, int] = {}
        self._form = ", ".join(f"{name}=%s" for name in columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, state: Any) -> Any:
        values = [column[state].tolist() for column in self._columns.values()]
        texts = (str(own).lower() if isinstance(own, bool) else own for own in values)
        return self._form % tuple(texts)

    def __repr__(self) -> str:
        return f"({', '.join(repr(self[state]) for state in range(min(2, len(self))))}, …)"

    def give(self, state: int) -> str:
        """Return a name that `find` will be asked for."""
        name: str = self[state]
        self._given[name] = state
        return name

    def find(self, name: Any) -> int | None:
        """Return the number of a name; None if there is no such name."""
        if name not in self._given and len(self._given) < len(self):
            self._given = {name: state for state, name in enumerate(self)}
        return self._given.get(name)

    def are_different(self) -> bool:
        """Whether all names differ."""
        code = np.zeros(len(self), np.int64)
        for column in self._columns.values():
            values, own = np.unique(column, return_inverse=True)
            _, code = np.unique(code * len(values) + own, return_inverse=True)
        return len(code) == 0 or int(code.max()) + 1 == len(code)

    def digest(self) -> str:
        """Return a text that differs between names that differ."""
        digest = hashlib.sha256(self._form.encode())
        for column in self._columns.values():
            wide = column.astype(float) if column.dtype.kind == "f" else column.astype(np.int64)
            digest.update(wide.tobytes())
        return digest.hexdigest()


class ArrayModel:
    """A model given as arrays, one row for each outcome.

    Parameters
    ----------
    state, action, target, probability, reward
        The rows, in any order; see the head of this module. `reward` may be one number for all.
    horizon
        Largest number of actions in a history.
    start
        The number of the initial state, or the probability of each state to be it.
    discount
        As in every model.
    action_labels
        The label of each action; by default its number, or the text of its name.
    state_names, action_names
        A hashable object for each state and each action, instead of its number.
    costs, events
        Costs and event of each row; see the head of this module. A cost may be one number for all.

    Attributes
    ----------
    states
        Number of states.
    start
        The probability of each initial state.
    first_action, first_row
        The actions of state s are first_action[s] to first_action[s + 1] - 1, in the order of their
        numbers, and the rows of action k are first_row[k] to first_row[k + 1] - 1, safe ones first.
    number, target, probability, reward, costs, event
        The number of each action, and the rows in that order; `event` may be None.
    source
        The name of the file that it was read from; None without one.

    Raises
    ------
    ModelError
        If a row breaks a rule; the message names its state and action.

    Examples
    --------
    >>> model = ArrayModel([0, 0, 0], [0, 1, 1], [1, 1, -1], [1.0, 0.9, 0.1], [1.0, 3.0, 0.0],
    ...                    horizon=1, action_labels=["walk", "run"])
    >>> [model.action_label(action) for action in model.actions(0)]
    ['walk', 'run']
    >>> model.outcomes(0, 0)
    [Outcome(probability=1.0, reward=1.0, state=1, label=None)]
    """

    source: str | None = None

    def __init__(
        self,
        state: ArrayLike,
        action: ArrayLike,
        target: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike = 0.0,
        *,
        horizon: int,
        start: int | ArrayLike = 0,
        discount: float = 1.0,
        action_labels: Sequence[str] | None = None,
        state_names: Sequence[Hashable] | None = None,
        action_names: Sequence[Hashable] | None = None,
        costs: Mapping[str, ArrayLike] | None = None,
        events: ArrayLike | None = None,
    ) -> None:
        self.horizon, self.discount = horizon, discount
        rows: dict[str, NDArray[Any]] = {
            "state": _to_numbers("state", state),
            "action": _to_numbers("action", action),
            "target": _to_numbers("target", target),
            "probability": _to_floats("probability", probability),
            "reward": _to_floats("reward", reward),
        }
        for name, cost in _read_costs(costs).items():
            rows[f"cost {name}"] = _to_floats(f"cost {name}", cost)
        for name in [*rows][4:]:
            if rows[name].ndim == 0:
                rows[name] = np.broadcast_to(rows[name], rows["state"].shape)
        if events is not None:
            rows["event"] = _read_events(events)
        lazy = state_names is None or isinstance(state_names, Names)
        self._state_names = state_names if lazy else tuple(state_names or ())
        self._action_names = None if action_names is None else tuple(action_names)
        self._check_rows(rows, probability)
        rows = _add_up_equal(rows)
        begins = _find_begins(rows, "state", "action")
        sums = np.add.reduceat(rows["probability"], begins)
        if (wrong := np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)).size:
            message = f"probabilities sum to {sums[wrong[0]]:.12g}, not to 1"
            raise self._refuse(Rule.PROBABILITIES_SUM, message, rows, begins[wrong[0]])
        rows["probability"] = np.minimum(rows["probability"], 1.0)  # after the sums' tolerance
        if not rows["probability"].all():
            kept = rows["probability"] > 0
            rows = {name: column[kept] for name, column in rows.items()}
        self.start = _read_start(start)
        largest = max(rows["state"].max(), rows["target"].max(), *self.start)
        # A distribution has a place for every state, also for one that nothing leads to.
        self.states = max(1 + int(largest), np.size(start))
        self._actions = 1 + int(rows["action"].max())
        check_numbers(self.states, self._actions, max(len(rows["state"]), np.size(start)))
        _check_names("state_names", state_names, self.states)
        _check_names("action_names", action_names, self._actions)
        if self._state_names is not None:
            self.states = len(self._state_names)
        begins = _find_begins(rows, "state", "action")
        self.first_row = np.append(begins, len(rows["state"]))
        self.number = rows["action"][begins].astype(np.int32)
        counts = np.bincount(rows["state"][begins], minlength=self.states)
        self.first_action = np.concatenate(([0], np.cumsum(counts)))
        self.target, self.probability = rows["target"].astype(np.int32), rows["probability"]
        self.reward, self.event = rows["reward"], rows.get("event")
        self.costs = {name[5:]: rows[name] for name in rows if name.startswith("cost ")}
        self.action_labels = self._label_actions(action_labels)

    def __repr__(self) -> str:
        counts = f"{self.states:,} states, {len(self.target):,} rows"
        name = "ArrayModel" if self.source is None else f"{self.source} "
        return f"{name}({counts}, horizon={self.horizon})"

    def _check_rows(self, rows: dict[str, NDArray[Any]], given: ArrayLike) -> None:
        """Raise a `ModelError` for the first row that breaks a rule.

        `given` are the probabilities before they became floats, which may have made them 0.
        """
        if len(set(map(len, rows.values()))) > 1 or not len(rows["state"]):
            lengths = ", ".join(f"{name} {len(column)}" for name, column in rows.items())
            message = f"columns must be of one length above 0, not {lengths}"
            raise _refuse(Rule.OUTCOMES_EXIST, message)
        for name, least in (("state", 0), ("action", 0), ("target", FAILURE_TARGET)):
            if (wrong := np.flatnonzero(rows[name] < least)).size:
                message = f"{name} of row {wrong[0]} must be at least {least}"
                raise _refuse(Rule.STATES, f"{message}, not {rows[name][wrong[0]]}")
        chance, costs = rows["probability"], [name for name in rows if name.startswith("cost ")]
        between = (chance >= 0) & (chance <= 1)
        small, limit = f"0 or at least {SMALLEST_PROBABILITY:g}", f"at most {LARGEST_REWARD:g}"
        for rule, name, values, allowed, fine in (
            (Rule.PROBABILITIES, "probability", given, "from 0 to 1", between),
            (Rule.PROBABILITIES, "probability", given, small, ~_find_small(given, chance)),
            *(
                (rule, name, rows[name], limit, np.abs(rows[name]) <= LARGEST_REWARD)
                for name, rule in [("reward", Rule.REWARDS), *((c, Rule.COSTS) for c in costs)]
            ),
        ):
            if not fine.all():
                row = int(np.argmin(fine))
                target, into = int(rows["target"][row]), "failure"
                if target != FAILURE_TARGET:
                    into = f"next state {shorten(self.state_name(target))}"
                message = f"the {name} of {into} must be {allowed}, not {np.asarray(values)[row]!s}"
                raise self._refuse(rule, message, rows, row)

    def _refuse(
        self, rule: Rule, message: str, rows: dict[str, NDArray[Any]], row: int
    ) -> ModelError:
        """Return an error that names the state and action of a row."""
        state, action = int(rows["state"][row]), int(rows["action"][row])
        names = self._action_names
        named = action if names is None or action >= len(names) else names[action]
        return ModelError(Violation(rule, message, self.state_name(state), named))

    @cached_property
    def fingerprint(self) -> str:
        """A string that differs between models that differ anywhere."""
        names = self._state_names
        if names is not None:
            names = names.digest() if isinstance(names, Names) else list(map(stable_text, names))
        frame = (self.horizon, self.start, self.discount, names, self.action_labels)
        digest = hashlib.sha256(repr(frame).encode())
        for array in (self.first_row, self.number, self.first_action, self.target):
            digest.update(np.ascontiguousarray(array, np.int64).tobytes())
        digest.update(self.probability.tobytes() + self.reward.tobytes())
        for name, column in (*self.costs.items(), ("event", self.event)):
            digest.update(b"" if column is None else name.encode() + column.tobytes())
        return digest.hexdigest()

    def begin_at(self, start: Any, horizon: int) -> ArrayModel:
        """Return the same rows with another initial state and horizon."""
        model = copy.copy(self)
        model.__dict__.pop("fingerprint", None)
        model.start, model.horizon = {self._find_state(start): 1.0}, horizon
        return model

    def _label_actions(self, labels: Sequence[str] | None) -> tuple[str, ...]:
        if labels is None:
            return tuple(map(stable_text, self._action_names or range(self._actions)))
        few = len(labels) < self._actions
        if isinstance(labels, str) or few or len(set(labels)) < len(labels):
            message = f"action_labels must be {self._actions} different names, not {labels!r}"
            raise _refuse(Rule.ACTION_LABELS_DIFFER, message)
        return tuple(map(str, labels))

    def initial_state(self) -> Any:
        """Return the state before any action, or the distribution that it is drawn from."""
        drawn = [Outcome(p, 0.0, self.state_name(state)) for state, p in self.start.items()]
        return Start.draw(drawn) if len(drawn) > 1 else drawn[0].state

    def actions(self, state: Any) -> list[Any]:
        """Return the actions of a state, in the order of their numbers."""
        place = self._find_state(state)
        first, end = self.first_action[place : place + 2].tolist()
        numbers: list[int] = self.number[first:end].tolist()
        names = self._action_names
        return numbers if names is None else [names[number] for number in numbers]

    def action_label(self, action: Any) -> str:
        """Return the label of an action."""
        return self.action_labels[self._find_action(action)]

    def state_name(self, number: int) -> Any:
        """Return the name of a state; its number if it has no name."""
        names = self._state_names
        if names is None or number >= len(names):
            return number
        return names.give(number) if isinstance(names, Names) else names[number]

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the outcomes of an action in a state."""
        place = self._find_state(state)
        first, end = self.first_action[place : place + 2].tolist()
        row = first + int(np.searchsorted(self.number[first:end], self._find_action(action)))
        return self._read_rows(*self.first_row[row : row + 2].tolist())

    def _read_rows(self, begin: int, stop: int) -> list[Outcome]:
        charged = self.list_charges(begin, stop)
        return [
            Outcome(p, r, FAILURE if s == FAILURE_TARGET else self.state_name(s), **charges)
            for p, r, s, charges in zip(
                self.probability[begin:stop].tolist(),
                self.reward[begin:stop].tolist(),
                self.target[begin:stop].tolist(),
                charged,
                strict=True,
            )
        ]

    def label_rows(self, actions: NDArray[np.intp]) -> tuple[list[str], NDArray[np.intp]]:
        """Return the labels of the outcomes of some actions: texts, and the number of each.

        Actions are numbered as in `first_row`.
        """
        counts = np.diff(self.first_row)[actions]
        target = self.target[ranges(self.first_row[actions], counts)]
        reached = np.zeros(self.states + 1, np.bool_)
        reached[target] = True  # the last one is failure
        states = np.flatnonzero(reached)
        numbers = np.cumsum(reached) - 1
        texts = [stable_text(self.state_name(state)) for state in states.tolist()]
        if reached[-1]:
            texts[-1] = "failure"
        label = numbers[target]
        # The texts of states are their labels, unless they are equal within one action.
        often = Counter(texts)
        unclear = np.array([often[text] > 1 for text in texts], np.bool_)[label]
        owner = np.repeat(np.arange(len(actions)), counts)
        unclear[1:] |= (target[1:] == target[:-1]) & (owner[1:] == owner[:-1])
        first, others = starts(counts), dict[str, int]()
        for k in dict.fromkeys(owner[unclear].tolist()):
            outcomes = self._read_rows(*self.first_row[actions[k] : actions[k] + 2].tolist())
            own = [len(texts) + others.setdefault(t, len(others)) for t in label_outcomes(outcomes)]
            label[first[k] : first[k] + counts[k]] = own
        return [*texts, *others], label

    def list_charges(self, begin: int, stop: int) -> list[dict[str, Any]]:
        """Return costs and event of some rows, as an `Outcome` takes them."""
        if not self.costs and self.event is None:
            return [{}] * (stop - begin)
        costs = [cost[begin:stop].tolist() for cost in self.costs.values()]
        events = [""] * (stop - begin) if self.event is None else self.event[begin:stop].tolist()
        return [
            {"costs": tuple(zip(self.costs, row, strict=True)), "event": event or None}
            for event, *row in zip(events, *costs, strict=True)
        ]

    @cached_property
    def _state_numbers(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(self._state_names or ())}

    @cached_property
    def _action_numbers(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(self._action_names or ())}

    def _find_state(self, state: Any) -> int:
        names = self._state_names
        number = names.find(state) if isinstance(names, Names) else self._state_numbers.get(state)
        if number is not None:
            return number
        if names is None and state in range(self.states):
            return int(state)
        known: Any = range(self.states) if names is None else names
        raise LookupError(f"there is no state {shorten(state)}; states are {shorten(known)}")

    def _find_action(self, action: Any) -> int:
        number: int = action if self._action_names is None else self._action_numbers[action]
        return number


def _read_start(start: Any) -> dict[int, float]:
    """Return the probability of each initial state."""
    given = np.asarray(start)
    if given.ndim == 0:
        if np.issubdtype(given.dtype, np.integer) and given >= 0:
            return {int(given): 1.0}
        raise _refuse(Rule.STATES, f"start must be the number of a state, not {start!r}")
    chances = _to_floats("start", start)
    if chances.ndim != 1:
        raise _refuse(Rule.PROBABILITIES, "start must be a state, or a probability for each")
    fine = (chances >= 0) & (chances <= 1)
    if not fine.all():
        place = int(np.argmin(fine))
        message = f"start must be from 0 to 1 for each state, not {given[place]} for state {place}"
        raise _refuse(Rule.PROBABILITIES, message)
    if (small := np.flatnonzero(_find_small(given, chances))).size:
        message = refuse_small(f"start in state {small[0]}", str(given[small[0]]))
        raise _refuse(Rule.PROBABILITIES, message)
    if abs(float(chances.sum()) - 1) > SUM_TOLERANCE:
        raise _refuse(Rule.PROBABILITIES_SUM, f"start sums to {float(chances.sum())!r}, not to 1")
    drawn = np.flatnonzero(chances)
    return dict(zip(drawn.tolist(), chances[drawn].tolist(), strict=True))


def _check_names(what: str, names: Sequence[Hashable] | None, least: int) -> None:
    if names is None or (isinstance(names, Names) and len(names) >= least):
        return
    if isinstance(names, str) or len(names) < least or len(set(names)) < len(names):
        message = f"{what} must be {least} different names, not {shorten(names)}"
        raise _refuse(Rule.STATES, message)


def _to_numbers(name: str, column: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(column)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        message = f"{name} must be a flat array of whole numbers, not {array.dtype} {array.shape}"
        raise _refuse(Rule.STATES, message)
    narrow = array.size == 0 or (array.min() >= FAILURE_TARGET and array.max() < MOST)
    return array.astype(np.int32 if narrow else np.int64, copy=False)


def _to_floats(name: str, column: ArrayLike) -> NDArray[np.float64]:
    try:
        given = np.asarray(column)
        if given.dtype.kind in "SU":
            raise TypeError("not texts")
        return given.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise _refuse(Rule.PROBABILITIES, f"{name} must be numbers: {error}") from None


def _find_small(given: ArrayLike, chances: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which probabilities are too small, or became 0 as a float."""
    return np.asarray((np.asarray(given) != 0) & (chances < SMALLEST_PROBABILITY))


def _read_costs(given: Any) -> Mapping[str, ArrayLike]:
    costs = {} if given is None else given
    if not isinstance(costs, Mapping) or not all(isinstance(name, str) for name in costs):
        message = f"costs must be a dictionary of names and arrays, not {shorten(given)}"
        raise _refuse(Rule.COSTS, message)
    return dict(sorted(costs.items()))


def _read_events(given: Any) -> NDArray[np.str_]:
    texts = ["" if event is None else event for event in given] if np.ndim(given) else [given]
    if not all(isinstance(text, str) for text in texts):
        message = f'events must be texts, "" for none, not {shorten(given)}'
        raise _refuse(Rule.EVENTS, message)
    return np.array(texts, str)


def _add_up_equal(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the rows sorted by state, action, safety and target, equal ones added up."""
    fails = rows["target"] == FAILURE_TARGET
    same = [name for name in rows if name != "probability"]
    keys = [rows["state"], rows["action"], fails, *(rows[name] for name in same[2:])]
    states, actions = (1 + int(rows[name].max()) for name in ("state", "action"))
    states = max(states, 1 + int(rows["target"].max()))
    if states * actions * (states + 1) <= np.iinfo(np.int64).max:
        # One number for state, action and target, in which rows are often in order already.
        place = rows["state"] * np.int64(actions) + rows["action"]
        place = place * (states + 1) + np.where(fails, states, rows["target"])
        keys = [place, *(rows[name] for name in same[3:])]
        if np.all(place[1:] > place[:-1]):
            return {name: column.copy() for name, column in rows.items()}
        del place
    order = np.lexsort(keys[::-1])
    del keys
    rows = {name: column[order] for name, column in rows.items()}
    begins = _find_begins(rows, *same)
    if len(begins) == len(order):
        return rows
    sums = np.add.reduceat(rows["probability"], begins)
    return {name: column[begins] for name, column in rows.items()} | {"probability": sums}


def _find_begins(rows: dict[str, NDArray[Any]], *names: str) -> NDArray[np.intp]:
    """Return the rows that differ from the one before them in one of some columns."""
    differs = np.ones(len(rows["state"]), bool)
    differs[1:] = False
    for name in names:
        differs[1:] |= rows[name][1:] != rows[name][:-1]
    return np.flatnonzero(differs)


def _refuse(rule: Rule, message: str) -> ModelError:
    return ModelError(Violation(rule, message))
