"""What diaries are kept of: models with all that kernels tell apart, and constants to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

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


@contextmanager
def change_settings(settings: dict[str, Any]) -> Iterator[None]:
    """Let constants of modules be others meanwhile."""
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(patch(name, value))
        yield
