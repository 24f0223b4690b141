"""Large graphs: grids as arrays and as a class, and a consensus protocol over many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vulcan
from vulcan import Outcome

__all__ = ["LARGE", "Consensus", "Crossing", "make_arrays", "make_epidemic"]

MOVES = {"east": (1, 0), "west": (-1, 0), "north": (0, 1), "south": (0, -1)}
SLIP, TRAP = 0.1, 0.05


def make_map(size: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which cells are dangerous, and what entering each pays."""
    random = np.random.default_rng(0)
    dangerous = random.random(size * size) < 0.1
    pays = np.where(dangerous, 0.5, 0.0) + 0.1 * random.random(size * size)
    return dangerous, pays


@dataclass(frozen=True)
class Crossing:
    """A vehicle that collects on a square of cells, starting in the middle; moves slip sideways.

    Parameters
    ----------
    size
        Cells along a side.
    horizon
        Number of steps.
    """

    size: int
    horizon: int

    def __post_init__(self) -> None:
        dangerous, pays = make_map(self.size)
        object.__setattr__(self, "_dangerous", dangerous.tolist())
        object.__setattr__(self, "_pays", pays.tolist())

    def initial_state(self) -> int:
        return self.size // 2 * (self.size + 1)

    def actions(self, state: int) -> tuple[str, ...]:
        return tuple(MOVES)

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        along, across = MOVES[action]
        outcomes = []
        for move, probability in (
            ((along, across), 1 - SLIP),
            ((across, along), SLIP / 2),
            ((-across, -along), SLIP / 2),
        ):
            cell = self._move(state, *move)
            risk = TRAP if self._dangerous[cell] else 0.0
            outcomes.append(Outcome(probability * (1 - risk), self._pays[cell], cell))
            outcomes.append(Outcome.failure(probability * risk))
        return outcomes

    def _move(self, state: int, along: int, across: int) -> int:
        column = min(max(state % self.size + along, 0), self.size - 1)
        row = min(max(state // self.size + across, 0), self.size - 1)
        return row * self.size + column


def make_arrays(size: int, horizon: int) -> vulcan.model.ArrayModel:
    """Return the same as arrays."""
    dangerous, pays = make_map(size)
    cells = np.arange(size * size)
    column, row = cells % size, cells // size
    parts = []
    for number, (along, across) in enumerate(MOVES.values()):
        for (right, up), probability in (
            ((along, across), 1 - SLIP),
            ((across, along), SLIP / 2),
            ((-across, -along), SLIP / 2),
        ):
            target = np.clip(row + up, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
            risk = np.where(dangerous[target], TRAP, 0.0)
            action = np.full(len(cells), number)
            safe = (cells, action, target, probability * (1 - risk), pays[target])
            failing = (cells, action, np.full(len(cells), -1), probability * risk, 0 * pays)
            parts += [safe, failing]
    columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
    start = size // 2 * (size + 1)
    return vulcan.model.ArrayModel(
        *columns, horizon=horizon, start=start, action_labels=list(MOVES)
    )


@dataclass(frozen=True)
class Consensus:
    """The shared coin of a consensus protocol, with a scheduler that wants it to come up soon.

    Each process throws a coin and moves a shared counter up or down, then looks whether it is far
    enough from the middle to decide. The scheduler says who moves. It fails if the processes decide
    differently from each other, and is paid for every process that decides.

    Parameters
    ----------
    processes, rounds
        How many there are, and how far from the middle the counter must be, in units of that.
    horizon
        Number of steps.
    """

    processes: int
    rounds: int
    horizon: int

    def initial_state(self) -> tuple[int, ...]:
        return (0, *(0,) * self.processes)  # counter, and what each does: 0 to 5

    def actions(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(k for k in range(self.processes) if state[k + 1] < FINISHED_LOW)

    def outcomes(self, state: tuple[int, ...], action: int) -> list[Outcome]:
        counter, doing = state[0], state[action + 1]
        if doing == FLIPPING:
            return [
                Outcome(0.5, 0.0, self._change(state, action, counter, step))
                for step in (LOWERING, RAISING)
            ]
        limit = self.rounds * self.processes
        if doing == LOOKING:
            if abs(counter) < limit:
                return [Outcome(1.0, 0.0, self._change(state, action, counter, FLIPPING))]
            decided = FINISHED_HIGH if counter > 0 else FINISHED_LOW
            other = FINISHED_LOW + FINISHED_HIGH - decided
            if other in state[1:]:
                return [Outcome.failure(1.0)]
            return [Outcome(1.0, 1.0, self._change(state, action, counter, decided))]
        moved = counter + (1 if doing == RAISING else -1)
        most = limit + self.processes
        moved = min(max(moved, -most), most)
        return [Outcome(1.0, 0.0, self._change(state, action, moved, LOOKING))]

    @staticmethod
    def _change(state: tuple[int, ...], process: int, counter: int, doing: int) -> tuple[int, ...]:
        return (counter, *state[1 : process + 1], doing, *state[process + 2 :])


FLIPPING, LOWERING, RAISING, LOOKING, FINISHED_LOW, FINISHED_HIGH = range(6)


LARGE: dict[str, tuple[Any, vulcan.RiskBound]] = {
    "arrays 300 x 300, 300 steps": (lambda: make_arrays(300, 300), vulcan.Constant(0.2)),
    "class 100 x 100, 400 steps": (lambda: Crossing(100, 400), vulcan.Constant(0.2)),
    "class 32 x 32, 100 steps": (lambda: Crossing(32, 100), vulcan.Constant(0.1)),
    "consensus (4, 2), 1,500 steps": (lambda: Consensus(4, 2, 1500), vulcan.Constant(0.01)),
}
"""By name, what makes the model, and its bound."""


def make_epidemic(people: int, horizon: int) -> vulcan.model.ArrayModel:
    """Return an epidemic as arrays: how many are well and ill, and how far contacts are limited.

    Infections and recoveries of a day are binomial. Each day pays what the measure leaves open,
    and the more are ill, the more likely the wards are too full for one more.
    """
    from scipy.stats import binom

    size = people + 1
    number = np.full((size, size), -1)
    well, ill = np.nonzero(np.add.outer(np.arange(size), np.arange(size)) <= people)
    number[well, ill] = np.arange(len(well))
    parts = []
    for state, (safe, sick) in enumerate(zip(well.tolist(), ill.tolist(), strict=True)):
        for action, (contact, pays) in enumerate(((0.5, 1.0), (0.25, 0.7), (0.1, 0.2))):
            caught, healed = np.arange(safe + 1), np.arange(sick + 1)
            chance = np.outer(
                binom.pmf(caught, safe, 1 - (1 - contact / people) ** sick),
                binom.pmf(healed, sick, 0.3),
            )
            kept = chance > 1e-9
            risk = 0.02 * (sick / people) ** 2
            target = number[safe - caught[:, None], sick + caught[:, None] - healed][kept]
            likely = np.append(chance[kept] / chance[kept].sum() * (1 - risk), risk)
            rows = np.append(target, -1), likely, np.append(np.full(len(target), pays), 0.0)
            parts.append((np.full(len(likely), state), np.full(len(likely), action), *rows))
    columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
    start = int(number[people - 2, 2])
    return vulcan.model.ArrayModel(*columns, horizon=horizon, start=start)
