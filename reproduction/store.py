"""The raw data of a reproduction: a file for each part, a line for each task that was run.

A line is written at once when its task ends. An interrupted run leaves at most its last line
half written, which is passed over, and goes on with the tasks that have no line yet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from reproduction.part import Part, Record, Task
from vulcan.errors import OptionError

__all__ = ["Store"]


class Store:
    """The records of all parts, in a folder.

    Parameters
    ----------
    folder
        Where they are; made if it does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"{folder}: no folder can be made there: {error}") from error

    def missing(self, part: Part, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks that were never run."""
        known = {_identify(part, record.task) for record in self._read(part)}
        return [task for task in tasks if _identify(part, task) not in known]

    def find(self, part: Part, tasks: Sequence[Task]) -> list[Record]:
        """Return the records of those tasks that were run, in their order."""
        known = {_identify(part, record.task): record for record in self._read(part)}
        found = (known.get(_identify(part, task)) for task in tasks)
        return [record for record in found if record is not None]

    def add(self, part: Part, record: Record) -> None:
        """Keep what a task found."""
        line = {
            "version": part.version,
            "task": record.task,
            "found": record.found,
            "seconds": record.seconds,
            "made": dict(record.made),
        }
        with self._path(part).open("a+b") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")  # the last line was written by halves: not to be joined
            file.write(json.dumps(line).encode() + b"\n")

    def _read(self, part: Part) -> list[Record]:
        path = self._path(part)
        if not path.exists():
            return []
        records = []
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
                if line["version"] == part.version:
                    made = line.get("made", {})
                    records.append(Record(line["task"], line["found"], line["seconds"], made))
            except (ValueError, KeyError, TypeError):
                continue  # written by halves when a run was interrupted
        return records

    def _path(self, part: Part) -> Path:
        return self._folder / f"{part.name}.jsonl"


def _identify(part: Part, task: Task) -> str:
    """Return a text that is the same for the same task."""
    return f"{part.version} {json.dumps(dict(task), sort_keys=True)}"
