"""What people see: verdicts, rows, tables, policy trees and messages; and files that are written.

Text is wrapped and coloured for a terminal, and neither when it goes to a file or another program.
Labels come from models and files that may hold anything, so control characters are escaped.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from vulcan.errors import ModelError, OptionError
from vulcan.runtime.files import find_target
from vulcan.runtime.formatting import clip, show_percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from vulcan.certificate.certify import Certificate
    from vulcan.policy.policy import AnyPolicy
    from vulcan.runtime.formatting import TextTable

DEPTH: Final = 3  # default number of levels of a policy that are shown

GOOD, BAD, UNSURE, QUIET = "green", "red", "yellow", "dim"


def open_console(*, stderr: bool = False) -> Console:
    """Return a console on standard output or standard error.

    It leaves a broken pipe to the application, instead of ending the process.
    """

    def raise_broken_pipe() -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.on_broken_pipe = raise_broken_pipe  # type: ignore[method-assign]
    if not console.is_terminal:
        console.width = 1_000_000  # nothing is wrapped
    return console


def printable(text: str) -> str:
    """Return a text without control characters; line breaks stay."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def name_model(model: Any) -> tuple[str, str]:
    """Return the row that names a model."""
    from vulcan.model.interface import describe_model

    return "model", clip(describe_model(model))


def describe_members(policy: AnyPolicy) -> list[tuple[str, str]]:
    """Return the row with the members of a randomised policy; none for a deterministic one."""
    count, weights = len(policy.members), ", ".join(map(show_percent, policy.weights))
    text = f"{count}, of which one is drawn at the start: {weights}"
    return [("members", clip(text))] if count > 1 else []


def show_answer(
    verdict: str,
    style: str,
    sentence: str,
    rows: Sequence[tuple[str, str]],
    styles: Mapping[str, str] | None = None,
) -> Console:
    """Show an answer: its verdict with a sentence, and its rows; return a console for the rest."""
    console = open_console()
    _show_beside(console, Text(f"{verdict}  ", style=f"bold {style}"), Text(printable(sentence)))
    console.print()
    show_rows(console, rows, styles)
    return console


def show_rows(
    console: Console, rows: Sequence[tuple[str, str]], styles: Mapping[str, str] | None = None
) -> None:
    """Show pairs of a name and a text, with a style for the text of some names."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        label = Text(f"  {name:<{width}}  ", style=QUIET)
        _show_beside(console, label, Text(printable(text), style=(styles or {}).get(name, "")))


def _show_beside(console: Console, label: Text, text: Text) -> None:
    """Show a text beside its label; further lines are indented."""
    for line in text.wrap(console, max(20, console.width - label.cell_len)):
        line.rstrip()
        console.print(Text.assemble(label, line), soft_wrap=True)
        label = Text(" " * label.cell_len)


def show_table(console: Console, table: TextTable, title: str = "") -> None:
    """Show a table; the remarks of its rows are below it if there is no room beside them."""
    if title:
        console.print(f"\n  {title}", style="bold")
    safe = replace(table, rows=[[printable(cell) for cell in row] for row in table.rows])
    remarks: list[tuple[str, str]] = []
    if 2 + max(map(cell_len, str(safe).splitlines())) > console.width:
        remarks = [(row[max(0, table.left - 1)], row[-1]) for row in safe.rows if row[-1]]
        safe = replace(safe, rows=[[*row[:-1], ""] for row in safe.rows])
    for k, line in enumerate(str(safe).splitlines()):
        console.print(f"  {line}", style="" if k else QUIET, soft_wrap=True)
    if remarks:
        console.print()
        show_rows(console, remarks)


def show_policy(console: Console, policy: AnyPolicy, depth: int | None) -> None:
    """Show the first levels of a policy; without a depth, a few of them."""
    levels = DEPTH if depth is None else depth
    if levels == 0:
        return
    console.print()
    for line in printable(policy.draw(levels, 60 if depth is None else 10_000)).splitlines():
        console.print(f"  {line}", soft_wrap=True)


def style_certificate(certificate: Certificate | None) -> dict[str, str]:
    """Return the styles of a certificate's rows: green, red, and yellow where it is open."""
    if certificate is None:
        return {}
    colours = {True: GOOD, False: BAD, None: UNSURE}
    return {
        "reward": "bold",
        "risk": f"bold {colours[certificate.risk_verdict]}",
        **{limited.quantity: colours[limited.decided] for limited in certificate.constraints},
        "complete": "" if certificate.complete or certificate.safe else BAD,
    }


def show_note(text: str) -> None:
    """Show a remark on standard error."""
    open_console(stderr=True).print(Text(printable(text)), style=UNSURE)


def show_error(error: BaseException | str) -> None:
    """Show an error on standard error, in one message."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    console = open_console(stderr=True)
    console.print(Text.assemble(("Error: ", f"bold {BAD}"), Text(printable(text))))
    # The cause was raised by the user's own code, where a traceback helps.
    if isinstance(error, ModelError | OptionError) and error.__cause__ is not None:
        console.print("VULCAN_DEBUG=1 shows where", style=QUIET)


def check_output(path: Path | None, *, figure: bool = False) -> None:
    """Refuse a file that can't be written, or a figure that can't be drawn, before the search."""
    if path is not None and figure:
        from vulcan.plotting import check_figure_file

        check_figure_file(path)
    if path is not None:
        find_target(path)


def write_and_show(
    write: Callable[[Path], None],
    path: Path | None,
    show: Callable[[], None],
    *,
    as_json: bool,
    obstacle: str | None = None,
) -> None:
    """Write a file, if one is wanted, and show the answer; a failure of one spares the other.

    With `as_json`, standard output is for a document only; an `obstacle` says why there is nothing
    to write.
    """
    try:
        if path is not None and obstacle is None:
            write(path)
    finally:
        show()
    tell_saved(path, as_json, obstacle)


def tell_saved(path: Path | None, as_json: bool = False, obstacle: str | None = None) -> None:
    """Report that a file was written, or why it was not."""
    if path is None:
        return
    if obstacle is not None:
        show_note(f"{path} was not written: {obstacle}")
    elif not as_json:
        console = open_console()
        console.print()
        show_rows(console, [("saved", f"{path}  {path.stat().st_size:,} bytes")])


def describe_lost(workers: int) -> tuple[str, str]:
    """Return how many workers were lost, as a row."""
    return ("workers", f"{workers:,} lost; others took over their work")
