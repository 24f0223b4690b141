"""Keys: what merges by them, and what lies about them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

import vulcan
from vulcan import Outcome
from vulcan.errors import ModelError
from vulcan.model.check import check_model
from vulcan.model.keys import require_honest_keys
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule

BOUND = "0.5"


class Machine:
    """A random machine with a few conditions, whose state is the whole history."""

    def __init__(self, seed: int, horizon: int = 4, conditions: int = 4) -> None:
        random = Random(seed)
        self.horizon, self.seed = horizon, seed
        self.table = {
            (condition, action): [
                (random.randrange(conditions), random.random(), 0.02 * random.random())
                for _ in range(2)
            ]
            for condition in range(conditions)
            for action in "ab"
        }

    def initial_state(self) -> Any:
        return (0,)

    def actions(self, state: Any) -> list[str]:
        return ["a", "b"]

    def read(self, state: Any, action: str) -> list[tuple[int, float, float]]:
        return self.table[state[-1], action]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        first, second = self.read(state, action)
        return [
            Outcome(0.5, first[1], (*state, action, first[0]), "one"),
            Outcome(0.5 - second[2], second[1], (*state, action, second[0]), "two"),
            Outcome.failure(second[2]),
        ]


class Keyed(Machine):
    def key(self, state: Any) -> Any:
        return state[-1]


class Lying(Keyed):
    """One history, of the third step at the earliest, is answered in another way."""

    def __init__(self, seed: int, horizon: int = 4) -> None:
        super().__init__(seed, horizon)
        random = Random(1000 + seed)
        state = self.initial_state()
        for _ in range(random.randrange(2, horizon)):
            action = random.choice("ab")
            state = (*state, action, random.choice(self.read(state, action))[0])
        self.special, self.kind = state, random.randrange(3)

    def read(self, state: Any, action: str) -> list[tuple[int, float, float]]:
        first, second = super().read(state, action)
        if state == getattr(self, "special", None) and action == "b":
            condition, reward, risk = second
            second = [
                (condition, reward + 0.01, risk),
                (condition, reward, risk + 0.01),
                ((condition + 1) % 4, reward, risk),
            ][self.kind]
        return [first, second]


@pytest.mark.parametrize("seed", range(3))
def test_keys_change_nothing_but_the_number_of_states(seed: int) -> None:
    plain = vulcan.solve(vulcan.Problem(Machine(seed), BOUND), "pareto")
    keyed = vulcan.solve(vulcan.Problem(Keyed(seed), BOUND), "pareto")
    assert plain.certificate is not None
    assert keyed.certificate is not None
    assert float(keyed.certificate.reward) == pytest.approx(float(plain.certificate.reward))
    assert keyed.certificate.safe
    assert keyed.statistics.evaluations <= 8 < plain.statistics.evaluations
    assert check_model(Keyed(seed)).ok


def test_a_lying_key_is_always_found() -> None:
    for seed in range(100):
        require_honest_keys(ModelReader(Keyed(seed)))
        with pytest.raises(ModelError, match="equal keys answer differently") as raised:
            require_honest_keys(ModelReader(Lying(seed)))
        assert raised.value.violation.rule is Rule.KEYS


def test_the_error_names_both_states() -> None:
    model = Lying(7)
    with pytest.raises(ModelError) as raised:
        vulcan.solve(vulcan.Problem(model, BOUND))
    violation = raised.value.violation
    states = (violation.state, violation.value)
    assert model.special in states
    assert states[0] != states[1]
    assert states[0][-1] == states[1][-1]
    assert all(repr(state) in str(raised.value) for state in states)
    report = check_model(model)
    assert [one.rule for one in report.violations] == [Rule.KEYS]


def test_long_histories_are_compared_at_random() -> None:
    class Late(Keyed):
        """Half of all histories answer differently from the twelfth step on."""

        def read(self, state: Any, action: str) -> list[tuple[int, float, float]]:
            first, second = super().read(state, action)
            odd = len(state) > 24 and state[1] == "b"
            return [first, (second[0], second[1] + odd, second[2])]

    with pytest.raises(ModelError, match="equal keys"):
        vulcan.solve(vulcan.Problem(Late(1, horizon=16), BOUND))


def test_keys_that_cannot_be_hashed_are_refused() -> None:
    class Listed(Machine):
        def key(self, state: Any) -> Any:
            return list(state)

    with pytest.raises(ModelError, match="can't be hashed"):
        vulcan.solve(vulcan.Problem(Listed(0), BOUND))


def test_runs_take_states_of_their_own() -> None:
    model = Keyed(3, horizon=3)
    result = vulcan.solve(vulcan.Problem(model, BOUND))
    assert result.policy is not None
    run = result.policy.start()
    state = model.initial_state()
    while not run.finished:
        outcome = model.outcomes(state, run.action)[1]
        state = outcome.state
        run.observe(state=state, reward=outcome.reward)
    assert run.level == 3


@dataclass(frozen=True)
class Steady:
    """No two states are equal, and all answers are the same."""

    horizon: int = 9
    merges: bool = True

    def initial_state(self) -> Any:
        return ()

    def actions(self, state: Any) -> list[str]:
        return ["go"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        halves = [Outcome(0.49, 1.0, (*state, side), side) for side in ("left", "right")]
        return [*halves, Outcome.failure(0.02)]


def test_identical_answers_are_noticed() -> None:
    report = check_model(Steady(10))
    assert "1,023 histories give 1 answer" in str(report)
    assert "key(state)" in str(report)
    assert report.ok
    assert "key(state)" not in str(check_model(Keyed(0)))
    result = vulcan.solve(vulcan.Problem(Steady(10), 0.3))
    assert "key(state)" in result.advice
    assert "key(state)" in str(result)


class Breakable(Steady):
    """The same with as many failures as safe outcomes."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        safe = super().outcomes(state, action)[:2]
        return [*safe, *(Outcome.failure(0.01, label=name) for name in ("burst", "fire"))]


def test_failures_do_not_hide_that_histories_answer_alike() -> None:
    assert "1,023 histories give 1 answer" in str(check_model(Breakable(10)))
    assert "key(state)" in vulcan.solve(vulcan.Problem(Breakable(10), 0.3)).advice


class Varied(Steady):
    """The answers of all histories of one length differ."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        turns = "".join("1" if side == "left" else "0" for side in state)
        left = 0.3 + 0.3 * int("1" + turns, 2) / 2**11
        safe = [Outcome(left, 1.0, (*state, "left")), Outcome(0.98 - left, 1.0, (*state, "right"))]
        return [*safe, Outcome.failure(0.02)]


def test_different_answers_are_no_reason_to_merge() -> None:
    assert "key(state)" not in str(check_model(Varied(10)))
    assert not vulcan.solve(vulcan.Problem(Varied(10), 0.3)).advice
