"""Imports, names, security and audit."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reproduction
import vulcan


def _list_modules(package: str, folder: Path) -> dict[str, Path]:
    return {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(folder.rglob("*.py"))
        if path.name != "__main__.py"
    }


LIBRARY = _list_modules("vulcan", Path(vulcan.__file__).parent)
REPRODUCTION = _list_modules("reproduction", Path(reproduction.__file__).parent)


def list_imports(path: Path) -> set[str]:
    """Return what a module imports, wherever in its source it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


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


def test_storm_is_imported_in_one_place() -> None:
    assert find_importers("stormpy") == {"vulcan.certificate.verify"}


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("vulcan", {"numba", "scipy", "highspy", "matplotlib"}),
        ("vulcan.formats.prism, vulcan.certificate.verify", {"stormpy"}),
        ("vulcan.plotting", {"matplotlib"}),
    ],
)
def test_heavy_libraries_are_imported_only_when_needed(modules: str, unwanted: set[str]) -> None:
    code = f"import sys, {modules}; print({unwanted} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_public_names_are_sorted_and_exist() -> None:
    assert vulcan.__all__ == sorted(vulcan.__all__)
    assert {"domains", "formats", "plotting", "testing"} <= set(vulcan.__all__)
    for name in vulcan.__all__:
        assert getattr(vulcan, name).__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", vulcan.__all__)
def test_public_names_describe_their_parameters(name: str) -> None:
    thing = getattr(vulcan, name)
    if inspect.isfunction(thing):
        text = inspect.getdoc(thing)
        assert "Parameters\n" in text
        for parameter in inspect.signature(thing).parameters:
            assert re.search(rf"^(\w+, )*{parameter}\b", text, re.MULTILINE), parameter
        assert "Returns\n" in text


def test_no_module_is_hidden_by_a_name() -> None:
    for name in LIBRARY:
        importlib.import_module(name)
    for name in LIBRARY:
        parent, _, leaf = name.rpartition(".")
        if parent:
            found = getattr(importlib.import_module(parent), leaf)
            assert inspect.ismodule(found), f"{name} is hidden by {found!r}"


@pytest.mark.parametrize("module", [*LIBRARY, *REPRODUCTION])
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


PICKLERS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}

BETWEEN_PROCESSES = ("vulcan.parallel.", "vulcan.kernels.compilation")
"""Workers of a program, and compiled kernels in a directory that is the user's own."""


def find_calls(path: Path) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_nothing_that_reads_files_imports_a_pickler() -> None:
    for module, path in LIBRARY.items():
        found = {name.partition(".")[0] for name in list_imports(path)} & PICKLERS
        assert not found or module.startswith(BETWEEN_PROCESSES), (module, found)


def test_nothing_is_evaluated_and_arrays_are_never_objects() -> None:
    for module, path in LIBRARY.items():
        for call in find_calls(path):
            place = (module, call.lineno)
            if isinstance(call.func, ast.Name):
                assert call.func.id not in {"eval", "exec", "compile"}, place
            named = {word.arg: word.value for word in call.keywords}
            if "allow_pickle" in named:
                assert ast.unparse(named["allow_pickle"]) == "False", place
            if ast.unparse(call.func) in {"np.load", "numpy.load", "npy.read_array"}:
                assert "allow_pickle" in named, place


SOLVES = """
import os, sys

def refuse(event, arguments):
    if event.startswith("socket."):
        print(event, arguments, file=sys.stderr, flush=True)
        os._exit(99)

sys.addaudithook(refuse)
import vulcan
from vulcan.domains import Bandit

problem = vulcan.Problem(Bandit(4), "0.002*x")
for solver, samples in ((None, None), (vulcan.Vulcan(), 50)):
    result = vulcan.solve(problem, solver, samples=samples)
    result.policy.save(sys.argv[1])
    assert vulcan.certify(problem, vulcan.Policy.load(sys.argv[1])) == result.certificate
vulcan.simulate(vulcan.Policy.load(sys.argv[1]), episodes=100, seed=1)
"""


def test_no_connection_is_opened(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SOLVES, str(tmp_path / "plan.vulcan")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_the_hook_would_notice() -> None:
    code = re.sub(r"import vulcan\n.*", "import socket; socket.socket()", SOLVES, flags=re.DOTALL)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert found.returncode == 99
