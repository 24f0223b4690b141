"""Ready-made models: a file or a folder each, with its source, its parameters and its sizes.

A new one is a file, and a line in `DOMAINS`. May import: the root, model, bounds, and kernels for
compiled forms.
"""

from typing import Final

from vulcan.domains.avoidance import Avoidance
from vulcan.domains.bandit import Bandit
from vulcan.domains.exploration import Exploration
from vulcan.domains.grid import Grid
from vulcan.domains.light_dark import LightDark
from vulcan.domains.machine import Machine
from vulcan.domains.rock_sample import RockSample
from vulcan.domains.three_actions import ThreeActions
from vulcan.domains.tiger import Tiger
from vulcan.domains.treasure_grid import TreasureGrid

__all__ = [
    "DOMAINS",
    "Avoidance",
    "Bandit",
    "Exploration",
    "Grid",
    "LightDark",
    "Machine",
    "RockSample",
    "ThreeActions",
    "Tiger",
    "TreasureGrid",
]

DOMAINS: Final = {
    "avoidance": "vulcan.domains.avoidance:Avoidance",
    "bandit": "vulcan.domains.bandit:Bandit",
    "exploration": "vulcan.domains.exploration:Exploration",
    "grid": "vulcan.domains.grid:Grid",
    "light-dark": "vulcan.domains.light_dark:LightDark",
    "machine": "vulcan.domains.machine:Machine",
    "rock-sample": "vulcan.domains.rock_sample:RockSample",
    "three-actions": "vulcan.domains.three_actions:ThreeActions",
    "tiger": "vulcan.domains.tiger:Tiger",
    "treasure-grid": "vulcan.domains.treasure_grid:TreasureGrid",
}
"""The names by which the command line knows these models, and where each class is.

Places rather than classes: listing the names imports no model.
"""
