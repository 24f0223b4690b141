"""LocalVulcan and UCT against forward search and all policies of small random problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.local_tests import KINDS, constraint, sort_choice
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.oracles.brute_force import Plan, admits, enumerate_plans, policy_choice
from vulcan import Outcome, Result, RiskBound
from vulcan.domains import Bandit, TreasureGrid
from vulcan.planning import Status
from vulcan.sampling import incumbent as planner

ENOUGH = 100_000
"""Samples that solve every random problem; the search ends as soon as it is solved."""


SEEDS = st.integers(0, (1 << 64) - 1)

# Under a constant bound the risk alone may be too large, and is refused early.
BOUNDS = bounds() | st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5]).map(vulcan.Constant)


def solve_both(
    table: Table, bound: RiskBound, kind: str, merges: bool, **options: Any
) -> tuple[Result, Result]:
    """Return what LocalVulcan and what forward search say under the same constraint."""
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    tuning = {"default_policy": "random"}
    tuning |= {
        name: options.pop(name) for name in ("default_policy", "complete") if name in options
    }
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.LocalVulcan(local_test=under, **tuning)
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


def require_none_admitted(result: Result, bound: RiskBound) -> None:
    """Require that a result says that the constraint admits no policy.

    Where states merge, it may have one that is within the bound all the same.
    """
    assert "proved" in result.explanation
    if result.policy is None:
        assert result.status is vulcan.planning.Status.INFEASIBLE
        assert result.certificate is None
    else:
        assert result.status is vulcan.planning.Status.DONE
        assert "there is none that constraint" in result.explanation
        assert result.problem.model.merges
        require_certified(result, bound)
        assert result.safe


def find_plan(table: Table, result: Result) -> Plan:
    """Return the very policy of a result among all policies."""
    choice = sort_choice(policy_choice(result.policy), table)
    found = [plan for plan in enumerate_plans(table) if plan.choice == choice]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(
    table=tables(),
    bound=BOUNDS,
    merges=st.booleans(),
    seed=SEEDS,
    complete=st.booleans(),
    default_policy=st.sampled_from(["random", "greedy"]),
)
def test_ends_with_the_reward_of_forward_search(
    kind, table, bound, merges, seed, complete, default_policy
):
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
    assert result.statistics.samples < ENOUGH
    assert result.stopped_by is None
    if exact.policy is None:
        assert exact.status is Status.INFEASIBLE
        require_none_admitted(result, bound)
        assert complete or result.policy is None
        assert kind[0] in result.explanation
        return
    assert result.status is exact.status
    assert result.status is Status.SOLVED
    assert "proved" in result.explanation
    assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    require_certified(result, bound)
    assert result.safe


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    table=tables(),
    bound=BOUNDS,
    merges=st.booleans(),
    samples=st.integers(1, 50),
    first_round=st.sampled_from([1, 2, 1024]),
    seed=SEEDS,
)
def test_every_number_of_samples_gives_a_complete_policy(
    kind, table, bound, merges, samples, first_round, seed
):
    # Completion deletes in the tree that the search goes on in, the more often the earlier it is.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "FIRST_ROUND", first_round)
        result, exact = solve_both(table, bound, kind, merges, samples=samples, seed=seed)
    assert result.statistics.samples <= samples
    if exact.policy is None:
        require_none_admitted(result, bound)
        return
    # Whatever was sampled, completion finds an admissible policy if there is one.
    require_certified(result, bound)
    assert result.safe
    own = find_plan(table, result)
    if not admits(kind, bound, own):
        # Where states merge, the bound itself may decide, and it is less strict.
        assert merges
    elif result.status is Status.SOLVED:
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    else:
        assert result.certificate.reward <= exact.certificate.reward + 1e-12
    if result.status is not Status.SOLVED:
        assert result.status is Status.STOPPED
        assert result.stopped_by == "limit of samples"
        assert result.statistics.samples == samples
    assert result.certificate.reward == pytest.approx(own.reward, abs=1e-12)
    assert result.certificate.risk == pytest.approx(own.risk, abs=1e-12)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    table=tables(),
    bound=BOUNDS,
    merges=st.booleans(),
    samples=st.integers(1, 50) | st.just(200),
    seed=SEEDS,
)
def test_policies_with_a_frontier_are_sound_up_to_it(
    kind, printed, table, bound, merges, samples, seed
):
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.LocalVulcan(local_test=under, as_printed=printed, complete=False)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed)
    if result.status is Status.INFEASIBLE:
        assert exact.policy is None
        return
    if printed:  # it never claims to have proved the best
        assert result.status is Status.STOPPED
        assert result.statistics.samples == samples
        assert "proved" not in result.explanation
    if result.policy is not None:
        require_certified(result, bound)
    if result.safe:
        assert result.certificate.reward <= exact.certificate.reward + 1e-12
        assert admits(kind, bound, find_plan(table, result))


LINEAR = vulcan.Linear(0.002)
UNDER_A = vulcan.solvers.SequenceConstraint()


@pytest.mark.parametrize("kind", [vulcan.LocalVulcan, vulcan.baselines.UCT])
def test_default_policy_that_makes_no_sense(kind: Any) -> None:
    with pytest.raises(
        vulcan.errors.OptionError, match="default_policy must be 'random' or 'greedy', not 'x'"
    ):
        kind(default_policy="x")


@pytest.mark.parametrize("solver", [vulcan.LocalVulcan, vulcan.baselines.UCT])
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


@settings(max_examples=50)
@given(table=tables(), merges=st.booleans(), seed=SEEDS)
def test_uct_finds_the_best_of_all_policies(table: Table, merges: bool, seed: int) -> None:
    best = max(plan.reward for plan in enumerate_plans(table))
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, vulcan.Constant(0.1))
    result = vulcan.solve(problem, vulcan.baselines.UCT(), samples=ENOUGH, seed=seed)
    assert result.status is Status.SOLVED
    assert "proved" in result.explanation
    assert "without regard to risk" in result.explanation
    assert result.certificate.reward == pytest.approx(best, abs=1e-12)
    assert result.certificate.complete
    # The certificate judges it by the bound, which the search never looked at.
    assert result.safe == (result.certificate.risk <= 0.1 + 1e-12)


@pytest.mark.parametrize("solver", [vulcan.LocalVulcan(), vulcan.ForwardSearch()])
def test_no_target_gap_without_upper_bounds(solver: Any) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="no limit 'gap'"):
        vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), solver, gap=0.1)


@pytest.mark.parametrize("exploration", [-1, -1e-9, float("nan")])
@pytest.mark.parametrize(
    "make",
    [vulcan.Vulcan, vulcan.LocalVulcan, vulcan.LocalVulcan.paper, vulcan.baselines.UCT],
    ids=lambda make: make.__qualname__,
)
def test_exploration_that_makes_no_sense(make: Any, exploration: float) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="exploration"):
        make(exploration)


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
    result = vulcan.solve(problem, vulcan.LocalVulcan(complete=False), samples=1)
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
        result = vulcan.solve(problem, vulcan.LocalVulcan(complete=False), samples=1000, seed=seed)
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
        result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=3, seed=seed)
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

    result = vulcan.solve(
        vulcan.Problem(Failing(3), LINEAR), vulcan.LocalVulcan(), samples=9999, seed=1
    )
    if result.status is Status.SOLVED:
        assert round(result.certificate.reward, 4) == 1.4892
        assert result.error is None
    else:
        assert "sensor lost" in str(result.error)


# Seeds, and limits of samples.


def test_same_seed_and_samples_give_the_same_policy() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)

    def run(seed: int, samples: int = 500, **options: Any) -> Result:
        return vulcan.solve(problem, vulcan.LocalVulcan(), samples=samples, seed=seed, **options)

    first = run(1)
    # Neither a time limit that is not reached nor someone who watches makes a difference.
    for again in (run(1), run(1, time_limit=1000.0), run(1, progress=lambda progress: None)):
        assert again.policy == first.policy
        assert again.certificate == first.certificate
        assert again.statistics.histories == first.statistics.histories
        assert again.statistics.evaluations == first.statistics.evaluations
    assert any(run(seed).policy != first.policy for seed in range(2, 6))
    assert run(0, 2000).policy == run(0, 2000).policy


@pytest.mark.parametrize("samples", [1, 2, 1023, 1024, 1025, 5000, 20_000])
@pytest.mark.parametrize(
    "solver", [vulcan.LocalVulcan(), vulcan.LocalVulcan.paper(), vulcan.baselines.UCT()]
)
def test_limit_of_samples_is_exact(samples: int, solver: Any) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(8), LINEAR), solver, samples=samples)
    assert result.status is Status.STOPPED
    assert result.stopped_by == "limit of samples"
    assert result.statistics.samples == samples
    assert f"{samples:,} samples" in result.explanation
    # The paper has cleanup only, which leaves what was not sampled unplanned.
    assert result.certificate.complete or getattr(solver, "as_printed", False)


def test_immediate_risk_of_one() -> None:
    doomed = one_action(Outcome.failure(1.0, 5.0))
    for level, under, expected in (
        (1.0, vulcan.solvers.SurvivalConstraint(), Status.SOLVED),
        (0.99, vulcan.solvers.SurvivalConstraint(), Status.INFEASIBLE),
        (1.0, UNDER_A, Status.DONE),  # within the bound, although A never admits it
    ):
        problem = vulcan.Problem(doomed, vulcan.Constant(level))
        result = vulcan.solve(problem, vulcan.LocalVulcan(local_test=under), samples=10)
        assert result.status is expected
        if result.policy is not None:
            assert (result.certificate.reward, result.certificate.risk) == (5.0, 1.0)


@pytest.mark.parametrize("exploration", [0.0, 1e-9, 1e9])
def test_any_exploration_converges(exploration: float) -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    exact = vulcan.solve(problem, vulcan.ForwardSearch())
    result = vulcan.solve(problem, vulcan.LocalVulcan(exploration), samples=ENOUGH)
    assert result.status is Status.SOLVED
    assert result.policy == exact.policy


SOLVERS = [vulcan.LocalVulcan(), vulcan.baselines.UCT()]


@pytest.mark.parametrize("horizon", [15, 20, 30])
@pytest.mark.parametrize("solver", SOLVERS)
def test_treasure_is_sampled_and_complete(solver: Any, horizon: int) -> None:
    # A history is refused as soon as it has taken more risk than any reward would justify, or not
    # even one sample would end.
    problem = vulcan.Problem(TreasureGrid(horizon), vulcan.Constant(0.15))
    result = vulcan.solve(problem, solver, samples=3000)
    assert result.statistics.samples == 3000
    assert result.certificate.complete
    assert result.safe or isinstance(solver, vulcan.baselines.UCT)
    assert result.certificate.reward > 0
    assert result.statistics.memory < 50_000_000
