"""A part of the report one of whose tasks fails, where worker processes can import it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vulcan.reproduce import Record, Section, Task


class FailingPart:
    """One task that fails, after others that would go on for long."""

    name = "failing"
    title = "One that fails"
    version = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def tasks(self, quick: bool) -> Sequence[Task]:
        return [{"kind": "slow", "number": k} for k in range(4)] + [{"kind": "broken"}]

    def estimate(self, task: Task) -> float:
        return 9.0 if task["kind"] == "broken" else 1.0

    def run(self, task: Task) -> dict[str, Any]:
        if task["kind"] == "broken":
            raise ValueError("out of tea")
        time.sleep(30)
        (self.folder / f"done {task['number']}").touch()
        return {}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        return Section("", "", "")
