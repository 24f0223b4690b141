"""The exploration mission of Ayton and Williams: a vehicle that samples a field among obstacles.

`model` is the mission itself and the place to begin. What it is made of has a module each: `field`
(the Gaussian process), `collision` (obstacles, vehicle, risk), `maps`, and `outlook` (how much can
still be earned). `mission` reads missions from files, and `drawing` shows them on their map.
"""

from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.history import History
from vulcan.domains.exploration.maps import MAPS, Map
from vulcan.domains.exploration.mission import load_mission
from vulcan.domains.exploration.model import Exploration

__all__ = [
    "MAPS",
    "Exploration",
    "Field",
    "History",
    "Map",
    "Obstacle",
    "Vehicle",
    "load_mission",
]
