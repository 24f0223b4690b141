"""Check that links between the project's own files lead somewhere.

Every Markdown file that git tracks, or would track, is read. What a link or image leads to must
exist and must not be ignored by git, or else no clone would have it. An anchor into a Markdown file
must be a heading (`# ...`), as GitHub names them. Links to the web are not followed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

# Code and comments, in which nothing is a heading, and code in a line, in which nothing is a link.
BLOCK = r"(?ms)^[ \t>]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)|<!--.*?-->"
CODE = r"(`+)[^`](?:(?!\n\n).)*?(?<!`)\2(?!`)"
LINK = (
    r"(?m)\]\(\s*(?:<([^>\n]*)>|([^()\s]*(?:\([^()\s]*\)[^()\s]*)*))"  # [...](target)
    r"|^ {0,3}\[[^\]\n]+\]:[ \t]*(\S+)"  # [...]: target
    r"""|<(?:img|a)\b[^>]*?\b(?:src|href)\s*=\s*["']([^"']*)"""
)
HEADING = r"(?m)^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$"


def run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a directory."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def read_page(page: Path, silent: str) -> str:
    """Return a page without what matches a pattern; lines keep their numbers."""
    return re.sub(silent, lambda found: "\n" * found[0].count("\n"), page.read_text("utf-8"))


def find_anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a Markdown file."""
    anchors: set[str] = set()
    for heading in re.findall(HEADING, read_page(page, BLOCK)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # those of a link, without target
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        names = (f"{slug}-{k}" if k else slug for k in range(len(anchors) + 1))
        anchors.add(next(name for name in names if name not in anchors))
    return anchors


def find_fault(root: Path, page: Path, target: str) -> str | None:
    """Say what is wrong with the target of a link in a page; None if nothing is."""
    path, _, anchor = unquote(target).partition("#")
    start = root if path.startswith("/") else page.parent
    place = (start / path.lstrip("/")).resolve() if path else page
    if not place.is_relative_to(root) or not place.exists():
        return "does not exist in this project"
    if run_git(root, "check-ignore", "--quiet", "--", str(place)).returncode == 0:
        return "is ignored by git"
    missing = anchor and place.suffix == ".md" and anchor not in find_anchors(place)
    return "has no such heading" if missing else None


def find_faults(root: Path) -> Iterator[str]:
    """Yield a line for each link that leads nowhere."""
    listed = run_git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md")
    listed.check_returncode()
    pages = {root / name for name in listed.stdout.split("\0") if name}
    for page in sorted(filter(Path.exists, pages)):  # some may be deleted, but not yet for git
        text = read_page(page, f"{BLOCK}|{CODE}")
        for link in re.finditer(LINK, text):
            target, line = next(filter(None, link.groups()), ""), text[: link.start()].count("\n")
            if not re.match(r"[\w+.-]+:|//", target) and (fault := find_fault(root, page, target)):
                yield f"{page.relative_to(root)}:{line + 1}: {target}: {fault}"


if __name__ == "__main__":
    faults = list(find_faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
    print("\n".join(faults) or "every link leads somewhere")
    sys.exit(1 if faults else 0)
