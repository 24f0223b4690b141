"""Replans within several constraints: whatever happens, the executed whole keeps all of them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import SEEDS, Table
from tests.helpers.wholes import Adversary, _build, _list_choices, put_together
from tests.oracles.several import draw_problem
from vulcan import Outcome
from vulcan.model.reader import ModelReader
from vulcan.numerics import TOLERANCE
from vulcan.policy import RandomisedPolicy
from vulcan.solvers.finding import Finding, Statistics, Status


@dataclass(frozen=True)
class Spender(Adversary):
    """Of some policies within all limits, one that charges as much as it can for one of them."""

    several: ClassVar[bool] = True

    def search(self, problem: Any, reader: Any, monitor: Any, options: Any) -> Finding:
        random, found = Random(self.seed), []
        reader = ModelReader(problem.model)
        for choice, reward, risk in _list_choices(reader, reader.root, 0, random):
            if choice is not None and reward >= self.least:
                policy = _build(problem, reader, self, choice)
                certificate = vulcan.certify(problem, policy)
                if certificate.passes:
                    values = [risk, *(limited.value for limited in certificate.constraints)]
                    found.append((values, policy, reward, risk))
        if not found:
            return Finding(Status.DONE, "none", None, 0.0, 0.0, [], Statistics(0.0, 0, 0))
        spent = random.randrange(len(found[0][0]))
        most = max(found, key=lambda one: one[0][spent]) if self.daring else random.choice(found)
        _, policy, reward, risk = most
        return Finding(Status.DONE, "found", policy, reward, risk, [], Statistics(0.0, 0, 0))


def replan_by(random: Random, problem: vulcan.Problem, counts: list[int]) -> Any:
    chance = random.choice([0.4, 0.75])

    def replanner(run: Any) -> None:
        while random.random() < chance:
            solver: Any = vulcan.Automatic()
            if random.random() < 0.8:
                weight = run.reader.weights[run.level]
                solver = Spender(random.randrange(1 << 30), True, run.reward_ahead / weight)
            counts[vulcan.replan(run, solver).changed] += 1

    return replanner


def execute(seed: int, counts: list[int]) -> tuple[vulcan.Problem, Any, Any] | None:
    """Return a random problem, a poor first plan, and the whole that replans make of it."""
    random = Random(seed)
    problem = draw_problem(random.randrange(10_000), horizon=random.choice([2, 3]))
    solver: Any = Spender(random.randrange(1 << 30), random.random() < 0.5)
    if random.random() < 0.3:
        solver = vulcan.Automatic(randomised=True)
    first = vulcan.solve(problem, solver)
    if first.policy is None or not first.safe:
        return None
    wholes = []
    for member in first.policy.members:
        run = member.start()
        run.whole = first.policy
        wholes.append(put_together(run, replan_by(random, problem, counts)))
    return problem, first.policy, RandomisedPolicy(wholes, first.policy.weights)


@settings(max_examples=60)
@given(seed=SEEDS)
def test_whatever_is_replanned_the_whole_keeps_all_constraints(seed: int) -> None:
    done = execute(seed, [0, 0])
    if done is None:
        return
    problem, first, whole = done
    before, after = (vulcan.certify(problem, policy, exact=True) for policy in (first, whole))
    assert before.safe
    assert after.reward >= before.reward - 1e-12
    assert after.slack >= -TOLERANCE
    for limited in after.constraints:
        assert limited.slack >= -TOLERANCE, limited
    assert after.safe


def test_replans_of_the_property_test_change_plans() -> None:
    counts = [0, 0]
    for seed in range(100):
        execute(seed, counts)
    assert counts[True] > 20


def begin(table: Any, constraints: list[str], horizon: int) -> Any:
    """Return a run of the plan that is the only one in a poorer model, bound to the real one."""
    poor = {state: {"poor": actions["poor"]} for state, actions in table.items()}
    model = Table(table, horizon)
    problem = vulcan.Problem(model, 1.0, constraints=constraints)
    policy = vulcan.solve(vulcan.Problem(Table(poor, horizon), 1.0)).policy
    about = vulcan.solve(problem).policy.about
    policy.about = about
    policy = policy.bind(model)
    policy.constraints = problem.constraints
    return policy.start()


def test_costs_that_were_saved_may_be_spent_and_no_more() -> None:
    def step(cost: float) -> list[Outcome]:
        return [Outcome(1.0, cost, 1, costs={"fuel": cost})]

    table = {
        0: {"poor": [Outcome(0.5, 0.0, 1, costs={"fuel": 2}), Outcome(0.5, 0.0, 2)]},
        1: {"poor": step(0.0), "rich": step(3.0), "richer": step(3.01)},
        2: {"poor": step(0.0), "free": [Outcome(1.0, 1.0, 2)]},
    }
    spent = begin(table, ["fuel <= 1"], 2)
    spent.observe(state=2)
    assert vulcan.replan(spent).changed
    assert spent.action_label == "free"
    run = begin(table, ["fuel <= 4"], 2)
    run.observe(0)
    assert vulcan.replan(run).changed
    assert run.action_label == "rich"  # 1 + 3 of 4, in the only branch that can spend it
    assert not vulcan.replan(run).changed


def test_an_event_that_has_happened_is_charged_no_more() -> None:
    late = [Outcome(1.0, 3.0, 2, event="late")]
    table = {
        0: {"poor": [Outcome(0.5, 0.0, 1, event="late"), Outcome(0.5, 0.0, 2)]},
        1: {"poor": [Outcome(1.0, 0.0, 2)], "again": late},
        2: {"poor": [Outcome(1.0, 0.0, 2)], "again": late},
    }
    happened, not_yet = (begin(table, ["risk(late) <= 0.5"], 2) for _ in range(2))
    happened.observe(state=1)
    not_yet.observe(state=2)
    assert vulcan.replan(happened).changed
    assert happened.action_label == "again"
    assert not vulcan.replan(not_yet).changed


def test_every_history_that_was_passed_keeps_its_cap_on_the_risk_ahead() -> None:
    def gamble(risk: float, reward: float) -> list[Outcome]:
        return [Outcome(1 - risk, reward, 1), Outcome.failure(risk)]

    table = {
        0: {"poor": gamble(0.05, 0.0)},
        1: {"poor": gamble(0.0, 0.0), "bold": gamble(0.05, 2.0), "bolder": gamble(0.1, 5.0)},
    }
    run = begin(table, ["risk ahead <= 0.1"], 2)
    run.observe(0)
    assert vulcan.replan(run).changed
    assert run.action_label == "bold"


def test_a_run_keeps_the_constraints_that_it_began_with(tmp_path: Any) -> None:
    table = {0: {"poor": [Outcome(1.0, 0.0, 0)], "rich": [Outcome(1.0, 3.0, 0, costs={"fuel": 3})]}}
    run = begin(table, ["fuel <= 2"], 2)
    assert pickle.loads(pickle.dumps(run.whole)).constraints == run.whole.constraints
    with pytest.raises(vulcan.errors.OptionError, match="not fuel <= 3"):
        vulcan.replan(run, constraints=["fuel <= 3"])
    assert not vulcan.replan(run).changed
    run.whole.save(tmp_path / "plan.vulcan")
    loaded = vulcan.Policy.load(tmp_path / "plan.vulcan").bind(run.reader.model).start()
    # A file that says what a plan was made for has to tell its policy, or replans ignore it.
    assert loaded.whole.constraints or not getattr(loaded.whole.about, "constraints", ())
    assert not vulcan.replan(loaded, constraints=["fuel <= 2"]).changed
    with pytest.raises(vulcan.errors.OptionError, match="not none"):
        vulcan.replan(loaded, constraints=[])


def test_a_controller_acts_within_all_constraints() -> None:
    problem = vulcan.Problem(
        draw_problem(3).model, 0.3, constraints=["fuel <= 6", "risk(late) <= 0.9"]
    )
    controller = vulcan.Controller(problem, seconds_per_step=0.3)
    while not controller.finished:
        controller.observe("o0")
    assert controller.kept
    assert controller.replans


def test_a_run_that_left_its_plan_goes_on_within_constraints_if_it_can() -> None:
    rich = [Outcome(1.0, 3.0, 0, costs={"fuel": 3})]
    table = {0: {"poor": [Outcome(1.0, 0.0, 0)], "rich": rich}, 1: {"poor": rich}}
    for state, action in ((0, "poor"), (1, "poor")):
        run = begin(table, ["fuel <= 2"], 2)
        run.leave(state=state)
        done = vulcan.replan(run)
        assert (done.changed, done.kept, run.action_label) == (True, False, action)
        assert not vulcan.replan(run).changed
