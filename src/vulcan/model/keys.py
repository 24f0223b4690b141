"""Tests whether states with equal keys answer alike, and advice to merge histories.

A model with `key(state)` says that states with equal keys may count as one. That is so if they have
the same actions, and each action the same outcomes: probabilities, rewards, labels, costs, events,
and keys of the next states. Here histories are followed through the model's own states, as if there
were no keys, and each state is compared with the first one that had its key: breadth first, and
then at random, to the horizon.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import zip_longest
from random import Random
from typing import Any, Final

from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation, is_equal
from vulcan.parameters import shorten

MOST_LISTED: Final = 2_000  # states that are compared breadth first
MOST_DRAWN: Final = 2_000  # and in random histories
MOST_SECONDS: Final = 1.0  # for both together
MANY_HISTORIES: Final = 500  # from which on advice is worth its line
FEW_ANSWERS: Final = 0.05  # largest share of different answers for it

Answers = dict[str, list[Outcome]]


def require_honest_keys(reader: ModelReader) -> None:
    """Raise a `ModelError` that names two states if they have equal keys and answer differently."""
    if reader.has_keys:
        _KeyTest(reader).run()


def advise_to_merge(evaluated: int, answers: int, arrivals: int, states: int) -> str:
    """Return what merging would win, where nearly all histories are states; else nothing.

    `evaluated` states give this many different answers, with this many safe outcomes in all; these
    lead to `states` different ones.
    """
    merges = states <= 0.5 * arrivals
    if merges or evaluated < MANY_HISTORIES or answers > FEW_ANSWERS * evaluated:
        return ""
    different = "1 answer" if answers == 1 else f"{answers:,} different answers"
    return (
        f"{evaluated:,} histories give {different}; if nothing else of the past matters, return a "
        "smaller state or define key(state)"
    )


class _KeyTest:
    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader
        self._first: dict[int, tuple[Any, Answers]] = {}  # by the state that stands for a key
        self._states: list[Any] = []  # so that these are not collected
        self._ends = time.perf_counter() + MOST_SECONDS

    def run(self) -> None:
        """Follow histories until all are known, or a limit is reached."""
        level, seen = [self._reader.root], {self._reader.root}
        count = 0
        for _ in range(self._reader.levels):
            following = []
            for state in level:
                count += 1
                if count > MOST_LISTED or time.perf_counter() > self._ends:
                    return self._follow_at_random()
                for reached in self._compare(state).values():
                    new = [after for after in reached if after not in seen]
                    seen.update(new)
                    following += new
            level = list(dict.fromkeys(following))
        return None

    def _follow_at_random(self) -> None:
        random, count = Random(0), 0  # noqa: S311
        while True:
            state = self._reader.root
            for _ in range(self._reader.levels):
                count += 1
                if count > MOST_DRAWN or time.perf_counter() > self._ends:
                    return
                ways = [reached for reached in self._compare(state).values() if reached]
                if not ways:
                    break
                state = random.choice(random.choice(ways))

    def _compare(self, state: Any) -> dict[str, Sequence[Any]]:
        """Compare a state with the first one of its key; return what each action leads to."""
        reader = self._reader
        answers: Answers = {}
        reached: dict[str, Sequence[Any]] = {}
        for label, action in reader.actions(state).items():
            given, answers[label] = reader.read_both(state, action)
            reached[label] = [o.state for o in given if o.state is not FAILURE and o.probability]
        stands = reader.represent(state)
        first, known = self._first.setdefault(id(stands), (state, answers))
        if first is state:
            self._states.append(stands)
            return reached
        if difference := self._find_difference(known, answers):
            differs, what = difference
            message = (
                f"states with equal keys answer differently: {shorten(first)} and {shorten(state)} "
                f"have the key {shorten(reader.find_key(state))}; {what}"
            )
            raise ModelError(Violation(Rule.KEYS, message, first, differs, state).of(reader.model))
        return reached

    def _find_difference(self, known: Answers, answers: Answers) -> tuple[str | None, str] | None:
        """Return the first action whose outcomes differ, and how; None if there is none."""
        if list(known) != list(answers):
            return None, f"the actions are {shorten(list(known))} and {shorten(list(answers))}"
        for label in answers:
            for number, (one, other) in enumerate(zip_longest(known[label], answers[label]), 1):
                if one is None or other is None:
                    counts = f"{len(known[label])} and {len(answers[label])} outcomes"
                    return label, f"action {label!r} has {counts}"
                if not self._reader.is_same_outcome(one, other):
                    fields = ("probability", "reward", "label", "costs", "event", "state")
                    pairs = ((k, getattr(one, k), getattr(other, k)) for k in fields)
                    name, *values = next(pair for pair in pairs if not is_equal(*pair[1:]))
                    name = "next state" if name == "state" else name
                    text = "{} and {}".format(*map(shorten, values))
                    return label, f"outcome {number} of action {label!r} has the {name} {text}"
        return None
