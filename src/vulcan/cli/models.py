"""From a text on the command line to a model: find what makes it, then make one.

A model is written as a built-in name (`bandit`), as `module:Class`, as `path/to/file.py:Class`, or
as `path/to/mission.toml`, a mission file, which may also say what risk is acceptable. Parameters
are set with `--set name=value`, which wins over what a mission file says. What goes wrong in a
user's own module is reported with the line where it happened.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from vulcan.errors import OptionError, VulcanError
from vulcan.reader import shorten

if TYPE_CHECKING:
    from vulcan.problem import Problem

__all__ = ["find_model", "find_model_and_bound", "find_problem", "keep_off_stdout"]

Loaded = TypeVar("Loaded")

METHODS = ("initial_state", "actions", "outcomes")


def find_model(text: str, settings: Sequence[str] = ()) -> Any:
    """Return the model that a text names; see `find_model_and_bound`."""
    return find_model_and_bound(text, settings)[0]


def find_problem(text: str, settings: Sequence[str], bound: str | None) -> Problem:
    """Return the model that a text names, with a risk bound: the given one, or else its own.

    Raises
    ------
    OptionError
        As `find_model_and_bound`, and if there is no bound.
    """
    from vulcan.expression import parse
    from vulcan.problem import Problem

    model, own_bound = find_model_and_bound(text, settings)
    chosen = own_bound if bound is None else bound
    if chosen is None:
        elsewhere = f', or bound = "0.002*x" in {text}' if _is_mission(text) else ""
        raise OptionError(f"Missing option '--bound', such as --bound \"0.002*x\"{elsewhere}")
    return Problem(model, parse(chosen))


def find_model_and_bound(text: str, settings: Sequence[str] = ()) -> tuple[Any, str | None]:
    """Return the model that a text names, made with the settings, and the bound that it brings.

    Parameters
    ----------
    text
        A built-in name, `module:Class`, `path/to/file.py:Class` or `path/to/mission.toml`.
    settings
        Texts `name=value`; see `read_settings`.

    Returns
    -------
    tuple
        The model, and the text of its risk bound: None but for mission files that give one.

    Raises
    ------
    OptionError
        If there is no such model, or it can't be made; the message says what is allowed.
    """
    values = read_settings(settings)
    if _is_mission(text):
        make, bound = _load_mission(text)
        return _make(text, make, values), bound
    kind = _find_class(text)
    return _make(getattr(kind, "__name__", repr(kind)), kind, values), None


def keep_off_stdout() -> AbstractContextManager[object]:
    """Let what a model prints go to standard error; standard output is for the answer."""
    return redirect_stdout(sys.stderr)


def read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return the values of texts `name=value`: Python literals, or else the text itself."""
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


def _is_mission(text: str) -> bool:
    return text.endswith(".toml")


def _load_mission(place: str) -> tuple[Callable[..., Any], str | None]:
    """Return what makes the mission of a file, whose values are its defaults, and the bound."""
    from vulcan.domains.exploration import Exploration, load_mission

    try:
        mission, bound = load_mission(place)
    except OptionError as error:
        # Nothing of the user's was run: the message says it all, and no cause would add to it.
        raise error from None
    values = {part.name: getattr(mission, part.name) for part in fields(mission)}
    return partial(Exploration, **values), bound


def _find_class(text: str) -> Callable[..., Any]:
    from vulcan.domains import DOMAINS

    place, colon, name = DOMAINS.get(text, text).rpartition(":")
    if not colon:
        # Somebody who gives a file without a class is told which classes it has.
        place, name = text, ""
    if place.endswith(".py"):
        module = _load_file(place)
    elif colon and place:
        module = _load_module(place)
    else:
        raise OptionError(_list_models(text, DOMAINS))
    kind = getattr(module, name, None) if name else None
    if kind is None:
        known = [f"{place}:{known}" for known in _model_classes(module)]
        listed = (
            f"it has {', '.join(known)}" if known else "it has no class with " + ", ".join(METHODS)
        )
        problem = f"{place} has no {name!r}" if name else f"{place} needs a class after it"
        raise OptionError(f"{problem}; {listed}")
    if not callable(kind):
        raise OptionError(f"{text} is a {type(kind).__name__}, not a class")
    return kind  # type: ignore[no-any-return]


def _list_models(text: str, names: Mapping[str, str]) -> str:
    close = get_close_matches(text, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    forms = {
        ", ".join(names): "built in",
        "module:Class": "importable, from this directory too",
        "path/to/file.py:Class": "a file",
        "path/to/mission.toml": "an exploration mission of your own",
    }
    width = max(map(len, forms))
    listed = "\n".join(f"  {form:<{width}}  {meaning}" for form, meaning in forms.items())
    return f"there is no model {text!r}{guess}\na model is one of\n{listed}"


def _load_file(place: str) -> ModuleType:
    path = Path(place)
    if not path.is_file():
        raise OptionError(f"there is no file {place}")
    # Like a script, the file finds its neighbours. It gets a name of its own, so that a file called
    # numpy.py replaces nothing.
    sys.path.insert(0, str(path.resolve().parent))
    name = f"vulcan_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    execute = spec.loader.exec_module
    _run(place, lambda: execute(module))
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    return _run(name, lambda: importlib.import_module(name))


def _run(place: str, load: Callable[[], Loaded]) -> Loaded:
    """Run a user's module; whatever it raises is a matter of the module."""
    try:
        return load()
    except ModuleNotFoundError as error:
        # The module itself is missing, rather than something that it imports.
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise OptionError(
                f"there is no module {error.name!r} here or among the installed packages"
            ) from None
        raise OptionError(f"{place} can't be imported: {_describe(error)}") from error
    except (Exception, SystemExit) as error:
        raise OptionError(f"{place} can't be imported: {_describe(error)}") from error


def _describe(error: BaseException) -> str:
    """Return what was raised, and the last line of a file that took part in it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return text  # it names file and line itself
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and frame.filename != __file__
    ]
    return f"{text} ({places[-1].filename}, line {places[-1].lineno})" if places else text


def _model_classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and all(hasattr(kind, method) for method in METHODS)
    ]


def _make(name: str, kind: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    _check_parameters(name, kind, values)
    try:
        return kind(**values)
    except VulcanError:
        raise
    except Exception as error:
        call = ", ".join(f"{key}={value!r}" for key, value in values.items())
        raise OptionError(f"{name}({call}) can't be made: {_describe(error)}") from error


def _check_parameters(name: str, kind: Callable[..., Any], values: Mapping[str, Any]) -> None:
    try:
        parameters = inspect.signature(kind).parameters
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
            close = get_close_matches(key, named, n=1)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            raise OptionError(f"{name} has no parameter {key!r}{guess}\n{_list_parameters(named)}")
        # The text "false" would be true.
        if key in named and isinstance(named[key].default, bool) and not isinstance(value, bool):
            raise OptionError(f"{key} is True or False, not {value!r}")
    missing = [key for key, parameter in named.items() if parameter.default is parameter.empty]
    if missing := [key for key in missing if key not in values]:
        raise OptionError(
            f"{name} needs {' '.join(f'--set {key}=...' for key in missing)}\n"
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
