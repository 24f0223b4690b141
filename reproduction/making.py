"""When, from which commit, on which machine and with which versions records were made."""

from __future__ import annotations

import os
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
    """Return date, commit, machine and versions, as a record keeps them."""
    found = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": _find_commit()}
    found |= {"processor": _find_processor(), "cores": str(os.cpu_count())}
    found |= {"vulcan": vulcan.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def tabulate_making(parts: Iterable[tuple[Part, Sequence[Record]]], quick: bool = False) -> Table:
    """Return when, from what and with what the records of each part were made.

    What is the same for all parts is in the caption.
    """
    rows: list[list[str | float | None]] = []
    for part, records in parts:
        makings = [record.made for record in records]
        versions = [
            f"{name} {number}"
            for name in ("vulcan", "python", *LIBRARIES)
            if (number := _join([one for one in makings if name in one], name)) != UNKNOWN
        ]
        hours = sum(record.seconds for record in records) / 3600
        machine = f"{_join(makings, 'processor')}, {_join(makings, 'cores')} cores"
        made = [*(_join(makings, name) for name in ("date", "commit")), machine]
        total = len(part.tasks(quick))
        done = f"{len(records):,}" + f" of {total:,}" * (len(records) < total)
        rows.append([part.title, done, round(hours, 3), *made, ", ".join(versions)])
    caption = "When, from which commit, on which machine and with which versions it was measured"
    header = ["part", "tasks", "core hours", "date", "commit", "machine", "versions"]
    for column in range(len(header) - 1, 2, -1):
        same = {row[column] for row in rows}
        if len(same) == 1 and UNKNOWN not in same:
            caption += f"; {header.pop(column)}: {same.pop()}"
            rows = [[*row[:column], *row[column + 1 :]] for row in rows]
    caption += f"; {sum(float(row[2] or 0) for row in rows):.2g} core hours in all"
    return Table("making", caption, header, rows, brief=True)


def _join(makings: Sequence[Mapping[str, str]], name: str) -> str:
    """Return all values that there are."""
    return ", ".join(sorted({making.get(name, UNKNOWN) for making in makings})) or UNKNOWN


def _find_processor() -> str:
    """Return the model of the processor; only its architecture where the system names no model."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine() or UNKNOWN


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
