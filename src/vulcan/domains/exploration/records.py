"""The records of the compiled mission: a state, and the tables and notes that are its parameters.

Records have a fixed size, so that horizons are rounded up to one of `CAPACITIES`, and code is
compiled once for each of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.model import LARGEST_DEGREE

if TYPE_CHECKING:
    from vulcan.domains.exploration.model import Exploration

__all__ = ["CAPACITIES", "fill_tables", "parameters_dtype", "state_dtype"]

CAPACITIES: Final = (6, 9, 12, 18, 27, 40)
"""Above the largest of these horizons the tables would no longer be small."""


def state_dtype(capacity: int) -> np.dtype[Any]:
    """Return the record of a state: step, cell, and the samples so far with their nodes."""
    return np.dtype(
        [
            ("step", "i2"),
            ("here", "i2"),
            ("sampled", "i2"),  # how many cells
            ("cells", "i2", (capacity + 1,)),
            ("nodes", "u1", (capacity + 1,)),
        ],
        align=True,
    )


def parameters_dtype(capacity: int) -> np.dtype[Any]:
    """Return the record of all parameters and tables, and of the notes."""
    window = 2 * capacity + 1
    cells = window * window
    return np.dtype(
        [
            ("horizon", "i8"),
            ("begun", "i8"),  # steps that were taken before the search begins
            ("degree", "i8"),
            ("least_x", "i8"),  # the first and last columns and rows of the map
            ("most_x", "i8"),
            ("least_y", "i8"),
            ("most_y", "i8"),
            ("variance", "f8"),
            ("first_node", "f8"),
            ("collision_reward", "f8"),
            ("discount", "f8"),
            ("nodes", "f8", (LARGEST_DEGREE + capacity + 4,)),  # and after them what was measured
            ("chances", "f8", (LARGEST_DEGREE,)),
            ("risks", "f8", (capacity + 1, cells)),
            ("means", "f8", (cells,)),
            ("kernel", "f8", (2 * window - 1, 2 * window - 1)),  # by distance, 0 in the middle
            ("norms", "f8", (capacity + 1,)),
            # Notes; see the head of `compiled`.
            ("known", "i8"),  # how many samples there are columns for
            ("summed", "i8"),  # and sums
            ("known_cells", "i2", (capacity + 1,)),
            ("known_nodes", "u1", (capacity + 1,)),
            ("row", "f8", (capacity + 1,)),  # of L, for the sample whose column is made
            ("priors", "f8", (cells,)),
            ("columns", "f8", (capacity + 1, cells)),
            ("explained", "f8", (capacity + 1, cells)),
            ("sums", "f8", (capacity + 2, cells)),
            ("limits", "f8", (LARGEST_DEGREE + capacity + 4,)),  # for each node of the last sample
            ("limits_sampled", "i8"),  # of how many samples that are known; 0 without limits
            ("limits_here", "i8"),  # from where
            ("limits_step", "i8"),
            ("learned", "f8"),  # for the same, what samples to come can add to the value to go
            ("pays", "f8", (cells,)),  # and while that is found, what a cell pays, and is worth
            ("worths", "f8", (cells,)),
            ("values", "f8", (cells,)),
        ],
        align=True,
    )


def fill_tables(mission: Exploration, capacity: int, parameters: NDArray[Any]) -> NDArray[Any]:
    """Fill the tables."""
    tables = parameters[0]
    area, horizon = mission.area, mission.horizon
    for name in ("horizon", "degree", "collision_reward", "discount"):
        tables[name] = getattr(mission, name)
    tables["variance"], tables["summed"] = mission.field.variance, 1
    tables["first_node"] = mission.first_node
    nodes, chances = mission.quadrature
    tables["nodes"][: len(nodes)], tables["chances"][: len(nodes)] = nodes, chances
    tables["norms"][:horizon], tables["worths"] = mission.norms, -np.inf
    west, south = area.start[0] - capacity, area.start[1] - capacity
    least_x, most_x = max(0, -west), min(2 * capacity, area.columns - 1 - west)
    least_y, most_y = max(0, -south), min(2 * capacity, area.rows - 1 - south)
    tables["least_x"], tables["most_x"] = least_x, most_x
    tables["least_y"], tables["most_y"] = least_y, most_y
    window = 2 * capacity + 1
    for x in range(window):
        for y in range(window):
            covariance = mission.field.kernel(mission.displace((0, 0), (x, y)), (0.0, 0.0))
            for across in (window - 1 - x, window - 1 + x):
                tables["kernel"][across, [window - 1 - y, window - 1 + y]] = covariance
            distance = max(abs(x - capacity), abs(y - capacity))
            if least_x <= x <= most_x and least_y <= y <= most_y and distance <= horizon:
                cell, number = (west + x, south + y), x * window + y
                tables["means"][number] = mission.field.mean(area.locate(cell))
                for step in range(max(1, distance), horizon + 1):
                    tables["risks"][step, number] = mission.risk(cell, step)
    return parameters
