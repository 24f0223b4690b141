"""The pages about the code say what is true of it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "vulcan"
PAGES = ("docs/architecture.md", "docs/theory/proofs.md", "CONTRIBUTING.md")


def list_layers() -> list[set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [{room.strip().removeprefix("vulcan.") for room in line.split("|")} for line in layers]


def test_the_rooms_of_the_page_are_those_that_are_checked() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    lines = re.findall(r"^\| \d+ \| (.*?) \|", page, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", line)) for line in lines] == list_layers()


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
    rows = re.findall(r"`(tests/[\w/]+\.py)`: (.*?)\|", text)
    assert sum(len(re.findall(r"`test_\w+`", names)) for _, names in rows) > 20
    for path, names in rows:
        for name in re.findall(r"`(test_\w+)`", names):
            assert f"def {name}(" in (ROOT / path).read_text(), f"{name} is not in {path}"


def test_the_walk_names_every_module_of_the_rooms_it_walks_through() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {name.rpartition("/")[2] for name in re.findall(r"`([\w/]+\.py)`", page)}
    below = set().union(*list_layers()[7:])  # from pages down
    for path in SOURCE.rglob("*.py"):
        room, *inside = path.relative_to(SOURCE).parts
        if room in below and inside and path.name != "__init__.py":
            assert path.name in named, f"{path.relative_to(SOURCE)} is not in the walk"


def test_the_table_of_solvers_is_what_solvers_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    import guide_table

    page = guide_table.PAGE.read_text()
    assert "| `Vulcan(" in page
    assert guide_table.write_table(page) == page, "run python tools/guide_table.py"
