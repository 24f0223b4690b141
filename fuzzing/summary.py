"""A campaign as a page in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fuzzing.statistics import FAULTS, SOLVES, STATUSES, Statistics

__all__ = ["write_summary"]

DETAILS = ("safe", "too close", "exact", "executed", "bound refused", "model refused")
"""What else is told of a solver's answers."""


def write_summary(statistics: Statistics, header: Mapping[str, Any]) -> str:
    """Return what was done and found.

    Parameters
    ----------
    statistics
        What was counted.
    header
        What was tried: seed, version and so on.
    """
    problems, seconds = statistics.problems, max(statistics.seconds, 1e-9)
    lines = [
        "# Campaign",
        "",
        f"Seed {header['seed']}, Vulcan {header['version']} "
        f"({', '.join(header['revisions'])}), Python {header['python']}.",
        f"{problems:,} problems in {seconds:,.0f} s of processor time "
        f"({problems / seconds:,.0f} a second and core); "
        f"{statistics.found:,} cases had faults.",
        "",
        *_write_findings(statistics.findings),
        "## By solver",
        "",
        *_write_table(
            ["solver", SOLVES, *STATUSES, *DETAILS, FAULTS],
            statistics.solvers,
        ),
        "",
        "## By check",
        "",
        *_write_table(["check", "cases", FAULTS], statistics.checks),
        "",
        "## By shape",
        "",
        *_write_table(["shape", "problems", FAULTS], statistics.shapes),
        "",
    ]
    return "\n".join(lines)


def _write_findings(findings: Counter[str]) -> Iterable[str]:
    if not findings:
        return ()
    rows = [f"| {name} | {count:,} |" for name, count in findings.most_common()]
    return ("## Findings", "", "| fault / solver / check | cases |", "|---|---:|", *rows, "")


def _write_table(columns: Sequence[str], rows: Mapping[str, Counter[str]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    for name, counts in sorted(rows.items()):
        cells = [f"{counts[column]:,}" for column in columns[1:]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines
