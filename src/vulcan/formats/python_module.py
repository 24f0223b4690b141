"""A class in a module, `module:Class`, and the built-in models by their names."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
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
    "module:Class": "importable, from this directory too",
}

METHODS: Final = ("initial_state", "actions", "outcomes")


def find_maker(text: str) -> Maker:
    """Return the class that a string names."""
    place, colon, name = DOMAINS.get(text, text).rpartition(":")
    if not colon or not place:
        hint = suggest(text, DOMAINS)
        raise OptionError(f"there is no model {text!r}{hint}\na model is one of\n{list_formats()}")
    sys.path.insert(0, os.getcwd())
    return find_class(run_module(place, lambda: importlib.import_module(place)), place, name)


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
    if not callable(kind):
        raise OptionError(f"{place}:{name} is a {type(kind).__name__}, not a class")
    return Maker(getattr(kind, "__name__", repr(kind)), kind)


def _list_classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and all(hasattr(kind, method) for method in METHODS)
    ]
