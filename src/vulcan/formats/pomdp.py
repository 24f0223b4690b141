"""Cassandra's `.POMDP` files, and tables of hidden states.

    path/to/model.POMDP

A file has a preamble (`discount`, `values`, `states`, `actions`, `observations`, `start`) and
entries of transitions, observations and rewards, in which `*` stands for all:

    T: action : state : next state     a probability, a row of them, or a matrix
    O: action : next state : observation
    R: action : state : next state : observation

Later entries replace earlier ones; `uniform` and `identity` are matrices. Failure and goal states
are named by the user. Rewards that depend on the observation count by their mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError, VulcanError
from vulcan.formats.registry import Maker
from vulcan.model.belief import BeliefModel, Transition
from vulcan.parameters import suggest

FORMS: Final = {"path/to/model.POMDP": "a model with hidden states, in Cassandra's format"}

END: Final = "mission ended"  # the observation in a goal state
LISTS: Final = ("states", "actions", "observations")
MOST_CELLS: Final = 20_000_000
DIMENSIONS: Final = {
    "T": ("actions", "states", "states"),
    "O": ("actions", "states", "observations"),
    "R": ("actions", "states", "states", "observations"),
}


class HiddenTable:
    """A model with hidden states, given as tables; states and observations are strings."""

    def __init__(
        self,
        name: str,
        horizon: int,
        discount: float,
        start: Mapping[str, float],
        menus: Mapping[str | None, Sequence[str]],
        moves: Mapping[tuple[str, str], list[Transition]],
        seen: Mapping[tuple[str, str], Mapping[str, float]],
    ) -> None:
        self.name, self.horizon, self.discount = name, horizon, discount
        self._start, self._menus, self._moves, self._seen = start, menus, moves, seen

    def __repr__(self) -> str:
        return self.name

    def initial_belief(self) -> Mapping[str, float]:
        """Return the probabilities of the first states."""
        return self._start

    def actions(self, observation: str | None) -> Sequence[str]:
        """Return the actions after an observation."""
        return self._menus[observation]

    def transitions(self, state: str, action: str) -> list[Transition]:
        """Return what an action may do to a state."""
        return self._moves[state, action]

    def observations(self, next_state: str, action: str) -> Mapping[str, float]:
        """Return the probabilities of observations."""
        return self._seen[next_state, action]


def from_pomdp(
    path: str | os.PathLike[str],
    *,
    horizon: int,
    failure: str = "",
    goal: str = "",
    discount: float | None = None,
) -> BeliefModel:
    """Read a model with hidden states from a file in Cassandra's format.

    Parameters
    ----------
    path
        The file.
    horizon
        Number of decisions.
    failure, goal
        Names of states, with commas between them: entering one fails, or ends the mission safely.
        Both are noticed.
    discount
        In place of that of the file.
    """
    path = os.fspath(path)
    if not Path(path).is_file():
        raise OptionError(f"there is no file {path}")
    try:
        text = Path(path).read_text(encoding="utf-8")
        table = _Reader(text).read(Path(path).name, horizon, failure, goal, discount)
    except (VulcanError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: {error}") from None
    return BeliefModel(table)


def find_maker(text: str) -> Maker:
    """Return the maker of the model of a file."""
    return Path(text).name, partial(from_pomdp, text), None


class _Reader:
    """The words of a file, and what they define."""

    def __init__(self, text: str) -> None:
        lines = enumerate(text.splitlines(), 1)
        self._words = [
            (word, number)
            for number, line in lines
            for word in re.findall(r":|[^\s:]+", line.partition("#")[0])
        ]
        self._place = 0
        self._names: dict[str, list[str]] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._discount, self._sign = 1.0, 1.0
        self._start: NDArray[np.float64] | None = None
        self._arrays: dict[str, NDArray[np.float64]] = {}

    def read(
        self, name: str, horizon: int, failure: str, goal: str, discount: float | None
    ) -> HiddenTable:
        """Return the model."""
        while self._place < len(self._words):
            self._read_entry()
        self._prepare()
        states, actions, seen = (self._names[kind] for kind in LISTS)
        fails, ends = map(self._find_states, (failure, goal))
        moving, looking, paying = (self._arrays[kind] for kind in "TOR")
        moves: dict[tuple[str, str], list[Transition]] = {}
        views: dict[tuple[str, str], dict[str, float]] = {}
        for a, action in enumerate(actions):
            for s, state in enumerate(states):
                after = np.flatnonzero(moving[a, s])
                paid = np.einsum("so,so->s", paying[a, s, after], looking[a, after])
                moves[state, action] = [
                    Transition(float(moving[a, s, k]), states[k], float(reward), k in fails)
                    for k, reward in zip(after.tolist(), self._sign * paid, strict=True)
                ]
                likely = {o: float(looking[a, s, k]) for k, o in enumerate(seen)}
                views[state, action] = {END: 1.0} if s in ends else likely
        start = self._start
        if start is None:
            start = np.full(len(states), 1 / len(states))
        first = {state: float(p) for state, p in zip(states, start, strict=True) if p}
        menus: dict[str | None, Sequence[str]] = dict.fromkeys((None, *seen), actions)
        menus[END] = ()
        rate = self._discount if discount is None else discount
        return HiddenTable(name, horizon, rate, first, menus, moves, views)

    def _read_entry(self) -> None:
        word = self._take()
        if word in LISTS:
            self._require(":")
            given = self._take_line()
            if len(given) == 1 and given[0].isdigit():
                given = [str(k) for k in range(int(given[0]))]
            if not given or len(set(given)) < len(given):
                raise self._refuse(f"{word} must be a number or different names")
            self._names[word] = given
            self._numbers[word] = {name: k for k, name in enumerate(given)}
        elif word == "discount":
            self._require(":")
            self._discount = self._take_number()
        elif word == "values":
            self._require(":")
            self._sign = {"reward": 1.0, "cost": -1.0}.get(self._take(), 0.0)
            if not self._sign:
                raise self._refuse("values must be reward or cost")
        elif word == "start":
            self._read_start()
        elif word in DIMENSIONS:
            self._read_table(word)
        else:
            allowed = ("discount", "values", *LISTS, "start", *DIMENSIONS)
            raise self._refuse(f"{word!r} is not one of {', '.join(allowed)}")

    def _read_start(self) -> None:
        kind = self._take() if self._peek() in ("include", "exclude") else ""
        self._require(":")
        count = len(self._list("states"))
        if self._peek() == "uniform":
            self._take()
            self._start = np.full(count, 1 / count)
            return
        given = self._take_line()
        if not kind and len(given) == count and count > 1:
            self._start = np.array([self._to_number(word) for word in given])
            return
        chosen = np.zeros(count, bool)
        for word in given:
            chosen[self._find("states", word)] = True
        if kind == "exclude":
            chosen = ~chosen
        self._start = chosen / max(1, chosen.sum())

    def _read_table(self, kind: str) -> None:
        self._prepare()
        dimensions, array = DIMENSIONS[kind], self._arrays[kind]
        where: list[Any] = []
        while self._peek() == ":" and len(where) < len(dimensions):
            self._take()
            where.append(self._find(dimensions[len(where)], self._take()))
        shape = tuple(len(self._list(name)) for name in dimensions[len(where) :])
        if not where or len(shape) > 2:
            raise self._refuse(f"{kind} needs more names: {kind}: {' : '.join(dimensions)}")
        if self._peek() == "uniform" and shape:
            self._take()
            array[tuple(where)] = 1 / shape[-1]
        elif self._peek() == "identity" and len(shape) == 2 and shape[0] == shape[1]:
            self._take()
            array[tuple(where)] = np.eye(shape[0])
        else:
            size = int(np.prod(shape))
            array[tuple(where)] = np.reshape([self._take_number() for _ in range(size)], shape)

    def _prepare(self) -> None:
        """Make the tables, once all names are known."""
        for kind, names in DIMENSIONS.items():
            if kind not in self._arrays:
                shape = tuple(len(self._list(name)) for name in names)
                if np.prod(shape, dtype=float) > MOST_CELLS:
                    raise self._refuse(f"the table {kind} has more than {MOST_CELLS:,} cells")
                self._arrays[kind] = np.zeros(shape)

    def _find_states(self, text: str) -> set[int]:
        """Return the numbers of states named with commas between them."""
        names = [name.strip() for name in str(text).split(",") if name.strip()]
        return {int(self._find("states", name)) for name in names}

    def _list(self, kind: str) -> list[str]:
        if kind not in self._names:
            raise self._refuse(f"{kind} are not declared before they are used")
        return self._names[kind]

    def _find(self, kind: str, word: str) -> Any:
        """Return the number of a name, or all of them for `*`."""
        names = self._list(kind)
        if word == "*":
            return slice(None)
        if word in self._numbers[kind]:
            return self._numbers[kind][word]
        if word.isdigit() and int(word) < len(names):
            return int(word)
        raise self._refuse(f"{word!r} is none of the {kind}{suggest(word, names)}")

    def _peek(self) -> str:
        return self._words[self._place][0] if self._place < len(self._words) else ""

    def _take(self) -> str:
        word = self._peek()
        if not word:
            raise self._refuse("it ends too soon")
        self._place += 1
        return word

    def _take_line(self) -> list[str]:
        """Return the words up to the next entry."""
        words = []
        while self._peek():
            following = "".join(word for word, _ in self._words[self._place + 1 :][:1])
            if following in (":", "include", "exclude"):
                break
            words.append(self._take())
        return words

    def _take_number(self) -> float:
        return self._to_number(self._take())

    def _to_number(self, word: str) -> float:
        try:
            return float(word)
        except ValueError:
            raise self._refuse(f"{word!r} is not a number") from None

    def _require(self, sign: str) -> None:
        if self._take() != sign:
            raise self._refuse(f"{sign!r} is missing")

    def _refuse(self, message: str) -> OptionError:
        read = self._words[: self._place]
        return OptionError(f"line {read[-1][1] if read else 1}: {message}")
