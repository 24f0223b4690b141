"""Gymnasium environments that have a transition table: `gymnasium:FrozenLake-v1`.

The table is `env.unwrapped.P`: for each state and action a list of (probability, next state,
reward, terminated). It has everything but the definition of failure, which has a default in
Gymnasium's own environments: holes in frozen lakes, falls off the cliff, illegal moves of taxis.
Otherwise it is one of

    "reward <= -50"   the reward of the step is at most -50
    [5, 7]            the next state is one of these
    a function        of a `Transition`

Costs and events are not in the table either. By names they are given as failures are: which steps
have the event, and which cost 1; or a function returns the cost of a `Transition`.

A step that terminates without failing is a safe end. If histories can also pass through its next
state, the end is a separate state. The reward of a failing step counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError, PolicyError
from vulcan.formats.arrays import read_start
from vulcan.formats.registry import Maker
from vulcan.model.answers import label_outcomes
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import FAILURE, Start
from vulcan.parameters import shorten

PREFIX: Final = "gymnasium:"
FORMS: Final = {"gymnasium:FrozenLake-v1": "an environment with a transition table"}

ENVIRONMENTS: Final = "FrozenLake-v1, CliffWalking-v1 and Taxi"
FAILURES: Final = "'reward <= -50', a list of states, or a function of a transition"


class GymnasiumModel(ArrayModel):
    """The model of an environment: its observations are the states, its actions the actions."""

    name: str  # of the environment
    environment: Any  # without wrappers, and so without their step limit
    observations: int  # the number of them
    # By observation, the separate end states of observations that histories also pass through.
    ends: Mapping[int, int]
    _fails: Failure
    _charge: Charge

    def __repr__(self) -> str:
        return f"{self.name}({self.states:,} states, horizon={self.horizon})"

    def locate(self, state: Any, action: Any, measurement: Sequence[Any]) -> str | None:
        """Return the label of the outcome of a step; None if the transition table has none such.

        A measurement is what `env.step` returns, (observation, reward, terminated, ...); for a
        random start, what `env.reset` returns.
        """
        try:
            observation = int(measurement[0])
            if isinstance(state, Start):
                return str(observation) if observation in self.start else None
            reward, terminated = float(measurement[1]), bool(measurement[2])
        except (TypeError, ValueError, LookupError):
            wanted = "(observation, reward, terminated, ...) as env.step returns it"
            message = f"a measurement is {wanted}, not {shorten(measurement)}"
            raise PolicyError(message) from None
        if not 0 <= observation < self.observations:
            return None
        step = Transition(state, action, observation, reward, terminated)
        target: Any = step.next_state
        if self._fails(step):
            target = FAILURE
        elif step.terminated:
            target = self.ends.get(step.next_state, step.next_state)
        outcomes = self.outcomes(state, action)
        for outcome, label in zip(outcomes, label_outcomes(outcomes), strict=True):
            found = (outcome.state, outcome.reward, outcome.costs, outcome.event or "")
            if found == (target, step.reward, *self._charge(step)):
                return label
        return None


def from_gymnasium(
    environment: Any,
    *,
    failure: Failure | str | Iterable[int] | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
    start: Any = None,
    costs: Mapping[str, Any] | None = None,
    events: Mapping[str, Any] | None = None,
    **options: Any,
) -> GymnasiumModel:
    """Return the model of a Gymnasium environment that has a transition table.

    Parameters
    ----------
    environment
        The environment, or its name, such as "FrozenLake-v1".
    failure
        Which steps fail; see the head of this module.
    horizon
        Largest number of actions of a history; by default the environment's step limit.
    discount
        As in every model.
    start
        A state, or the probability of each; by default that of the environment.
    costs, events
        What steps cost, and which have an event, by names; see the head of this module.
    options
        Options of an environment given by name, such as is_slippery=True.
    """
    if isinstance(environment, str):
        environment = _make(environment, options)
    elif options:
        raise OptionError(f"{', '.join(options)}: options are for environments given by name")
    inner = environment.unwrapped
    rows, states = _read_table(environment)
    fails = _default_failure(inner) if failure is None else _read_failure(failure, states)
    failing = np.array([bool(fails(row[0])) for row in rows])
    begins = getattr(inner, "initial_state_distrib", None) if start is None else start
    if begins is None:
        raise OptionError(f"{type(inner).__name__} has no initial state distribution: give start")
    begins = read_start(begins, states)
    charge = _read_charges(costs or {}, events or {}, states)
    charged = [charge(step) for step, _ in rows]
    ends, columns, kept = _arrange(rows, failing, begins, states)
    if horizon is None:
        horizon = getattr(environment.spec, "max_episode_steps", None)
    if horizon is None:
        name = type(inner).__name__
        raise OptionError(f"{name} has no limit of steps: give a horizon, such as horizon=100")
    model = GymnasiumModel(
        *columns,
        horizon=horizon,
        start=np.append(begins, np.zeros(len(ends))),
        discount=discount,
        action_labels=LABELS.get(type(inner).__name__),
        costs={
            name: np.array([dict(spent)[name] for spent, _ in charged])[kept]
            for name in costs or {}
        },
        events=np.array([event for _, event in charged])[kept] if events else None,
    )
    model.name = type(inner).__name__ if environment.spec is None else environment.spec.id
    model.environment, model.observations = inner, states
    model.ends, model._fails, model._charge = ends, fails, charge
    return model


def find_maker(text: str) -> Maker:
    """Return the maker of the model of an environment, with its options as parameters."""
    name = text.removeprefix(PREFIX)
    return name, partial(from_gymnasium, name), None


def find_simulator(text: str, values: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return an environment, and by default what fails in it and the range of its rewards."""
    environment = _make(text.removeprefix(PREFIX), values)
    limit = getattr(environment.spec, "max_episode_steps", None)
    declared = DECLARED.get(type(environment.unwrapped).__name__, {})
    return environment, ({} if limit is None else {"horizon": limit}) | declared


