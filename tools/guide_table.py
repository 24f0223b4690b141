"""Write the tables of solvers in pages from what the solvers declare.

python tools/guide_table.py
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from vulcan.solvers.base import Coverage, load_solvers

HOWTO: Final = Path(__file__).parents[1] / "docs" / "howto"
TABLE: Final = re.compile(r"(<!-- (solvers|several) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def show_call(kind: Any) -> str:
    """Return how a solver is made, with the parameters that have a plain default."""
    plain = [f for f in fields(kind) if f.default is not MISSING and not callable(f.default)]
    return f"{kind.__name__}({', '.join(f'{field.name}={field.default!r}' for field in plain)})"


def make_table() -> str:
    """Return the table."""
    lines = ["| solver | finds | how | limits |", "|---|---|---|---|"]
    for kind in load_solvers().values():
        limits = ", ".join(f"`{name}`" for name in kind.limits)
        lines.append(f"| `{show_call(kind)}` | {kind.finds} | {kind.method} | {limits} |")
    return "\n".join(lines) + "\n"


def make_table_of_constraints() -> str:
    """Return the table that says which solvers take several constraints."""
    lines = [
        "| solver | constraints beside the risk bound | its upper bound covers |",
        "|---|---|---|",
    ]
    for kind in load_solvers().values():
        taken = "all but `RiskAhead`" if kind.sums_only else "all" if kind.several else "no"
        covered = "nothing; it has none" if kind.covers is Coverage.NOTHING else kind.covers.value
        lines.append(f"| `{kind.__name__}` | {taken} | {covered} |")
    return "\n".join(lines) + "\n"


MADE: Final = {"solvers": make_table, "several": make_table_of_constraints}
PAGES: Final = (HOWTO / "solve.md", HOWTO / "constraints.md")


def write_table(page: str) -> str:
    """Return a page with its table as it should be."""
    return TABLE.sub(lambda found: found[1] + MADE[found[2]]() + found[3], page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(write_table(path.read_text(encoding="utf-8")), encoding="utf-8")
