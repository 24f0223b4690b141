"""The exploration mission of Ayton and Williams: a vehicle that samples a Gaussian process.

A vehicle moves over the cells of a map, to one of the eight neighbours with each action, and takes
a sample without error wherever it has not been before. A sample pays its own value. The field is
drawn from a Gaussian process, so that every sample says something of those to come (`field`). The
position is uncertain, ever more so with time, and obstacles are in the way (`maps`): an action
fails with the risk of the place that it leads to.

    state      the cells visited, in order, and which node of the quadrature each sample was
    actions    N, NE, E, SE, S, SW, W, NW, as far as they stay on the map
    outcomes   with probability 1 - r a sample: (1 - r) w_k for the k-th node of the quadrature,
               paying m(x) + Σ_j L_kj z_j; or nothing, for sure, in a cell that was visited before;
               with probability r a collision, which ends the mission

With 8 actions and 4 outcomes each, the paper counts 32^9 = 3.5e13 histories. In a cell that was
visited before there is no new sample, so that there is one outcome rather than four: even without
edges, there are 8,465,096,344,736 safe histories of nine moves, and no more. The default map has
1.04e13 histories altogether, those that collide or are not finished included. A policy
has up to 4^9 = 262,144 leaves.

The paper leaves some details open. Here a collision pays 0 (`collision_reward`). The first
sample, taken in the start cell before the mission, is the mean of the field there
(`first_sample`). The risk is that of the place after a move, with the covariance after it, and not
of the way there. The maps, of which the paper gives no coordinates, are in `maps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.field import (
    Array,
    Field,
    Row,
    dot,
    find_norms,
    predict,
    quadrature,
    step_back,
)
from vulcan.domains.exploration.maps import MAPS, Cell, Map, Point, Vehicle
from vulcan.errors import OptionError
from vulcan.model.compiled import CompiledModel
from vulcan.model.interface import Outcome
from vulcan.numerics import SMALLEST_PROBABILITY
from vulcan.pages.maps import PageMap, Position
from vulcan.parameters import require_number, require_whole, shorten, suggest


class History(NamedTuple):
    """A state: all that happened so far."""

    path: tuple[Cell, ...]  # the cells visited, the start first
    nodes: tuple[int, ...]  # of the quadrature, from 0 on: one for each sample taken on the way

    def __str__(self) -> str:
        moves = len(self.path) - 1
        return f"cell {self.path[-1]}, {moves} move{'s' if moves != 1 else ''} made"


MOVES: Final = {
    "N": (0, 1),
    "NE": (1, 1),
    "E": (1, 0),
    "SE": (1, -1),
    "S": (0, -1),
    "SW": (-1, -1),
    "W": (-1, 0),
    "NW": (-1, 1),
}

PAPER_FIELD: Final = Field()
PAPER_VEHICLE: Final = Vehicle()

LONGEST_HORIZON: Final = 200
LARGEST_DEGREE: Final = 32

PATHS_KEPT: Final = 1 << 17
OUTLOOKS_KEPT: Final = 1 << 10
"""Some 100 MB and 30 MB at the default horizon; what is not kept is computed again."""


R = TypeVar("R")


def _remember(
    most: int | None = None,
) -> Callable[[Callable[..., R]], cached_property[Callable[..., R]]]:
    """Keep the last answers of a method, with each model by itself."""
    return lambda method: cached_property(lambda self: lru_cache(most)(partial(method, self)))


@dataclass(frozen=True, repr=False)
class Exploration:
    """A vehicle that samples a Gaussian process among obstacles.

    Parameters
    ----------
    horizon
        Number of actions.
    map
        Cells, start and obstacles: a `Map`, or the name of one of `MAPS`.
    field
        The prior of the field.
    vehicle
        Uncertainty of the vehicle's position.
    degree
        Degree of the quadrature: how many outcomes a sample has.
    first_sample
        Value of the sample taken at the start before the mission; by default the field's mean.
    collision_reward
        Reward of an action that ends in a collision.
    discount
        Discount of each step.

    Examples
    --------
    >>> mission = Exploration(map="wide")
    >>> mission
    Exploration(map='wide', horizon=9)
    >>> state = mission.initial_state()
    >>> [outcome.label for outcome in mission.outcomes(state, "NE")]
    ['0.814 (1 of 4)', '1.214 (2 of 4)', '1.586 (3 of 4)', '1.986 (4 of 4)', 'collision']
    """

    horizon: int = 9
    map: Map | str = "narrow"
    field: Field = PAPER_FIELD
    vehicle: Vehicle = PAPER_VEHICLE
    degree: int = 4
    first_sample: float | None = None
    collision_reward: float = 0.0
    discount: float = 1.0

    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "horizon": require_whole("horizon", self.horizon, 1, LONGEST_HORIZON),
            "map": self.map if isinstance(self.map, Map) else MAPS.get(str(self.map)),
            "degree": require_whole("degree", self.degree, 1, LARGEST_DEGREE),
            "collision_reward": require_number("collision_reward", self.collision_reward),
            "discount": require_number("discount", self.discount, least=0.0),
        }
        if checked["map"] is None:
            hint = suggest(self.map, MAPS)
            names = " or ".join(map(repr, MAPS))
            raise OptionError(f"map must be a Map, or {names}, not {shorten(self.map)}{hint}")
        if self.first_sample is not None:
            checked["first_sample"] = require_number("first_sample", self.first_sample)
        if checked["discount"] > 1:
            raise OptionError(f"discount must be a number from 0 to 1, not {self.discount!r}")
        for name, kind in (("field", Field), ("vehicle", Vehicle)):
            if not isinstance(getattr(self, name), kind):
                given = shorten(getattr(self, name))
                raise OptionError(f"{name} must be a {kind.__name__}, not {given}")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        names = [repr(name) for name, known in MAPS.items() if known == self.area]
        size = f"Map({self.area.columns} x {self.area.rows}, {len(self.area.obstacles)} obstacles)"
        return f"Exploration(map={names[0] if names else size}, horizon={self.horizon})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was computed: another process can compute it again."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def fingerprint(self) -> str:
        """All parameters as a string: maps may differ where the first moves do not lead."""
        parts = (f"{part.name}={getattr(self, part.name)!r}" for part in fields(self))
        return f"Exploration({', '.join(parts)})"

    def initial_state(self) -> History:
        """Return the history before the first action: the start, sampled."""
        return History((self.area.start,), ())

    def actions(self, state: History) -> list[str]:
        """Return the moves that stay on the map."""
        return self._list_moves(state.path[-1]).copy()

    @_remember()
    def _list_moves(self, cell: Cell) -> list[str]:
        """Return the moves from a cell that stay on the map."""
        (x, y), contains = cell, self.area.contains
        return [name for name, (dx, dy) in MOVES.items() if contains((x + dx, y + dy))]

    def default_action(self, state: History) -> str:
        """Return the move back to the cell before, which has one safe outcome; at first any."""
        moves = {self._move(state, action): action for action in self.actions(state)}
        return moves[state.path[-2] if len(state.path) > 1 else next(iter(moves))]

    def outcomes(self, state: History, action: str) -> list[Outcome]:
        """Return what may be found in the next cell, and a collision there."""
        path = (*state.path, self._move(state, action))
        risk = self.risk(path[-1], len(path) - 1)
        outcomes = self._arrive(path, state.nodes, 1.0 - risk) if risk < 1 else []
        if risk > 0:
            outcomes.append(Outcome.failure(risk, self.collision_reward, "collision"))
        return outcomes

    def _arrive(self, path: tuple[Cell, ...], nodes: tuple[int, ...], safe: float) -> list[Outcome]:
        """Return the safe outcomes of a move to the last cell of a path."""
        cells, rows = self._sample(path)
        if len(cells) == len(nodes) + 1:
            return [Outcome(safe, 0.0, History(path, nodes), "visited before")]
        row, mean = rows[-1], self.field.mean(self.area.locate(path[-1]))
        expected = mean + row[0] * self.first_node + dot(row[1:-1], self._whiten(nodes))
        return [
            Outcome(
                safe * weight,
                value := expected + row[-1] * z_k,
                History(path, (*nodes, k)),
                f"{value:.3f} ({k + 1} of {self.degree})",
            )
            for k, (z_k, weight) in enumerate(zip(*self.quadrature, strict=True))
        ]

    @property
    def outcomes_batch(self) -> Callable[[Sequence[History], Sequence[str]], tuple[Any, ...]]:
        """The outcomes of many moves at once; a subclass with other outcomes has no such method."""
        if type(self).outcomes is not Exploration.outcomes:
            raise AttributeError("outcomes_batch")
        return self._find_outcomes

    def _find_outcomes(
        self, states: Sequence[History], actions: Sequence[str]
    ) -> tuple[Array, Array, list[list[Any]], list[list[str]]]:
        """Return the probability, reward, next state and label of each outcome of many moves.

        The last outcome is a collision; one that can't occur has probability 0. Numbers are those
        of `outcomes`, bit for bit.
        """
        degree, (points, weights) = self.degree, map(np.array, self.quadrature)
        paths = [(*s.path, self._move(s, a)) for s, a in zip(states, actions, strict=True)]
        risk = np.array([[self.risk(path[-1], len(path) - 1)] for path in paths])
        mean = np.array([self.field.mean(self.area.locate(path[-1])) for path in paths])
        rows = [self._sample(path)[1] for path in paths]
        taken = np.array([len(state.nodes) for state in states])
        new = np.array(list(map(len, rows))) > taken + 1
        # Weights and samples of each move, as many as of the longest history.
        pad = (0,) * max(len(row[-1]) for row in rows)
        weight = np.array([row[-1] + pad[len(row[-1]) :] for row in rows], float)
        known = points[[state.nodes + pad[len(state.nodes) :] for state in states]]
        learned = np.zeros(len(paths))
        for k in range(len(pad) - 2):
            learned += np.where(k < taken, weight[:, k + 1] * known[:, k], 0.0)
        expected = mean + weight[:, 0] * self.first_node + learned
        deviation = np.array([row[-1][-1] for row in rows])
        value = np.where(new[:, None], expected[:, None] + deviation[:, None] * points, 0.0)
        likely = np.where(new[:, None], weights, np.eye(1, degree))
        last = np.full_like(risk, self.collision_reward)
        ends = [f" ({k + 1} of {degree})" for k in range(degree)]
        tails = [(k,) for k in range(degree)]
        after: list[list[Any]] = [
            [*[History(path, state.nodes + tail) for tail in tails], None]
            for path, state in zip(paths, states, strict=True)
        ]
        labels = [
            [*[f"{x:.3f}{end}" for x, end in zip(row, ends, strict=True)], "collision"]
            for row in value.tolist()
        ]
        for i in np.flatnonzero(~new).tolist():
            after[i][0], labels[i][0] = History(paths[i], states[i].nodes), "visited before"
        return (np.hstack([(1.0 - risk) * likely, risk]), np.hstack([value, last]), after, labels)

    def locate(self, state: History, action: str, measurement: float) -> History | None:
        """Return where a measured sample leads to: the outcome of the nearest value.

        In a cell that was visited before, any value leads to its only outcome. None for a value
        that is not finite.
        """
        if not math.isfinite(measurement):
            return None
        safe = [outcome for outcome in self.outcomes(state, action) if not outcome.fails]
        nearest = min(safe, key=lambda outcome: abs(outcome.reward - measurement), default=None)
        return None if nearest is None else nearest.state

    def _move(self, state: History, action: str) -> Cell:
        (x, y), (east, north) = state.path[-1], MOVES[action]
        return x + east, y + north

    def _whiten(self, nodes: Sequence[int]) -> list[float]:
        """Return the samples of a history in whitened coordinates, the first one excepted."""
        return [self.quadrature[0][k] for k in nodes]

    def displace(self, one: Cell, other: Cell) -> Point:
        """Return how far apart two cells are, to the east and to the north."""
        spacing = self.area.spacing
        return spacing * abs(other[0] - one[0]), spacing * abs(other[1] - one[1])

    def reward_to_go_bound(self, state: History, step: int) -> float:
        """Return an upper bound on what any policy can still earn; see `field`."""
        means, weights, deviations, distances = self._look_ahead(state.path, self.horizon - step)
        expected = means + self._find_samples(state) @ weights
        bound = 0.0
        for k, deviation in enumerate(deviations):
            most = max(0.0, self.collision_reward, expected[distances <= k + 1].max())
            bound += self.discount**k * (most + deviation * math.sqrt(k))
        return float(bound)

    def value_to_go_bound(self, state: History, step: int, price: float) -> float:
        """Return an upper bound on reward less price times risk; see `field`."""
        left, failure = self.horizon - step, self.collision_reward - price
        means, weights, deviations, distances = self._look_ahead(state.path, left)
        risks = self._find_risks(state.path[-1], left)
        pays = np.maximum(means + self._find_samples(state) @ weights, 0.0).reshape(risks.shape[1:])
        best = np.zeros(pays.shape)
        for risk in risks[::-1]:
            best = step_back((1 - risk) * (pays + self.discount * best) + risk * failure)
        later = np.arange(len(deviations))
        learned = (deviations * self.norms[later]) @ self.discount**later
        return float(best.flat[distances == 0].sum() + learned)

    def _find_samples(self, state: History) -> Array:
        """Return all samples of a history in whitened coordinates."""
        return np.array([self.first_node, *self._whiten(state.nodes)])

    def _find_reach(self, here: Cell, moves: int) -> tuple[range, range]:
        """Return the columns and the rows of the map within some moves of a cell."""
        (x, y), area = here, self.area
        columns = range(max(0, x - moves), min(area.columns, x + moves + 1))
        return columns, range(max(0, y - moves), min(area.rows, y + moves + 1))

    @_remember(OUTLOOKS_KEPT)
    def _look_ahead(
        self, path: tuple[Cell, ...], moves: int
    ) -> tuple[Array, Array, Array, NDArray[np.intp]]:
        """Return what can be sampled in the cells within some moves of the end of a path.

        That is `mean` and `weights` of `predict` in each cell, 0 in those visited before, the
        largest deviation within 1, 2, ... moves, and the moves to each cell.
        """
        cells = np.stack(np.meshgrid(*self._find_reach(path[-1], moves)), axis=-1).reshape(-1, 2)
        visited, rows = self._sample(path)
        origin, spacing = self.area.origin, self.area.spacing
        known, places = (origin + spacing * np.array(some) for some in (visited, cells))
        means, weights, left = predict(self.field, known, rows, places)
        old = (cells[:, None] == np.array(visited)).all(axis=2).any(axis=1)
        means[old], weights[:, old], left[old] = 0.0, 0.0, 0.0
        distances = np.abs(cells - path[-1]).max(axis=1)
        most = [left[distances <= k].max() for k in range(1, moves + 1)]
        return means, weights, np.sqrt(most), distances

    @_remember(OUTLOOKS_KEPT)
    def _find_risks(self, here: Cell, moves: int) -> Array:
        """Return the risks of the cells within reach at each of the moves left."""
        columns, lines = self._find_reach(here, moves)
        steps = range(self.horizon - moves + 1, self.horizon + 1)
        risks = [[[self.risk((x, y), t) for x in columns] for y in lines] for t in steps]
        return np.array(risks).reshape(len(steps), len(lines), len(columns))

    def risk_to_go_bound(self, state: History, action: str, step: int) -> float:
        """Return the risk of the action itself."""
        return self.risk(self._move(state, action), step + 1)

    def page_map(self) -> PageMap:
        """Return the map for pages, in units of cells: obstacles, and samples as expected."""
        area = self.area
        (west, south), spacing = area.origin, area.spacing
        return PageMap(
            area.columns,
            area.rows,
            walls=[
                [((x - west) / spacing, (y - south) / spacing) for x, y in obstacle.vertices]
                for obstacle in area.obstacles
            ],
            shades=[
                [round(self.field.mean(area.locate((x, y))), 3) for x in range(area.columns)]
                for y in range(area.rows)
            ],
            shade_name="sample expected before the mission",
            note="An action is a move to the next cell, where a sample is taken. Its outcome is "
            f"what is found: “(1 of {self.degree})” is the lowest of {self.degree} values.",
        )

    def page_position(self, state: History) -> Position:
        return state.path[-1]

    @property
    def area(self) -> Map:
        """The map, found if it was given by name."""
        assert isinstance(self.map, Map)
        return self.map

    @cached_property
    def quadrature(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Nodes and probabilities of a sample in whitened coordinates."""
        return quadrature(self.degree)

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """The mean norm of 0, 1, ... samples in whitened coordinates."""
        return find_norms(*self.quadrature, self.horizon)

    @cached_property
    def first_node(self) -> float:
        """The first sample in whitened coordinates, z_0, taken before the mission."""
        if self.first_sample is None:
            return 0.0
        mean = self.field.mean(self.area.locate(self.area.start))
        return (self.first_sample - mean) / math.sqrt(self.field.variance)

    @cached_property
    def compiled(self) -> CompiledModel | None:
        """The same mission as machine code; None for very long ones."""
        return self.compile_from(self.initial_state())

    def compile_from(self, state: History) -> CompiledModel | None:
        """Return what is left of the mission after a history as machine code, likewise."""
        if type(self) is not Exploration:
            return None  # a subclass may answer otherwise
        from vulcan.domains.exploration.compiled import compile_exploration

        return compile_exploration(self, state)

    @_remember()
    def risk(self, cell: Cell, step: int) -> float:
        """Return the probability of a collision in a cell after this many actions."""
        place, variance = self.area.locate(cell), self.vehicle.variance_after(step)
        risk = sum(o.risk(place, variance) for o in self.area.obstacles)
        # Tails far away are smaller than a model's probabilities may be: rounded up, not to 0.
        return min(1.0, max(risk, SMALLEST_PROBABILITY)) if risk > 0 else 0.0

    @_remember(PATHS_KEPT)
    def _sample(self, path: tuple[Cell, ...]) -> tuple[tuple[Cell, ...], tuple[Row, ...]]:
        """Return the cells in which a path takes samples, in order, and their rows of L."""
        cell = path[-1]
        cells, rows = self._sample(path[:-1]) if len(path) > 1 else ((), ())
        if cell in cells:
            return cells, rows
        # Seen from the cell, so that places apart alike have covariances that are the same number.
        row = self.field.extend([self.displace(cell, known) for known in cells], rows, (0.0, 0.0))
        return (*cells, cell), (*rows, row)
