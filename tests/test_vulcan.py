"""Vulcan against forward search and against all policies of small random problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.brute_force import Plan, admits, enumerate_plans, policy_choice
from tests.tables import Table, bounds, tables
from tests.test_forward_search import KINDS, _sorted_choice, constraint
from vulcan import Outcome, Result, RiskBound, Status
from vulcan.domains import Bandit
from vulcan.solvers import planner

LINEAR = vulcan.Linear(0.002)
UNDER_A = vulcan.SequenceConstraint()
ENOUGH = 100_000
"""Samples that solve every random problem; the search ends as soon as it is solved."""

SEEDS = st.integers(0, (1 << 64) - 1)


def solve_both(
    table: Table, bound: RiskBound, kind: str, merges: bool, **options: Any
) -> tuple[Result, Result]:
    """Return what Vulcan and what forward search say under the same constraint."""
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    default_policy = options.pop("default_policy", "random")
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.Vulcan(constraint=under, default_policy=default_policy)
    return vulcan.solve(problem, solver, **options), exact


def require_certified(result: Result, bound: RiskBound) -> None:
    """Require that a policy has a certificate that passes, and says whether it is complete."""
    certificate, policy = result.certificate, result.policy
    assert policy is not None
    assert certificate is not None
    again = vulcan.certify(result.problem, policy)
    assert again == certificate
    assert certificate.passes
    assert certificate.risk <= bound(float(certificate.reward)) + 1e-12
    assert certificate.complete == policy.complete
    assert result.safe == policy.complete
    assert (certificate.frontier > 0) == (not policy.complete)


# --- Convergence -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=500)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    seed=SEEDS,
    complete=st.booleans(),
    default_policy=st.sampled_from(["random", "greedy"]),
)
def test_ends_with_the_reward_of_forward_search(
    kind: str,
    table: Table,
    bound: RiskBound,
    merges: bool,
    seed: int,
    complete: bool,
    default_policy: str,
) -> None:
    result, exact = solve_both(
        table,
        bound,
        kind,
        merges,
        samples=ENOUGH,
        seed=seed,
        complete=complete,
        default_policy=default_policy,
    )
    assert result.status is exact.status
    assert result.statistics.samples < ENOUGH
    assert result.stopped_by is None
    if exact.policy is None:
        assert result.status is Status.INFEASIBLE
        assert result.policy is None
        assert result.certificate is None
        assert "proved" in result.explanation
        assert kind[0] in result.explanation
        return
    assert result.status is Status.SOLVED
    assert "proved" in result.explanation
    assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    require_certified(result, bound)
    assert result.safe


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=250)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    samples=st.integers(1, 50),
    first_round=st.sampled_from([1, 2, 1024]),
    seed=SEEDS,
)
def test_every_number_of_samples_gives_a_complete_admissible_policy(
    kind: str,
    table: Table,
    bound: RiskBound,
    merges: bool,
    samples: int,
    first_round: int,
    seed: int,
) -> None:
    # Completion deletes in the tree that the search goes on in, the more often the earlier it is.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "FIRST_ROUND", first_round)
        result, exact = solve_both(table, bound, kind, merges, samples=samples, seed=seed)
    assert result.statistics.samples <= samples
    if exact.policy is None:
        assert result.status is Status.INFEASIBLE
        assert result.policy is None
        return
    # Whatever was sampled, completion finds an admissible policy if there is one.
    require_certified(result, bound)
    assert result.safe
    assert result.certificate.reward <= exact.certificate.reward + 1e-12
    if result.status is Status.SOLVED:
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    else:
        assert result.status is Status.STOPPED
        assert result.stopped_by == "limit of samples"
        assert result.statistics.samples == samples
    own = find_plan(table, result)
    assert admits(kind, bound, own)
    assert result.certificate.reward == pytest.approx(own.reward, abs=1e-12)
    assert result.certificate.risk == pytest.approx(own.risk, abs=1e-12)


def find_plan(table: Table, result: Result) -> Plan:
    """Return the very policy of a result among all policies."""
    choice = _sorted_choice(policy_choice(result.policy), table)
    found = [plan for plan in enumerate_plans(table) if plan.choice == choice]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=250)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    samples=st.integers(1, 50),
    seed=SEEDS,
)
def test_incomplete_policies_satisfy_the_bound_up_to_their_frontier(
    kind: str,
    counted: bool,
    table: Table,
    bound: RiskBound,
    merges: bool,
    samples: int,
    seed: int,
) -> None:
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    solver = vulcan.Vulcan(constraint=constraint(kind, model), counted=counted)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed, complete=False)
    if result.policy is None:
        return
    require_certified(result, bound)
    if result.safe:
        assert admits(kind, bound, find_plan(table, result))


@settings(max_examples=250)
@given(table=tables(), bound=bounds(), kind=st.sampled_from(KINDS), seed=SEEDS)
def test_counted_says_infeasible_only_where_it_is(
    table: Table, bound: RiskBound, kind: str, seed: int
) -> None:
    model = replace(table, calls={})
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.Vulcan(constraint=under, counted=True)
    result = vulcan.solve(problem, solver, samples=200, seed=seed)
    if exact.policy is None:
        assert result.status is Status.INFEASIBLE
        return
    require_certified(result, bound)
    assert result.safe
    assert result.certificate.reward <= exact.certificate.reward + 1e-12
    assert admits(kind, bound, find_plan(table, result))


# --- Default policies of the user, and upper bounds ---------------------------------------------


@pytest.mark.parametrize("position", [0, -1])
@settings(max_examples=300)
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
        assert result.status is Status.INFEASIBLE
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
    solver = vulcan.Vulcan(default_policy=lambda history, state: order[state])
    for seed in range(20):
        for samples in (2, 3, 100):
            result = vulcan.solve(problem, solver, samples=samples, seed=seed)
            assert result.safe
            assert result.certificate.reward == pytest.approx(best)


@dataclass
class Bounded(Table):
    """A table that bounds the reward still to come: by the best without regard to risk."""

    looseness: float = 0.0

    def reward_to_go_bound(self, state: Any, step: int) -> float:
        return self._best(self._last(state), step) + self.looseness

    def _best(self, state: Any, step: int) -> float:
        actions = self.table.get(state, {})
        if step == self.horizon or not actions:
            return 0.0
        return max(
            sum(
                o.probability
                * (o.reward + (0 if o.fails else self.discount * self._best(o.state, step + 1)))
                for o in outcomes
            )
            for outcomes in actions.values()
        )


@settings(max_examples=500)
@given(
    table=tables(),
    bound=bounds(),
    kind=st.sampled_from(KINDS),
    merges=st.booleans(),
    looseness=st.sampled_from([1e-9, 0.1, 10.0]),
    seed=SEEDS,
    samples=st.sampled_from([1, 20, ENOUGH]),
)
def test_upper_bounds_change_no_answer(
    table: Table,
    bound: RiskBound,
    kind: str,
    merges: bool,
    looseness: float,
    seed: int,
    samples: int,
) -> None:
    model = Bounded(table.table, table.horizon, table.discount, merges=merges, looseness=looseness)
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.Vulcan(constraint=under, bounded=True)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed)
    if exact.policy is None:
        assert result.status is Status.INFEASIBLE
        return
    require_certified(result, bound)
    assert result.safe
    assert result.certificate.reward <= exact.certificate.reward + 1e-12
    if samples == ENOUGH or result.status is Status.SOLVED:
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)


# --- What is proved, and what is not -----------------------------------------------------------


def test_cleanup_that_finds_nothing_proves_nothing() -> None:
    # One sample; the outcome that it missed would be refused if its history ended there.
    table = Table(
        {
            0: {"go": [Outcome(0.45, 0, 1), Outcome(0.45, 0, 2), Outcome.failure(0.1)]},
            1: {"earn": [Outcome(1.0, 10.0, 3)]},
            2: {"earn": [Outcome(1.0, 10.0, 3)]},
        },
        horizon=2,
    )
    problem = vulcan.Problem(table, vulcan.Linear(0.1))
    assert vulcan.solve(problem).status is Status.SOLVED
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=1, complete=False)
    assert result.status is Status.STOPPED
    assert "proved" not in result.explanation


def test_rounds_of_cleanup_do_not_harm_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same, where something safe and poor is left: a later "solved" must still be the best.
    table = Table(
        {
            0: {
                "rich": [Outcome(0.45, 0, 1), Outcome(0.45, 0, 2), Outcome.failure(0.1)],
                "poor": [Outcome(1.0, 0.0, 4)],
            },
            1: {"earn": [Outcome(1.0, 10.0, 3)]},
            2: {"earn": [Outcome(1.0, 10.0, 3)]},
            4: {"earn": [Outcome(1.0, 0.5, 3)]},
        },
        horizon=2,
    )
    monkeypatch.setattr(planner, "FIRST_ROUND", 1)
    problem = vulcan.Problem(table, vulcan.Linear(0.1))
    for seed in range(10):
        result = vulcan.solve(problem, vulcan.Vulcan(), samples=1000, seed=seed, complete=False)
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(9.0)


def test_solved_by_its_own_completion_is_settled_once_more() -> None:
    # Completion deletes b1, which solves the tree with a2, after a1 had been chosen.
    table = Table(
        {
            0: {"a1": [Outcome(1.0, 0.0, 1)], "a2": [Outcome(1.0, 4.0, 9)]},
            1: {
                "b1": [Outcome(0.9, 0.0, 2), Outcome(0.1, 0.0, 3)],
                "b2": [Outcome(1.0, 3.0, 9)],
            },
            2: {"c": [Outcome(1.0, 6.0, 9)]},
            3: {"c": [Outcome(0.9, 0.0, 9), Outcome.failure(0.1)]},
        },
        horizon=3,
    )
    problem = vulcan.Problem(table, vulcan.Constant(0.05))
    for seed in range(6):
        result = vulcan.solve(problem, vulcan.Vulcan(), samples=3, seed=seed)
        if result.status is Status.SOLVED:
            assert result.certificate.reward == 4
            assert result.stopped_by is None


@pytest.mark.parametrize("after", range(60, 130, 3))
def test_nothing_is_proved_that_was_not_certified(after: int) -> None:
    class Failing(Bandit):
        calls = 0

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            Failing.calls += 1
            if Failing.calls > after:
                raise RuntimeError("sensor lost")
            return super().outcomes(state, action)

    result = vulcan.solve(vulcan.Problem(Failing(3), LINEAR), vulcan.Vulcan(), samples=9999, seed=1)
    if result.status is Status.SOLVED:
        assert round(result.certificate.reward, 4) == 1.4892
        assert result.error is None
    else:
        assert "sensor lost" in str(result.error)


def test_default_policy_that_raises_leaves_the_best_so_far() -> None:
    asked = []

    def choose(history: Any, state: Any) -> str:
        asked.append(state)
        if len(asked) > 3000:
            raise RuntimeError("out of ideas")
        return "stop"

    problem = vulcan.Problem(Bandit(9), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(default_policy=choose), samples=100_000)
    assert result.stopped_by == "error in the model"
    assert "out of ideas" in str(result.error)
    assert result.safe
