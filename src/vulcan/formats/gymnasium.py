"""Gymnasium environments that have a transition table: `gymnasium:FrozenLake-v1`.

The table is `env.unwrapped.P`: for each state and action a list of (probability, next state,
reward, terminated). It says everything but what a failure is, which is a matter of the mission:

    "holes"           the next cell is a hole (frozen lakes)
    "cliff"           the step fell off the cliff, for a reward of -100
    "illegal"         a passenger was picked up or put down where that can't be, for -10 (taxis)
    "reward <= -50"   the reward of the step is that small
    [5, 7]            the next state is one of these
    a function        of a `Transition`

A step that terminated and did not fail ends the history well. Where its next state can also be gone
through, the end is a state of its own: an observer is told of both, the state and the end. The
reward of a failing step counts, and nothing after it does.

`to_gymnasium` is the other way round: any model as an environment (`vulcan.formats.environment`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.errors import ModelError, OptionError, PolicyError
from vulcan.formats.failures import KNOWN, Failure, Transition, read_failure
from vulcan.formats.registry import Maker
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.model.interface import FAILURE, Start
from vulcan.model.observations import label_outcomes
from vulcan.model.rules import Rule, Violation
from vulcan.parameters import shorten, suggest

if TYPE_CHECKING:
    from vulcan.formats.environment import ModelEnvironment

__all__ = ["FORMS", "GymnasiumModel", "Transition", "find_maker", "from_gymnasium", "to_gymnasium"]

PREFIX: Final = "gymnasium:"
FORMS: Final = {"gymnasium:FrozenLake-v1": "an environment with a transition table"}

ENVIRONMENTS: Final = "FrozenLake-v1, CliffWalking-v1 and Taxi"


class GymnasiumModel(ArrayModel):
    """The model of an environment; made by `from_gymnasium`.

    States are the environment's observations, and actions its actions.

    Attributes
    ----------
    name
        The name of the environment.
    environment
        The environment itself, as its table has it: without wrappers, and so without their limit
        of steps.
    observations
        How many the environment has.
    ends
        The states in which a history ended that could otherwise have gone on, by the observation.
    """

    name: str
    environment: Any
    observations: int
    ends: Mapping[int, int]
    _fails: Failure

    def __repr__(self) -> str:
        return f"{self.name}({self.states:,} states, horizon={self.horizon})"

    def locate(self, state: Any, action: Any, measurement: Sequence[Any]) -> str | None:
        """Return the label of the outcome that a step of the environment was.

        Parameters
        ----------
        state, action
            Where the step began, and what was done.
        measurement
            What `env.step` returned: observation, reward, terminated, and whatever follows; where
            the start is drawn, what `env.reset` did.

        Returns
        -------
        str or None
            None if the table of the environment has no such step.
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
            if outcome.state == target and outcome.reward == step.reward:
                return label
        return None


def from_gymnasium(
    environment: Any,
    *,
    failure: Failure | str | Iterable[int] | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
    start: Any = None,
    **options: Any,
) -> GymnasiumModel:
    """Return the model of a Gymnasium environment that has a transition table.

    Parameters
    ----------
    environment
        The environment, or its name, such as "FrozenLake-v1".
    failure
        What fails; see the head of this module. By default what does in Gymnasium's own
        environments: holes, the cliff, illegal moves. Of others it has to be said.
    horizon
        How many actions a history has at most; by default those of the environment.
    discount
        As in every model.
    start
        A state, or the probability of each; by default the environment's own.
    options
        Given to the environment that is made by its name, such as is_slippery=True.

    Raises
    ------
    OptionError
        If there is no such environment, or it has no table; the message says what is allowed.
    ModelError
        If something in the table breaks a rule; the message names the place.
    """
    if isinstance(environment, str):
        environment = _make(environment, options)
    elif options:
        raise OptionError(f"{', '.join(options)}: options are for environments given by name")
    inner = environment.unwrapped
    rows, states = _read_table(environment)
    fails = read_failure(failure, inner, states)
    failing = np.array([bool(fails(row[0])) for row in rows])
    begins = _read_start(start, inner, states)
    ends, columns = _arrange(rows, failing, begins, states)
    known = KNOWN.get(type(inner).__name__)
    labels = known.actions if known and columns[1].max() < len(known.actions) else None
    model = GymnasiumModel(
        *columns,
        horizon=_read_horizon(horizon, environment),
        start=np.append(begins, np.zeros(len(ends))),
        discount=discount,
        action_labels=labels,
    )
    model.name = type(inner).__name__ if environment.spec is None else environment.spec.id
    model.environment, model.observations = inner, states
    model.ends, model._fails = ends, fails
    return model


def to_gymnasium(model: Any, *, most_states: int = 10_000) -> ModelEnvironment:
    """Return a model as a Gymnasium environment; see `vulcan.formats.environment`.

    Parameters
    ----------
    model
        Any model.
    most_states
        A model with more states is not enumerated: its observations are texts.
    """
    _import()
    from vulcan.formats.environment import ModelEnvironment

    return ModelEnvironment(model, most_states)


