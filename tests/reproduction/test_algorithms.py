"""The paper's algorithms in plain Python are the oracle of the kernels: the same seed, samples,
values and policies.

Here rewards are nonnegative, Δ is nonnegative from 0 on, and no action fails for sure. Elsewhere
the library tests more than the paper prints (docs/theory/proofs.md, constraint A).
"""

from __future__ import annotations

import math
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vulcan
from reproduction import algorithms
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.brute_force import admits, enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.numerics import END, UNPLANNED
from vulcan.planning import Status

SIMPLE = [0.0, 0.1, 0.5, 1.0, 3.0]  # with many ties
UNEVEN = [k / 7919 for k in range(5000)]  # with none: roundings decide nothing

simple_tables = tables(SIMPLE, sure_failure=False).filter(lambda table: table.table[0])
uneven_tables = tables(UNEVEN, sure_failure=False).filter(lambda table: table.table[0])
nonnegative_bounds = bounds().filter(lambda bound: bound(0.0) >= 0)


def follow(problem: vulcan.Problem, policy: dict[algorithms.History, str]) -> tuple[dict, set, set]:
    """Return what a policy of the oracle takes where it leads, its frontier, and its ends."""
    planned, frontier, ended = {}, set(), set()
    reached = [algorithms.Tree(problem).root]
    for node in reached:
        if node.outcome.fails:
            continue
        if node.ends:
            ended.add(node.history)
        elif node.history in policy:
            planned[node.history] = policy[node.history]
            reached += node.actions[policy[node.history]].nodes
        else:
            frontier.add(node.history)
    return planned, frontier, ended


def unroll(policy: vulcan.Policy) -> tuple[dict, set, set]:
    """Return the same of a policy of the library."""
    planned, frontier, ended = {}, set(), set()
    reached = [((), 0)]
    for history, node in reached:
        label = planned[history] = policy.labels[policy.action[node]]
        for k, row in enumerate(policy.outcomes(node)):
            after, child = (*history, (label, k)), int(policy.child[row])
            if child >= 0:
                reached.append((after, child))
            elif child == UNPLANNED:
                frontier.add(after)
            elif child == END:
                ended.add(after)
    return planned, frontier, ended


def assert_same_policy(
    problem: vulcan.Problem, policy: dict[algorithms.History, str], other: vulcan.Policy
) -> None:
    planned, frontier, ended = follow(problem, policy)
    other_planned, other_frontier, other_ended = unroll(other)
    assert other_planned == planned
    # What was never sampled was never asked either: the library can't tell that it has ended.
    assert other_frontier - ended == frontier
    assert other_ended <= ended


# --- VulcanFS ----------------------------------------------------------------------------------


def assert_same_forward_search(problem: vulcan.Problem) -> None:
    value, policy = algorithms.forward_search(problem)
    result = vulcan.solve(problem, vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint()))
    if value == -math.inf:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(value, abs=1e-9)
    assert_same_policy(problem, policy, result.policy)


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bound", [vulcan.Linear(0.002), vulcan.Constant(0.0012)], ids=str)
def test_forward_search_on_the_bandit(horizon: int, merges: bool, bound: vulcan.RiskBound) -> None:
    assert_same_forward_search(vulcan.Problem(Bandit(horizon, merges), bound))


@given(table=uneven_tables, bound=nonnegative_bounds)
def test_forward_search_on_random_models(table: Table, bound: vulcan.RiskBound) -> None:
    assert_same_forward_search(vulcan.Problem(table, bound))


@given(table=simple_tables, bound=nonnegative_bounds)
def test_forward_search_finds_the_best_of_all_policies(table, bound):
    rewards = [plan.reward for plan in enumerate_plans(table) if admits("A", bound, plan)]
    value, _ = algorithms.forward_search(vulcan.Problem(table, bound))
    assert value == pytest.approx(max(rewards, default=-math.inf), abs=1e-9)


# --- Vulcan, Sample and Cleanup ----------------------------------------------------------------


def assert_same_search(
    problem: vulcan.Problem, exploration: float, samples: int, seed: int
) -> None:
    value, policy, _ = algorithms.vulcan(problem, exploration, samples, seed)
    solver = vulcan.LocalVulcan.paper(exploration)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed)
    if result.status is Status.INFEASIBLE or value == -math.inf:
        assert (value, result.policy) == (-math.inf, None)
        return
    assert result.status is Status.STOPPED
    assert result.statistics.samples == samples
    assert result.estimate == pytest.approx(value, abs=1e-9)
    assert_same_policy(problem, policy, result.policy)


@pytest.mark.parametrize("merges", [True, False])  # without, the bandit is compiled
@pytest.mark.parametrize("exploration", [0.0, 0.4, math.sqrt(2)])
@pytest.mark.parametrize("samples", [1, 10, 200, 1100])  # after 1024 there is a round
@pytest.mark.parametrize("horizon", [3, 5])
def test_vulcan_on_the_bandit(horizon: int, samples: int, exploration: float, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(horizon, merges), vulcan.Linear(0.002))
    for seed in (0, 1, 2**64 - 1):
        assert_same_search(problem, exploration, samples, seed)


@pytest.mark.parametrize("table_strategy", [simple_tables, uneven_tables], ids=["simple", "uneven"])
def test_vulcan_on_random_models(table_strategy: st.SearchStrategy[Table]) -> None:
    @given(
        table=table_strategy,
        bound=nonnegative_bounds,
        exploration=st.sampled_from([0.0, 0.4, 1.4, 10.0]),
        samples=st.integers(1, 60),
        seed=st.integers(0, 2**64 - 1),
    )
    def compare(
        table: Table, bound: vulcan.RiskBound, exploration: float, samples: int, seed: int
    ) -> None:
        assert_same_search(vulcan.Problem(table, bound), exploration, samples, seed)

    compare()


