"""HTML for notebooks and files: cards and tables.

It is shown in light and dark pages of others, so text and lines have the colour of the page around
them (`currentColor`). Nothing is loaded and no script runs. Figures are in `vulcan.plotting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

GOOD, BAD = "#259c6f", "#d9544d"

STYLE: Final = """
.vulcan { font: 13px/1.45 system-ui, sans-serif; max-width: 78em; overflow-x: auto }
.vulcan h4 { font-size: 14px; margin: 0 0 .4em; font-weight: 600 }
.vulcan h4 span { font-weight: 400; margin-left: .6em }
.vulcan .beside { display: flex; flex-wrap: wrap; gap: .6em 2em; align-items: flex-start }
.vulcan .beside > * { flex: 0 1 auto; min-width: 0; max-width: 100% }
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
.vulcan svg { max-width: 100%; height: auto; overflow: visible; font: 11px system-ui, sans-serif }
""".strip()


def build_card(heading: str, *parts: str, remark: str = "", colour: str = "") -> str:
    """Return a heading, coloured and with a remark beside it, above pieces of HTML side by side."""
    style = f' style="color: {colour}"' if colour else ""
    beside = f'<span style="color: initial; color: inherit">{escape(remark)}</span>'
    head = f"<h4><b{style}>{escape(heading)}</b>{beside if remark else ''}</h4>"
    body = "".join(f"<div>{part}</div>" for part in parts if part)
    return f'<div class="vulcan"><style>{STYLE}</style>{head}<div class="beside">{body}</div></div>'


def build_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0, note: str = ""
) -> str:
    """Return a table of texts, with a note below it.

    The header may be empty. This many columns from the left hold words, and so does a last column
    without a name.
    """
    words = [k < left or (k == len(header) - 1 and not name) for k, name in enumerate(header)]
    if not header:
        words = [True] * 99

    def write(tag: str, cells: Sequence[str]) -> str:
        marks = (' class="word"' if words[k] else "" for k in range(len(cells)))
        pairs = zip(cells, marks, strict=True)
        return f"<tr>{''.join(f'<{tag}{mark}>{escape(c)}</{tag}>' for c, mark in pairs)}</tr>"

    head = f"<thead>{write('th', header)}</thead>" if header else ""
    body = "".join(write("td", row) for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{head}<tbody>{body}</tbody></table>{below}"
