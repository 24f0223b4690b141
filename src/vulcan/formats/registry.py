"""Models by strings: the format of a string, and the maker of its model.

A string names a model in one of the `FORMATS`: by its prefix (`gymnasium:FrozenLake-v1`), by its
suffix (`mission.toml`, `rover.py:Rover`), or else as a built-in name (`bandit`) or a class in a
module (`rover:Rover`). Each format is a module with

    FORMS               the forms of its strings, with descriptions
    find_maker(text)    the maker of the model

so that a new format is a file and a line here. An installed distribution adds a format by an entry
point of the group `vulcan.formats`: `rddl` reads files `.rddl` and strings `rddl:...`.
Parameters of the model are given as `name=value`, and override those of a file.

This module is itself the format of classes in Python: `module:Class`, `path/to/file.py:Class`, and
built-in names. Finding a class runs its module, and creating a model calls the class. Installed
modules come before those of the current directory, so that a file there never shadows an installed
module. Only classes with the methods of a model are called, never `os:system`. A class with hidden
states becomes a `BeliefModel`.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

from vulcan.bounds.parse import parse
from vulcan.constraints import read_constraints
from vulcan.domains import DOMAINS
from vulcan.errors import BoundError, OptionError, VulcanError
from vulcan.model.arrays import ArrayModel
from vulcan.model.belief import BeliefModel
from vulcan.parameters import shorten, suggest
from vulcan.runtime.files import load_file

FORMATS: Final = {
    "": "vulcan.formats.registry",
    ".py": "vulcan.formats.registry",
    ".toml": "vulcan.formats.missions",
    ".txt": "vulcan.formats.missions",
    **dict.fromkeys((".prism", ".pm", ".nm", ".jani", ".drn"), "vulcan.formats.prism"),
    **dict.fromkeys((".POMDP", ".pomdp"), "vulcan.formats.pomdp"),
    ".json": "vulcan.formats.table",
    ".npz": "vulcan.formats.arrays",
    "gymnasium:": "vulcan.formats.gymnasium",
}
"""The module of each format, by suffix, or by prefix with a colon; "" for all other strings."""

SEPARATE: Final = dict.fromkeys((".rddl", "rddl:"), "vulcan-planner-rddl")
"""Distributions of formats that are installed separately."""

FORMS: Final = {
    ", ".join(DOMAINS): "built in",
    "module:Class": "installed, or else in this directory; runs the module",
    "path/to/file.py:Class": "a file; runs it",
}


Maker = tuple[str, Callable[..., Any], str | None, *tuple[str, ...]]
"""A name for messages, the class or function that makes a model, whose parameters are those of the
model, the text of the model's own risk bound, and those of its constraints."""


class OpenedModel(NamedTuple("_Opened", [("model", Any), ("bound", str | None)])):
    """A model, and the text of its own risk bound; None without one.

    Attributes
    ----------
    constraints
        The texts of its own constraints, as `vulcan.Problem` takes them.
    """

    constraints: tuple[str, ...] = ()


def open_model(text: str, settings: Sequence[str] = ()) -> OpenedModel:
    """Return the model that a string names.

    Parameters
    ----------
    text
        A built-in name, `module:Class`, `path/to/file.py:Class`, a file of another format, such as
        `path/to/mission.toml`, or a name with a prefix, such as `gymnasium:FrozenLake-v1`.
    settings
        Strings `name=value`, the values Python literals or any other text.
    """
    values = read_settings(settings)
    name, make, bound, *constraints = find_format(text).find_maker(text)
    _check_parameters(name, make, values)
    try:
        model = make(**values)
        hidden = hasattr(model, "initial_belief")
        opened = OpenedModel(BeliefModel(model) if hidden else model, bound)
        opened.constraints = tuple(constraints)
        return opened
    except VulcanError:
        raise
    except Exception as error:
        call = ", ".join(f"{key}={value!r}" for key, value in values.items())
        message = f"{name}({call}) can't be created: {describe_fault(error)}"
        raise OptionError(message) from error


