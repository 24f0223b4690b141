"""Default policies: random, greedy, and of the user's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.tree_results import (
    ENOUGH,
    SEEDS,
    require_certified,
    require_none_admitted,
    solve_both,
)
from vulcan import Outcome, RiskBound, Status
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


@pytest.mark.parametrize("position", [0, -1])
@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    kind=st.sampled_from(KINDS),
    seed=SEEDS,
    samples=st.sampled_from([5, 50, ENOUGH]),
)
def test_default_policy_of_the_user_changes_no_answer(
    position: int, table: Table, bound: RiskBound, kind: str, seed: int, samples: int
) -> None:
    def choose(history: list[tuple[str, str]], state: Any) -> str:
        assert len(history) < table.horizon
        return list(table.table[state])[position]

    result, exact = solve_both(
        table, bound, kind, True, samples=samples, seed=seed, default_policy=choose
    )
    if exact.policy is None:
        require_none_admitted(result, bound)
        return
    require_certified(result, bound)
    assert result.safe
    if samples == ENOUGH:
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)


def test_default_policy_of_the_user_after_a_dead_end() -> None:
    # All four actions of state 1 are refused. The last choice there, number 3, must not be taken
    # for a choice at the root, which has three actions: edge 3 of the tree is "x" after "a", and
    # walking it from the root forgets the risk of "a".
    refused = [Outcome(0.5, 0.0, 9), Outcome.failure(0.5)]
    table = Table(
        {
            0: {
                "a": [Outcome(0.95, 0.0, 2), Outcome.failure(0.05)],
                "bad": [Outcome(1.0, 0.0, 1)],
                "other": [Outcome(1.0, 0.1, 9)],
            },
            1: dict.fromkeys("pqrs", refused),
            2: {
                "x": [Outcome(0.92, 0.0, 4), Outcome.failure(0.08)],
                "y": [Outcome(1.0, 1.0, 9)],
            },
            4: {"earn": [Outcome(1.0, 10.0, 9)]},
        },
        horizon=3,
    )
    order = {0: "a", 1: "s", 2: "y", 4: "earn"}
    problem = vulcan.Problem(table, vulcan.Constant(0.1))
    best = vulcan.solve(problem).certificate.reward
    solver = vulcan.LocalVulcan(default_policy=lambda history, state: order[state])
    for seed in range(20):
        for samples in (2, 3, 100):
            result = vulcan.solve(problem, solver, samples=samples, seed=seed)
            assert result.safe
            assert result.certificate.reward == pytest.approx(best)


def test_default_policy_that_raises_leaves_the_best_so_far() -> None:
    asked = []

    def choose(history: Any, state: Any) -> str:
        asked.append(state)
        if len(asked) > 8000:
            raise RuntimeError("out of ideas")
        return "stop"

    problem = vulcan.Problem(Bandit(9), LINEAR)
    result = vulcan.solve(problem, vulcan.LocalVulcan(default_policy=choose), samples=100_000)
    assert result.stopped_by == "error in the model"
    assert "out of ideas" in str(result.error)
    assert result.safe


LINEAR = vulcan.Linear(0.002)


def test_default_policy_that_makes_no_sense() -> None:
    with pytest.raises(vulcan.OptionError, match=r"default_policy.*'random', 'greedy'.*'x'"):
        vulcan.LocalVulcan(default_policy="x")  # type: ignore[arg-type]

    def run_uct() -> None:
        solver = vulcan.UCT(default_policy="x")  # type: ignore[arg-type]
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), solver, samples=1)

    with pytest.raises(vulcan.OptionError, match="default_policy"):
        run_uct()


@pytest.mark.parametrize("solver", [vulcan.LocalVulcan, vulcan.UCT])
def test_default_policies(solver: Any) -> None:
    # One sample takes the action of the default policy: greedy always "high". States that merge
    # would be planned as a whole.
    table = Table(
        {
            0: {
                "low": [Outcome(1.0, 1.0, 1)],
                "high": [Outcome(1.0, 2.0, 1)],
                "middle": [Outcome(1.0, 1.5, 1)],
            },
            1: {"on": [Outcome(1.0, 0.0, 1)]},
        },
        horizon=2,
        merges=False,
    )
    problem = vulcan.Problem(table, vulcan.Constant(0))

    def first_actions(default_policy: str) -> set[str]:
        chosen = solver(default_policy=default_policy)
        return {
            vulcan.solve(problem, chosen, samples=1, seed=seed).policy.start().action
            for seed in range(30)
        }

    assert first_actions("greedy") == {"high"}
    assert first_actions("random") == {"low", "high", "middle"}
