"""A small sound model, and ways to make it lie."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pytest

from vulcan import Outcome, Start
from vulcan.model.interface import FAILURE

NAN = float("nan")
INFINITE = float("inf")


class Mission:
    """Two steps from start over middle to end, each a risk of 0.1, or wait. It keeps all rules.

    Each argument replaces one of its attributes or methods.
    """

    horizon = 2

    def __init__(self, **replaced: Any) -> None:
        vars(self).update(replaced)

    def initial_state(self) -> Any:
        return "start"

    def actions(self, state: Any) -> Any:
        return [] if state == "end" else ["go", "wait"]

    def outcomes(self, state: Any, action: Any) -> Any:
        if action != "go":
            return [Outcome(1.0, 0.0, state)]
        after = {"start": "middle", "middle": "end"}[state]
        return [Outcome(0.9, 1.0, after), Outcome.failure(0.1)]


SOUND = Mission()


def answer_in(answer: Callable[[], Any], state: str = "middle") -> dict[str, Any]:
    """Replace the actions of a state, middle by default."""
    return {"actions": lambda asked: answer() if asked == state else SOUND.actions(asked)}


def answer_go(answer: Callable[[], Any], state: str = "middle") -> dict[str, Any]:
    """Replace the outcomes of going from a state, middle by default."""

    def outcomes(asked: Any, action: Any) -> Any:
        return answer() if (asked, action) == (state, "go") else SOUND.outcomes(asked, action)

    return {"outcomes": outcomes}


def change(*answers: Any) -> Callable[[], Any]:
    """Give one answer after the other, and the last one for ever; errors are raised."""
    left = itertools.chain(answers[:-1], itertools.repeat(answers[-1]))

    def answer() -> Any:
        following = next(left)
        if isinstance(following, Exception):
            raise following
        return following

    return answer


def fail() -> Any:
    raise ValueError("lost")


def fail_late() -> Iterator[Any]:
    yield from SOUND.outcomes("middle", "go")
    raise ValueError("lost")


class Unhashable:
    """Its hash raises, and not even the usual error."""

    def __hash__(self) -> int:
        raise ValueError("no hash")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)

    def __repr__(self) -> str:
        return "Unhashable()"


class Sulky:
    """A state or an action that has a hash like others, and a name, and is not to be compared."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise ValueError("not with me")

    def __str__(self) -> str:
        return self.name


class Shifty(float):
    """Converted, it is another number than where it is compared."""

    def __float__(self) -> float:
        return 0.0


class Mute(float):
    """It can't be converted."""

    def __float__(self) -> float:
        raise ValueError("no number")


class Slow(int):
    """A whole number that counts for another one."""

    def __int__(self) -> int:
        return 1_000


