"""The report: one page in HTML, its figures, and all numbers as CSV and JSON.

index.html            the page
figures/NAME.png      each figure, and NAME.svg to print
tables/NAME.csv       each table, unrounded
numbers.json          the numbers of every part, and which claims hold
data/PART.jsonl       the raw data, which `Store` keeps
"""

from __future__ import annotations

import csv
import html
import io
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from reproduction.making import describe_making, tabulate_making
from reproduction.part import Part, Record, Section, Table, Verdict
from vulcan.plotting import save
from vulcan.runtime.files import write_atomically

__all__ = ["Shown", "to_text", "write_report"]

MOST_ROWS: Final = 20
"""A longer table is folded away."""

MOST_COLUMNS: Final = 7
"""A table of more is wider than the text."""

LONG_TEXT: Final = 24
"""Letters: a longer cell has several lines."""

STYLE: Final = """
body { font: 16px/1.5 Georgia, serif; color: #1a1a1a; max-width: 52rem; margin: 2rem auto;
       padding: 0 1rem; }
h1, h2, th { font-family: system-ui, sans-serif; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; }
figcaption, caption { font-size: 0.9rem; color: #555; text-align: left; }
table { border-collapse: collapse; margin: 1.5rem 0; font-size: 0.82rem; display: block;
        overflow-x: auto; }
caption { padding-bottom: 0.4rem; }
th, td { padding: 0.15rem 0.7rem 0.15rem 0; text-align: right; vertical-align: top; }
th { vertical-align: bottom; hyphens: auto; } td { white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
td.text { white-space: normal; min-width: 7rem; }
/* Wider than the text, as wide as the window: nothing is cut off. */
.wide { width: max-content; max-width: min(96vw, 84rem); margin-left: 50%;
        transform: translateX(-50%); font-size: 0.78rem; }
.claims td, .claims th { white-space: normal; text-align: left; vertical-align: top;
                         border-bottom: 1px solid #e2e2e2; padding: 0.3rem 0.7rem 0.3rem 0; }
.claims td:last-child { white-space: nowrap; }
@media print { body { max-width: none; font-size: 11px; } details > * { display: block; }
               .wide { max-width: 100%; margin-left: 0; transform: none; font-size: 7px; } }
th { border-bottom: 1px solid #1a1a1a; font-size: 0.85rem; }
dl { margin: 1rem 0; } dt { font-weight: bold; font-family: system-ui, sans-serif;
     font-size: 0.85rem; } dd { margin: 0 0 0.6rem 0; }
summary { cursor: pointer; } nav li { margin: 0.1rem 0; }
.note { background: #f4efe2; padding: 0.6rem 0.9rem; }
"""


@dataclass(frozen=True)
class Shown:
    """A part with its section, how many of its tasks were run, and what they found."""

    part: Part
    section: Section
    done: int
    total: int
    records: Sequence[Record] = ()


def write_report(folder: Path, shown: Sequence[Shown], quick: bool) -> Path:
    """Write the page with all it needs, and return its path.

    Parameters
    ----------
    folder
        Where to write; it exists.
    shown
        The parts that have any data, in the order of the page.
    quick
        Whether runs were fewer and smaller, which the page says.
    """
    for name in ("figures", "tables"):
        (folder / name).mkdir(exist_ok=True)
    making = tabulate_making([(one.part, one.records) for one in shown], quick)
    for one in shown:
        for figure in one.section.figures:
            axes = figure.draw()
            for ending in ("png", "svg") if axes is not None else ():
                save(axes, folder / "figures" / f"{figure.name}.{ending}")
    for table in (making, *(table for one in shown for table in one.section.tables)):
        write_atomically(folder / "tables" / f"{table.name}.csv", _to_csv(table))
    document = {
        "made": describe_making(),
        "quick": quick,
        "parts": {one.part.name: dict(one.section.numbers) for one in shown},
        "claims": {one.part.name: [asdict(c) for c in one.section.claims] for one in shown},
    }
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    write_atomically(folder / "numbers.json", text.encode())
    page = folder / "index.html"
    write_atomically(page, "\n".join(_lay_out(shown, making, quick)).encode())
    return page


