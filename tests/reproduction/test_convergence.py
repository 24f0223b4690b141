"""The part on convergence: tiny runs, and what it says of them."""

import pytest

from reproduction.part import Record
from reproduction.parts.convergence import Convergence
from tests.helpers.records import run_task, show_any
from tests.helpers.sections import check_drawn, without_times


@pytest.fixture(scope="module")
def forward():
    part = Convergence()
    tasks = [{"variant": "forward", "constraint": c} for c in "AB"]
    return [run_task(part, task) for task in tasks]


def test_forward_search_at_horizon_9(forward):
    rewards = [record.found["reward"] for record in forward]
    assert rewards == pytest.approx([4.665492, 4.665988], abs=5e-7)


def make_runs(variant, samples):
    budget = {"samples": samples, "first": 0, "runs": 2}
    return run_task(Convergence(), {"variant": variant, **budget})


def test_convergence(forward):
    runs = [make_runs("printed", 200), make_runs("A", 200), make_runs("A", 400)]
    section = Convergence().show([*forward, *runs], True)
    check_drawn(section)
    assert len(section.tables[0].rows) == 5
    assert section.numbers["A samples"] == 400
    assert "Our Vulcan does not reach the paper's error" in section.meaning
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


def test_claims_on_convergence_follow_the_data(forward):
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
    assert judge(good, make("tuned", 0.9995, True)) == ["holds"] * 3
    assert judge(good, bad) == ["holds in part"] * 3
    assert judge(make("A", 0.9, False), bad) == ["does not hold"] * 3
    # Few evaluations of one and few seconds of another are not the one that has both.
    slow = make("A", 1.0, True, 10.0)
    assert judge(slow, bad)[2] == "does not hold"
    assert judge(slow, make("tuned", 1.0, True, 0.001, 5_000_000))[2] == "does not hold"
    assert judge(good) == []


def test_convergence_without_forward_search():
    section = Convergence().show([make_runs("A", 200)], True)
    assert section.figures == []
    assert section.measured == ""
