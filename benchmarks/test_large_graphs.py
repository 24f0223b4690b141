"""Large graphs with `Lagrangian`: what is proved, the seconds of each part, and the memory.

Seconds are shown beside those of one dynamic program over the same pairs, measured in the same
process: a search takes some twenty of them, and writing the policy out and certifying it as long
again. Run with `make bench`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.large import LARGE

ROOT = Path(__file__).parents[1]
MEGABYTES = {"arrays 300 x 300, 300 steps": 6000, "consensus (4, 2), 1,500 steps": 500}
MOST_PROGRAMS = 400
"""How many dynamic programs over the same pairs a whole solve may take."""


@pytest.mark.parametrize("name", LARGE)
def test_a_large_graph(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks.large", name]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    gap = (found["upper"] - found["reward"]) / abs(found["upper"])
    solve = found["search"] + found["certificate"]
    print(
        f"\n{name}: {found['pairs']:,} pairs, {found['decisions']:,} decisions, gap {gap:.2e}, "
        f"unrolled in {found['asking']:.1f} s, one program {found['program']:.2f} s, "
        f"search and policy {found['search']:.1f} s, certificate {found['certificate']:.1f} s "
        f"({1e6 * found['certificate'] / found['decisions']:.2f} µs a decision), "
        f"{found['megabytes']:,.0f} MB"
    )
    assert found["safe"]
    assert gap <= 1e-3
    assert found["megabytes"] <= MEGABYTES.get(name, 4000)
    assert solve <= MOST_PROGRAMS * found["program"] + 1
