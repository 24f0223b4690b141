"""Equal states that a model tells apart: a rule broken for the checker, and no certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.helpers.lying_models import Board, Mission, one
from vulcan import Outcome
from vulcan.model.check import check_model
from vulcan.model.rules import find_difference


@dataclass(frozen=True)
class Boat:
    """Two boats at one place are equal, whatever is broken in them."""

    place: int
    broken: int = field(default=0, compare=False, repr=False)


class Voyage:
    """A boat goes to a place where it may break, and from there on; what is broken matters."""

    horizon = 3

    def __init__(self, merges: bool = True, matters: bool = True) -> None:
        self.merges, self.matters = merges, matters

    def initial_state(self) -> Boat:
        return Boat(0)

    def actions(self, state: Boat) -> list[str]:
        return ["sail"]

    def outcomes(self, state: Boat, action: str) -> list[Outcome]:
        if state.broken and self.matters:
            return [Outcome(0.1, 1.0, Boat(state.place + 1)), Outcome.failure(0.9)]
        return self.sail(state)

    def sail(self, state: Boat) -> list[Outcome]:
        """One of two indistinguishable outcomes breaks the boat."""
        after = state.place + 1
        return [Outcome(0.5, 1.0, Boat(after, broken)) for broken in (0, 1)]


class Told(Voyage):
    """The two outcomes have labels."""

    def sail(self, state: Boat) -> list[Outcome]:
        after = state.place + 1
        return [Outcome(0.5, 1.0, Boat(after, broken), f"is {broken}") for broken in (0, 1)]


class Wearing(Voyage):
    """The boat wears out unseen, on one of two ways that meet again, and breaks much later."""

    horizon = 6

    def actions(self, state: Boat) -> list[str]:
        return ["left", "right"] if state.place == 0 else ["sail"]

    def outcomes(self, state: Boat, action: str) -> list[Outcome]:
        after = state.place + 1
        if state.place == 5 and state.broken and self.matters:
            return [Outcome.failure(1.0)]
        if state.place == 0:
            return [Outcome(0.5, 1.0, Boat(after, k), f"{action} {k}") for k in (0, 1)]
        return [one(Boat(after, state.broken), 1.0)]


class Ending(Voyage):
    """A broken boat stays where it is; another one goes on."""

    def actions(self, state: Boat) -> list[str]:
        return [] if state.broken else ["sail"]


MODELS = [Voyage, Told, Wearing, Ending]


@pytest.mark.parametrize("model", [*(kind() for kind in MODELS), Voyage(merges=False)])
def test_the_checker_evaluates_both(model: Voyage) -> None:
    report = check_model(model)
    assert report.duplicates
    violation = report.violations[0]
    assert violation.rule == "equal states are alike"
    assert violation.state == violation.value
    assert find_difference(violation.state, violation.value) == ".broken is 0 and 1"
    text = str(violation)
    assert ".broken is 0 and 1" in text
    assert text.count(repr(violation.state)) >= 2


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("model", [*(kind() for kind in MODELS), Voyage(merges=False)])
def test_no_certificate_for_them(model: Voyage, exact: bool) -> None:
    problem = vulcan.Problem(model, 1.0)
    with pytest.raises(vulcan.errors.ModelError, match="equal states answer differently") as caught:
        vulcan.solve(problem)
    assert caught.value.violation.rule == "equal states are alike"
    assert type(model).__name__ in str(caught.value)
    sound = vulcan.Problem(type(model)(model.merges, matters=False), 1.0)
    if isinstance(model, Ending):
        return  # it has no sound form
    policy = vulcan.solve(sound).policy
    vulcan.certify(sound, policy, exact=exact)
    with pytest.raises((vulcan.errors.ModelError, vulcan.errors.MismatchError)) as refused:
        vulcan.certify(problem, policy, exact=exact)
    assert refused.type is vulcan.errors.ModelError


@pytest.mark.parametrize("kind", [Voyage, Told, Wearing])
def test_what_does_not_matter_may_differ(kind: type[Voyage]) -> None:
    report = check_model(kind(matters=False))
    assert report.ok
    assert report.duplicates
    assert "beside equal ones" in str(report)
    assert vulcan.solve(vulcan.Problem(kind(matters=False), 1.0)).safe


def test_states_that_are_alike_are_evaluated_once() -> None:
    asked: list[Any] = []

    def outcomes(state: Any, action: str) -> list[Outcome]:
        asked.append(state)
        return [Outcome(0.5, 0.0, (state[0] + 1, "é" * k)) for k in (1, 2)]

    model = Mission(
        horizon=3, initial_state=lambda: (0, ""), actions=lambda s: ["go"], outcomes=outcomes
    )
    policy = vulcan.solve(vulcan.Problem(model, 1.0)).policy
    asked.clear()
    vulcan.certify(vulcan.Problem(model, 1.0), policy)
    assert sorted(asked) == sorted(set(asked))


def test_a_state_that_a_question_changes_gets_no_certificate() -> None:
    model = Mission(
        initial_state=Board,
        actions=lambda board: ["go"],
        outcomes=lambda board, action: [one(board.move(), label="moved")],
    )
    with pytest.raises(vulcan.errors.ModelError) as caught:
        vulcan.solve(vulcan.Problem(model, 1.0))
    violation = caught.value.violation
    assert (violation.rule, violation.state) == ("states stay the same", Board(0))
    assert (violation.action, violation.model) == ("go", "Mission")


class Chest(msgspec.Struct, frozen=True):
    content: tuple[Any, ...]


class Drawer:
    __slots__ = ("__lock", "content")

    def __init__(self, content: Any, lock: int = 0) -> None:
        self.content, self.__lock = content, lock


@pytest.mark.parametrize(
    ("first", "other", "difference"),
    [
        ((1, 2), (1, 2), None),
        ((1, 2), (1, 2.0), "[1] is 2 and 2.0"),
        ((0.0,), (-0.0,), "[0] is 0.0 and -0.0"),
        (float("nan"), float("nan"), None),
        ({"a": [1]}, {"a": [True]}, "['a'][0] is 1 and True"),
        (frozenset({1, "x"}), frozenset({"x", 1.0}), "is 1 and 1.0"),
        (Boat(1, 2), Boat(1, 2), None),
        (Boat(1), Boat(1, 2), ".broken is 0 and 2"),
        (Chest((Boat(1),)), Chest((Boat(1, 3),)), ".content[0].broken is 0 and 3"),
        (Drawer(1), Drawer(1), None),
        (Drawer(1), Drawer(1, 5), "_Drawer__lock is 0 and 5"),
        (np.arange(3), np.arange(3), None),
        (np.arange(3), np.arange(3.0), "dtype is 'int64' and 'float64'"),
        (np.float64(1.0), np.float64(1.0), None),
        (np.float64(1.0), 1.0, "is np.float64(1.0) and 1.0"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_differences_are_found(first: Any, other: Any, difference: str | None) -> None:
    found = find_difference(first, other)
    assert found == difference if difference is None else difference in str(found)


def test_what_can_not_be_looked_into_differs() -> None:
    assert find_difference(object(), object()) is not None
    circle: list[Any] = []
    circle.append(circle)
    other: list[Any] = []
    other.append(other)
    assert "part by part" in str(find_difference(circle, other))
