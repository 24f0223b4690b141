"""Where the policy of an exploration mission goes: all of its histories, as plain arrays.

A *journey* is a safe history to its end. Histories that end in a collision have no arrays of their
own: they are in the sums (`reward`, `risk`) and in the places where they end (`Visits.collision`).
`follow_policy` in `journey_walk` finds them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.maps import Cell, Map
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import OptionError
from vulcan.model.interface import describe_model

__all__ = ["Journey", "Journeys", "Visits", "require_mission"]

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Journey:
    """One safe history of a policy.

    Attributes
    ----------
    mission
        The model.
    path
        The cells visited, the start first.
    rewards, risks, sampled
        Of each move: what it paid, its probability of a collision, and whether a sample was taken.
    probability
        Of all this.
    planned
        Whether it is a whole mission, rather than one that leaves an incomplete policy.
    """

    mission: Exploration
    path: tuple[Cell, ...]
    rewards: tuple[float, ...]
    risks: tuple[float, ...]
    sampled: tuple[bool, ...]
    probability: float
    planned: bool = True

    def __len__(self) -> int:
        """Return the number of moves."""
        return len(self.rewards)

    @property
    def earned(self) -> Numbers:
        """Reward so far, discounted, before the first move and after each."""
        paid = np.array(self.rewards) * self.mission.discount ** np.arange(len(self))
        return np.concatenate(([0.0], np.cumsum(paid)))

    @property
    def risked(self) -> Numbers:
        """Risk so far, before the first move and after each: 1 - the product of survivals."""
        return 1 - np.concatenate(([1.0], np.cumprod(1 - np.array(self.risks))))

    def samples(self, moves: int | None = None) -> tuple[list[Cell], list[float]]:
        """Return cells and values of the samples after this many moves, the start's first.

        Parameters
        ----------
        moves
            How many; by default all.
        """
        mission, area = self.mission, get_map(self.mission)
        first = mission.first_sample
        cells = [area.start]
        values = [mission.field.mean(area.locate(area.start)) if first is None else first]
        last = len(self) if moves is None else moves
        for cell, value, new in zip(self.path[1:], self.rewards, self.sampled, strict=True):
            if len(cells) > last:
                break
            if new:
                cells.append(cell)
                values.append(value)
            else:
                last -= 1  # a move that brought no sample
        return cells, values


@dataclass(frozen=True)
class Visits:
    """Where a policy goes, and where it may collide.

    Attributes
    ----------
    cells
        Shape [C, 2]: the cells in which the vehicle can be, or collide.
    probability
        Shape [C]: that it is ever there, after a move that it survived. A mission that collides
        later counts as well.
    collision
        Shape [C]: that the mission ends there in a collision. The sum is the risk of the policy.
    """

    cells: Whole
    probability: Numbers
    collision: Numbers


@dataclass(frozen=True)
class Journeys:
    """All safe histories of a policy: N journeys of at most T moves.

    Attributes
    ----------
    mission
        The model.
    cells
        Shape [N, T + 1, 2]: the cell before the first move and after each; after the end, the last.
    lengths
        Shape [N]: number of moves.
    rewards, risks, sampled
        Shape [N, T]: of each move what it paid, its risk, and whether a sample was taken; after the
        end 0, 0 and False.
    probability
        Shape [N]: of each journey. They sum to 1 - risk.
    planned
        Shape [N]: whether the journey is a whole mission, rather than one that leaves an incomplete
        policy.
    reward, risk
        Expected reward and probability of a collision of the policy, as in its certificate.
    visits
        Where it goes.
    """

    mission: Exploration
    cells: NDArray[np.int32]
    lengths: Whole
    rewards: Numbers
    risks: Numbers
    sampled: NDArray[np.bool_]
    probability: Numbers
    planned: NDArray[np.bool_]
    reward: float
    risk: float
    visits: Visits

    def __len__(self) -> int:
        """Return the number of journeys."""
        return len(self.probability)

    @property
    def earned(self) -> Numbers:
        """Shape [N]: reward of each journey, discounted."""
        earned: Numbers = self.rewards @ self.mission.discount ** np.arange(self.rewards.shape[1])
        return earned

    @property
    def risked(self) -> Numbers:
        """Shape [N]: risk of each journey, 1 - the product of survivals."""
        risked: Numbers = 1 - np.prod(1 - self.risks, axis=1)
        return risked

    def journey(self, number: int) -> Journey:
        """Return one journey."""
        moves = int(self.lengths[number])
        cells = self.cells[number, : moves + 1].tolist()
        return Journey(
            mission=self.mission,
            path=tuple((x, y) for x, y in cells),
            rewards=tuple(self.rewards[number, :moves].tolist()),
            risks=tuple(self.risks[number, :moves].tolist()),
            sampled=tuple(self.sampled[number, :moves].tolist()),
            probability=float(self.probability[number]),
            planned=bool(self.planned[number]),
        )

    def draw(self, seed: int) -> int:
        """Return the number of a journey, drawn with its probability among all that are safe.

        Parameters
        ----------
        seed
            The same seed draws the same journey.
        """
        self.require_some()
        if seed < 0:
            raise OptionError(f"seed must be a whole number from 0, not {seed}")
        share = self.probability / self.probability.sum()
        return int(np.random.default_rng(seed).choice(len(self), p=share))

    def require_some(self) -> None:
        """Refuse a policy that has no journey to show."""
        if not len(self):
            raise OptionError(
                "every outcome of this policy ends in a collision: there is no safe one to draw"
            )


def require_mission(model: object) -> Exploration:
    """Return a model that can be drawn, or say which ones can."""
    if isinstance(model, Exploration):
        return model
    raise OptionError(
        "only exploration missions can be drawn on a map: the model has to be an Exploration "
        f"(vulcan.domains.exploration), not {describe_model(model)}"
    )


def get_map(mission: Exploration) -> Map:
    """Return the map of a mission; it was found when the mission was made."""
    assert isinstance(mission.map, Map)
    return mission.map


def add_up(number_of: Whole, parts: Numbers) -> Numbers:
    """Return the sum of the parts of each number, from 0 to the largest."""
    sums: Numbers = np.bincount(number_of.ravel(), parts).astype(np.float64)
    return sums
