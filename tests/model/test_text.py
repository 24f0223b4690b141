"""Texts of states and actions, the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import pytest

from vulcan.model.text import stable_text

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
