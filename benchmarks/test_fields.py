"""Problems of many fields, solved as a new user would: by default, with a time limit.

Each in a process of its own, which is ended if it takes several times its limit. The table at the
end has reward, upper bound, gap, seconds by the clock and of the processor (compilation apart), and
the peak of memory of each.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fields import FIELDS, Field
from benchmarks.fields.__main__ import TIME_LIMIT

ROOT = Path(__file__).parents[1]
PATIENCE = 180.0  # seconds, compilation and the count of pairs included
MOST_BYTES = 10 << 30  # of address space, so that a field can't take the machine down
COLUMNS = "{:<16} {:>8} {:>9} {:>12} {:>12} {:>9} {:>8} {:>7} {:>8}  {}"
HEADINGS = (
    "field",
    "pairs",
    "questions",
    "reward",
    "upper bound",
    "gap",
    "seconds",
    "busy",
    "peak MB",
)


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Yield the lines of the table, which is printed at the end."""
    lines = [COLUMNS.format(*HEADINGS, "")]
    yield lines
    print("", *lines, sep="\n")


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_the_default_solves_it_in_time(field: Field, table: list[str]) -> None:
    found = solve_apart(field)
    table.append(describe(field, found))
    print("\n" + table[-1], flush=True)
    assert "error" not in found, found["error"]
    assert not found["violations"], found["violations"]
    if field.feasible:
        assert found["safe"]
        assert found["complete"]
    else:
        assert found["status"] == "infeasible"
    assert found["seconds"] <= TIME_LIMIT + max(1.0, 0.1 * TIME_LIMIT)


def solve_apart(field: Field) -> dict[str, Any]:
    """Return what `python -m benchmarks.fields` says of a field, or how it ended without."""
    command = [sys.executable, "-m", "benchmarks.fields", field.name]
    try:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)),
        )
    except subprocess.TimeoutExpired:
        return {"error": f"ended after {PATIENCE:.0f} s"}
    if ended.returncode:
        last = ended.stderr.strip().splitlines()[-1:]
        return {"error": f"exit code {ended.returncode}: {' '.join(last)}"}
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def describe(field: Field, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    if "error" in found:
        return f"{field.name:<16} {found['error']}"
    if found["safe"]:
        verdict = "safe"
    elif found["reward"] is None:
        verdict = found["status"]
    else:
        verdict = "not safe" if found["complete"] else "not complete"
    return COLUMNS.format(
        field.name,
        f"{found['pairs']:,}",
        f"{found['questions']:,}",
        show(found["reward"], "{:.6g}"),
        show(found["upper_bound"], "{:.6g}"),
        show(found["gap"], "{:.3%}"),
        f"{found['seconds']:.2f}",
        f"{found['busy']:.2f}",
        f"{found['megabytes']:,.0f}",
        verdict,
    )


def show(number: float | None, form: str) -> str:
    """Return a number as a string; what is unknown is left empty."""
    return "" if number is None else form.format(number)
