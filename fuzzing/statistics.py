"""What a campaign did, by solver, by shape and by check, as counts that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fuzzing.checks.case import Case
from fuzzing.claims import Fault

__all__ = ["Statistics"]

SOLVES = "solves"
FAULTS = "faults"
STATUSES = ("solved", "infeasible", "done", "stopped")


class Statistics:
    """Counts of what was done.

    Attributes
    ----------
    problems, seconds
        How many problems, and the seconds that workers spent on them.
    solvers, shapes, checks
        What happened, by solver, by shape and by check.
    findings
        How often each signature was found.
    """

    def __init__(self) -> None:
        self.problems, self.seconds = 0, 0.0
        self.solvers: dict[str, Counter[str]] = {}
        self.shapes: dict[str, Counter[str]] = {}
        self.checks: dict[str, Counter[str]] = {}
        self.findings: Counter[str] = Counter()

    def add_problem(self, tags: Iterable[str]) -> None:
        """Count a problem of some shape."""
        self.problems += 1
        for tag in tags:
            self.shapes.setdefault(tag, Counter())["problems"] += 1

    def add_case(self, case: Case, counts: Counter[str], faults: Sequence[Fault]) -> None:
        """Count what came of a case."""
        found = Counter(counts)
        found["cases"] += 1
        found[FAULTS] += bool(faults)
        self.checks.setdefault(case.check, Counter()).update(found)
        if any(status in counts for status in STATUSES):
            found[SOLVES] += 1
        self.solvers.setdefault(case.planner.name, Counter()).update(found)
        if faults:
            for tag in case.problem.tags:
                self.shapes.setdefault(tag, Counter())[FAULTS] += 1

    def to_record(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "problems": self.problems,
            "seconds": round(self.seconds, 3),
            "solvers": self.solvers,
            "shapes": self.shapes,
            "checks": self.checks,
            "findings": self.findings,
        }

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Add what another one counted."""
        self.problems += record["problems"]
        self.seconds += record["seconds"]
        for name in ("solvers", "shapes", "checks"):
            mine = getattr(self, name)
            for key, counts in record[name].items():
                mine.setdefault(key, Counter()).update(counts)
        self.findings.update(record["findings"])

    @property
    def found(self) -> int:
        """How many cases had faults."""
        return sum(self.findings.values())
