"""Policies followed step by step, only in the model that they were made for."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, tables
from vulcan import Outcome, Policy, Start
from vulcan.domains import Bandit
from vulcan.errors import MismatchError, PolicyError
from vulcan.model.interface import FAILURE


def test_run_follows_labels_without_a_model(saved: Path) -> None:
    run = Policy.load(saved).start()
    assert run.action == "play 1"
    assert list(run.expected) == ["pays 0", "pays 1", "failure"]
    run.observe("pays 1")
    run.observe(0)
    assert run.history == [("play 1", "pays 1"), ("play 1", "pays 0")]
    while not run.finished:
        run.observe(0)
    assert not run.failed
    with pytest.raises(PolicyError, match="finished"):
        _ = run.action
    assert run.policy == Policy.load(saved)


def test_run_refuses_what_cannot_happen(policy: Policy) -> None:
    run = policy.start()
    for wrong in ("pays 2", 3, -1, True, 1.0):
        with pytest.raises(PolicyError, match=r"0: 'pays 0', 1: 'pays 1', 2: 'failure'"):
            run.observe(wrong)
    assert run.history == []


def test_bound_policy_gives_the_models_own_actions(tmp_path: Path) -> None:
    class Moves(Table):
        def actions(self, state: Any) -> list[Any]:
            return [("move", name) for name in super().actions(state)]

        def outcomes(self, state: Any, action: Any) -> list[Outcome]:
            return super().outcomes(state, action[1])

        def action_label(self, action: Any) -> str:
            return f"move {action[1]}"

    table = Moves({0: {"east": [Outcome(0.5, 1, 0), Outcome(0.5, 2, 1)]}}, horizon=2)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    assert policy.start().action == ("move", "east")
    policy.save(tmp_path / "plan")
    loaded = Policy.load(tmp_path / "plan")
    assert loaded.start().action == "move east"
    run = loaded.bind(table).start()
    run.observe("0")
    assert run.action == ("move", "east")
    run.observe("1")
    assert run.finished
    with pytest.raises(MismatchError, match="answers differently"):
        loaded.bind(Bandit(2))


def test_run_refuses_labels_that_say_too_little(policy: Policy) -> None:
    arrays = {name: getattr(policy, name).copy() for name in Policy.ARRAYS}
    arrays["label"][1] = arrays["label"][0]
    run = Policy(policy.about, policy.labels, **arrays).start()
    for ask in (lambda: run.expected, lambda: run.observe("pays 0"), lambda: run.observe(0)):
        with pytest.raises(PolicyError, match="outcomes of 'play 1' have the same label"):
            ask()
    assert run.history == []


def test_position_and_label_mean_the_same() -> None:
    outcomes = [Outcome(0.5, 1, "x"), Outcome(0.25, 2, "x"), Outcome(0.25, 1, "y")]
    table = Table({0: {"go": outcomes}, "x": {"a": [Outcome(1, 0, "x")]}}, horizon=2)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    labels = list(policy.start().expected)
    assert labels == ["x, reward 1", "x, reward 2", "y"]
    for position, label in enumerate(labels):
        by_position, by_label = policy.bind(table).start(), policy.bind(table).start()
        by_position.observe(position)
        by_label.observe(label)
        assert by_position.history == by_label.history == [("go", label)]
        assert by_position.finished == by_label.finished == (label == "y")


def test_first_observation_is_the_start_that_was_drawn() -> None:
    start = Start.draw([Outcome(0.5, 0, 0), Outcome(0.5, 0, 1)])
    table = Table({0: {"up": [Outcome(1, 1, 2)]}, 1: {"down": [Outcome(1, 1, 2)]}}, start=start)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    for state, action in (("0", "up"), ("1", "down")):
        run = policy.bind(table).start()
        assert (run.action, run.expected) == ("start", {"0": 0.5, "1": 0.5})
        run.observe(state)
        assert run.action == action


FORK = Table(
    {
        "shore": {
            "row": [
                Outcome(0.5, 1.0, "island"),
                Outcome(0.25, 2.0, "island"),
                Outcome(0.15, 0.5, "reef", "hit"),
                Outcome.failure(0.1, -1.0, "sunk"),
            ],
        },
        "island": {"dig": [Outcome(1.0, 4.0, "end")]},
        "reef": {
            "wait": [Outcome(0.95, 0.0, "end"), Outcome.failure(0.05)],
            "swim": [Outcome(0.8, 9.0, "end"), Outcome.failure(0.2)],
        },
        "cave": {
            "climb": [Outcome(0.9, 5.0, "end"), Outcome.failure(0.1)],
            "call": [Outcome(1.0, 0.0, "shore")],
        },
        "end": {},
    },
    horizon=3,
    discount=0.5,
    start="shore",
)


def start_fork(bound: float = 0.2) -> vulcan.policy.Run:
    return vulcan.solve(vulcan.Problem(FORK, vulcan.Constant(bound))).policy.start()


def test_run_knows_where_it_is_and_what_is_ahead() -> None:
    result = vulcan.solve(vulcan.Problem(FORK, vulcan.Constant(0.2)))
    run = result.policy.start()
    assert (run.state, run.step, run.reward) == ("shore", 0, 0.0)
    assert run.risk == pytest.approx(result.certificate.risk)
    assert run.reward_ahead == pytest.approx(result.certificate.reward)
    run.observe("hit")
    assert (run.state, run.step, run.reward) == ("reef", 1, 0.5)
    assert (run.action, run.risk) == ("swim", pytest.approx(0.2))
    assert run.reward_ahead == pytest.approx(0.5 * 0.8 * 9.0)
    run.observe("failure")
    assert (run.failed, run.state, run.step) == (True, FAILURE, 2)
    assert (run.risk, run.reward_ahead, run.expected) == (0.0, 0.0, {})


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_node_values_are_means_of_what_follows(table: Table, bound: vulcan.RiskBound) -> None:
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.Lagrangian())
    if result.policy is None:
        return
    run = result.policy.start()
    assert run.risk == pytest.approx(result.certificate.risk)
    assert run.reward_ahead == pytest.approx(result.certificate.reward)
    while not run.finished:
        after = [copy.copy(run) for _ in run.expected]
        for label, branch in zip(run.expected, after, strict=True):
            branch.observe(label)
        chances = list(run.expected.values())
        risks = [1.0 if branch.failed else branch.risk for branch in after]
        rewards = [branch.reward + branch.reward_ahead for branch in after]
        for mean, values in ((run.risk, risks), (run.reward + run.reward_ahead, rewards)):
            total = sum(p * value for p, value in zip(chances, values, strict=True))
            assert mean == pytest.approx(total, abs=1e-9)
        run = after[0]


def test_steps_do_not_count_an_initial_action() -> None:
    start = Start.draw([Outcome(0.5, 1, 0), Outcome(0.5, 0, 1)])
    rows = {0: {"up": [Outcome(1, 1, 2)]}, 1: {"down": [Outcome(1, 1, 2)]}, 2: {}}
    table = Table(rows, start=start, discount=0.5)
    run = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0))).policy.start()
    assert (run.step, run.level, run.reward_ahead) == (0, 0, 1.5)
    run.observe("0")
    assert (run.step, run.level, run.reward, run.reward_ahead) == (0, 1, 1.0, 1.0)
    run.observe(state=2)
    assert (run.step, run.level, run.reward) == (1, 2, 2.0)


def test_observations_may_be_the_next_state() -> None:
    run = start_fork()
    with pytest.raises(PolicyError, match=r"2 outcomes .* 'island, reward 2'.*reward="):
        run.observe("island")
    with pytest.raises(PolicyError, match="no outcome 'island' that pays 7"):
        run.observe("island", reward=7)
    assert run.history == []
    run.observe("island", reward=2.0)
    assert run.history == [("row", "island, reward 2")]
    run = start_fork()
    run.observe(state="reef")
    assert run.history == [("row", "hit")]
    run = start_fork()
    run.observe(FAILURE)
    assert run.failed


def test_a_number_may_be_a_position_or_a_state() -> None:
    rows = [Outcome(0.5, 1, 1, "one"), Outcome(0.25, 2, 0, "none"), Outcome(0.25, 2, 7, "far")]
    table = Table({0: {"go": rows}, 1: {}, 7: {}})
    start = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0))).policy.start
    run = start()
    with pytest.raises(PolicyError, match="0 fits 2 outcomes of 'go'"):
        run.observe(0)
    with pytest.raises(PolicyError, match="either an outcome or the state"):
        run.observe(0, state=0)
    run.observe(state=0)
    assert run.history == [("go", "none")]
    run = start()
    run.observe(7)
    assert run.history == [("go", "far")]


def test_numbers_of_numpy_are_numbers() -> None:
    table = Table({0: {"go": [Outcome(0.5, 1, "a"), Outcome(0.5, 2, "b")]}})
    run = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0))).policy.start()
    run.observe(np.int64(1))
    assert run.history == [("go", "b")]


def test_what_cannot_happen_changes_nothing() -> None:
    run = start_fork()
    run.observe("hit")
    assert run.action == "swim"  # the model was evaluated
    before = dict(vars(run))
    for wrong in (
        {"outcome": "cave"},
        {"state": "cave"},
        {"state": "end", "reward": 3.0},
        {"state": np.arange(2)},
    ):
        with pytest.raises(PolicyError, match="has no outcome"):
            run.observe(**wrong)
    with pytest.raises(PolicyError, match="reward must be a finite number, not 'much'"):
        run.observe(state="end", reward="much")
    with pytest.raises(PolicyError, match="reward must be a finite number, not nan"):
        run.leave("end", math.nan)
    assert vars(run) == before
    assert not run.left_plan


def test_a_run_that_left_its_plan_has_no_action() -> None:
    run = start_fork()
    run.leave("cave", reward=1.0)
    assert (run.left_plan, run.unplanned, run.finished) == (True, True, False)
    assert (run.state, run.step, run.reward) == ("cave", 1, 1.0)
    assert math.isnan(run.risk)
    assert math.isnan(run.reward_ahead)
    assert run.risk_left == pytest.approx(0.1 + 0.15 * 0.2)
    assert run.expected == {}
    with pytest.raises(PolicyError, match=r"left its plan: vulcan\.replan"):
        _ = run.action
    run.leave("end")
    assert run.finished
    with pytest.raises(PolicyError, match="finished"):
        _ = run.action


def test_a_run_may_leave_its_plan_where_it_is() -> None:
    run = start_fork()
    run.observe("hit")
    run.leave()
    assert (run.state, run.step, run.unplanned) == ("reef", 1, True)
    run = start_fork()
    run.observe("sunk")
    with pytest.raises(PolicyError, match="unfinished run"):
        run.leave()


@pytest.mark.parametrize("state", ["nostate", (1, 2, 3), 12345, [0], vulcan.model.FAILURE])
def test_a_run_does_not_leave_for_a_state_that_its_model_does_not_know(state: Any) -> None:
    run = vulcan.solve(vulcan.Problem(Bandit(3), "0.002 * x")).policy.start()
    before = dict(vars(run))
    with pytest.raises(PolicyError, match="the state"):
        run.leave(state)
    assert vars(run) == before
    run.leave((0, 1, 0, 0, 0, 0))
    assert run.left_plan


def test_a_run_follows_only_a_policy_of_its_model() -> None:
    def solve(model: Any) -> Policy:
        return vulcan.solve(vulcan.Problem(model, 0.5)).policy

    rows = {0: {"go": [Outcome(0.9, 1.0, 1), Outcome.failure(0.1)]}, 1: {}}
    riskier = {0: {"go": [Outcome(0.8, 1.0, 1), Outcome.failure(0.2)]}, 1: {}}
    run = solve(Table(rows, 2)).start()
    before = dict(vars(run))
    for other in (Table(riskier, 2), Table({0: {}}, 2), Table(rows, 2, 0.5)):
        with pytest.raises(MismatchError):
            run.follow(solve(other))
        assert vars(run) == before
    run.follow(solve(Table(rows, 2)))
    assert run.action == "go"


def test_a_run_without_a_model_says_what_it_lacks(saved: Path) -> None:
    run = Policy.load(saved).start()
    assert run.risk > 0
    for ask in ("state", "step", "reward", "reward_ahead"):
        with pytest.raises(PolicyError, match=r"policy\.bind\(model\)"):
            getattr(run, ask)
    with pytest.raises(PolicyError, match="bound to its model"):
        run.leave()


class Thermometer(Table):
    """A model that knows which outcome a temperature stands for."""

    def locate(self, state: Any, action: str, measurement: float) -> Any:
        if measurement > 100:
            return None
        return "hot" if measurement > 20 else 1


def test_measurements_are_located_by_the_model() -> None:
    rows = {0: {"look": [Outcome(0.5, 0, 0, "hot"), Outcome(0.5, 0, 1)]}, 1: {}}
    policy = vulcan.solve(vulcan.Problem(Thermometer(rows, 2), vulcan.Constant(0))).policy
    run = policy.start()
    with pytest.raises(PolicyError, match="101 impossible after 'look' in state 0"):
        run.measure(101)
    assert run.history == []
    run.measure(35.5)
    run.measure(3)
    assert run.history == [("look", "hot"), ("look", "1")]
    with pytest.raises(PolicyError, match="has no locate"):
        start_fork().measure(1.0)


def test_a_run_says_where_it_is() -> None:
    run = vulcan.solve(vulcan.Problem(Bandit(2), 1.0)).policy.start()
    assert repr(run) == f"Run(decisions=0, now={run.action_label!r})"
    failed = copy.copy(run)
    failed.observe(FAILURE)
    assert repr(failed) == "Run(decisions=1, now='failed')"
    run.observe(0)
    run.observe(0)
    assert repr(run) == "Run(decisions=2, now='finished')"


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
def crossing(tmp_path_factory: Any) -> Any:
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
    crossing, other, message
):
    run = crossing.bind(other).start()
    run.observe("island")
    where = rf"step 2: action 'swim' in state 'island'.*{message}"
    for ask in (
        lambda: run.action,
        lambda: run.action_label,
        lambda: run.expected,
        lambda: run.observe("shore"),
        lambda: vulcan.replan(run),
    ):
        with pytest.raises(MismatchError, match=where):
            ask()
    assert run.history == [("row", "island")]


def test_what_is_not_met_does_not_matter(crossing: Policy) -> None:
    other = swim(Outcome(0.1, 1.0, "shore"), Outcome.failure(0.9))
    run = crossing.bind(other).start()
    for outcome in ("reef", "shore", "home"):
        run.observe(outcome)
    assert run.finished
    assert run.reward == 3.0


def test_a_plan_that_ends_where_the_model_goes_on_is_refused(crossing: Policy) -> None:
    shorter = vulcan.solve(vulcan.Problem(cross(shore={}), 0.01)).policy
    run = shorter.bind(cross()).start()
    run.observe("island")
    with pytest.raises(MismatchError, match="ends in state 'shore', which has actions"):
        run.observe("shore")
    run = crossing.bind(cross(shore={})).start()
    run.observe("island")
    run.observe("shore")
    with pytest.raises(MismatchError, match=r"step 3: .*'walk' in .*has no actions"):
        run.observe("home")


def test_a_run_in_another_world_may_leave_its_plan(crossing: Policy) -> None:
    rest = {"wait": [Outcome(1.0, 0.0, "island")]}
    other = {"swim": [Outcome(0.1, 1.0, "shore"), Outcome.failure(0.9)]}
    run = crossing.bind(cross(island={**other, **rest})).start()
    run.observe("island")
    with pytest.raises(MismatchError):
        _ = run.action
    run.leave()
    vulcan.replan(run)
    assert run.action == "wait"


def test_a_decision_evaluates_the_model_once(crossing: Policy) -> None:
    model = cross()
    run = crossing.bind(model).start()
    run.observe("island")
    model.calls.clear()
    assert run.action == run.action_label == "swim"
    assert run.expected == {"shore": 0.999, "failure": 0.001}
    run.observe("shore")
    assert model.calls == {("island", "swim"): 1}
