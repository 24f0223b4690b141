"""A light-dark corridor with walls (after Platt et al. 2010).

A robot in a corridor knows how far along it is, and not how far aside. It sees this well in the
light, at the west end, and ever worse towards the door in the east wall, which it has to hit. It
drifts, and may be damaged beyond repair by the walls.
"""

from __future__ import annotations

from dataclasses import dataclass

from vulcan.model.belief import Transition

State = tuple[int, int]  # how far along, how far aside


@dataclass(frozen=True)
class LightDark:
    """Find the door at the dark end of a corridor.

    Parameters
    ----------
    length, width
        Cells along and across. The door is in the middle of the east wall.
    horizon
        Number of decisions.
    drift
        Probability of ending one cell to either side, after a move along the corridor.
    crash
        Probability that hitting a wall, or missing the door, is fatal.
    """

    length: int = 4
    width: int = 5
    horizon: int = 8
    drift: float = 0.1
    crash: float = 0.2

    def initial_belief(self) -> dict[State, float]:
        """Return the middle of the corridor, anywhere across."""
        start = self.length // 2
        return {(start, aside): 1 / self.width for aside in range(self.width)}

    def actions(self, observation: str | None) -> list[str]:
        """Return the moves; "enter" at the east end, and nothing after it."""
        if observation == "entered":
            return []
        along = self.length // 2 if observation is None else int(observation.split()[0])
        ends = [("west", along > 0), ("east", along + 1 < self.length)]
        enter = [("enter", along + 1 == self.length)]
        return ["left", "right", *(name for name, fits in ends + enter if fits)]

    def transitions(self, state: State, action: str) -> list[Transition]:
        """Return where the robot may end; walls may be fatal."""
        along, aside = state
        if action == "enter":
            if aside == self.width // 2:
                return [Transition(1.0, (self.length, aside), 10.0)]
            return [
                Transition(1 - self.crash, (self.length, aside), 0.0),
                Transition(self.crash, state, 0.0, fails=True),
            ]
        if action in ("left", "right"):
            ways = {aside + (1 if action == "right" else -1): 1.0}
        else:
            along += 1 if action == "east" else -1
            ways = {aside: 1 - 2 * self.drift, aside - 1: self.drift, aside + 1: self.drift}
        moves = []
        for place, chance in ways.items():
            stays = min(self.width - 1, max(0, place))
            risk = self.crash if place != stays else 0.0
            moves.append(Transition(chance * (1 - risk), (along, stays), -0.5))
            if risk:
                moves.append(Transition(chance * risk, state, -0.5, fails=True))
        return moves

    def observations(self, state: State, action: str) -> dict[str, float]:
        """Return how far along, and a reading of how far aside: the darker, the worse."""
        along, aside = state
        if along == self.length:
            return {"entered": 1.0}
        blur = 0.05 + 0.9 * along / self.length
        weights = [blur ** abs(place - aside) for place in range(self.width)]
        total = sum(weights)
        return {f"{along} reads {k}": weight / total for k, weight in enumerate(weights)}
