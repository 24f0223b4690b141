"""A model that lies never gets a policy."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import vulcan
from tests.conftest import Clock
from tests.helpers.lying_models import (
    SOUND,
    VISIBLE_AT_ONCE,
    Lie,
    Mission,
    Sulky,
    Wordless,
    answer_go,
    answer_in,
    change,
    one,
    parametrise,
)
from vulcan import Outcome
from vulcan.errors import MismatchError, ModelError
from vulcan.model.check import check_model
from vulcan.model.interface import FAILURE

ANY_RISK = vulcan.Constant(1.0)


def test_without_a_lie_there_is_a_policy() -> None:
    assert check_model(SOUND).ok
    assert vulcan.solve(vulcan.Problem(SOUND, ANY_RISK)).safe


@parametrise(VISIBLE_AT_ONCE)
def test_solve_raises_where_the_report_does(lie: Lie) -> None:
    model = Mission(**lie.replaced())
    with pytest.raises(ModelError) as caught:
        vulcan.solve(vulcan.Problem(model, ANY_RISK))
    assert caught.value.violation == check_model(model).violations[0]
    assert caught.value.violation.model == "Mission"
    assert "model Mission" in str(caught.value)


def change_outcomes(*after: Outcome) -> dict[str, Any]:
    return answer_go(change(SOUND.outcomes("middle", "go"), list(after)))


def end_goes_on() -> dict[str, Any]:
    ask = change([], ["go"])
    return {"horizon": 3, "actions": lambda s: ask() if s == "end" else SOUND.actions(s)}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (change_outcomes(Outcome(0.9, 2.0, "end"), Outcome.failure(0.1)), ["'go'", "2.0"]),
        (change_outcomes(Outcome(0.8, 1.0, "end"), Outcome.failure(0.2)), ["'go'", "0.8"]),
        (
            change_outcomes(Outcome(0.9, 1.0, "end", "there"), Outcome.failure(0.1)),
            ["'middle'", "'go'", "there"],
        ),
        (change_outcomes(Outcome(1.0, 1.0, "end")), ["'middle'", "'go'", "failure"]),
        (
            change_outcomes(
                Outcome.failure(0.9, 1.0, "end"), Outcome(0.1, 0.0, "middle", "failure")
            ),
            ["'middle'", "'go'", "['failure', 'end']"],
        ),
        (answer_in(change(["go", "wait"], ["wait"])), ["'go' in state 'middle'", "'wait'"]),
        (end_goes_on(), ["'end'"]),
        (answer_go(change([one("middle")], [one("middle", 9.0)]), "start"), []),
    ],
    ids=["reward", "probability", "label", "fewer", "failure", "actions", "terminal", "root"],
)
def test_solve_sees_what_changes_after_the_search(changed: Any, named: list[str]) -> None:
    with pytest.raises(MismatchError) as caught:
        vulcan.solve(vulcan.Problem(Mission(**changed), ANY_RISK))
    assert [text for text in named if text not in str(caught.value)] == []


SOLVERS = [vulcan.Automatic(), vulcan.ForwardSearch(), vulcan.LocalVulcan(), vulcan.Vulcan()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_states_that_can_not_be_compared_are_an_error_of_the_model(solver: Any) -> None:
    model = Mission(
        actions=lambda state: ["left", "right"],
        outcomes=lambda state, action: [one(Sulky(action), label=action)],
    )
    with pytest.raises(ModelError, match="not with me") as caught:
        vulcan.solve(vulcan.Problem(model, ANY_RISK), solver)
    assert caught.value.violation.rule == "states compare"
    assert caught.value.violation.model == "Mission"


def test_such_states_are_an_error_in_a_certificate_too() -> None:
    good = Mission(
        actions=lambda state: ["left", "right"] if state == "start" else [],
        outcomes=lambda state, action: [Outcome(0.5, 1.0, f"{action} {k}", f"{k}") for k in (1, 2)],
    )
    policy = vulcan.solve(vulcan.Problem(good, ANY_RISK)).policy
    states = [Sulky("1"), Sulky("2")]
    bad = Mission(
        actions=lambda state: ["left", "right"] if state == "start" else [],
        outcomes=lambda state, action: [Outcome(0.5, 1.0, state, str(state)) for state in states],
    )
    with pytest.raises(ModelError, match=r"not with me.*model Mission"):
        vulcan.certify(vulcan.Problem(bad, ANY_RISK), policy)


def test_actions_that_can_not_be_compared() -> None:
    model = Mission(actions=lambda state: [Sulky("left"), Sulky("right")])
    with pytest.raises(ModelError, match=r"not with me.*state 'start', model Mission"):
        vulcan.solve(vulcan.Problem(model, ANY_RISK))
    assert check_model(model).violations[0].rule == "answers"


def test_a_state_without_a_text_is_named_all_the_same() -> None:
    state = Wordless()
    model = Mission(
        actions=lambda asked: ["go"], outcomes=lambda asked, action: [one(state)], horizon=1
    )
    with pytest.raises(ModelError, match=r"text of a state.*Wordless object"):
        vulcan.solve(vulcan.Problem(model, ANY_RISK))
    violation = check_model(model).violations[0]
    assert (violation.rule, violation.state, violation.action) == ("answers", "start", "go")
    assert violation.value is state


def test_messages_show_what_can_not_be_shown() -> None:
    class Faceless(Mission):
        __repr__ = Wordless.__repr__

    state = Wordless()
    ask = change([one(state, label="on")], [one(state, 2.0, label="on")])
    model = Faceless(
        initial_state=lambda: state, actions=lambda asked: ["go"], outcomes=lambda s, a: ask()
    )
    with pytest.raises(MismatchError, match=r"action 'go' in state .*Wordless object"):
        vulcan.solve(vulcan.Problem(model, ANY_RISK), vulcan.ForwardSearch())
    loud = Faceless(actions=lambda state: Wordless().__str__())
    with pytest.raises(ModelError, match=r"Faceless\.actions raised .*ValueError"):
        vulcan.solve(vulcan.Problem(loud, ANY_RISK))


@pytest.mark.parametrize("name", ["discount", "horizon"])
@pytest.mark.parametrize("times", range(1, 12))
def test_a_frame_that_changes_gets_no_policy(name: str, times: int) -> None:
    before, after = (0.5, 1.0) if name == "discount" else (2, 1)
    ask = change(*[before] * times, after)
    kind = type("Drifting", (Mission,), {name: property(lambda self: ask())})
    with suppress(ModelError, MismatchError):
        result = vulcan.solve(vulcan.Problem(kind(), ANY_RISK))
        # All reads were before it changed, or all after.
        expected = {"discount": {0.5: 1.305, 1.0: 1.71}, "horizon": {2: 1.71, 1: 0.9}}[name]
        found = expected[getattr(result.policy.about, name)]
        assert result.certificate.reward == pytest.approx(found)


def test_a_discount_that_changes_is_a_broken_rule() -> None:
    ask = change(0.5, 1.0)
    kind = type("Drifting", (Mission,), {"discount": property(lambda self: ask())})
    report = check_model(kind())
    assert [violation.rule for violation in report.violations] == ["answers repeat"]
    assert report.violations[0].value == (0.5, 1.0)


@pytest.mark.parametrize("name", ["discount", "horizon", "merges", "fingerprint", "action_label"])
@pytest.mark.parametrize("error", [ValueError, AttributeError])
def test_attributes_that_raise_are_errors_of_the_model(name: str, error: type) -> None:
    def fail(self: Any) -> Any:
        raise error("lost")

    kind = type("Moody", (Mission,), {name: property(fail)})
    if (name, error) == ("action_label", AttributeError):
        return  # such a model has none
    with pytest.raises(ModelError, match=r"Moody.*lost|lost.*Moody"):
        vulcan.solve(vulcan.Problem(kind(), ANY_RISK))


def test_outcomes_of_a_class_of_their_own_are_read_once() -> None:
    class Wavering(Outcome, frozen=True):
        @property
        def fails(self) -> bool:
            return False

    model = Mission(**answer_go(lambda: [Wavering(0.5, 1.0, "end"), Wavering(0.5, 0.0, FAILURE)]))
    result = vulcan.solve(vulcan.Problem(model, ANY_RISK))
    assert result.certificate.risk == pytest.approx(0.1 + 0.9 * 0.5)


LITTLE_RISK = vulcan.Constant(0.001)

PROVING_SOLVERS = [
    vulcan.Automatic(),
    vulcan.Vulcan(),
    vulcan.LocalVulcan(),
    vulcan.ForwardSearch(),
    vulcan.Pareto(),
    vulcan.Lagrangian(),
    vulcan.baselines.LinearProgram(),
    vulcan.baselines.IntegerProgram(),
    vulcan.baselines.RAOStar(update="exact"),
]


def cross(draw: Callable[[], float]) -> Mission:
    """Return three crossings, of which each fails with a probability that is drawn anew."""

    def outcomes(state: int, action: str) -> list[Outcome]:
        risk = draw() * (0.8 if action == "slowly" else 1.0)
        return [Outcome(1 - risk, 1.0, state + 1), Outcome.failure(risk)]

    return Mission(
        horizon=3,
        initial_state=lambda: 0,
        actions=lambda state: ["quickly", "slowly"],
        outcomes=outcomes,
    )


def draw_at_random(seed: int) -> Callable[[], float]:
    rng = random.Random(seed)
    return lambda: rng.uniform(0.1, 0.9)


def alternate(seed: int) -> Callable[[], float]:
    risks = itertools.cycle((0.1 + 0.01 * seed, 0.2 + 0.01 * seed))
    return lambda: next(risks)


@pytest.mark.parametrize("solver", PROVING_SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("lie", [draw_at_random, alternate])
@pytest.mark.parametrize("bound", [LITTLE_RISK, ANY_RISK], ids=["infeasible", "feasible"])
def test_a_model_that_contradicts_itself_is_found_out(solver: Any, lie: Any, bound: Any) -> None:
    limits = {"samples": 200} if solver.sampling else {}
    for seed in range(20):
        problem = vulcan.Problem(cross(lie(seed)), bound)
        with pytest.raises((ModelError, MismatchError)) as caught:
            vulcan.solve(problem, solver, **limits)
        text = str(caught.value)
        assert "ly'" in text  # an action
        assert "state " in text


def test_a_proof_names_the_answer_that_changed() -> None:
    problem = vulcan.Problem(cross(alternate(0)), LITTLE_RISK)
    with pytest.raises(ModelError, match="evaluated again, the outcomes changed") as caught:
        vulcan.solve(problem)
    violation = caught.value.violation
    assert violation.rule == "answers repeat"
    assert violation.state in (0, 1, 2)
    assert violation.action in ("quickly", "slowly")
    assert violation.model == "Mission"


def test_a_proof_just_before_the_limit_is_not_reported(clock: Clock) -> None:
    def act(state: int) -> list[str]:
        clock.now += next(seconds)  # when queried again, two seconds
        return ["go"]

    seconds = itertools.chain([0.9], itertools.repeat(2.0))
    model = cross(lambda: 0.5)
    model.horizon, model.actions, model.action_label = 1, act, str
    result = vulcan.solve(vulcan.Problem(model, LITTLE_RISK), vulcan.Pareto(), time_limit=1)
    assert result.status is vulcan.planning.Status.STOPPED
    assert result.stopped_by == "time limit"
    assert "no time to query answers again" in result.explanation
    assert result.upper_bound is None


def test_actions_that_change_after_the_search_refute_a_proof() -> None:
    ask = change(["go"], ["go", "wait"])
    model = Mission(**answer_in(ask, "start"), horizon=1)
    with pytest.raises(ModelError, match=r"the actions changed from .*'wait'"):
        vulcan.solve(vulcan.Problem(model, LITTLE_RISK), vulcan.Pareto())


def test_few_answers_are_queried_again() -> None:
    asked = itertools.count()

    def outcomes(state: int, action: int) -> list[Outcome]:
        next(asked)
        return [Outcome(0.5, 1.0, 10 * state + action), Outcome.failure(0.5)]

    model = Mission(
        horizon=4, initial_state=lambda: 1, actions=lambda state: range(10), outcomes=outcomes
    )
    result = vulcan.solve(vulcan.Problem(model, LITTLE_RISK), vulcan.Pareto())
    assert result.status is vulcan.planning.Status.INFEASIBLE
    again = next(asked) - result.statistics.evaluations
    assert 0 < again <= 500
