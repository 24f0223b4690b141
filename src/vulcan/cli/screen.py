"""What people see: rows, policy trees, and messages.

Text is wrapped and coloured for a terminal, and neither when it goes to a file or another program.
Labels come from models and files that may hold anything, so characters that a terminal would act
on are written out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from vulcan.runtime.formatting import UNLIMITED

if TYPE_CHECKING:
    from vulcan.certificates.certificate import Certificate
    from vulcan.policies.matrix import ActionMatrix
    from vulcan.policies.randomised import AnyPolicy
    from vulcan.runtime.formatting import TextTable

__all__ = [
    "clip",
    "open_console",
    "printable",
    "show_error",
    "show_heading",
    "show_matrix",
    "show_note",
    "show_policy",
    "show_rows",
    "show_table",
    "show_title",
    "style_certificate",
]

MOST_ROOM: Final = 50
"""Columns in which any remark beside a row of a table is easy to read."""

MATRIX_WIDTH: Final = 100
"""Columns of a matrix in a file."""

DEPTH: Final = 3
LINES: Final = 60
MOST_LINES: Final = 10_000

GOOD, BAD, UNSURE, QUIET = "green", "red", "yellow", "dim"

TREE_STYLES: Final = (
    (r"^[│├└─ ]+(< )?[0-9.e-]+ %", QUIET),  # the branches, and how likely they are
    (r"^[^│├└…].*|(?<=→ )(?!end$).*", "cyan"),  # the decisions
    (r"→ end$|→| …$|^….*", QUIET),
    (r"not planned$", UNSURE),
)


BRANCHES: Final = str.maketrans({"├": "│", "└": " ", "─": " "})
"""Branches of a tree as they go on below a line."""


class _Console(Console):
    """A console that leaves a broken pipe to the application, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        """Pass on that the reader has left."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def open_console(*, stderr: bool = False) -> Console:
    """Return a console on standard output or standard error."""
    console = _Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNLIMITED
    return console


def printable(text: str) -> str:
    """Return a text without control characters; line breaks stay."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def clip(text: str, most: int = 160) -> str:
    """Return a text that is not too long for a person; for values there is `parameters.shorten`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_heading(console: Console, verdict: str, style: str, text: str) -> None:
    """Show the answer itself: a coloured verdict, and a sentence beside it."""
    label = Text(f"{verdict}  ", style=f"bold {style}")
    if 3 * label.cell_len > console.width:  # there is little room beside it
        console.print(Text(verdict, style=label.style))
        label = Text("  ")
    _show_beside(console, label, Text(printable(text)))


def show_title(console: Console, title: str, hidden: int = 0) -> None:
    """Show what a table is about, and how many rows it leaves out."""
    rest = f"  and {hidden:,} more" if hidden > 0 else ""
    console.print()
    console.print(Text.assemble((f"  {title}", "bold"), (rest, QUIET)))


def show_rows(
    console: Console, rows: Sequence[tuple[str, str]], styles: Mapping[str, str] | None = None
) -> None:
    """Show pairs of a name and a string, with a style for the text of some names."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        label = Text(f"  {name:<{width}}  ", style=QUIET)
        _show_beside(console, label, Text(printable(text), style=(styles or {}).get(name, "")))


def show_table(console: Console, table: TextTable, styles: Sequence[str]) -> None:
    """Show a table, with a style for the remark of each row.

    Remarks are beside their rows where there is room for them, and below the table where there is
    not. Where there is no room for the table itself, its rows are shown one below the other.
    """
    shown = replace(table, rows=[[printable(cell) for cell in row] for row in table.rows])
    width = console.measure(shown.build(remarks=False)).maximum
    if width + 2 > console.width:
        _show_one_by_one(console, shown, styles)
        return
    longest = max((len(row[-1]) for row in shown.rows), default=0)
    beside = console.width - width - 4 >= min(longest, MOST_ROOM)
    built = shown.build(remarks=beside, styles=styles)
    with console.capture() as capture:
        console.print(Padding(built, (0, 0, 0, 2), expand=False), crop=False)
    for line in capture.get().splitlines():
        console.out(line.rstrip(), highlight=False)  # rich fills the last column with spaces
    remarks = [(row[table.left - 1 if table.left else 0], row[-1]) for row in shown.rows if row[-1]]
    if remarks and not beside:
        console.print()
        show_rows(console, remarks)


