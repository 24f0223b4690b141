"""What can be observed after an action, and which of it is meant by what somebody tells.

A label, a position among the outcomes, or the state that one leads to: whatever fits is a reading.
Readings that mean the same outcome are one, and several that do not are an error.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any, Final, NamedTuple

from vulcan.errors import PolicyError
from vulcan.parameters import require_number

__all__ = ["Way", "find_way"]

SAME_REWARD: Final = 1e-9
"""Rewards that differ by less, as a share of them, are the same to an observer."""


class Way(NamedTuple):
    """Something that can be observed now, and what comes after it."""

    label: str
    probability: float
    reward: float
    state: Any
    child: int


def find_way(
    outcome: Any, state: Any, reward: float | None, label: str, ways: Sequence[Way]
) -> Way:
    """Return the outcome that is meant.

    Parameters
    ----------
    outcome, state, reward
        What was told; see `Run.observe`.
    label
        The action that was taken.
    ways
        What can be observed after it.

    Raises
    ------
    PolicyError
        If none is meant, or may be several.
    """
    if (outcome is None) == (state is None):
        raise PolicyError("tell either an outcome or the state that it leads to")
    readings = _read_state(state, ways) if outcome is None else _read(outcome, ways)
    listed = ", ".join(f"{k}: {way.label!r}" for k, way in enumerate(ways))
    told = outcome if state is None else state
    if len(readings) > 1:
        (one, _), (other, _) = list(readings.items())[:2]
        raise PolicyError(
            f"{told!r} may be {one} or {other}; give a label, or state=...; the outcomes are "
            f"{listed}"
        )
    found = [ways[k] for positions in readings.values() for k in positions]
    if reward is not None:
        paid = require_number("reward", reward, error=PolicyError)
        found = [way for way in found if _is_same(way.reward, paid)]
    if not found:
        which = "" if reward is None else f" that pays {reward!r}"
        raise PolicyError(f"{label!r} has no outcome {told!r}{which}; its outcomes are {listed}")
    if len(found) > 1:
        alike = ", ".join(repr(way.label) for way in found)
        raise PolicyError(
            f"{len(found)} outcomes of {label!r} lead to {told!r}: give a label of {alike}, or "
            "reward=..."
        )
    return found[0]


def _read(outcome: Any, ways: Sequence[Way]) -> dict[str, list[int]]:
    """Return what may be meant by an outcome, and the positions that it is then."""
    labels = [way.label for way in ways]
    whole = isinstance(outcome, Integral) and not isinstance(outcome, bool)
    readings: dict[str, list[int]] = {}
    if whole and 0 <= outcome < len(ways):
        readings["a position"] = [int(outcome)]
    text = str(outcome) if whole else outcome
    if isinstance(text, str) and text in labels:
        readings[f"the label {text!r}"] = [labels.index(text)]
    readings |= _read_state(outcome, ways)
    alike = set(map(tuple, readings.values()))
    return dict(list(readings.items())[:1]) if len(alike) == 1 else readings


def _read_state(state: Any, ways: Sequence[Way]) -> dict[str, list[int]]:
    """Return the positions of the outcomes that lead to a state, if there are any."""
    if not isinstance(state, Hashable):
        return {}  # no state of a model: an array, say, that can't be compared as a whole
    boolean = isinstance(state, bool)
    found = [
        k
        for k, way in enumerate(ways)
        if way.state is not None and isinstance(way.state, bool) == boolean and way.state == state
    ]
    return {f"the state {state!r}": found} if found else {}


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_REWARD * max(1.0, abs(one), abs(other))
