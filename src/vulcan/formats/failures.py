"""What fails in a Gymnasium environment (`vulcan.formats.gymnasium` has the list)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.errors import OptionError
from vulcan.parameters import shorten, suggest

__all__ = ["KNOWN", "Failure", "Transition", "read_failure"]


class Transition(NamedTuple):
    """A step that an environment can make.

    Attributes
    ----------
    state, action
        Where the step begins, and what is done.
    next_state, reward, terminated
        What comes of it.
    """

    state: int
    action: int
    next_state: int
    reward: float
    terminated: bool


Failure = Callable[[Transition], bool]


class Known(NamedTuple):
    """What fails by default in an environment of Gymnasium's own, and what its actions are."""

    failure: str
    actions: tuple[str, ...]


KNOWN: Final = {
    "FrozenLakeEnv": Known("holes", ("left", "down", "right", "up")),
    "CliffWalkingEnv": Known("cliff", ("up", "right", "down", "left")),
    "TaxiEnv": Known("illegal", ("south", "north", "east", "west", "pick up", "drop off")),
}
PRESETS: Final = {"holes": None, "cliff": -100.0, "illegal": -10.0}
"""What can be said to fail: holes are looked up in the map, the others have such a reward."""


def read_failure(failure: Any, inner: Any, states: int) -> Failure:
    """Return which steps fail."""
    name = type(inner).__name__
    if failure is None:
        if name not in KNOWN:
            raise OptionError(
                f"what is a failure in {name}? failure is {', '.join(PRESETS)}, 'reward <= -50', a "
                "list of states (an empty one says that nothing fails), or a function of a "
                "transition"
            )
        failure = KNOWN[name].failure
    if callable(failure):
        return failure  # type: ignore[no-any-return]
    if isinstance(failure, str):
        return _read_preset(failure, inner)
    try:
        fatal = {int(state) for state in failure}
    except (TypeError, ValueError):
        message = "failure must be a name, a function of a transition, or a list of states"
        raise OptionError(f"{message}, not {shorten(failure)}") from None
    if unknown := sorted(state for state in fatal if not 0 <= state < states):
        raise OptionError(f"failure has {unknown[0]}; states are 0 to {states - 1}")
    return lambda step: step.next_state in fatal


def _read_preset(text: str, inner: Any) -> Failure:
    if found := re.fullmatch(r"reward *(<=|<) *([-+.\deE]+)", text.strip()):
        try:
            limit = float(found[2])
        except ValueError:
            raise OptionError(f"failure {text!r}: {found[2]!r} is not a number") from None
        if found[1] == "<":
            return lambda step: step.reward < limit
        return lambda step: step.reward <= limit
    if text not in PRESETS:
        allowed = f"{', '.join(PRESETS)}, or 'reward <= -50'"
        raise OptionError(f"failure must be {allowed}, not {text!r}{suggest(text, PRESETS)}")
    wanted = PRESETS[text]
    if wanted is not None:
        return lambda step: step.reward == wanted
    if getattr(inner, "desc", None) is None:
        raise OptionError(f"{type(inner).__name__} has no map with holes (env.unwrapped.desc)")
    holes = (np.asarray(inner.desc) == b"H").ravel()
    return lambda step: bool(holes[step.next_state])
