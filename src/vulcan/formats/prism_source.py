"""A file in PRISM, JANI or DRN, as Storm parses and builds it.

Whatever Storm does not like becomes an error that names the file, and the line where Storm names
one; what is missing is told with what there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.storm import quiet_storm
from vulcan.errors import OptionError, VulcanError
from vulcan.formats.storm_arrays import StormArrays, read_arrays
from vulcan.parameters import suggest

__all__ = ["FAILED", "Source"]

FAILED: Final = "failed"
"""The label of failing states that is taken without being asked for."""

OUT_OF_BOUNDS: Final = "out_of_bounds"
"""Storm's label of the state that stands for all in which a variable has left its range."""

KINDS: Final = ("DTMC", "MDP")


class Source:
    """A file that Storm has parsed.

    Attributes
    ----------
    path, name
        The file, and what messages call it.
    constants
        The constants that the file leaves open, with their types.
    default_failure
        "failed", if there may be such a label.
    """

    def __init__(self, path: str) -> None:
        self.path, self.name = path, Path(path).name
        if not Path(path).is_file():
            raise OptionError(f"there is no file {path}")
        with self._explain() as stormpy:
            self._program, self._built = _parse(stormpy, path)
        self.constants = {
            constant.name: constant.type
            for constant in (self._program.constants if self._program else ())
            if not constant.defined
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

    def _instantiate(self, stormpy: Any, constants: Mapping[str, Any]) -> Any:
        """Return the program with the values of its constants."""
        for name in constants:
            if name not in self.constants:
                known = ", ".join(self.constants) or "none"
                raise OptionError(
                    f"{self.name} has no open constant {name!r}"
                    f"{suggest(name, self.constants)}; its open constants are {known}"
                )
        if missing := [name for name in self.constants if name not in constants]:
            raise OptionError(f"{self.name} needs values of its constants {', '.join(missing)}")
        if not constants:
            return self._program
        values = {name: _fit(name, constants[name], self.constants[name]) for name in constants}
        return stormpy.instantiate_constants(self._program, values)[0]

    def build(
        self, constants: Mapping[str, Any], places: Mapping[str, str]
    ) -> tuple[StormArrays, dict[str, NDArray[np.bool_]]]:
        """Return the arrays of all states, and in which of them labels or expressions hold."""
        with self._explain() as stormpy:
            program = self._instantiate(stormpy, constants)
            built, found = self._build(stormpy, program, places)
            arrays = read_arrays(stormpy, built, program)
        return replace(arrays, comments=_read_comments(self.path, built.nr_states)), found

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
        raise OptionError(f"{name} {text!r} is not {kinds} of {self.name}{self.list_places(text)}")

    def list_places(self, text: str = "") -> str:
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


def _read_comments(path: str, states: int) -> list[str] | None:
    """Return the comment below each state of a DRN file, as `vulcan export` writes it."""
    if not path.endswith(".drn"):
        return None
    text = Path(path).read_text(errors="replace")
    found = dict(re.findall(r"^state (\d+)\b.*\n//(.*)$", text, re.MULTILINE))
    names = [found.get(str(state), "").strip() for state in range(states)]
    return names if all(names) else None


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
