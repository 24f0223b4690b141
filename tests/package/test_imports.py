"""What is imported where, and what is not. Who may import whom is for import-linter to say."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers.sources import LIBRARY, list_imports


def find_importers(*packages: str) -> set[str]:
    """Return the modules of the library that import one of some packages."""
    return {
        module
        for module, path in LIBRARY.items()
        if any(name.split(".")[0] in packages for name in list_imports(path))
    }


def test_only_kernels_and_compiled_models_import_numba() -> None:
    importers = find_importers("numba", "llvmlite")
    assert importers
    for module in importers:
        assert module.startswith("vulcan.kernels") or module.endswith(".compiled"), module


def test_nothing_imports_what_is_not_installed_with_the_library() -> None:
    assert find_importers("reproduction", "tests", "benchmarks") == set()


def test_storm_is_imported_in_one_place_and_only_when_asked_for() -> None:
    assert find_importers("stormpy") == {"vulcan.certificates.storm"}
    code = (
        "import sys, vulcan, vulcan.formats.prism, vulcan.certificates.verification; "
        "print('stormpy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_importing_vulcan_imports_no_compiler() -> None:
    code = (
        "import sys, vulcan; print({'numba', 'scipy', 'highspy', 'matplotlib'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
