"""Tables of decisions as text, HTML, CSV, Markdown, frames and files.

People get numbers as they read them, and of long texts and long tables what they can take in;
programs get all rows and all digits.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from vulcan.errors import OptionError
from vulcan.policies.table import PolicyTable
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import (
    MISSING,
    UNLIMITED,
    TextTable,
    show_percent,
    show_probability,
)
from vulcan.runtime.markup import build_card, build_page, build_table

__all__ = [
    "SUFFIXES",
    "build_text_table",
    "check_table_file",
    "describe_left_out",
    "make_frame",
    "save_table",
    "write_csv",
    "write_html",
    "write_markdown",
    "write_text",
]

SUFFIXES: Final = (".csv", ".md", ".html", ".parquet")

MOST_ROWS: Final = 60
"""Rows that are shown where nobody asked for all."""

MOST_CHARACTERS: Final = 60
"""Of a text that is shown."""

HIDDEN: Final = ("node",)
"""Columns that only programs need."""

WORDS: Final = ("step", "member", "state", "history", "action", "instead", "verdict")

FRAMES: Final = ("pandas", "polars")

SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "reach": show_percent,
    "fails": show_percent,
    "risk": show_probability,
    "risk_ahead": show_probability,
    "instead_risk": lambda change: f"{change:+.3g}",
    "instead_reward": lambda change: f"{change:+.3g}",
}


def build_text_table(
    table: PolicyTable, most: int | None = MOST_ROWS, width: int = MOST_CHARACTERS
) -> TextTable:
    """Return the first rows of a table for people.

    Parameters
    ----------
    table
        The table.
    most
        How many rows; None for all of them.
    width
        Characters of the longest text.
    """
    shown = table if most is None else table.head(most)
    seen = [name for name in shown.columns if _matters(shown, name)]
    words = [name for name in seen if name in WORDS]  # these come first, and say which row it is
    names = words + [name for name in seen if name not in WORDS]
    cells = [[_show(name, cell, width) for cell in shown[name]] for name in names]
    header = [name.replace("_", " ") for name in names]  # the last, without a name, has remarks
    return TextTable(
        [*header, ""], [[*row, ""] for row in zip(*cells, strict=True)], left=len(words)
    )


def describe_left_out(table: PolicyTable, most: int | None = MOST_ROWS) -> str:
    """Return how many rows are not shown, in a line; empty if all are."""
    if not len(table):
        return f"none of {table.whole:,} rows is like that" if table.whole else "nothing to decide"
    shown = len(table) if most is None else min(most, len(table))
    return f"… and {len(table) - shown:,} more rows of {len(table):,}" if shown < len(table) else ""


def write_text(table: PolicyTable) -> str:
    """Return the first rows of a table as text."""
    parts = [str(build_text_table(table)), describe_left_out(table), table.note]
    return "\n".join(filter(None, parts))


def write_html(table: PolicyTable, most: int | None = MOST_ROWS) -> str:
    """Return the first rows of a table as HTML; None for all of them."""
    text = build_text_table(table, most, 2 * MOST_CHARACTERS)
    body = build_table(text.header[:-1], [row[:-1] for row in text.rows], text.left)
    left_out = describe_left_out(table, most)
    more = ": where(…), top(…), to_frame()" if len(table) else ""
    note = f"<p>{left_out}{more}</p>" if left_out else ""
    note += f"<p>{escape(table.note)}</p>" if table.note else ""
    about = table.places.policy.about
    count = f"{len(table):,} of {table.whole:,} rows" if len(table) < table.whole else ""
    return build_card(about.model, body + note, remark=count or f"{len(table):,} rows")


def write_markdown(table: PolicyTable) -> str:
    """Return all rows of a table as Markdown."""
    text = build_text_table(table, None, UNLIMITED)
    align = ["---" if k < text.left else "---:" for k in range(len(text.header) - 1)]
    lines = [list(text.header[:-1]), align, *(row[:-1] for row in text.rows)]
    return "".join(f"| {' | '.join(map(_escape, line))} |\n" for line in lines)


def write_csv(table: PolicyTable) -> str:
    """Return all rows and columns of a table as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(zip(*(table[name].tolist() for name in table.columns), strict=True))
    return stream.getvalue()


def make_frame(table: PolicyTable) -> Any:
    """Return a frame of pandas, or else of polars."""
    for name in FRAMES:
        with suppress(ImportError):
            return import_module(name).DataFrame(table.to_dict())
    raise OptionError(
        "a frame needs pandas or polars, and neither is installed; to_dict and .csv need none"
    )


def check_table_file(path: str | os.PathLike[str], allowed: Sequence[str] | None = None) -> None:
    """Refuse a file whose suffix is none of those allowed: without any, those of tables."""
    suffixes = SUFFIXES if allowed is None else allowed
    if Path(path).suffix.lower() not in suffixes:
        raise OptionError(f"{os.fspath(path)}: the file must end in {' or '.join(suffixes)}")


def save_table(table: PolicyTable, path: str | os.PathLike[str]) -> None:
    """Write a table to a file; its suffix says how."""
    check_table_file(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        write_atomically(path, _write_parquet(make_frame(table)))
        return
    title = table.places.policy.about.model
    texts = {
        ".csv": lambda: write_csv(table),
        ".md": lambda: write_markdown(table),
        ".html": lambda: build_page(title, write_html(table, None)),
    }
    write_atomically(path, texts[suffix]().encode())


def _write_parquet(frame: Any) -> bytes:
    """Return a frame of pandas or polars as Parquet."""
    stream = io.BytesIO()
    write = getattr(frame, "to_parquet", None) or frame.write_parquet
    try:
        write(stream)
    except ImportError as error:  # pandas leaves it to other libraries
        raise OptionError(f"Parquet can't be written here: {error}") from error
    return stream.getvalue()


def _matters(table: PolicyTable, name: str) -> bool:
    """Whether people want to see a column."""
    if name in HIDDEN:
        return False
    return name != "decisions" or bool(np.any(table[name] > 1))


def _show(name: str, cell: Any, width: int) -> str:
    if isinstance(cell, str):
        if len(cell) <= width:
            return cell
        # Of a history the end says where one is; of anything else the beginning does.
        return f"…{cell[1 - width :]}" if name == "history" else f"{cell[: width - 1]}…"
    if isinstance(cell, float | np.floating):
        if np.isnan(cell):
            return MISSING
        return SHOWN[name](float(cell)) if name in SHOWN else f"{cell:.6f}"
    return f"{cell:,}"


def _escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
