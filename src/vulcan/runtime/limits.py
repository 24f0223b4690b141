"""When a search stops early, and why it did."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, Final

from vulcan.errors import OptionError

__all__ = ["DEFAULT_MEMORY", "Limits", "StopReason"]


class StopReason(StrEnum):
    """What ended a search early; users see the text."""

    INTERRUPTED = "Ctrl-C"
    TIME = "time limit"
    SAMPLES = "limit of samples"
    HISTORIES = "limit of histories"
    MEMORY = "limit of memory"
    GAP = "target gap"
    MODEL = "error in the model"


FEWEST_BYTES: Final = 4 << 30


def _find_default_memory() -> int:
    try:
        return max(FEWEST_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    except (AttributeError, OSError, ValueError):  # not every system tells
        return FEWEST_BYTES


DEFAULT_MEMORY: Final = _find_default_memory()
"""Bytes that a search may take by default: half of what the machine has."""


@dataclass(frozen=True)
class Limits:
    """When to stop early; None for no limit.

    Attributes
    ----------
    time_limit
        Seconds.
    samples, histories
        Samples taken, and histories visited or kept in a tree.
    memory
        Bytes of the search tree and the state graph.
    gap
        Relative distance between the best policy and an upper bound.
    """

    time_limit: float | None = None
    samples: int | None = None
    histories: int | None = None
    memory: int | None = None
    gap: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            kind: type = Real if field.name in ("time_limit", "gap") else Integral
            proper = isinstance(value, kind)
            if value is not None and not (proper and value >= 0):
                name = "number" if kind is Real else "whole number"
                raise OptionError(f"{field.name} must be a {name} of at least 0, not {value!r}")

    def keep(self, names: Collection[str]) -> Limits:
        """Return the limits of some names, without the others."""
        return Limits(**{name: getattr(self, name) for name in names})

    def require_only(self, solver: str, allowed: tuple[str, ...]) -> None:
        """Refuse the limits that a solver does not know."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in allowed:
                raise OptionError(
                    f"{solver} has no limit {field.name!r}; it takes {', '.join(allowed)}"
                )
