"""Snippets in the pages run as they are printed.

Those of a page run in its order and share one namespace, in an empty directory. Around them, a page
may have comments that readers don't see:

- `<!-- setup`, Python, and `-->` on a line of its own: runs as well;
- `<!-- excerpt of FILE -->` before a snippet: it does not run, but must be found in that file, from
  the root of the project; comments may differ, and `...` stands for what is left out.

Tracebacks have the lines of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SNIPPET = re.compile(
    r"(?:<!-- excerpt of (?P<file>\S+) -->\s*)?^(?P<indent>[ \t]*)```python\n"
    r"(?P<code>.*?)^(?P=indent)```$|^[ \t]*<!-- setup\n(?P<setup>.*?)^[ \t]*-->$",
    re.MULTILINE | re.DOTALL,
)


class Snippet(NamedTuple):
    """A piece of Python in a page; `file` is where it is an excerpt of, if it is one."""

    line: int
    code: str
    file: str | None


def find_snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for found in SNIPPET.finditer(text):
        part = "setup" if found["code"] is None else "code"
        line = text.count("\n", 0, found.start(part)) + 1
        yield Snippet(line, dedent(found[part]), found["file"])


def strip_comments(code: str) -> list[str]:
    return [re.sub(r"\s*# .*", "", line).rstrip() for line in code.splitlines()]


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if [*find_snippets(page)]]


def test_every_snippet_is_found() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        printed = page.read_text(encoding="utf-8").count("```python")
        found = list(find_snippets(page))
        setups = page.read_text(encoding="utf-8").count("<!-- setup")
        assert len(found) == printed + setups, page
    assert {"compiled.md", "guide.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    namespace = {"__name__": page.stem}
    for snippet in find_snippets(page):
        if snippet.file is None:
            lines = "\n" * (snippet.line - 1)  # so that numbers are those of the page
            exec(compile(lines + snippet.code, page, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_excerpts_are_in_their_files(page: Path) -> None:
    for snippet in find_snippets(page):
        if snippet.file is not None:
            source = "\n".join(strip_comments((ROOT / snippet.file).read_text(encoding="utf-8")))
            for part in re.split(r"^\s*\.\.\.\n?", snippet.code, flags=re.MULTILINE):
                wanted = "\n".join(strip_comments(part))
                assert wanted in source, f"{page.name}:{snippet.line} is not in {snippet.file}"
