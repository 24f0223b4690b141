"""Python files as modules, in this process and in others.

A file finds its neighbours, but installed modules first, and it gets a name of its own: a file that
is called numpy.py, be it the one or the other, replaces nothing. Nobody can import that name, and
objects are pickled by it: a process that is to read them loads the same files first
(`list_loaded`).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["list_loaded", "list_loaded_modules", "load_file"]

_loaded: dict[str, Path] = {}


def load_file(path: Path) -> ModuleType:
    """Run a Python file and return it as a module; whatever it raises passes through."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    name = f"vulcan_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    _loaded[name] = path.resolve()
    return module


def list_loaded() -> list[Path]:
    """Return the files that were loaded, as another process may load them."""
    return [path for name, path in _loaded.items() if name in sys.modules]


def list_loaded_modules() -> list[ModuleType]:
    """Return the modules of those files."""
    return [sys.modules[name] for name in _loaded if name in sys.modules]
