"""What a hidden model answers along a policy, for its Markov chain on (decision, hidden state).

A policy for a model with hidden states (`vulcan.model.belief`) decides by what it has observed: a
decision node stands for all histories of observations that lead there. A place of its chain
(`vulcan.certificate.walk`) is a node, a hidden state, and the actions that the last observation
leaves. From it transitions and observations of the hidden model lead to the next level,

    P(s' | s, a) · P(o | s', a)    to (the node after o, s'),

and failing ends the mission. No belief is computed: nothing here is Bayes' rule, and reward and
risk are exact however beliefs were merged in a search. The margin scales the failure probabilities
of hidden states, those that a model states.

What the agent can tell apart of a place is its *sight*: the node and the actions. The risk ahead of
a history of observations is a mean over the places of its sight (`vulcan.certificate.sums`).

A policy records the probability and the mean reward of each observation at a node. They are means
over the hidden states there, and compared with the chain's: a model that differs from the policy's
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from vulcan.constraints import Constraint
from vulcan.model.belief import FAILS, HiddenReader, Menu
from vulcan.model.interface import stable_text
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, NONE, Number
from vulcan.parameters import shorten
from vulcan.policy.policy import AnyPolicy, Policy
from vulcan.policy.walk import MOST_LABELS, Evaluations, Followed
from vulcan.runtime.arrays import ranges, starts

DRAW: Final = "draw the hidden state"
MOST_UNFOLDED: Final = 300_000  # transitions of the largest chain that a file has
AGREES: Final = 1e-6  # allowed difference of a node's mean from what the policy recorded


class Sights(NamedTuple):
    """What the agent can tell apart of the places of a chain."""

    place: NDArray[np.intp]  # of each place: equal numbers look alike
    node: NDArray[np.int64]  # and its node, counted over all members
    seen: NDArray[np.int64]  # of each transition: the number of its label, NONE for failing
    charged: list[str]  # the quantities that the chain has charges for


class HiddenEvaluations(Evaluations):
    """The hidden model's answers for the (hidden state, action) pairs of a policy.

    A state is a hidden state, by its number, and the actions that the last observation leaves.
    """

    def __init__(
        self, policy: AnyPolicy, reader: ModelReader, constraints: Sequence[Constraint] = ()
    ) -> None:
        super().__init__(policy, reader, constraints)
        self.hidden = HiddenReader(reader.model.model)  # every answer is evaluated anew
        self.states: list[tuple[int, Menu]] = []
        self._places: dict[tuple[int, int], int] = {}
        self._menus: dict[int, int] = {}
        self._nodes: list[NDArray[Any]] = []
        self._sights: list[NDArray[Any]] = []
        self._columns: list[NDArray[Any]] = []
        self._weights, members = policy.weights, policy.members
        self._begin = starts(np.array([len(member) for member in members]))
        self._size = max(1, sum(map(len, members)))
        labels = []
        for begin, member in zip(self._begin.tolist(), members, strict=True):
            owner = begin + np.repeat(np.arange(len(member)), np.diff(member.first_outcome))
            texts = np.array([*map(self._labels.__getitem__, member.labels), NONE])
            seen = texts[np.where(member.child == FAILED, -1, member.label)]
            labels.append(owner + self._size * (seen + 1))
        # Several kinds of failure at a node count as one.
        self._keys, first, self._group = np.unique(
            np.concatenate(labels), return_index=True, return_inverse=True
        )
        self._child = np.concatenate([member.child for member in members])[first]

    def start(self) -> list[int]:
        """Return the states before the first decision."""
        menu = self.hidden.menu(None)
        self._shares = self.hidden.start()
        return [self._place(state, menu) for state, _ in self._shares]

    def follow(
        self, number: int, nodes: NDArray[Any], states: NDArray[Any], level: int
    ) -> Followed:
        """Return what follows some states at nodes of a member."""
        member, own = self._members[number], self._begin[number] + nodes
        rows = self._find(states, self._named_by[number][member.action[nodes]], level)
        first = np.array(self._first)
        counts = (first[1:] - first[:-1])[rows]
        flat, source = ranges(first[rows], counts), np.repeat(np.arange(len(nodes)), counts)
        keys = own[source] + self._size * (np.array(self._label)[flat] + 1)
        column = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        for strange in np.flatnonzero(self._keys[column] != keys)[:1].tolist():
            label, place = self._label[flat[strange]], source[strange]
            names = list(self._labels)
            what = "fail" if label == NONE else f"lead to the observation {names[label]!r}"
            raise self.check.refuse(
                f"step {level + 1}: action {member.labels[member.action[nodes[place]]]!r} may "
                f"{what} in hidden state {self._name(states[place])}, which the policy has not "
                "recorded"
            )
        child, state = self._child[column], np.array(self._arrival)[flat]
        if level + 1 >= self._reader.levels:
            if np.any(child >= 0):
                raise self.check.refuse("the policy acts beyond the horizon")
        elif any(self.states[k][1] for k in set(state[child == END].tolist())):
            detail = f"after {level + 1} steps the policy ends, where the model has actions"
            raise self.check.refuse(detail)
        menus = [self._menus.setdefault(id(self.states[k][1]), len(self._menus)) for k in states]
        self._nodes.append(own)
        self._sights.append(own + self._size * (level + self._reader.levels * np.array(menus)))
        self._columns.append(column)
        return Followed(rows, source, child, state)

    def _evaluate(self, keys: Sequence[int], level: int) -> None:
        """Evaluate pairs of a state and a label, and add their rows."""
        for key in keys:
            place, label = divmod(key, MOST_LABELS)
            state, menu = self.states[place]
            taken = self._names[label]
            if taken not in menu.labels:
                has = ", ".join(map(repr, menu.labels)) or "no actions"
                raise self.check.refuse(
                    f"step {level + 1}: the policy takes {taken!r}, where the model has {has} "
                    f"(hidden state {self._name(place)})"
                )
            self._rows[key] = self.count
            self._add_ways(state, menu.labels[taken])

    def _add_ways(self, state: int, action: Any) -> None:
        """Add what an action may do to a hidden state as a row."""
        for chance, after, reward, event in self.hidden.moves(state, action):
            if event is not None:
                self.quantities.add(event)
            seen: list[tuple[Any, Number]] = [(None, 1)]
            if after != FAILS:
                seen = self.hidden.observe(after, action)
            for observation, likely in seen:
                label = arrival = NONE
                if after != FAILS:
                    label = self._labels.setdefault(stable_text(observation), len(self._labels))
                    arrival = self._place(after, self.hidden.menu(observation))
                self._label.append(label)
                self._arrival.append(arrival)
                both = chance if likely == 1 else Fraction(chance) * Fraction(likely)
                numbers = (self._probability, both), (self._reward, reward)
                for (column, number), exact in zip(numbers, self._exact, strict=True):
                    if float(number) != number:
                        exact[len(column)] = number
                    column.append(float(number))
                for quantity, charges in self._charges.items():
                    charges.append(float(event == quantity))
        self._first.append(len(self._label))

    def _place(self, state: int, menu: Menu) -> int:
        """Return the number of a hidden state with actions; equal menus are the same object."""
        number = self._places.setdefault((state, id(menu)), len(self.states))
        if number == len(self.states):
            self.states.append((state, menu))
        return number

    def _name(self, place: int) -> str:
        return shorten(self.hidden.states[self.states[place][0]])

    def close(self, chain: Any) -> None:
        """Complete a chain, and compare it with the policy's record."""
        super().close(chain)
        begins = [k for k, member in enumerate(self._members) if len(member)]
        chain.starts = [(k, Fraction(share)) for k in begins for _, share in self._shares]
        if len(chain):
            columns, nodes = np.concatenate(self._columns), np.concatenate(self._nodes)
            place = np.unique(np.concatenate(self._sights), return_inverse=True)[1]
            seen = self._keys[columns] // self._size - 1
            chain.sights = Sights(place, nodes, seen, [*self._charges])
            self._compare_means(chain, columns)

    def _compare_means(self, chain: Any, columns: NDArray[np.intp]) -> None:
        """Refuse a model whose means differ from what the policy recorded."""
        start = np.array(chain.start(self._weights), float)
        reach = chain.spread(start, chain.probability)
        flow = reach[chain.source] * chain.probability
        count, owner = len(self._keys), self._keys % self._size
        found = np.bincount(columns, flow, count)
        paid = np.bincount(columns, flow * chain.reward, count)
        total = np.bincount(owner, found, self._size)
        chance, reward = (
            np.concatenate([getattr(member, name) for member in self._members])
            for name in ("probability", "reward")
        )
        size = max(1.0, float(np.abs(chain.reward).max(initial=0.0)))
        known = [np.bincount(self._group, c, count) for c in (chance, chance * reward)]
        for now, before, scale, what in (
            (found, known[0], 1.0, "probability"),
            (paid, known[1], size, "mean reward"),
        ):
            far = np.abs(now - before * total[owner])
            for key in np.flatnonzero(far > AGREES * scale * total[owner])[:1].tolist():
                node = int(owner[key])
                taken = [label for m in self._members for label in np.take(m.labels, m.action)]
                label = ["failure", *self._labels][self._keys[key] // self._size]
                mean = float(now[key] / total[node]) if total[node] else math.nan
                raise self.check.refuse(
                    f"action {str(taken[node])!r} has another outcome {label!r}: {what} was "
                    f"{float(before[key])!r}, is {mean!r}"
                )


def unfold(policy: Policy, chain: Any) -> Policy | None:
    """Return the chain of a policy as a policy that sees hidden states; None if it is too long.

    Its first decision draws the hidden state. Outcomes are called by their positions.
    """
    if not 0 < len(chain.target) <= MOST_UNFOLDED or not np.all(chain.probability > 0):
        return None
    sights, begins = chain.sights, len(chain.starts)
    first = np.append(0, begins + np.searchsorted(chain.source, np.arange(len(chain) + 1)))
    position = np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))
    labels = [*policy.labels, DRAW, *(f"{DRAW}, {k}" for k in range(int(position.max()) + 1))]
    own = len(policy.labels)
    onward = np.where(chain.target >= 0, chain.target + 1, chain.target)
    return Policy(
        structs.replace(policy.about, initial_action=True),
        labels,
        np.append(own, policy.action[sights.node]).astype(np.int32),
        first.astype(np.int64),
        (own + 1 + position).astype(np.int32),
        np.append([float(share) for _, share in chain.starts], chain.probability),
        np.append(np.zeros(begins), chain.reward),
        np.append(1 + np.arange(begins), onward).astype(np.int32),
        charges={
            name: np.append(np.zeros(begins), np.asarray(charged, float))
            for name, charged in zip(sights.charged, chain.charges, strict=True)
            if name in policy.charges
        },
    )
