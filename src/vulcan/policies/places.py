"""Where the histories of a policy come to, and how probable that is.

A *place* is a member of the policy, a decision of that member, how many decisions came before it
(its level) and, where a model says it, the state. With p the probabilities of the outcomes that
lead there,

    reach = Σ p · reach(before),    likeliest = max p · likeliest(before).

Both come from the policy's own arrays, a level at a time: 87,000 decisions take 0.1 s.
What lies ahead of a decision is in `vulcan.policies.prospects`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import FAILED, NONE

__all__ = ["Places", "find_places", "find_values", "number_labels"]

PLACE: Final = np.dtype(
    [
        ("member", "i4"),
        ("node", "i4"),
        ("level", "i4"),
        ("state", "i4"),  # a number in `Places.states`; NONE without a model
        ("reach", "f8"),
        ("likeliest", "f8"),  # probability of the likeliest history that leads there
        ("before", "i4"),  # the last place of that history; NONE at the start
        ("outcome", "i4"),  # and its last outcome, as a row of the member's arrays
    ]
)


WAY: Final = np.dtype([("source", "i4"), ("outcome", "i4"), ("target", "i4")])
"""An outcome, as a row of the member's arrays, that leads from one place to another."""


class Places(NamedTuple):
    """The places of a policy, member by member, level by level.

    Attributes
    ----------
    policy
        The policy.
    rows
        An array of `PLACE`.
    ways
        An array of `WAY`, in the order of their sources.
    states
        The model's states, by the numbers in the rows; empty without a model.
    """

    policy: AnyPolicy
    rows: NDArray[Any]
    ways: NDArray[Any]
    states: list[Any]

    def list_steps(self, place: int) -> list[int]:
        """Return the places of the likeliest history that leads to a place, and that itself."""
        found = [place]
        while (before := int(self.rows["before"][found[-1]])) != NONE:
            found.append(before)
        return found[::-1]

    def tell_arrival(self, place: int) -> tuple[str, str]:
        """Return the last action and outcome of that history."""
        row = self.rows[place]
        member = self.policy.members[row["member"]]
        action = member.action[self.rows["node"][row["before"]]]
        return member.labels[action], member.labels[member.label[row["outcome"]]]


def find_places(policy: AnyPolicy, reader: ModelReader | None = None) -> Places:
    """Return all places that the histories of a policy come to.

    Parameters
    ----------
    policy
        Any policy, deterministic or randomised.
    reader
        Its model; with one, places have states, and the model's answers are compared with those
        that the policy was made with.

    Raises
    ------
    MismatchError
        If the model is another, or no longer answers the same.
    """
    states = None if reader is None else _States(policy, reader)
    rows, ways = [np.zeros(0, PLACE)], [np.zeros(0, WAY)]
    for number in range(len(policy.members)):
        for here, onward in _follow(policy, number, sum(map(len, rows)), states):
            rows.append(here)
            ways.append(onward)
    known = [] if states is None else states.objects
    return Places(policy, np.concatenate(rows), np.concatenate(ways), known)


