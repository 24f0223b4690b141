"""Numbers as text, and tables of them: aligned columns, and a remark at the end of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vulcan.tolerance import TOLERANCE

__all__ = [
    "MISSING",
    "TextTable",
    "show_count",
    "show_gap",
    "show_percent",
    "show_probability",
    "show_reward",
    "show_seconds",
]

MISSING = "–"


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

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

    def align(self) -> list[tuple[str, str]]:
        """Return each line, the header first, as its aligned cells and its remark."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header) - 1)]
        return [
            (
                "  ".join(
                    cell.ljust(width) if k < self.left else cell.rjust(width)
                    for k, (cell, width) in enumerate(zip(line, widths, strict=False))
                ),
                line[-1],
            )
            for line in lines
        ]

    def __str__(self) -> str:
        return "\n".join(f"{cells}  {remark}".rstrip() for cells, remark in self.align())


def show_reward(reward: float | None) -> str:
    """Return a reward as people read it; a dash if there is none."""
    return MISSING if reward is None or math.isinf(reward) else f"{reward:.6f}"


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
    from vulcan.result import EXACT_GAP

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