@pytest.mark.parametrize("kind", ["drawn", "chosen"])
def test_vulcan_with_an_initial_action(kind: str) -> None:
    class Begun(Bandit):
        def initial_state(self) -> vulcan.Start:
            cold, warm = (0,) * 6, (0, 2, 0, 0, 0, 0)
            if kind == "chosen":
                return vulcan.Start.choose({"cold": cold, "warm": warm})
            return vulcan.Start.draw(
                [Outcome(0.7, 0.0, cold, label="cold"), Outcome(0.3, 0.0, warm, label="warm")]
            )

    problem = vulcan.Problem(Begun(3), vulcan.Linear(0.002))
    assert_same_forward_search(problem)
    for samples in (1, 10, 200):
        assert_same_search(problem, 0.4, samples, 5)


# --- Where the library departs from what is printed, without reason ----------------------------


def gamble(rare: float) -> Table:
    """Return a model in which "dare" passes wherever it is played to the end.

    But until the end nothing is earned for its risk. So Cleanup deletes it where its rare outcome
    "late" was never sampled.
    """
    earn = {"earn": [Outcome(1.0, 10.0, "end")]}
    dare = [Outcome(0.98 - rare, 0.0, "soon"), Outcome(rare, 0.0, "late"), Outcome.failure(0.02)]
    return Table({"start": {"dare": dare}, "soon": earn, "late": earn}, 2, start="start")


def test_the_estimate_is_the_value_after_cleanup() -> None:
    table = gamble(1e-9)
    table.table["start"]["rest"] = [Outcome(1.0, 0.1, "end")]
    problem = vulcan.Problem(table, vulcan.Linear(0.1))
    value, policy, _ = algorithms.vulcan(problem, 1.0, 10, 0)
    result = vulcan.solve(problem, vulcan.LocalVulcan.paper(1.0), samples=10, seed=0)
    assert value == pytest.approx(0.1)
    assert_same_policy(problem, policy, result.policy)
    assert result.certificate.reward == pytest.approx(0.1)
    assert result.estimate == pytest.approx(value)


@pytest.mark.parametrize("certify_early", [False, True])
def test_no_policy_of_an_earlier_round_is_returned(certify_early, monkeypatch):
    share = math.inf if certify_early else 0.0
    monkeypatch.setattr("vulcan.sampling.incumbent.SHARE_OF_CERTIFYING", share)
    table = gamble(1e-9)
    way = [Outcome(0.999, 1.0, "plain"), Outcome(0.001, 1.0, "start")]
    table.table |= {"begin": {"go": way}, "plain": {"wait": [Outcome(1.0, 0.0, "end")]}}
    table.horizon, table.start = 3, "begin"
    problem = vulcan.Problem(table, vulcan.Linear(0.01))
    seed = 2  # "start" is sampled, but not among the first 1024, after which there is a round
    values = [algorithms.vulcan(problem, 1.0, samples, seed)[0] for samples in (1024, 2000)]
    assert values == [pytest.approx(1.0), -math.inf]
    result = vulcan.solve(problem, vulcan.LocalVulcan.paper(1.0), samples=2000, seed=seed)
    assert result.policy is None


def test_a_start_without_actions_is_worth_nothing() -> None:
    problem = vulcan.Problem(Table({0: {}}), vulcan.Constant(0.0))
    assert algorithms.forward_search(problem) == (0.0, {})
    assert algorithms.vulcan(problem, 1.0, 3, 0)[:2] == (0.0, {})
    result = vulcan.solve(problem, vulcan.LocalVulcan.paper(1.0), samples=3, seed=0)
    assert (result.estimate, len(result.policy)) == (0.0, 0)


# --- Lines -------------------------------------------------------------------------------------

LINES = {(algorithm, k + 1) for algorithm, n in enumerate((11, 6, 24, 20), 1) for k in range(n)}
PAGE = Path(__file__).parents[2] / "docs" / "theory" / "algorithms.md"


def read_lines(text: str) -> set[tuple[int, int]]:
    """Return the lines that a text names, such as "3.2, 3.4 to 3.6"."""
    found = set()
    for span in text.split(", "):
        first, _, last = span.partition(" to ")
        algorithm, line = map(int, first.split("."))
        end = int((last or first).split(".")[1])
        found |= {(algorithm, number) for number in range(line, end + 1)}
    return found


def test_every_line_of_the_paper_is_there() -> None:
    source = Path(algorithms.__file__).read_text(encoding="utf-8")
    assert source.count("\n") < 200
    comments = re.findall(r"  # (\d\.\d.*)$", source, re.MULTILINE)
    assert set().union(*map(read_lines, comments)) == LINES


def test_the_page_has_every_line_and_names_what_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d\.\d[^|]*) \|[^|]*\|([^|]*)\|([^|]*)\|", page, re.MULTILINE)
    lines = [line for numbers, _, _ in rows for line in read_lines(numbers)]
    assert sorted(lines) == sorted(LINES)
    for _, plain, compiled in rows:
        for name in re.findall(r"`(.+?)`", plain):
            assert attrgetter(name)(algorithms)
        for name in re.findall(r"`(.+?)`", compiled):
            module, function = name.split(".")
            assert hasattr(import_module(f"vulcan.kernels.{module}"), function), name
