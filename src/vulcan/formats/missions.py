"""Files of the built-in domains: exploration missions in TOML, and treasure maps.

A mission file gives what differs from the defaults of `Exploration`:

    bound = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"    what `vulcan.parse` reads; may be omitted
    constraints = ["risk ahead <= 0.05"]               further limits, as in `vulcan.Problem`
    horizon, degree, discount, first_sample, collision_reward
    map = "wide"                                       a map that has a name, or a table:

    [map]               columns, rows, start, spacing, origin
    [[map.obstacles]]   polygon = [[x, y], ...], or rectangle = [left, right, bottom, top]
    [field]             constant, slope, variance, length
    [vehicle]           covariance, growth

The keys are the parameters of `Exploration`, `Map`, `Field` and `Vehicle`, where they are
described. The file `examples/mission.toml` of the repository has all of them.

A text file has one treasure map (`vulcan.domains.treasure_grid`), or several, separated by empty
lines, the seventh of which is `maps.txt:7`. If it has lines `Map:`, maps are what follows these,
and everything else is passed over.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from vulcan.domains.exploration import Exploration, Field, Map, Obstacle, Vehicle
from vulcan.domains.treasure_grid import TreasureGrid
from vulcan.errors import OptionError
from vulcan.formats.registry import Maker, require_bound, require_constraints, require_known
from vulcan.parameters import shorten
from vulcan.runtime.files import read_text

FORMS: Final = {
    "path/to/mission.toml": "an exploration mission of your own",
    "path/to/maps.txt:7": "the seventh treasure map of a file",
}

Made = TypeVar("Made")


def find_maker(text: str) -> Maker:
    """Return the maker of a mission, with the values in the file as defaults, and its bound."""
    if ".toml" not in (Path(text).suffix, Path(text.rpartition(":")[0]).suffix):
        return text, partial(TreasureGrid, map=_load_map(text)), None
    mission, bound, *constraints = _load(text)
    values = {part.name: getattr(mission, part.name) for part in fields(mission)}
    return text, partial(Exploration, **values), bound, *constraints


def _load_map(place: str) -> str:
    """Return a treasure map of a text file."""
    path, _, number = place.rpartition(":")
    if not number.isdecimal():
        path, number = place, ""
    text = "\n".join(line.strip() for line in read_text(path).splitlines())
    parts = text.split("Map:\n")[1:] if "Map:\n" in text else text.split("\n\n")
    maps = [part.strip().split("\n\n")[0] for part in parts if part.strip()]
    if not number and len(maps) > 1:
        raise OptionError(f"{path}: has {len(maps)} maps; say which, as in {path}:1")
    if not 1 <= int(number or 1) <= len(maps):
        raise OptionError(f"{place}: there is no such map; the file has {len(maps)}")
    found = maps[int(number or 1) - 1]
    try:
        TreasureGrid(map=found)
    except OptionError as error:
        raise OptionError(f"{place}: {error}") from None
    return found


def load_mission(path: str | os.PathLike[str]) -> tuple[Exploration, str | None]:
    """Return the mission of a file, and the text of its risk bound, None if it gives none.

    An `OptionError` names the file and the key, and says what is allowed.
    """
    return _load(path)[:2]


def _load(path: str | os.PathLike[str]) -> tuple[Exploration, str | None, *tuple[str, ...]]:
    """Return the same, and the texts of the mission's constraints."""
    text = read_text(path)
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # of TOML, or of a number with thousands of digits
        raise OptionError(f"{path}: this is not TOML: {error}") from None
    except RecursionError:
        raise OptionError(f"{path}: has too many arrays or tables inside each other") from None
    bound = require_bound(str(path), values.pop("bound", None))
    constraints = require_constraints(str(path), values.pop("constraints", None))
    try:
        if isinstance(values.get("map"), dict):
            values["map"] = _read_map(values["map"])
        for name, kind in (("field", Field), ("vehicle", Vehicle)):
            if name in values:
                values[name] = _make(f"[{name}]: ", kind, values[name])
        return _make("", Exploration, values), bound, *constraints
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def _read_map(values: dict[str, Any]) -> Map:
    listed = values.get("obstacles", [])
    if not isinstance(listed, list):
        raise OptionError("obstacles are tables, each under its own [[map.obstacles]]")
    obstacles = []
    for number, given in enumerate(listed, 1):
        match given:
            case {"polygon": vertices} if len(given) == 1:
                obstacles.append(Obstacle(vertices))
            case {"rectangle": [left, right, bottom, top]} if len(given) == 1:
                obstacles.append(Obstacle.rectangle(left, right, bottom, top))
            case _:
                shapes = "polygon = [[x, y], ...] or rectangle = [left, right, bottom, top]"
                place = f"[[map.obstacles]] number {number}"
                raise OptionError(f"{place} must have {shapes}, not {shorten(given)}")
    return _make("[map]: ", Map, {**values, "obstacles": obstacles})


def _make(place: str, kind: type[Made], values: Any) -> Made:
    """Return what a table describes: its keys are the parameters of a dataclass."""
    if not isinstance(values, dict):
        raise OptionError(f"{place}must be a table, not {shorten(values)}")
    require_known(place, "a key", values, [part.name for part in fields(kind)])  # type: ignore[arg-type]
    try:
        return kind(**values)
    except (OptionError, TypeError) as error:  # a TypeError names what is missing
        raise OptionError(f"{place}{error}") from None
