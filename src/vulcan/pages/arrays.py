"""A plan as the flat arrays that a page reads.

`vulcan.policy.walk` finds the places of a plan with their probabilities, actions and values. This
module only orders them: places level by level, so that 0 is the start of the plan, and the outcomes
of each place one after the other.

    depth     [N]      number of decisions before
    action    [N]      number of the text of the action
    state     [N]      number of the text of the state
    reach     [N]      probability of reaching it
    fails     [N]      immediate risk
    risk      [N]      risk ahead, this action included
    reward    [N]      reward ahead, discounted from there on
    arrival   [N]      last outcome of the most likely history; NONE at the start
    first     [N + 1]  the outcomes of place k are first[k] to first[k + 1] - 1
    label     [M]      number of the text of the outcome
    chance    [M]      its probability
    pay       [M]      its reward
    child     [M]      a place, END, FAILED, UNPLANNED or OMITTED
    later_risk    [M]  largest risk of what follows an unplanned outcome, if it is bounded, or 0
    later_reward  [M]  least reward of that, discounted from there on

and, with hidden states, the likeliest of each belief:

    belief    [N]      number of the belief
    bars      [B + 1]  the hidden states of belief k are bars[k] to bars[k + 1] - 1
    hidden    [H]      number of the text of a hidden state
    weight    [H]      its probability

Of a randomised policy, the draw between its members is a decision like any other, the first.

`pack_arrays` makes text of them that a browser unpacks. It is a JSON header, which says where each
array lies, and then the arrays, compressed and in base64. Numbers of several bytes are stored plane
by plane, all lowest bytes first and all highest bytes last: the high bytes of neighbours are alike,
which makes the compressed text a third smaller. Reals have single precision; what must be exact is
in the header of the page. Texts are one string of bytes with the end of each, so that a browser
decodes only those that it shows.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.model.belief import Belief
from vulcan.model.interface import Start, stable_text
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.policy.policy import build_plan
from vulcan.policy.walk import DecisionPoints, find_values, name_state, number_labels
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.formatting import clip

OMITTED: Final = -4  # the continuation is planned, but not on this page

MOST_BARS: Final = 12  # hidden states that a page shows of a belief

DRAW: Final = "draw one of the plans"
NOWHERE: Final = (np.nan, np.nan)


@dataclass(frozen=True)
class Places:
    """The places of a plan; see the head of this module for the arrays.

    `texts` are what the numbers of texts stand for, `weights` the γ^t of each depth, `position` has
    shape [N, 2] (where on the map each place is; None without a map), `beliefs` the arrays of
    beliefs, if there are any, and `total` is the number of places of the plan, with those that were
    omitted.
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
    later_risk: NDArray[np.float64]
    later_reward: NDArray[np.float64]
    texts: list[str]
    weights: list[float]
    position: NDArray[np.float64] | None
    beliefs: dict[str, NDArray[Any]]
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
        """Return the expected reward of an outcome: its own and the reward ahead."""
        child, depth = int(self.child[row]), int(self.depth[place])
        later = float(self.reward[child] if child >= 0 else self.later_reward[row])
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
        for start in self.starts():
            here = start
            for outcome in wanted:
                rows = self.outcomes(here) if here >= 0 else range(0)
                ways = (int(self.child[r]) for r in rows if self.text(self.label[r]) == outcome)
                here = next(ways, NONE)
            if here >= 0 and self.text(self.action[here]) == action:
                return here
        return None


def collect_arrays(places: DecisionPoints, reader: ModelReader, most: int | None = None) -> Places:
    """Return the arrays of a plan; at `most` this many places, the likeliest, by default all."""
    rows, values = places.rows, find_values(places, reader)
    kept = _choose(rows, most)
    texts = number_labels(places.policy)
    numbers, which = np.unique(rows["state"][kept], return_inverse=True)
    named = [clip(name_state(places.states[number])) for number in numbers.tolist()]
    states = np.array([texts.setdefault(text, len(texts)) for text in named], np.int64)
    columns = {
        "depth": rows["level"][kept].astype(np.int64),
        "action": values["action"][kept],
        "state": states[which.ravel()],
        "reach": rows["reach"][kept],
        "fails": values["fails"][kept],
        "risk": values["risk_ahead"][kept],
        "reward": values["reward_ahead"][kept],
        **_take_outcomes(places, kept, texts),
    }
    beliefs = _take_beliefs([places.states[k] for k in numbers.tolist()], which.ravel(), texts)
    position = None
    if hasattr(reader.model, "page_map"):  # where on the map each place is
        objects = (places.states[number] for number in rows["state"][kept].tolist())
        locate = reader.model.page_position
        found = [NOWHERE if isinstance(s, Start) else locate(s) for s in objects]
        position = np.array(found, float).reshape(-1, 2)
    levels = int(rows["level"].max(initial=-1)) + 1
    weights = np.cumprod([1.0, *(reader.discount_after(k) for k in range(levels))]).tolist()
    if len(places.policy.members) > 1:
        _put_draw_first(columns, texts)
        weights = [1.0, *weights]
        position = None if position is None else np.concatenate([[NOWHERE], position])
        beliefs |= {name: np.append(NONE, k) for name, k in beliefs.items() if name == "belief"}
    names = list(texts)
    return Places(
        **columns, texts=names, weights=weights, position=position, beliefs=beliefs, total=len(rows)
    )


