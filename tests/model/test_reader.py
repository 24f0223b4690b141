"""What a reader makes of the answers of a model, up to the last one that is allowed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pytest

from vulcan import Outcome, Start
from vulcan.domains import Bandit
from vulcan.errors import ModelError, PolicyError
from vulcan.model.answers import add_up, observe_outcomes
from vulcan.model.interface import FAILURE, describe_model, stable_text
from vulcan.model.reader import ModelReader
from vulcan.model.rules import LONGEST_HORIZON, Rule, Violation, read_frame
from vulcan.numerics import LARGEST_REWARD


class Walk:
    """A model of which tests change one answer."""

    horizon: Any = 3

    def __init__(self, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, answer)

    def initial_state(self) -> Any:
        return 0

    def actions(self, state: Any) -> Any:
        return ["go"]

    def outcomes(self, state: Any, action: Any) -> Any:
        return [Outcome(1.0, 1.0, state + 1)]


def give(answer: Any) -> Callable[..., Any]:
    """Return a method that gives one answer, or raises it."""

    def method(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return method


def refuse(call: Callable[[], Any]) -> Violation:
    """Return what a reader refuses an answer for."""
    with pytest.raises(ModelError) as caught:
        call()
    return caught.value.violation


# The frame.


def test_levels_and_weights() -> None:
    reader = ModelReader(Walk(discount=0.5))
    assert (reader.horizon, reader.levels, reader.merges) == (3, 3, True)
    assert reader.discounts.tolist() == [0.5, 0.5, 0.5]
    assert reader.weights.tolist() == [1.0, 0.5, 0.25]
    assert [reader.discount_after(level) for level in range(3)] == [0.5, 0.5, 0.5]


def test_an_initial_action_is_a_level_without_a_discount() -> None:
    start = Start.draw([Outcome(1.0, 0.0, 0)])
    reader = ModelReader(Walk(discount=0.5, initial_state=lambda: start, merges=False))
    assert (reader.horizon, reader.levels, reader.merges) == (3, 4, False)
    assert reader.discounts.tolist() == [1.0, 0.5, 0.5, 0.5]
    assert reader.weights.tolist() == [1.0, 1.0, 0.5, 0.25]
    assert [reader.discount_after(level) for level in range(3)] == [1, 0.5, 0.5]


@pytest.mark.parametrize("horizon", [1, LONGEST_HORIZON, np.int32(5)])
def test_horizons_that_are_allowed(horizon: Any) -> None:
    assert not list(read_frame(Walk(horizon=horizon))[1])


@pytest.mark.parametrize("discount", [0, 1, 0.0, 1.0, Fraction(1, 2)])
def test_discounts_that_are_allowed(discount: Any) -> None:
    assert not list(read_frame(Walk(discount=discount))[1])


def test_violations_name_the_place_if_there_is_one() -> None:
    assert str(Violation(Rule.REWARDS, "too much")) == "too much"
    assert str(Violation(Rule.REWARDS, "too much", 0)) == "too much (state 0)"
    assert str(Violation(Rule.REWARDS, "too much", 0, "go")) == "too much (state 0, action 'go')"


# Lists of answers.


class Way(Enum):
    LEFT = 1


def test_labels_of_actions() -> None:
    reader = ModelReader(Walk(actions=give([Way.LEFT, (1, 2)])))
    assert reader.actions(0) == {"LEFT": Way.LEFT, "(1, 2)": (1, 2)}
    numbers = iter(range(9))
    named = ModelReader(Walk(action_label=lambda action: f"{action} {next(numbers)}"))
    assert [list(named.actions(0)) for _ in range(2)] == [["go 0"], ["go 1"]]
    start = Start({"here": [Outcome(1.0, 0.0, 0)]})
    reader = ModelReader(Walk(initial_state=lambda: start, action_label=give("label")))
    assert list(reader.actions(start)) == ["here"]
    assert list(reader.actions(0)) == ["label"]


@pytest.mark.parametrize("answer", [{"go": 1}.keys(), ("go",), iter(["go"]), {"go": 1}])
def test_lists_of_any_kind_that_has_an_order(answer: Any) -> None:
    assert ModelReader(Walk(actions=give(answer))).actions(0) == {"go": "go"}


@pytest.mark.parametrize("answer", [{"go"}, "go", 1, None, frozenset({"go"})])
def test_lists_without_an_order_are_refused(answer: Any) -> None:
    for kind, where in (("actions", (0, None)), ("outcomes", (0, "go"))):
        reader = ModelReader(Walk(**{kind: give(answer)}))
        violation = refuse(lambda reader=reader: reader.actions(0) and reader.outcomes(0, "go"))
        assert violation.rule == f"{kind} are a list"
        assert (violation.state, violation.action, violation.value) == (*where, answer)


def raise_later(error: Exception) -> Iterator[str]:
    yield "go"
    raise error


def test_what_a_model_raises() -> None:
    said = ModelError(Violation(Rule.STATES, "said by the model itself"))
    for error in (said, PolicyError("said by the model itself")):
        with pytest.raises(type(error), match="by the model itself") as caught:
            ModelReader(Walk(actions=give(error))).actions(0)
        assert caught.value is error
    with pytest.raises(ModelError) as caught:
        ModelReader(Walk(actions=give(raise_later(said)))).actions(0)
    assert caught.value is said
    cause = KeyError("nowhere")
    for answer in (give(cause), give(raise_later(cause))):
        with pytest.raises(ModelError, match="raised KeyError") as caught:
            ModelReader(Walk(actions=answer)).actions(0)
        assert caught.value.__cause__ is cause
        assert (caught.value.violation.rule, caught.value.violation.state) == (Rule.ANSWERS, 0)
    violation = refuse(lambda: ModelReader(Walk(outcomes=give(cause))).outcomes(1, "go"))
    assert (violation.state, violation.action) == (1, "go")


def test_answers_about_the_root_are_remembered() -> None:
    asked: list[Any] = []

    def outcomes(state: int, action: str) -> list[Outcome]:
        asked.append(state)
        return [Outcome(1.0, 1.0, state + 1)]

    reader = ModelReader(Walk(outcomes=outcomes))
    for state in (0, 1, 0, 1):
        assert reader.outcomes(state, "go") == [Outcome(1.0, 1.0, state + 1)]
    assert asked == [0, 1, 1]
    assert reader.evaluate(1) == [("go", "go", [Outcome(1.0, 1.0, 2)])]
    assert reader.read([1, 2], ["go", "go"]).split() == [
        [Outcome(1.0, 1.0, 2)],
        [Outcome(1.0, 1.0, 3)],
    ]


# Bounds, measurements, fingerprints.


def test_bounds_on_rewards_and_values() -> None:
    for bound in (1, -math.inf, math.inf, Fraction(1, 2)):
        reader = ModelReader(Walk(reward_to_go_bound=give(bound)))
        assert reader.bound_reward(0, 0) == reader.bound_value(0, 0, 1.0) == bound
        reader = ModelReader(Walk(value_to_go_bound=give(bound)))
        assert reader.bound_value(0, 0, 1.0) == bound
        assert type(reader.bound_value(0, 0, 1.0)) is float
    for bound in (math.nan, "1", None, True):
        reader = ModelReader(Walk(reward_to_go_bound=give(bound), value_to_go_bound=give(bound)))
        for call in (reader.bound_reward, lambda *where, r=reader: r.bound_value(*where, 1.0)):
            violation = refuse(lambda call=call: call(5, 0))
            assert (violation.rule, violation.state) == (Rule.REWARD_BOUNDS, 5)


def test_bounds_on_risks() -> None:
    for bound in (0, 1, 0.5):
        assert ModelReader(Walk(risk_to_go_bound=give(bound))).bound_risk(0, "go", 0) == bound
    for bound in (-1e-9, 1 + 1e-9, math.nan, "0", True):
        reader = ModelReader(Walk(risk_to_go_bound=give(bound)))
        violation = refuse(lambda reader=reader: reader.bound_risk(5, "go", 0))
        assert (violation.rule, violation.state, violation.action) == (Rule.RISK_BOUNDS, 5, "go")


def test_measurements_go_to_the_model() -> None:
    reader = ModelReader(Walk(locate=lambda *where: where))
    assert reader.locate(0, "go", 3.5) == (0, "go", 3.5)


def test_fingerprints_differ_where_answers_do() -> None:
    models = [
        Walk(),
        Walk(horizon=4),
        Walk(discount=0.5),
        Walk(actions=give(["stay"])),
        Walk(outcomes=give([Outcome(1.0, 2.0, 1)])),
        Walk(outcomes=give([Outcome(1.0, 1.0, 1, "there")])),
        Walk(outcomes=give([Outcome.failure(1.0, 1.0)])),
        Walk(fingerprint="mine"),
        Walk(fingerprint="yours"),
    ]
    prints = [ModelReader(model).fingerprint() for model in models]
    assert len(set(prints)) == len(prints)
    assert {len(text) for text in prints} == {32}
    assert prints[0] == ModelReader(Walk()).fingerprint()


# Outcomes: the quick look accepts nothing that the rules refuse.

ABOVE_ONE = math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    "outcomes",
    [
        [Outcome(1.0, LARGEST_REWARD, 1)],
        [Outcome(1.0, -LARGEST_REWARD, 1)],
        [Outcome(Fraction(1), LARGEST_REWARD, 1)],
        [Outcome(Fraction(1), -LARGEST_REWARD, 1)],
        [Outcome(1, 0, 1)],
        [Outcome(0.5, 0, 1), Outcome(0.5 + 5e-13, 0, 2)],
        [Outcome(Fraction(1, 2), 0, 1), Outcome(0.5 + 5e-13, 0, 2)],
    ],
)
def test_outcomes_that_are_just_allowed(outcomes: list[Outcome]) -> None:
    assert observe_outcomes(0, "go", outcomes) == outcomes


@pytest.mark.parametrize(
    ("outcomes", "rule"),
    [
        ([Outcome(True, 0.0, 1)], Rule.PROBABILITIES),
        ([Outcome(1.0, True, 1)], Rule.REWARDS),
        ([Outcome(ABOVE_ONE, 0.0, 1)], Rule.PROBABILITIES),
        ([Outcome(-0.5, 0, 1), Outcome(0.75, 0, 2), Outcome(0.75, 0, 3)], Rule.PROBABILITIES),
        ([Outcome(1.0, math.nextafter(LARGEST_REWARD, math.inf), 1)], Rule.REWARDS),
        ([Outcome(1.0, -math.nextafter(LARGEST_REWARD, math.inf), 1)], Rule.REWARDS),
        ([Outcome(Fraction(1), 10**400, 1)], Rule.REWARDS),
        ([Outcome(0.0, 0.0, 1)], Rule.PROBABILITIES_SUM),
        ([Outcome(1.0, 0.0, 1), Outcome(1.0, 0.0, 2)], Rule.PROBABILITIES_SUM),
        ([Outcome(0.5, 0.0, 1), Outcome(0.5 + 5e-12, 0.0, 2)], Rule.PROBABILITIES_SUM),
        ([Outcome(0.5, 0.0, 1, 1), Outcome(0.5, 0.0, 2, "1")], Rule.OUTCOME_LABELS_DIFFER),
        ([Outcome(1.0, 0.0, [])], Rule.STATES_HASHABLE),
        ([Outcome(1.0, 0.0, [], "there")], Rule.STATES_HASHABLE),
        ([Outcome(1.0, 0.0, None)], Rule.STATES),
        ([Outcome(1.0, 0.0, Start.draw([Outcome(1.0, 0.0, 1)]))], Rule.STATES),
        ([1], Rule.OUTCOMES_TYPED),
        ([], Rule.OUTCOMES_EXIST),
    ],
)
def test_outcomes_that_are_just_refused(outcomes: list[Any], rule: Rule) -> None:
    assert refuse(lambda: observe_outcomes(0, "go", outcomes)).rule is rule


def test_outcomes_that_are_one_are_the_first_of_them() -> None:
    first, second = (1, 2), (1.0, 2.0)
    (outcome,) = observe_outcomes(0, "go", [Outcome(0.5, 1, first), Outcome(0.5, 1.0, second)])
    assert outcome.state is first
    assert type(outcome.reward) is int
    mixed = add_up([Outcome(Fraction(1, 2), 0, 1), *[Outcome(0.1, 0, 1)] * 5])
    assert mixed.probability == 1.0  # not 0.9999999999999999, added up one by one
    labelled = [Outcome(1.0, 0.0, 1, "there")]
    assert observe_outcomes(0, "go", labelled) == labelled
    assert add_up(labelled) is labelled[0]


def test_safe_outcomes_come_first() -> None:
    mixed = [Outcome.failure(0.25), Outcome(0.5, 0.0, 1), Outcome.failure(0.25, 1.0)]
    for chance in (float, Fraction):
        given = [Outcome(chance(o.probability), o.reward, o.state) for o in mixed]
        found = observe_outcomes(0, "go", given)
        assert [o.state for o in found] == [1, FAILURE, FAILURE]


class Maintenance:
    horizon = 3

    def __init__(self, **parameters: Any) -> None:
        vars(self).update(parameters)

    @cached_property
    def rate(self) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "Maintenance()"),
        ({"horizon": 12, "wear": 0.1}, "Maintenance(horizon=12, wear=0.1)"),
        ({"site": "north", "spare": True}, "Maintenance(site='north', spare=True)"),
        ({"_cache": 1, "table": {1: 2}, "wear": 0.1}, "Maintenance(wear=0.1)"),
    ],
)
def test_parameters_are_shown(parameters: dict[str, Any], text: str) -> None:
    model = Maintenance(**parameters)
    assert describe_model(model) == text
    assert model.rate == 0.5
    assert describe_model(model) == text  # what was computed is no parameter


def test_descriptions_stay_short() -> None:
    model = Maintenance(**{f"parameter_{k}": k for k in range(50)})
    assert describe_model(model).startswith("Maintenance(parameter_0=0, parameter_1=1")
    assert describe_model(model).endswith(", …)")
    assert len(describe_model(model)) < 130
    assert len(describe_model(Maintenance(name="x" * 1000))) < 100


def test_models_describe_themselves_if_they_can() -> None:
    class Slotted:
        __slots__ = ("horizon",)

    assert describe_model(Bandit(3)) == "Bandit(horizon=3)"
    assert describe_model(Slotted()) == "Slotted()"


Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True, kw_only=True)
class Bag:
    things: frozenset[str]
    weight: float = 1.0


class Chest(msgspec.Struct, frozen=True):
    things: frozenset[str]


@dataclass(frozen=True)
class Secret:
    things: frozenset[str]

    def __repr__(self) -> str:
        return f"Secret({{{len(self.things)}}})"


class Move(Enum):
    LEFT = "{left}"


TOOLS = frozenset({"rope", "axe", "key"})
SORTED = "frozenset({'axe', 'key', 'rope'})"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (TOOLS, SORTED),
        ((1, TOOLS), f"(1, {SORTED})"),
        ((TOOLS,), f"({SORTED},)"),
        (frozenset({TOOLS, frozenset()}), f"frozenset({{frozenset(), {SORTED}}})"),
        (frozenset({10, 9, 0.5}), "frozenset({0.5, 9, 10})"),
        (
            ({"b", "a"}, [{"d", "c"}], {1: {"f", "e"}}),
            "({'a', 'b'}, [{'c', 'd'}], {1: {'e', 'f'}})",
        ),
        (Pair(1, TOOLS), f"Pair(left=1, right={SORTED})"),
        (Bag(things=TOOLS), f"Bag(things={SORTED}, weight=1.0)"),
        (Chest(TOOLS), f"Chest(things={SORTED})"),
        (Secret(TOOLS), "Secret({3})"),
        ("{b, a}", "{b, a}"),
        (("{b, a}",), "('{b, a}',)"),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else type(value).__name__
    ),  # texts of sets vary
)
def test_sets_are_sorted_wherever_they_are(value: Any, text: str) -> None:
    assert stable_text(value) == text


@pytest.mark.parametrize(
    "value", [1, 0.5, "a", (1,), (), None, Move.LEFT, [1], Pair(1, 2)], ids=str
)
def test_other_texts_are_as_python_writes_them(value: Any) -> None:
    assert stable_text(value) == str(value)


CODE = """
import vulcan
from vulcan import Outcome

class Shed:
    horizon = 2
    def initial_state(self): return frozenset()
    def actions(self, state): return [("take", frozenset({"rope", "axe"})), ("leave", frozenset())]
    def outcomes(self, state, action):
        return [Outcome(0.5, 1, state | action[1]), Outcome(0.5, 0, state | {"key", "lamp"})]

result = vulcan.solve(vulcan.Problem(Shed(), vulcan.Constant(0)), vulcan.ForwardSearch())
print(result.policy.labels, result.policy.about.fingerprint)
"""


@pytest.mark.slow
def test_labels_do_not_depend_on_the_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(told) == 1
    assert "frozenset({'axe', 'key', 'lamp', 'rope'})" in told.pop()
