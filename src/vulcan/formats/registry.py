"""From a string to a model: which format it is in, and what makes the model.

A string names a model in one of the `FORMATS`: by its prefix (`gymnasium:FrozenLake-v1`), by its
suffix (`mission.toml`, `rover.py:Rover`), or else as a built-in name (`bandit`) or a class in a
module (`rover:Rover`). Each format is a module with

    FORMS               how models are written in it, and what they are, for people
    find_maker(text)    what makes the model

so that a new format is a file and a line here. Parameters of the model are given as `name=value`,
and win over what a file says.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from vulcan.errors import OptionError, VulcanError
from vulcan.formats.faults import describe_fault
from vulcan.parameters import shorten, suggest

__all__ = ["Maker", "OpenedModel", "open_model"]

FORMATS: Final = {
    "": "vulcan.formats.python_module",
    ".py": "vulcan.formats.python_file",
    ".rddl": "vulcan.formats.rddl.opening",
    ".toml": "vulcan.formats.mission",
    ".prism": "vulcan.formats.prism",
    ".pm": "vulcan.formats.prism",
    ".nm": "vulcan.formats.prism",
    ".jani": "vulcan.formats.prism",
    ".drn": "vulcan.formats.prism",
    ".json": "vulcan.formats.table",
    ".npz": "vulcan.formats.arrays",
    ".txt": "vulcan.formats.grid",
    "gymnasium:": "vulcan.formats.gymnasium",
    "rddl:": "vulcan.formats.rddl.opening",
}
"""The module of each format, by the suffix of a file, or by a prefix, which ends with a colon.

Without either, a module and built-in names.
"""


@dataclass(frozen=True)
class Maker:
    """What makes a model.

    Attributes
    ----------
    name
        What messages call it.
    make
        A class, or any function that returns a model; its parameters are those of the model.
    bound
        The text of the risk bound that comes with the model; None without one.
    """

    name: str
    make: Callable[..., Any]
    bound: str | None = None


class OpenedModel(NamedTuple):
    """A model, and the text of the risk bound that comes with it; None without one."""

    model: Any
    bound: str | None


def open_model(text: str, settings: Sequence[str] = ()) -> OpenedModel:
    """Return the model that a string names, made with the settings.

    Parameters
    ----------
    text
        A built-in name, `module:Class`, `path/to/file.py:Class`, a file of another format, such as
        `path/to/mission.toml`, or what follows a prefix: `gymnasium:FrozenLake-v1`.
    settings
        Strings `name=value`; see `read_settings`.

    Raises
    ------
    OptionError
        If there is no such model, or it can't be made; the message says what is allowed.
    """
    values = read_settings(settings)
    maker = find_format(text).find_maker(text)
    return OpenedModel(_make(maker, values), maker.bound)


def find_format(text: str) -> ModuleType:
    """Return the module of the format that a string is in."""
    prefix, colon, _ = text.partition(":")
    # A class may follow a file, and a colon may be part of its path.
    signs = (prefix + colon, Path(text).suffix, Path(text.rpartition(":")[0]).suffix)
    return import_module(next((FORMATS[s] for s in signs if s and s in FORMATS), FORMATS[""]))


def list_formats() -> str:
    """Return how models are written, for a message."""
    modules = [import_module(place) for place in FORMATS.values()]
    forms = {form: meaning for module in modules for form, meaning in module.FORMS.items()}
    width = max(map(len, forms))
    return "\n".join(f"  {form:<{width}}  {meaning}" for form, meaning in forms.items())


def read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return the values of strings `name=value`: Python literals, or else the string itself."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise OptionError(f"--set takes name=value, such as horizon=9, not {setting!r}")
        if name in values:
            raise OptionError(f"--set gives {name} twice")
        try:
            values[name] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            values[name] = text
    return values


def _make(maker: Maker, values: Mapping[str, Any]) -> Any:
    _check_parameters(maker, values)
    try:
        return maker.make(**values)
    except VulcanError:
        raise
    except Exception as error:
        call = ", ".join(f"{key}={value!r}" for key, value in values.items())
        message = f"{maker.name}({call}) can't be made: {describe_fault(error)}"
        raise OptionError(message) from error


def _check_parameters(maker: Maker, values: Mapping[str, Any]) -> None:
    try:
        parameters = inspect.signature(maker.make).parameters
    except (TypeError, ValueError):
        return  # written in C, without a signature: the call itself will tell
    named = {
        key: parameter
        for key, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for key, value in values.items():
        if key not in named and not takes_any:
            raise OptionError(
                f"{maker.name} has no parameter {key!r}{suggest(key, named)}\n"
                f"{_list_parameters(named)}"
            )
        # The string "false" would be true.
        if key in named and isinstance(named[key].default, bool) and not isinstance(value, bool):
            raise OptionError(f"{key} is True or False, not {value!r}")
    missing = [key for key, parameter in named.items() if parameter.default is parameter.empty]
    if missing := [key for key in missing if key not in values]:
        raise OptionError(
            f"{maker.name} needs {' '.join(f'--set {key}=...' for key in missing)}\n"
            f"{_list_parameters(named)}"
        )


def _list_parameters(named: Mapping[str, inspect.Parameter]) -> str:
    if not named:
        return "it has no parameters"
    listed = [
        key if parameter.default is parameter.empty else f"{key}={shorten(parameter.default, 30)}"
        for key, parameter in named.items()
    ]
    return f"its parameters are {', '.join(listed)}"
