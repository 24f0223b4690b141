"""Models of model checkers: PRISM, JANI and DRN files, built by Storm.

    path/to/model.prism (.pm, .nm)    the PRISM language
    path/to/model.jani                JANI, which many tools write
    path/to/model.drn                 explicit states, as `vulcan export` and Storm write them

A file says what can happen; what failing is, and what is worth something, is for its reader to say:

    horizon    how many steps a history has at most
    failure    a label of the file or an expression over its variables: stepping into such a state
               fails, and ends the mission
    goal       the same for states in which the mission ends safely
    reward     the reward structure, weights of several (a cost has a negative one), or a number:
               what reaching the goal earns
    constants  values of the constants that the file leaves open

A step earns the reward of the state that it leaves and that of its choice, as `C<=horizon` counts
them: neither a failed state nor the last one earns anything. A state that nothing leads out of and
that earns nothing is a safe terminal. Choices keep the names of their actions; those without one
have that of their module. Choices of one state that share a name get numbers.

Storm builds the states, and all arrays of the result come over at once.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.formats.prism_source import FAILED, Source
from vulcan.formats.registry import Maker
from vulcan.formats.storm_arrays import StormArrays
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.parameters import suggest
from vulcan.tolerance import SUM_TOLERANCE

__all__ = ["FORMS", "PrismModel", "find_maker", "from_prism"]

FORMS: Final = {
    "path/to/model.prism, .jani, .drn": "a model of model checkers, read by Storm",
}

Weights = str | Mapping[str, float] | float
"""What is worth something: a reward structure, weights of several, or the goal."""


class PrismModel(ArrayModel):
    """A model that Storm built; made by `from_prism`.

    Its states are texts, the values of the variables: `x=3, gold=1`. In DRN they are called by the
    comment below each state, and where that is missing by Storm's numbers. Its actions are the
    names of the choices.

    Attributes
    ----------
    variables
        The value of each variable, by Storm's numbers of the states; empty for a file without
        variables.
    """

    variables: Mapping[str, NDArray[Any]]

    def state_values(self, state: Any) -> dict[str, Any]:
        """Return the value of each variable in a state."""
        number = self._find_state(state)
        return {name: column[number].item() for name, column in self.variables.items()}


def from_prism(
    path: str | os.PathLike[str],
    *,
    horizon: int,
    failure: str | None = None,
    reward: Weights | None = None,
    goal: str | None = None,
    constants: Mapping[str, bool | int | float] | None = None,
    discount: float = 1.0,
) -> PrismModel:
    """Read a model in the PRISM language, in JANI or in DRN.

    Parameters
    ----------
    path
        The file; its suffix says which format it is.
    horizon
        How many steps a history has at most.
    failure
        A label, or an expression over the variables such as ``"x=3 & !carrying"``; by default the
        label "failed".
    reward
        The name of a reward structure; by default the only one there is. Or weights of several,
        ``{"gold": 1, "time": -0.1}``. Or a number: what reaching the goal earns.
    goal
        A label or an expression: where the mission ends safely.
    constants
        Values of the constants that the file leaves open.
    discount
        As in every model.

    Raises
    ------
    OptionError
        If Storm is not installed, or the file can't be read; the message names file and line, or
        the label, constant or reward structure that is missing, and what there is.
    """
    source = Source(os.fspath(path))
    return _make(
        source,
        dict(constants or {}),
        horizon=horizon,
        failure=source.default_failure if failure is None else failure,
        reward=reward,
        goal=goal,
        discount=discount,
    )


def find_maker(text: str) -> Maker:
    """Return what makes the model of a file: its open constants are parameters as well."""
    source = Source(text)
    own = inspect.signature(from_prism).parameters
    shown = {name: f"const_{name}" if name in own else name for name in source.constants}

    def make(**values: Any) -> PrismModel:
        constants = {name: values.pop(text) for name, text in shown.items() if text in values}
        values.setdefault("failure", source.default_failure)
        return _make(source, constants, **values)

    make.__signature__ = _sign(source, shown)  # type: ignore[attr-defined]
    return Maker(source.name, make)


def _sign(source: Source, shown: Mapping[str, str]) -> inspect.Signature:
    """Return the parameters of a model, with those that are its constants."""
    parameters = dict(inspect.signature(from_prism).parameters)
    del parameters["path"], parameters["constants"]
    if source.default_failure is None:
        empty = inspect.Parameter.empty
        parameters["failure"] = parameters["failure"].replace(default=empty)
    else:
        parameters["failure"] = parameters["failure"].replace(default=FAILED)
    constants = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in shown.values()]
    return inspect.Signature([*parameters.values(), *constants])


def _make(
    source: Source,
    constants: dict[str, Any],
    *,
    horizon: int,
    failure: str | None,
    reward: Weights | None = None,
    goal: str | None = None,
    discount: float = 1.0,
) -> PrismModel:
    """Build the states, and return the model."""
    if failure is None:
        raise OptionError(
            f"{source.name} has no label {FAILED!r}: say what failure is{source.list_places()}"
        )
    places = {"failure": str(failure)} | ({} if goal is None else {"goal": str(goal)})
    arrays, found = source.build(constants, places)
    fails = found["failure"]
    ends = found.get("goal", np.zeros_like(fails)) & ~fails
    for name, where in (("failure", fails), ("goal", ends)):
        if where[arrays.start]:
            raise OptionError(
                f"{source.name} starts in a state of {name} {places[name]!r}: nothing is left "
                "to decide"
            )
    _check_sums(source, arrays)
    step, bonus = _choose_rewards(source, arrays, reward, goal)
    model = _assemble(arrays, fails, ends, step, bonus, horizon=horizon, discount=discount)
    model.source, model.variables = source.name, arrays.variables
    return model


def _check_sums(source: Source, arrays: StormArrays) -> None:
    """Refuse probabilities that do not sum to 1, and say where."""
    sums = np.bincount(arrays.choice, arrays.probability)
    wrong = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(wrong):
        state = int(arrays.state[wrong[0]])
        place = str(state) if arrays.state_names is None else arrays.state_names[state]
        raise OptionError(
            f"{source.path}: probabilities of "
            f"{arrays.action_labels[arrays.action[wrong[0]]]!r} sum to "
            f"{float(sums[wrong[0]])!r}, not to 1, in state {place}"
        )


def _choose_rewards(
    source: Source, arrays: StormArrays, reward: Weights | None, goal: str | None
) -> tuple[NDArray[np.float64], float]:
    """Return what each choice earns, and what reaching the goal earns."""
    known = arrays.rewards
    listed = f"its reward structures are {', '.join(map(repr, known)) or 'none'}"
    nothing = np.zeros(len(arrays.state))
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        if goal is None:
            raise OptionError(f"reward {reward!r} is for reaching a goal: say which goal")
        return nothing, float(reward)
    if reward is None:
        if len(known) != 1:
            raise OptionError(f"{source.name} needs a choice of reward; {listed}")
        reward = next(iter(known))
    if not isinstance(reward, Mapping):
        reward = {str(reward): 1.0}
    for name in reward:
        if name not in known:
            raise OptionError(
                f"{source.name} has no reward structure {name!r}{suggest(name, known)}; {listed}"
            )
    return sum((weight * known[name] for name, weight in reward.items()), nothing), 0.0


def _assemble(
    arrays: StormArrays,
    fails: NDArray[np.bool_],
    ends: NDArray[np.bool_],
    step: NDArray[np.float64],
    bonus: float,
    *,
    horizon: int,
    discount: float,
) -> PrismModel:
    """Return the model of arrays: nothing goes on from failures, goals, and where nothing moves."""
    state = arrays.state[arrays.choice]
    moves = (arrays.target != state) | (step[arrays.choice] != 0)
    stuck = np.bincount(state, moves, len(fails)) == 0
    kept = ~(fails | ends | stuck)[state]
    if not kept.any():
        raise OptionError("nothing can be decided in this model: its first state has no way out")
    target = np.where(fails[arrays.target], FAILURE_TARGET, arrays.target)
    reward = step[arrays.choice] + bonus * ends[arrays.target]
    return PrismModel(
        state[kept],
        arrays.action[arrays.choice][kept],
        target[kept],
        arrays.probability[kept],
        reward[kept],
        horizon=horizon,
        start=arrays.start,
        discount=discount,
        action_names=arrays.action_labels,
        state_names=arrays.state_names,
    )