def is_bust(step: Any) -> bool:
    """Whether a step of Blackjack draws more than 21."""
    return bool(step.next_state[0] > 21)


DECLARED: Final[dict[str, dict[str, Any]]] = {
    "BlackjackEnv": {"failure": is_bust, "reward_range": (-1.0, 1.5)},
    "CartPoleEnv": {"failure": "terminated"},
    "MountainCarEnv": {"failure": "truncated"},
    "AcrobotEnv": {"failure": "truncated"},
    "LunarLander": {"failure": "reward <= -100"},
}
"""What fails in Gymnasium's own environments without a table, and the range of their rewards."""


def _make(name: str, options: Mapping[str, Any]) -> Any:
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        message = "this needs Gymnasium: pip install 'vulcan-planner[gymnasium]'"
        raise OptionError(message) from None
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ModuleNotFoundError, TypeError) as error:
        raise OptionError(f"{PREFIX}{name}: {error}") from None


def _read_table(environment: Any) -> tuple[list[tuple[Transition, Any]], int]:
    """Return the steps of an environment with their probabilities, and the number of states."""

    def enumerate_items(table: Any) -> Iterable[tuple[Any, Any]]:
        return table.items() if isinstance(table, Mapping) else enumerate(table)

    inner = environment.unwrapped
    table = getattr(inner, "P", None)
    if not isinstance(table, Mapping | Sequence) or not table:
        needed = "no transition table (env.unwrapped.P)"
        raise OptionError(
            f"{type(inner).__name__} has {needed}; {ENVIRONMENTS} have one. Without a table, "
            "episodes certify at a confidence: vulcan.learn, or vulcan solve --simulate"
        )
    if getattr(inner, "fickle_passenger", False):
        raise OptionError("fickle_passenger=True is not in the transition table of the taxi")
    states = int(getattr(environment.observation_space, "n", len(table)))
    steps = []
    for state, actions in enumerate_items(table):
        for action, outcomes in enumerate_items(actions):
            for place, outcome in enumerate(outcomes):
                where = f"P[{state}][{action}][{place}]"
                try:
                    chance, target, reward, ends = outcome
                    numbers = int(state), int(action), int(target), float(reward), bool(ends)
                    float(chance)
                except (TypeError, ValueError):
                    form = "(probability, next state, reward, terminated)"
                    raise OptionError(f"{where} must be {form}, not {shorten(outcome)}") from None
                if not 0 <= numbers[2] < states:
                    raise OptionError(f"{where} leads to {target}; states are 0 to {states - 1}")
                steps.append((Transition(*numbers), chance))
    return steps, states


