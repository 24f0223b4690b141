"""What a user writes: a model and its outcomes.

A model is any object with a `horizon`, `initial_state()`, `actions(state)` and `outcomes(state,
action)`; nothing needs to be inherited. A history ends after `horizon` actions, in a safe state
without actions, or in failure. Failure is an outcome like any other, with a probability and a
reward, that ends the mission.

Optional attributes:

    discount     1 by default
    merges       True by default; False says that every history is a state of its own, so that
                 states are never looked up, and are released when a search leaves them
    fingerprint  a string that identifies the model; see `ModelReader.fingerprint`
    least_reward a number that no outcome pays less than, checked on every answer. With it a plan
                 may be safe whatever happens beyond its frontier.

Optional methods:

    outcomes_batch(states, actions)
        The outcomes of many pairs of a state and an action at once, for two lists of the same
        length: probabilities and rewards, arrays with a row for each pair; next states, in as many
        rows; and perhaps labels, in rows as well. Next states are lists with None for a failure.
        Where states are integers, or tuples of as many integers, they may be an array of integers,
        with one axis more for tuples, and -1 (all -1) for a failure. All rows have the same length:
        those with fewer outcomes end with failures of probability 0. The answers are those of
        `outcomes`, to the last digit, without costs and events; a sample is compared.
    action_label(action)
        The label of an action, by default `str(action)`.
    default_action(state)
        The action that ends the mission soonest, or comes to its end within a few decisions.
        Plans over histories grow from it (`Growth`); by default Vulcan searches for such an action.
        With `default_bounds` it may be any action that is safe enough to be followed to the end.
    default_bounds(state, step)
        Upper bound on the risk, and lower bound on the expected reward (discounted from that step
        on), of following the default action from a state until the horizon.
    key(state)
        What of the state matters from there on, anything hashable: states with equal keys count as
        one. Certificates test whether they answer alike.
    subgoals(state)
        Where a state is, and what is still worth reaching: a place, and a list of places, anything
        hashable. In states at the same place the same moves lead to the same places. Where states
        are too many because rewards are paid once, plans go from one such place to the next
        (`Subgoals`). By default places are the parts of a state that change without a reward. Only
        the plan is worse where that is not true.
    reward_to_go_bound(state, step)
        An upper bound on the reward that any policy still earns from a state at a step. With it
        `Vulcan` proves sharper upper bounds, and `RAOStar` expands fewer states.
    value_to_go_bound(state, step, price)
        A sharper one: for any price of at least 0, an upper bound on the largest (discounted reward
        from that step on) - price · (probability of failing from there on). By default
        `reward_to_go_bound`, since a price only makes values smaller.
    risk_to_go_bound(state, action, step)
        A lower bound on the risk of taking an action.
    locate(state, action, measurement)
        The outcome that a raw measurement stands for, by its label or next state; None if it is
        impossible. `Run.measure` calls it.
    page_map(), page_position(state)
        A map beside a plan; see `vulcan.pages.maps`.

Policies identify actions and outcomes by labels, also in another process. `stable_text` makes texts
that do not depend on the process: Python writes the elements of a set in the order of their hashes,
so sets are sorted, also inside tuples, lists, dictionaries, dataclasses and classes that write
their fields like those. Classes with a text of their own have to take care of that themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from numbers import Real
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from vulcan.parameters import shorten

START: Final = "start"
"""The label of the initial action that only waits for the start state to be drawn."""

MOST_OWN: Final = 10_000  # characters of a model's own `repr` that are shown
MOST_DESCRIBED: Final = 100  # approximate characters of the description of a model without one


class Failure(Enum):
    """The type of `FAILURE`, the state that a failing outcome leads to."""

    FAILURE = "failure"

    __hash__ = object.__hash__  # that of Enum is slow, and states are looked up all the time

    def __repr__(self) -> str:
        return "FAILURE"


FAILURE: Final = Failure.FAILURE


class _Outcome(msgspec.Struct, frozen=True):
    """The fields of an `Outcome` that may be given by position."""

    probability: Any
    reward: Any
    state: Any
    label: str | None = None


class Outcome(_Outcome, frozen=True, kw_only=True):
    """One outcome of an action.

    Parameters
    ----------
    probability
        Probability of this outcome, in [0, 1]. Outcomes of probability 0 are dropped.
    reward
        Reward of the step if this outcome occurs.
    state
        The safe state that it leads to: anything hashable, but not None.
    label
        The name of this outcome for an observer, by default the text of the state. The labels of
        one action's outcomes are all different. Outcomes without labels that lead to the same state
        are distinguished by their rewards, costs and events; if these agree as well, they count as
        one outcome.
    costs
        What the step costs if this outcome occurs, by names: a mapping, or pairs (name, number).
        A problem may limit the expected total of each (`vulcan.Cost`).
    event
        The name of what happens: of a failing outcome the kind of failure; of a safe one something
        that should not happen, such as a missed window, though the mission goes on. A problem may
        limit the probability that it ever happens (`vulcan.Risk`).

    Examples
    --------
    >>> Outcome(0.9, 1.0, "harbour")
    Outcome(probability=0.9, reward=1.0, state='harbour', label=None)
    >>> Outcome.failure(0.1).fails
    True
    >>> Outcome(1.0, 0.0, "harbour", costs={"fuel": 2.5}, event="late").event
    'late'
    """

    costs: Any = ()
    event: str | None = None

    @classmethod
    def failure(
        cls,
        probability: float,
        reward: float = 0.0,
        label: str | None = None,
        *,
        costs: Any = (),
        event: str | None = None,
    ) -> Outcome:
        """Return an outcome that ends the mission in failure.

        Parameters
        ----------
        probability
            Probability of this failure.
        reward
            Reward that still counts when it occurs.
        label
            Its name for an observer; "failure" by default.
        costs, event
            As of any outcome; the event is the kind of failure.
        """
        return cls(probability, reward, FAILURE, label, costs=costs, event=event)

    def __repr__(self) -> str:
        """Return the fields, without costs and event where there are none."""
        names = self.__struct_fields__[: None if self.costs or self.event is not None else 4]
        return f"Outcome({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @property
    def fails(self) -> bool:
        """Whether this outcome ends the mission in failure."""
        return self.state is FAILURE


class Start:
    """A start that is drawn, chosen, or both, by an initial action.

    A model whose `initial_state()` returns a `Start` begins with one more action. It uses no step
    of the horizon and is not discounted.

    Parameters
    ----------
    choices
        For each initial action, the outcomes that it draws the start state from.

    Examples
    --------
    >>> Start.draw([Outcome(0.5, 0.0, "north"), Outcome(0.5, 0.0, "south")]).choices.keys()
    dict_keys(['start'])
    >>> Start.choose({"by ship": "harbour", "by plane": "runway"}).choices["by ship"]
    (Outcome(probability=1.0, reward=0.0, state='harbour', label=None),)
    """

    def __init__(self, choices: Mapping[Hashable, Sequence[Outcome]]) -> None:
        self.choices = {action: tuple(outcomes) for action, outcomes in choices.items()}

    def __repr__(self) -> str:
        return f"Start({self.choices!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Start) and self.choices == other.choices

    def __hash__(self) -> int:
        return hash(tuple(self.choices))

    @classmethod
    def draw(cls, outcomes: Sequence[Outcome]) -> Start:
        """Return a start that is drawn from a distribution.

        Parameters
        ----------
        outcomes
            The start states with their probabilities.
        """
        return cls({START: outcomes})

    @classmethod
    def choose(cls, states: Mapping[Hashable, Hashable]) -> Start:
        """Return a start that the planner chooses.

        Parameters
        ----------
        states
            The start states by the names of the choices.
        """
        return cls({name: (Outcome(1.0, 0.0, state),) for name, state in states.items()})


@runtime_checkable
class Model(Protocol):
    """The interface of every model; the head of this module has the optional parts."""

    horizon: int

    def initial_state(self) -> Any:
        """Return the state before any action, or a `Start`."""

    def actions(self, state: Any) -> Iterable[Any]:
        """Return the actions of a safe state; a safe terminal has none."""

    def outcomes(self, state: Any, action: Any) -> Iterable[Outcome]:
        """Return the outcomes of an action in a state."""


def describe_model(model: Any) -> str:
    """Return a short string for a model: its own `repr`, or else its class and its parameters.

    Parameters are the public attributes of the instance that are numbers or strings.

    >>> class Crossing:
    ...     def __init__(self, width, current=0.5):
    ...         self.width, self.current, self._cells = width, current, {}
    >>> describe_model(Crossing(12))
    'Crossing(width=12, current=0.5)'
    """
    kind = type(model)
    if getattr(kind, "__repr__", None) is not getattr(object, "__repr__", None):
        return shorten(model, MOST_OWN)
    shown: list[str] = []
    for name, value in getattr(model, "__dict__", {}).items():
        # A descriptor of that name in the class means a computed value: a cached property.
        simple = isinstance(value, Real | str) and not hasattr(getattr(kind, name, None), "__get__")
        if simple and not name.startswith("_"):
            shown.append(f"{name}={shorten(value, MOST_DESCRIBED // 2)}")
    while len(shown) > 1 and sum(map(len, shown)) > MOST_DESCRIBED:
        shown[-2:] = ["…"]
    return f"{kind.__name__}({', '.join(shown)})"


def stable_text(value: Any) -> str:
    """Return `str(value)`, with sets in it sorted.

    >>> stable_text(("north", frozenset({"key", "axe", "rope"})))
    "('north', frozenset({'axe', 'key', 'rope'}))"
    """
    text = str(value)
    # A set of two elements is written with braces; without any, there is nothing to sort.
    own: Any = type(value).__str__
    return _represent(value) if "{" in text and own is object.__str__ else text


def _represent(value: Any) -> str:
    """Return `repr(value)`, with sets in it sorted."""
    kind, text = type(value), repr(value)
    if "{" not in text:
        return text
    if kind in (set, frozenset):
        # Numbers by size, others by their texts.
        plain = all(isinstance(element, Real) for element in value)
        texts = map(repr, sorted(value)) if plain else sorted(map(_represent, value))
        inside = f"{{{', '.join(texts)}}}"
        return inside if kind is set else f"frozenset({inside})"
    if kind is tuple:
        return f"({', '.join(map(_represent, value))}{',' if len(value) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(map(_represent, value))}]"
    if kind is dict:
        items = (f"{_represent(key)}: {_represent(entry)}" for key, entry in value.items())
        return f"{{{', '.join(items)}}}"
    name, fields = text.partition("(")[0], _list_fields(value)
    if text != f"{name}({', '.join(f'{field}={entry!r}' for field, entry in fields)})":
        return text
    return f"{name}({', '.join(f'{field}={_represent(entry)}' for field, entry in fields)})"


def _list_fields(value: Any) -> Sequence[tuple[str, Any]]:
    """Return the fields of a dataclass, a named tuple, or a class of msgspec or attrs."""
    kind: Any = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind) if field.repr]
    else:
        names = getattr(kind, "__struct_fields__", None) or getattr(kind, "__match_args__", [])
    return [(name, getattr(value, name)) for name in names]
