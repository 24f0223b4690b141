"""What a search knew goes on below a history, and nothing of it is asked again."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, Run
from vulcan.domains import Bandit, Exploration
from vulcan.model.reader import ModelReader
from vulcan.planning.rest import Rest
from vulcan.sentinels import NONE
from vulcan.solvers.knowledge import Knowledge


def draw_table(seed: int, horizon: int, discount: float, merges: bool) -> Table:
    random, rows = Random(seed), {}
    for state in range(4):
        rows[state] = {}
        for action in "abc":
            risk, share = random.choice([0.0, 0.03, 0.1]), random.choice([0.3, 0.5, 0.8])
            one, other = random.sample(range(4), 2)
            rows[state][action] = [
                Outcome((1 - risk) * share, random.random(), one, "one"),
                Outcome((1 - risk) * (1 - share), random.random(), other, "other"),
                Outcome.failure(risk, random.random()),
            ]
    return Table(rows, horizon, discount, merges=merges)


def list_below(known: Knowledge, node: int, weight: float) -> list[Any]:
    """Return all that a tree knows from a node on, with rewards and values as seen from there."""
    tree, listed = known.tree, []
    level = tree.nodes["level"][node]
    waiting = [node]
    while waiting:
        number = waiting.pop()
        here = tree.nodes[number]
        first, count = int(here["first_edge"]), int(here["edge_count"])
        listed.append(
            (
                known.graph.state_object(int(here["state"])),
                *(int(here[name]) for name in ("visits", "solved")),
                int(here["level"] - level),
                *(tree.node_values[number] / weight if here["visits"] else ()),
            )
        )
        if first == NONE:
            continue
        for number in range(first, first + count):
            edge = tree.edges[number]
            listed.append(
                (
                    *(int(edge[name]) for name in ("visits", "solved", "children")),
                    *(float(edge["reward"]) / weight, float(edge["risk"])),
                    *(tree.edge_values[number] / weight if edge["visits"] else ()),
                )
            )
            if edge["first_child"] != NONE:
                begin = int(edge["first_child"])
                waiting += range(begin, begin + int(edge["children"]))
    return listed


@pytest.mark.parametrize("discount", [1.0, 0.8])
def test_a_tree_that_is_cut_is_what_it_was_below_the_history(discount: float) -> None:
    model = draw_table(3, 5, discount, merges=False)
    problem = vulcan.Problem(model, 0.1)
    whole = vulcan.solve(problem, vulcan.Vulcan(), samples=5000, keep=True).knowledge
    path: list[tuple[str, int]] = []
    state, node, known = model.initial_state(), 0, whole
    for step, (action, position) in enumerate([("b", 1), ("c", 0)], 1):
        state = model.outcomes(state, action)[position].state
        path.append((action, position))
        reader = ModelReader(Rest(ModelReader(model), state, step))
        known = known.begin_at(reader, path)  # one step further than the last time
        edge = whole.tree.nodes["first_edge"][node] + "abc".index(action)
        node = int(whole.tree.edges["first_child"][edge]) + position
        assert known.level == step
        assert known.graph.state_object(0) == state
        assert known.tree.prices == pytest.approx(whole.tree.prices / discount**step)
        expected, found = list_below(whole, node, discount**step), list_below(known, 0, 1.0)
        assert len(expected) == len(found) > 20
        for one, other in zip(expected, found, strict=True):
            start = isinstance(one[0], tuple)
            assert not start or one[0] == other[0]
            assert one[start:] == pytest.approx(other[start:], rel=1e-5)


def begin(model: Any, keep: bool, **limits: Any) -> Run:
    """Return a run after its first step, of a plan that a tree search made."""
    problem = vulcan.Problem(model, "0.05 * x")
    run = vulcan.solve(problem, vulcan.Vulcan(), keep=keep, **limits).policy.start()
    run.observe(0)
    return run


def test_nothing_that_a_search_asked_is_asked_again_by_the_next() -> None:
    counts = {}
    for keep in (True, False):
        model = draw_table(5, 6, 0.9, merges=False)
        run = begin(model, keep, samples=4000)
        asked = set(model.calls)
        model.calls.clear()
        done = vulcan.replan(run, vulcan.Vulcan(), samples=1)
        # For its fingerprint a model is asked where it begins.
        ends = (model.initial_state(), run.state)
        again = {
            pair: count
            for pair, count in model.calls.items()
            if pair in asked and pair[0] not in ends
        }
        model.calls.clear()
        vulcan.certify(done.result.problem, done.result.policy)
        # A certificate asks once for itself.
        counts[keep] = sum(again.values()) - sum(model.calls.get(pair, 0) for pair in again)
    assert counts[True] == 0
    assert counts[False] > 50


def test_a_search_goes_on_with_the_samples_below_the_history() -> None:
    run = begin(Exploration(map="wide", horizon=5), True, samples=4000)
    reader = ModelReader(Rest(run.reader, run.state, 1))
    inherited = run.knowledge.begin_at(reader, run.path)
    done = vulcan.replan(run, vulcan.Vulcan(), samples=1000)
    assert done.result.statistics.samples == 1000
    below = 1000 + int(inherited.tree.nodes["visits"][0])
    assert 1050 < below < 5000
    assert f"after {below:,} samples" in done.result.explanation
    assert done.result.statistics.histories > len(inherited.tree.nodes)


@pytest.mark.parametrize(
    "model", [Exploration(map="narrow", horizon=5), draw_table(7, 6, 0.9, merges=False)]
)
def test_the_same_seed_gives_the_same_policy_from_the_same_knowledge(model: Any) -> None:
    first, second = (begin(model, True, samples=3000) for _ in range(2))
    ends = [vulcan.replan(run, vulcan.Vulcan(), samples=3000) for run in (first, second)]
    assert ends[0].result.policy == ends[1].result.policy
    assert (ends[0].before, ends[0].after) == (ends[1].before, ends[1].after)


def test_two_runs_of_one_policy_do_not_disturb_each_other() -> None:
    model = Exploration(map="wide", horizon=5)
    policy = begin(model, True, samples=3000).whole
    plans = []
    for others in ((), (1, 2)):
        for k in (*others, 0):
            run = policy.start()
            run.observe(k)
            done = vulcan.replan(run, vulcan.Vulcan(), samples=2000)
        plans.append(done.result.policy)
    assert plans[0] == plans[1]


def test_where_states_merge_what_the_model_said_is_kept() -> None:
    model = draw_table(9, 8, 0.9, merges=True)
    run = vulcan.solve(vulcan.Problem(model, "0.05 * x"), keep=True).policy.start()
    run.observe(0)
    done = vulcan.replan(run)
    assert isinstance(run.knowledge, Knowledge)
    run.observe(0)
    model.calls.clear()
    done = vulcan.replan(run)
    again = dict(model.calls)
    model.calls.clear()
    vulcan.certify(done.result.problem, done.result.policy)
    ends = (model.initial_state(), run.state)  # where it is asked for its fingerprint
    assert len(again) > 5
    assert all(model.calls[pair] == again[pair] for pair in again if pair[0] not in ends)


def test_a_run_beyond_the_tree_and_one_that_left_its_plan_begin_anew() -> None:
    model = draw_table(11, 5, 1.0, merges=False)
    run = begin(model, True, samples=1)
    while run.step < 4:
        run.observe(0)
    assert vulcan.replan(run, vulcan.Vulcan(), samples=10).after is not None
    run = begin(model, True, samples=100)
    run.leave((0, "a", "one", 3))
    assert run.knowledge.begin_at(ModelReader(Rest(run.reader, run.state, 2)), run.path) is None
    assert vulcan.replan(run, samples=100).changed


def test_without_being_asked_nothing_is_kept() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(3), "0.002 * x"))
    assert result.knowledge is None
    assert result.policy.start().knowledge is None
