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
from vulcan.sentinels import NONE

__all__ = ["Places", "find_places"]

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


class Places(NamedTuple):
    """The places of a policy, member by member, level by level.

    Attributes
    ----------
    policy
        The policy.
    rows
        An array of `PLACE`.
    states
        The model's states, by the numbers in the rows; empty without a model.
    """

    policy: AnyPolicy
    rows: NDArray[Any]
    states: list[Any]

    def list_steps(self, place: int) -> list[int]:
        """Return the places of the likeliest history that leads to a place, and that itself."""
        found = [place]
        while (before := int(self.rows["before"][found[-1]])) != NONE:
            found.append(before)
        return found[::-1]

    def trace(self, place: int) -> list[tuple[str, str]]:
        """Return action and outcome of each step of that history."""
        member = self.policy.members[int(self.rows["member"][place])]
        steps = self.rows[self.list_steps(place)]
        actions, outcomes = member.action[steps["node"][:-1]], member.label[steps["outcome"][1:]]
        labels = member.labels
        return [(labels[a], labels[o]) for a, o in zip(actions, outcomes, strict=True)]


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
    found: list[NDArray[Any]] = [np.zeros(0, PLACE)]
    for number in range(len(policy.members)):
        found += _follow(policy, number, sum(map(len, found)), states)
    return Places(policy, np.concatenate(found), [] if states is None else states.objects)


def _follow(
    policy: AnyPolicy, number: int, begin: int, states: _States | None
) -> Iterator[NDArray[Any]]:
    """Yield the places of a member, level by level; `begin` is the number of the first."""
    member = policy.members[number]
    here = np.zeros(min(1, len(member)), PLACE)
    here["member"], here["before"], here["outcome"] = number, NONE, NONE
    here["reach"] = here["likeliest"] = policy.weights[number]
    here["state"] = NONE if states is None else 0
    while len(here):
        yield here
        first = member.first_outcome[here["node"]]
        counts = member.first_outcome[here["node"] + 1] - first
        rows, source = ranges(first, counts), np.repeat(np.arange(len(here)), counts)
        after = np.full(len(rows), NONE) if states is None else states.follow(here)
        goes_on = member.child[rows] >= 0
        there = _arrive(member, here, rows[goes_on], source[goes_on], after[goes_on])
        there["before"] += begin
        begin += len(here)
        here = there


def _arrive(
    member: Policy,
    here: NDArray[Any],
    rows: NDArray[Any],
    source: NDArray[Any],
    state: NDArray[Any],
) -> NDArray[Any]:
    """Return the places that some outcomes of a level lead to."""
    child, chance = member.child[rows], member.probability[rows]
    keys = child.astype(np.int64) * (int(state.max(initial=NONE)) + 2) + state
    _, group = np.unique(keys, return_inverse=True)
    size = int(group.max(initial=-1)) + 1
    way = here["likeliest"][source] * chance
    order = np.lexsort((-way, group))  # the likeliest way to each place first
    best = order[np.searchsorted(group[order], np.arange(size))]
    there = np.zeros(size, PLACE)
    there["member"], there["level"] = here["member"][:1], here["level"][:1] + 1
    there["node"], there["state"] = child[best], state[best]
    there["reach"] = np.bincount(group, here["reach"][source] * chance, size)
    there["likeliest"], there["before"], there["outcome"] = way[best], source[best], rows[best]
    return there


class _States:
    """Follows states along a policy; each has a number."""

    def __init__(self, policy: AnyPolicy, reader: ModelReader) -> None:
        self.objects: list[Any] = [reader.root]
        self._numbers: dict[Any, int] = {reader.root: 0}
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
        number = self._numbers.setdefault(state, len(self.objects))
        if number == len(self.objects):
            self.objects.append(state)
        return number
