"""Simulated charges beside exact values."""

from __future__ import annotations

import math
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from tests.oracles.several import draw_problem
from vulcan import Outcome


@pytest.mark.filterwarnings("ignore::vulcan.errors.BoundWarning")
@pytest.mark.parametrize("seed", [2, 5, 8, 12])
def test_episodes_agree_with_the_certificate_in_both_engines(seed: int) -> None:
    model = draw_problem(seed).model
    limits = ["fuel <= 9", "dose <= 9", "risk(late) <= 1", "risk(wet) <= 1", "risk ahead <= 1"]
    problem = vulcan.Problem(model, 1.0, constraints=limits)
    result = vulcan.solve(problem, vulcan.Automatic(randomised=seed % 2 == 0))
    exact = [float(limited.value) for limited in result.certificate.constraints]
    assert max(exact) > 0
    compiled = vulcan.simulate(result.policy, model, episodes=20_000, confidence=0.999_999)
    rows = {
        state: {a: model.outcomes(state, a) for a in model.actions(state)} for state in range(3)
    }
    rows[0]["unused"] = rows[0]["a0"]  # so that it is another model
    other = Table(rows, model.horizon, model.discount)
    for simulation in (compiled, vulcan.simulate(result.policy, episodes=20_000)):
        assert simulation.engine == "compiled"
        assert simulation.agrees
    python = vulcan.simulate(result.policy, other, episodes=3_000, confidence=0.999_999)
    for simulation in (compiled, python):
        assert simulation.agrees
        assert [each.exact for each in simulation.constraints] == pytest.approx(exact, abs=1e-12)
        *shown, ahead = simulation.constraints
        assert ahead.quantity == "risk ahead"
        assert math.isnan(ahead.value)
        for each in shown:
            assert each.low - 1e-9 <= each.exact <= each.high + 1e-9
    assert python.engine == "Python"
    assert compiled.rewards[:100].tolist() == (
        vulcan.simulate(result.policy, constraints=[], episodes=20_000).rewards[:100].tolist()
    )


def leak(fuel: float, late: float) -> Table:
    on = [
        Outcome(late, 1.0, 0, "late", event="late"),
        Outcome(1 - late, 1.0, 0, "ok", costs={"fuel": fuel}),
    ]
    return Table({0: {"go": on}}, 2)


def test_a_world_that_charges_more_is_noticed() -> None:
    problem = vulcan.Problem(leak(1.0, 0.5), constraints=["fuel <= 2", "risk(late) <= 0.9"])
    policy = vulcan.solve(problem).policy
    assert [each.exact for each in vulcan.simulate(policy).constraints] == [1.0, 0.75]
    with pytest.warns(vulcan.errors.SimulationWarning, match=r"fuel is 2\.\d+, not 1 "):
        found = vulcan.simulate(policy, leak(2.0, 0.4), episodes=2_000)
    assert not found.agrees
    with pytest.warns(vulcan.errors.SimulationWarning, match=r"risk\(late\) is 0.9"):
        vulcan.simulate(policy, leak(1.0, 0.75), episodes=2_000)
    assert "fuel" in str(found)


def test_charges_need_a_model(tmp_path: Any) -> None:
    problem = vulcan.Problem(leak(1.0, 0.5), 1.0)
    policy = vulcan.solve(problem).policy
    assert vulcan.simulate(policy, episodes=10).constraints == ()
    policy.save(tmp_path / "plan.vulcan")
    loaded = vulcan.Policy.load(tmp_path / "plan.vulcan")
    with pytest.raises(vulcan.errors.PolicyError, match="bind the policy"):
        vulcan.simulate(loaded, constraints=["fuel <= 1"], episodes=10)
    with pytest.raises(vulcan.errors.OptionError, match="fuel"):
        vulcan.simulate(policy, constraints=["fuel"], episodes=10)
