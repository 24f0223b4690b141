"""Ready-made models: a file or a folder each, with its source, its parameters and its sizes.

A new one is a file, and a line in `DOMAINS`. May import: the root, model, bounds, and kernels for
compiled forms.
"""

from typing import Final

from vulcan.domains.bandit import Bandit
from vulcan.domains.exploration import Exploration
from vulcan.domains.grid import Grid
from vulcan.domains.three_actions import ThreeActions
from vulcan.domains.treasure_grid import TreasureGrid

__all__ = ["DOMAINS", "Bandit", "Exploration", "Grid", "ThreeActions", "TreasureGrid"]

DOMAINS: Final = {
    "bandit": "vulcan.domains.bandit:Bandit",
    "exploration": "vulcan.domains.exploration:Exploration",
    "grid": "vulcan.domains.grid:Grid",
    "three-actions": "vulcan.domains.three_actions:ThreeActions",
    "treasure-grid": "vulcan.domains.treasure_grid:TreasureGrid",
}
"""The names by which the command line knows these models, and where each class is.

Places rather than classes: listing the names imports no model.
"""
