"""The bandit of the paper: its table, its compiled form, its beliefs."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

import vulcan
from tests.helpers.plain_models import PlainBandit
from vulcan.domains import Bandit
from vulcan.domains.bandit import MACHINES, Machine
from vulcan.policies.policy import Policy
from vulcan.sentinels import END, UNPLANNED
from vulcan.testing.compiled import CompiledAnswers

UNDER_A = vulcan.SequenceConstraint()


def solve(horizon: int, bound: vulcan.RiskBound, constraint=None, **options) -> vulcan.Result:
    constraint = constraint or vulcan.SurvivalConstraint()
    problem = vulcan.Problem(Bandit(horizon), bound)
    return vulcan.solve(problem, vulcan.ForwardSearch(constraint, **options))


@pytest.mark.parametrize(
    ("horizon", "reward"),
    [(2, 0.9906), (3, 1.4892), (4, 2.0167), (5, 2.5201), (6, 3.0686), (7, 3.5959), (8, 4.1334)],
)
def test_table_of_the_paper(horizon: int, reward: float) -> None:
    result = solve(horizon, vulcan.Linear(0.002), UNDER_A)
    assert round(result.certificate.reward, 4) == reward
    assert result.safe


@pytest.mark.parametrize(("constraint", "reward"), [(UNDER_A, 4.665492), (None, 4.665988)])
def test_horizon_9(constraint, reward: float) -> None:
    result = solve(9, vulcan.Linear(0.002), constraint, cut_short=False)
    assert round(result.certificate.reward, 6) == reward
    assert result.statistics.histories == sum(6**k for k in range(10)) == 12_093_235
    assert len(result.policy) == 2**9 - 1
    cut = solve(9, vulcan.Linear(0.002), constraint)
    assert cut.policy == result.policy
    assert cut.statistics.histories < result.statistics.histories


@pytest.mark.slow
@pytest.mark.parametrize(("constraint", "reward"), [(UNDER_A, 5.369377), (None, 5.371599)])
def test_horizon_10_with_the_constant_bound_of_the_paper(constraint, reward: float) -> None:
    result = solve(10, vulcan.Constant(0.0125), constraint)
    assert round(result.certificate.reward, 6) == reward


def test_unmerged_states_give_the_same_policy() -> None:
    problem = vulcan.Problem(Bandit(5, merges=False), vulcan.Linear(0.002))
    unmerged = vulcan.solve(problem, vulcan.ForwardSearch(UNDER_A))
    assert unmerged.policy == solve(5, vulcan.Linear(0.002), UNDER_A).policy


SURE = Machine((1.0, 2.0), 0.5, 0.25, 0.1, 0.0)  # it never fails


@pytest.mark.parametrize("machines", [MACHINES, (SURE,), (*MACHINES, SURE, MACHINES[0])])
@pytest.mark.parametrize("horizon", [1, 5, 24])
def test_compiled_form_says_the_very_same(machines: tuple[Machine, ...], horizon: int) -> None:
    bandit = Bandit(horizon, merges=False, machines=machines)
    asked, rng = CompiledAnswers(bandit.compiled), random.Random(horizon)
    for _ in range(5):
        state, record = bandit.initial_state(), bandit.compiled.initial
        for _ in range(horizon):
            after = []
            for number, action in enumerate(bandit.compiled.actions):
                answers, records = asked.outcomes(record, number)
                plain = [o for o in bandit.outcomes(state, action) if o.probability > 0]
                assert answers == [(o.probability, o.reward, o.fails) for o in plain]
                kept = [o.state for o in plain if not o.fails]
                after += zip(kept, (r.reshape(1) for r in records), strict=False)
            stopped, then = after[0]
            assert bandit.actions(stopped) == []
            assert all(asked.outcomes(then, k)[0] == [] for k in range(len(machines) + 1))
            state, record = rng.choice(after[1:])


def test_what_has_no_compiled_form() -> None:
    assert Bandit(4).compiled is None  # histories merge
    assert Bandit(25, merges=False).compiled is None
    assert PlainBandit(4, merges=False).compiled is None
    for machine in (replace(SURE, p1=1.0), replace(SURE, risk=1.0)):
        assert Bandit(4, merges=False, machines=(machine,)).compiled is None


@pytest.mark.parametrize(
    "solver",
    [vulcan.LocalVulcan(), vulcan.LocalVulcan(constraint=UNDER_A), vulcan.LocalVulcan.paper()],
)
@pytest.mark.parametrize(("horizon", "samples"), [(4, 1000), (7, 2000)])
def test_search_is_the_same_whether_histories_merge_or_not(solver, horizon, samples) -> None:
    forms = (Bandit(horizon), PlainBandit(horizon, merges=False), Bandit(horizon, merges=False))
    # Completion is left out: where histories merge they share decisions.
    merged, plain, compiled = (
        vulcan.solve(
            vulcan.Problem(form, vulcan.Linear(0.002)),
            solver,
            samples=samples,
            seed=3,
            complete=False,
        )
        for form in forms
    )
    assert plain.policy == compiled.policy
    # Where histories merge, another one may have told that a mission is over.
    for name in Policy.ARRAYS:
        known, found = (getattr(result.policy, name) for result in (merged, plain))
        assert np.all((known == found) | ((known == END) & (found == UNPLANNED)))
    for of in ("samples", "histories"):
        found = {getattr(result.statistics, of) for result in (merged, plain, compiled)}
        assert len(found) == 1
    # What is compiled is not kept, and the last decisions of the policy are asked for again.
    again = compiled.statistics.evaluations - plain.statistics.evaluations
    assert 0 <= again <= 4 * len(compiled.policy)
    assert again == 0 or not solver.as_printed


def test_forward_search_asks_for_every_history_where_none_merge() -> None:
    problem = vulcan.Problem(Bandit(9, merges=False), vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.ForwardSearch(UNDER_A, cut_short=False))
    assert result.statistics.evaluations == 4 * sum(6**k for k in range(9))
    assert result.policy == solve(9, vulcan.Linear(0.002), UNDER_A).policy


def test_belief_follows_bayes_step_by_step() -> None:
    machine = MACHINES[2]
    theta = machine.theta
    for first in (True, False, False, True):
        one = machine.p1 if first else 1 - machine.p1
        two = machine.p2 if first else 1 - machine.p2
        theta = one * theta / (one * theta + two * (1 - theta))
    assert machine.belief(2, 2) == pytest.approx(theta, abs=1e-15)
    counts = (0, 0, 0, 0, 2, 2)
    outcomes = Bandit(9).outcomes(counts, "play 3")
    chance = theta * machine.p1 + (1 - theta) * machine.p2
    assert outcomes[0].probability == pytest.approx((1 - 0.0015) * chance)
    assert math.fsum(o.probability for o in outcomes) == pytest.approx(1, abs=1e-15)
    assert Bandit(9).outcomes(counts, "stop")[0].reward == 0.25 * 5
