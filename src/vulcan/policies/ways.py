"""What can be observed after an action, and which of it is meant by what somebody tells.

What can be observed is what the plan was made with, or else what the model says. Of what somebody
tells, a label, a position among the outcomes, or the state that one leads to: whatever fits is a
reading. Readings that mean the same outcome are one, and several that do not are an error.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any, Final, NamedTuple

from vulcan.errors import PolicyError
from vulcan.model.likeness import is_equal
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.parameters import require_number, shorten
from vulcan.policies.policy import Policy
from vulcan.sentinels import FAILED, UNPLANNED

__all__ = ["Way", "ask_ways", "find_way", "plan_ways"]

SAME_REWARD: Final = 1e-9
"""Rewards that differ by less, as a share of them, are the same to an observer."""


class Way(NamedTuple):
    """Something that can be observed now, and what comes after it."""

    label: str
    probability: float
    reward: float
    state: Any
    child: int


def plan_ways(policy: Policy, node: int) -> list[Way]:
    """Return what can be observed at a decision by the plan, without states."""
    rows = policy.outcomes(node)
    labels = [policy.labels[number] for number in policy.label[rows.start : rows.stop]]
    if len(set(labels)) < len(labels):
        action = policy.labels[int(policy.action[node])]
        raise PolicyError(
            f"the policy can't be followed: outcomes of {action!r} have the same label, "
            f"{', '.join(map(repr, labels))}"
        )
    columns = (policy.probability, policy.reward, policy.child)
    numbers = (column[rows.start : rows.stop].tolist() for column in columns)
    return [
        Way(label, chance, reward, None, child)
        for label, chance, reward, child in zip(labels, *numbers, strict=True)
    ]


def ask_ways(reader: ModelReader, state: Any, action: Any) -> list[Way]:
    """Return what can be observed after an action by the model alone."""
    outcomes = reader.outcomes(state, action)
    return [
        Way(
            label,
            float(outcome.probability),
            float(outcome.reward),
            outcome.state,
            FAILED if outcome.fails else UNPLANNED,
        )
        for label, outcome in zip(label_outcomes(outcomes), outcomes, strict=True)
    ]


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
    told = shorten(outcome if state is None else state)
    if len(readings) > 1:
        (one, _), (other, _) = list(readings.items())[:2]
        raise PolicyError(
            f"{told} may be {one} or {other}; give a label, or state=...; the outcomes are {listed}"
        )
    found = [ways[k] for positions in readings.values() for k in positions]
    if reward is not None:
        paid = require_number("reward", reward, error=PolicyError)
        found = [way for way in found if _is_same(way.reward, paid)]
    if not found:
        which = "" if reward is None else f" that pays {reward!r}"
        raise PolicyError(f"{label!r} has no outcome {told}{which}; its outcomes are {listed}")
    if len(found) > 1:
        alike = ", ".join(repr(way.label) for way in found)
        raise PolicyError(
            f"{len(found)} outcomes of {label!r} lead to {told}: give a label of {alike}, or "
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
        if way.state is not None
        and isinstance(way.state, bool) == boolean
        and is_equal(way.state, state)
    ]
    return {f"the state {shorten(state)}": found} if found else {}


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_REWARD * max(1.0, abs(one), abs(other))
