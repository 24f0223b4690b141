"""Records of the reproduction: run here, and of runs that were broken off."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from reproduction import Part, Record, Task


def run_task(part: Part, task: Task) -> Record:
    """Run a task as the runner does: what it finds goes through JSON."""
    return Record(dict(task), json.loads(json.dumps(part.run(task))), 1.0)


def run_tasks(part: Part, tasks: Sequence[Task]) -> list[Record]:
    """Run tasks one after the other."""
    return [run_task(part, task) for task in tasks]


def show_any(part: Part, records: Sequence[Record]) -> None:
    """Show some records of a part: a run may be broken off at any moment."""
    rng = random.Random(part.name)
    for _ in range(30):
        some = rng.sample(list(records), rng.randrange(len(records) + 1))
        section = part.show(some, quick=rng.random() < 0.5)
        assert section.paper
        json.dumps(dict(section.numbers))
        for table in section.tables:
            assert all(len(row) == len(table.header) for row in table.rows)
        assert all(claim.text and claim.found for claim in section.claims)
