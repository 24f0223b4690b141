"""From nothing to a report, or from what is there already."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reproduction.part import Part, Verdict
from reproduction.parts import PARTS
from reproduction.report import Shown, write_report
from reproduction.runner import Advance, choose_runners, run_missing
from reproduction.store import Store
from vulcan.errors import OptionError, VulcanError
from vulcan.parallel.executors import Executor
from vulcan.parameters import suggest

__all__ = ["Report", "reproduce"]


MOST_FAILURES: Final = 5
"""This many are told."""


@dataclass(frozen=True)
class Report:
    """What a reproduction made.

    Attributes
    ----------
    page
        The page.
    done, total
        How many tasks have been run of the parts that were asked for, and how many they have.
    """

    page: Path
    done: int
    total: int


def reproduce(
    output: str | os.PathLike[str],
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    parallel: int | str | Executor | None = None,
    redraw: bool = False,
    on_advance: Callable[[Advance], None] | None = None,
) -> Report:
    """Run the paper's experiments and write a report of them.

    Parameters
    ----------
    output
        Folder of the report and its raw data. Tasks that have a record there are not run again.
    quick
        Fewer and smaller runs: minutes instead of hours.
    only
        Names of parts to run; all by default. The report shows every part that has data.
    parallel
        How many tasks run at once, one per core by default, or where: see `vulcan.solve`.
    redraw
        Run nothing, and make the report of what is there.
    on_advance
        Called whenever a task ends.

    Returns
    -------
    Report
        Where the page is. After Ctrl-C it shows what was run by then.

    Raises
    ------
    OptionError
        If there is no part of a name, or the folder can't be used.
    VulcanError
        If tasks failed; the page shows the others.
    """
    folder = Path(output)
    chosen = [_find(name) for name in only] or list(PARTS)
    names = {True: "data-quick", False: "data"}
    if (folder / names[not quick]).exists():
        kind = "full" if quick else "quick"
        raise OptionError(f"{folder} has a {kind} reproduction in it; choose another folder")
    if redraw and not (folder / names[quick]).exists():
        raise OptionError(f"{folder} has no data of such a reproduction to draw")
    store = Store(folder / names[quick])
    failures = []
    if not redraw:
        runners = choose_runners(parallel)
        failures = run_missing(chosen, store, quick, runners, on_advance or (lambda _: None))
    page = write_report(folder, [shown for p in PARTS if (shown := _show(p, store, quick))], quick)
    if failures:
        some = "\n".join(failures[:MOST_FAILURES])
        raise VulcanError(f"{len(failures)} tasks failed, others are in {page}:\n{some}")
    total = sum(len(part.tasks(quick)) for part in chosen)
    missing = sum(len(store.missing(part, part.tasks(quick))) for part in chosen)
    return Report(page, total - missing, total)


def _show(part: Part, store: Store, quick: bool) -> Shown | None:
    """Return what the page shows of a part; nothing if there is no data."""
    tasks = part.tasks(quick)
    records = store.find(part, tasks)
    if not records:
        return None
    section = part.show(records, quick)
    if len(records) < len(tasks):  # the rest may change everything
        claims = [replace(claim, verdict=Verdict.OPEN) for claim in section.claims]
        section = replace(section, claims=claims)
    return Shown(part, section, len(records), len(tasks), records)


def _find(name: str) -> Part:
    names = [part.name for part in PARTS]
    if name not in names:
        hint = suggest(name, names)
        raise OptionError(f"there is no part {name!r}{hint}; there are {', '.join(names)}")
    return PARTS[names.index(name)]
