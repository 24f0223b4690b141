"""The part on RAO*: tiny runs, and what it says of them."""

import pytest

from reproduction.part import Record
from reproduction.parts import heuristic_search
from reproduction.parts.heuristic_search import HeuristicSearch
from tests.helpers.records import run_task, show_any
from tests.helpers.sections import check_drawn


@pytest.fixture(scope="module")
def exact():
    part = HeuristicSearch()
    names = ("optimum", "RAO*", "risk-neutral", "A", "B")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(heuristic_search, "REPEATS", 1)  # times are not looked at
        return [run_task(part, {"what": "exact", "solver": name}) for name in names]


def test_the_optimum_needs_no_bound(exact):
    found = {record.task["solver"]: record.found for record in exact}
    for name in ("optimum", "RAO*", "risk-neutral"):
        assert found[name]["reward"] == pytest.approx(5.434855, abs=5e-7)
    assert found["risk-neutral"]["risk"] == pytest.approx(0.01181, abs=5e-6)
    assert 1 - found["A"]["reward"] / found["optimum"]["reward"] == pytest.approx(0.012, abs=5e-5)


def test_heuristic_search(exact):
    part = HeuristicSearch()
    budget = {"samples": 300, "first": 0, "runs": 2}
    runs = [
        run_task(part, {"what": "runs", "variant": v, **budget})
        for v in ("printed", "tuned", "A", "B")
    ]
    racers = [
        {"what": "race", "racer": racer, "merges": merges, "horizon": 3}
        for racer in ("RAO*", "A", "B")
        for merges in (True, False)
    ]
    races = [run_task(part, task) for task in racers]
    section = part.show([*exact, *runs, *races], True)
    check_drawn(section)
    assert len(section.figures) == 2
    numbers = section.numbers
    assert numbers["Vulcan A, complete"] == numbers["Vulcan B, complete"] == 1
    assert numbers["Vulcan printed, complete"] == 0
    assert numbers["Vulcan printed, estimate"] > numbers["Vulcan printed, reward"]
    rewards = {round(one["reward"], 9) for record in races for one in record.found["runs"]}
    assert len(rewards) == 1  # the bound does not bind at horizon 3
    assert "needs no bound" in section.meaning
    assert "Over histories, at horizon 3" in section.meaning
    assert "Where states merge, at horizon 3" in section.meaning
    verdicts = [claim.verdict.value for claim in section.claims]
    assert verdicts[1:] == ["left open"] * 4  # budgets are small
    assert part.show([*runs, *races[:1]], True).meaning == ""
    show_any(part, [*exact, *runs, *races])


def test_claims_on_heuristic_search_follow_the_data(exact):
    def make(variant, reward, estimate, seconds=0.001, samples=1000):
        found = {"reward": reward, "estimate": estimate, "complete": True, "risk": 0.01}
        cost = {"seconds": seconds, "evaluations": 10, "samples": samples}
        task = {"what": "runs", "variant": variant, "samples": samples, "first": 0, "runs": 1}
        return Record(task, {"runs": [found | cost]}, 1.0)

    def race(racer, horizon, seconds):
        task = {"what": "race", "racer": racer, "merges": True, "horizon": horizon}
        return Record(task, {"runs": [{"seconds": seconds, "evaluations": 9}]}, 1.0)

    def judge(*records):
        section = HeuristicSearch().show([*exact, *records], False)
        return [claim.verdict.value for claim in section.claims]

    best = exact[3].found["reward"]
    printed, fast = make("tuned", best, best + 0.1), make("A", best, best)
    later = make("tuned", best, best, samples=2000)
    assert judge(printed, later, fast) == ["holds"] * 4
    assert judge(printed, fast)[0] == "left open"  # it may rise for ever
    assert judge(make("tuned", best, best - 0.1), fast)[0] == "does not hold"
    assert judge(make("tuned", 0.99 * best, best), fast)[2] == "holds in part"
    slow = exact[1].found["seconds"] / 2
    assert judge(printed, make("A", best, best, slow))[3] == "holds in part"
    assert judge(printed, make("A", 0.9 * best, best))[3] == "does not hold"
    races = [race("RAO*", 7, 1.0), race("A", 7, 2.0), race("RAO*", 9, 4.0)]
    assert judge(*races, race("A", 9, 2.0)) == ["holds"]
    assert judge(*races, race("A", 9, 3.9)) == ["holds in part"]  # faster, but not twice
    assert judge(*races, race("A", 9, 5.0)) == ["holds in part"]
    assert judge(*races) == ["left open"]
    late = [race("RAO*", 9, 4.0), race("A", 9, 2.0)]
    assert judge(*late) == []  # the longest are run first
    even = [race("RAO*", 7, 1.0), race("A", 7, 0.5)]
    assert judge(*even, race("RAO*", 9, 1.0), race("A", 9, 2.0)) == ["does not hold"]
