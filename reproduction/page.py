"""Write docs/reproduction.md from records of full runs: its claims, texts, short tables, figures.

A full run in the folder report has its records in report/data, a quick one in
report-quick/data-quick (with --quick):

    python -m reproduction.page report/data docs

reproduction/data/README.md says how to write the page from the records of the repository.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reproduction.making import tabulate_making
from reproduction.part import Part, Record, Section, Table, Verdict
from reproduction.parts import PARTS
from reproduction.report import to_text
from reproduction.store import Store
from vulcan.plotting import save

PAGE, FIGURES = Path("reproduction.md"), Path("reproduction")
"""Where the page and its figures are, in the folder of the documents."""

OPENING: Final = Path(__file__).with_name("opening.md")
"""The head of the page, written by people: go through its numbers when the records are new."""

Shown = tuple[Part, Section, Sequence[Record]]


def read_shown(data: Path, quick: bool = False) -> list[Shown]:
    """Return what the page shows of the records in a folder; SystemExit if a part has none."""
    store, shown = Store(data), list[Shown]()
    for part in PARTS:
        records = store.find(part, part.tasks(quick))
        if not records:
            raise SystemExit(f"{data} has no records of {part.name}")
        shown.append((part, part.show(records, quick=quick), records))
    return shown


def write_page(shown: list[Shown], figures: Path | None, quick: bool = False) -> Iterator[str]:
    """Yield the lines of the page, and save its figures if there is a folder for them."""
    yield OPENING.read_text(encoding="utf-8")
    claims = [claim for _, section, _ in shown for claim in section.claims]
    counted = Counter(claim.verdict for claim in claims)
    tally = ", ".join(
        f"**{counted[verdict]}** {verdict.mark} {verdict} ({verdict.meaning})"
        for verdict in Verdict
        if counted[verdict]
    )
    yield f"## All claims\n\nOf {len(claims)} claims: {tally}.\n"
    yield (
        "Seconds are the processor's, and the paper's machine was another. The constant c, samples "
        "and runs of each claim are in its section, with intervals. When and from which commit "
        "each part was measured is [at the end](#when-and-with-what-it-was-run); the raw data are "
        "in `reproduction/data`.\n"
    )
    yield "| claim | paper | ours | verdict |\n|---|---:|---:|---|"
    for claim in claims:
        cells = (claim.text, claim.paper, claim.ours or claim.found)
        yield f"| {' | '.join(map(escape, cells))} | {claim.verdict.mark} {claim.verdict} |"
    for part, section, _ in shown:
        yield f"\n## {part.title}\n"
        for name, text in (
            ("The paper reports.", section.paper),
            ("We measured.", section.measured),
            ("What it means.", section.meaning),
        ):
            if text:
                yield f"*{name}* {escape(text)}\n"
        for claim in section.claims:
            yield f"- {claim.verdict.mark} {escape(claim.text)}: {escape(claim.found)}."
        if section.claims:
            yield ""
        for table in section.tables:
            if table.brief:
                yield from write_table(table)
        for figure in section.figures:
            if figures is not None and (axes := figure.draw()) is not None:
                save(axes, figures / f"{figure.name}.png")
            caption = escape(figure.caption)
            yield f"![{caption}]({FIGURES.name}/{figure.name}.png)\n*{caption}*\n"
    yield "\n## When and with what it was run\n"
    made = [(part, records) for part, _, records in shown]
    yield from write_table(tabulate_making(made, quick))


def write_table(table: Table) -> Iterator[str]:
    """Yield a table: numbers to the right, texts to the left."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.header)
    numeric = [not any(isinstance(cell, str) for cell in column) for column in columns]
    yield f"*{escape(table.caption)}.*\n"
    yield "| " + " | ".join(map(escape, table.header)) + " |"
    yield "|" + "|".join("---:" if is_number else "---" for is_number in numeric) + "|"
    rewarded = [name in table.rewards for name in table.header]
    for row in table.rows:
        cells = map(to_digits, row, rewarded)
        yield "| " + " | ".join(map(escape, cells)) + " |"
    yield ""


def to_digits(cell: str | float | None, reward: bool = False) -> str:
    """Return a cell: a number with three digits, a reward with four decimals, as the paper."""
    if isinstance(cell, float):
        return f"{cell:.4f}" if reward else f"{float(f'{cell:.3g}'):,.15g}"
    return to_text(cell)


def escape(text: str) -> str:
    """Return a text without marks that Markdown would take for its own."""
    return text.replace("*", r"\*").replace("<", "&lt;").replace("|", r"\|")


def main() -> None:
    """Read the data and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the records of full runs")
    parser.add_argument("docs", type=Path, help="folder of the page")
    parser.add_argument("--quick", action="store_true", help="records of a quick run")
    options = parser.parse_args()
    figures = options.docs / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    shown = read_shown(options.data, options.quick)
    text = "\n".join(write_page(shown, figures, options.quick))
    (options.docs / PAGE).write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