def _show_one_by_one(console: Console, table: TextTable, styles: Sequence[str]) -> None:
    """Show each row of a table as pairs of a name and a cell, under its words."""
    words = max(1, table.left)
    for k, (row, style) in enumerate(zip(table.rows, styles, strict=True)):
        if k:
            console.print()
        heading = "  ".join(row[:words]) if table.left else f"{table.header[0]}  {row[0]}"
        _show_beside(console, Text("  "), Text(heading, style="bold"))
        cells = [("", row[-1])] if row[-1] else []
        cells = [*zip(table.header[words:-1], row[words:-1], strict=True), *cells]
        show_rows(console, [(f"  {name}", cell) for name, cell in cells], {"  ": style})


def _show_beside(console: Console, label: Text, text: Text, below: Text | None = None) -> None:
    """Show a text beside its label; its further lines are indented as far, or have `below`."""
    width = max(20, console.width - label.cell_len)
    for line in text.wrap(console, width):
        line.rstrip()
        console.print(Text.assemble(label, line), soft_wrap=True)
        label = Text(" " * label.cell_len) if below is None else below


def show_policy(console: Console, policy: AnyPolicy, depth: int | None) -> None:
    """Show the first levels of a policy; without a depth, as many as are easy to take in."""
    levels = DEPTH if depth is None else depth
    if levels == 0:
        return
    drawn = policy.draw(levels, LINES if depth is None else MOST_LINES)
    console.print()
    for line in printable(drawn).splitlines():
        text = Text(line)
        for pattern, style in TREE_STYLES:
            text.highlight_regex(pattern, style)
        # Where a line is too long, the branches go on beside the rest of it.
        branches = len(line) - len(line.lstrip("│├└─ "))
        below = line[:branches].translate(BRANCHES)
        label = Text.assemble("  ", text[:branches])
        _show_beside(console, label, text[branches:], Text(f"  {below}", style=QUIET))


def show_matrix(console: Console, matrix: ActionMatrix) -> None:
    """Show what is done in which state at which step."""
    width = console.width if console.is_terminal else MATRIX_WIDTH
    safe = replace(
        matrix,
        states=tuple(map(printable, matrix.states)),
        actions=tuple(map(printable, matrix.actions)),
        cells={
            (printable(state), step): replace(
                cell, actions={printable(name): share for name, share in cell.actions.items()}
            )
            for (state, step), cell in matrix.cells.items()
        },
    )
    with console.capture() as capture:
        console.print(Padding(safe.build(width - 2), (0, 0, 0, 2), expand=False), crop=False)
    for line in capture.get().splitlines():
        console.out(line.rstrip(), highlight=False)


def style_certificate(certificate: Certificate | None) -> dict[str, str]:
    """Return the styles of a certificate's rows: green, red, and yellow where it is open."""
    if certificate is None:
        return {}
    verdict = GOOD if certificate.passes else UNSURE if certificate.undecided else BAD
    return {
        "reward": "bold",
        "risk": f"bold {verdict}",
        "slack": verdict,
        "complete": "" if certificate.complete else BAD,
    }


def show_note(text: str) -> None:
    """Show a remark on standard error."""
    open_console(stderr=True).print(Text(printable(text)), style=UNSURE)


def show_error(error: BaseException | str) -> None:
    """Show what was wrong on standard error, in one message."""
    console = open_console(stderr=True)
    message = Text(printable(_describe(error)))
    console.print(Text.assemble(("Error: ", f"bold {BAD}"), message))
    if _lies_in_a_model(error):
        console.print("VULCAN_DEBUG=1 shows where", style=QUIET)


def _describe(error: BaseException | str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _lies_in_a_model(error: BaseException | str) -> bool:
    """Whether the cause was raised by a user's own code, where a traceback helps."""
    from vulcan.errors import ModelError, OptionError

    return isinstance(error, ModelError | OptionError) and error.__cause__ is not None
