"""What a user writes: a model and its outcomes.

A model is any object with a `horizon`, `initial_state()`, `actions(state)` and `outcomes(state,
action)`. Nothing needs to be inherited. Optional attributes are `discount` (1 when absent),
`merges` (True when absent; False says that every history is a state of its own, so that nothing is
looked up and rows are released when a search leaves them) and `fingerprint` (a string that tells
the model from others; see `ModelReader.fingerprint`). Optional methods are `action_label(action)`,
which names actions for people (without it `str(action)` does), and `reward_to_go_bound(state,
step)`, an upper bound on what any policy can still earn from a state at a step (with it
`LocalVulcan(bounded=True)` closes actions that cannot win, and `RAOStar` expands only what may be
needed),
`value_to_go_bound(state, step, price)`, a sharper one on what any policy can still earn less what
its risk costs: an upper bound, for any price of at least 0, on the largest (discounted reward from
that step on) - price · (probability of failing from there on), and `risk_to_go_bound(state, action,
step)`, a lower bound on the risk of taking an action. Without the one with a price,
`reward_to_go_bound` serves in its place: a price of at least 0 only makes values smaller.
`locate(state, action, measurement)` says which outcome a raw measurement stands for, by its label
or the state that it leads to, or None if it is impossible; `Run.measure` asks it.
`given(state, measurements)` returns the model given what was measured on the way to a state, one
measurement for each decision (None where an outcome was told): a model with the same states, the
same actions and the same outcomes in the same order, whose probabilities and rewards from that
state on are those given the evidence; `vulcan.replan` asks it. `page_map()` and
`page_position(state)` show a map beside a plan; see `vulcan.pages.maps`.

A history ends after `horizon` actions, in a safe state without actions, or in failure. Failure is
an outcome like any other: it has a probability and a reward, and the mission ends there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from numbers import Real
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from vulcan.parameters import shorten

__all__ = ["FAILURE", "Failure", "Model", "Outcome", "Start", "describe_model"]


class Failure(Enum):
    """The type of `FAILURE`, the place where a failing outcome leads."""

    FAILURE = "failure"

    def __repr__(self) -> str:
        return "FAILURE"


FAILURE: Final = Failure.FAILURE


class Outcome(msgspec.Struct, frozen=True):
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
        What an observer of this outcome would call it. The labels of one action's outcomes are all
        different. By default the text of the state. Outcomes without labels that lead to the same
        state can't be told apart, except by their rewards: if these agree as well, they are one
        outcome to everybody.

    Examples
    --------
    >>> Outcome(0.9, 1.0, "harbour")
    Outcome(probability=0.9, reward=1.0, state='harbour', label=None)
    >>> Outcome.failure(0.1).fails
    True
    """

    probability: Any
    reward: Any
    state: Any
    label: str | None = None

    @classmethod
    def failure(cls, probability: float, reward: float = 0.0, label: str | None = None) -> Outcome:
        """Return an outcome that ends the mission in failure.

        Parameters
        ----------
        probability
            Probability of this failure.
        reward
            Reward that still counts when it occurs.
        label
            What an observer would call it; "failure" by default.
        """
        return cls(probability, reward, FAILURE, label)

    @property
    def fails(self) -> bool:
        """Whether this outcome ends the mission in failure."""
        return self.state is FAILURE


START: Final = "start"
"""What the initial action is called that only waits for the start state to be drawn."""


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
    """What every model offers; see the head of this module for what is optional."""

    horizon: int

    def initial_state(self) -> Any:
        """Return the state before any action, or a `Start`."""

    def actions(self, state: Any) -> Iterable[Any]:
        """Return the actions of a safe state; none make it a safe terminal."""

    def outcomes(self, state: Any, action: Any) -> Iterable[Outcome]:
        """Return the outcomes of an action in a state."""


MOST_OWN: Final = 10_000
"""A `repr` of its own is shown up to this many characters."""

MOST_DESCRIBED: Final = 100
"""A model without a `repr` of its own is described in about this many characters at the most."""


def describe_model(model: Any) -> str:
    """Return a short string for a model: its own `repr`, or else its class and its parameters.

    Parameters are the public attributes of the instance that are numbers or strings.

    Examples
    --------
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
        # What a class has under that name as well is computed: a cached property.
        simple = isinstance(value, Real | str) and not hasattr(getattr(kind, name, None), "__get__")
        if simple and not name.startswith("_"):
            shown.append(f"{name}={shorten(value, MOST_DESCRIBED // 2)}")
    while len(shown) > 1 and sum(map(len, shown)) > MOST_DESCRIBED:
        shown[-2:] = ["…"]
    return f"{kind.__name__}({', '.join(shown)})"
