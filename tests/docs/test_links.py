"""Links between files: the checker finds those that lead nowhere, and our pages have none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=CLEAN, check=False)


def check(root: Path) -> tuple[int, list[str]]:
    """Return the exit code of the checker, and its lines."""
    found = run(sys.executable, ROOT / "tools" / "check_links.py", root)
    assert not found.stderr
    return found.returncode, found.stdout.splitlines()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own, in which git ignores the directory `drafts`."""
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "drafts").mkdir()
    (root / ".gitignore").write_text("drafts/\n")
    (root / "drafts" / "plan.png").touch()
    (root / "docs" / "picture (1).png").touch()
    (root / "script.py").touch()
    (tmp_path / "outside.md").touch()
    assert run("git", "init", "--quiet", root).returncode == 0
    (root / "docs" / "guide.md").write_text(
        "# The guide: `solve_it`, *quickly* & well\n\n## Twice\n\n## Twice ##\n\n"
        "```python\n# Not a heading\n```\n<!--\n# Nor this\n-->\n\n### [A link](../script.py)\n"
    )
    return root


GOOD = """
# Start

[a page](docs/guide.md), [its parent][below], ![an image](<docs/picture (1).png>),
[coded](docs/picture%20(1).png "with a title"), <img width=50 src="docs/picture (1).png">
[a directory](docs), [a line](script.py#L10), [from the root](/docs/guide.md), [here](#start)
[one](docs/guide.md#twice) [two](docs/guide.md#twice-1) [linked](docs/guide.md#a-link)
[marks and spaces](docs/guide.md#the-guide-solve_it-quickly--well)
[the web](https://example.org/none.md), [mail](mailto:me@example.org), [any](//example.org/none)
`[in code](none.md)`, [`code`](script.py), ``a ` [tick](none.md)``

~~~
[in a block](none.md)
~~~

- a list

  ```
  [in an indented block](none.md)
  ```

<!-- [in a comment](none.md) -->

[below]: docs
"""


def test_good_links_pass(project: Path) -> None:
    (project / "README.md").write_text(GOOD)
    assert check(project) == (0, ["every link leads somewhere"])


@pytest.mark.parametrize(
    ("text", "target", "fault"),
    [
        ("[x](none.md)", "none.md", "does not exist in this project"),
        ("[x](docs/none.md#twice)", "docs/none.md#twice", "does not exist in this project"),
        ("![x](docs/none.png)", "docs/none.png", "does not exist in this project"),
        ("[![x](docs/none.png)](script.py)", "docs/none.png", "does not exist in this project"),
        ("<img src='none.gif' alt='x'>", "none.gif", "does not exist in this project"),
        ("[x]: none.md", "none.md", "does not exist in this project"),
        ("[x](../outside.md)", "../outside.md", "does not exist in this project"),
        ("![x](drafts/plan.png)", "drafts/plan.png", "is ignored by git"),
        ("[x](drafts)", "drafts", "is ignored by git"),
        ("[x](#nowhere)", "#nowhere", "has no such heading"),
        ("[x](docs/guide.md#thrice)", "docs/guide.md#thrice", "has no such heading"),
        ("[x](docs/guide.md#twice-2)", "docs/guide.md#twice-2", "has no such heading"),
        ("[x](docs/guide.md#not-a-heading)", "docs/guide.md#not-a-heading", "has no such heading"),
        (
            "[x](docs/guide.md#nor-this)",
            "docs/guide.md#nor-this",
            "has no such heading",
        ),
    ],
)
def test_a_bad_link_is_named_with_its_line(
    project: Path, text: str, target: str, fault: str
) -> None:
    (project / "README.md").write_text(f"{GOOD}\n{text}\n")
    line = GOOD.count("\n") + 2
    assert check(project) == (1, [f"README.md:{line}: {target}: {fault}"])


def test_all_bad_links_of_all_pages_are_named(project: Path) -> None:
    (project / "README.md").write_text("[a](one.md) [b](script.py) [c](two.md)\n")
    (project / "docs" / "page.md").write_text("\n[a](../none.md) [b](guide.md)\n")
    (project / "drafts" / "page.md").write_text("[a](none.md)\n")
    assert check(project) == (
        1,
        [
            "README.md:1: one.md: does not exist in this project",
            "README.md:1: two.md: does not exist in this project",
            "docs/page.md:2: ../none.md: does not exist in this project",
        ],
    )


def test_what_git_tracks_is_there_although_a_pattern_ignores_it(project: Path) -> None:
    (project / "README.md").write_text("![x](drafts/plan.png) [y](drafts)\n")
    assert run("git", "-C", project, "add", "--force", "drafts/plan.png").returncode == 0
    assert check(project)[0] == 0


def test_a_deleted_page_is_not_read(project: Path) -> None:
    (project / "README.md").write_text("[x](none.md)\n")
    assert run("git", "-C", project, "add", "README.md").returncode == 0
    (project / "README.md").unlink()
    assert check(project)[0] == 0


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows which files are ours")
def test_links_of_this_project_lead_somewhere() -> None:
    assert check(ROOT)[1] == ["every link leads somewhere"]
