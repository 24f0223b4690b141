"""Following all histories of a policy through its model.

A policy knows no states, so it is followed from the start, step by step: a *place* is where a
history can be (a member of the policy, a node of that member, a state), and the *ways* from it are
the model's outcomes, each with what the policy does next. Whoever walks decides what to do with
histories that come to the same place: a certificate joins them, a drawing keeps them apart.

The model is asked once for each (state, action) that the policy meets. If an answer differs from
the one that the policy was made with, that is a `MismatchError` (`vulcan.policies.comparison`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.policies.comparison import Answer, Comparison, Record
from vulcan.policies.policy import Policy
from vulcan.policies.randomised import AnyPolicy
from vulcan.sentinels import END, FAILED

__all__ = ["Place", "PolicyWalk", "Way"]


class Place(NamedTuple):
    """Where a history can be: a member of the policy, a node of that member, and a state."""

    member: int
    node: int
    state: Any


Way = tuple[Outcome, int]
"""An outcome, and what comes after it: a node of the same member, END, FAILED or UNPLANNED."""


class _Nodes:
    """A member as plain lists: numbers are taken from them one by one."""

    def __init__(self, policy: Policy) -> None:
        labels = policy.labels
        self.action: list[str] = [labels[number] for number in policy.action.tolist()]
        self.first = policy.first_outcome.tolist()
        self.label = [labels[number] for number in policy.label.tolist()]
        self.child = policy.child.tolist()
        self.said = list(
            zip(
                policy.probability.tolist(),
                policy.reward.tolist(),
                [child == FAILED for child in self.child],
                strict=True,
            )
        )

    def read(self, node: int) -> tuple[Record, list[int]]:
        """Return what a decision was made with, and what comes after each outcome."""
        span = slice(self.first[node], self.first[node + 1])
        return Record(self.action[node], self.label[span], self.said[span]), self.child[span]


class PolicyWalk:
    """A walk through a model along the histories of a policy.

    Parameters
    ----------
    policy
        Any policy, deterministic or randomised.
    reader
        The model, asked with care.

    Attributes
    ----------
    evaluations
        How many (state, action) the model was asked.
    """

    def __init__(self, policy: AnyPolicy, reader: ModelReader) -> None:
        self.evaluations = 0
        self._reader, self._comparison = reader, Comparison(policy.about, reader)
        self._members = [_Nodes(member) for member in policy.members]
        self._answers: dict[tuple[Any, str], Answer] = {}
        self._met: set[Any] = {reader.root}

    def begin(self) -> list[Place]:
        """Return the places before the first decision, one per member that has any decision."""
        root = self._reader.root
        for nodes in self._members:
            if not nodes.action:
                self._comparison.require_end(root, 0)
        return [Place(k, 0, root) for k, nodes in enumerate(self._members) if nodes.action]

    def follow(self, place: Place, level: int) -> list[Way]:
        """Return the ways from a place.

        Parameters
        ----------
        place
            The place.
        level
            How many decisions came before it.
        """
        member, node, state = place
        nodes = self._members[member]
        record, children = nodes.read(node)
        answer = self._ask(state, record.action, level)
        self._comparison.compare(answer, record, state, level)
        ways = list(zip(answer.outcomes, children, strict=True))
        last = level + 1 == self._reader.levels
        if last or END in children:
            self._check_ends(ways, level + 1)
        return ways

    def describe_action(self, place: Place) -> str:
        """Return the label of the action that is taken at a place."""
        return self._members[place.member].action[place.node]

    def _check_ends(self, ways: list[Way], level: int) -> None:
        """Refuse a policy that ends too soon, or does not end."""
        for outcome, child in ways:
            if child == END:
                self._comparison.require_end(outcome.state, level)
            elif child >= 0:
                self._comparison.require_step(outcome.state, level)

    def _ask(self, state: Any, label: str, level: int) -> Answer:
        if not self._reader.merges:
            self.evaluations += 1  # nobody comes there again
            return self._comparison.ask(state, label, level)
        if (state, label) not in self._answers:
            self._answers[state, label] = answer = self._comparison.ask(state, label, level)
            self.evaluations += 1
            self._meet(answer)
        return self._answers[state, label]

    def _meet(self, answer: Answer) -> None:
        """Look next states up once, so that everybody else can do so without an error."""
        for outcome in answer.outcomes:
            try:
                self._met.add(outcome.state)
            except Exception as error:
                raise self._reader.refuse_comparison(outcome.state, error) from error
