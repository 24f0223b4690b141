"""When, from which commit and with which versions records were made."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import vulcan
from reproduction.part import Part, Record, Table

__all__ = ["describe_making", "tabulate_making"]

LIBRARIES: Final = ("numpy", "numba", "scipy", "highspy")
"""Whose versions may change what a search finds, or how long it takes."""

UNKNOWN: Final = "not recorded"


def describe_making() -> dict[str, str]:
    """Return date, commit and versions, as a record keeps them."""
    found = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": _find_commit()}
    found |= {"vulcan": vulcan.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def tabulate_making(parts: Iterable[tuple[Part, Sequence[Record]]], quick: bool = False) -> Table:
    """Return when, from what and with what the records of each part were made."""
    rows: list[list[str | float | None]] = []
    for part, records in parts:
        makings = [record.made for record in records]
        versions = [
            f"{name} {number}"
            for name in ("vulcan", "python", *LIBRARIES)
            if (number := _join([one for one in makings if name in one], name)) != UNKNOWN
        ]
        hours = sum(record.seconds for record in records) / 3600
        made = [_join(makings, name) for name in ("date", "commit")]
        total = len(part.tasks(quick))
        done = f"{len(records):,}" + f" of {total:,}" * (len(records) < total)
        rows.append([part.title, done, f"{hours:.2f}", *made, ", ".join(versions)])
    caption = "When, from which commit and with which versions the records were made"
    header = ["part", "tasks", "hours", "date", "commit", "versions"]
    return Table("making", caption, header, rows, brief=True)


def _join(makings: Sequence[Mapping[str, str]], name: str) -> str:
    """Return all values that there are."""
    return ", ".join(sorted({making.get(name, UNKNOWN) for making in makings})) or UNKNOWN


def _find_commit() -> str:
    """Return the commit of the clone, with a plus if files were changed since."""
    folder = Path(__file__).parent

    def ask(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        return done.stdout.strip()

    try:
        changed = ask("status", "--porcelain", "--untracked-files=no", "--", "../src", ".")
        return ask("rev-parse", "--short=10", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
