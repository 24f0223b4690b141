"""The part on the exploration mission."""

import base64
import zlib

from reproduction.part import Record
from reproduction.parts.exploration import MAPS, PLANNERS, ExplorationMission
from tests.helpers.records import run_task
from tests.helpers.sections import check_drawn, without_times
from vulcan.policies.file import decode_policy


def run(planner, where, samples=64):
    limits = {"horizon": 3, "samples": samples}
    return run_task(ExplorationMission(), {"planner": planner, "map": where, **limits})


def test_exploration():
    part = ExplorationMission()
    record, again = (run("LocalVulcan, A", "narrow") for _ in range(2))
    assert without_times(record.found) == without_times(again.found)
    policy = decode_policy(zlib.decompress(base64.b64decode(record.found["policy"])))
    assert len(policy) == record.found["decisions"]
    records = [run(planner, where) for where in MAPS for planner in PLANNERS]
    section = part.show(records, False)
    check_drawn(section)
    assert len(section.figures) == 4
    assert "those of this library are complete" in section.meaning
    assert len(section.numbers) == len(records)
    assert all(one["risk"] <= one["allowed"] for one in section.numbers.values())
    enough, daring = section.claims
    assert enough.verdict == "holds in part"  # the printed one is not complete
    assert daring.verdict == "does not hold"  # three steps lead to no gap
    assert "Vulcan()" in enough.found


def test_words_on_exploration_follow_the_data():
    part = ExplorationMission()
    pairs = [(planner, where) for where in MAPS for planner in ("as printed", "LocalVulcan, A")]
    records = [run(*pair) for pair in pairs]
    better = {"complete": True, "reward": 10.0, "risk": 0.02, "allowed": 0.03}
    section = part.show([Record(r.task, r.found | better, 1.0) for r in records], False)
    assert [claim.verdict for claim in section.claims] == ["holds", "holds"]
    wrong = [Record(r.task, r.found | {"passes": False}, 1.0) for r in records]
    section = part.show(wrong, False)
    assert section.claims[0].verdict == "does not hold"
    assert "does not pass" in section.meaning
    assert part.show(records[:1], False).claims == []
