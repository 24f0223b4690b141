"""When and with what records were made."""

from __future__ import annotations

from pathlib import Path

import vulcan
from reproduction import Record
from reproduction.making import describe_making, tabulate_making
from reproduction.parts.penalty import PenaltyExample
from reproduction.store import Store


def test_records_keep_when_and_with_what_they_were_made(tmp_path: Path) -> None:
    part, made = PenaltyExample(), describe_making()
    assert made["vulcan"] == vulcan.__version__
    assert len(made["date"]) == len("2026-01-31")
    store, task = Store(tmp_path), {"method": "penalty"}
    store.add(part, Record(task, {}, 1.0, made))
    (record,) = store.find(part, [task])
    assert record.made == made


def test_the_table_tells_all_commits_and_what_nobody_kept() -> None:
    part = PenaltyExample()
    records = [
        Record({}, {}, 1800.0, {"commit": "b", "date": "2026-01-02", "numpy": "2.0"}),
        Record({}, {}, 1800.0, {"commit": "a", "date": "2026-01-02", "numpy": "2.1"}),
        Record({}, {}, 1800.0),
    ]
    (row,) = tabulate_making([(part, records)]).rows
    assert row[1:3] == [3, "1.50"]
    assert row[3:5] == ["2026-01-02, not recorded", "a, b, not recorded"]
    assert row[5] == "numpy 2.0, 2.1"
