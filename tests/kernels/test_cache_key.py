"""Compiled functions are cached under a digest of all that they depend on."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from vulcan.kernels import compilation


def clear() -> None:
    for cached in (compilation.cache_directory, compilation._list_imports, compilation._find_file):
        cached.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of which `code` freezes a constant of `wind`, by way of `model`."""
    folder = tmp_path / "glider"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "code.py").write_text(
        "def f():\n    from glider.model import SPEED\n    return SPEED\n"
    )
    (folder / "model.py").write_text("import math\nfrom glider.wind import SPEED\n")
    (folder / "wind.py").write_text("SPEED = 1\n")
    (folder / "other.py").write_text("")
    module = ModuleType("glider")
    module.__file__ = str(folder / "__init__.py")
    monkeypatch.setitem(sys.modules, "glider", module)
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(tmp_path / "cache"))
    clear()
    return folder


def test_a_constant_that_is_frozen_elsewhere_gives_a_new_cache(package: Path) -> None:
    before = compilation.cache_directory("glider.code")
    assert set(compilation.find_sources("glider.code")) == {
        "glider.code",
        "glider.model",
        "glider.wind",
    }
    (package / "other.py").write_text("changed = True\n")
    clear()
    assert compilation.cache_directory("glider.code") == before
    (package / "wind.py").write_text("SPEED = 2\n")
    clear()
    assert compilation.cache_directory("glider.code") != before


def test_compiled_domains_depend_on_what_they_freeze() -> None:
    sources = compilation.find_sources("vulcan.domains.exploration.compiled")
    # MOVES, LARGEST_DEGREE and SMALLEST_SHARE are frozen there.
    assert {"vulcan.domains.exploration.model", "vulcan.domains.exploration.field"} <= set(sources)
    kernels = compilation.find_sources("vulcan.kernels.tree_search")
    assert {"vulcan.tolerance", "vulcan.sentinels", "vulcan.kernels.constraints"} <= set(kernels)
    assert "vulcan.solvers.tree.local" not in kernels


def test_what_is_not_there_has_no_sources() -> None:
    clear()
    assert compilation.find_sources("nowhere.to_be_found") == {}
    assert "vulcan.no_such_module" not in compilation.find_sources("vulcan.no_such_module")
