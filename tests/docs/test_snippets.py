"""Snippets in the pages run as they are printed.

Those of a page run in its order and share one namespace, in an empty directory: `python` and
`{code-cell} python`, which the site executes as well and shows with its output. Commands in `sh`
run in a directory that has the examples, with less time and on smaller models. Around them, a page
may have comments that readers don't see:

- `<!-- setup`, Python, and `-->` on a line of its own: runs as well;
- `<!-- excerpt of FILE -->` before a snippet: it does not run, but must be found in that file, from
  the root of the project; comments may differ, and `...` stands for what is left out.

Tracebacks have the lines of the page.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from vulcan.cli import main

ROOT = Path(__file__).parents[2]
SNIPPET = re.compile(
    r"(?:<!-- excerpt of (?P<file>\S+) -->\s*)?"
    r"^(?P<indent>[ \t]*)```(?:python|\{code-cell\} python)\n(?::.*\n)*\n?(?P<code>.*?)"
    r"^(?P=indent)```$|^[ \t]*<!-- setup\n(?P<setup>.*?)^[ \t]*-->$",
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


COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {r"storm|\.(prism|jani|pm|nm)\b": ("stormpy",), "rddl": ("vulcan_rddl",)}

SMALLER = {  # what is added to a command, or put in place of what it says
    "drone.py": {"size": 7, "minutes": 6},
    "exploration": {"horizon": 3},
    "mission.toml": {"horizon": 3},
}


def find_commands(page: Path) -> list[str]:
    """Return the commands of a page, those that go on in the next line as one."""
    blocks = "".join(COMMANDS.findall(page.read_text(encoding="utf-8")))
    return [line for line in blocks.replace("\\\n", " ").splitlines() if line.strip()]


def make_small(command: str) -> list[str]:
    """Return the words of a command, with less time and a smaller model."""
    command = re.sub(r"--time-limit \d+", "--time-limit 1", command)
    words = shlex.split(command, comments=True)
    for mark, sizes in SMALLER.items():
        if mark in command:
            for name, value in sizes.items():
                words = [re.sub(rf"^{name}=.*", f"{name}={value}", word) for word in words]
                words += [] if f"{name}={value}" in words else ["--set", f"{name}={value}"]
    return words


EVERY = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in EVERY if [*find_snippets(page)]]
WITH_COMMANDS = [page for page in EVERY if find_commands(page)]


def name_page(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_every_snippet_is_found() -> None:
    for page in EVERY:
        text = page.read_text(encoding="utf-8")
        printed = len(re.findall(r"(?m)^[ \t]*```(?:python|\{code-cell\})", text))
        assert len([*find_snippets(page)]) == printed + text.count("<!-- setup"), page
    assert {"compiled.md", "solve.md", "README.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_page)
def test_commands_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in find_commands(page):
        needed = [
            name for mark, names in NEEDS.items() if re.search(mark, command) for name in names
        ]
        for name in needed:
            pytest.importorskip(name)
        words = make_small(command)
        if words[0] == "python":
            subprocess.run([sys.executable, *words[1:]], check=True)
            continue
        assert words[0] == "vulcan", command
        with pytest.raises(SystemExit) as ending:
            main(words[1:])
        assert ending.value.code == 0, f"{command}\n{capsys.readouterr()}"


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    namespace = {"__name__": page.stem}
    for snippet in find_snippets(page):
        if snippet.file is None:
            lines = "\n" * (snippet.line - 1)  # so that numbers are those of the page
            code = compile(lines + snippet.code, page, "exec", dont_inherit=True)
            exec(code, namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_excerpts_are_in_their_files(page: Path) -> None:
    for snippet in find_snippets(page):
        if snippet.file is not None:
            source = "\n".join(strip_comments((ROOT / snippet.file).read_text(encoding="utf-8")))
            for part in re.split(r"^\s*\.\.\.\n?", snippet.code, flags=re.MULTILINE):
                wanted = "\n".join(strip_comments(part))
                assert wanted in source, f"{page.name}:{snippet.line} is not in {snippet.file}"
