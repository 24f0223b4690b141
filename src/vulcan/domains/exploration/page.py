"""The map of a mission as pages show it: obstacles, and what samples are expected to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vulcan.pages.maps import PageMap

if TYPE_CHECKING:
    from vulcan.domains.exploration.model import Exploration

__all__ = ["make_page_map"]


def make_page_map(mission: Exploration) -> PageMap:
    """Return the map of a mission, in units of cells."""
    area = mission.area
    (west, south), spacing = area.origin, area.spacing
    return PageMap(
        area.columns,
        area.rows,
        walls=[
            [((x - west) / spacing, (y - south) / spacing) for x, y in obstacle.vertices]
            for obstacle in area.obstacles
        ],
        shades=[
            [round(mission.field.mean(area.locate((x, y))), 3) for x in range(area.columns)]
            for y in range(area.rows)
        ],
        shade_name="sample expected before the mission",
        note="An action is a move to the next cell, where a sample is taken. Its outcome is what "
        f"is found: “(1 of {mission.degree})” is the lowest of {mission.degree} values.",
    )