def _follow(
    policy: AnyPolicy, number: int, begin: int, states: _States | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the places of a member and the ways from them, level by level.

    `begin` is the number of the first place.
    """
    member = policy.members[number]
    here = np.zeros(min(1, len(member)), PLACE)
    here["member"], here["before"], here["outcome"] = number, NONE, NONE
    here["reach"] = here["likeliest"] = policy.weights[number]
    here["state"] = NONE if states is None else 0
    while len(here):
        first = member.first_outcome[here["node"]]
        counts = member.first_outcome[here["node"] + 1] - first
        rows, source = ranges(first, counts), np.repeat(np.arange(len(here)), counts)
        after = np.full(len(rows), NONE) if states is None else states.follow(here)
        goes_on = member.child[rows] >= 0
        ways = np.zeros(int(goes_on.sum()), WAY)
        ways["source"], ways["outcome"] = source[goes_on], rows[goes_on]
        there = _arrive(member, here, ways, after[goes_on])
        there["before"] += begin
        ways["source"] += begin
        ways["target"] += begin + len(here)
        yield here, ways
        begin += len(here)
        here = there


def _arrive(
    member: Policy, here: NDArray[Any], ways: NDArray[Any], state: NDArray[Any]
) -> NDArray[Any]:
    """Return the places that some ways lead to; sources and targets count within their levels."""
    source, rows = ways["source"], ways["outcome"]
    child, chance = member.child[rows], member.probability[rows]
    keys = child.astype(np.int64) * (int(state.max(initial=NONE)) + 2) + state
    _, group = np.unique(keys, return_inverse=True)
    ways["target"] = group
    size = int(group.max(initial=-1)) + 1
    likely = here["likeliest"][source] * chance
    order = np.lexsort((-likely, group))  # the likeliest way to each place first
    best = order[np.searchsorted(group[order], np.arange(size))]
    there = np.zeros(size, PLACE)
    there["member"], there["level"] = here["member"][:1], here["level"][:1] + 1
    there["node"], there["state"] = child[best], state[best]
    there["reach"] = np.bincount(group, here["reach"][source] * chance, size)
    there["likeliest"], there["before"], there["outcome"] = likely[best], source[best], rows[best]
    return there


class _States:
    """Follows states along a policy; each has a number."""

    def __init__(self, policy: AnyPolicy, reader: ModelReader) -> None:
        self.objects: list[Any] = [reader.root]
        self._numbers: dict[Any, int] = {reader.root: 0}
        self._merges = reader.merges  # if not, every state is new
        self._walk = PolicyWalk(policy, reader)
        self._walk.begin()

    def follow(self, here: NDArray[Any]) -> NDArray[np.int64]:
        """Return the state after each outcome of some places of one level, NONE after failures."""
        numbers: list[int] = []
        places = (here[name].tolist() for name in ("member", "node", "state", "level"))
        for member, node, state, level in zip(*places, strict=True):
            place = Place(member, node, self.objects[state])
            for outcome, child in self._walk.follow(place, level):
                numbers.append(self._number(outcome.state) if child >= 0 else NONE)
        return np.array(numbers, np.int64)

    def _number(self, state: Any) -> int:
        count = len(self.objects)
        number = self._numbers.setdefault(state, count) if self._merges else count
        if number == count:
            self.objects.append(state)
        return number


def find_values(places: Places, reader: ModelReader | None) -> dict[str, NDArray[Any]]:
    """Return what is done at each place, and what lies ahead of it.

    Parameters
    ----------
    places
        The places.
    reader
        The model; without one, the reward ahead of a first decision is nan where only the model
        says whether that is discounted.

    Returns
    -------
    dict
        `action`, a number of `number_labels`; `fails`, how likely it is to fail at once; and
        `risk_ahead` and `reward_ahead`, from there on, this action included.
    """
    policy, rows = places.policy, places.rows
    numbers, first_discount = number_labels(policy), _find_first_discount(places, reader)
    values = {name: np.zeros(len(rows)) for name in ("fails", "risk_ahead", "reward_ahead")}
    action = np.zeros(len(rows), np.int64)
    for number, member in enumerate(policy.members):
        mine = np.flatnonzero(rows["member"] == number)
        node = rows["node"][mine]
        ahead = member.prospects(first_discount)[node]
        action[mine] = np.array([numbers[label] for label in member.labels])[member.action[node]]
        values["fails"][mine] = _find_failing(member)[node]
        values["risk_ahead"][mine] = ahead["risk"]
        values["reward_ahead"][mine] = ahead["mean"]
    return {"action": action, **values}


def _find_failing(member: Policy) -> NDArray[np.float64]:
    """Return how likely each decision is to fail at once."""
    owner = np.repeat(np.arange(len(member)), np.diff(member.first_outcome))
    fails = member.probability * (member.child == FAILED)
    return np.bincount(owner, fails, len(member)).astype(np.float64)


def _find_first_discount(places: Places, reader: ModelReader | None) -> float:
    """Return the discount after the first decision; nan if only the model would say it."""
    about, levels = places.policy.about, places.rows["level"]
    if reader is not None:
        return float(reader.discount_after(0))
    # A history that has more decisions than steps begins with an initial action.
    return 1.0 if levels.max(initial=0) == about.horizon else about.first_discount


def number_labels(policy: AnyPolicy) -> dict[str, int]:
    """Return a number for each label that any member has."""
    labels = dict.fromkeys(label for member in policy.members for label in member.labels)
    return {label: number for number, label in enumerate(labels)}
