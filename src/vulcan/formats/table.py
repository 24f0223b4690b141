"""Small models written by hand: a dictionary of states, actions and outcomes; `path/to/model.json`.

    {state: {action: [(probability, next state, reward), ...], ...}, ...}

The next state of a failure is `FAILURE`; a reward of 0 may be omitted. Every state has its place in
the dictionary, those that end a history well an empty one, so that a misspelt name is an error
rather than one more state. In a file the dictionary is one of several keys:

    {"horizon": 2,
     "bound": "0.01",
     "states": {"shore": {"bridge": [[1, "island", 0]],
                          "swim": [[0.98, "island", 3], [0.02, "FAILURE", 0]]},
                "island": {}}}

`start` (a state, or an object with the probability of each; the first state by default),
`discount` and `bound`, the text of a risk bound, may be omitted, and so may `horizon`, which
is then given with --set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from vulcan.errors import ModelError, OptionError
from vulcan.formats.faults import in_file
from vulcan.formats.registry import Maker
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import FAILURE
from vulcan.model.numbers import is_number
from vulcan.model.rules import Rule, Violation
from vulcan.parameters import shorten, suggest
from vulcan.runtime.texts import read_text
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = ["FORMS", "find_maker", "from_table"]

FORMS: Final = {"path/to/model.json": "states, actions and outcomes by hand"}

FAILURES: Final = (FAILURE, FAILURE.name)
"""What a failure is written as in a dictionary, and in a file."""

Table = Mapping[Any, Mapping[Any, Sequence[Sequence[Any]]]]


def from_table(
    table: Table,
    *,
    horizon: int,
    start: Any = None,
    discount: float = 1.0,
) -> ArrayModel:
    """Return the model of a dictionary.

    Parameters
    ----------
    table
        The outcomes of each action of each state; see the head of this module.
    horizon
        How many actions a history has at most.
    start
        The initial state, or a dictionary of probabilities; the first state of the table by
        default.
    discount
        As in every model.

    Raises
    ------
    ModelError
        If something in the table breaks a rule; the message names state and action.

    Examples
    --------
    >>> from vulcan import FAILURE
    >>> model = from_table(
    ...     {"shore": {"swim": [(0.98, "island", 3.0), (0.02, FAILURE)]}, "island": {}}, horizon=2
    ... )
    >>> model.outcomes("shore", "swim")[0]
    Outcome(probability=0.98, reward=3.0, state='island', label=None)
    """
    if not isinstance(table, Mapping) or not table:
        raise OptionError(f"a table is a dictionary of states, not {shorten(table)}")
    states = {state: number for number, state in enumerate(table)}
    for reserved in FAILURES:
        if reserved in states:
            raise OptionError(f"{reserved!r} is how a failure is written: no state is called so")
    targets = {**states, **dict.fromkeys(FAILURES, FAILURE_TARGET)}
    actions: dict[Any, int] = {}
    rows: list[tuple[float, ...]] = []
    for state, offered in table.items():
        if not isinstance(offered, Mapping):
            message = f"a state has a dictionary of actions, not {shorten(offered)}"
            raise _refuse(Rule.ACTIONS_LISTED, message, state)
        for action, outcomes in offered.items():
            number = actions.setdefault(action, len(actions))
            for outcome in _read_outcomes(state, action, outcomes, targets):
                rows.append((states[state], number, *outcome))
    if not rows:
        raise OptionError("the table leaves nothing to decide: no state has an action")
    columns = np.array(rows).T
    return ArrayModel(
        *(column.astype(np.int64) for column in columns[:3]),
        *columns[3:],
        horizon=horizon,
        start=_read_start(start, states),
        discount=discount,
        state_names=list(states),
        action_names=list(actions),
    )


def _read_outcomes(
    state: Any, action: Any, outcomes: Any, targets: Mapping[Any, int]
) -> list[tuple[int, float, float]]:
    """Return the target, probability and reward of each outcome of an action."""
    if isinstance(outcomes, str | Mapping) or not isinstance(outcomes, Sequence) or not outcomes:
        message = f"an action has a list of outcomes, not {shorten(outcomes)}"
        raise _refuse(Rule.OUTCOMES_LISTED, message, state, action)
    read = []
    for place, outcome in enumerate(outcomes):
        listed = isinstance(outcome, Sequence) and not isinstance(outcome, str)
        if not listed or len(outcome) not in (2, 3):
            form = "(probability, next state) or (probability, next state, reward)"
            message = f"outcome {place} must be {form}, not {shorten(outcome)}"
            raise _refuse(Rule.OUTCOMES_TYPED, message, state, action)
        chance, target, reward = (*outcome, 0.0)[:3]
        if not is_number(chance) or not 0 <= chance <= 1:
            message = f"probability of outcome {place} must be from 0 to 1, not {shorten(chance)}"
            raise _refuse(Rule.PROBABILITIES, message, state, action)
        if not is_number(reward) or not abs(reward) <= LARGEST_REWARD:
            message = f"reward of outcome {place} must be a number of at most {LARGEST_REWARD:g}"
            raise _refuse(Rule.REWARDS, f"{message}, not {shorten(reward)}", state, action)
        number = _find(target, targets)
        if number is None:
            states = [known for known in targets if known not in FAILURES]
            message = f"outcome {place} leads to {_describe_unknown(target, states)}"
            raise _refuse(Rule.STATES, message, state, action)
        read.append((number, float(chance), float(reward)))
    total = sum(chance for _, chance, _ in read)
    if abs(total - 1) > SUM_TOLERANCE:
        message = f"probabilities sum to {total:.12g}, not to 1"
        raise _refuse(Rule.PROBABILITIES_SUM, message, state, action)
    return read


def _read_start(start: Any, states: Mapping[Any, int]) -> Any:
    """Return the number of the initial state, or the probability of each."""
    if start is None:
        return 0
    if not isinstance(start, Mapping):
        return _require(start, states)
    chances = np.zeros(len(states))
    for state, chance in start.items():
        if not is_number(chance):
            message = f"start must be a probability for each state, not {shorten(chance)}"
            raise OptionError(f"{message} for {state!r}")
        chances[_require(state, states)] = chance
    return chances


def _require(start: Any, states: Mapping[Any, int]) -> int:
    number = _find(start, states)
    if number is None:
        raise OptionError(f"start is {_describe_unknown(start, states)}")
    return number


def _find(state: Any, states: Mapping[Any, int]) -> int | None:
    return states.get(state) if isinstance(state, Hashable) else None


def _describe_unknown(given: Any, states: Iterable[Any]) -> str:
    hint = suggest(given, [state for state in states if isinstance(state, str)])
    hint = hint or f"; states are {shorten(list(states))}, and FAILURE"
    return f"{shorten(given)}, which is no state of the table{hint}"


def _refuse(rule: Rule, message: str, state: Any, action: Any = None) -> ModelError:
    return ModelError(Violation(rule, message, state, action))


KEYS: Final = ("states", "horizon", "start", "discount", "bound")


def find_maker(text: str) -> Maker:
    """Return what makes the model of a file, whose keys are its defaults, and its bound."""
    values = _load(text)
    bound = values.pop("bound", None)
    if bound is not None and not isinstance(bound, str):
        raise OptionError(f'{text}: bound must be a string, such as "0.002*x", not {bound!r}')
    return Maker(text, in_file(text, partial(from_table, values.pop("states"), **values)), bound)


def _load(path: str) -> dict[str, Any]:
    text = read_text(path)
    try:
        values = json.loads(text, object_pairs_hook=partial(_pair_up, text))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise OptionError(f"{path}, {place}: this is not JSON: {error.msg}") from None
    except ValueError as error:  # a number of thousands of digits
        raise OptionError(f"{path}: has a number that is none: {error}") from None
    except RecursionError:
        raise OptionError(f"{path}: has too many lists or objects inside each other") from None
    except OptionError as error:
        raise OptionError(f"{path}, {error}") from None
    if not isinstance(values, dict):
        raise OptionError(f"{path}: must be an object with {', '.join(KEYS)}")
    for key in values:
        if key not in KEYS:
            allowed = f"allowed are {', '.join(KEYS)}{suggest(key, KEYS)}"
            raise OptionError(f"{path}: has a key {key!r}; {allowed}")
    if "states" not in values:
        raise OptionError(f"{path}: has no key 'states'")
    return values


def _pair_up(text: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, if none of its keys is there twice."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            written = re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
            lines = {str(text.count("\n", 0, found.start()) + 1): None for found in written}
            unit = "line" if len(lines) == 1 else "lines"
            where = f"{unit} {', '.join(lines)}" if lines else "somewhere"
            raise OptionError(f"{where}: {key!r} is given twice in the same object")
        values[key] = value
    return values
