"""Small pieces of HTML, for notebooks and files: cards, tables, and the style that they share.

They are shown on light and dark ground, in pages that are not ours, so that text and lines have
the colour of the page around them (`currentColor`), and only a few accents, of middle lightness
and safe for the colour-blind, have one of their own. Nothing is loaded, and no script runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

__all__ = ["BAD", "BLUE", "GOOD", "ORANGE", "STYLE", "build_card", "build_page", "build_table"]

BLUE, ORANGE, GOOD, BAD = "#3a8fc8", "#dd7a00", "#259c6f", "#d9544d"

STYLE: Final = """
.vulcan { font: 13px/1.45 system-ui, sans-serif; max-width: 78em; overflow-x: auto }
.vulcan h4 { font-size: 14px; margin: 0 0 .4em; font-weight: 600 }
.vulcan h4 span { font-weight: 400; margin-left: .6em }
.vulcan .beside { display: flex; flex-wrap: wrap; gap: .6em 2em; align-items: flex-start }
.vulcan .beside > * { flex: 0 1 auto; min-width: 0; max-width: 100% }
.vulcan svg + p { max-width: 330px }
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
    """Return a heading with parts side by side below it, as far as there is room.

    Parameters
    ----------
    heading
        The answer itself.
    parts
        Pieces of HTML.
    remark
        What stands beside the heading, less loud.
    colour
        That of the heading; that of the page without one.
    """
    style = f' style="color: {colour}"' if colour else ""
    beside = f'<span style="color: initial; color: inherit">{escape(remark)}</span>'
    head = f"<h4><b{style}>{escape(heading)}</b>{beside if remark else ''}</h4>"
    body = "".join(f"<div>{part}</div>" for part in parts if part)
    return f'<div class="vulcan"><style>{STYLE}</style>{head}<div class="beside">{body}</div></div>'


def build_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0, note: str = ""
) -> str:
    """Return a table of texts.

    Parameters
    ----------
    header
        The names of the columns; none for a table without any.
    rows
        The cells of each row.
    left
        How many columns, from the left, hold words. The last is words too where it has no name.
    note
        What is said below the table.
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


def build_page(title: str, body: str) -> str:
    """Return a page of its own, light or dark as its reader likes."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        "<style>:root { color-scheme: light dark } body { margin: 1.5em }</style>"
        f"{body}</html>\n"
    )
