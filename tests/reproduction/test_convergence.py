"""The part on convergence: tiny runs, and what it says of them."""

import pytest

from reproduction.part import Record
from reproduction.parts.convergence import SCAN, Convergence
from reproduction.runs import SCANNED
from tests.helpers.records import run_task, show_any
from tests.helpers.sections import check_drawn, without_times


@pytest.fixture(scope="module")
def forward():
    part = Convergence()
    tasks = [{"variant": "forward", "constraint": c} for c in ("A", "B", "A, printed")]
    return [run_task(part, task) for task in tasks]


def test_forward_search_at_horizon_9(forward):
    rewards = [record.found["reward"] for record in forward]
    assert rewards == pytest.approx([4.665492, 4.665988, 4.665492], abs=5e-7)
    assert forward[2].found["evaluations"] == 8_062_156  # every history, none left early


def make_runs(variant, samples):
    budget = {"samples": samples, "first": 0, "runs": 2}
    return run_task(Convergence(), {"variant": variant, **budget})


def test_convergence(forward):
    runs = [make_runs("printed", 200), make_runs("A", 200), make_runs("A", 400)]
    section = Convergence().show([*forward, *runs], True)
    check_drawn(section)
    last, everything = section.tables  # constants need more runs
    assert [row[0] for row in last.rows][2:] == [
        "VulcanFS, A",
        "VulcanFS, A, printed",
        "VulcanFS, B",
    ]
    assert len(everything.rows) == 6
    assert last.brief
    assert section.numbers["A samples"] == 400
    assert "LocalVulcan with constraint A does not reach the paper's error" in section.meaning
    assert "as printed does not reach" in section.meaning
    show_any(Convergence(), [*forward, *runs])
    asked = [one["evaluations"] for one in runs[1].found["runs"]]
    assert all(400 < one < 20_000 for one in asked)  # every history is asked for


def test_the_same_seeds_give_the_same_record():
    first, second = (without_times(make_runs("B", 200).found) for _ in range(2))
    assert first == second


def test_convergence_follows_the_data(forward):
    reward = forward[0].found["reward"]
    found = {"reward": reward, "estimate": reward, "complete": True, "same": True}
    cost = {"seconds": 0.001, "evaluations": 10, "samples": 1000}
    task = {"variant": "A", "samples": 1000, "first": 0, "runs": 1}
    section = Convergence().show([*forward, Record(task, {"runs": [found | cost]}, 1.0)], True)
    assert "reaches the paper's error by 1,000 samples" in section.meaning
    assert "saving of time holds" in section.meaning
    lost = {"reward": None, "estimate": None, "complete": False, "same": False}
    section = Convergence().show([*forward, Record(task, {"runs": [lost | cost]}, 1.0)], True)
    check_drawn(section)
    assert section.figures == []


def test_claims_on_convergence_are_judged_by_what_is_printed(forward):
    def make(variant, share, same, seconds=0.001, evaluations=10):
        reward = share * forward[0].found["reward"]
        found = {"reward": reward, "estimate": reward, "complete": True, "same": same}
        cost = {"seconds": seconds, "evaluations": evaluations, "samples": 1000}
        task = {"variant": variant, "samples": 1000, "first": 0, "runs": 1}
        return Record(task, {"runs": [found | cost]}, 1.0)

    def judge(*records):
        section = Convergence().show([*forward, *records], False)
        return [claim.verdict.value for claim in section.claims]

    good, bad = make("A", 1.0, True), make("tuned", 0.9, False)
    assert judge(good, make("tuned", 0.9995, True)) == ["holds"] * 4
    fails = ["does not hold"] * 3
    assert judge(good, bad) == [*fails, "holds in part"]  # few evaluations, but not its policy
    assert judge(make("A", 0.9, False), make("tuned", 1.0, True)) == ["holds"] * 4
    # What is asked after more than a twentieth of all evaluations, or takes longer, is not counted.
    assert judge(good, make("tuned", 1.0, True, 0.001, 5_000_000)) == ["holds"] * 3
    assert judge(good, make("tuned", 1.0, True, 1000.0))[3] == "holds in part"
    assert judge(good, make("tuned", 1.0, True, 0.001, 9_000_000))[-1] == "does not hold"
    assert judge(good) == []


def test_the_best_constant_is_told(forward):
    def make(variant, error):
        reward = (1 - error) * forward[0].found["reward"]
        found = {"reward": reward, "estimate": reward, "complete": True, "same": False}
        cost = {"seconds": 1.0, "evaluations": 10, "samples": SCAN}
        task = {"variant": variant, "samples": SCAN, "first": 0, "runs": 2}
        return Record(task, {"runs": [found | cost, found | cost]}, 1.0)

    names = ("printed", "tuned", *SCANNED)
    records = [make(name, 0.01 * k) for k, name in enumerate(names, start=1)]
    section = Convergence().show([*forward, *records], False)
    assert "constants from 0.7 to 4, with 2,000,000 samples, the best is 1.41 by" in section.meaning
    constants = section.tables[1]
    assert [row[0] for row in constants.rows][:2] == ["as printed, c = 0.7", "as printed, c = 1"]
    better = [make("c = 2.8", 0.0), *(r for r in records if r.task["variant"] != "c = 2.8")]
    assert "the best is 2.8 by" in Convergence().show([*forward, *better], False).meaning


def test_convergence_without_forward_search():
    section = Convergence().show([make_runs("A", 200)], True)
    assert section.figures == []
    assert section.measured == ""
