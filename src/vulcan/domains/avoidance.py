"""Collision avoidance with a noisy range: ships that come closer at a speed that is not known.

Each ship approaches by one or two cells a step. Its range is measured with an error. Going ahead
pays most, slowing down lets the ship come one cell less, and turning away gives way to it for good;
then the next ship comes in sight. A ship that reaches range 0 collides with some probability, or
else passes. Coming within one cell is an event that nothing on board notices.
"""

from __future__ import annotations

from dataclasses import dataclass

from vulcan.model.belief import Transition

State = tuple[int, int]  # the range, and the cells by which it shrinks


@dataclass(frozen=True)
class Avoidance:
    """Give way to ships in time, by a noisy range.

    Parameters
    ----------
    sight
        Range at which a ship comes in sight.
    horizon
        Number of decisions.
    noise
        Probability that the range is measured one cell too long, and as much too short.
    collision
        Probability that a ship at range 0 collides.
    """

    sight: int = 5
    horizon: int = 8
    noise: float = 0.2
    collision: float = 0.3

    def initial_belief(self) -> dict[State, float]:
        """Return a ship in sight, slow or fast."""
        return {(self.sight, 1): 0.6, (self.sight, 2): 0.4}

    def actions(self, observation: int | None) -> list[str]:
        """Return "ahead", "slow" and "turn"."""
        return ["ahead", "slow", "turn"]

    def transitions(self, state: State, action: str) -> list[Transition]:
        """Return the range that follows, and the next ship after one has passed."""
        distance, speed = state
        reward = {"ahead": 2.0, "slow": 1.0, "turn": -1.0}[action]
        following = self.initial_belief().items()
        if action == "turn":
            return [Transition(chance, ship, reward) for ship, chance in following]
        distance -= speed - (action == "slow")
        if distance > 0:
            close = "close" if distance == 1 else None
            return [Transition(1.0, (distance, speed), reward, event=close)]
        passed = 1 - self.collision
        hit = Transition(self.collision, state, reward, fails=True, event="close")
        return [hit, *(Transition(passed * p, s, reward, event="close") for s, p in following)]

    def observations(self, state: State, action: str) -> dict[int, float]:
        """Return the measured range."""
        distance, _ = state
        return {
            distance - 1: self.noise,
            distance: 1 - 2 * self.noise,
            distance + 1: self.noise,
        }
