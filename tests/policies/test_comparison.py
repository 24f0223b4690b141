"""A policy is followed only in the model that it was made for, at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.policies.policy import Policy

RISKY = [Outcome(0.999, 1.0, "shore"), Outcome.failure(0.001)]
STEPS = {
    "bank": {"row": [Outcome(0.5, 0.0, "island"), Outcome(0.5, 0.0, "reef")]},
    "island": {"swim": RISKY},
    "reef": {"swim": RISKY},
    "shore": {"walk": [Outcome(1.0, 2.0, "home")]},
}


def cross(**replaced: Any) -> Table:
    """Return three steps home, with other actions in some states."""
    return Table({**STEPS, **replaced}, horizon=3, start="bank")


def swim(*outcomes: Outcome) -> Table:
    return cross(island={"swim": list(outcomes)})


@pytest.fixture(scope="module")
def policy(tmp_path_factory: Any) -> Any:
    path: Path = tmp_path_factory.mktemp("plans") / "plan"
    vulcan.solve(vulcan.Problem(cross(), 0.01)).policy.save(path)
    return Policy.load(path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            swim(Outcome(0.1, 1.0, "shore"), Outcome.failure(0.9)),
            r"was \(0\.999, 1\.0, False\), is \(0\.1, 1\.0, False\)",
        ),
        (swim(Outcome(0.999, 7.0, "shore"), Outcome.failure(0.001)), r"is \(0\.999, 7\.0, False\)"),
        (
            swim(Outcome(0.999, 1.0, "shore"), Outcome(0.001, 0.0, "home", "failure")),
            r"'failure'.* was \(0\.001, 0\.0, True\), is \(0\.001, 0\.0, False\)",
        ),
        (swim(Outcome(1.0, 1.0, "shore")), r"has the outcomes \['shore'\]; .* \['shore', 'fail"),
        (swim(*(Outcome(o.probability, o.reward, o.state, "x" * k) for k, o in enumerate(RISKY, 1))
              ), r"has the outcomes \['x', 'xx'\]"),
    ],
    ids=["probability", "reward", "failing", "fewer", "labels"],
)  # fmt: skip
def test_the_answer_of_a_later_step_is_compared_before_the_action_is_taken(
    policy: Policy, other: Table, message: str
) -> None:
    run = policy.bind(other).start()
    run.observe("island")
    where = rf"step 2: action 'swim' in state 'island'.*{message}"
    for ask in (
        lambda: run.action,
        lambda: run.action_label,
        lambda: run.expected,
        lambda: run.observe("shore"),
        lambda: vulcan.replan(run),
    ):
        with pytest.raises(vulcan.MismatchError, match=where):
            ask()
    assert run.history == [("row", "island")]


def test_what_is_not_met_does_not_matter(policy: Policy) -> None:
    other = swim(Outcome(0.1, 1.0, "shore"), Outcome.failure(0.9))
    run = policy.bind(other).start()
    for outcome in ("reef", "shore", "home"):
        run.observe(outcome)
    assert run.finished
    assert run.reward == 3.0


def test_a_plan_that_ends_where_the_model_goes_on_is_refused(policy: Policy) -> None:
    shorter = vulcan.solve(vulcan.Problem(cross(shore={}), 0.01)).policy
    run = shorter.bind(cross()).start()
    run.observe("island")
    with pytest.raises(vulcan.MismatchError, match="ends in state 'shore', which has actions"):
        run.observe("shore")
    run = policy.bind(cross(shore={})).start()
    run.observe("island")
    run.observe("shore")
    with pytest.raises(vulcan.MismatchError, match=r"step 3: .*'walk' in .*has no actions"):
        run.observe("home")


def test_a_run_in_another_world_may_leave_its_plan(policy: Policy) -> None:
    rest = {"wait": [Outcome(1.0, 0.0, "island")]}
    other = {"swim": [Outcome(0.1, 1.0, "shore"), Outcome.failure(0.9)]}
    run = policy.bind(cross(island={**other, **rest})).start()
    run.observe("island")
    with pytest.raises(vulcan.MismatchError):
        _ = run.action
    run.leave()
    assert run.action == "wait"


def test_a_decision_asks_the_model_once(policy: Policy) -> None:
    model = cross()
    run = policy.bind(model).start()
    run.observe("island")
    model.calls.clear()
    assert run.action == run.action_label == "swim"
    assert run.expected == {"shore": 0.999, "failure": 0.001}
    run.observe("shore")
    assert model.calls == {("island", "swim"): 1}
