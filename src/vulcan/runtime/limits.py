"""When a search stops early, and why it did."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import StrEnum
from numbers import Integral, Real
from typing import Any

from vulcan.errors import OptionError

__all__ = ["Limits", "StopReason"]


class StopReason(StrEnum):
    """What ended a search early; users see the text."""

    INTERRUPTED = "Ctrl-C"
    TERMINATED = "SIGTERM"
    TIME = "time limit"
    SAMPLES = "limit of samples"
    HISTORIES = "limit of histories"
    MEMORY = "limit of memory"
    GAP = "target gap"
    MODEL = "error in the model"

    @property
    def is_request(self) -> bool:
        """Whether somebody asked for it, rather than a limit."""
        return self in (StopReason.INTERRUPTED, StopReason.TERMINATED)


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
        Bytes that the search may take: its tree, the state graph, and the objects behind it.
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
