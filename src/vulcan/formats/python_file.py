"""A class in a Python file: `path/to/file.py:Class`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Final

from vulcan.errors import OptionError
from vulcan.formats.faults import run_module
from vulcan.formats.python_module import find_class
from vulcan.formats.registry import Maker
from vulcan.runtime.modules import load_file

__all__ = ["FORMS", "find_maker"]

FORMS: Final = {"path/to/file.py:Class": "a file; runs it"}


def find_maker(text: str) -> Maker:
    """Return the class that a string names; without a class, say which ones the file has."""
    place, colon, name = text.rpartition(":")
    if not colon:
        place, name = text, ""
    return find_class(_load_file(place), place, name)


def _load_file(place: str) -> ModuleType:
    path = Path(place)
    if not path.is_file():
        raise OptionError(f"there is no file {place}")
    return run_module(place, lambda: load_file(path))
