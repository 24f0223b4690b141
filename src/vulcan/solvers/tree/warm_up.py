"""All kernels of a search with prices, compiled or loaded before its clock runs.

A short search of a toy does that, once in a process: it goes everywhere, and takes no time once the
kernels have been compiled on this machine.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from vulcan.bounds.straight import Constant
from vulcan.certificates.problem import Problem
from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options

__all__ = ["warm_up"]

SAMPLES: Final = 260
"""Enough for prices to move and for a plan to guide."""


class Coins:
    """Coins tossed in turn, boldly or not; the history of tosses counts, or only their number."""

    horizon = 8

    def __init__(self, merges: bool) -> None:
        self.merges = merges

    def initial_state(self) -> tuple[int, ...]:
        """Return that nothing was tossed."""
        return ()

    def actions(self, state: tuple[int, ...]) -> list[str]:
        """Return the same two actions always."""
        return ["bold", "shy"]

    def outcomes(self, state: tuple[int, ...], action: str) -> list[Outcome]:
        """Return heads and tails, and a failure if bold."""
        bold = action == "bold"
        safe = 0.45 if bold else 0.5
        coins = [Outcome(safe, float(bold + face), self._add(state, face)) for face in (0, 1)]
        return [*coins, Outcome.failure(0.1)] if bold else coins

    def _add(self, state: tuple[int, ...], face: int) -> tuple[int, ...]:
        return (sum(state) + face,) * (len(state) + 1) if self.merges else (*state, face)

    def reward_to_go_bound(self, state: tuple[int, ...], step: int) -> float:
        """Return what the coins that are left bring at most."""
        return 2.0 * (self.horizon - step)


@cache
def warm_up() -> None:
    """Search for a moment."""
    from vulcan.solvers.tree.price_planner import PricePlanner
    from vulcan.solvers.tree.vulcan import Vulcan

    for merges in (False, True):
        model = Coins(merges)
        problem, monitor = Problem(model, Constant(0.1)), Monitor(Limits(samples=SAMPLES))
        PricePlanner(Vulcan(), problem, ModelReader(model), monitor, Options(), warm=True).search()