def _arrange(
    rows: Sequence[tuple[Transition, Any]], failing: Any, begins: Any, states: int
) -> tuple[dict[int, int], list[Any], NDArray[np.bool_]]:
    """Return the separate end states, the columns of an `ArrayModel`, and which rows they have."""
    steps = np.array([step for step, _ in rows], float)
    state, action, target = steps[:, :3].T.astype(np.int64)
    terminated = steps[:, 4].astype(bool) & ~failing
    # Tables also have steps from unreachable states, which are skipped.
    reached, found = begins > 0, 0
    while found < (found := int(reached.sum())):
        reached[target[reached[state] & ~terminated & ~failing]] = True
    kept = reached[state]
    ended = np.zeros(states, bool)
    ended[target[kept & terminated]] = True
    ends = {int(s): states + k for k, s in enumerate(np.flatnonzero(ended & reached))}
    number = np.arange(states)
    number[list(ends)] = list(ends.values())
    target = np.where(terminated, number[target], target)
    target[failing] = FAILURE_TARGET
    columns = (state, action, target, np.array([chance for _, chance in rows]), steps[:, 3])
    return ends, [column[kept] for column in columns], kept


class Transition(NamedTuple):
    """A step that an environment can make."""

    state: int
    action: int
    next_state: int
    reward: float
    terminated: bool


Failure = Callable[[Transition], bool]
Charge = Callable[[Transition], tuple[Any, str]]  # costs as pairs, and the event; "" for none


LABELS: Final = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}
"""Action labels of Gymnasium's own environments."""


def _default_failure(inner: Any) -> Failure:
    """Return what is a failure in one of Gymnasium's own environments."""
    match type(inner).__name__:
        case "FrozenLakeEnv":
            holes = (np.asarray(inner.desc) == b"H").ravel()
            return lambda step: bool(holes[step.next_state])
        case "CliffWalkingEnv":
            return lambda step: step.reward == -100
        case "TaxiEnv":
            return lambda step: step.reward == -10
        case name:
            raise OptionError(f"{name} has no default failure: give {FAILURES}")


def _read_charges(costs: Mapping[str, Any], events: Mapping[str, Any], states: int) -> Charge:
    """Return a function that tells what a step costs, and its event."""
    spends, happens = (
        {name: _read_failure(given, states, repr(name)) for name, given in sorted(named.items())}
        for named in (costs, events)
    )

    def charge(step: Transition) -> tuple[Any, str]:
        found = [name for name, holds in happens.items() if holds(step)]
        if len(found) > 1:
            raise OptionError(f"an outcome has one event, not {' and '.join(found)}: {step}")
        return tuple((name, float(cost(step))) for name, cost in spends.items()), "".join(found)

    return charge


def _read_failure(failure: Any, states: int, what: str = "failure") -> Failure:
    """Return a function that tells whether a step fails."""
    if callable(failure):
        return failure  # type: ignore[no-any-return]
    try:
        if isinstance(failure, str):
            word, _, number = failure.partition("<=")
            if word.strip() != "reward":
                raise ValueError(failure)
            limit = float(number)
            return lambda step: step.reward <= limit
        fatal = {int(state) for state in failure}
    except (TypeError, ValueError):
        raise OptionError(f"{what} must be {FAILURES}, not {shorten(failure)}") from None
    if unknown := sorted(state for state in fatal if not 0 <= state < states):
        raise OptionError(f"{what} has {unknown[0]}; states are 0 to {states - 1}")
    return lambda step: step.next_state in fatal
