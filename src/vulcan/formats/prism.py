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
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.storm import quiet_storm
from vulcan.errors import OptionError, VulcanError
from vulcan.formats.registry import Maker
from vulcan.formats.storm_arrays import StormArrays, describe_values, read_arrays
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel
from vulcan.parameters import suggest
from vulcan.tolerance import SUM_TOLERANCE

__all__ = ["FORMS", "PrismModel", "find_maker", "from_prism"]

FORMS: Final = {
    "path/to/model.prism, .jani, .drn": "a model of model checkers, read by Storm",
}

FAILED: Final = "failed"
"""The label of failing states that is taken without being asked for."""

OUT_OF_BOUNDS: Final = "out_of_bounds"
"""Storm's label of the state that stands for all in which a variable has left its range."""

KINDS: Final = ("DTMC", "MDP")

Weights = str | Mapping[str, float] | float
"""What is worth something: a reward structure, weights of several, or the goal."""


class PrismModel(ArrayModel):
    """A model that Storm built; its states have Storm's numbers.

    Made by `from_prism`.

    Attributes
    ----------
    source
        The name of the file.
    variables
        The value of each variable in each state; empty for a file without variables.
    """

    source: str
    variables: Mapping[str, NDArray[Any]]

    def __repr__(self) -> str:
        return super().__repr__().replace("ArrayModel", f"{self.source} ", 1)

    def describe_state(self, state: int) -> str:
        """Return the values of the variables in a state."""
        return describe_values(self.variables, state)


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
    source = _Source(os.fspath(path))
    return source.make(
        dict(constants or {}),
        horizon=horizon,
        failure=source.default_failure if failure is None else failure,
        reward=reward,
        goal=goal,
        discount=discount,
    )


def find_maker(text: str) -> Maker:
    """Return what makes the model of a file: its open constants are parameters as well."""
    source = _Source(text)

    def make(**values: Any) -> PrismModel:
        constants = {
            name: values.pop(shown) for name, shown in source.parameters.items() if shown in values
        }
        values.setdefault("failure", source.default_failure)
        return source.make(constants, **values)

    make.__signature__ = source.sign(from_prism)  # type: ignore[attr-defined]
    return Maker(Path(text).name, make)


