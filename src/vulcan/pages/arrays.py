"""A plan as the flat arrays that a page reads.

Which places a plan has, how likely one comes there, what is done and what lies ahead was found by
`vulcan.policies.places`. Here it is only put in order: places level by level, so that 0 is where
the plan begins, and the outcomes of each one after the other.

    depth     [N]      how many decisions came before
    action    [N]      number of the text of what is done
    state     [N]      number of the text of the state
    reach     [N]      probability of being there
    fails     [N]      immediate risk
    risk      [N]      risk ahead, this action included
    reward    [N]      reward ahead, discounted from there on
    arrival   [N]      the outcome by which the likeliest history comes there; NONE at the start
    first     [N + 1]  the outcomes of place k are first[k] to first[k + 1] - 1
    label     [M]      number of the text of the outcome
    chance    [M]      its probability
    pay       [M]      its reward
    child     [M]      a place, END, FAILED, UNPLANNED or OMITTED

Of a randomised policy, the draw between its members is a decision like any other, the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.pages.maps import Mapped
from vulcan.policies.places import Places, find_values, number_labels
from vulcan.policies.table import name_state
from vulcan.runtime.ranges import ranges, starts
from vulcan.sentinels import NONE

__all__ = ["OMITTED", "PlanArrays", "collect_arrays"]

OMITTED: Final = -4
"""What follows is planned, but not on this page."""

LONGEST_TEXT: Final = 160
"""Characters of a state's text."""

DRAW: Final = "draw one of the plans"
NOWHERE: Final = (np.nan, np.nan)


@dataclass(frozen=True)
class PlanArrays:
    """The places of a plan; see the head of this module for the arrays.

    Attributes
    ----------
    texts
        What the numbers of texts stand for.
    weights
        γ^t of each depth.
    position
        Shape [N, 2]: where on the map each place is; None without a map.
    total
        How many places the plan has, with those that were omitted.
    """

    depth: NDArray[np.int64]
    action: NDArray[np.int64]
    state: NDArray[np.int64]
    reach: NDArray[np.float64]
    fails: NDArray[np.float64]
    risk: NDArray[np.float64]
    reward: NDArray[np.float64]
    arrival: NDArray[np.int64]
    first: NDArray[np.int64]
    label: NDArray[np.int64]
    chance: NDArray[np.float64]
    pay: NDArray[np.float64]
    child: NDArray[np.int64]
    texts: list[str]
    weights: list[float]
    position: NDArray[np.float64] | None
    total: int

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self.action)

    def text(self, number: Any) -> str:
        """Return the text of a number."""
        return self.texts[int(number)]

    def outcomes(self, place: int) -> range:
        """Return the numbers of the outcomes of a place."""
        return range(int(self.first[place]), int(self.first[place + 1]))

    def expected(self, row: int, place: int) -> float:
        """Return what is expected of an outcome of a place: what it pays, and what follows."""
        child, depth = int(self.child[row]), int(self.depth[place])
        later = float(self.reward[child]) if child >= 0 else 0.0
        discount = self.weights[depth + 1] / self.weights[depth] if self.weights[depth] else 0.0
        return float(self.pay[row]) + discount * later

    def starts(self) -> list[int]:
        """Return where the plan begins: after the draw, if there is one, the likeliest first."""
        if self.text(self.action[0]) != DRAW:
            return [0]
        rows = sorted(self.outcomes(0), key=lambda row: -self.chance[row])
        return [int(self.child[row]) for row in rows]

    def find(self, outcomes: Iterable[str], action: str) -> int | None:
        """Return the place after some outcomes where an action is taken; None if there is none."""
        wanted = tuple(outcomes)
        ends = (self._follow(start, wanted) for start in self.starts())
        return next((k for k in ends if k >= 0 and self.text(self.action[k]) == action), None)

    def _follow(self, here: int, outcomes: Iterable[str]) -> int:
        for outcome in outcomes:
            rows = self.outcomes(here) if here >= 0 else range(0)
            ways = (int(self.child[r]) for r in rows if self.text(self.label[r]) == outcome)
            here = next(ways, NONE)
        return here


def collect_arrays(places: Places, reader: ModelReader, most: int | None = None) -> PlanArrays:
    """Return the arrays of a plan.

    Parameters
    ----------
    places
        The places of the plan, with their states.
    reader
        The model, which may have a map.
    most
        How many places at the most, those that are reached most likely; by default all.
    """
    rows, values = places.rows, find_values(places, reader)
    kept = _choose(rows, most)
    outcomes = _Outcomes(places)
    texts = number_labels(places.policy)
    columns = {
        "depth": rows["level"][kept].astype(np.int64),
        "action": values["action"][kept],
        "state": _number_states(places, kept, texts),
        "reach": rows["reach"][kept],
        "fails": values["fails"][kept],
        "risk": values["risk_ahead"][kept],
        "reward": values["reward_ahead"][kept],
        **outcomes.take(kept),
    }
    position = _find_positions(places, kept, reader.model)
    levels = int(rows["level"].max(initial=-1)) + 1
    weights = np.cumprod([1.0, *(reader.discount_after(k) for k in range(levels))]).tolist()
    if len(places.policy.members) > 1:
        _put_draw_first(columns, texts)
        weights = [1.0, *weights]
        position = None if position is None else np.concatenate([[NOWHERE], position])
    used = _drop_unused(columns, list(texts))
    return PlanArrays(**columns, texts=used, weights=weights, position=position, total=len(rows))