def find_maker(text: str) -> Maker:
    """Return what makes the model of an environment, with its options as parameters."""
    name = text.removeprefix(PREFIX)
    return Maker(name, partial(from_gymnasium, name))


def _import() -> Any:
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        message = "this needs Gymnasium: pip install 'vulcan-planner[gymnasium]'"
        raise OptionError(message) from None
    return gymnasium


def _make(name: str, options: Mapping[str, Any]) -> Any:
    gymnasium = _import()
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise OptionError(f"{PREFIX}{name}: {error}") from None
    except TypeError:
        taken = _list_options(gymnasium, name)
        unknown = [key for key in options if key not in taken]
        if not unknown:
            raise
        hint = suggest(unknown[0], taken)
        message = f"{name} has no option {unknown[0]!r}{hint}\nits options are {', '.join(taken)}"
        raise OptionError(message) from None


def _list_options(gymnasium: Any, name: str) -> list[str]:
    """Return what an environment takes, beside what `from_gymnasium` itself does."""
    entry = gymnasium.spec(name).entry_point
    made = gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    return [key for key in inspect.signature(made).parameters if key != "render_mode"]


def _read_table(environment: Any) -> tuple[list[tuple[Transition, float]], int]:
    """Return the steps of an environment with their probabilities, and how many states it has."""
    inner = environment.unwrapped
    name = type(inner).__name__
    table = getattr(inner, "P", None)
    if not isinstance(table, Mapping | Sequence) or not table:
        raise OptionError(
            f"{name} has no transition table, env.unwrapped.P; {ENVIRONMENTS} have one"
        )
    if getattr(inner, "fickle_passenger", False):
        raise OptionError("fickle_passenger=True is not in the transition table of the taxi")
    states = int(getattr(environment.observation_space, "n", len(table)))
    return list(_list_steps(table, states)), states


def _list_items(table: Any) -> Iterable[tuple[Any, Any]]:
    """Return what a dictionary, or a list, has at each of its places."""
    return table.items() if isinstance(table, Mapping) else enumerate(table)


def _list_steps(table: Any, states: int) -> Iterator[tuple[Transition, float]]:
    for state, actions in _list_items(table):
        for action, outcomes in _list_items(actions):
            if not outcomes:
                raise _refuse(f"P[{state}][{action}] has no outcomes", state, action)
            total = 0.0
            for place, outcome in enumerate(outcomes):
                where = f"P[{state}][{action}][{place}]"
                try:
                    chance, target, reward, terminated = outcome
                    chance, reward, target = float(chance), float(reward), int(target)
                except (TypeError, ValueError):
                    form = "(probability, next state, reward, terminated)"
                    message = f"{where} must be {form}, not {shorten(outcome)}"
                    raise _refuse(message, state, action) from None
                if not 0 <= target < states:
                    message = f"{where} leads to {target}; states are 0 to {states - 1}"
                    raise _refuse(message, state, action)
                total += chance
                yield Transition(int(state), int(action), target, reward, bool(terminated)), chance
            if not abs(total - 1) <= 1e-9:
                message = f"the probabilities of P[{state}][{action}] sum to {total:.12g}, not to 1"
                raise _refuse(message, state, action)


def _refuse(message: str, state: Any, action: Any) -> ModelError:
    return ModelError(Violation(Rule.PROBABILITIES_SUM, message, state, action))


def _arrange(
    rows: Sequence[tuple[Transition, float]], failing: Any, begins: Any, states: int
) -> tuple[dict[int, int], list[Any]]:
    """Return the ends that are states of their own, and the columns of an `ArrayModel`."""
    steps = np.array([step for step, _ in rows], float)
    state, action, target = steps[:, :3].T.astype(np.int64)
    terminated = steps[:, 4].astype(bool) & ~failing
    # Tables also have steps from where nothing leads: they are passed over.
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
    return ends, [column[kept] for column in columns]


def _read_start(start: Any, inner: Any, states: int) -> Any:
    """Return the probability of each state to be the start."""
    if start is None:
        start = getattr(inner, "initial_state_distrib", None)
        if start is None:
            raise OptionError(f"{type(inner).__name__} does not say where it begins: give start")
    if np.ndim(start) == 0:
        if not isinstance(start, int | np.integer) or not 0 <= start < states:
            raise OptionError(f"start must be a state, 0 to {states - 1}, not {start!r}")
        return np.eye(1, states, int(start)).ravel()
    begins = np.asarray(start, float)
    if begins.shape != (states,):
        raise OptionError(f"start must be of shape {[states]}, not {list(begins.shape)}")
    return begins


def _read_horizon(horizon: int | None, environment: Any) -> int:
    if horizon is None:
        horizon = getattr(environment.spec, "max_episode_steps", None)
    if horizon is None:
        name = type(environment.unwrapped).__name__
        raise OptionError(f"{name} has no limit of steps: give a horizon, such as horizon=100")
    return horizon