def _take_beliefs(
    states: list[Any], which: NDArray[np.intp], texts: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of beliefs; `which` has the number of each place's state."""
    known = [state if isinstance(state, Belief) else None for state in states]
    if not any(known):
        return {}
    listed = [list(b.probabilities.items())[:MOST_BARS] if b else [] for b in known]
    pairs = [pair for bars in listed for pair in bars]
    named = [texts.setdefault(clip(stable_text(state)), len(texts)) for state, _ in pairs]
    return {
        "belief": which,
        "bars": np.append(0, np.cumsum([len(bars) for bars in listed])),
        "hidden": np.array(named, np.int64),
        "weight": np.array([float(chance) for _, chance in pairs]),
    }


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


def _take_outcomes(
    points: DecisionPoints, kept: NDArray[np.intp], texts: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """Return the outcomes of some places, and the outcome that leads to each place."""
    rows, edges, members = points.rows, points.edges, points.policy.members
    # The outcomes of all members one after the other, and where those of each place begin.
    labels = [np.array([texts[x] for x in m.labels], np.int64)[m.label] for m in members]
    begin = starts(np.array([len(member.child) for member in members]))
    first, count = np.zeros((2, len(rows)), np.intp)
    for which, member in enumerate(members):
        mine = np.flatnonzero(rows["member"] == which)
        spans = member.first_outcome
        first[mine] = spans[rows["node"][mine]] + begin[which]
        count[mine] = np.diff(spans)[rows["node"][mine]]
    number = np.full(len(rows), OMITTED)
    number[kept] = np.arange(len(kept))
    lines = ranges(first[kept], count[kept])
    outcomes = np.concatenate([build_plan(m, 1.0, claimed=True)[1] for m in members])[lines]
    child = outcomes["child"]
    onward = np.bincount(edges["source"], minlength=len(rows))
    child[child >= 0] = number[edges["target"][ranges(starts(onward)[kept], onward[kept])]]
    begins = np.append(0, np.cumsum(count[kept]))
    arrival = np.full(len(kept), NONE)
    later = kept[rows["before"][kept] != NONE]
    before, outcome = rows["before"][later], rows["outcome"][later]
    line = outcome + begin[rows["member"][later]] - first[before]
    arrival[rows["before"][kept] != NONE] = begins[number[before]] + line
    return {
        "label": np.concatenate(labels)[lines],
        "chance": outcomes["probability"],
        "pay": outcomes["reward"],
        "child": child,
        **{name: outcomes[name] for name in LATER},
        "first": begins,
        "arrival": arrival,
    }


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
        **dict.fromkeys(LATER, np.zeros(count)),
    }
    for name, value in draw.items():
        columns[name] = np.append(value, columns[name])


LATER: Final = ("later_risk", "later_reward")
REALS: Final = ("reach", "fails", "risk", "reward", "chance", "pay", *LATER)
WHOLES: Final = ("depth", "action", "state", "arrival", "first", "label", "child")
STEADY: Final = ("arrival", "first", "child")  # arrays that grow by little: steps are stored


def pack_arrays(places: Places) -> str:
    """Return all arrays of a plan as text."""
    texts = [text.encode() for text in places.texts]
    arrays: dict[str, NDArray[Any]] = {
        **{name: getattr(places, name).astype("<f4") for name in REALS},
        **{name: getattr(places, name).astype("<i4") for name in WHOLES},
        **{k: a.astype("<f4" if k == "weight" else "<i4") for k, a in places.beliefs.items()},
        "ends": np.cumsum([len(text) for text in texts], dtype="<i4"),
        "letters": np.frombuffer(b"".join(texts), "u1"),
    }
    for name in STEADY:
        arrays[name] = np.diff(arrays[name], prepend=np.zeros(1, "<i4")).astype("<i4")
    if places.position is not None:
        arrays["x"], arrays["y"] = places.position.T.astype("<f4")
    sections: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, array in arrays.items():
        kind = {"f": "real", "i": "whole", "u": "byte"}[array.dtype.kind]
        steps = name in STEADY
        sections.append({"name": name, "kind": kind, "count": len(array), "steps": steps})
        width = array.dtype.itemsize
        planes = np.ascontiguousarray(array).view("u1").reshape(len(array), width).T
        parts.append(planes.tobytes())
    header = json.dumps(sections).encode()
    content = len(header).to_bytes(4, "little") + header + b"".join(parts)
    return base64.b64encode(zlib.compress(content, 9)).decode()
