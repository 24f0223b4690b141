"""A treasure map, drawn with characters: `path/to/map.txt`, `path/to/maps.txt:7`."""

from __future__ import annotations

from functools import partial
from typing import Final

from vulcan.domains.treasure_grid import TreasureGrid, load_map
from vulcan.formats.registry import Maker

__all__ = ["FORMS", "find_maker"]

FORMS: Final = {"path/to/maps.txt:7": "a treasure map, of several the seventh"}


def find_maker(text: str) -> Maker:
    """Return what makes the treasure grid of a map."""
    return Maker(text, partial(TreasureGrid, map="\n".join(load_map(text))))
