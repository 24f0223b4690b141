"""The most telling outcomes of a policy: a few journeys that stand for all of them.

They are chosen by one rule, on any map and for any policy:

1. Journeys with the same kind of route (through a gate, turned back at it, away at once),
   the same gate, the same direction and the same luck with samples before and after it are one
   *group*. Its probability is the sum of theirs.
2. The most probable group is chosen first. Then, again and again, the group with the largest

       sqrt(probability) · distance to the nearest group chosen so far.

   The distance counts `KIND_APART` for another kind of route, up to 1 for a gate elsewhere, up to 1
   for the direction, and up to 1 each for the samples before and after. So what is shown is
   probable and yet different; a kind of route that occurs at all, if not too rarely, is shown
   before a second variant of another.
3. A group is shown by a typical journey: the group's most probable path, and on it the most
   probable samples; where several are as probable, those whose reward is nearest to the mean.
4. If there are fewer groups than outcomes wanted, the most probable paths that are not shown yet
   follow, and then the most probable journeys.

What is chosen is shown in the order of the kinds, and by probability within each.

A journey has a *route*, one of a few kinds:

    THROUGH     it takes a risk worth the name, and goes on; the place of the largest is its *gate*
    INTO        the same, but it ends there, or turns around and comes back
    TURNED      it takes none, but comes within one move of a gate of other journeys
    AWAY        it takes none, and never comes that near
    FREE        no journey of the policy takes any

A risk is worth the name if it is at least `COUNTED` of the largest that the policy takes in any
move, and no less than `SMALLEST`. So nothing has to be known of the map: gates are where this very
policy takes its risk.

Besides, a route has a *moment*, a number of moves: that which leads through the gate, the last one
beside it, or the first one. With it come the direction in which the journey goes on, from there to
its end, one of eight, and whether the samples before the moment and from there on were good, poor
or as expected: their mean is more than `SURPRISE` deviations of the field above or below what was
expected before the mission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.maps import Cell, Map
from vulcan.errors import OptionError

from .journeys import Journey, Journeys, Numbers, Whole, add_up, get_map

__all__ = [
    "AWAY",
    "FREE",
    "INTO",
    "THROUGH",
    "TURNED",
    "Routes",
    "TellingOutcome",
    "choose_outcomes",
    "describe_outcome",
    "describe_route",
    "find_routes",
]


KIND_APART: Final = 3.0
FAR: Final = 4.0
"""Gates that are this many cells apart are as different as gates can be."""

TIED: Final = 1e-9
"""Probabilities whose ratio is as near to 1 as this are equal up to rounding."""


@dataclass(frozen=True)
class TellingOutcome:
    """A journey that stands for others.

    Attributes
    ----------
    number
        Of the journey.
    journey
        The journey itself.
    words
        What happens on it.
    share
        The probability of all journeys of its group.
    """

    number: int
    journey: Journey
    words: str
    share: float

    @property
    def numbers(self) -> str:
        """What it earns and risks, and how probable it is, it alone and all of its group."""
        journey = self.journey
        return (
            f"reward {journey.earned[-1]:.2f}, risk {journey.risked[-1]:.2g}, "
            f"probability {_percent(journey.probability)} ({_percent(self.share)} such)"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def describe_outcome(journeys: Journeys, number: int) -> TellingOutcome:
    """Return any one journey with what happens on it, and how probable such journeys are."""
    routes = find_routes(journeys)
    same = (routes.keys == routes.keys[number]).all(axis=1)
    return _tell(journeys, routes, number, float(journeys.probability[same].sum()))


def choose_outcomes(journeys: Journeys, count: int = 6) -> list[TellingOutcome]:
    """Return the most telling outcomes of a policy; see the head of this module.

    Parameters
    ----------
    journeys
        All of the policy's.
    count
        How many at the most; there are fewer only if the policy has fewer.

    Raises
    ------
    OptionError
        If every outcome of the policy is a collision.
    """
    if count < 1:
        raise OptionError(f"count must be a whole number from 1, not {count}")
    journeys.require_some()
    routes = find_routes(journeys)
    keys, group = np.unique(routes.keys, axis=0, return_inverse=True)
    group = group.ravel()
    share = add_up(group, journeys.probability)
    _, path = np.unique(_code_paths(journeys), return_inverse=True)
    chosen = [
        _find_typical(journeys, np.flatnonzero(group == number), path)
        for number in _choose_groups(keys, share, routes, count)
    ]
    chosen = _fill_up(journeys, path, chosen, count)
    chosen.sort(key=lambda number: (routes.kind[number], -share[group[number]]))
    return [_tell(journeys, routes, k, float(share[group[k]])) for k in chosen]


def _tell(journeys: Journeys, routes: Routes, number: int, share: float) -> TellingOutcome:
    words = describe_route(journeys, routes, number)
    return TellingOutcome(number, journeys.journey(number), words, share)


def _choose_groups(keys: Whole, share: Numbers, routes: Routes, count: int) -> list[int]:
    """Return the groups that are the most probable yet different from each other."""
    chosen = [int(share.argmax())]
    nearest = _find_distances(keys, keys[chosen[0]], routes)
    while len(chosen) < count:
        score = np.sqrt(share) * nearest
        best = int(score.argmax())
        if score[best] <= 0:
            break  # all are chosen
        chosen.append(best)
        nearest = np.minimum(nearest, _find_distances(keys, keys[best], routes))
    return chosen


def _find_distances(keys: Whole, key: Whole, routes: Routes) -> Numbers:
    """Return how different each key is from one of them."""
    kinds, gates, directions, before, after = keys.T
    apart = KIND_APART * (kinds != key[0])
    if routes.gates:
        places = np.array(routes.gates)
        away = np.linalg.norm(places[gates] - places[key[1]], axis=1) / FAR
        both = (gates >= 0) & (key[1] >= 0)
        apart = apart + np.where(both, np.minimum(1.0, away), 0.0)
    turn = np.abs(directions - key[2])
    eighths = np.minimum(turn, 8 - turn)
    nowhere = (directions == NOWHERE) != (key[2] == NOWHERE)
    distances: Numbers = (
        apart
        + np.where(nowhere, 0.5, eighths / 4)
        + np.abs(before - key[3]) / 2
        + np.abs(after - key[4]) / 2
    )
    return distances


def _code_paths(journeys: Journeys) -> NDArray[np.void]:
    """Return one value per journey, the same for those with the same path."""
    moves = np.diff(journeys.cells, axis=1).astype(np.int8).reshape(len(journeys), -1)
    lengths = journeys.lengths.astype(np.int16)[:, None].view(np.int8)
    rows = np.ascontiguousarray(np.concatenate((lengths, moves), axis=1))
    codes: NDArray[np.void] = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    return codes


def _find_typical(journeys: Journeys, members: Whole, path: Whole) -> int:
    """Return the journey that stands for some."""
    weight = np.bincount(path[members], journeys.probability[members])
    common = members[path[members] == weight.argmax()]
    probability = journeys.probability[common]
    earned = journeys.earned[common]
    mean = probability @ earned / probability.sum()
    likely = probability >= probability.max() * (1 - TIED)
    return int(common[likely][np.abs(earned[likely] - mean).argmin()])


def _fill_up(journeys: Journeys, path: Whole, chosen: list[int], count: int) -> list[int]:
    """Return what was chosen, and further journeys as long as there are any."""
    chosen = list(chosen)
    shown = np.unique(path[chosen])
    weight = np.bincount(path, journeys.probability)
    weight[shown] = -1.0
    for common in np.argsort(-weight, kind="stable"):
        if len(chosen) >= count or weight[common] < 0:
            break
        chosen.append(_find_typical(journeys, np.flatnonzero(path == common), path))
    if len(chosen) < count:
        others = np.setdiff1d(np.argsort(-journeys.probability, kind="stable"), chosen)
        order = others[np.argsort(-journeys.probability[others], kind="stable")]
        chosen += order[: count - len(chosen)].tolist()
    return chosen


# --- Routes

THROUGH, INTO, TURNED, AWAY, FREE = range(5)

COUNTED: Final = 0.1
SMALLEST: Final = 1e-4
SURPRISE: Final = 0.33

NOWHERE: Final = 8
"""The direction of a journey that ends where its moment was."""

DIRECTIONS: Final = (
    *("east", "north-east", "north", "north-west"),
    *("west", "south-west", "south", "south-east"),
)

QUALITIES: Final = {-1: "poor", 0: "fair", 1: "good"}


@dataclass(frozen=True)
class Routes:
    """The routes of N journeys.

    Attributes
    ----------
    kind
        Shape [N]: THROUGH, INTO, TURNED, AWAY or FREE.
    gate
        Shape [N]: number of the gate, -1 for AWAY and FREE.
    moment
        Shape [N]: how many moves were made then.
    direction
        Shape [N]: where it goes from there, in eighths of a turn from the east, or NOWHERE.
    before, after
        Shape [N]: how the samples were, -1, 0 or 1 for poor, as expected and good.
    gates
        The cells in which risk is taken, the one with the most probability first.
    """

    kind: Whole
    gate: Whole
    moment: Whole
    direction: Whole
    before: Whole
    after: Whole
    gates: tuple[Cell, ...]

    @property
    def keys(self) -> Whole:
        """Shape [N, 5]: what tells routes apart; the moment is left out."""
        parts = (self.kind, self.gate, self.direction, self.before, self.after)
        return np.stack(parts, axis=1)


def find_routes(journeys: Journeys) -> Routes:
    """Return the routes of all journeys."""
    count, most = journeys.risks.shape
    everyone = np.arange(count)
    kind, gate = np.full(count, FREE), np.full(count, -1)
    moment = np.minimum(1, journeys.lengths)
    # Of the samples, those before this move count as before the moment.
    split = moment.copy()
    gates: tuple[Cell, ...] = ()
    if count and most:
        peak = journeys.risks.argmax(axis=1)
        largest = journeys.risks[everyone, peak]
        risky = largest >= max(SMALLEST, COUNTED * float(largest.max()))
        gates, numbers = _find_gates(journeys, np.flatnonzero(risky), peak + 1)
        kind[risky], gate[risky] = np.where(_goes_on(journeys, peak)[risky], THROUGH, INTO), numbers
        moment[risky], split[risky] = peak[risky] + 1, peak[risky]
        if gates:
            nearest, last = _find_approach(journeys, gates)
            near, far = ~risky & (nearest >= 0), ~risky & (nearest < 0)
            kind[near], gate[near] = TURNED, nearest[near]
            moment[near] = split[near] = last[near]
            kind[far] = AWAY
    before, after = _judge_samples(journeys, split)
    return Routes(kind, gate, moment, _find_direction(journeys, kind, moment), before, after, gates)


def _find_gates(journeys: Journeys, risky: Whole, moment: Whole) -> tuple[tuple[Cell, ...], Whole]:
    """Return the cells of the largest risks, and the number of each risky journey's."""
    places = journeys.cells[risky, moment[risky]]
    cells, numbers = np.unique(places, axis=0, return_inverse=True)
    numbers = numbers.ravel()
    order = np.argsort(-np.bincount(numbers, journeys.probability[risky]), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return tuple((x, y) for x, y in cells[order].tolist()), rank[numbers]


def _goes_on(journeys: Journeys, move: Whole) -> NDArray[np.bool_]:
    """Whether the move after a given one leads on, rather than back or nowhere.

    After a turn by more than a right angle it leads back. After a right angle it leads on if the
    short cut, past the place between the two moves, would lead through an obstacle.
    """
    everyone, last = np.arange(len(journeys)), journeys.cells.shape[1] - 1
    before, here, there = (
        journeys.cells[everyone, np.minimum(move + k, last)].astype(np.int64) for k in range(3)
    )
    along = ((here - before) * (there - here)).sum(axis=1)
    onward: NDArray[np.bool_] = along > 0
    corners = np.flatnonzero((along == 0) & (there != here).any(axis=1))
    cuts, number_of = np.unique(
        np.concatenate((before, there), axis=1)[corners], axis=0, return_inverse=True
    )
    area = get_map(journeys.mission)
    blocked = [_crosses(area, (a, b), (c, d)) for a, b, c, d in cuts.tolist()]
    onward[corners] = np.array(blocked, bool)[number_of.ravel()]
    return onward


def _crosses(area: Map, one: Cell, other: Cell) -> bool:
    """Whether the straight way between two cells leads through an obstacle."""
    (x, y), (u, v) = area.locate(one), area.locate(other)
    for obstacle in area.obstacles:
        entry, leave = 0.0, 1.0
        for a, b, offset in obstacle.edges:
            outside, change = a * x + b * y - offset, a * (u - x) + b * (v - y)
            if change < 0:
                entry = max(entry, -outside / change)
            elif change > 0:
                leave = min(leave, -outside / change)
            elif outside > 0:
                leave = -1.0
        if entry < leave:
            return True
    return False


def _find_approach(journeys: Journeys, gates: tuple[Cell, ...]) -> tuple[Whole, Whole]:
    """Return the gate that each journey was beside last, -1 if none, and after how many moves."""
    steps = np.arange(journeys.cells.shape[1])
    under_way = steps <= journeys.lengths[:, None]
    nearest, last = np.full(len(journeys), -1), np.full(len(journeys), -1)
    for number, cell in enumerate(gates):
        distance = np.abs(journeys.cells - np.array(cell, np.int32)).max(axis=2)
        beside = np.where((distance <= 1) & under_way, steps, -1).max(axis=1)
        later = beside > last  # of several at once, the gate with the most probability
        nearest[later], last[later] = number, beside[later]
    return nearest, last


def _find_direction(journeys: Journeys, kind: Whole, moment: Whole) -> Whole:
    """Return where journeys go: from where they were at the moment, or from the start."""
    from_start = (kind == AWAY) | (kind == FREE)
    everyone = np.arange(len(journeys))
    origin = journeys.cells[everyone, np.where(from_start, 0, moment)]
    east, north = (journeys.cells[:, -1] - origin).T
    eighths = np.round(np.arctan2(north, east) / (np.pi / 4)).astype(np.int64) % 8
    return np.where((east == 0) & (north == 0), NOWHERE, eighths)


def _judge_samples(journeys: Journeys, split: Whole) -> tuple[Whole, Whole]:
    """Return how samples were in the first moves, this many, and in the others."""
    area, field = get_map(journeys.mission), journeys.mission.field
    places = area.origin + area.spacing * journeys.cells[:, 1:].astype(np.float64)
    expected = field.constant + places @ np.array(field.slope)
    surprise = (journeys.rewards - expected) / np.sqrt(field.variance)
    early = np.arange(journeys.rewards.shape[1]) < split[:, None]
    levels = []
    for part in (early & journeys.sampled, ~early & journeys.sampled):
        mean = (surprise * part).sum(axis=1) / np.maximum(1, part.sum(axis=1))
        levels.append((mean > SURPRISE).astype(np.int64) - (mean < -SURPRISE))
    return levels[0], levels[1]


def describe_route(journeys: Journeys, routes: Routes, number: int) -> str:
    """Return in words what happens on a journey.

    Parameters
    ----------
    journeys, routes
        All of a policy's.
    number
        Of the journey.
    """
    tell = _tell_way if routes.kind[number] in (THROUGH, INTO) else _tell_detour
    text = tell(journeys, routes, number) if journeys.lengths[number] else "no move at all"
    return text if journeys.planned[number] else f"{text}; not planned further"


def _tell_way(journeys: Journeys, routes: Routes, number: int) -> str:
    """Return what happens on a journey that takes a risk."""
    moment = int(routes.moment[number])
    name = _name_gate(journeys, routes.gates[int(routes.gate[number])], moment)
    gap = name.startswith("the gap")
    if routes.kind[number] == THROUGH:
        way, back = "through" if gap else "past", ""
    else:
        way = "into" if gap else "close to"
        back = " and back" if moment < journeys.lengths[number] else ""
    before, after = (QUALITIES[int(levels[number])] for levels in (routes.before, routes.after))
    reason = "at once" if moment == 1 else f"after {before} samples"
    return f"{way} {name} at step {moment}{back}, {reason}; {after} ones from there on"


def _tell_detour(journeys: Journeys, routes: Routes, number: int) -> str:
    """Return what happens on a journey that takes none."""
    moment, direction = int(routes.moment[number]), int(routes.direction[number])
    before, after = (QUALITIES[int(levels[number])] for levels in (routes.before, routes.after))
    away = "staying around" if direction == NOWHERE else f"to the {DIRECTIONS[direction]}"
    goes_on = moment < journeys.lengths[number]
    if routes.kind[number] != TURNED:
        what = "hardly any risk" if routes.kind[number] == FREE else "away at once"
        rest = f"; {after} ones follow" if goes_on else ""
        return f"{what}, {away}, after a {before} sample{rest}"
    name = _name_gate(journeys, routes.gates[int(routes.gate[number])], max(1, moment))
    reason = "at once" if moment == 0 else f"after {before} samples"
    if not goes_on:
        return f"up to {name} and no further, {reason}"
    return f"turned away from {name} at step {moment}, {reason}, then {away}"


def _name_gate(journeys: Journeys, cell: Cell, step: int) -> str:
    """Return what a gate is: a gap if two obstacles threaten there, else the side of one."""
    mission, area = journeys.mission, get_map(journeys.mission)
    place, variance = area.locate(cell), mission.vehicle.variance_after(step)
    risks = sorted((obstacle.risk(place, variance) for obstacle in area.obstacles), reverse=True)
    gap = len(risks) > 1 and risks[1] >= COUNTED * risks[0]
    return f"the {'gap' if gap else 'obstacle'} at {cell}"
