"""The pages say what is true of the code, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import vulcan
from vulcan import domains, formats, plotting, testing

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "vulcan"
PAGES = ("docs/architecture.md", "docs/theory/proofs.md", "CONTRIBUTING.md")


def list_layers() -> list[set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    lines = [re.split("[|:]", line) for line in layers]
    return [{room.strip().removeprefix("vulcan.") for room in line} for line in lines]


def test_the_rooms_of_the_page_are_those_that_are_checked() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    (chain,) = re.findall(r"^    (cli > .*?)\n\n", page, re.MULTILINE | re.DOTALL)
    assert [set(re.findall(r"\w+", rooms)) for rooms in chain.split(">")] == list_layers()


def test_every_room_is_checked_and_says_what_it_may_import() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    # `__main__` is the way into the command line.
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert rooms | modules == set().union(*list_layers())
    for room in rooms:
        head = " ".join((SOURCE / room / "__init__.py").read_text().split('"""')[1].split())
        assert "May import: " in head, room


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    names = set(re.findall(r"`([\w/]+\.pyi?)`", text))
    assert names
    known = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("[a-z]*/**/*.py*")]
    for name in names:
        assert any(path == name or path.endswith(f"/{name}") for path in known), name


def test_the_page_on_theory_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "theory" / "proofs.md").read_text()
    rows = re.findall(r"`(tests/[\w/]+\.py)`: ([^;|]*)", text)
    assert sum(len(re.findall(r"`test_\w+`", names)) for _, names in rows) > 20
    for path, names in rows:
        for name in re.findall(r"`(test_\w+)`", names):
            assert f"def {name}(" in (ROOT / path).read_text(), f"{name} is not in {path}"


def test_the_tables_of_solvers_are_what_solvers_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    import guide_table

    for path in guide_table.PAGES:
        page = path.read_text()
        assert "| `Vulcan" in page
        assert guide_table.write_table(page) == page, "run python tools/guide_table.py"


CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=CLEAN, check=False)


def check(root: Path) -> tuple[int, list[str]]:
    """Return the exit code of the checker, and its lines."""
    found = run(sys.executable, ROOT / "tools" / "check_links.py", root)
    assert not found.stderr
    return found.returncode, found.stdout.splitlines()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows which files are ours")
def test_links_of_this_project_lead_somewhere() -> None:
    assert check(ROOT)[1] == ["every link leads somewhere"]


MODULES = (vulcan, formats, plotting, domains, testing)
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
    public = {name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)}
    public.discard("__version__")
    assert list_documented()[module.__name__] == public


def test_pages_that_sources_name_exist() -> None:
    folders = ("src", "tests", "tools", "benchmarks", "examples", "reproduction")
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            if path.name == "test_pages.py":  # its pages are made up
                continue
            for name in re.findall(r"docs/[\w/]+\.md", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"
