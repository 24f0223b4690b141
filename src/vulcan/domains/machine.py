"""A machine with hidden wear and inspection.

A machine earns while it runs, and wears. Worn, it earns less, hums, and may break, which ends the
mission. An inspection reads the wear with an error; a repair takes it away.
"""

from __future__ import annotations

from dataclasses import dataclass

from vulcan.model.belief import Transition


@dataclass(frozen=True)
class Machine:
    """Run a machine whose wear is not seen.

    Parameters
    ----------
    levels
        Levels of wear, from 0 on.
    horizon
        Number of decisions.
    wearing
        Probability that a run wears it by one more level.
    breaking
        Probability that a run at the highest level breaks it; at lower ones, as the square of wear.
    """

    levels: int = 4
    horizon: int = 10
    wearing: float = 0.3
    breaking: float = 0.2

    def initial_belief(self) -> dict[int, float]:
        """Return a machine that may have some wear."""
        return {0: 0.75, 1: 0.25}

    def actions(self, observation: str | None) -> list[str]:
        """Return "run", "inspect" and "repair"."""
        return ["run", "inspect", "repair"]

    def transitions(self, state: int, action: str) -> list[Transition]:
        """Return more wear or breaking after a run, none after a repair."""
        worst = self.levels - 1
        if action == "inspect":
            return [Transition(1.0, state, -0.5)]
        if action == "repair":
            return [Transition(1.0, 0, -4.0)]
        reward, risk = 3.0 - 1.5 * state / worst, self.breaking * (state / worst) ** 2
        moves = [
            Transition((1 - risk) * self.wearing, min(worst, state + 1), reward),
            Transition((1 - risk) * (1 - self.wearing), state, reward),
        ]
        return [*moves, *([Transition(risk, state, 0.0, fails=True)] if risk else [])]

    def observations(self, state: int, action: str) -> dict[str, float]:
        """Return a reading after an inspection, and what a run sounds like."""
        if action == "repair":
            return {"repaired": 1.0}
        if action == "run":
            hum = 0.1 + 0.6 * state / (self.levels - 1)
            return {"hums": hum, "is quiet": 1 - hum}
        weights = [0.2 ** abs(state - level) for level in range(self.levels)]
        return {f"reads {k}": weight / sum(weights) for k, weight in enumerate(weights)}
