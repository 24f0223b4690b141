"""The Markov chain of a policy on (decision, hidden state), from the hidden model alone.

A policy for a model with hidden states (`vulcan.model.belief`) decides by what it has observed: a
decision node stands for all histories of observations that lead there. A place of its chain is a
node, a hidden state, and the actions that the last observation leaves. From it the transitions and
the observations of the hidden model lead to the places of the next level,

    P(s' | s, a) · P(o | s', a)    to (the node after o, s'),

and failing ends the mission. No belief is computed: nothing here is Bayes' rule, and reward and
risk are exact however beliefs were merged in a search. The margin scales the failure probabilities
of hidden states, those that a model states.

A policy records the probability and the mean reward of each observation at a node. They are means
over the hidden states there, and compared with the chain's: a model that differs from the policy's
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.walk import Chain, Leave, Watch
from vulcan.constraints import Constraint, Cost, RiskAhead
from vulcan.errors import OptionError
from vulcan.model.belief import FAILS, BeliefModel, HiddenReader, Menu
from vulcan.model.interface import stable_text
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, NONE, UNPLANNED, Number
from vulcan.parameters import shorten
from vulcan.policy.policy import AnyPolicy
from vulcan.policy.walk import ModelCheck
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import check_time

AGREES: Final = 1e-6  # allowed difference of a node's mean from what the policy recorded


def follow_hidden(
    policy: AnyPolicy,
    reader: ModelReader,
    watch: Watch = lambda _: None,
    leave: Leave | None = None,
    constraints: Sequence[Constraint] = (),
) -> tuple[Chain, int]:
    """Return the chain of a policy, and the number of (hidden state, action) pairs evaluated."""
    if any(isinstance(constraint, RiskAhead) for constraint in constraints):
        raise OptionError(
            "the risk ahead depends on the belief, and can't be certified for hidden states"
        )
    names = [constraint.name for constraint in constraints if isinstance(constraint, Cost)]
    walk = _Walk(policy, reader, names)
    return walk.build(watch, leave), walk.ways.evaluated


class _Ways:
    """What the actions of a policy do to hidden states: rows of flat columns."""

    def __init__(self, model: BeliefModel, check: ModelCheck, names: Sequence[str]) -> None:
        self.hidden = HiddenReader(model.model)  # every answer is evaluated anew
        self._check, self._names = check, names
        self.menus: list[Menu] = []
        self._menu_numbers: dict[int, int] = {}
        self.labels: dict[str, int] = {}
        self._rows: dict[tuple[int, int, str], int] = {}
        self.first = [0]
        self.chance: list[Number] = []
        self.reward: list[Number] = []
        self.label: list[int] = []
        self.after: list[int] = []
        self.menu: list[int] = []
        self.charges: list[list[float]] = [[] for _ in names]
        self.events: set[str] = set()

    @property
    def evaluated(self) -> int:
        """Number of (hidden state, action) pairs."""
        return len({(state, action) for state, _, action in self._rows})

    def number_menu(self, observation: Any) -> int:
        """Return the number of the actions after an observation."""
        menu = self.hidden.menu(observation)
        number = self._menu_numbers.setdefault(id(menu), len(self.menus))
        if number == len(self.menus):
            self.menus.append(menu)
        return number

    def find(self, state: int, menu: int, taken: str, level: int) -> int:
        """Return the row of an action, taken in a hidden state after an observation."""
        key = state, menu, taken
        if key not in self._rows:
            actions = self.menus[menu].labels
            if taken not in actions:
                has = ", ".join(map(repr, actions)) or "no actions"
                where = shorten(self.hidden.states[state])
                raise self._check.refuse(
                    f"step {level + 1}: the policy takes {taken!r}, where the model has {has} "
                    f"(hidden state {where})"
                )
            self._rows[key] = len(self.first) - 1
            self._add(state, actions[taken])
        return self._rows[key]

    def _add(self, state: int, action: Any) -> None:
        for chance, after, reward, event in self.hidden.moves(state, action):
            if event is not None:
                self.events.add(event)
            seen: list[tuple[Any, Number]] = [(None, 1)]
            if after != FAILS:
                seen = self.hidden.observe(after, action)
            for observation, likely in seen:
                product = chance
                if likely != 1:
                    product = Fraction(chance) * Fraction(likely)
                label = menu = FAILS
                if after != FAILS:
                    text = stable_text(observation)
                    label = self.labels.setdefault(text, len(self.labels))
                    menu = self.number_menu(observation)
                self.chance.append(product)
                self.reward.append(reward)
                self.label.append(label)
                self.after.append(after)
                self.menu.append(menu)
                for name, charges in zip(self._names, self.charges, strict=True):
                    charges.append(float(event == name))
        self.first.append(len(self.chance))


class _Walk:
    """The places of a policy, level by level."""

    def __init__(self, policy: AnyPolicy, reader: ModelReader, names: Sequence[str]) -> None:
        self._policy, self._reader = policy, reader
        self._check = ModelCheck(policy.about, reader)
        self.ways = _Ways(reader.model, self._check, names)
        members = policy.members
        self._begin = starts(np.array([len(member) for member in members]))
        self._taken = [member.labels[k] for member in members for k in member.action.tolist()]
        count = max(1, len(self._taken))
        rows, labels = [], []
        for begin, member in zip(self._begin.tolist(), members, strict=True):
            owner = begin + np.repeat(np.arange(len(member)), np.diff(member.first_outcome))
            texts = [self.ways.labels.setdefault(t, len(self.ways.labels)) for t in member.labels]
            seen = np.array([*texts, FAILS])[np.where(member.child == FAILED, -1, member.label)]
            rows.append(np.where(member.child >= 0, member.child + begin, member.child))
            labels.append(owner + count * (seen + 1))
        self._count = count
        self._child = np.concatenate(rows)
        keys = np.concatenate(labels)
        # Several kinds of failure at a node count as one.
        self._keys, place, self._group = np.unique(keys, return_index=True, return_inverse=True)
        self._place = place
        self._owner = self._keys % count

    def build(self, watch: Watch, leave: Leave | None) -> Chain:
        """Return the chain."""
        reader, ways = self._reader, self.ways
        begins = [k for k, member in enumerate(self._policy.members) if len(member)]
        shares = ways.hidden.start()
        menu = ways.number_menu(None)
        if not begins and ways.menus[menu]:
            raise self._check.refuse("the policy has no decision, where the model has actions")
        self._starts = [(k, Fraction(share)) for k in begins for _, share in shares]
        node = np.repeat(self._begin[begins], len(shares)).astype(np.intp)
        state = np.tile(np.array([number for number, _ in shares], np.intp), len(begins))
        menus = np.full(len(node), menu)
        sizes: list[int] = []
        parts: list[tuple[NDArray[Any], ...]] = []
        offset = 0
        while len(node):
            check_time()
            level = len(sizes)
            sizes.append(len(node))
            rows, source, column = self._go(node, state, menus, level)
            target = self._find_targets(rows, column, level)
            if leave is not None:
                self._leave(target, column, leave, level + 1)
            onward = np.flatnonzero(target >= 0)
            following = rows[onward]
            shape = self._count, len(ways.hidden.states), len(ways.menus)
            arrivals = (
                target[onward],
                np.array(ways.after)[following],
                np.array(ways.menu)[following],
            )
            places, group = np.unique(np.ravel_multi_index(arrivals, shape), return_inverse=True)
            target[onward] = offset + len(node) + group
            parts.append((source + offset, target, rows, column))
            offset += len(node)
            node, state, menus = np.unravel_index(places, shape)
            watch((level + 1) / reader.levels)
        return self._close(sizes, parts)

    def _go(
        self, node: NDArray[Any], state: NDArray[Any], menu: NDArray[Any], level: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the ways from the places of a level, their sources, and their recorded rows."""
        ways, taken = self.ways, self._taken
        places = zip(node.tolist(), state.tolist(), menu.tolist(), strict=True)
        row = np.array([ways.find(s, m, taken[n], level) for n, s, m in places], np.intp)
        first = np.array(ways.first)
        counts = (first[1:] - first[:-1])[row]
        rows, source = ranges(first[row], counts), np.repeat(np.arange(len(node)), counts)
        keys = node[source] + self._count * (np.array(ways.label)[rows] + 1)
        column = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        if len(strange := np.flatnonzero(self._keys[column] != keys)):
            where = source[strange[0]]
            names = list(ways.labels)
            label = ways.label[rows[strange[0]]]
            what = "fail" if label == FAILS else f"lead to the observation {names[label]!r}"
            raise self._check.refuse(
                f"step {level + 1}: action {taken[node[where]]!r} may {what} in hidden state "
                f"{shorten(ways.hidden.states[state[where]])}, which the policy has not recorded"
            )
        return rows, source, column

    def _find_targets(
        self, rows: NDArray[Any], column: NDArray[Any], level: int
    ) -> NDArray[np.int64]:
        """Return the node, or the end, that follows each way."""
        ways = self.ways
        target: NDArray[np.int64] = self._child[self._place[column]].astype(np.int64)
        if level + 1 >= self._reader.levels:
            if np.any(target >= 0):
                raise self._check.refuse("the policy acts beyond the horizon")
            return target
        goes_on = np.array([bool(menu) for menu in ways.menus])
        if np.any(goes_on[np.array(ways.menu)[rows[target == END]]]):
            detail = f"after {level + 1} steps the policy ends, where the model has actions"
            raise self._check.refuse(detail)
        return target

    def _leave(self, target: Any, column: Any, leave: Leave, level: int) -> None:
        """Call `leave` for each way that leaves the plan."""
        (member,) = self._policy.members  # only such a policy is bounded beyond its frontier
        for k in np.flatnonzero(target == UNPLANNED).tolist():
            outcome = int(self._place[column[k]])
            node = int(np.searchsorted(member.first_outcome, outcome, "right")) - 1
            leave(node, outcome - int(member.first_outcome[node]), None, level, NONE)

    def _close(self, sizes: Sequence[int], parts: Sequence[tuple[NDArray[Any], ...]]) -> Chain:
        """Return the chain of all levels, compared with the policy's record."""
        ways = self.ways
        empty = (np.zeros(0, np.intp),) * 4
        source, target, rows, column = (
            np.concatenate(columns) for columns in zip(*(parts or [empty]), strict=True)
        )
        chance, reward = (np.array(numbers, object) for numbers in (ways.chance, ways.reward))
        rewards = reward.astype(float)
        if all(float(number) == number for number in ways.reward):
            reward = rewards
        numbers = chance[rows], reward[rows]
        discounts = map(self._reader.discount_after, range(len(sizes)))
        charges = [np.array(charges)[rows] for charges in ways.charges]
        chain = Chain(sizes, (source, target, *numbers), discounts, charges=charges)
        # Products of two floats, rounded once: what converting the fractions would give.
        chain.probability = chance.astype(float)[rows] if len(rows) else np.zeros(0)
        chain.quantities = ways.events
        chain.starts = self._starts
        if len(chain):
            self._compare(chain, column)
        return chain

    def _compare(self, chain: Chain, column: NDArray[Any]) -> None:
        """Refuse a model whose means differ from what the policy recorded."""
        start = np.array(chain.start(self._policy.weights), float)
        reach = chain.spread(start, chain.probability)
        flow = reach[chain.source] * chain.probability
        count = len(self._keys)
        found = np.bincount(column, flow, count)
        paid = np.bincount(column, flow * chain.reward, count)
        total = np.zeros(self._count)
        np.add.at(total, self._owner, found)
        members = self._policy.members
        chance = np.concatenate([member.probability for member in members])
        reward = np.concatenate([member.reward for member in members])
        size = max(1.0, float(np.abs(chain.reward).max(initial=0.0)))
        known = (
            np.bincount(self._group, chance, count),
            np.bincount(self._group, chance * reward, count),
        )
        for now, before, scale, what in (
            (found, known[0], 1.0, "probability"),
            (paid, known[1], size, "mean reward"),
        ):
            far = np.abs(now - before * total[self._owner])
            wrong = np.flatnonzero(far > AGREES * scale * total[self._owner])
            if len(wrong):
                key = int(wrong[0])
                node = int(self._owner[key])
                label = list(self.ways.labels)[self._keys[key] // self._count - 1]
                label = "failure" if self._keys[key] < self._count else label
                mean = float(now[key] / total[node]) if total[node] else math.nan
                raise self._check.refuse(
                    f"action {self._taken[node]!r} has another outcome {label!r}: {what} was "
                    f"{float(before[key])!r}, is {mean!r}"
                )
