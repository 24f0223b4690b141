"""The part on concave bounds."""

from reproduction.part import Record
from reproduction.parts.concave import ConcaveBounds
from tests.helpers.records import run_tasks, show_any
from tests.helpers.sections import check_section


def test_dynamic_programming_takes_a_concave_bound():
    part = ConcaveBounds()
    records = run_tasks(part, part.tasks(quick=True))
    assert all(record.found["passes"] for record in records)
    section = part.show(records, quick=False)
    check_section(section)
    (claim,) = section.claims
    assert claim.verdict == "does not hold"
    assert "at 2 of 2 horizons" in claim.found
    show_any(part, records)
    # If fronts had found another optimum than the program, the paper would be right.
    other = [
        Record(r.task, r.found | {"reward": r.found["reward"] - 0.1 * ("fronts" in name)}, 0.0)
        for r in records
        for name in [r.task["solver"]]
    ]
    assert part.show(other, quick=False).claims[0].verdict == "holds"
