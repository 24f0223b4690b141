"""Classes of models in Python: `module:Class`, `path/to/file.py:Class`, and built-in names.

Finding a class runs its module, and creating a model calls the class. Installed modules come before
those of the current directory, so that a file there never shadows an installed module.

Only classes with the methods of a model are called, never `os:system`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from vulcan.domains import DOMAINS
from vulcan.errors import OptionError
from vulcan.formats.registry import Maker, list_formats, run_module
from vulcan.parameters import suggest
from vulcan.runtime.files import load_file

FORMS: Final = {
    ", ".join(DOMAINS): "built in",
    "module:Class": "installed, or else in this directory; runs the module",
    "path/to/file.py:Class": "a file; runs it",
}

METHODS: Final = ("initial_state", "actions", "outcomes")


def find_maker(text: str) -> Maker:
    """Return the maker for a class; an error for a missing one lists those of the module."""
    place, colon, name = DOMAINS.get(text, text).rpartition(":")
    if text.endswith(".py"):
        place, name = text, ""
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise OptionError(f"there is no file {place}")
        return _find_class(run_module(place, lambda: load_file(Path(place))), place, name)
    if not colon or not place:
        hint = suggest(text, DOMAINS)
        raise OptionError(f"there is no model {text!r}{hint}\na model is one of\n{list_formats()}")
    if text not in DOMAINS:
        run_module(place, lambda: _search_here(place))
    return _find_class(run_module(place, lambda: importlib.import_module(place)), place, name)


def _search_here(place: str) -> None:
    """Append the current directory to the module path if a module is not found elsewhere."""
    package = place.partition(".")[0]
    if package and package not in sys.modules and find_spec(package) is None:
        sys.path.append(os.getcwd())  # permanently: later imports and workers need it


def _find_class(module: ModuleType, place: str, name: str) -> Maker:
    """Return the maker for a class of a module; an error lists those that it has."""
    kind: Callable[..., Any] | None = getattr(module, name, None) if name else None
    if kind is None:
        known = [f"{place}:{known}" for known in _list_classes(module)]
        listed = (
            f"it has {', '.join(known)}" if known else "it has no class with " + ", ".join(METHODS)
        )
        problem = f"{place} has no {name!r}" if name else f"{place} needs a class after it"
        raise OptionError(f"{problem}; {listed}")
    if not isinstance(kind, type):
        raise OptionError(f"{place}:{name} is a {type(kind).__name__}, not the class of a model")
    if not _is_model_class(kind):
        missing = [method for method in METHODS if not callable(getattr(kind, method, None))]
        raise OptionError(f"{place}:{name} is not a model: it has no {', '.join(missing)}")
    return Maker(kind.__name__, kind)


def _is_model_class(kind: object) -> bool:
    return isinstance(kind, type) and all(
        callable(getattr(kind, method, None)) for method in METHODS
    )


def _list_classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, kind in vars(module).items()
        if _is_model_class(kind) and kind.__module__ == module.__name__
    ]
