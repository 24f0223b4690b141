"""A part of the report one of whose tasks fails, where worker processes can import it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vulcan.reproduce import Record, Section, Task


class FailingPart:
    """One task that fails, among others that don't."""

    name = "failing"
    title = "One that fails"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        return [{"kind": "broken"}] + [{"kind": "whole", "number": k} for k in range(4)]

    def estimate(self, task: Task) -> float:
        return 9.0 if task["kind"] == "broken" else 1.0

    def run(self, task: Task) -> dict[str, Any]:
        if task["kind"] == "broken":
            raise ValueError("out of tea")
        return {"number": task["number"]}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        return Section("", f"{len(records)} records", "")
