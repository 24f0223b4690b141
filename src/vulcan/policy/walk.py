"""All histories of a policy: the decision points that they reach, and how likely.

A *decision point* is a member of the policy, a node of that member, a level (the number of earlier
decisions) and, if a model is given, a state. `find_decision_points` lists all of them. With p the
probabilities of the outcomes that lead there,

    reach = Σ p · reach(before),    likeliest = max p · likeliest(before).

Both come from the policy's own arrays, a level at a time: 87,000 decisions take 0.1 s.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.constraints import Constraint, charge, list_quantities, read_quantity
from vulcan.errors import MismatchError
from vulcan.model.interface import FAILURE, Outcome, Start, stable_text
from vulcan.model.reader import ModelReader, fit_labels, label_outcomes
from vulcan.numerics import END, FAILED, NONE, Number
from vulcan.parameters import shorten
from vulcan.policy.policy import About, AnyPolicy, Policy, describe_mismatch
from vulcan.runtime.arrays import ranges

Recorded = tuple[str, list[str], list[tuple[float, float, bool]]]
"""A decision as the policy recorded it: the label of its action, and of its outcomes the labels and
(probability, reward, whether it fails)."""


class ModelCheck:
    """Evaluates a model along a policy, and refuses one that differs from the policy's record.

    A policy carries the label, probability, reward and failure of each outcome of the actions that
    it takes. All that follow a policy through a model (certificates, runs, explanations, drawings)
    compare them with the model, to the last digit: a model that differs is not the one that the
    policy was made for, and the certificate says nothing about it. In all methods, `level` is the
    number of earlier decisions.
    """

    def __init__(self, about: About, reader: ModelReader) -> None:
        self._about, self._reader = about, reader
        if about.discount != reader.discount:
            raise self.refuse(f"the discount was {about.discount!r}, is {reader.discount!r}")

    def evaluate(self, state: Any, label: str, level: int) -> tuple[Any, list[Outcome], list[str]]:
        """Return the model's own action, its outcomes and their labels; refuse a missing action."""
        actions = self._reader.actions(state)
        if label not in actions:
            has = ", ".join(map(repr, actions)) or "no actions"
            raise self.refuse(
                f"step {level + 1}: the policy takes {label!r} in state {shorten(state)}, where "
                f"the model has {has}"
            )
        outcomes = self._reader.outcomes(state, actions[label])
        return actions[label], outcomes, label_outcomes(outcomes)

    def compare(
        self, outcomes: list[Outcome], labels: list[str], recorded: Recorded, state: Any, level: int
    ) -> None:
        """Refuse outcomes that differ from those of the recorded decision."""
        taken, own_labels, own_numbers = recorded
        numbers = [(float(o.probability), float(o.reward), o.fails) for o in outcomes]
        if numbers == own_numbers and labels == own_labels:
            return
        action = f"step {level + 1}: action {taken!r} in state {shorten(state)}"
        if labels != own_labels and not fit_labels(outcomes, labels, own_labels):
            raise self.refuse(
                f"{action} has the outcomes {labels}; the policy was made with {own_labels}"
            )
        for now, label, before in zip(numbers, own_labels, own_numbers, strict=True):
            if now != before:
                raise self.refuse(
                    f"{action} has another outcome {label!r}: (probability, reward, fails) was "
                    f"{before}, is {now}"
                )

    def compare_charges(
        self, quantity: str, now: list[float], before: list[float], state: Any, level: int
    ) -> None:
        """Refuse outcomes that are charged other amounts than those of the recorded decision."""
        if now != before:
            raise self.refuse(
                f"step {level + 1}: the outcomes of the action in state {shorten(state)} were "
                f"charged {before} for {quantity!r}, are {now}"
            )

    def require_end(self, state: Any, level: int) -> None:
        """Refuse a state that has actions, where the policy ends."""
        if level < self._reader.levels and self._reader.actions(state):
            raise self.refuse(
                f"after {level} steps the policy ends in state {shorten(state)}, which has actions"
            )

    def require_step(self, state: Any, level: int) -> None:
        """Refuse a decision beyond the horizon."""
        if level >= self._reader.levels:
            raise self.refuse(f"the policy acts beyond the horizon, in {shorten(state)}")

    def compare_end(self, child: int, state: Any, level: int) -> None:
        """Refuse a state where the model ends and the policy goes on, or vice versa."""
        if child == END:
            self.require_end(state, level)
        elif child >= 0:
            self.require_step(state, level)

    def refuse(self, detail: str) -> MismatchError:
        """Return the error that says how policy and model differ."""
        return describe_mismatch(self._about, self._reader, detail)


def list_charged(policy: AnyPolicy) -> dict[str, Constraint]:
    """Return a constraint on each quantity that a policy records charges for."""
    return {name: read_quantity(name) for name in policy.members[0].charges}


