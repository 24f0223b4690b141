"""Vulcan against forward search and against all policies of small random problems."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.brute_force import Plan, admits, enumerate_plans, policy_choice
from tests.tables import Table, bounds, one_action, tables
from tests.test_forward_search import KINDS, _sorted_choice, constraint
from vulcan import Outcome, Result, RiskBound, Status
from vulcan.domains import Bandit
from vulcan.solvers import vulcan as planner

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


# --- UCT and the algorithm as printed ----------------------------------------------------------


@settings(max_examples=500)
@given(table=tables(), merges=st.booleans(), seed=SEEDS)
def test_uct_finds_the_best_of_all_policies(table: Table, merges: bool, seed: int) -> None:
    best = max(plan.reward for plan in enumerate_plans(table))
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, vulcan.Constant(0.1))
    result = vulcan.solve(problem, vulcan.UCT(), samples=ENOUGH, seed=seed)
    assert result.status is Status.SOLVED
    assert "proved" in result.explanation
    assert "without regard to risk" in result.explanation
    assert result.certificate.reward == pytest.approx(best, abs=1e-12)
    assert result.certificate.complete
    # The certificate judges it by the bound, which the search never looked at.
    assert result.safe == (result.certificate.risk <= 0.1 + 1e-12)


def test_uct_at_every_bound() -> None:
    rewards = {
        vulcan.solve(vulcan.Problem(Bandit(4), bound), vulcan.UCT(), samples=ENOUGH)
        .certificate.reward
        for bound in (LINEAR, vulcan.Constant(-1.0), vulcan.Constant(1.0))
    }  # fmt: skip
    assert len(rewards) == 1
    assert rewards.pop() > vulcan.solve(vulcan.Problem(Bandit(4), LINEAR)).certificate.reward


@settings(max_examples=200)
@given(table=tables(), bound=bounds(), seed=SEEDS)
def test_paper_never_claims_a_proof_of_the_best(table: Table, bound: RiskBound, seed: int) -> None:
    problem = vulcan.Problem(table, bound)
    result = vulcan.solve(problem, vulcan.Vulcan.paper(), samples=300, seed=seed)
    assert result.status in (Status.STOPPED, Status.INFEASIBLE)
    if result.status is Status.STOPPED:
        assert result.statistics.samples == 300
        assert "proved" not in result.explanation
        require_certified(result, bound)


def test_counted_never_claims_a_proof_under_b_either() -> None:
    problem = vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(1.0))
    result = vulcan.solve(problem, vulcan.Vulcan(counted=True), samples=10)
    assert result.status is Status.STOPPED


@pytest.mark.parametrize("seed", range(3))
def test_paper_converges_on_the_bandit(seed: int) -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    best = vulcan.solve(problem, vulcan.ForwardSearch(UNDER_A)).certificate.reward
    result = vulcan.solve(problem, vulcan.Vulcan.paper(), samples=200_000, seed=seed)
    assert result.status is Status.STOPPED
    assert result.safe
    assert 0.97 * best <= result.certificate.reward <= best + 1e-12


# --- The bandit --------------------------------------------------------------------------------


@pytest.mark.parametrize("under", [UNDER_A, vulcan.SurvivalConstraint()])
@pytest.mark.parametrize("merges", [True, False])
def test_bandit_with_horizon_6(under: Any, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(6, merges=merges), LINEAR)
    exact = vulcan.solve(vulcan.Problem(Bandit(6), LINEAR), vulcan.ForwardSearch(under))
    result = vulcan.solve(problem, vulcan.Vulcan(constraint=under), samples=60_000, seed=1)
    assert result.status is Status.SOLVED
    assert result.statistics.samples < 60_000
    assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    assert result.policy == exact.policy


def test_merging_changes_nothing_but_the_evaluations() -> None:
    merged, unmerged = (
        vulcan.solve(
            vulcan.Problem(Bandit(7, merges=merges), LINEAR), vulcan.Vulcan(), samples=3000
        )
        for merges in (True, False)
    )
    assert merged.policy == unmerged.policy
    assert merged.statistics.histories == unmerged.statistics.histories
    assert merged.statistics.evaluations < unmerged.statistics.evaluations


# --- Seeds, limits of samples, and questions to the model --------------------------------------


def test_same_seed_and_samples_give_the_same_policy() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)

    def run(seed: int, samples: int = 500, **options: Any) -> Result:
        return vulcan.solve(problem, vulcan.Vulcan(), samples=samples, seed=seed, **options)

    first = run(1)
    # Neither a time limit that is not reached nor someone who watches makes a difference.
    for again in (run(1), run(1, time_limit=1000.0), run(1, on_progress=lambda progress: None)):
        assert again.policy == first.policy
        assert again.certificate == first.certificate
        assert again.statistics.histories == first.statistics.histories
        assert again.statistics.evaluations == first.statistics.evaluations
    assert any(run(seed).policy != first.policy for seed in range(2, 6))
    assert run(0, 2000).policy == run(0, 2000).policy


def test_largest_seed() -> None:
    problem = vulcan.Problem(Bandit(5), LINEAR)
    exact = vulcan.solve(problem)
    for seed in (0, 1 << 63, (1 << 64) - 1):
        result = vulcan.solve(problem, vulcan.Vulcan(), samples=ENOUGH, seed=seed)
        assert result.policy == exact.policy


@pytest.mark.parametrize("samples", [1, 2, 1023, 1024, 1025, 5000, 20_000])
@pytest.mark.parametrize("solver", [vulcan.Vulcan(), vulcan.Vulcan.paper(), vulcan.UCT()])
def test_limit_of_samples_is_exact(samples: int, solver: Any) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(8), LINEAR), solver, samples=samples)
    assert result.status is Status.STOPPED
    assert result.stopped_by == "limit of samples"
    assert result.statistics.samples == samples
    assert f"{samples:,} samples" in result.explanation
    assert result.certificate.complete


def count_questions(model: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """Count what the search asks a model; what certificates ask does not count."""
    calls: Counter[Any] = Counter()
    asked, certify = type(model).outcomes, planner.certify
    certifying = False

    def outcomes(self: Any, state: Any, action: Any) -> list[Outcome]:
        calls[state, action] += not certifying
        return asked(self, state, action)

    def certify_uncounted(*arguments: Any, **options: Any) -> Any:
        nonlocal certifying
        certifying = True
        try:
            return certify(*arguments, **options)
        finally:
            certifying = False

    monkeypatch.setattr(type(model), "outcomes", outcomes)
    monkeypatch.setattr(planner, "certify", certify_uncounted)
    return calls


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("solver", [vulcan.Vulcan(), vulcan.Vulcan.paper(), vulcan.UCT()])
def test_search_asks_the_model_once(
    merges: bool, complete: bool, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Bandit(6, merges=merges)
    calls = count_questions(model, monkeypatch)
    problem = vulcan.Problem(model, LINEAR)
    calls.clear()
    result = vulcan.solve(problem, solver, samples=3000, complete=complete)
    assert set(calls.values()) <= {0, 1}
    assert result.statistics.evaluations == calls.total()
    assert result.policy is not None


def test_terminal_root_needs_no_decision() -> None:
    for solver in (vulcan.Vulcan(), vulcan.UCT()):
        problem = vulcan.Problem(Table({0: {}}, 3), vulcan.Constant(0.0))
        result = vulcan.solve(problem, solver, samples=10)
        assert result.status is Status.SOLVED
        assert len(result.policy) == 0
        assert result.certificate.reward == 0
        assert result.safe
    problem = vulcan.Problem(Table({0: {}}, 3), vulcan.Constant(-0.1))
    assert vulcan.solve(problem, vulcan.Vulcan(), samples=10).status is Status.INFEASIBLE


def test_immediate_risk_of_one() -> None:
    doomed = one_action(Outcome.failure(1.0, 5.0))
    for level, under, expected in (
        (1.0, vulcan.SurvivalConstraint(), Status.SOLVED),
        (0.99, vulcan.SurvivalConstraint(), Status.INFEASIBLE),
        (1.0, UNDER_A, Status.INFEASIBLE),
    ):
        problem = vulcan.Problem(doomed, vulcan.Constant(level))
        result = vulcan.solve(problem, vulcan.Vulcan(constraint=under), samples=10)
        assert result.status is expected
        if result.policy is not None:
            assert (result.certificate.reward, result.certificate.risk) == (5.0, 1.0)


def test_start_that_chooses_and_draws() -> None:
    class Drawn(Table):
        def initial_state(self) -> Any:
            return vulcan.Start(
                {
                    "calm": [Outcome(0.5, 0.0, 0), Outcome(0.5, 1.0, 1)],
                    "bold": [Outcome(0.8, 4.0, 1), Outcome.failure(0.2, 1.0)],
                }
            )

    table = Drawn({s: {"go": [Outcome(1.0, 2.0, s)]} for s in (0, 1)}, horizon=2, discount=0.5)
    for level, action, reward in ((0.1, "calm", 3.5), (0.2, "bold", 0.8 * 7 + 0.2)):
        problem = vulcan.Problem(table, vulcan.Constant(level))
        result = vulcan.solve(problem, vulcan.Vulcan(), samples=100)
        assert result.status is Status.SOLVED
        assert result.policy.start().action == action
        assert result.certificate.reward == pytest.approx(reward)


def test_long_horizon() -> None:
    table = Table({0: {"go": [Outcome(0.999, 1.0, 0), Outcome.failure(0.001)]}}, horizon=2000)
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.9)), vulcan.Vulcan(), samples=5)
    assert result.status is Status.SOLVED
    assert result.statistics.samples == 1
    assert len(result.policy) == 2000
    assert result.certificate.risk == pytest.approx(1 - 0.999**2000, abs=1e-12)


@pytest.mark.parametrize("exploration", [0.0, 1e-9, 1e9])
def test_any_exploration_converges(exploration: float) -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    exact = vulcan.solve(problem)
    result = vulcan.solve(problem, vulcan.Vulcan(exploration), samples=ENOUGH)
    assert result.status is Status.SOLVED
    assert result.policy == exact.policy


def test_infinite_exploration_is_refused_or_harmless() -> None:
    flat = [Outcome(0.5, 1.0, 0), Outcome(0.5, 1.0, 1)]
    table = Table({s: {"a": flat, "b": flat} for s in (0, 1)}, horizon=2)
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    try:
        result = vulcan.solve(problem, vulcan.Vulcan(float("inf")), samples=1000)
    except vulcan.OptionError:
        return
    assert result.status is Status.SOLVED
