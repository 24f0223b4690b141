"""Numbers as text, and tables with a remark at the end of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size

from vulcan.numerics import EXACT_GAP, TOLERANCE

MISSING: Final = "–"

NEAR_ZERO: Final = 1e-3
"""Rewards below this have few digits where six decimals are shown."""


@dataclass(frozen=True)
class TextTable:
    """A table of strings; the last column is for remarks, and has no name.

    This many columns, from the left, hold words and are aligned to the left.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 0

    def __str__(self) -> str:
        lines = []
        rows = [[" ".join(cell.split("\n")) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        for *cells, remark in rows:
            padded = [
                set_cell_size(cell, width) if k < self.left else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(cells, widths, strict=False))
            ]
            lines.append("  ".join([*padded, remark]).rstrip())
        return "\n".join(lines)


def show_reward(reward: float | None) -> str:
    """Return a reward as text; a dash if there is none."""
    return MISSING if reward is None or math.isinf(reward) else f"{reward:z.6f}"  # no -0


def show_probability(risk: float | None) -> str:
    """Return a probability as text.

    Small ones keep their digits, down to the tolerance: smaller ones are no different from 0 in any
    comparison with a bound.
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


def show_gap(
    gap: float | None, distance: float | None = None, upper_bound: float | None = None
) -> str:
    """Return a relative gap to the upper bound in percent.

    The distance in units of reward is added where the upper bound is near 0.
    """
    if gap is None:
        return MISSING
    if gap <= EXACT_GAP:
        return "0 %"
    near = distance is not None and upper_bound is not None and abs(upper_bound) < NEAR_ZERO
    share = f"{100 * gap:.2g} %" if gap < 0.99 else f"{100 * gap:.3g} %"  # 100, not 1e+02
    return f"{share} ({distance:.2g})" if near else share


def show_count(count: int | None) -> str:
    """Return a count: in full up to a million, then in millions."""
    if count is None:
        return MISSING
    return f"{count:,}" if count < 1_000_000 else f"{count / 1e6:,.1f} M"


def show_seconds(seconds: float | None) -> str:
    """Return a time to two digits."""
    if seconds is None:
        return MISSING
    return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:,.0f} s"