class MemberLists:
    """A member as lists, from which single numbers are read faster than from arrays."""

    def __init__(self, policy: Policy) -> None:
        labels = policy.labels
        self.action: list[str] = [labels[number] for number in policy.action.tolist()]
        # Of each outcome:
        self.label = [labels[number] for number in policy.label.tolist()]
        self.child, self._first = array("i", policy.child), array("q", policy.first_outcome)
        self.probability, self.reward = array("d", policy.probability), array("d", policy.reward)
        self.fails = (policy.child == FAILED).tobytes()
        self.charges = {name: charges.tolist() for name, charges in policy.charges.items()}

    def find(self, node: int) -> slice:
        """Return the outcomes of a node."""
        return slice(self._first[node], self._first[node + 1])

    def read(self, node: int) -> tuple[Recorded, list[int]]:
        """Return a decision as it was recorded, and what follows each of its outcomes."""
        rows = self.find(node)
        columns = self.probability[rows], self.reward[rows], map(bool, self.fails[rows])
        recorded = self.action[node], self.label[rows], list(zip(*columns, strict=True))
        return recorded, self.child[rows].tolist()


POINT: Final = np.dtype(
    [
        ("member", "i4"),
        ("node", "i4"),
        ("level", "i4"),
        ("state", "i4"),  # a number in `DecisionPoints.states`; NONE without a model
        ("reach", "f8"),
        ("likeliest", "f8"),  # probability of the likeliest history that leads there
        ("before", "i4"),  # the last decision point of that history; NONE at the start
        ("outcome", "i4"),  # and its last outcome, as a row of the member's arrays
    ]
)

EDGE: Final = np.dtype([("source", "i4"), ("outcome", "i4"), ("target", "i4")])
"""An outcome, as a row of the member's arrays, that leads from one decision point to another."""


class DecisionPoints(NamedTuple):
    """The decision points of a policy, member by member, level by level."""

    policy: AnyPolicy
    rows: NDArray[Any]  # of `POINT`
    edges: NDArray[Any]  # of `EDGE`, in the order of their sources
    states: list[Any]  # of the model, by the numbers in the rows; empty without a model

    def list_path(self, point: int) -> list[int]:
        """Return the decision points of the likeliest history up to a point, that included."""
        path = [point]
        while (before := int(self.rows["before"][path[-1]])) != NONE:
            path.append(before)
        return path[::-1]

    def last_step(self, point: int) -> tuple[str, str]:
        """Return the last action and outcome of that history."""
        row = self.rows[point]
        member = self.policy.members[row["member"]]
        action = member.action[self.rows["node"][row["before"]]]
        return member.labels[action], member.labels[member.label[row["outcome"]]]


def find_decision_points(policy: AnyPolicy, reader: ModelReader | None = None) -> DecisionPoints:
    """Return all decision points that the histories of a policy reach.

    With a reader of its model they have states; a model that differs raises a `MismatchError`.
    """
    states = None if reader is None else Evaluations(policy, reader)
    rows, edges = [np.zeros(0, POINT)], [np.zeros(0, EDGE)]
    for number in range(len(policy.members)):
        for here, onward in _follow(policy, number, sum(map(len, rows)), states):
            rows.append(here)
            edges.append(onward)
    known = [] if states is None else states.states
    return DecisionPoints(policy, np.concatenate(rows), np.concatenate(edges), known)


