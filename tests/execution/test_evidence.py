"""What was measured is evidence for a replan, and the promise stays one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import vulcan
from tests.helpers.wholes import Adversary
from vulcan import Outcome, Run
from vulcan.domains import Exploration
from vulcan.domains.exploration import Map, Obstacle, Vehicle
from vulcan.execution.account import Prospect
from vulcan.execution.evidence import take_evidence
from vulcan.model.reader import ModelReader
from vulcan.tolerance import TOLERANCE

GAP = Map(5, 4, (1, 1), [Obstacle.rectangle(2.3, 3.7, 0.6, 1.4)])
MISSION = Exploration(map=GAP, horizon=3, degree=3, vehicle=Vehicle(0.1, 0.05))


def start(bound: Any = "0.01 * x") -> Run:
    return vulcan.solve(vulcan.Problem(MISSION, bound), vulcan.ForwardSearch()).policy.start()


def test_a_plan_is_carried_over_with_its_risk_and_another_reward() -> None:
    run = start()
    run.measure(1.31)
    assert run.measurements == (1.31,)
    before = Prospect(run.risk, run.reward_ahead)
    vulcan.replan(run, Adversary(least=1e9))  # which finds nothing
    assert run.risk == before.risk
    assert run.reward_ahead != pytest.approx(before.reward)
    rest = vulcan.replan(run, Adversary(least=1e9)).result.problem
    certificate = vulcan.certify(rest, run.policy)
    assert float(certificate.risk) == pytest.approx(run.risk, abs=1e-15)
    assert float(certificate.reward) == pytest.approx(run.reward_ahead, abs=1e-12)


def test_a_run_goes_on_in_the_model_given_what_was_measured() -> None:
    run = start()
    run.measure(1.31)
    done = vulcan.replan(run)
    assert done.kept
    value = float(next(iter(run.expected)).split()[0])
    run.measure(value)  # its own outcome there, as far as labels go
    model = run.reader.model
    vulcan.replan(run)
    assert run.reader.model.evidence[0] == model.evidence[0]
    run.measure(1.0)
    assert run.finished
    assert run.measurements == (1.31, value, 1.0)


def test_measured_nodes_leave_model_and_plan_as_they_are() -> None:
    run = start()
    node = MISSION.outcomes(run.state, run.action)[1]
    run.measure(node.reward)
    reader, policy = run.reader, run.policy
    take_evidence(run)
    assert (run.reader, run.policy) == (reader, policy)
    assert run.reader is reader


def test_a_run_that_left_its_plan_has_no_evidence() -> None:
    run = start()
    run.measure(1.31)
    run.leave()
    take_evidence(run)
    assert run.reader.model is MISSION


def play(run: Run, replanner: Callable[[Run], None], shift: float) -> float:
    """Return the risk of runs whose samples all lie beside their nodes, and that replan."""
    if run.finished:
        return float(run.failed)
    replanner(run)
    risk = 0.0
    for outcome in run.reader.outcomes(run.state, run.action):
        after = copy.copy(run)
        if outcome.fails:
            after.observe(outcome.label)
        else:
            after.measure(outcome.reward + shift)
        risk += outcome.probability * play(after, replanner, shift)
    return risk


@pytest.mark.parametrize("shift", [-0.1, 0.07])
def test_whatever_is_measured_the_risk_of_the_whole_stays_allowed(shift: float) -> None:
    replanned = []

    def replanner(run: Run) -> None:
        take_evidence(run)  # as a replan does, so that it is known what a plan has to earn
        if run.step:
            replanned.append(vulcan.replan(run, Adversary(least=run.reward_ahead)).changed)

    bound = 0.05
    first = vulcan.solve(vulcan.Problem(MISSION, bound), Adversary(1, False))
    risk = play(first.policy.start(), replanner, shift)
    assert first.certificate.risk < risk <= bound + TOLERANCE
    assert sum(replanned) > 2


@dataclass(frozen=True)
class Weather:
    """A passage whose danger a look at the sky tells: 0.1, or 0.02 and 0.18 as often."""

    danger: float = 0.1
    horizon: int = 3

    def initial_state(self) -> str:
        return "harbour"

    def actions(self, state: str) -> list[str]:
        return ["look"] if state == "harbour" else ["sail", "stay"]

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        if action == "look":
            return [Outcome(1, 0, "quay")]
        if action == "stay":
            return [Outcome(1, 0.2, "quay")]
        return [Outcome(1 - self.danger, 1, "quay"), Outcome.failure(self.danger)]

    def locate(self, state: str, action: str, measurement: float) -> str:
        return "quay"

    def given(self, state: str, measurements: tuple[Any, ...]) -> Weather:
        return Weather(measurements[0])


@pytest.mark.parametrize("bound", [0.1, 0.19, "0.12 * x", "0.15 * sqrt(x)"])
@pytest.mark.parametrize("solver", [None, Adversary()])
def test_models_given_evidence_that_are_the_model_in_the_mean_keep_the_promise(
    bound: Any, solver: Any
) -> None:
    problem = vulcan.Problem(Weather(), bound)
    for first in (vulcan.solve(problem), vulcan.solve(problem, Adversary(2, False))):
        prospects = []
        for danger in (0.02, 0.18):
            run = first.policy.start()
            run.measure(danger)
            done = vulcan.replan(run, solver)
            assert done.result.problem.model.fingerprint.startswith(
                ModelReader(Weather(danger)).fingerprint()
            )
            prospects.append(Prospect(run.risk, run.reward_ahead))
        risk = sum(one.risk for one in prospects) / 2
        reward = sum(one.reward for one in prospects) / 2
        assert reward >= float(first.certificate.reward) - 1e-12
        assert risk <= problem.risk_bound(reward) + TOLERANCE