DECLARED: Final = ("horizon", "failure", "reward_range", "discount")


def open_simulator(text: str, settings: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Return a simulator that a string names, and what is declared of it and of learning.

    It is an environment, `gymnasium:NAME`, or a class with the methods of a `GenerativeModel`,
    which may have what is declared as attributes. Settings are parameters of the simulator, of
    `vulcan.learn`, or what is declared.
    """
    from vulcan.execution.learning import learn

    values = read_settings(settings)
    known = {"method", "steps", "hold", "depth", "price", *DECLARED}
    assert known <= set(inspect.signature(learn).parameters)
    given = {name: values.pop(name) for name in known & set(values)}
    form = find_format(text)
    if hasattr(form, "find_simulator"):
        simulator, declared = form.find_simulator(text, values)
        return simulator, declared | given
    if form.__name__ != __name__:
        raise OptionError(f"{text}: --simulate needs gymnasium:NAME or a class of a simulator")
    name, make, *_ = find_maker(text, ("initial", "sample", "actions"))
    _check_parameters(name, make, values)
    simulator = make(**values)
    declared = {name: getattr(simulator, name) for name in DECLARED if hasattr(simulator, name)}
    return simulator, declared | given


def read_formats() -> dict[str, str]:
    """Return `FORMATS`, with those that installed distributions add."""
    added = entry_points(group="vulcan.formats")
    return FORMATS | {
        sign: entry.module for entry in added for sign in (f".{entry.name}", f"{entry.name}:")
    }


def find_format(text: str) -> ModuleType:
    """Return the module of the format of a string."""
    formats = read_formats()
    prefix, colon, _ = text.partition(":")
    # A class may follow a file name, and a path may contain a colon.
    for sign in (prefix + colon, Path(text).suffix, Path(text.rpartition(":")[0]).suffix):
        if sign and sign in formats:
            return import_module(formats[sign])
        if sign in SEPARATE:
            install = f"pip install {SEPARATE[sign]}"
            raise OptionError(f"{text}: this format needs {SEPARATE[sign]}: {install}")
    return import_module(formats[""])


def list_formats() -> str:
    """Return the forms of all formats, for a message."""
    modules = [import_module(place) for place in read_formats().values()]
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


def _check_parameters(name: str, make: Callable[..., Any], values: Mapping[str, Any]) -> None:
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        return  # no signature, as of some C functions: the call checks
    named = {
        key: parameter
        for key, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    listed = [
        key if parameter.default is parameter.empty else f"{key}={shorten(parameter.default, 30)}"
        for key, parameter in named.items()
    ]
    known = f"its parameters are {', '.join(listed)}" if named else "it has no parameters"
    for key, value in values.items():
        if key not in named and not takes_any:
            raise OptionError(f"{name} has no parameter {key!r}{suggest(key, named)}\n{known}")
        # The string "false" would count as true.
        if key in named and isinstance(named[key].default, bool) and not isinstance(value, bool):
            raise OptionError(f"{key} is True or False, not {value!r}")
    missing = [key for key, parameter in named.items() if parameter.default is parameter.empty]
    if missing := [key for key in missing if key not in values]:
        needed = " ".join(f"--set {key}=..." for key in missing)
        raise OptionError(f"{name} needs {needed}\n{known}")


def require_bound(path: str, bound: Any) -> str | None:
    """Return the text of a file's risk bound, None without one, or raise an error."""
    if bound is None:
        return None
    if not isinstance(bound, str):
        raise OptionError(f'{path}: bound must be a string, such as "0.002*x", not {bound!r}')
    try:
        parse(bound)
    except BoundError as error:
        raise OptionError(f"{path}: bound: {error}") from None
    return bound


def require_constraints(path: str, given: Any) -> tuple[str, ...]:
    """Return the texts of a file's constraints, or raise an error."""
    try:
        return () if given is None else tuple(c.text or "" for c in read_constraints(given))
    except VulcanError as error:
        raise OptionError(f"{path}: constraints: {error}") from None


def require_known(place: str, what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that a file may not have."""
    for name in given:
        if name not in known:
            allowed = f"allowed are {', '.join(known)}{suggest(name, known)}"
            raise OptionError(f"{place}has {what} {name!r}; {allowed}")


def make_from_file(path: str, function: Callable[..., ArrayModel], values: dict[str, Any]) -> Maker:
    """Return the maker of a file's model; the values are defaults, beside bound and constraints."""
    bound = require_bound(path, values.pop("bound", None))
    constraints = require_constraints(path, values.pop("constraints", None))
    create = partial(function, **values)

    def make(**settings: Any) -> ArrayModel:
        try:
            model = create(**settings)
        except VulcanError as error:
            raise OptionError(f"{path}: {error}") from None
        model.source = Path(path).name
        return model

    make.__signature__ = inspect.signature(create)  # type: ignore[attr-defined]
    return path, make, bound, *constraints


Loaded = TypeVar("Loaded")


def run_module(place: str, load: Callable[[], Loaded]) -> Loaded:
    """Run a user's module; its exceptions become errors that name it."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        # The module itself is missing, not one of its imports.
        if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{error.name}."):
            missing = f"there is no module {error.name!r} here or among the installed packages"
            raise OptionError(missing) from None
        raise OptionError(f"{place} can't be imported: {describe_fault(error)}") from error


def describe_fault(error: BaseException) -> str:
    """Return the exception as text, with the last line of a user's file in its traceback."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return text  # its text has file and line
    here = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", here))
    ]
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text


METHODS: Final = ("initial_state", "actions", "outcomes")
HIDDEN: Final = ("initial_belief", "actions", "transitions", "observations")


def find_maker(text: str, methods: Sequence[str] = METHODS) -> Maker:
    """Return the maker for a class in Python; an error for a missing one lists those there are."""
    place, colon, name = DOMAINS.get(text, text).rpartition(":")
    if text.endswith(".py"):
        place, name = text, ""
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise OptionError(f"there is no file {place}")
        return _find_class(run_module(place, lambda: load_file(Path(place))), place, name, methods)
    if not colon or not place:
        hint = suggest(text, DOMAINS)
        raise OptionError(f"there is no model {text!r}{hint}\na model is one of\n{list_formats()}")

    def load() -> ModuleType:
        package = place.partition(".")[0]
        if package and package not in sys.modules and find_spec(package) is None:
            sys.path.append(os.getcwd())  # permanently: later imports and workers need it
        return import_module(place)

    return _find_class(run_module(place, load), place, name, methods)


def _find_class(module: ModuleType, place: str, name: str, methods: Sequence[str]) -> Maker:
    """Return the maker for a class of a module; an error lists those that it has."""

    def list_missing(kind: type) -> list[str]:
        hidden = methods is METHODS and hasattr(kind, "initial_belief")
        needed = HIDDEN if hidden else methods
        return [method for method in needed if not callable(getattr(kind, method, None))]

    kind = getattr(module, name, None) if name else None
    if kind is None:
        own = {
            other: value
            for other, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        }
        known = [f"{place}:{other}" for other, value in own.items() if not list_missing(value)]
        listed = ", ".join(known) if known else f"no class with {', '.join(methods)}"
        problem = f"{place} has no {name!r}" if name else f"{place} needs a class name"
        raise OptionError(f"{problem}; it has {listed}")
    if not isinstance(kind, type):
        raise OptionError(f"{place}:{name} is a {type(kind).__name__}, not the class of a model")
    kind_of = "a model" if methods is METHODS else "a simulator"
    if missing := list_missing(kind):
        raise OptionError(f"{place}:{name} is not {kind_of}: it has no {', '.join(missing)}")
    return kind.__name__, kind, None
