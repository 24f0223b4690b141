"""The part on the regret of UCT."""

import math

from reproduction.part import Record
from reproduction.parts.regret import JUDGED, Regret
from tests.helpers.records import run_task, show_any
from tests.helpers.sections import check_drawn


def test_the_error_at_the_root_is_measured():
    part = Regret()
    tasks = [{"variant": "forward"}]
    tasks += [{"variant": v, "samples": n, "runs": 8} for v in JUDGED for n in (1000, 4000)]
    records = [run_task(part, task) for task in tasks]
    section = part.show(records, quick=True)
    check_drawn(section)
    assert section.numbers["printed 1000, mean error"] > section.numbers["printed 4000, mean error"]
    show_any(part, records)


def test_the_verdict_follows_the_rate():
    def make(error):
        forward = Record({"variant": "forward"}, {"reward": 2.0}, 1.0)
        runs = {n: [{"estimate": 2.0 + error(n), "first": True}] * 2 for n in (1000, 100_000)}
        return [
            forward,
            *(
                Record({"variant": v, "samples": n, "runs": 2}, {"runs": some}, 1.0)
                for v in JUDGED
                for n, some in runs.items()
            ),
        ]

    def judge(error):
        return Regret().show(make(error), quick=False).claims[0].verdict

    assert judge(lambda n: math.log(n) / n) == "holds"
    assert judge(lambda n: 1 / math.sqrt(n)) == "does not hold"
