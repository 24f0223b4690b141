"""Randomised policies: a weighted set of deterministic policies, drawn once at the start.

Before the mission one member is drawn, each with the probability that is its weight, and then
followed to the end. With w the weights, and er and g the risk and the lifetime reward of a member,

    er = Σ w er_k,    E g = Σ w E g_k,    acceptable when er <= Δ(E g).

Randomising helps because of the bound: what earns most under it often lies between two
deterministic policies, one that risks too much and one that leaves risk unused. With one bound two
members suffice for the optimum.

What is acceptable is the whole, before the draw. If every member passes alone, then so does any
mixture of them, because Δ is concave; but a mixture may pass although a member of it does not.
Whoever must answer for each mission by itself certifies the members, one by one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vulcan.errors import PolicyError
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About, Policy, open_own_model
from vulcan.tolerance import SUM_TOLERANCE

if TYPE_CHECKING:
    from vulcan.policies.execution import Run
    from vulcan.policies.table import PolicyTable

__all__ = ["AnyPolicy", "RandomisedPolicy"]


class RandomisedPolicy:
    """A weighted set of deterministic policies, of which one is drawn at the start and followed.

    It is used like a `Policy`: certified, shown, bound, started, saved, and read by `Policy.load`.

    Parameters
    ----------
    members
        The policies, at least one, all for the same model.
    weights
        The probability of each member: positive, and summing to 1.

    Attributes
    ----------
    members, weights
        As given, as tuples.

    Raises
    ------
    PolicyError
        If the weights are no probabilities, or the members are not for one model.
    """

    def __init__(self, members: Sequence[Policy], weights: Sequence[float]) -> None:
        self.members = tuple(members)
        self.weights = tuple(float(weight) for weight in weights)
        self.knowledge: Any = None
        problem = _find_problem(self.members, self.weights)
        if problem:
            raise PolicyError(problem)

    @property
    def about(self) -> About:
        """Where the policy comes from, as its first member says."""
        return self.members[0].about

    def __len__(self) -> int:
        """Return the number of decision nodes of all members."""
        return sum(map(len, self.members))

    def __eq__(self, other: object) -> bool:
        """Whether both have equal members of equal weights, in the same order."""
        if not isinstance(other, RandomisedPolicy):
            return NotImplemented
        return self.weights == other.weights and self.members == other.members

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        count = len(self.members)
        return (
            f"<RandomisedPolicy for {self.about.model}: {count} member{'s' if count != 1 else ''}, "
            f"{len(self):,} decision nodes>"
        )

    def __str__(self) -> str:
        return self.draw()

    def _repr_html_(self) -> str:
        from vulcan.policies.picture import write_policy

        return write_policy(self)

    @property
    def complete(self) -> bool:
        """Whether every safe history of every member has an action until it ends."""
        return all(member.complete for member in self.members)

    def draw(self, depth: int = 3, most_lines: int = 60) -> str:
        """Return the first levels of each member as a tree, under its weight.

        Parameters
        ----------
        depth
            How many decisions deep.
        most_lines
            How many lines at the most, over all members.
        """
        from vulcan.policies.text import draw_randomised

        return draw_randomised(self, depth, most_lines)

    def table(self) -> PolicyTable:
        """Return the decisions of all members as a table; see `Policy.table`."""
        from vulcan.policies.table import tabulate

        return tabulate(self)

    def bind(self, model: Any) -> RandomisedPolicy:
        """Return the same policy, whose runs give the model's own actions instead of labels.

        The fingerprint is compared at once, and each answer of the model when a run meets it.

        Parameters
        ----------
        model
            The model that the policy was made for.

        Raises
        ------
        MismatchError
            If the model has another fingerprint.
        """
        return self.attach(open_own_model(self.about, model))

    def attach(self, reader: ModelReader) -> RandomisedPolicy:
        """Return the same policy bound to a model that is known to be its own."""
        return RandomisedPolicy([member.attach(reader) for member in self.members], self.weights)

    def detach(self) -> RandomisedPolicy:
        """Return the same policy, bound to no model."""
        return RandomisedPolicy([member.detach() for member in self.members], self.weights)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass to another process, as its members do."""
        return (RandomisedPolicy, (self.members, self.weights))

    def start(self, seed: int | None = None) -> Run:
        """Draw a member and begin to follow it; it is the `policy` of the run.

        Parameters
        ----------
        seed
            Seed of the draw: the same seed draws the same member. Without one every start draws
            afresh.
        """
        drawn = np.random.default_rng(seed).choice(len(self.members), p=self.weights)
        run = self.members[drawn].start()
        run.whole, run.knowledge = self, self.knowledge
        return run

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file, at once or not at all; `Policy.load` reads it."""
        from vulcan.policies.file import save_policy

        save_policy(self, path)


AnyPolicy: TypeAlias = Policy | RandomisedPolicy
"""A policy of either kind; a deterministic one has itself as its only member."""


def _find_problem(members: Sequence[Policy], weights: Sequence[float]) -> str | None:
    """Return what keeps members and weights from being a randomised policy, if anything does."""
    if not members:
        return "a randomised policy needs at least one member"
    if len(members) != len(weights):
        return f"members and weights differ in number: {len(members)} and {len(weights)}"
    for weight in weights:
        if not weight > 0:
            return f"the weight {weight!r} is not positive"
    total = math.fsum(weights)
    if not abs(total - 1) <= SUM_TOLERANCE:
        return f"the weights sum to {total!r}, not to 1"
    for member in members:
        if not isinstance(member, Policy):
            return f"a member must be a deterministic policy, not {member!r}"
    first = members[0].about
    for number, member in enumerate(members[1:], 2):
        for name in ("fingerprint", "horizon", "discount"):
            ours, others = getattr(first, name), getattr(member.about, name)
            if ours != others:
                return (
                    f"members 1 and {number} were made for different models: {first.model} and "
                    f"{member.about.model} ({name} {ours!r} and {others!r})"
                )
    return None
