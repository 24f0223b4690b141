"""The paper's bandit: its table, and what other programs found."""

from __future__ import annotations

import math

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.domains.bandit import MACHINES

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


@pytest.mark.parametrize(("constraint", "reward"), [(UNDER_A, 5.369377), (None, 5.371599)])
def test_horizon_10_with_the_constant_bound_of_the_paper(constraint, reward: float) -> None:
    result = solve(10, vulcan.Constant(0.0125), constraint)
    assert round(result.certificate.reward, 6) == reward


def test_unmerged_states_give_the_same_policy() -> None:
    problem = vulcan.Problem(Bandit(5, merges=False), vulcan.Linear(0.002))
    unmerged = vulcan.solve(problem, vulcan.ForwardSearch(UNDER_A))
    assert unmerged.policy == solve(5, vulcan.Linear(0.002), UNDER_A).policy


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
