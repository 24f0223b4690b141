"""A model that comes to questions which it never answers, where other processes can import it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vulcan import Outcome


@dataclass
class Silent:
    """Histories of numbers, which answers nothing new after a number of questions, in each process.

    Parameters
    ----------
    way
        How it falls silent: in a loop, asleep, asleep again whenever it is woken, or in the middle
        of a list.
    file
        What it touches when it does.
    most
        After how many questions.
    """

    way: str
    file: str
    most: int = 60
    horizon: int = 8
    merges: bool = False
    asked: ClassVar[set[Any]] = set()

    def initial_state(self) -> tuple[int, ...]:
        return ()

    def actions(self, state: tuple[int, ...]) -> list[str]:
        return ["rest", "work"]

    def outcomes(self, state: tuple[int, ...], action: str) -> Iterable[Outcome]:
        new = (state, action) not in self.asked
        silent = new and len(self.asked) >= self.most
        self.asked.add((state, action))
        if silent and self.way != "in a list":
            self._fall_silent()
        return self._list_outcomes(state, action, silent)

    def _list_outcomes(self, state: Any, action: str, silent: bool) -> Iterator[Outcome]:
        risk, reward = (0.001, 1.0) if action == "work" else (0.0, 0.1)
        yield Outcome(0.5, reward, (*state, 0))
        if silent:
            self._fall_silent()
        yield Outcome(0.5 - risk, reward, (*state, 1))
        if risk:
            yield Outcome.failure(risk)

    def _fall_silent(self) -> None:
        Path(self.file).touch()
        while self.way in ("in a loop", "in a list"):
            pass
        while True:
            try:
                time.sleep(600)
            except Exception:
                if self.way != "stubborn":
                    raise
