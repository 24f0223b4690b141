"""Parts of the report that run a search many times: tiny runs, and what they say of them."""

import base64
import json
import zlib

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import vulcan
from tests.records import show_any
from vulcan import OptionError, Vulcan
from vulcan.domains import Bandit
from vulcan.plotting.convergence import Curve, Panel, plot_convergence, summarise_runs
from vulcan.policy_file import decode_policy
from vulcan.reproduce.part import Record
from vulcan.reproduce.parts.convergence import Convergence
from vulcan.reproduce.parts.exploration import ExplorationMission
from vulcan.reproduce.parts.heuristic_search import HeuristicSearch
from vulcan.reproduce.parts.slow_model import COST, SlowModel, charge
from vulcan.reproduce.runs import acts_alike

PARTS = [Convergence(), HeuristicSearch(), SlowModel(), ExplorationMission()]
TIMES = {"seconds"}


def run(part, task):
    """Run a task as the runner does: what it finds goes through JSON."""
    found = json.loads(json.dumps(part.run(task)))
    return Record(dict(task), found, 1.0)


def without_times(found):
    runs = [{k: v for k, v in one.items() if k not in TIMES} for one in found.get("runs", [])]
    return {k: v for k, v in found.items() if k not in (*TIMES, "runs")} | {"runs": runs}


def check_drawn(section):
    for figure in section.figures:
        canvas = FigureCanvasAgg(figure.draw().get_figure(root=True))
        canvas.draw()
        assert np.asarray(canvas.buffer_rgba()).std() > 0
    for table in section.tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    json.dumps(dict(section.numbers))


@pytest.fixture(scope="module")
def forward():
    part = Convergence()
    tasks = [{"variant": "forward", "constraint": c} for c in "AB"]
    return [run(part, task) for task in tasks]


@pytest.fixture(scope="module")
def exact():
    part = HeuristicSearch()
    names = ("optimum", "RAO*", "risk-neutral", "A", "B")
    return [run(part, {"what": "exact", "solver": name}) for name in names]


# All parts.


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_section_without_records(part):
    section = part.show([], True)
    assert section.paper
    check_drawn(section)


# Convergence.


def test_forward_search_at_horizon_9(forward):
    rewards = [record.found["reward"] for record in forward]
    assert rewards == pytest.approx([4.665492, 4.665988], abs=5e-7)


def make_runs(variant, samples):
    budget = {"samples": samples, "first": 0, "runs": 2}
    return run(Convergence(), {"variant": variant, **budget})


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
    assert all(400 < one < 4000 for one in asked)  # every history is asked for


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


def test_policies_that_act_alike():
    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    tree = vulcan.solve(problem, vulcan.ForwardSearch()).policy
    assert acts_alike(tree, vulcan.solve(problem, Vulcan(), samples=5000).policy)
    other = vulcan.solve(problem, vulcan.Pareto()).policy
    assert not acts_alike(tree, other)
    assert not acts_alike(other, tree)
    partial = vulcan.solve(problem, Vulcan.paper(), samples=5, complete=False).policy
    assert not acts_alike(partial, tree)
    assert not acts_alike(None, tree)


# RAO*.


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
        run(part, {"what": "runs", "variant": v, **budget}) for v in ("printed", "tuned", "A", "B")
    ]
    racers = [
        {"what": "race", "racer": racer, "merges": merges, "horizon": 3}
        for racer in ("RAO*", "A", "B")
        for merges in (True, False)
    ]
    races = [run(part, task) for task in racers]
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


# A slow model.


def test_slow_model():
    part = SlowModel()
    horizon = {"horizon": 4}
    records = [run(part, {"variant": "forward", "constraint": c, **horizon}) for c in "AB"]
    for samples in (10, 1000):
        for variant in ("A", "B", "bounded"):
            budget = {"samples": samples, "runs": 2}
            records.append(run(part, {"variant": variant, **horizon, **budget}))
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
    assert section.meaning.startswith("Vulcan, constraint B: from horizon 5 on")
    assert part.show([*slower, *faster, *rough], True).numbers["crossover, B"] is None
    assert section.claims == []  # none of A
    for constraint, verdicts in (("A", ["holds"]), ("B", [])):
        forward = make("forward", 5, 2.0, 9.0, constraint)
        claims = part.show([forward, make("A", 5, 1.99, 2.0)], False).claims
        assert [claim.verdict.value for claim in claims] == verdicts
    claims = part.show([make("forward", 5, 2.0, 1.0, "A"), make("A", 5, 2.0, 2.0)], False).claims
    assert [claim.verdict.value for claim in claims] == ["does not hold"]


# Exploration.


def test_exploration():
    part = ExplorationMission()
    task = {"constraint": "A", "horizon": 3, "samples": 64}
    record, again, other = (run(part, {**task, "constraint": c}) for c in "AAB")
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


# The figure.


def test_a_curve_is_the_mean_of_its_runs():
    curve = Curve("a", [1, 10], [[0.0, 1.0], [2.0]])
    assert summarise_runs(curve) == ([0.5, 2.0], [0.1, 2.0], [0.9, 2.0])
    axes = plot_convergence([Panel([curve], "samples", "error", up_scale=0.1)])
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == [0.5, 2.0]


def test_a_curve_looks_the_same_in_all_panels():
    one, two = (Curve(name, [1, 2], [[1.0], [2.0]]) for name in "ab")
    axes = plot_convergence([Panel([one, two], "x", "y"), Panel([two], "x", "y", {"end": 2.0})])
    left, right = axes.get_figure(root=True).axes
    assert left.get_lines()[1].get_marker() == right.get_lines()[-1].get_marker()


def test_what_can_not_be_drawn():
    with pytest.raises(OptionError, match="at least one run"):
        Curve("a", [1], [[]])
    with pytest.raises(OptionError, match="at least one panel"):
        plot_convergence([])
    with pytest.raises(OptionError, match="as many axes"):
        plot_convergence([Panel([], "x", "y")], axes=[])
