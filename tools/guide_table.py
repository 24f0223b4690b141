"""Write the table of solvers in docs/howto/solve.md from what the solvers declare.

python tools/guide_table.py
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from vulcan.solvers.base import load_solvers

PAGE: Final = Path(__file__).parents[1] / "docs" / "howto" / "solve.md"
TABLE: Final = re.compile(r"(<!-- solvers -->\n).*?(<!-- end of solvers -->)", re.DOTALL)


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


def write_table(page: str) -> str:
    """Return a page with the table as it should be."""
    return TABLE.sub(lambda found: found[1] + make_table() + found[2], page)


if __name__ == "__main__":
    PAGE.write_text(write_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