def _follow(
    policy: AnyPolicy, number: int, begin: int, states: Evaluations | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the decision points of a member and the edges from them, level by level.

    `begin` is the number of the first one.
    """
    member = policy.members[number]
    here = np.zeros(min(1, len(member)), POINT)
    here["member"], here["before"], here["outcome"] = number, NONE, NONE
    here["reach"] = here["likeliest"] = policy.weights[number]
    here["state"] = NONE if states is None else 0
    while len(here):
        first = member.first_outcome[here["node"]]
        counts = member.first_outcome[here["node"] + 1] - first
        rows, source = ranges(first, counts), np.repeat(np.arange(len(here)), counts)
        after = np.full(len(rows), NONE) if states is None else states.follow(here)
        goes_on = member.child[rows] >= 0
        edges = np.zeros(int(goes_on.sum()), EDGE)
        edges["source"], edges["outcome"] = source[goes_on], rows[goes_on]
        there = _arrive(member, here, edges, after[goes_on])
        there["before"] += begin
        edges["source"] += begin
        edges["target"] += begin + len(here)
        yield here, edges
        begin += len(here)
        here = there


def _arrive(
    member: Policy, here: NDArray[Any], edges: NDArray[Any], state: NDArray[Any]
) -> NDArray[Any]:
    """Return the decision points that edges lead to, and set the edges' targets.

    Sources and targets are numbered within their levels here.
    """
    source, rows = edges["source"], edges["outcome"]
    child, chance = member.child[rows], member.probability[rows]
    keys = child.astype(np.int64) * (int(state.max(initial=NONE)) + 2) + state
    _, group = np.unique(keys, return_inverse=True)
    edges["target"] = group
    size = int(group.max(initial=-1)) + 1
    likely = here["likeliest"][source] * chance
    order = np.lexsort((-likely, group))  # the likeliest edge to each point first
    best = order[np.searchsorted(group[order], np.arange(size))]
    there = np.zeros(size, POINT)
    there["member"], there["level"] = here["member"][:1], here["level"][:1] + 1
    there["node"], there["state"] = child[best], state[best]
    there["reach"] = np.bincount(group, here["reach"][source] * chance, size)
    there["likeliest"], there["before"], there["outcome"] = likely[best], source[best], rows[best]
    return there


class Evaluations:
    """The model's answers for the (state, action) pairs of a policy, each evaluated once.

    A pair has a *row*: a range of its outcomes in flat columns. All states are numbered. Every
    answer is compared with the policy's record.
    """

    def __init__(
        self, policy: AnyPolicy, reader: ModelReader, constraints: Sequence[Constraint] = ()
    ) -> None:
        self.check = ModelCheck(policy.about, reader)
        self.members = [MemberLists(member) for member in policy.members]
        self.states: list[Any] = [reader.root]
        self._reader = reader
        self._numbers: dict[Any, int] = {reader.root: 0}
        self._rows: dict[tuple[int, str], int] = {}
        self._ends: set[int] = set()
        self._released = self._level = 0  # of the states: those released, and those before a level
        # Of each outcome. A probability or reward that no float holds is beside its column.
        self._first = array("q", [0])
        self._label: list[str] = []
        self._named, self._fails = bytearray(), bytearray()
        self._probability, self._reward = array("d"), array("d")
        self._arrival = array("i")
        self._exact: tuple[dict[int, Number], dict[int, Number]] = {}, {}
        self._constraints = {c.quantity: c for c in constraints} | list_charged(policy)
        self._charges: dict[str, list[Number]] = {quantity: [] for quantity in self._constraints}
        self.quantities: set[str] = set()  # that constraints could limit, if there are any
        if not all(member.action for member in self.members):
            self.check.require_end(reader.root, 0)

    @property
    def count(self) -> int:
        """The number of pairs."""
        return len(self._first) - 1

    def find(
        self, state: int, member: MemberLists, node: int, level: int
    ) -> tuple[int, Sequence[int]]:
        """Return the row for a state at a node, and the numbers of the next states."""
        label = member.action[node]
        row = self._rows.get((state, label))
        if row is None:
            _, outcomes, labels = self.check.evaluate(self.states[state], label, level)
            self._rows[state, label] = row = self._add(outcomes, labels)
        mine = slice(self._first[row], self._first[row + 1])
        theirs = member.find(node)
        if not (
            self._label[mine] == member.label[theirs]
            and self._probability[mine] == member.probability[theirs]
            and self._reward[mine] == member.reward[theirs]
            and self._fails[mine] == member.fails[theirs]
        ):
            labels, recorded = self._label[mine], member.read(node)[0]
            self.check.compare(self._read(mine), labels, recorded, self.states[state], level)
        for quantity, charges in member.charges.items():
            now = list(map(float, self._charges[quantity][mine]))
            self.check.compare_charges(quantity, now, charges[theirs], self.states[state], level)
        return row, self._arrival[mine]

    def follow(self, here: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the state after each outcome of the points of a level."""
        numbers: list[int] = []
        columns = (here[name].tolist() for name in ("member", "node", "state", "level"))
        for number, node, state, level in zip(*columns, strict=True):
            member = self.members[number]
            _, arrivals = self.find(state, member, node, level)
            numbers.extend(arrivals)
            for child, arrival in zip(member.child[member.find(node)], arrivals, strict=True):
                self.check.compare_end(child, self.states[arrival], level + 1)
        return np.array(numbers, np.int64)

    def require_end(self, state: int, level: int) -> None:
        """Refuse a state that has actions, where the policy ends."""
        if state not in self._ends:
            self.check.require_end(self.states[state], level)
            self._ends.add(state)

    def release(self) -> None:
        """Forget the states of a level, if states never merge: they are not reached again."""
        if not self._reader.merges:
            self.states[self._released : self._level] = [None] * (self._level - self._released)
            self._rows.clear()
            self._ends.clear()
        self._released, self._level = self._level, len(self.states)

    def list_transitions(self, rows: Sequence[int], targets: Sequence[int]) -> Iterable[Any]:
        """Return the columns of a chain whose places have these pairs and targets."""
        here, first = np.array(rows), np.array(self._first)
        counts = (first[1:] - first[:-1])[here]
        flat = ranges(first[here], counts)
        columns = []
        for column, exact in zip((self._probability, self._reward), self._exact, strict=True):
            numbers = np.array(column, object if exact else float)
            for place, number in exact.items():
                numbers[place] = number
            columns.append(numbers[flat])
        return np.repeat(np.arange(len(here)), counts), targets, *columns

    def list_charges(self, rows: Sequence[int]) -> list[NDArray[Any]]:
        """Return a column for each constraint: what each of the same transitions is charged."""
        here, first = np.array(rows, np.intp), np.array(self._first)
        flat = ranges(first[here], (first[1:] - first[:-1])[here])
        columns = []
        for charges in self._charges.values():
            plain = all(float(number) == number for number in set(charges))
            columns.append(np.array(charges, float if plain else object)[flat])
        return columns

    def _add(self, outcomes: list[Outcome], labels: list[str]) -> int:
        """Add the outcomes of a pair, and return its row."""
        for outcome, label in zip(outcomes, labels, strict=True):
            probability, reward, state = outcome.probability, outcome.reward, outcome.state
            if type(probability) is not float or type(reward) is not float:
                for number, exact in zip((probability, reward), self._exact, strict=True):
                    if float(number) != number:
                        exact[len(self._label)] = number
            self._label.append(label)
            self._named.append(outcome.label is not None)
            self._fails.append(state is FAILURE)
            self._probability.append(probability)
            self._reward.append(reward)
            self._arrival.append(NONE if state is FAILURE else self._number(state))
            for quantity, charges in self._charges.items():
                charges.append(charge(self._constraints[quantity], outcome))
            if self._constraints:
                self.quantities.update(list_quantities(outcome))
        self._first.append(len(self._label))
        return self.count - 1

    def _read(self, row: slice) -> list[Outcome]:
        """Return the outcomes of a pair again, in floats."""
        states = [FAILURE if k == NONE else self.states[k] for k in self._arrival[row]]
        named = zip(self._label[row], self._named[row], strict=True)
        own = [label if given else None for label, given in named]
        return list(map(Outcome, self._probability[row], self._reward[row], states, own))

    def _number(self, state: Any) -> int:
        number = len(self.states)
        if self._reader.merges:
            try:
                number = self._numbers.setdefault(state, number)
            except Exception as error:
                raise self._reader.refuse_comparison(state, error) from error
        if number == len(self.states):
            self.states.append(state)
        return number


def find_values(points: DecisionPoints, reader: ModelReader | None) -> dict[str, NDArray[Any]]:
    """Return the action and the values of each decision point, as columns.

    These are `action`, a number of `number_labels`; `fails`, the probability that it fails at once;
    `failing_reward` and `safe_reward`, the parts of its mean reward from outcomes of either kind;
    `risk_ahead` and `reward_ahead`, from there on, this action included. Without a model the reward
    ahead of a first decision is nan where only the model knows whether that is discounted.
    """
    policy, rows, levels = points.policy, points.rows, points.rows["level"]
    if reader is not None:
        first_discount = float(reader.discount_after(0))
    elif levels.max(initial=0) == policy.about.horizon:
        first_discount = 1.0  # more decisions than steps: the first one is an initial action
    else:
        first_discount = policy.about.first_discount
    numbers = number_labels(policy)
    names = ("fails", "failing_reward", "safe_reward", "risk_ahead", "reward_ahead")
    action, values = np.zeros(len(rows), np.int64), np.zeros((len(names), len(rows)))
    for number, member in enumerate(policy.members):
        mine = np.flatnonzero(rows["member"] == number)
        node = rows["node"][mine]
        action[mine] = np.array([numbers[label] for label in member.labels])[member.action[node]]
        owner = np.repeat(np.arange(len(member)), np.diff(member.first_outcome))
        paid, fails = member.probability * member.reward, member.child == FAILED
        parts = (member.probability * fails, paid * fails, paid * ~fails)
        values[:3, mine] = [np.bincount(owner, part, len(member))[node] for part in parts]
        ahead = member.node_values(first_discount)[node]
        values[3:, mine] = ahead["risk"], ahead["mean"]
    return {"action": action, **dict(zip(names, values, strict=True))}


def number_labels(policy: AnyPolicy) -> dict[str, int]:
    """Return a number for each label that any member has."""
    labels = dict.fromkeys(label for member in policy.members for label in member.labels)
    return {label: number for number, label in enumerate(labels)}


def name_state(state: Any) -> str:
    """Return the text of a state, as in labels."""
    return "start" if isinstance(state, Start) else stable_text(state)
