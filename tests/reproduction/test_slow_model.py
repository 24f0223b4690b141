"""The part on a slow model: tiny runs, and what it says of them."""

import pytest

from reproduction.part import Record
from reproduction.parts.slow_model import COST, SlowModel, charge
from tests.helpers.records import run_task, show_any
from tests.helpers.sections import check_drawn


def test_slow_model():
    part = SlowModel()
    horizon = {"horizon": 4}
    records = [run_task(part, {"variant": "forward", "constraint": c, **horizon}) for c in "AB"]
    for samples in (10, 1000):
        for variant in ("A", "B", "bounded"):
            budget = {"samples": samples, "runs": 2}
            records.append(run_task(part, {"variant": variant, **horizon, **budget}))
    section = part.show(records, True)
    check_drawn(section)
    row = section.tables[0].rows[0]
    assert row[0] == 4
    assert row[1:3] == [charge(record.found) for record in records[:2]]
    assert [record.found["evaluations"] for record in records[:2]] == [868, 884]
    assert row[2] > 884 * COST
    assert part.show(records[2:], True).figures == []
    show_any(part, records)


def test_the_crossover_follows_the_data():
    def make(variant, horizon, reward, seconds, constraint="B"):
        found = {"reward": reward, "seconds": seconds, "evaluations": 1000}
        if variant == "forward":
            task = {"variant": variant, "constraint": constraint, "horizon": horizon}
            return Record(task, found, 1.0)
        task = {"variant": variant, "horizon": horizon, "samples": 10, "runs": 1}
        return Record(task, {"runs": [found]}, 1.0)

    assert charge({"seconds": 2.0, "evaluations": 1000}) == pytest.approx(3.0)
    slower = [make("forward", 4, 2.0, 1.0), make("B", 4, 2.0, 2.0)]
    faster = [make("forward", 5, 2.0, 9.0), make("B", 5, 1.99, 2.0)]
    rough = [make("forward", 6, 2.0, 9.0), make("B", 6, 1.9, 2.0)]
    part = SlowModel()
    assert part.show(slower, True).numbers["crossover, B"] is None
    section = part.show([*slower, *faster], True)
    assert section.numbers["crossover, B"] == 5
    assert section.meaning.startswith("LocalVulcan, B: from horizon 5 on")
    assert part.show([*slower, *faster, *rough], True).numbers["crossover, B"] is None
    assert section.claims == []  # none of A
    for constraint, verdicts in (("A", ["holds"]), ("B", [])):
        forward = make("forward", 5, 2.0, 9.0, constraint)
        claims = part.show([forward, make("A", 5, 1.99, 2.0)], False).claims
        assert [claim.verdict.value for claim in claims] == verdicts
    claims = part.show([make("forward", 5, 2.0, 1.0, "A"), make("A", 5, 2.0, 2.0)], False).claims
    assert [claim.verdict.value for claim in claims] == ["does not hold"]
