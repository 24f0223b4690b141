"""A part of the report one of whose tasks fails, where worker processes can import it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

from reproduction import Record, Section, Task


class FailingPart:
    """One task that fails, or whose process is killed, among others that don't."""

    name = "failing"
    title = "One that fails"
    version = 1

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def tasks(self, quick: bool) -> Sequence[Task]:
        return [{"kind": self.kind}] + [{"kind": "whole", "number": k} for k in range(4)]

    def estimate(self, task: Task) -> float:
        return 1.0 if task["kind"] == "whole" else 9.0

    def run(self, task: Task) -> dict[str, Any]:
        if task["kind"] == "broken":
            raise ValueError("out of tea")
        if task["kind"] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"number": task["number"]}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        return Section("", f"{len(records)} records", "")
