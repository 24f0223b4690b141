"""Raw data: what was written by halves or by another version is run again."""

from __future__ import annotations

from pathlib import Path

from reproduction import Record
from reproduction.parts.bandit_table import BanditTable
from reproduction.store import Store


def test_a_line_that_was_written_by_halves_is_run_again(tmp_path: Path) -> None:
    part, store = BanditTable(), Store(tmp_path)
    tasks = part.tasks(True)[:3]
    for k, task in enumerate(tasks):
        store.add(part, Record(dict(task), {"reward": float(k)}, 0.1))
    assert store.missing(part, tasks) == []
    path = tmp_path / "bandit-table.jsonl"
    path.write_text(path.read_text()[:-9])
    assert store.missing(part, tasks) == [tasks[2]]
    assert [record.found["reward"] for record in store.find(part, tasks)] == [0.0, 1.0]
    store.add(part, Record(dict(tasks[2]), {"reward": 7.0}, 0.1))
    assert store.missing(part, tasks) == []
    assert [record.found["reward"] for record in store.find(part, tasks)] == [0.0, 1.0, 7.0]


def test_records_of_another_version_are_run_again(tmp_path: Path) -> None:
    part, store = BanditTable(), Store(tmp_path)
    task = part.tasks(True)[0]
    store.add(part, Record(dict(task), {"reward": 1.0}, 0.1))
    part.version += 1
    assert store.missing(part, [task]) == [task]
