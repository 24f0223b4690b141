"""Write docs/reproduction.md from a full reproduction: its claims, its texts and its figures.

make reproduce
python -m reproduction.page report docs
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from reproduction.part import Part, Section
from reproduction.parts import PARTS
from reproduction.store import Store
from vulcan.plotting import save

INTRODUCTION = """# The paper, reproduced

Every table and figure of Ayton and Williams, *Vulcan: A Monte Carlo Algorithm for Large Chance
Constrained MDPs with Risk Bounding Functions*, beside what Vulcan measures, and some results
beyond. The machine had two cores and other work to do; the paper's was another, so that seconds
don't compare and model evaluations do. `make reproduce`, in a clone, makes the whole
report, with all tables, as a page with its raw data. From that report,
`python -m reproduction.page report docs` has written this page. What is called Vulcan below
is the planner of the paper, `LocalVulcan` in this library.

## What holds

| the paper says | we found | verdict |
|---|---|---|"""


def write_page(shown: list[tuple[Part, Section]], figures: Path) -> Iterator[str]:
    """Yield the lines of the page, and save its figures."""
    yield INTRODUCTION
    for _, section in shown:
        for claim in section.claims:
            yield f"| {escape(claim.text)} | {escape(claim.found)} | **{claim.verdict}** |"
    for part, section in shown:
        yield f"\n## {part.title}\n"
        for name, text in (
            ("The paper reports.", section.paper),
            ("We measured.", section.measured),
            ("What it means.", section.meaning),
        ):
            if text:
                yield f"*{name}* {escape(text)}\n"
        for figure in section.figures:
            save(figure.draw(), figures / f"{figure.name}.png")
            caption = escape(figure.caption)
            yield f"![{caption}]({figures.name}/{figure.name}.png)\n*{caption}*\n"


def escape(text: str) -> str:
    """Return a text without marks that Markdown would take for its own."""
    return text.replace("*", r"\*").replace("<", "&lt;")


def main() -> None:
    """Read the data and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report", type=Path, help="folder of a full reproduction")
    parser.add_argument("docs", type=Path, help="folder of the page")
    options = parser.parse_args()
    store = Store(options.report / "data")
    figures = options.docs / "reproduction"
    figures.mkdir(parents=True, exist_ok=True)
    shown = []
    for part in PARTS:
        missing = store.missing(part, part.tasks(False))
        if missing:
            raise SystemExit(f"{part.name}: {len(missing)} tasks were not run yet")
        shown.append((part, part.show(store.find(part, part.tasks(False)), quick=False)))
    text = "\n".join(write_page(shown, figures)) + "\n"
    (options.docs / "reproduction.md").write_text(text)


if __name__ == "__main__":
    main()
