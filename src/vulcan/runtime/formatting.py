"""Numbers and tables as text, and cards and tables in HTML for notebooks and files.

HTML is shown in light and dark pages of others, so text and lines have the colour of the page
around them (`currentColor`). Nothing is loaded and no script runs. Figures are in
`vulcan.plotting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from rich.cells import cell_len, set_cell_size

from vulcan.numerics import EXACT_GAP, TOLERANCE

MISSING: Final = "–"

SMALL: Final = 1e-4  # below this, six decimals would show too few digits of a number
NEAR_ZERO: Final = 1e-3  # rewards below this have few digits where six decimals are shown


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

    @property
    def html(self) -> str:
        """The table as HTML for a card."""
        return build_table(self.header, self.rows, self.left)


def clip(text: str, most: int = 160) -> str:
    """Return a text that is not too long for a person; for values there is `parameters.shorten`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_reward(reward: float | None) -> str:
    """Return a reward as text, one near 0 to three digits; a dash if there is none."""
    if reward is None or math.isinf(reward):
        return MISSING
    return f"{reward:.2e}" if 0 < abs(reward) < SMALL else f"{reward:z.6f}"  # no -0


def show_probability(risk: float | None) -> str:
    """Return a probability as text.

    Those below the tolerance are no different from 0 in any comparison with a bound.
    """
    if risk is None:
        return MISSING
    if 0 < risk < TOLERANCE:
        return f"< {TOLERANCE:.0e}"
    return f"{risk:.2e}" if 0 < abs(risk) < SMALL else f"{risk:.6f}"


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


GOOD, BAD = "#259c6f", "#d9544d"

STYLE: Final = """
.vulcan { font: 13px/1.45 system-ui, sans-serif; max-width: 78em; overflow-x: auto }
.vulcan h4 { font-size: 14px; margin: 0 0 .4em; font-weight: 600 }
.vulcan h4 span { font-weight: 400; margin-left: .6em }
.vulcan table { border-collapse: collapse; margin: 0; border: 0; font-size: 13px }
.vulcan tr { background: none !important }
.vulcan th, .vulcan td { border: 0; padding: .15em 1.2em .15em 0; text-align: right;
  vertical-align: top; font-variant-numeric: tabular-nums; max-width: none; white-space: nowrap }
.vulcan .word { text-align: left !important; max-width: 36em; white-space: pre-line }
.vulcan th { font-weight: 400; opacity: .65; white-space: nowrap }
.vulcan thead th { border-bottom: 1px solid color-mix(in srgb, currentColor 35%, transparent) }
.vulcan tbody tr + tr td { border-top: 1px solid color-mix(in srgb, currentColor 10%, transparent) }
.vulcan pre { margin: .6em 0 0; font-size: 12px; line-height: 1.4; overflow-x: auto;
  background: none; color: inherit; padding: 0 }
.vulcan p { margin: .4em 0 0; opacity: .65 }
""".strip()


def build_card(heading: str, body: str, remark: str = "", colour: str = "") -> str:
    """Return HTML below a heading, which is coloured and has a remark beside it."""
    style = f' style="color: {colour}"' if colour else ""
    beside = f"<span>{escape(remark)}</span>" if remark else ""
    head = f"<h4><b{style}>{escape(heading)}</b>{beside}</h4>"
    return f'<div class="vulcan"><style>{STYLE}</style>{head}{body}</div>'


def build_table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0) -> str:
    """Return a table of texts, with a header unless that is empty.

    This many columns from the left hold words, and so does a last column without a name.
    """

    def write(tag: str, cells: Sequence[str]) -> str:
        written = ""
        for k, cell in enumerate(cells):
            word = not header or k < left or (k == len(header) - 1 and not header[k])
            kind = ' class="word"' if word else ""
            written += f"<{tag}{kind}>{escape(cell)}</{tag}>"
        return f"<tr>{written}</tr>"

    head = f"<thead>{write('th', header)}</thead>" if header else ""
    body = "".join(write("td", row) for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"
