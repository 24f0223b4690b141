"""A class in a module, `module:Class`, and the built-in models by their names.

To look for a class is to run its module, and to make a model is to call the class. A module is
looked for among the installed ones first, and then in the current directory, so that a file there
never takes the place of an installed module. Built-in models need no such look.

What is called is known to make a model before it is called: it is a class with the methods of one,
or a function that is annotated to return such a class. `os:system` is neither.
"""

from __future__ import annotations

import importlib
import os
import sys
import typing
from collections.abc import Callable
from importlib.util import find_spec
from inspect import isfunction
from types import ModuleType
from typing import Any, Final

from vulcan.domains import DOMAINS
from vulcan.errors import OptionError
from vulcan.formats.faults import run_module
from vulcan.formats.registry import Maker, list_formats
from vulcan.parameters import suggest

__all__ = ["FORMS", "find_class", "find_maker"]

FORMS: Final = {
    ", ".join(DOMAINS): "built in",
    "module:Class": "installed, or else in this directory; runs the module",
}

METHODS: Final = ("initial_state", "actions", "outcomes")


def find_maker(text: str) -> Maker:
    """Return the class that a string names."""
    built_in = text in DOMAINS
    place, colon, name = DOMAINS.get(text, text).rpartition(":")
    if not colon or not place:
        hint = suggest(text, DOMAINS)
        raise OptionError(f"there is no model {text!r}{hint}\na model is one of\n{list_formats()}")
    if not built_in:
        run_module(place, lambda: _look_here(place))
    return find_class(run_module(place, lambda: importlib.import_module(place)), place, name)


def _look_here(place: str) -> None:
    """Let modules of this directory be found, behind all others, if a module is nowhere else."""
    package = place.partition(".")[0]
    if package and package not in sys.modules and find_spec(package) is None:
        sys.path.append(os.getcwd())  # to stay there: what it imports later, and workers, need it


def find_class(module: ModuleType, place: str, name: str) -> Maker:
    """Return a class of a module, or say which classes it has."""
    kind: Callable[..., Any] | None = getattr(module, name, None) if name else None
    if kind is None:
        known = [f"{place}:{known}" for known in _list_classes(module)]
        listed = (
            f"it has {', '.join(known)}" if known else "it has no class with " + ", ".join(METHODS)
        )
        problem = f"{place} has no {name!r}" if name else f"{place} needs a class after it"
        raise OptionError(f"{problem}; {listed}")
    if not _is_model_class(kind) and not _is_model_class(_find_returned(kind)):
        raise OptionError(f"{place}:{name} {_describe_stranger(kind)}")
    return Maker(getattr(kind, "__name__", repr(kind)), kind)


def _is_model_class(kind: object) -> bool:
    return isinstance(kind, type) and all(
        callable(getattr(kind, method, None)) for method in METHODS
    )


def _find_returned(function: object) -> object:
    """Return what a function is annotated to return; None if it does not say."""
    if not isfunction(function):
        return None
    try:
        return typing.get_type_hints(function).get("return")
    except Exception:  # a name that does not exist, or not while the module runs
        return None


def _describe_stranger(kind: object) -> str:
    """Return why something can't be called for a model."""
    if isinstance(kind, type):
        missing = [method for method in METHODS if not callable(getattr(kind, method, None))]
        return f"is not a model: it has no {', '.join(missing)}"
    if isfunction(kind):
        return (
            "is a function that does not say that it returns a model: annotate it with the class, "
            f"def {kind.__name__}(...) -> Class"
        )
    return f"is a {type(kind).__name__}, not the class of a model"


def _list_classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, kind in vars(module).items()
        if _is_model_class(kind) and kind.__module__ == module.__name__
    ]