class _Source:
    """A file that Storm has parsed.

    Attributes
    ----------
    parameters
        Each constant that the file leaves open, and what `--set` calls it.
    default_failure
        "failed", if there may be such a label.
    """

    def __init__(self, path: str) -> None:
        self.path, self.name = path, Path(path).name
        if not Path(path).is_file():
            raise OptionError(f"there is no file {path}")
        with self._explain() as stormpy:
            self._program, self._built = _parse(stormpy, path)
        self._constants = {
            constant.name: constant.type
            for constant in (self._program.constants if self._program else ())
            if not constant.defined
        }
        own = inspect.signature(from_prism).parameters
        self.parameters = {
            name: f"const_{name}" if name in own else name for name in self._constants
        }
        labels = self.labels
        self.default_failure = FAILED if labels is None or FAILED in labels else None

    @property
    def labels(self) -> set[str] | None:
        """The labels of the file; None where they are known only after building."""
        if self._built is not None:
            return set(self._built.labeling.get_labels())
        if hasattr(self._program, "labels"):
            return {label.name for label in self._program.labels} | {"init", "deadlock"}
        return None

    def sign(self, function: Callable[..., Any]) -> inspect.Signature:
        """Return the parameters of a model, with those that are its constants."""
        parameters = dict(inspect.signature(function).parameters)
        del parameters["path"], parameters["constants"]
        if self.default_failure is None:
            empty = inspect.Parameter.empty
            parameters["failure"] = parameters["failure"].replace(default=empty)
        else:
            parameters["failure"] = parameters["failure"].replace(default=FAILED)
        constants = [
            inspect.Parameter(shown, inspect.Parameter.KEYWORD_ONLY)
            for shown in self.parameters.values()
        ]
        return inspect.Signature([*parameters.values(), *constants])

    def make(
        self,
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
                f"{self.name} has no label {FAILED!r}: say what failure is{self._list_places()}"
            )
        places = {"failure": str(failure)} | ({} if goal is None else {"goal": str(goal)})
        with self._explain() as stormpy:
            program = self._instantiate(stormpy, constants)
            built, found = self._build(stormpy, program, places)
            arrays = read_arrays(stormpy, built, program)
        fails = found["failure"]
        ends = found.get("goal", np.zeros_like(fails)) & ~fails
        for name, where in (("failure", fails), ("goal", ends)):
            if where[arrays.start]:
                raise OptionError(
                    f"{self.name} starts in a state of {name} {places[name]!r}: nothing is left "
                    "to decide"
                )
        self._check_sums(arrays)
        step, bonus = self._choose_rewards(arrays, reward, goal)
        model = _assemble(arrays, fails, ends, step, bonus, horizon=horizon, discount=discount)
        model.source, model.variables = self.name, arrays.variables
        return model

    def _check_sums(self, arrays: StormArrays) -> None:
        """Refuse probabilities that do not sum to 1, and say where."""
        sums = np.bincount(arrays.choice, arrays.probability)
        wrong = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
        if len(wrong):
            place = describe_values(arrays.variables, int(arrays.state[wrong[0]]))
            raise OptionError(
                f"{self.path}: probabilities of "
                f"{arrays.action_labels[arrays.action[wrong[0]]]!r} sum to "
                f"{float(sums[wrong[0]])!r}, not to 1, in state {place}"
            )

    def _instantiate(self, stormpy: Any, constants: dict[str, Any]) -> Any:
        """Return the program with the values of its constants."""
        for name in constants:
            if name not in self._constants:
                known = ", ".join(self._constants) or "none"
                raise OptionError(
                    f"{self.name} has no open constant {name!r}"
                    f"{suggest(name, self._constants)}; its open constants are {known}"
                )
        if missing := [name for name in self._constants if name not in constants]:
            raise OptionError(f"{self.name} needs values of its constants {', '.join(missing)}")
        if not constants:
            return self._program
        values = {name: _fit(name, constants[name], self._constants[name]) for name in constants}
        return stormpy.instantiate_constants(self._program, values)[0]

    def _build(
        self, stormpy: Any, program: Any, places: Mapping[str, str]
    ) -> tuple[Any, dict[str, NDArray[np.bool_]]]:
        """Return the built model, and in which states labels or expressions hold."""
        formulas = {
            name: self._parse_place(stormpy, program, name, text) for name, text in places.items()
        }
        built = self._built
        if built is None:
            description = stormpy.io.SymbolicModelDescription(program)
            asked = (list(formulas.values()), description)
            options = stormpy.BuilderOptions(*asked, build_full=True)
            options.set_add_out_of_bounds_state()
            built = stormpy.build_model(program, options=options)
            if OUT_OF_BOUNDS in built.labeling.get_labels():
                options = stormpy.BuilderOptions(*asked, build_full=True)
                options.set_exploration_checks()  # these name the update, but refuse roundings too
                stormpy.build_model(program, options=options)
                raise OptionError(f"{self.path}: a variable leaves its range")
        kind = built.model_type.name
        if kind not in KINDS:
            raise OptionError(
                f"{self.name} is a {kind}; a model for planning is one of {', '.join(KINDS)}"
            )
        if len(built.initial_states) != 1:
            count = len(built.initial_states)
            raise OptionError(f"{self.name} has {count} initial states; exactly one is allowed")
        found = {
            name: _find_states(stormpy.model_checking(built, formula), built.nr_states)
            for name, formula in formulas.items()
        }
        return built, found

    def _parse_place(self, stormpy: Any, program: Any, name: str, text: str) -> Any:
        """Return a label or an expression as a formula of Storm."""
        labels = self.labels
        named = re.findall(r'"([^"]*)"', text)
        if labels is not None and text in labels:
            return stormpy.parse_property(f'"{text}"', program)
        if program is not None and (labels is None or labels.issuperset(named)):
            with suppress(RuntimeError, stormpy.exceptions.StormError):
                return stormpy.parse_property(text, program)
        kinds = "a label" if program is None else "a label or an expression over the variables"
        raise OptionError(f"{name} {text!r} is not {kinds} of {self.name}{self._list_places(text)}")

    def _list_places(self, text: str = "") -> str:
        """Return the labels and variables that there are, for a message."""
        labels = sorted(self.labels or ())
        program = self._program
        names = [] if program is None else sorted(_list_variables(program))
        listed = [
            f"\nits {kind} are {', '.join(known)}"
            for kind, known in (("labels", labels), ("variables", names))
            if known
        ]
        return suggest(text, [*labels, *names]) + "".join(listed)

    def _choose_rewards(
        self, arrays: StormArrays, reward: Weights | None, goal: str | None
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
                raise OptionError(f"{self.name} needs a choice of reward; {listed}")
            reward = next(iter(known))
        if not isinstance(reward, Mapping):
            reward = {str(reward): 1.0}
        for name in reward:
            if name not in known:
                raise OptionError(
                    f"{self.name} has no reward structure {name!r}{suggest(name, known)}; {listed}"
                )
        return sum((weight * known[name] for name, weight in reward.items()), nothing), 0.0

    @contextmanager
    def _explain(self) -> Iterator[Any]:
        """Give stormpy; its errors get the name of the file, and the line where they have one."""
        with quiet_storm() as stormpy:
            try:
                yield stormpy
            except VulcanError:
                raise
            except (RuntimeError, stormpy.exceptions.StormError) as error:
                raise OptionError(_describe(self.path, str(error))) from None


def _parse(stormpy: Any, path: str) -> tuple[Any, Any]:
    """Return the program of a file, or the model where the file has its states."""
    suffix = Path(path).suffix
    if suffix == ".drn":
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        return None, stormpy.build_model_from_drn(path, options=options)
    if suffix == ".jani":
        return stormpy.parse_jani_model(path)[0], None
    return stormpy.parse_prism_program(path), None


def _find_states(answer: Any, count: int) -> NDArray[np.bool_]:
    """Return in which states a formula holds."""
    if not answer.is_qualitative:
        raise OptionError("failure and goal are states, not numbers: a label or an expression")
    found = np.zeros(count, bool)
    found[list(answer.get_truth_values_vector())] = True
    return found


def _list_variables(program: Any) -> list[str]:
    """Return the names of the variables of a program, without its constants."""
    if hasattr(program, "global_variables"):
        return [variable.name for variable in program.global_variables]
    constants = {constant.name for constant in program.constants}
    return [variable.name for variable in program.variables if variable.name not in constants]


def _fit(name: str, value: Any, kind: Any) -> Any:
    """Return the value of a constant as its type wants it, or refuse it."""
    if kind.is_boolean and isinstance(value, bool):
        return value
    if kind.is_integer and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind.is_rational and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    wanted = (
        "True or False" if kind.is_boolean else "a whole number" if kind.is_integer else "a number"
    )
    raise OptionError(f"constant {name} is {wanted}, not {value!r}")


def _describe(path: str, message: str) -> str:
    """Return what Storm says of a file, with the line if it names one."""
    message = re.sub(r"^\w+Exception: |^\[json\.exception\.[\w.]+\] ", "", message.strip())
    place = re.search(
        r"(?:Parsing|parse) error at (?:line )?(\d+)(?::|, column )(\d+):\s*", message
    )
    if place is None:
        return f"{path}: {message}"
    line, column = place.groups()
    what, _, shown = message[place.end() :].partition(", here:")
    text = shown.strip("\n").split("\n")[0].strip()
    return f"{path}, line {line}, column {column}: {what.strip()}" + (f"\n  {text}" if text else "")


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
        action_labels=arrays.action_labels,
    )