class Wordless:
    """It has no text."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


WORDLESS = Wordless()


@dataclass(frozen=True)
class Lie:
    """What to replace in the mission, and the violation that must come of it."""

    replaced: Callable[[], dict[str, Any]]
    rule: str
    state: Any = None
    action: Any = None
    value: Any = None

    @property
    def found(self) -> tuple[Any, ...]:
        return self.rule, self.state, self.action, self.value


def frame(rule: str, value: Any, name: str | None = None) -> Lie:
    return Lie(lambda: {name or rule: value}, rule, value=value)


def initial(rule: str, answer: Callable[[], Any], value: Any = None) -> Lie:
    return Lie(lambda: {"initial_state": answer}, rule, value=value)


def acting(rule: str, answer: Callable[[], Any], value: Any = None) -> Lie:
    return Lie(lambda: answer_in(answer), rule, "middle", None, value)


def going(rule: str, answer: Callable[[], Any], value: Any = None) -> Lie:
    return Lie(lambda: answer_go(answer), rule, "middle", "go", value)


def drawn(probability: Any, reward: Any = 1.0, state: Any = "end") -> Callable[[], Any]:
    """Return outcomes of which one has odd parts; the other makes up for its probability."""
    return lambda: [Outcome(probability, reward, state), Outcome.failure(0.5)]


HALF = Start.draw([Outcome(0.5, 0.0, "start")])

VISIBLE_AT_ONCE = {
    "no horizon": frame("horizon", None),
    "horizon 0": frame("horizon", 0),
    "negative horizon": frame("horizon", -1),
    "horizon not whole": frame("horizon", 2.5),
    "horizon not a number": frame("horizon", True),
    "horizon too long": frame("horizon", 10**13),
    "merges no truth": frame("merges", "no"),
    "discount above 1": frame("discount", 1.5),
    "negative discount": frame("discount", -0.5),
    "discount NaN": frame("discount", NAN),
    "discount no number": frame("discount", "0.9"),
    "discount shifty": frame("discount", Shifty(0.5)),
    "discount mute": frame("discount", Mute(0.5)),
    "horizon slow": frame("horizon", Slow(2)),
    "no initial_state": Lie(lambda: {"initial_state": None}, "interface"),
    "no actions": Lie(lambda: {"actions": None}, "interface"),
    "no outcomes": Lie(lambda: {"outcomes": ["go"]}, "interface"),
    "initial state None": initial("states", lambda: None),
    "initial state a failure": initial("states", lambda: FAILURE, FAILURE),
    "start without choices": Lie(
        lambda: {"initial_state": lambda: Start({})}, "actions exist", Start({})
    ),
    "initial state a list": initial("states are hashable", lambda: ["start"], ["start"]),
    "initial state's hash raises": initial("states are hashable", Unhashable, Unhashable()),
    "initial_state raises": initial("answers", fail),
    "start drawn by half": Lie(
        lambda: {"initial_state": lambda: HALF}, "probabilities sum to 1", HALF, "start", 0.5
    ),
    "actions raise": acting("answers", fail),
    "actions raise later": acting("answers", fail_late),
    "actions no list": acting("actions are a list", lambda: 5, 5),
    "actions a string": acting("actions are a list", lambda: "go", "go"),
    "actions in no order": acting("actions are a list", lambda: {"go"}, {"go"}),
    "actions never end": acting("actions end", itertools.count),
    "action unhashable": acting("actions are hashable", lambda: ["go", ["left"]], ["left"]),
    "action's hash raises": acting("actions are hashable", lambda: [Unhashable()], Unhashable()),
    "action twice": acting("action labels differ", lambda: ["wait", "go", "go"], "go"),
    "actions alike": acting("action labels differ", lambda: [1, "1"], "1"),
    "actions equal": acting("actions differ", lambda: [1, True], 1),
    "outcomes raise": going("answers", fail),
    "outcomes raise later": going("answers", fail_late),
    "outcomes None": going("outcomes are a list", lambda: None),
    "outcomes a string": going("outcomes are a list", lambda: "end", "end"),
    "outcomes never end": going("outcomes end", lambda: itertools.repeat(Outcome(1.0, 0.0, "end"))),
    "outcomes empty": going("outcomes exist", list),
    "outcome a tuple": going(
        "outcomes are Outcomes", lambda: [(1.0, 0.0, "end")], (1.0, 0.0, "end")
    ),
    "probability NaN": going("probabilities", drawn(NAN), NAN),
    "probability negative": going("probabilities", drawn(-0.5), -0.5),
    "probability above 1": going("probabilities", drawn(1.5), 1.5),
    "probability infinite": going("probabilities", drawn(INFINITE), INFINITE),
    "probability a string": going("probabilities", drawn("0.5"), "0.5"),
    "probability a truth": going("probabilities", drawn(True), True),
    "probability None": going("probabilities", drawn(None), None),
    "probability shifty": going("probabilities", drawn(Shifty(0.5)), Shifty(0.5)),
    "probability mute": going("probabilities", drawn(Mute(0.5)), Mute(0.5)),
    "probability decimal": going("probabilities", drawn(Decimal("0.5")), Decimal("0.5")),
    "probabilities below 1": going("probabilities sum to 1", drawn(0.25), 0.75),
    "probabilities above 1": going("probabilities sum to 1", drawn(0.75), 1.25),
    "probabilities just off": going("probabilities sum to 1", drawn(0.5 + 2**-28), 1 + 2**-28),
    "reward NaN": going("rewards", drawn(0.5, NAN), NAN),
    "reward infinite": going("rewards", drawn(0.5, INFINITE), INFINITE),
    "reward too large": going("rewards", drawn(0.5, 10**400), 10**400),
    "reward beyond sums": going("rewards", drawn(0.5, 1.7e308), 1.7e308),
    "reward shifty": going("rewards", drawn(0.5, Shifty(2.0)), Shifty(2.0)),
    "reward mute": going("rewards", drawn(0.5, Mute(2.0)), Mute(2.0)),
    "reward None": going("rewards", drawn(0.5, None), None),
    "next state None": going("states", drawn(0.5, 1.0, None)),
    "next state a start": going("states", drawn(0.5, 1.0, HALF), HALF),
    "next state a list": going("states are hashable", drawn(0.5, 1.0, ["end"]), ["end"]),
    "next state's hash raises": going(
        "states are hashable", drawn(0.5, 1.0, Unhashable()), Unhashable()
    ),
    "outcome label without a text": going(
        "answers", lambda: [Outcome(1.0, 0.0, "end", cast(Any, WORDLESS))]
    ),
    "outcome labels alike": going(
        "outcome labels differ",
        lambda: [Outcome(0.5, 0.0, "end", "a"), Outcome(0.5, 0.0, "start", "a")],
        "a",
    ),
}


class Board:
    """A state that can be changed, compared and hashed by what is on it."""

    def __init__(self, moves: int = 0) -> None:
        self.moves = moves

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Board) and self.moves == other.moves

    def __hash__(self) -> int:
        return hash(self.moves)

    def move(self) -> Board:
        self.moves += 1
        return self


def one(state: Any, reward: float = 0.0, label: str | None = None) -> Outcome:
    return Outcome(1.0, reward, state, label)


def starting(before: Any, after: Any, *where: Any) -> Lie:
    """Change the initial state between its first time and the next."""
    return Lie(
        lambda: {"initial_state": change(before, after)},
        "answers repeat",
        *where or (None, None, (before, after)),
    )


def acting_anew(before: Any, after: Any, value: Any) -> Lie:
    """Change the actions of middle."""
    replaced = lambda: answer_in(change(before, after))  # noqa: E731
    return Lie(replaced, "answers repeat", "middle", None, value)


def going_anew(before: Any, after: Any) -> Lie:
    """Change the one outcome of going from middle."""
    replaced = lambda: answer_go(change([before], [after]))  # noqa: E731
    return Lie(replaced, "answers repeat", "middle", "go", (before, after))


SHIP, PLANE = Start.choose({"ship": "start"}), Start.choose({"plane": "start"})
NORTH, SOUTH = Start.draw([one("start")]), Start.draw([one("middle")])

VISIBLE_WHEN_ASKED_AGAIN = {
    "initial state changes": starting("start", "middle"),
    "start becomes a state": starting(NORTH, "start"),
    "start has other choices": starting(SHIP, PLANE, PLANE, None, ("ship", "plane")),
    "start draws otherwise": starting(NORTH, SOUTH, SOUTH, "start", (one("start"), one("middle"))),
    "initial_state raises at last": Lie(
        lambda: {"initial_state": change("start", ValueError("lost"))}, "answers"
    ),
    "actions in another order": acting_anew(["go", "wait"], ["wait", "go"], ("go", "wait")),
    "actions with the same label": acting_anew([1], ["1"], (1, "1")),
    "fewer actions": acting_anew(["go", "wait"], ["go"], (2, 1)),
    "actions used up": Lie(
        lambda: answer_in(change(iter(["go"]))),
        *("answers repeat", "middle", None, (1, 0)),
    ),
    "another probability": going_anew(one("end"), Outcome(0.9, 0.0, "end")),
    "another reward": going_anew(one("end"), one("end", 2.0)),
    "another label": going_anew(one("end", label="a"), one("end", label="b")),
    "another next state": going_anew(one("end"), one("middle")),
    "safe at first": going_anew(one("end", label="a"), Outcome.failure(1.0, 0.0, "a")),
    "an Outcome at first": going_anew(one("end"), (1.0, 0.0, "end")),
    "fewer outcomes": Lie(
        lambda: answer_go(change(SOUND.outcomes("middle", "go"), [])),
        *("answers repeat", "middle", "go", (2, 0)),
    ),
    "outcomes raise at last": Lie(
        lambda: answer_go(change([one("end")], ValueError("lost"))),
        *("answers", "middle", "go"),
    ),
    "root drifts": Lie(
        lambda: answer_go(change(*[[one("middle")]] * 2, [one("end")]), "start"),
        *("answers repeat", "start", "go", (one("middle"), one("end"))),
    ),
    "root loses an action": Lie(
        lambda: answer_in(change(*[["go", "wait"]] * 2, ["go"]), "start"),
        *("answers repeat", "start", None, (2, 1)),
    ),
    "actions() changes the state": Lie(
        lambda: {
            "initial_state": Board,
            "actions": lambda board: ["go"] if board.move() else [],
            "outcomes": lambda board, action: [one("end")],
            "horizon": 1,
        },
        *("states stay the same", Board(0), None, Board(1)),
    ),
    "outcomes() changes the state": Lie(
        lambda: {
            "initial_state": Board,
            "actions": lambda board: ["go"],
            "outcomes": lambda board, action: [one(board.move(), label="moved")],
            "horizon": 1,
        },
        *("states stay the same", Board(0), "go", Board(1)),
    ),
}


def parametrise(lies: dict[str, Lie]) -> pytest.MarkDecorator:
    """Run a test with each of some lies."""
    return pytest.mark.parametrize(
        "lie", [pytest.param(lie, id=name) for name, lie in lies.items()]
    )
