"""An exploration mission, written in TOML: `path/to/mission.toml`."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Final

from vulcan.domains.exploration import Exploration, load_mission
from vulcan.errors import OptionError
from vulcan.formats.registry import Maker

__all__ = ["FORMS", "find_maker"]

FORMS: Final = {"path/to/mission.toml": "an exploration mission of your own"}


def find_maker(text: str) -> Maker:
    """Return what makes the mission of a file, whose values are its defaults, and its bound."""
    try:
        mission, bound = load_mission(text)
    except OptionError as error:
        # Nothing of the user's was run: the message says it all, and no cause would add to it.
        raise error from None
    values = {part.name: getattr(mission, part.name) for part in fields(mission)}
    return Maker(text, partial(Exploration, **values), bound)
