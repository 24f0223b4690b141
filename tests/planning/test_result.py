"""What `solve` returns."""

from __future__ import annotations

import pickle

import pytest

import vulcan
from tests.helpers.tables import one_action
from vulcan import Outcome
from vulcan.domains import Bandit, TreasureGrid

LINEAR = vulcan.Linear(0.002)
FORWARD_SEARCH = vulcan.ForwardSearch()


def test_result_reads_well() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), FORWARD_SEARCH)
    text = str(result)
    for part in ("1.489224", "0.002748", "acceptable", "Δ(x) = 0.002 * x", "yes, 7 decisions"):
        assert part in text
    refused = vulcan.solve(
        vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(0.5)), FORWARD_SEARCH
    )
    assert "no policy exists" in str(refused)
    assert "reward" not in str(refused)


def test_policy_is_bound_to_the_model() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), FORWARD_SEARCH)
    run = result.policy.start()
    while not run.finished:
        run.observe(0)
    assert len(run.history) == 3


def test_the_gain_of_randomising_is_told_where_it_is_worth_it() -> None:
    caught = vulcan.solve(vulcan.Problem(TreasureGrid(horizon=20, map="BTG"), 0.15))
    assert caught.relaxed == pytest.approx(0.6)
    assert "would earn 0.600000 (randomised=True, --randomised)" in str(caught)
    drawn = vulcan.solve(caught.problem, randomised=True)
    assert drawn.certificate.reward == pytest.approx(0.6)
    assert "would earn" not in str(drawn)
    close = vulcan.solve(vulcan.Problem(Bandit(3), vulcan.Linear(0.002)))
    assert 0 < close.gain_of_randomising < 0.01
    assert "would earn" not in str(close)


@pytest.mark.parametrize(
    ("solver", "options"),
    [(vulcan.Vulcan(), {"samples": 50, "keep": True}), (vulcan.LinearProgram(), {})],
)
def test_results_pass_to_another_process_without_what_the_search_knew(solver, options) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(4), LINEAR), solver, **options)
    sent = pickle.loads(pickle.dumps(result))
    assert (sent.policy, sent.certificate, sent.problem) == (
        result.policy,
        result.certificate,
        result.problem,
    )
    assert str(sent) == str(result)
    for member in sent.policy.members:
        assert member.reader.model is sent.problem.model
        assert not member.action.flags.writeable
    assert sent.knowledge is sent.policy.knowledge is None
    assert result.knowledge is None or options
    assert sent.policy.start(seed=1).action == result.policy.start(seed=1).action
    assert pickle.loads(pickle.dumps(result.policy.detach())).members[0].reader is None
