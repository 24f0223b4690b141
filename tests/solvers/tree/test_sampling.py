"""LocalVulcan and UCT on the bandit and on small examples: seeds, samples and what is asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import vulcan
from tests.helpers.plain_models import PlainBandit
from tests.helpers.tables import Table, one_action
from tests.helpers.tree_results import ENOUGH
from vulcan import Outcome, Result, Status
from vulcan.domains import Bandit
from vulcan.solvers.tree import rounds as planner

LINEAR = vulcan.Linear(0.002)
UNDER_A = vulcan.SequenceConstraint()


# The bandit.


@pytest.mark.parametrize("under", [UNDER_A, vulcan.SurvivalConstraint()])
@pytest.mark.parametrize("merges", [True, False])
def test_bandit_with_horizon_6(under: Any, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(6, merges=merges), LINEAR)
    exact = vulcan.solve(vulcan.Problem(Bandit(6), LINEAR), vulcan.ForwardSearch(under))
    result = vulcan.solve(problem, vulcan.LocalVulcan(constraint=under), samples=60_000, seed=1)
    assert result.status is Status.SOLVED
    assert result.statistics.samples < 60_000
    if merges:
        # A round before the end found a policy that is within the bound, but not admitted.
        assert result.certificate.reward > exact.certificate.reward
        assert "better than any policy" in result.explanation
        assert result.safe
    else:
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
        assert result.policy == exact.policy


def test_merging_changes_evaluations_and_completion_alone() -> None:
    merged, unmerged = (
        vulcan.solve(
            vulcan.Problem(Bandit(7, merges=merges), LINEAR), vulcan.LocalVulcan(), samples=3000
        )
        for merges in (True, False)
    )
    assert merged.estimate == unmerged.estimate
    assert merged.certificate.reward >= unmerged.certificate.reward
    assert merged.statistics.histories == unmerged.statistics.histories
    assert merged.statistics.evaluations < unmerged.statistics.evaluations


# Seeds, limits of samples, and questions to the model.


def test_same_seed_and_samples_give_the_same_policy() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)

    def run(seed: int, samples: int = 500, **options: Any) -> Result:
        return vulcan.solve(problem, vulcan.LocalVulcan(), samples=samples, seed=seed, **options)

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
    problem = vulcan.Problem(Bandit(5, merges=False), LINEAR)
    exact = vulcan.solve(problem, vulcan.ForwardSearch())
    for seed in (0, 1 << 63, (1 << 64) - 1):
        result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=ENOUGH, seed=seed)
        assert result.policy == exact.policy


@pytest.mark.parametrize("samples", [1, 2, 1023, 1024, 1025, 5000, 20_000])
@pytest.mark.parametrize("solver", [vulcan.LocalVulcan(), vulcan.LocalVulcan.paper(), vulcan.UCT()])
def test_limit_of_samples_is_exact(samples: int, solver: Any) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(8), LINEAR), solver, samples=samples)
    assert result.status is Status.STOPPED
    assert result.stopped_by == "limit of samples"
    assert result.statistics.samples == samples
    assert f"{samples:,} samples" in result.explanation
    # The paper has cleanup only, which leaves what was not sampled unplanned.
    assert result.certificate.complete or getattr(solver, "as_printed", False)


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
@pytest.mark.parametrize("solver", [vulcan.LocalVulcan(), vulcan.LocalVulcan.paper(), vulcan.UCT()])
def test_search_asks_the_model_once(
    merges: bool, complete: bool, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = PlainBandit(5, merges=merges)
    calls = count_questions(model, monkeypatch)
    problem = vulcan.Problem(model, LINEAR)
    calls.clear()
    result = vulcan.solve(problem, solver, samples=1000, complete=complete)
    assert set(calls.values()) <= {0, 1}
    assert result.statistics.evaluations == calls.total()
    assert result.policy is not None


def test_terminal_root_needs_no_decision() -> None:
    for solver in (vulcan.LocalVulcan(), vulcan.UCT()):
        problem = vulcan.Problem(Table({0: {}}, 3), vulcan.Constant(0.0))
        result = vulcan.solve(problem, solver, samples=10)
        assert result.status is Status.SOLVED
        assert len(result.policy) == 0
        assert result.certificate.reward == 0
        assert result.safe
    problem = vulcan.Problem(Table({0: {}}, 3), vulcan.Constant(-0.1))
    assert vulcan.solve(problem, vulcan.LocalVulcan(), samples=10).status is Status.INFEASIBLE


def test_immediate_risk_of_one() -> None:
    doomed = one_action(Outcome.failure(1.0, 5.0))
    for level, under, expected in (
        (1.0, vulcan.SurvivalConstraint(), Status.SOLVED),
        (0.99, vulcan.SurvivalConstraint(), Status.INFEASIBLE),
        (1.0, UNDER_A, Status.DONE),  # within the bound, although A never admits it
    ):
        problem = vulcan.Problem(doomed, vulcan.Constant(level))
        result = vulcan.solve(problem, vulcan.LocalVulcan(constraint=under), samples=10)
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
        result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=100)
        assert result.status is Status.SOLVED
        assert result.policy.start().action == action
        assert result.certificate.reward == pytest.approx(reward)


def test_long_horizon() -> None:
    table = Table({0: {"go": [Outcome(0.999, 1.0, 0), Outcome.failure(0.001)]}}, horizon=2000)
    result = vulcan.solve(
        vulcan.Problem(table, vulcan.Constant(0.9)), vulcan.LocalVulcan(), samples=5
    )
    assert result.status is Status.SOLVED
    assert result.statistics.samples == 1
    assert len(result.policy) == 2000
    assert result.certificate.risk == pytest.approx(1 - 0.999**2000, abs=1e-12)


@pytest.mark.parametrize("exploration", [0.0, 1e-9, 1e9])
def test_any_exploration_converges(exploration: float) -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    exact = vulcan.solve(problem, vulcan.ForwardSearch())
    result = vulcan.solve(problem, vulcan.LocalVulcan(exploration), samples=ENOUGH)
    assert result.status is Status.SOLVED
    assert result.policy == exact.policy


def test_infinite_exploration_is_refused_or_harmless() -> None:
    flat = [Outcome(0.5, 1.0, 0), Outcome(0.5, 1.0, 1)]
    table = Table({s: {"a": flat, "b": flat} for s in (0, 1)}, horizon=2)
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    try:
        result = vulcan.solve(problem, vulcan.LocalVulcan(float("inf")), samples=1000)
    except vulcan.OptionError:
        return
    assert result.status is Status.SOLVED
