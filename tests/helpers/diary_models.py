"""What diaries are kept of: models with all that kernels tell apart, and constants to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome

DEAD_ENDS = Table(
    {
        0: {
            "end": [Outcome(0.5, 1.0, 9, "early"), Outcome(0.25, 4.0, 9), Outcome.failure(0.25)],
            "on": [Outcome(0.5, -1.0, 1), Outcome(0.5, 0.5, 2)],
            "fail": [Outcome.failure(0.75, 8.0), Outcome.failure(0.25, -2.0)],
        },
        1: {
            "fail": [Outcome.failure(1.0, 3.0)],
            "stay": [Outcome(0.875, 0.25, 1), Outcome.failure(0.125, 2.0)],
        },
        2: {"back": [Outcome(0.5, 0.0, 0), Outcome(0.25, 1.0, 1), Outcome(0.25, -0.5, 9)]},
        9: {},
    },
    horizon=5,
    discount=0.5,
    merges=False,
)
"""Missions that end early, and actions after which they always do."""

ALIKE = Table(
    {
        0: {
            "a": [Outcome(0.5, 1.0, 1), Outcome(0.5, 1.0, 2)],
            "b": [Outcome(0.5, 1.0, 1), Outcome(0.5, 1.0, 2)],
        },
        1: {"c": [Outcome(0.75, 2.0, 0), Outcome.failure(0.25)], "d": [Outcome(1.0, 0.5, 0)]},
        2: {"d": [Outcome(1.0, 0.5, 0)], "c": [Outcome(0.75, 2.0, 0), Outcome.failure(0.25)]},
    },
    horizon=4,
    merges=False,
)
"""Actions that are worth the same: which of them is taken must not change."""


THREE_WAYS = Table(
    {
        0: {
            "fan": [Outcome(0.25, 1.0, 1), Outcome(0.25, 0.5, 2), Outcome(0.5, 0.0, 3)],
            "dare": [Outcome(0.5, 2.0, 1), Outcome(0.25, 1.0, 3), Outcome.failure(0.25)],
        },
        1: {"a": [Outcome(0.75, 4.0, 2), Outcome.failure(0.25)], "b": [Outcome(1.0, 1.0, 3)]},
        2: {"a": [Outcome(0.875, 2.0, 1), Outcome.failure(0.125)], "b": [Outcome(1.0, 0.5, 1)]},
        3: {
            "a": [Outcome(0.5, 1.0, 0), Outcome(0.25, 3.0, 1), Outcome.failure(0.25)],
            "b": [Outcome(0.5, 0.0, 2), Outcome(0.5, 1.0, 0)],
        },
    },
    horizon=4,
)
"""Actions with several outcomes, after each of which there is a choice of risks."""


LONG = Table(
    {
        0: {
            "on": [
                Outcome(0.625, 1.0, 0),
                *(Outcome(0.125, 0.5 * k, 9, f"end {k}") for k in range(3)),
            ],
            "off": [Outcome(0.5, 1.0, 0), Outcome(0.25, 1.5, 0, "again"), Outcome.failure(0.25)],
        },
        9: {},
    },
    horizon=9,
)
"""Missions most of whose outcomes end them."""


FEW_WAYS = replace(LONG, table={0: {"on": LONG.table[0]["on"]}, 9: {}}, horizon=12)
"""The same with one action, so that decisions are few beside ends."""

DEEP = Table(
    {
        0: {
            "good": [Outcome(1.0, 2.0, 0)],
            "bad": [Outcome(0.9375, 0.5, 0), Outcome.failure(0.0625)],
            "worse": [Outcome(1.0, 0.25, 0)],
        }
    },
    horizon=7,
    merges=False,
)
"""Histories that are visited often far from the start."""


ONE_WAY = Table(
    {
        0: {
            "first": [Outcome(0.5, 0.0, 1), Outcome(0.5, 0.0, 1, "other")],
            "last": [Outcome(0.25, 3.0, 0), Outcome(0.75, 2.0, 1)],
        },
        1: {"only": [Outcome(0.5, 1.0, 0), Outcome(0.5, 0.0, 1, "still")]},
        9: {},
    },
    horizon=4,
)
"""States with a single action, after actions that are not taken."""


class Begun(Table):
    """A table that begins with an initial action, which no step is taken for."""

    def initial_state(self) -> Any:
        return vulcan.Start(
            {
                "near": [Outcome(0.5, 0.25, self._name(0)), Outcome(0.5, 0.0, self._name(1))],
                "far": [Outcome(0.75, 2.0, self._name(2)), Outcome.failure(0.25, 1.0)],
            }
        )

    def _name(self, state: int) -> Any:
        return state if self.merges else (state,)


class Limited(Begun):
    """The same, with a bound on what can still be earned."""

    def reward_to_go_bound(self, state: Any, step: int) -> float:
        return 6.0 * (self.horizon - step)


def begin_by_choice(model: Table, kind: type[Begun] = Begun) -> Begun:
    """Return the same table after an initial action."""
    return kind(model.table, model.horizon, model.discount, model.start, model.merges)


@contextmanager
def change_settings(settings: dict[str, Any]) -> Iterator[None]:
    """Let constants of modules be others meanwhile."""
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(patch(name, value))
        yield
