"""Policies: rooted graphs of decision nodes.

A node has an action, and for each outcome of that action a label, a probability, a reward and what
comes next: another node, the end of the history (`END`), failure (`FAILED`), or nothing yet
(`UNPLANNED`, the frontier of an incomplete policy). A tree search makes a tree; a solver on merged
states shares nodes. A child always has a larger number than its parent, so there are no cycles, and
node 0 is the root.

    action         [N]      number of the action's label
    first_outcome  [N + 1]  the outcomes of node k are first_outcome[k] to first_outcome[k + 1] - 1
    label          [M]      number of the outcome's label
    probability    [M]      as the model gave it
    reward         [M]      as the model gave it
    child          [M]      a node, END, FAILED or UNPLANNED

A policy knows no state objects. It carries what the model said about each action that it takes, so
that it can be shown without the model, and so that a certificate can tell when a model no longer
says the same.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.errors import MismatchError
from vulcan.model.interface import describe_model
from vulcan.model.reader import ModelReader
from vulcan.sentinels import UNPLANNED

if TYPE_CHECKING:
    from vulcan.policies.execution import Run
    from vulcan.policies.randomised import AnyPolicy
    from vulcan.policies.table import PolicyTable

__all__ = ["About", "Policy", "PolicyBuilder", "open_own_model"]


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a policy comes from.

    Attributes
    ----------
    model
        Text of the model.
    fingerprint
        Its fingerprint; see `ModelReader.fingerprint`.
    horizon, discount
        As the model has them.
    risk_bound
        Text of the risk bound that it was made for; None for a function without a string.
    solver
        Text of the solver.
    initial_action
        Whether the first decision is an initial action; None in files that do not say it.
    """

    model: str
    fingerprint: str
    horizon: int
    discount: float
    risk_bound: str | None
    solver: str
    initial_action: bool | None = None

    @property
    def first_discount(self) -> float:
        """The discount after the first decision; nan if only the model would say it."""
        if self.discount == 1 or self.initial_action:
            return 1.0
        return math.nan if self.initial_action is None else self.discount


