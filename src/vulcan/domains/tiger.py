"""The tiger behind one of two doors (Kaelbling, Littman, Cassandra 1998), with claws.

One door hides a tiger, the other a reward. Listening costs a little and tells the right door with
probability 0.85. Opening a door resets the tiger; opening the tiger's door fails, with some
probability, and costs the penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vulcan.model.belief import Transition

SIDES: Final = ("left", "right")


@dataclass(frozen=True)
class Tiger:
    """A tiger behind one of two doors, and a reward behind the other.

    Parameters
    ----------
    horizon
        Number of decisions.
    accuracy
        Probability that a growl is heard on the tiger's side.
    claws
        Probability that opening the tiger's door is fatal.
    """

    horizon: int = 6
    accuracy: float = 0.85
    claws: float = 0.5

    def initial_belief(self) -> dict[str, float]:
        """Return where the tiger may be."""
        return dict.fromkeys(SIDES, 0.5)

    def actions(self, observation: str | None) -> list[str]:
        """Return "listen" and a door to open."""
        return ["listen", *(f"open {side}" for side in SIDES)]

    def transitions(self, state: str, action: str) -> list[Transition]:
        """Return the same tiger after listening, and another one after opening a door."""
        if action == "listen":
            return [Transition(1.0, state, -1.0)]
        if action != f"open {state}":
            return [Transition(0.5, side, 10.0) for side in SIDES]
        alive = [Transition((1 - self.claws) / 2, side, -10.0) for side in SIDES]
        return [*alive, Transition(self.claws, state, -10.0, fails=True)]

    def observations(self, state: str, action: str) -> dict[str, float]:
        """Return on which side a growl is heard; opened doors are silent."""
        if action != "listen":
            return {"silence": 1.0}
        return {
            f"growl {side}": self.accuracy if side == state else 1 - self.accuracy for side in SIDES
        }
