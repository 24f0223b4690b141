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
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.constraints import Constraint, charge, list_quantities, read_quantity
from vulcan.errors import MismatchError
from vulcan.model.answers import Answers, fit_labels, label_answers, label_outcomes
from vulcan.model.belief import BeliefModel
from vulcan.model.interface import FAILURE, Outcome, Start, stable_text
from vulcan.model.reader import ModelReader, StateNumbers
from vulcan.numerics import AGREEMENT, END, FAILED, NONE, Number
from vulcan.parameters import shorten
from vulcan.policy.policy import About, AnyPolicy, Policy, describe_mismatch
from vulcan.runtime.arrays import ranges

PORTION: Final = 2_000  # (state, action) pairs evaluated at once
MOST_LABELS: Final = 1 << 31  # of actions and outcomes

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
        # Equal beliefs may have been computed in another order.
        self._close = AGREEMENT if isinstance(reader.model, BeliefModel) else 0.0
        if about.discount != reader.discount:
            raise self.refuse(f"the discount was {about.discount!r}, is {reader.discount!r}")

    def evaluate(self, state: Any, label: str, level: int) -> tuple[Any, list[Outcome], list[str]]:
        """Return the model's own action, its outcomes and their labels; refuse a missing action."""
        actions = self._reader.actions(state)
        if label not in actions:
            raise self.refuse_action(state, label, actions, level)
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
            if not all(
                abs(x - y) <= self._close * max(1, abs(y)) for x, y in zip(now, before, strict=True)
            ):
                raise self.refuse(
                    f"{action} has another outcome {label!r}: (probability, reward, fails) was "
                    f"{before}, is {now}"
                )

    def compare_charges(
        self, quantity: str, now: list[float], before: list[float], state: Any, level: int
    ) -> None:
        """Refuse outcomes that are charged other amounts than those of the recorded decision."""
        pairs = zip(now, before, strict=True)
        if not all(abs(x - y) <= self._close * max(1, abs(y)) for x, y in pairs):
            raise self.refuse(
                f"step {level + 1}: the outcomes of the action in state {shorten(state)} were "
                f"charged {before} for {quantity!r}, are {now}"
            )

    def require_end(self, state: Any, level: int) -> None:
        """Refuse a state that has actions, where the policy ends."""
        self.require_ends((state,), level)

    def require_ends(self, states: Sequence[Any], level: int) -> None:
        """Refuse states that have actions, where the policy ends."""
        found = self._reader.list_actions(states) if level < self._reader.levels else ()
        for state, actions in zip(states, found, strict=False):
            if actions:
                raise self.refuse(
                    f"after {level} steps the policy ends in state {shorten(state)}, which has "
                    f"actions"
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

    def refuse_action(
        self, state: Any, label: str, actions: Iterable[str], level: int
    ) -> MismatchError:
        """Return the error that a state does not have the policy's action."""
        has = ", ".join(map(repr, actions)) or "no actions"
        return self.refuse(
            f"step {level + 1}: the policy takes {label!r} in state {shorten(state)}, where the "
            f"model has {has}"
        )

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
        after = np.full(len(rows), NONE)
        if states is not None:
            after = states.follow(number, here["node"], here["state"], int(here["level"][0])).state
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


class Followed(NamedTuple):
    """Some places of a member, and their outcomes, one place after the other."""

    rows: NDArray[np.intp]  # of each place, its row in `Evaluations`
    source: NDArray[np.intp]  # of each outcome, its place
    child: NDArray[np.int32]  # what follows it in the policy
    state: NDArray[np.int64]  # the number of the next state; NONE after a failure


class Evaluations:
    """The model's answers for the (state, action) pairs of a policy, each evaluated once.

    A pair has a *row*: a range of its outcomes in flat columns. All states are numbered. Every
    answer is compared with the policy's record.
    """

    def __init__(
        self, policy: AnyPolicy, reader: ModelReader, constraints: Sequence[Constraint] = ()
    ) -> None:
        self.states: list[Any] = [reader.root]
        self.claims: dict[Any, Any] = {}  # see `FrontierClaims`
        self._reader = reader
        self._labels: dict[str, int] = {}
        self._numbers = StateNumbers(self.states if reader.merges else [])
        self._rows: dict[int, int] = {}  # by number of the state and of the action's label
        self._ends: set[int] = set()
        self._released = self._level = 0  # of the states: those released, and those before a level
        # Of each outcome. A probability or reward that no float holds is beside its column.
        self._first = array("q", [0])
        self._label, self._named = array("q"), bytearray()
        self._probability, self._reward = array("d"), array("d")
        self._arrival = array("q")
        self._exact: tuple[dict[int, Number], dict[int, Number]] = {}, {}
        self._constraints = {c.quantity: c for c in constraints} | list_charged(policy)
        self._charges: dict[str, list[Number]] = {quantity: [] for quantity in self._constraints}
        self.quantities: set[str] = set()  # that constraints could limit, if there are any
        self.turn_to(policy)

    def turn_to(self, policy: AnyPolicy) -> bool:
        """Follow another policy with the same answers; return False if they do not suffice."""
        if not self._constraints.keys() >= list_charged(policy).keys():
            return False
        self.check = ModelCheck(policy.about, self._reader)
        self._members, labels = policy.members, self._labels
        # Of each member, the numbers of its labels.
        self._named_by = [
            np.array([labels.setdefault(label, len(labels)) for label in member.labels], np.int64)
            for member in policy.members
        ]
        self._names = tuple(labels)  # by their numbers; the model's own labels may come later
        if not all(map(len, self._members)):
            self.check.require_end(self._reader.root, 0)
        return True

    @property
    def count(self) -> int:
        """The number of pairs."""
        return len(self._first) - 1

    def start(self) -> list[int]:
        """Return the states before the first decision."""
        return [0]

    def follow(
        self, number: int, nodes: NDArray[Any], states: NDArray[Any], level: int
    ) -> Followed:
        """Return what follows some states at nodes of a member."""
        member = self._members[number]
        rows = self._find(states, self._named_by[number][member.action[nodes]], level)
        first, counts = member.first_outcome[nodes], np.diff(member.first_outcome)[nodes]
        self._compare(number, nodes, rows, level)
        child = member.child[ranges(first, counts)]
        arrival = np.array(self._arrival)[ranges(np.array(self._first)[rows], counts)]
        ends = [k for k in dict.fromkeys(arrival[child == END].tolist()) if k not in self._ends]
        self.check.require_ends([self.states[k] for k in ends], level + 1)
        self._ends.update(ends)
        for k in arrival[child >= 0][:1].tolist():
            self.check.require_step(self.states[k], level + 1)
        return Followed(rows, np.repeat(np.arange(len(nodes)), counts), child, arrival)

    def _find(self, states: NDArray[Any], labels: NDArray[Any], level: int) -> NDArray[np.intp]:
        """Return the rows of states and labels of actions; those that are new are evaluated."""
        keys = (np.asarray(states, np.int64) * MOST_LABELS + labels).tolist()
        get = self._rows.get
        rows = np.array([get(key, NONE) for key in keys], np.intp)
        if len(missing := np.flatnonzero(rows == NONE)):
            new = list(dict.fromkeys(keys[k] for k in missing.tolist()))
            for begin in range(0, len(new), PORTION):
                self._evaluate(new[begin : begin + PORTION], level)
            rows[missing] = [self._rows[keys[k]] for k in missing.tolist()]
        return rows

    def _evaluate(self, keys: Sequence[int], level: int) -> None:
        """Evaluate pairs of a state and a label, and add their rows."""
        places, numbers = zip(*(divmod(key, MOST_LABELS) for key in keys), strict=True)
        states = [self.states[k] for k in places]
        labels = [self._names[k] for k in numbers]
        available = self._reader.list_actions(states)
        for state, label, actions in zip(states, labels, available, strict=True):
            if label not in actions:
                raise self.check.refuse_action(state, label, actions, level)
        taken = [actions[label] for label, actions in zip(labels, available, strict=True)]
        first = self.count
        self._add(self._reader.read(states, taken))
        self._rows.update(zip(keys, range(first, first + len(keys)), strict=True))

    def _compare(
        self, number: int, nodes: NDArray[Any], rows: NDArray[np.intp], level: int
    ) -> None:
        """Refuse rows that differ from what a member has recorded at its nodes."""
        member, first = self._members[number], np.array(self._first)
        counts = first[rows + 1] - first[rows]
        if np.array_equal(counts, np.diff(member.first_outcome)[nodes]):
            mine = ranges(first[rows], counts)
            theirs = ranges(member.first_outcome[nodes], counts)
            pairs = (
                (np.array(self._label)[mine], self._named_by[number][member.label[theirs]]),
                (np.array(self._probability)[mine], member.probability[theirs]),
                (np.array(self._reward)[mine], member.reward[theirs]),
                (np.array(self._arrival)[mine] == NONE, member.child[theirs] == FAILED),
                *(
                    (np.array(self._charges[quantity], float)[mine], charges[theirs])
                    for quantity, charges in member.charges.items()
                ),
            )
            if all(np.array_equal(*pair) for pair in pairs):
                return
        recorded = MemberLists(member)
        for node, row in zip(nodes.tolist(), rows.tolist(), strict=True):
            self._compare_one(recorded, node, row, level)

    def _compare_one(self, member: MemberLists, node: int, row: int, level: int) -> None:
        """Refuse a row that differs from what a member has recorded at a node."""
        mine, theirs = slice(self._first[row], self._first[row + 1]), member.find(node)
        state = self.states[next(k for k, v in self._rows.items() if v == row) // MOST_LABELS]
        names = tuple(self._labels)
        labels = [names[k] for k in self._label[mine]]
        self.check.compare(self._read(mine), labels, member.read(node)[0], state, level)
        for quantity, charges in member.charges.items():
            now = list(map(float, self._charges[quantity][mine]))
            self.check.compare_charges(quantity, now, charges[theirs], state, level)

    def release(self) -> None:
        """Forget the states of a level, if states never merge: they are not reached again."""
        if not self._reader.merges:
            self.states[self._released : self._level] = [None] * (self._level - self._released)
            self._rows.clear()
            self._ends.clear()
        self._released, self._level = self._level, len(self.states)

    def list_transitions(self, rows: NDArray[Any], targets: NDArray[Any]) -> Iterable[Any]:
        """Return the columns of a chain whose places have these pairs and targets."""
        first = np.array(self._first)
        counts = (first[1:] - first[:-1])[rows]
        self._flat = flat = ranges(first[rows], counts)
        columns = []
        for column, exact in zip((self._probability, self._reward), self._exact, strict=True):
            numbers = np.array(column, object if exact else float)
            for place, number in exact.items():
                numbers[place] = number
            columns.append(numbers[flat])
        return np.repeat(np.arange(len(rows)), counts), targets, *columns

    def list_charges(self) -> list[NDArray[Any]]:
        """Return a column for each constraint: what each of the same transitions is charged."""
        columns = []
        for charges in self._charges.values():
            plain = all(float(number) == number for number in set(charges))
            columns.append(np.array(charges, float if plain else object)[self._flat])
        return columns

    def close(self, chain: Any) -> None:
        """Complete the chain of the same transitions."""
        chain.quantities = self.quantities
        chain.probability = np.array(self._probability)[self._flat]

    def _add(self, answers: Answers) -> None:
        """Add the outcomes of pairs as rows."""
        begin, labels = len(self._label), self._labels
        for column, exact in zip((answers.probability, answers.reward), self._exact, strict=True):
            if not isinstance(column, np.ndarray):
                exact.update((k, n) for k, n in enumerate(column, begin) if float(n) != n)
        self._label.extend([labels.setdefault(n, len(labels)) for n in label_answers(answers)])
        self._named += bytes(label is not None for label in answers.label)
        self._probability.frombytes(np.asarray(answers.probability, float).tobytes())
        self._reward.frombytes(np.asarray(answers.reward, float).tobytes())
        self._arrival.extend(self._number(answers.state))
        self._first.extend((self._first[-1] + np.cumsum(answers.counts)).tolist())
        for outcome in chain.from_iterable(answers.split()) if self._constraints else ():
            for quantity, charges in self._charges.items():
                charges.append(charge(self._constraints[quantity], outcome))
            self.quantities.update(list_quantities(outcome))

    def _read(self, row: slice) -> list[Outcome]:
        """Return the outcomes of a pair again, in floats."""
        states = [FAILURE if k == NONE else self.states[k] for k in self._arrival[row]]
        named, names = zip(self._label[row], self._named[row], strict=True), tuple(self._labels)
        own = [names[label] if given else None for label, given in named]
        return list(map(Outcome, self._probability[row], self._reward[row], states, own))

    def _number(self, states: Sequence[Any]) -> list[int]:
        """Return the numbers of next states, adding those that are new."""
        if self._reader.merges:
            return self._reader.look_up(self._numbers.__getitem__, states)
        numbers, known = list[int](), self.states
        for state in states:
            fails = state is FAILURE
            numbers.append(NONE if fails else len(known))
            if not fails:
                known.append(state)
        return numbers


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
