"""Numbers as strings, and tables of them, with a remark at the end of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Final

from vulcan.tolerance import EXACT_GAP, TOLERANCE

__all__ = [
    "MISSING",
    "UNLIMITED",
    "TextTable",
    "show_count",
    "show_gap",
    "show_percent",
    "show_probability",
    "show_reward",
    "show_seconds",
]

if TYPE_CHECKING:
    from rich.table import Table

MISSING: Final = "–"

UNLIMITED: Final = 1_000_000
"""The width of what is not a terminal: nothing is wrapped."""


@dataclass(frozen=True)
class TextTable:
    """A table of strings.

    Attributes
    ----------
    header
        The names of the columns; the last column is for remarks, and has none.
    rows
        The cells, as many in each row as there are columns.
    left
        How many columns, from the left, hold words and are aligned to the left.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 0

    def build(self, *, remarks: bool = True, styles: Sequence[str] = ()) -> Table:
        """Return the table as rich draws it.

        Parameters
        ----------
        remarks
            Whether to have the column of remarks.
        styles
            The style of each remark.
        """
        from rich.table import Table
        from rich.text import Text

        built = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for k, name in enumerate(self.header[:-1]):
            built.add_column(name, justify="left" if k < self.left else "right", no_wrap=True)
        if remarks:
            built.add_column(overflow="fold")
        for k, row in enumerate(self.rows):
            cells = [Text(cell) for cell in row]
            cells[-1].stylize(styles[k] if styles else "")
            built.add_row(*(cells if remarks else cells[:-1]))
        return built

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=StringIO(), width=UNLIMITED, color_system=None)
        with console.capture() as capture:
            console.print(self.build())
        return "\n".join(line.rstrip() for line in capture.get().splitlines())


def show_reward(reward: float | None) -> str:
    """Return a reward as people read it; a dash if there is none."""
    return MISSING if reward is None or math.isinf(reward) else f"{reward:z.6f}"  # no -0


def show_probability(risk: float | None) -> str:
    """Return a probability as people read it.

    Small ones keep their digits, down to the tolerance: no comparison with a bound tells what is
    below it from 0, and the 70 zeros of a collision with something far away mean nothing.
    """
    if risk is None:
        return MISSING
    if 0 < risk < TOLERANCE:
        return f"< {TOLERANCE:.0e}"
    return f"{risk:.6f}" if risk == 0 or abs(risk) >= 1e-4 or math.isinf(risk) else f"{risk:.2e}"


def show_percent(probability: float) -> str:
    """Return a probability in percent, to two digits or more; see `show_probability`."""
    if 0 < probability < TOLERANCE:
        return f"< {100 * TOLERANCE:.0e} %"
    text = f"{100 * probability:.1f}" if probability >= 0.0095 else f"{100 * probability:.2g}"
    return f"{text} %"


def show_gap(gap: float | None) -> str:
    """Return how far a reward may be below the best, in percent."""
    if gap is None:
        return MISSING
    return "0 %" if gap <= EXACT_GAP else f"{100 * gap:.2g} %"


def show_count(count: int | None) -> str:
    """Return a number of things: whole up to a million, then in millions."""
    if count is None:
        return MISSING
    return f"{count:,}" if count < 1_000_000 else f"{count / 1e6:,.1f} M"


def show_seconds(seconds: float | None) -> str:
    """Return a time; two digits say how long it was."""
    if seconds is None:
        return MISSING
    return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:,.0f} s"
