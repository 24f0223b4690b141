"""The reference lists what is public, and every figure function has an example with its picture."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import vulcan
from vulcan import domains, formats, plotting, testing
from vulcan.domains.exploration import drawing

ROOT = Path(__file__).parents[2]
MODULES = (vulcan, formats, plotting, domains, drawing, testing)
PARTS = {"domains", "formats", "plotting", "testing"}
LISTED = re.compile(r"^\.\. currentmodule:: (\S+)|^   (?!:)(\w+)$", re.MULTILINE)


def list_documented() -> dict[str, set[str]]:
    """Return the names that the reference has of each module."""
    names: dict[str, set[str]] = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        module = ""
        for current, name in LISTED.findall(page.read_text(encoding="utf-8")):
            module = current or module
            if name:
                names.setdefault(module, set()).add(name)
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    public = set(module.__all__) - {"__version__"}
    if module is vulcan:
        public -= PARTS
    assert list_documented()[module.__name__] == public


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in (*plotting.__all__, *drawing.__all__)
        if name.startswith(("plot_", "animate_"))
    ),
)
def test_every_figure_has_an_example(name: str) -> None:
    page = (ROOT / "docs" / "howto" / "figures.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert any(f"{name}(" in cell for cell in cells)


def test_pages_that_sources_name_exist() -> None:
    folders = ("src", "tests", "tools", "benchmarks", "examples", "reproduction")
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            if path.name == "test_links.py":  # its pages are made up
                continue
            for name in re.findall(r"docs/[\w/]+\.md", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"
