"""From nothing to a report, or from what is there already."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from vulcan.errors import OptionError
from vulcan.reproduce.part import Part
from vulcan.reproduce.parts import PARTS
from vulcan.reproduce.report import write_report
from vulcan.reproduce.runner import Advance, run_missing
from vulcan.reproduce.store import Store

__all__ = ["reproduce"]


def reproduce(
    output: str | os.PathLike[str],
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    workers: int | None = None,
    redraw: bool = False,
    on_advance: Callable[[Advance], None] | None = None,
) -> Path:
    """Run the paper's experiments and write a report of them.

    Parameters
    ----------
    output
        Folder of the report and its raw data. Tasks that have a record there are not run again.
    quick
        Fewer and smaller runs: minutes instead of hours.
    only
        Names of parts to run; all by default. The report shows every part that has data.
    workers
        How many processes; as many as there are cores by default.
    redraw
        Run nothing, and make the report of what is there.
    on_advance
        Called whenever a task ends.

    Returns
    -------
    Path
        The page. After Ctrl-C it shows what was run by then.

    Raises
    ------
    OptionError
        If there is no part of a name, or the folder can't be used.
    """
    folder = Path(output)
    chosen = [_find(name) for name in only] or list(PARTS)
    store = Store(folder / ("data-quick" if quick else "data"))
    if not redraw:
        run_missing(chosen, store, quick, workers, on_advance or (lambda _: None))
    sections = {}
    for part in PARTS:
        records = store.find(part, part.tasks(quick))
        if records:
            sections[part.name] = part.show(records, quick)
    return write_report(folder, PARTS, sections, quick)


def _find(name: str) -> Part:
    names = [part.name for part in PARTS]
    if name not in names:
        close = get_close_matches(name, names, n=1)
        guess = f"; did you mean {close[0]!r}?" if close else ""
        raise OptionError(f"there is no part {name!r}{guess}; there are {', '.join(names)}")
    return PARTS[names.index(name)]
