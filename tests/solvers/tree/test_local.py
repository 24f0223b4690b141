"""LocalVulcan against forward search and against all policies of small random problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS, constraint
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.tree_results import (
    ENOUGH,
    SEEDS,
    find_plan,
    require_certified,
    require_none_admitted,
    solve_both,
)
from tests.oracles.brute_force import admits
from vulcan import RiskBound, Status
from vulcan.solvers.tree import rounds as planner


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80)
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
    bound=bounds(),
    merges=st.booleans(),
    samples=st.integers(1, 50),
    first_round=st.sampled_from([1, 2, 1024]),
    seed=SEEDS,
)
def test_every_number_of_samples_gives_a_complete_policy(
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
    bound=bounds(),
    merges=st.booleans(),
    samples=st.integers(1, 50),
    seed=SEEDS,
)
def test_incomplete_policies_satisfy_the_bound_up_to_their_frontier(
    kind: str,
    printed: bool,
    table: Table,
    bound: RiskBound,
    merges: bool,
    samples: int,
    seed: int,
) -> None:
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    solver = vulcan.LocalVulcan(constraint=constraint(kind, model), as_printed=printed)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed, complete=False)
    if result.policy is None:
        return
    require_certified(result, bound)
    if result.safe:
        assert admits(kind, bound, find_plan(table, result))


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


@settings(max_examples=80)
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
    solver = vulcan.LocalVulcan(constraint=under, bounded=True)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed)
    if exact.policy is None:
        require_none_admitted(result, bound)
        return
    require_certified(result, bound)
    assert result.safe
    best = exact.certificate.reward
    assert result.certificate.reward <= best + 1e-12 or (merges and samples != ENOUGH)
    if samples == ENOUGH or result.status is Status.SOLVED:
        assert result.status is Status.SOLVED
        assert result.certificate.reward >= best - 1e-12
