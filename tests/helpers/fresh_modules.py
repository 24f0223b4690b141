"""Modules as they are in their files, whatever has become of them in this process."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import pytest


def import_again(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a module anew, which others get as well until the test ends."""
    package, _, last = name.rpartition(".")
    old = import_module(name)
    monkeypatch.delitem(sys.modules, name)
    fresh = import_module(name)
    assert fresh is not old
    monkeypatch.setitem(sys.modules, name, fresh)
    monkeypatch.setattr(sys.modules[package], last, fresh)
    return fresh
