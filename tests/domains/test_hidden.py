"""Domains with hidden states: they keep the rules, and small ones agree with enumeration."""

from __future__ import annotations

from typing import Any

import pytest

import vulcan
from tests.oracles.hidden import enumerate_policies, start
from vulcan import BeliefModel
from vulcan.baselines import RAOStar
from vulcan.domains import DOMAINS, Avoidance, LightDark, Machine, RockSample, Tiger
from vulcan.formats.registry import open_model
from vulcan.testing import check_model

SMALL = [Tiger(3), RockSample(2, 1, 3), LightDark(2, 3, 2), Avoidance(2, 2), Machine(3, 2)]


@pytest.mark.parametrize("hidden", SMALL, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("bound", [0.0, 0.05, 1.0])
def test_small_ones_agree_with_enumeration(hidden: Any, bound: float) -> None:
    worths = enumerate_policies(hidden, start(hidden), None, hidden.horizon)
    best = max((float(g) for g, risk, _ in worths if risk <= bound + 1e-12), default=None)
    result = vulcan.solve(vulcan.Problem(BeliefModel(hidden), bound), gap=0.0)
    if best is None:
        assert result.status is vulcan.planning.Status.INFEASIBLE
        return
    assert result.certificate.safe
    assert float(result.certificate.reward) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", ["avoidance", "light-dark", "machine", "rock-sample", "tiger"])
def test_names_open_belief_models(name: str) -> None:
    model = open_model(name, ["horizon=3"]).model
    assert isinstance(model, BeliefModel)
    assert name in DOMAINS
    assert check_model(model, most_states=200).ok


def test_rocks_are_known_better_nearby() -> None:
    rocks = RockSample(5, 7)
    cell, kinds = next(iter(rocks.initial_belief()))
    here = [rocks.places[0], kinds]
    near = max(rocks.observations((here[0], kinds), "check 1").values())
    assert near == 1.0
    assert 0.5 < max(rocks.observations((cell, kinds), "check 7").values()) < 1.0


def test_looking_pays_in_the_dark() -> None:
    """A robot that can reach the light finds the door more safely than one that can't."""
    short, long = (
        vulcan.solve(vulcan.Problem(BeliefModel(LightDark(3, 3, h)), 0.05)).certificate.reward
        for h in (2, 5)
    )
    assert long > short


@pytest.mark.slow
def test_samples_prove_what_is_too_large_to_unroll() -> None:
    """The bounds of beliefs end the search where states would multiply further."""
    problem = vulcan.Problem(BeliefModel(RockSample(4, 3, 6)), 0.05)
    result = vulcan.solve(problem, time_limit=60, gap=1e-3)
    assert result.gap is not None
    assert result.gap <= 1e-3
    assert result.certificate.reward == pytest.approx(10.0)


@pytest.mark.parametrize(
    "hidden", [Tiger(3), Machine(3, 3)], ids=lambda model: type(model).__name__
)
def test_rao_star_runs_on_beliefs(hidden: Any) -> None:
    problem = vulcan.Problem(BeliefModel(hidden), 0.1)
    best = float(vulcan.solve(problem, gap=0.0).certificate.reward)
    for mode in ("overall", "everywhere"):
        published = vulcan.solve(problem, RAOStar(mode=mode)).certificate
        assert published.safe
        assert published.reward <= best + 1e-9
    exact = vulcan.solve(problem, RAOStar(update="exact")).certificate
    assert exact.reward == pytest.approx(best)
