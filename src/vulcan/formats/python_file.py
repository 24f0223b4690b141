"""A class in a Python file: `path/to/file.py:Class`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from vulcan.errors import OptionError
from vulcan.formats.faults import run_module
from vulcan.formats.python_module import find_class
from vulcan.formats.registry import Maker

__all__ = ["FORMS", "find_maker"]

FORMS: Final = {"path/to/file.py:Class": "a file"}


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
    run_module(place, lambda: execute(module))
    return module
