"""The most telling outcomes of a policy: a few journeys that stand for all of them.

They are chosen by one rule, on any map and for any policy:

1. Journeys with the same kind of route (`routes`: through a gate, turned back at it, away at once),
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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.drawing.journeys import Journey, Journeys, add_up
from vulcan.domains.exploration.drawing.routes import NOWHERE, Routes, describe_route, find_routes
from vulcan.errors import OptionError

__all__ = ["TellingOutcome", "choose_outcomes", "describe_outcome"]

Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]

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
