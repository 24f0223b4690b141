"""A model with a mistake: each day on the road costs something, and being lost costs nothing."""

from __future__ import annotations

from tests.helpers.tables import Table
from vulcan import Outcome

ROAD = [Outcome(0.9, -2.0, 1), Outcome(0.08, -1.0, 2), Outcome.failure(0.02)]
FORD = [Outcome(0.7, -1.0, 1), Outcome(0.2, -2.0, 2), Outcome.failure(0.1)]
DITCH = [Outcome.failure(1.0)]

CONVOY = Table(
    {
        0: {"road": ROAD, "ford": FORD},
        1: {"road": ROAD, "ditch": DITCH},
        2: {"ditch": DITCH, "cliff": [Outcome.failure(1.0)]},
    },
    horizon=2,
)
"""From 1 something else could be done than to fail, from 2 nothing."""
