"""The package as a whole: its names, the direction of its imports, its examples."""

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

import vulcan

SOURCE = Path(vulcan.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(("vulcan", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)


def imports(module: str) -> set[str]:
    """Return what a module imports, wherever in its text it does."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_public_names_are_sorted_and_exist() -> None:
    assert vulcan.__all__ == sorted(vulcan.__all__, key=lambda name: (not name.isupper(), name))
    for name in vulcan.__all__:
        assert getattr(vulcan, name).__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", vulcan.__all__)
def test_public_names_describe_their_parameters(name: str) -> None:
    thing = getattr(vulcan, name)
    if inspect.isfunction(thing):
        parameters = list(inspect.signature(thing).parameters)
        assert "Parameters\n" in inspect.getdoc(thing)
        for parameter in parameters:
            assert re.search(rf"^{parameter}\b", inspect.getdoc(thing), re.MULTILINE), parameter
        assert "Returns\n" in inspect.getdoc(thing)


def test_only_kernels_and_compiled_models_import_numba() -> None:
    for module in MODULES:
        uses = any(name.split(".")[0] in ("numba", "llvmlite") for name in imports(module))
        allowed = module.startswith("vulcan.kernels") or module.endswith(".compiled")
        assert not uses or allowed, module


# What each part of the package must never import.
LOWER = ["model", "reader", "risk", "bound_table", "expression", "policy", "certificate", "problem"]
LOWER += ["randomised", "margin"]
FORBIDDEN = {
    **{f"vulcan.{name}": ("solvers", "kernels", "solve", "cli", "graph") for name in LOWER},
    "vulcan.graph": ("solvers", "kernels", "solve", "cli"),
    "vulcan.rows": ("solvers", "kernels", "solve", "cli"),
    "vulcan.compiled_graph": ("solvers", "kernels", "solve", "cli"),
    "vulcan.layers": ("solvers", "kernels", "solve", "cli"),
    "vulcan.kernels": ("solvers", "solve", "cli", "graph", "policy"),
    "vulcan.solvers": ("solve", "cli", "interop", "frontier", "compare", "plotting"),
    "vulcan.solve": ("cli", "frontier", "compare", "plotting", "reproduce"),
    "vulcan.frontier": ("cli", "plotting"),
    "vulcan.compare": ("cli", "plotting"),
    "vulcan.plotting": ("cli", "reproduce"),
    "vulcan.reproduce": ("cli",),
    "vulcan.testing": ("cli", "solve", "solvers"),
}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_imports_point_one_way(part: str) -> None:
    members = [m for m in MODULES if m == part or m.startswith(f"{part}.")]
    assert members
    for module in members:
        for name in imports(module):
            for forbidden in FORBIDDEN[part]:
                path = f"vulcan.{forbidden}"
                assert f"{name}.".startswith(f"{path}.") is False, f"{module}: {name}"


def test_importing_vulcan_imports_no_compiler() -> None:
    code = (
        "import sys, vulcan; print({'numba', 'scipy', 'highspy', 'matplotlib'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_ten_lines_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert "4.200000" in capsys.readouterr().out
    exec(compile(code.replace("0.003", "0.004"), "README.md", "exec"), {})
    assert "5.880000" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path) -> None:
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "acceptable" in run.stdout
