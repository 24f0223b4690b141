"""A PRISM model above a million states, from the file to the answer: seconds and memory, by Storm.

Each runs in a process of its own, so that its peak of memory is that of this model: Vulcan reads
the file, finds the best randomised policy and certifies it; Storm reads it and answers its own
multi-objective query (`tests.oracles.storm_files`). Seconds are processor time, without imports and
compilation. Run with `make bench`; needs the extra `storm`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).parent / "models" / "survey.prism"
SIZES = {"N": 150, "B": 150}  # 1,159,074 states
STEPS, BOUND = 50, 0.1
MOST_SECONDS, MOST_MEMORY = 0.8, 1.35
"""Beside Storm."""


def measure(who: str) -> dict[str, float]:
    """Answer the question and return value, seconds, and megabytes before and at most."""
    if who == "storm":
        import stormpy  # noqa: F401

        from tests.oracles.storm_files import ask_storm

        before, began = peak(), time.process_time()
        objective, limit = f'R{{"found"}}max=? [C<={STEPS}]', f'P<={BOUND} [F<={STEPS} "failed"]'
        value = ask_storm(FILE, objective, limit, SIZES)
    else:
        import vulcan
        from benchmarks.large import make_arrays
        from vulcan.formats import from_prism

        solver = vulcan.Lagrangian(randomised=True)
        vulcan.solve(vulcan.Problem(make_arrays(4, 6), 0.05), solver)  # compiles
        before, began = peak(), time.process_time()
        model = from_prism(FILE, horizon=STEPS, reward="found", **SIZES)
        result = vulcan.solve(vulcan.Problem(model, BOUND), solver)
        assert result.safe
        value = float(result.certificate.reward)
    seconds = time.process_time() - began
    return {"value": value, "seconds": seconds, "before": before, "most": peak()}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def test_above_a_million_states(report: Any) -> None:
    pytest.importorskip("stormpy")
    ours, theirs = (
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "benchmarks.test_storm_memory", who],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()[-1]
        )
        for who in ("vulcan", "storm")
    )
    assert ours["value"] == pytest.approx(theirs["value"], rel=1e-6)
    report(
        "a million states, from file to answer: seconds, and ratio to Storm",
        f"{ours['seconds']:.1f}, {ours['seconds'] / theirs['seconds']:.2f}",
    )
    own = [found["most"] - found["before"] for found in (ours, theirs)]
    report(
        "  megabytes at most, ratio to Storm, and without those before",
        f"{ours['most']:,.0f}, {ours['most'] / theirs['most']:.2f}, {own[0] / own[1]:.2f}",
    )
    assert ours["seconds"] <= MOST_SECONDS * theirs["seconds"]
    assert ours["most"] <= MOST_MEMORY * theirs["most"]


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