def _lay_out(shown: Sequence[Shown], making: Table, quick: bool) -> Iterator[str]:
    """Yield the lines of the page."""
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>Vulcan: the paper, reproduced</title><style>{STYLE}</style></head><body>"
    yield "<h1>Vulcan: the paper, reproduced</h1>"
    yield (
        "<p>Every table and figure of Ayton and Williams, <i>Vulcan: A Monte Carlo Algorithm for "
        "Large Chance Constrained MDPs with Risk Bounding Functions</i>, beside what this software "
        "measures, and some results beyond. Our machine and code are not the paper's, whose "
        "seconds don't compare with ours; between our own solvers, model evaluations compare on "
        "any machine. The paper's claims are judged by its algorithms as printed "
        "(<code>Vulcan.paper()</code>); <code>LocalVulcan</code> is the paper's planner, improved, "
        "and <code>Vulcan()</code> is our own, which the library takes by default. A mean stands "
        "with its 95 % interval.</p>"
    )
    if quick:
        yield (
            '<p class="note">This is the quick report: fewer and smaller runs than the full one, '
            "which <code>make reproduce</code> makes. Spreads are wider, and large budgets are "
            "missing.</p>"
        )
    made = describe_making()
    yield (
        f"<p>This page was made on {made['date']} from commit {made['commit']} "
        f"({platform.machine()}, {os.cpu_count()} cores); while a run was timed, others ran beside "
        'it. When and with what each part was run is <a href="#making">below</a>.</p><nav><ol>'
    )
    for one in shown:
        yield f'<li><a href="#{one.part.name}">{html.escape(one.part.title)}</a></li>'
    yield "</ol></nav>"
    yield from _lay_out_claims(shown)
    for one in shown:
        yield from _lay_out_section(one)
    yield '<section id="making"><h2>When and with what it was run</h2>'
    yield from _lay_out_table(making)
    yield "</section></body></html>\n"


def _lay_out_claims(shown: Sequence[Shown]) -> Iterator[str]:
    """Yield the table of all claims, each with a link to where it is measured."""
    if not any(one.section.claims for one in shown):
        return
    yield "<h2>What holds</h2><ul>"
    for verdict in Verdict:
        yield f"<li>{verdict.badge}: {html.escape(verdict.meaning)}.</li>"
    yield "</ul>"
    yield '<table class="claims"><tr><th>The paper says</th><th>We found</th><th>Verdict</th></tr>'
    for one in shown:
        for claim in one.section.claims:
            yield (
                f'<tr><td><a href="#{one.part.name}">{html.escape(claim.text)}</a></td>'
                f"<td>{html.escape(claim.found)}</td><td>{claim.verdict.badge}</td>"
                "</tr>"
            )
    yield "</table>"


def _lay_out_section(one: Shown) -> Iterator[str]:
    section = one.section
    yield f'<section id="{one.part.name}"><h2>{html.escape(one.part.title)}</h2>'
    if one.done < one.total:
        yield (
            f'<p class="note">{one.done:,} of {one.total:,} tasks were run: what is said here is '
            "of these only.</p>"
        )
    yield "<dl>"
    for name, text in (
        ("The paper reports", section.paper),
        ("We measured", section.measured),
        ("What it means", section.meaning),
    ):
        if text:
            marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
            yield f"<dt>{name}</dt><dd>{marked}</dd>"
    yield "</dl>"
    for table in section.tables:
        yield from _lay_out_table(table)
    for figure in section.figures:
        caption = html.escape(figure.caption)
        yield (
            f'<figure><a href="figures/{figure.name}.svg">'
            f'<img src="figures/{figure.name}.png" alt="{caption}"></a>'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    yield "</section>"


def _lay_out_table(table: Table) -> Iterator[str]:
    link = f'<a href="tables/{table.name}.csv">CSV</a>'
    long = len(table.rows) > MOST_ROWS
    if long:
        yield f"<details><summary>A table of {len(table.rows)} rows</summary>"
    wide = ' class="wide"' if len(table.header) > MOST_COLUMNS else ""
    yield f"<table{wide}><caption>{html.escape(table.caption)} ({link})</caption><tr>"
    yield "".join(f"<th>{html.escape(name)}</th>" for name in table.header) + "</tr>"
    for row in table.rows:
        yield "<tr>" + "".join(map(_lay_out_cell, row)) + "</tr>"
    yield "</table></details>" if long else "</table>"


def _lay_out_cell(cell: str | float | None) -> str:
    text = html.escape(to_text(cell))
    long = isinstance(cell, str) and len(cell) > LONG_TEXT
    return f'<td class="text">{text}</td>' if long else f"<td>{text}</td>"


def to_text(cell: str | float | None) -> str:
    """Return a cell as it is shown."""
    if cell is None:
        return ""
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, str):
        return cell
    return f"{cell:.6g}" if abs(cell) >= 0.1 else f"{cell:.3g}"


def _to_csv(table: Table) -> bytes:
    text = io.StringIO()
    writer: Any = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows(table.rows)
    return text.getvalue().encode()
