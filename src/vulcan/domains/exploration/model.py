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
    Field,
    Outlook,
    Row,
    dot,
    find_norms,
    find_reach,
    look_ahead,
    quadrature,
)
from vulcan.domains.exploration.maps import MAPS, Cell, Map, Point, Vehicle
from vulcan.errors import OptionError
from vulcan.model.compiled import CompiledModel
from vulcan.model.interface import Outcome
from vulcan.pages.maps import PageMap, Position
from vulcan.parameters import require_number, require_whole, shorten, suggest

__all__ = [
    "MOVES",
    "Exploration",
    "History",
    "Track",
]


class History(NamedTuple):
    """A state: all that happened so far.

    Attributes
    ----------
    path
        The cells visited, the start first.
    nodes
        For each sample taken on the way, which node of the quadrature it was, from 0 on.
    """

    path: tuple[Cell, ...]
    nodes: tuple[int, ...]

    def __str__(self) -> str:
        moves = len(self.path) - 1
        return f"cell {self.path[-1]}, {moves} move{'s' if moves != 1 else ''} made"


class Track(NamedTuple):
    """Properties of a path, shared by all histories that took it.

    Attributes
    ----------
    cells
        Where samples were taken, in order; the start comes first.
    rows
        Their rows of the Cholesky factor L.
    risk
        Probability of a collision in the last cell of the path.
    new
        Whether that cell was not visited before; only then it has what follows.
    base
        Expected sample there given the first one only: m + L_k0 z_0.
    weights, deviation
        Weights of the later samples, L_k1 to L_k,k-1, and of the sample's own node, L_kk.
    """

    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]
    risk: float
    new: bool
    base: float = 0.0
    weights: Row = ()
    deviation: float = 0.0


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

TRACKS_KEPT: Final = 1 << 17
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
        How unsure the vehicle is of its position.
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
        return self._find_moves(state.path[-1]).copy()

    def outcomes(self, state: History, action: str) -> list[Outcome]:
        """Return what may be found in the next cell, and a collision there."""
        (x, y), (east, north) = state.path[-1], MOVES[action]
        path = (*state.path, (x + east, y + north))
        track = self.follow(path)
        outcomes = self._arrive(path, state.nodes, track) if track.risk < 1 else []
        if track.risk > 0:
            outcomes.append(Outcome.failure(track.risk, self.collision_reward, "collision"))
        return outcomes

    def _arrive(
        self, path: tuple[Cell, ...], nodes: tuple[int, ...], track: Track
    ) -> list[Outcome]:
        """Return the safe outcomes of a move to the last cell of a path."""
        safe = 1.0 - track.risk
        if not track.new:
            return [Outcome(safe, 0.0, History(path, nodes), "visited before")]
        expected = track.base + dot(track.weights, self.whiten(nodes))
        deviation = track.deviation
        return [
            Outcome(
                safe * weight,
                value := expected + deviation * z_k,
                History(path, (*nodes, k)),
                f"{value:.3f} {which}",
            )
            for k, z_k, weight, which in self._samples
        ]

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

    def whiten(self, nodes: Sequence[int]) -> list[float]:
        """Return the samples of a history in whitened coordinates, the first one excepted."""
        z, _ = self.quadrature
        return [z[k] for k in nodes]

    def displace(self, one: Cell, other: Cell) -> Point:
        """Return how far apart two cells are, to the east and to the north."""
        spacing = self.area.spacing
        return spacing * abs(other[0] - one[0]), spacing * abs(other[1] - one[1])

    def reward_to_go_bound(self, state: History, step: int) -> float:
        """Return an upper bound on what any policy can still earn; see `outlook`."""
        left = self.horizon - step
        if left <= 0:
            return 0.0
        samples = [self.first_node, *self.whiten(state.nodes)]
        outlook = self._look_ahead(state.path, left)
        return outlook.bound(samples, max(0.0, self.collision_reward), self.discount)

    def value_to_go_bound(self, state: History, step: int, price: float) -> float:
        """Return an upper bound on reward less price times risk; see `outlook`."""
        left = self.horizon - step
        if left <= 0:
            return 0.0
        samples = [self.first_node, *self.whiten(state.nodes)]
        failure = self.collision_reward - price
        outlook = self._look_ahead(state.path, left)
        risks = self._find_risks(state.path[-1], left)
        return outlook.value(samples, risks, self.norms, failure, self.discount)

    def risk_to_go_bound(self, state: History, action: str, step: int) -> float:
        """Return the risk of the action itself."""
        (x, y), (east, north) = state.path[-1], MOVES[action]
        return self.risk((x + east, y + north), step + 1)

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
        """Return where on the map of a page a history is."""
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
        return self.field.whiten(self.area.locate(self.area.start), self.first_sample)

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

    @cached_property
    def _samples(self) -> tuple[tuple[int, float, float, str], ...]:
        """Number, node and probability of each outcome of a sample, and what it is called."""
        names = [f"({k} of {self.degree})" for k in range(1, self.degree + 1)]
        return tuple(zip(range(self.degree), *self.quadrature, names, strict=True))

    @_remember()
    def _find_moves(self, cell: Cell) -> list[str]:
        (x, y), contains = cell, self.area.contains
        return [name for name, (dx, dy) in MOVES.items() if contains((x + dx, y + dy))]

    @_remember()
    def risk(self, cell: Cell, step: int) -> float:
        """Return the probability of a collision in a cell after this many actions."""
        place, variance = self.area.locate(cell), self.vehicle.variance_after(step)
        return min(1.0, sum(o.risk(place, variance) for o in self.area.obstacles))

    @_remember(OUTLOOKS_KEPT)
    def _find_risks(self, here: Cell, left: int) -> NDArray[np.float64]:
        """Return the risks of the cells around, for each of the moves left."""
        columns, rows = find_reach(self.area, here, left)
        steps = range(self.horizon - left + 1, self.horizon + 1)
        risks = [[[self.risk((x, y), t) for x in columns] for y in rows] for t in steps]
        return np.array(risks, np.float64)

    @_remember(TRACKS_KEPT)
    def follow(self, path: tuple[Cell, ...]) -> Track:
        """Return what follows from a path alone, from that of all but its last cell."""
        cell = path[-1]
        risk = self.risk(cell, len(path) - 1)
        cells, rows = self.follow(path[:-1])[:2] if len(path) > 1 else ((), ())
        if cell in cells:
            return Track(cells, rows, risk, new=False)
        # Seen from the cell, so that places apart alike have covariances that are the same number.
        row = self.field.extend([self.displace(cell, known) for known in cells], rows, (0.0, 0.0))
        mean = self.field.mean(self.area.locate(cell))
        base = mean + (row[0] * self.first_node if cells else 0.0)
        return Track((*cells, cell), (*rows, row), risk, True, base, row[1:-1], row[-1])

    @_remember(OUTLOOKS_KEPT)
    def _look_ahead(self, path: tuple[Cell, ...], left: int) -> Outlook:
        """Return what can be sampled from a path on."""
        track = self.follow(path)
        return look_ahead(self.area, self.field, track.cells, track.rows, path[-1], left)
