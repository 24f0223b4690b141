"""Following all histories of a policy through its model.

A policy knows no states, so it is followed from the start, step by step: a *place* is where a
history can be (a member of the policy, a node of that member, a state), and the *ways* from it are
the model's outcomes, each with what the policy does next. Whoever walks decides what to do with
histories that come to the same place: a certificate joins them, a drawing keeps them apart.

The model is asked once for each (state, action) that the policy meets. If an answer differs from
the one that the policy was made with, that is a `MismatchError`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vulcan.errors import MismatchError
from vulcan.model.interface import FAILURE, Outcome, describe_model
from vulcan.model.observations import fit_labels, label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About, Policy
from vulcan.policies.randomised import AnyPolicy
from vulcan.sentinels import END, FAILED

__all__ = ["Place", "PolicyWalk", "Way", "describe_mismatch"]


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
        self._about, self._reader = policy.about, reader
        self._members = [_Nodes(member) for member in policy.members]
        self._answers: dict[tuple[Any, str], tuple[list[Outcome], list[str]]] = {}

    def begin(self) -> list[Place]:
        """Return the places before the first decision, one per member that has any decision."""
        root = self._reader.root
        for nodes in self._members:
            if not nodes.action:
                self._require_end(root)
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
        nodes, last = self._members[member], level + 1 == self._reader.levels
        first, end = nodes.first[node], nodes.first[node + 1]
        outcomes, labels = self._ask(state, nodes.action[node])
        self._compare(outcomes, labels, nodes, node, state)
        children = nodes.child[first:end]
        ways = list(zip(outcomes, children, strict=True))
        if last or END in children:
            self._check_ends(ways, last)
        return ways

    def _check_ends(self, ways: list[Way], last: bool) -> None:
        """Refuse a policy that ends too soon, or does not end."""
        for outcome, child in ways:
            if child == END and not last:
                self._require_end(outcome.state)
            elif child >= 0 and last:
                raise self._refuse(f"the policy acts beyond the horizon, in {outcome.state!r}")

    def describe_action(self, place: Place) -> str:
        """Return the label of the action that is taken at a place."""
        return self._members[place.member].action[place.node]

    def _compare(
        self, outcomes: list[Outcome], labels: list[str], nodes: _Nodes, node: int, state: Any
    ) -> None:
        """Refuse answers that are not those that the policy was made with."""
        span = slice(nodes.first[node], nodes.first[node + 1])
        label, recorded, said = nodes.action[node], nodes.label[span], nodes.said[span]
        if labels != recorded and not fit_labels(outcomes, labels, recorded):
            raise self._refuse(
                f"action {label!r} in state {state!r} has the outcomes {labels}; "
                f"the policy was made with {recorded}"
            )
        answer = [(float(o.probability), float(o.reward), o.state is FAILURE) for o in outcomes]
        if answer == said:
            return
        for now, text, before in zip(answer, recorded, said, strict=True):
            if now != before:
                raise self._refuse(
                    f"the model changed its answer for outcome {text!r} of action {label!r} in "
                    f"state {state!r}: (probability, reward, fails) was {before}, is {now}"
                )

    def _ask(self, state: Any, label: str) -> tuple[list[Outcome], list[str]]:
        if not self._reader.merges:
            return self._ask_reader(state, label)  # nobody comes there again
        if (state, label) not in self._answers:
            self._answers[state, label] = self._ask_reader(state, label)
        return self._answers[state, label]

    def _ask_reader(self, state: Any, label: str) -> tuple[list[Outcome], list[str]]:
        actions = self._reader.actions(state)
        if label not in actions:
            raise self._refuse(
                f"the policy takes {label!r} in state {state!r}, where the model has "
                f"{', '.join(map(repr, actions)) or 'no actions'}"
            )
        self.evaluations += 1
        outcomes = self._reader.outcomes(state, actions[label])
        return outcomes, label_outcomes(outcomes)

    def _require_end(self, state: Any) -> None:
        if self._reader.actions(state):
            raise self._refuse(f"the policy ends in state {state!r}, which has actions")

    def _refuse(self, detail: str) -> MismatchError:
        return describe_mismatch(self._about, self._reader.model, f": {detail}")


def describe_mismatch(about: About, model: Any, detail: str = "") -> MismatchError:
    """Return the error of a policy and a model that don't belong together."""
    return MismatchError(
        f"this policy was made for {about.model} (horizon {about.horizon}); "
        f"{describe_model(model)} is another, or no longer answers the same{detail}"
    )
