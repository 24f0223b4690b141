"""All places of a plan as flat arrays, in the form in which a page reads them.

A place is a decision of a policy in a state (`vulcan.policies.walk`); what is done there, how
likely one comes there and what lies ahead was found by `vulcan.certificates.steps`. Here it is only
put in order: places level by level, so that 0 is where the plan begins, and the outcomes of each
one after the other.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.steps import Step, StepLevel
from vulcan.model.interface import Start
from vulcan.model.text import stable_text
from vulcan.pages.maps import Mapped
from vulcan.policies.policy import Policy
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place
from vulcan.sentinels import NONE

__all__ = ["OMITTED", "Places", "collect_places"]

OMITTED: Final = -4
"""What follows is planned, but not on this page."""

LONGEST_TEXT: Final = 160
"""Characters of a state's text."""

DRAW: Final = "draw one of the plans"
NO_STATE: Final = "no state yet"
"""Of the draw between members, and of initial actions."""


@dataclass(frozen=True)
class Places:
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

    def find(self, outcomes: Iterable[str], action: str) -> int | None:
        """Return the place after some outcomes where an action is taken; None if there is none."""
        wanted = tuple(outcomes)
        drawn = self.text(self.action[0]) == DRAW
        starts = [int(self.child[row]) for row in self.outcomes(0)] if drawn else [0]
        ends = (self._follow(start, wanted) for start in starts)
        return next((k for k in ends if k >= 0 and self.text(self.action[k]) == action), None)

    def _follow(self, here: int, outcomes: Iterable[str]) -> int:
        for outcome in outcomes:
            rows = self.outcomes(here) if here >= 0 else range(0)
            ways = (int(self.child[r]) for r in rows if self.text(self.label[r]) == outcome)
            here = next(ways, NONE)
        return here


class _Texts:
    """Numbers texts in the order in which they are met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def collect_places(
    policy: AnyPolicy, levels: Sequence[StepLevel], model: Any, most: int | None = None
) -> Places:
    """Return the places of a plan.

    Parameters
    ----------
    policy
        The plan.
    levels
        What it does at all places.
    model
        The model, which may have a map.
    most
        How many places at the most, those that are reached most likely; by default all.
    """
    steps = [step for level in levels for step in level.steps]
    kept = _choose(steps, most)
    drawn = len(policy.members) > 1
    numbers = {step.place: number for number, step in enumerate(kept, drawn)}
    columns = _Columns(policy, kept, numbers)
    if drawn:
        columns.add_draw(levels[0].steps)
    for step in kept:
        columns.add(step)
    weights = [level.weight for level in levels]
    weights.append(weights[-1] * levels[-1].discount if levels else 1.0)
    return Places(
        **columns.build(),
        texts=list(columns.texts.numbers),
        weights=[1.0, *weights] if drawn else weights,
        position=_find_positions(kept, model, drawn),
        total=len(steps),
    )


def _choose(steps: Sequence[Step], most: int | None) -> Sequence[Step]:
    """Return the steps that are reached most likely, each with the way there."""
    if most is None or len(steps) <= most:
        return steps
    likeliest = np.argsort([-step.reach for step in steps], kind="stable")[:most]
    kept: dict[Place, Step] = {}
    for step in (steps[number] for number in np.sort(likeliest)):
        if step.before is None or step.before.place in kept:
            kept[step.place] = step
    return list(kept.values())


class _Columns:
    """The arrays while they grow."""

    OF_PLACES: Final = ("depth", "action", "state", "reach", "fails", "risk", "reward")
    OF_OUTCOMES: Final = ("label", "chance", "pay", "child")

    def __init__(self, policy: AnyPolicy, steps: Sequence[Step], numbers: dict[Place, int]) -> None:
        self.texts = _Texts()
        self._members = [_Rows(member) for member in policy.members]
        self._steps = {step.place: step for step in steps}
        self._numbers, self._drawn = numbers, int(len(policy.members) > 1)
        self._places: list[tuple[Any, ...]] = []
        self._outcomes: list[tuple[Any, ...]] = []
        self._first = [0]
        self._arrivals = {0: NONE}

    def add_draw(self, starts: Sequence[Step]) -> None:
        """Add the draw between the members of a randomised policy."""
        text = self.texts
        rewards = sum(step.reach * step.reward_ahead for step in starts)
        risks = sum(step.reach * step.risk_ahead for step in starts)
        self._places.append((0, text(DRAW), text(NO_STATE), 1.0, 0.0, risks, rewards))
        for step in starts:
            number = self._numbers[step.place]
            self._arrivals[number] = len(self._outcomes)
            name = f"plan {step.place.member + 1}"
            self._outcomes.append((text(name), step.reach, 0.0, number))
        self._first.append(len(self._outcomes))

    def add(self, step: Step) -> None:
        """Add the next place with its outcomes."""
        text, nodes = self.texts, self._members[step.place.member]
        self._places.append(
            (
                step.level + self._drawn,
                text(step.action),
                text(_describe_state(step.place.state)),
                step.reach,
                step.fails,
                step.risk_ahead,
                step.reward_ahead,
            )
        )
        targets = (target for _, target in step.ways)
        for row in range(nodes.first[step.place.node], nodes.first[step.place.node + 1]):
            child, label = nodes.child[row], nodes.label[row]
            if child >= 0:
                target = next(targets)
                child = self._numbers.get(target, OMITTED)
                after = self._steps.get(target)
                if after is not None and after.before is step and after.outcome == label:
                    self._arrivals[child] = len(self._outcomes)
            self._outcomes.append((text(label), nodes.chance[row], nodes.pay[row], child))
        self._first.append(len(self._outcomes))

    def build(self) -> dict[str, NDArray[Any]]:
        """Return the arrays."""
        places = list(zip(*self._places, strict=True)) or [()] * len(self.OF_PLACES)
        outcomes = list(zip(*self._outcomes, strict=True)) or [()] * len(self.OF_OUTCOMES)
        arrays = {
            name: np.array(values)
            for names, columns in ((self.OF_PLACES, places), (self.OF_OUTCOMES, outcomes))
            for name, values in zip(names, columns, strict=True)
        }
        arrays["first"] = np.array(self._first)
        arrays["arrival"] = np.array([self._arrivals[k] for k in range(len(self._places))])
        return arrays


class _Rows:
    """The outcomes of a policy as plain lists: numbers are taken from them one by one."""

    def __init__(self, policy: Policy) -> None:
        self.first = policy.first_outcome.tolist()
        self.label = [policy.labels[number] for number in policy.label.tolist()]
        self.chance, self.pay = policy.probability.tolist(), policy.reward.tolist()
        self.child = policy.child.tolist()


def _describe_state(state: Any) -> str:
    if isinstance(state, Start):
        return NO_STATE
    text = stable_text(state)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _find_positions(steps: Sequence[Step], model: Any, drawn: bool) -> NDArray[np.float64] | None:
    """Return where on the map each place is; None if the model has no map."""
    if not isinstance(model, Mapped):
        return None
    nowhere = (np.nan, np.nan)
    found = [
        nowhere if isinstance(step.place.state, Start) else model.page_position(step.place.state)
        for step in steps
    ]
    return np.array([nowhere, *found] if drawn else found, float).reshape(-1, 2)