def _choose(rows: NDArray[Any], most: int | None) -> NDArray[np.intp]:
    """Return the places to keep, level by level: the likeliest, each with the way there."""
    order = np.argsort(rows["level"], kind="stable")
    if most is None or len(order) <= most:
        return order
    likeliest = np.argsort(-rows["reach"][order], kind="stable")[:most]
    before = rows["before"].tolist()
    kept = {NONE: True}
    for place in order[np.sort(likeliest)].tolist():
        if before[place] in kept:
            kept[place] = True
    return np.array([place for place in kept if place != NONE], np.intp)


class _Outcomes:
    """The outcomes of all members one after the other, and which of them each place has."""

    def __init__(self, places: Places) -> None:
        self._places, members = places, places.policy.members
        numbers = number_labels(places.policy)
        labels = [np.array([numbers[x] for x in m.labels], np.int64)[m.label] for m in members]
        self.label = np.concatenate(labels)
        self.chance = np.concatenate([member.probability for member in members])
        self.pay = np.concatenate([member.reward for member in members])
        self.child = np.concatenate([member.child for member in members])
        # Where the outcomes of each member and of each place begin, and how many a place has.
        self._begin = starts(np.array([len(member.child) for member in members]))
        node = places.rows["node"]
        self._first, self._count = np.zeros((2, len(node)), np.intp)
        for number, member in enumerate(members):
            mine = np.flatnonzero(places.rows["member"] == number)
            first = member.first_outcome
            self._first[mine] = first[node[mine]] + self._begin[number]
            self._count[mine] = first[node[mine] + 1] - first[node[mine]]

    def take(self, kept: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """Return the outcomes of some places, and by which outcome one comes to each."""
        rows, ways = self._places.rows, self._places.ways
        number = np.full(len(rows), OMITTED)
        number[kept] = np.arange(len(kept))
        lines = ranges(self._first[kept], self._count[kept])
        child = self.child[lines].astype(np.int64)
        onward = np.bincount(ways["source"], minlength=len(rows))
        child[child >= 0] = number[ways["target"][ranges(starts(onward)[kept], onward[kept])]]
        first = np.append(0, np.cumsum(self._count[kept]))
        arrival = np.full(len(kept), NONE)
        after = rows["before"][kept] != NONE
        before, outcome = rows["before"][kept[after]], rows["outcome"][kept[after]]
        line = outcome + self._begin[rows["member"][kept[after]]] - self._first[before]
        arrival[after] = first[number[before]] + line
        found = {name: getattr(self, name)[lines] for name in ("label", "chance", "pay")}
        return {**found, "child": child, "first": first, "arrival": arrival}


def _number_states(
    places: Places, kept: NDArray[np.intp], texts: dict[str, int]
) -> NDArray[np.int64]:
    """Return the number of the text of each place's state; new texts are added."""
    numbers, which = np.unique(places.rows["state"][kept], return_inverse=True)
    named = [
        texts.setdefault(_shorten(name_state(places.states[number])), len(texts))
        for number in numbers.tolist()
    ]
    return np.array(named, np.int64)[which.ravel()]


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _put_draw_first(columns: dict[str, NDArray[Any]], texts: dict[str, int]) -> None:
    """Put the draw between the members of a randomised policy before all else."""
    begins = np.flatnonzero(columns["depth"] == 0)
    reach, count = columns["reach"][begins], len(begins)
    named = [texts.setdefault(f"plan {k}", len(texts)) for k in range(1, count + 1)]
    columns["depth"] += 1
    for name in ("child", "arrival"):  # numbers of places, and of outcomes
        columns[name][columns[name] >= 0] += 1 if name == "child" else count
    columns["arrival"][begins] = np.arange(count)
    columns["first"] += count
    draw: dict[str, Any] = {
        "depth": 0,
        "action": texts.setdefault(DRAW, len(texts)),
        "state": texts.setdefault("start", len(texts)),
        "reach": 1.0,
        "fails": 0.0,
        "risk": reach @ columns["risk"][begins],
        "reward": reach @ columns["reward"][begins],
        "arrival": NONE,
        "first": 0,
        "label": named,
        "chance": reach,
        "pay": np.zeros(count),
        "child": begins + 1,
    }
    for name, value in draw.items():
        columns[name] = np.append(value, columns[name])


def _drop_unused(columns: dict[str, NDArray[Any]], texts: list[str]) -> list[str]:
    """Return the texts that are used, numbered anew in the order in which they are met."""
    names = ("action", "state", "label")
    used, place = np.unique(np.concatenate([columns[k] for k in names]), return_index=True)
    used = used[np.argsort(place)]
    numbers = np.zeros(len(texts), np.int64)
    numbers[used] = np.arange(len(used))
    for name in names:
        columns[name] = numbers[columns[name]]
    return [texts[number] for number in used.tolist()]


def _find_positions(
    places: Places, kept: NDArray[np.intp], model: Any
) -> NDArray[np.float64] | None:
    """Return where on the map each place is; None if the model has no map."""
    if not isinstance(model, Mapped):
        return None
    states = (places.states[number] for number in places.rows["state"][kept].tolist())
    found = [NOWHERE if isinstance(s, Start) else model.page_position(s) for s in states]
    return np.array(found, float).reshape(-1, 2)
