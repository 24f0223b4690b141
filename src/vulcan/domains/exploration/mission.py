"""Missions as files: an exploration mission, and a bound on its risk, written in TOML.

A file gives what differs from the defaults of `Exploration`:

    bound = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"    what `vulcan.parse` reads; may be omitted
    horizon, degree, discount, first_sample, collision_reward
    map = "wide"                                       a map that has a name, or a table:

    [map]               columns, rows, start, spacing, origin
    [[map.obstacles]]   polygon = [[x, y], ...], or rectangle = [left, right, bottom, top]
    [field]             constant, slope, variance, length
    [vehicle]           covariance, growth

The keys are the parameters of `Exploration`, `Map`, `Field` and `Vehicle`, where they are
described. A key that none of them has is an error, so that a misspelt one is not passed over. The
file `examples/mission.toml` of the repository has all of them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, TypeVar

from vulcan.bounds.parsing import parse
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import BoundError, OptionError
from vulcan.parameters import shorten, suggest
from vulcan.runtime.texts import read_text

__all__ = ["load_mission"]

Made = TypeVar("Made")

SHAPES: Final = ("polygon", "rectangle")


def load_mission(path: str | os.PathLike[str]) -> tuple[Exploration, str | None]:
    """Return the mission of a file, and the text of its risk bound, None if it gives none.

    Parameters
    ----------
    path
        A file in TOML; see the head of this module.

    Raises
    ------
    OptionError
        If it can't be read or something in it is not allowed. The message names the file and the
        key, and says what is.
    """
    text = read_text(path)
    try:
        content = tomllib.loads(text)
    except ValueError as error:  # of TOML, or of a number with thousands of digits
        raise OptionError(f"{path}: this is not TOML: {error}") from None
    except RecursionError:
        raise OptionError(f"{path}: has too many arrays or tables inside each other") from None
    try:
        return _read_mission(content)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error


def _read_mission(content: dict[str, Any]) -> tuple[Exploration, str | None]:
    values = dict(content)
    _require_keys("the file", values, ("bound", *_parameters(Exploration)))
    bound = _read_bound(values.pop("bound", None))
    if isinstance(values.get("map"), Mapping):
        values["map"] = _read_map(values["map"])
    for name, kind in (("field", Field), ("vehicle", Vehicle)):
        if name in values:
            values[name] = _read_table(f"[{name}]", values[name], kind)
    return Exploration(**values), bound


def _read_bound(text: Any) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise OptionError(f'bound must be a string, such as "0.002*x", not {shorten(text)}')
    try:
        parse(text)
    except BoundError as error:
        raise OptionError(f"bound: {error}") from error
    return text


def _read_map(given: Mapping[str, Any]) -> Map:
    values = dict(given)
    obstacles = values.get("obstacles", [])
    if not isinstance(obstacles, list):
        raise OptionError("obstacles are tables, each under its own [[map.obstacles]]")
    values["obstacles"] = [_read_obstacle(k, given) for k, given in enumerate(obstacles, 1)]
    return _read_table("[map]", values, Map)


def _read_obstacle(number: int, given: Any) -> Obstacle:
    place = f"[[map.obstacles]] number {number}"
    values = _require_table(place, given)
    _require_keys(place, values, SHAPES)
    if len(values) != 1:
        raise OptionError(f"{place} needs either {' or '.join(SHAPES)}")
    if "polygon" in values:
        return _make(place, Obstacle, values["polygon"])
    sides = values["rectangle"]
    if not isinstance(sides, list) or len(sides) != 4:
        shape = "[left, right, bottom, top]"
        raise OptionError(f"{place}: rectangle must be {shape}, not {shorten(sides)}")
    return _make(place, Obstacle.rectangle, *sides)


def _read_table(place: str, given: Any, kind: Callable[..., Made]) -> Made:
    """Return what a table describes: its keys are the parameters of a dataclass."""
    values = _require_table(place, given)
    parameters = _parameters(kind)
    _require_keys(place, values, parameters)
    missing = [name for name, needed in parameters.items() if needed and name not in values]
    if missing:
        raise OptionError(f"{place} needs {', '.join(missing)}")
    return _make(place, kind, **values)


def _parameters(kind: Any) -> dict[str, bool]:
    """Return the parameters of a dataclass, and whether each must be given."""
    return {
        part.name: part.default is MISSING and part.default_factory is MISSING
        for part in fields(kind)
    }


def _require_table(place: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise OptionError(f"{place} must be a table, not {shorten(given)}")
    return dict(given)


def _require_keys(place: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    known = list(allowed)
    for key in given:
        if key not in known:
            allowed = f"allowed are {', '.join(known)}{suggest(key, known)}"
            raise OptionError(f"{place} has a key {key!r}; {allowed}")


def _make(place: str, kind: Callable[..., Made], *values: Any, **named: Any) -> Made:
    try:
        return kind(*values, **named)
    except OptionError as error:
        raise OptionError(f"{place}: {error}") from error
