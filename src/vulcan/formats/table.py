"""Small models written by hand: a dictionary of states, actions and outcomes; `path/to/model.json`.

    {state: {action: [(probability, next state, reward), ...], ...}, ...}

The next state of a failure is `FAILURE`; a reward of 0 may be omitted. After the reward an outcome
may have an object with what it costs, and its event: `{"costs": {"fuel": 2}, "event": "late"}`.
Every state is a key of the
dictionary, safe terminals with an empty dictionary, so that a misspelt name is an error. In a file
the dictionary is one of several keys:

    {"horizon": 2,
     "bound": "0.01",
     "states": {"shore": {"bridge": [[1, "island", 0]],
                          "swim": [[0.98, "island", 3], [0.02, "FAILURE", 0]]},
                "island": {}}}

`start` (a state, or an object with the probability of each; the first state by default),
`discount`, `bound`, the text of a risk bound, and `constraints`, texts such as "fuel <= 5", are
optional, and so is `horizon` if it is given with --set.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from vulcan.errors import ModelError, OptionError
from vulcan.formats.registry import Maker, make_from_file, require_known
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import FAILURE
from vulcan.model.rules import Rule, Violation, read_costs, read_number
from vulcan.parameters import shorten, suggest
from vulcan.runtime.files import read_text

FORMS: Final = {"path/to/model.json": "states, actions and outcomes by hand"}

FAILURES: Final = (FAILURE, FAILURE.name)  # a failure in a dictionary, and in a file

Table = Mapping[Any, Mapping[Any, Sequence[Sequence[Any]]]]


def from_table(
    table: Table, *, horizon: int, start: Any = None, discount: float = 1.0
) -> ArrayModel:
    """Return the model of a dictionary.

    Parameters
    ----------
    table
        The outcomes of each action of each state; see the head of this module.
    horizon
        Largest number of actions of a history.
    start
        The initial state, or a dictionary of probabilities; the first state of the table by
        default.
    discount
        As in every model.

    Examples
    --------
    >>> from vulcan.model import FAILURE
    >>> model = from_table(
    ...     {"shore": {"swim": [(0.98, "island", 3.0), (0.02, FAILURE)]}, "island": {}}, horizon=2
    ... )
    >>> model.outcomes("shore", "swim")[0]
    Outcome(probability=0.98, reward=3.0, state='island', label=None)
    """
    if not isinstance(table, Mapping) or not table:
        raise OptionError(f"a table is a dictionary of states, not {shorten(table)}")
    for reserved in FAILURES:
        if reserved in table:
            raise OptionError(f"{reserved!r} stands for failure and can't be the name of a state")
    states = {state: number for number, state in enumerate(table)}
    actions: dict[Any, int] = {}
    rows: list[tuple[Any, ...]] = []
    for state, offered in table.items():
        if not isinstance(offered, Mapping):
            message = f"a state has a dictionary of actions, not {shorten(offered)}"
            raise _refuse(Rule.ACTIONS_LISTED, message, state)
        for action, outcomes in offered.items():
            number = actions.setdefault(action, len(actions))
            for outcome in _read_outcomes(state, action, outcomes, states):
                rows.append((states[state], number, *outcome))
    if not rows:
        raise OptionError("the table has no decisions: no state has an action")
    *columns, charges = zip(*rows, strict=True)
    names = {name for charged in charges for name in charged.get("costs", {})}
    events = [charged.get("event") for charged in charges]
    return ArrayModel(
        *columns,
        costs={name: [row.get("costs", {}).get(name, 0.0) for row in charges] for name in names},
        events=events if any(events) else None,
        horizon=horizon,
        start=_read_start(start, states),
        discount=discount,
        state_names=list(states),
        action_names=list(actions),
    )


def _read_outcomes(
    state: Any, action: Any, outcomes: Any, states: Mapping[Any, int]
) -> Iterator[tuple[int, Any, Any, Any]]:
    """Yield the target, probability, reward and charges of each outcome of an action."""
    if isinstance(outcomes, str | Mapping) or not isinstance(outcomes, Sequence) or not outcomes:
        message = f"an action has a list of outcomes, not {shorten(outcomes)}"
        raise _refuse(Rule.OUTCOMES_LISTED, message, state, action)
    for place, outcome in enumerate(outcomes):
        listed = isinstance(outcome, Sequence) and not isinstance(outcome, str)
        if not listed or len(outcome) not in (2, 3, 4) or None in map(read_number, outcome[:3:2]):
            form = "(probability, next state) or (probability, next state, reward)"
            message = f"outcome {place} must be {form}, not {shorten(outcome)}"
            raise _refuse(Rule.OUTCOMES_TYPED, message, state, action)
        charges = outcome[3] if len(outcome) == 4 else {}
        known = isinstance(charges, Mapping) and {"costs", "event"}.issuperset(charges)
        if not known or read_costs(charges.get("costs", {})) is None:
            form = '{"costs": {"fuel": 2}, "event": "late"}, or one of these'
            message = f"outcome {place} must end with {form}, not {shorten(charges)}"
            raise _refuse(Rule.COSTS, message, state, action)
        chance, target, reward = (*outcome, 0.0)[:3]
        fails = isinstance(target, Hashable) and target in FAILURES
        try:
            number = FAILURE_TARGET if fails else _find(f"outcome {place} leads to", target, states)
        except OptionError as error:
            raise _refuse(Rule.STATES, str(error), state, action) from None
        yield number, chance, reward, charges


def _read_start(start: Any, states: Mapping[Any, int]) -> Any:
    """Return the number of the initial state, or the probability of each."""
    if start is None:
        return 0
    if not isinstance(start, Mapping):
        return _find("start is", start, states)
    chances: list[Any] = [0.0] * len(states)
    for state, chance in start.items():
        if read_number(chance) is None:
            raise OptionError(f"start[{state!r}] must be a probability, not {shorten(chance)}")
        chances[_find("start has", state, states)] = chance
    return chances


def _find(what: str, state: Any, states: Mapping[Any, int]) -> int:
    if isinstance(state, Hashable) and state in states:
        return states[state]
    hint = suggest(state, [known for known in states if isinstance(known, str)])
    hint = hint or f"; states are {shorten(list(states))}, and FAILURE"
    raise OptionError(f"{what} {shorten(state)}, which is no state of the table{hint}")


def _refuse(rule: Rule, message: str, state: Any, action: Any = None) -> ModelError:
    return ModelError(Violation(rule, message, state, action))


KEYS: Final = ("states", "horizon", "start", "discount", "bound", "constraints")


def find_maker(text: str) -> Maker:
    """Return the maker of the model of a file, whose keys are its defaults."""
    values = _load(text)
    return make_from_file(text, partial(from_table, values.pop("states")), values)


def _load(path: str) -> dict[str, Any]:
    text = read_text(path)
    try:
        values = json.loads(text, object_pairs_hook=_pair_up, parse_float=_read_float)
    except ValueError as error:  # not JSON, or a number with thousands of digits
        raise OptionError(f"{path}: this is not JSON: {error}") from None
    except RecursionError:
        raise OptionError(f"{path}: lists or objects are nested too deeply") from None
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise OptionError(f"{path}: must be an object with {', '.join(KEYS)}")
    require_known(f"{path}: ", "a key", values, KEYS)
    if "states" not in values:
        raise OptionError(f"{path}: has no key 'states'")
    return values


def _read_float(text: str) -> float:
    """Return a number; one that would become 0 as the smallest float, so that it is refused."""
    number, digits = float(text), text.lower().partition("e")[0]
    return math.ulp(0.0) if number == 0 and digits.strip("-0.") else number


def _pair_up(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise an error if a key occurs twice."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise OptionError(f"{key!r} is given twice in the same object")
        values[key] = value
    return values
