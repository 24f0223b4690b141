"""The smallest model: cross to an island over a bridge or by swimming, and dig there.

Run it with `python examples/crossing.py`, or

    vulcan solve examples/crossing.py:Crossing --bound "0.004*x"
"""

from __future__ import annotations

import vulcan
from vulcan import Outcome


class Crossing:
    """Two steps: get across, and dig."""

    horizon = 2

    def initial_state(self) -> str:
        """Return where it begins."""
        return "shore"

    def actions(self, state: str) -> list[str]:
        """Return what can be done; nothing once something was found."""
        return {"shore": ["bridge", "swim"], "island": ["dig"]}.get(state, [])

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        """Return what may come of it: the bridge may be closed, and a swimmer may drown."""
        return {
            "bridge": [Outcome(0.7, 0, "island"), Outcome(0.3, 0, "shore", "closed")],
            "swim": [Outcome(0.98, 0, "island"), Outcome.failure(0.02)],
            "dig": [Outcome(0.5, 10, "rich"), Outcome(0.5, 2, "poor")],
        }[action]


if __name__ == "__main__":
    print(vulcan.solve(vulcan.Problem(Crossing(), risk_bound="0.004*x")))
