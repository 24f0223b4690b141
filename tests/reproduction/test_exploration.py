"""The part on the exploration mission."""

import base64
import zlib

from reproduction.part import Record
from reproduction.parts.exploration import ExplorationMission
from tests.helpers.records import run_task
from tests.helpers.sections import check_drawn, without_times
from vulcan.policies.file import decode_policy


def test_exploration():
    part = ExplorationMission()
    task = {"constraint": "A", "horizon": 3, "samples": 64}
    record, again, other = (run_task(part, {**task, "constraint": c}) for c in "AAB")
    assert without_times(record.found) == without_times(again.found)
    policy = decode_policy(zlib.decompress(base64.b64decode(record.found["policy"])))
    assert len(policy) == record.found["decisions"]
    section = part.show([record, other], True)
    check_drawn(section)
    assert len(section.figures) == 4
    assert "ours are complete" in section.meaning
    assert all(section.numbers[c]["risk"] <= section.numbers[c]["allowed"] for c in "AB")
    partial = Record(record.task, {**record.found, "complete": False}, 1.0)
    section = part.show([partial], True)
    check_drawn(section)
    assert "is partial" in section.meaning
