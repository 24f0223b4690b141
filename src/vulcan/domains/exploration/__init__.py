"""The exploration mission of Ayton and Williams: a vehicle that samples a field among obstacles.

`model` is the mission itself and the place to begin, `compiled` the same as machine code. `field`
is the Gaussian process, with bounds on what can still be earned; `maps` has cells, obstacles and
the risk of collisions.
"""

from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import MAPS, Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import Exploration, History

__all__ = [
    "MAPS",
    "Exploration",
    "Field",
    "History",
    "Map",
    "Obstacle",
    "Vehicle",
]