class Policy:
    """An action for every history that can occur; see the head of this module for the arrays.

    Policies are made by `vulcan.solve` and read by `Policy.load`.

    Attributes
    ----------
    knowledge
        What the search knew that made it, if that was kept; a file has no place for it.
    """

    ARRAYS: Final = ("action", "first_outcome", "label", "probability", "reward", "child")

    def __init__(
        self,
        about: About,
        labels: Sequence[str],
        action: NDArray[np.int32],
        first_outcome: NDArray[np.int64],
        label: NDArray[np.int32],
        probability: NDArray[np.float64],
        reward: NDArray[np.float64],
        child: NDArray[np.int32],
    ) -> None:
        self.about = about
        self.labels = tuple(labels)
        self.action = action
        self.first_outcome = first_outcome
        self.label = label
        self.probability = probability
        self.reward = reward
        self.child = child
        self._reader: ModelReader | None = None
        self.knowledge: Any = None
        self._prospects: dict[float, NDArray[Any]] = {}
        for name in self.ARRAYS:
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of decision nodes."""
        return len(self.action)

    def __eq__(self, other: object) -> bool:
        """Whether both take the same actions on the same outcomes, node for node."""
        if not isinstance(other, Policy):
            return NotImplemented
        return self.labels == other.labels and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.ARRAYS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Policy for {self.about.model}: {len(self):,} decision nodes>"

    def __str__(self) -> str:
        return self.draw()

    def _repr_html_(self) -> str:
        from vulcan.policies.picture import write_policy

        return write_policy(self)

    @property
    def complete(self) -> bool:
        """Whether every safe history has an action until it ends."""
        return not bool(np.any(self.child == UNPLANNED))

    @property
    def members(self) -> tuple[Policy, ...]:
        """The deterministic policies of which one is followed: here only itself."""
        return (self,)

    @property
    def weights(self) -> tuple[float, ...]:
        """The probability of each member: here 1."""
        return (1.0,)

    @property
    def reader(self) -> ModelReader | None:
        """The model that the policy is bound to, asked with care; None if it is bound to none."""
        return self._reader

    def prospects(self, first: float | None = None) -> NDArray[Any]:
        """Return what each decision node still comes to; see `vulcan.policies.prospects`.

        Parameters
        ----------
        first
            The discount after the first decision, where that is not the policy's own: after an
            initial action it is 1.
        """
        from vulcan.policies.prospects import find_prospects, read_plan

        first = self.about.discount if first is None else first
        if first not in self._prospects:
            self._prospects[first] = find_prospects(read_plan(self, first))
        return self._prospects[first]

    def outcomes(self, node: int) -> range:
        """Return the numbers of a node's outcomes."""
        return range(int(self.first_outcome[node]), int(self.first_outcome[node + 1]))

    def draw(self, depth: int = 3, most_lines: int = 60) -> str:
        """Return the first levels of the policy as a tree.

        Parameters
        ----------
        depth
            How many decisions deep.
        most_lines
            How many lines at the most.
        """
        from vulcan.policies.text import draw_policy

        return draw_policy(self, depth, most_lines)

    def table(self) -> PolicyTable:
        """Return the decisions as a table: step, state, action, how likely, and what lies ahead.

        A policy that is bound to a model whose states merge has a row for each step, state and
        action; any other has one for each decision, known by the history that leads there.

        Examples
        --------
        >>> import vulcan
        >>> from vulcan.domains import Bandit
        >>> policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x")).policy
        >>> table = policy.table().where("step=2").top(1)
        >>> table["action"].item(), round(table["reach"].item(), 4)
        ('play 1', 0.4995)
        """
        from vulcan.policies.table import tabulate

        return tabulate(self)

    def bind(self, model: Any) -> Policy:
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

    def attach(self, reader: ModelReader) -> Policy:
        """Return the same policy bound to a model that is known to be its own."""
        bound = self.detach()
        bound._reader = reader
        return bound

    def detach(self) -> Policy:
        """Return the same policy, bound to no model."""
        return Policy(self.about, self.labels, *(getattr(self, name) for name in self.ARRAYS))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass to another process: with its model, and without what a search knew."""
        arrays = (getattr(self, name) for name in self.ARRAYS)
        model = None if self._reader is None else self._reader.model
        return (_rebuild, (self.about, self.labels, *arrays, model))

    def start(self, seed: int | None = None) -> Run:
        """Begin to follow the policy.

        Where the model draws its start (`Start.draw`), the first observation is the drawn state.

        Parameters
        ----------
        seed
            Seed of the draw between the members of a randomised policy; a deterministic policy
            has nothing to draw.
        """
        from vulcan.policies.execution import Run

        return Run(self, self._reader)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file: at once or not at all."""
        from vulcan.policies.file import save_policy

        save_policy(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AnyPolicy:
        """Read a policy from a file; no code in the file is run.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Policy or RandomisedPolicy
            Of the kind that was saved.

        Raises
        ------
        PolicyFileError
            If the file is damaged, was written by a newer version, or holds no policy.
        """
        from vulcan.policies.file import load_policy

        return load_policy(path)


def _rebuild(about: About, labels: Sequence[str], *rest: Any) -> Policy:
    """Return a policy of what `Policy.__reduce__` says."""
    *arrays, model = rest
    policy = Policy(about, labels, *arrays)
    return policy if model is None else policy.attach(ModelReader(model))


def open_own_model(about: About, model: Any) -> ModelReader:
    """Return a reader of the model that a policy was made for, or raise a `MismatchError`."""
    reader = ModelReader(model)
    if reader.fingerprint() != about.fingerprint:
        raise MismatchError(
            f"this policy was made for {about.model} (horizon {about.horizon}); "
            f"{describe_model(model)} answers differently at the start"
        )
    return reader


class PolicyBuilder:
    """Collects nodes in the order of their numbers."""

    def __init__(self, about: About) -> None:
        self._about = about
        self._numbers: dict[str, int] = {}
        self._action: list[int] = []
        self._first: list[int] = [0]
        self._label: list[int] = []
        self._probability: list[float] = []
        self._reward: list[float] = []
        self._child: list[int] = []

    def add(
        self,
        action: str,
        labels: Sequence[str],
        probabilities: Sequence[float],
        rewards: Sequence[float],
        children: Sequence[int],
    ) -> None:
        """Add the next node: its action, and a row per outcome."""
        self._action.append(self._number(action))
        self._label.extend(self._number(label) for label in labels)
        self._probability.extend(probabilities)
        self._reward.extend(rewards)
        self._child.extend(children)
        self._first.append(len(self._label))

    def build(self) -> Policy:
        """Return the policy."""
        return Policy(
            self._about,
            tuple(self._numbers),
            np.array(self._action, np.int32),
            np.array(self._first, np.int64),
            np.array(self._label, np.int32),
            np.array(self._probability, np.float64),
            np.array(self._reward, np.float64),
            np.array(self._child, np.int32),
        )

    def _number(self, label: str) -> int:
        return self._numbers.setdefault(label, len(self._numbers))
