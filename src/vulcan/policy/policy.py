"""Policies: rooted graphs of decision nodes.

A node has an action, and for each outcome of that action a label, a probability, a reward and a
child: another node, the end of the history (`END`), failure (`FAILED`), or the frontier of an
incomplete policy (`UNPLANNED`). A tree search makes a tree; a solver on merged states shares nodes.
A child always has a larger number than its parent, so there are no cycles, and node 0 is the root.

    action         [N]      number of the action's label
    first_outcome  [N + 1]  the outcomes of node k are first_outcome[k] to first_outcome[k + 1] - 1
    label          [M]      number of the outcome's label
    probability    [M]      as the model gave it
    reward         [M]      as the model gave it
    child          [M]      a node, END, FAILED or UNPLANNED
    charges[name]  [M]      as the model gave it, for each cost or event that was limited

An event is charged 1 wherever the outcome has it, also where it has happened before: who counts
first occurrences follows histories no further after one (`vulcan.constraints`).

An incomplete policy may record what bounds whatever follows its frontier (`Beyond`): with u the
largest risk and l the least reward after each unplanned outcome, it fails with at most
er + Σ p u, and earns at least E g + Σ p γ^t l, whatever is done there ("any continuation"), or if
the model's default action is followed ("default action").

A policy has no state objects. It records the model's outcomes of each action that it takes, so that
it can be shown without the model, and so that a certificate detects a model that has changed.

**Randomised policies** are weighted sets of deterministic ones. Before the mission one member is
drawn, each with the probability that is its weight, and then followed to the end. With w the
weights, and er and g the risk and the lifetime reward of a member,

    er = Σ w er_k,    E g = Σ w E g_k,    acceptable when er <= Δ(E g).

The optimum under the bound often lies between two policies, one that risks too much and one that
leaves risk unused: two members suffice. The bound applies to the mixture, before the draw: Δ is
concave, so any mixture of acceptable members is acceptable, but it may also be if a member is not.
Users who must answer for each mission by itself certify the members one by one.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.errors import MismatchError, OptionError, PolicyError
from vulcan.model.interface import Start, describe_model
from vulcan.model.reader import ModelReader
from vulcan.numerics import ANY, DEFAULT, LARGEST_REWARD, SUM_TOLERANCE, UNPLANNED
from vulcan.parameters import shorten

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound
    from vulcan.constraints import Constraint
    from vulcan.policy.run import Run
    from vulcan.policy.views import PolicyTable


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a policy."""

    model: str  # as a text
    fingerprint: str  # see `ModelReader.fingerprint`
    horizon: int
    discount: float
    risk_bound: str | None  # that it was made for; None for a function without a text
    solver: str
    initial_action: bool | None = None  # whether the first decision is one; None in old files
    constraints: tuple[str, ...] = ()  # beside the risk bound, as texts; "fuel <= ?" for a function

    @property
    def first_discount(self) -> float:
        """The discount after the first decision; nan if only the model knows it."""
        if self.discount == 1 or self.initial_action:
            return 1.0
        return math.nan if self.initial_action is None else self.discount


class Beyond(NamedTuple):
    """What follows the frontier of an incomplete policy risks at most, and earns at least."""

    claim: str  # why: `ANY` or `DEFAULT` (`vulcan.numerics`)
    # For each unplanned outcome, in the order of the outcomes; discounted from there on.
    risk: NDArray[np.float64]
    reward: NDArray[np.float64]

    def find_problem(self, child: NDArray[np.int32]) -> str | None:
        """Return why these are no bounds for a policy with these children; None if they are."""
        count = int(np.count_nonzero(child == UNPLANNED))
        if self.claim not in (ANY, DEFAULT):
            return f"nothing is known of a frontier with the claim {self.claim!r}"
        if not len(self.risk) == len(self.reward) == count > 0:
            return "the bounds of its frontier are not one for each unplanned outcome"
        if not np.all((self.risk >= 0) & (self.risk <= 1)):
            return "a risk beyond its frontier is not from 0 to 1"
        if not np.all(np.abs(self.reward) <= LARGEST_REWARD):
            return f"a reward beyond its frontier is not a number of at most {LARGEST_REWARD:g}"
        return None


class AnyPolicy(ABC):
    """A policy of either kind; a deterministic one has itself as its only member."""

    about: About
    weights: tuple[float, ...]  # the probability of each member
    reader: ModelReader | None  # of the model that the policy is bound to, if it is

    @property
    @abstractmethod
    def members(self) -> tuple[Policy, ...]:
        """The deterministic policies of which one is followed."""

    @abstractmethod
    def attach(self, reader: ModelReader | None) -> Self:
        """Return the same policy bound to its model, without a check; None for no model."""

    @abstractmethod
    def start(self, seed: int | None = None) -> Run:
        """Begin to follow the policy, or the member that is drawn: the `policy` of the run.

        Where the model draws its start (`Start.draw`), the first observation is the drawn state.
        `seed` is that of the draw between members; by default each start draws anew.
        """

    def __len__(self) -> int:
        """Return the number of decision nodes of all members."""
        return sum(map(len, self.members))

    def __str__(self) -> str:
        return self.draw()

    def _repr_html_(self) -> str:
        from vulcan.policy.views import write_policy

        return write_policy(self)

    @property
    def complete(self) -> bool:
        """Whether every safe history has an action until it ends."""
        return all(UNPLANNED not in member.child for member in self.members)

    def draw(self, depth: int = 3, most_lines: int = 60) -> str:
        """Return the first levels of each member as a tree; lines count over all members."""
        from vulcan.policy.views import draw_policy

        return draw_policy(self, depth, most_lines)

    def table(self) -> PolicyTable:
        """Return the decisions as a table: step, state, action, probability, risk and reward ahead.

        A policy that is bound to a model whose states merge has a row for each step, state and
        action; any other has a row for each decision, named by the history that leads there.

        Examples
        --------
        >>> import vulcan
        >>> from vulcan.domains import Bandit
        >>> policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x")).policy
        >>> table = policy.table()
        >>> second = table.where(table["step"] == 2).top(1)
        >>> second["action"].item(), round(second["reach"].item(), 4)
        ('play 1', 0.4995)
        """
        from vulcan.policy.views import tabulate

        return tabulate(self)

    def bind(self, model: Any) -> Self:
        """Return the same policy, whose runs give the model's own actions instead of labels.

        A model with another fingerprint or discount than that which the policy was made for raises
        a `MismatchError` at once; each outcome is compared when a run reaches it.
        """
        return self.attach(open_own_model(self.about, model))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file, atomically; `Policy.load` reads it."""
        from vulcan.policy.file import save_policy

        save_policy(self, path)


class Policy(AnyPolicy):
    """An action for every history that can occur; see the head of this module for the arrays.

    `vulcan.solve` makes policies and `Policy.load` reads them. `beyond` says what is known of an
    incomplete policy's frontier; it is None if nothing is.
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
        beyond: Beyond | None = None,
        charges: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> None:
        self.about, self.weights, self.beyond = about, (1.0,), beyond
        self.reader: ModelReader | None = None
        # The same decisions, each with a hidden state; known after a certificate with these.
        self.unfolded: Policy | None = None
        self.risk_bound: RiskBound | None = None  # only known to the process that planned for it
        self.constraints: tuple[Constraint, ...] = ()  # that it was made for, beside the bound
        self.labels = tuple(labels)
        self.action, self.first_outcome = action, first_outcome
        self.label, self.child = label, child
        self.probability, self.reward = probability, reward
        self.charges = dict(charges or {})
        self._node_values: dict[tuple[float, bool], NDArray[Any]] = {}
        for array in (*self._arrays(), *self.charges.values()):
            array.flags.writeable = False

    @property
    def members(self) -> tuple[Policy, ...]:
        return (self,)

    def __len__(self) -> int:
        return len(self.action)

    def __eq__(self, other: object) -> bool:
        """Whether both take the same actions on the same outcomes, node for node."""
        if not isinstance(other, Policy):
            return NotImplemented
        mine, others = self.beyond or ("",), other.beyond or ("",)
        pairs = [*zip((*self._arrays(), *mine), (*other._arrays(), *others), strict=False)]
        pairs += [(charges, other.charges.get(name)) for name, charges in self.charges.items()]
        same = self.labels == other.labels and self.charges.keys() == other.charges.keys()
        return same and all(np.array_equal(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Policy for {self.about.model}: {len(self):,} decision nodes>"

    def outcomes(self, node: int) -> range:
        """Return the numbers of a node's outcomes."""
        return range(int(self.first_outcome[node]), int(self.first_outcome[node + 1]))

    def node_values(self, first: float | None = None, *, claimed: bool = True) -> NDArray[Any]:
        """Return risk, reward and other values of each node, a `vulcan.kernels.episodes.VALUE`.

        `first` is the discount after the first decision, where that is not the policy's own: after
        an initial action it is 1. What is claimed of the frontier counts, unless `claimed` is
        False: then the frontier is an end.
        """
        from vulcan.kernels.episodes import VALUE, evaluate

        key = self.about.discount if first is None else first, claimed
        if key not in self._node_values:
            values = np.zeros(len(self), VALUE)
            evaluate(build_plan(self, *key), values)
            self._node_values[key] = values
        return self._node_values[key]

    def attach(self, reader: ModelReader | None) -> Policy:
        bound = self.cut_off()
        bound.beyond, bound.reader, bound.risk_bound = self.beyond, reader, self.risk_bound
        bound.constraints, bound.unfolded = self.constraints, self.unfolded
        return bound

    def cut_off(self) -> Policy:
        """Return the same policy, of which nothing is known beyond its frontier."""
        policy = Policy(self.about, self.labels, *self._arrays())
        policy.charges = self.charges
        return policy

    def cut_before(self, node: int) -> Policy:
        """Return the policy from a node on."""
        first, child = self.first_outcome[node:], self.child[self.first_outcome[node] :]
        rows = [getattr(self, name)[first[0] :] for name in ("label", "probability", "reward")]
        onward = np.where(child >= 0, child - node, child).astype(np.int32)
        arrays: list[Any] = [self.action[node:], first - first[0], *rows, onward]
        return Policy(self.about, self.labels, *arrays)

    def _arrays(self) -> list[Any]:
        return [getattr(self, name) for name in self.ARRAYS]

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, with the model."""
        model = None if self.reader is None else self.reader.model
        own = (*self._arrays(), self.beyond, self.charges)
        return (_rebuild, (model, self.constraints, self.unfolded, self.about, self.labels, *own))

    def start(self, seed: int | None = None) -> Run:
        from vulcan.policy.run import Run

        return Run(self, self.reader)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AnyPolicy:
        """Read a policy of either kind from a file; no code in the file is run.

        Raises
        ------
        PolicyFileError
            If the file is damaged, was written by a newer version, or holds no policy.
        """
        from vulcan.policy.file import load_policy

        return load_policy(path)


def _rebuild(model: Any, constraints: Any, unfolded: Policy | None, *parts: Any) -> Policy:
    policy = Policy(*parts)
    policy.constraints, policy.unfolded = constraints, unfolded
    return policy if model is None else policy.attach(ModelReader(model))


def build_plan(policy: Policy, first: float, claimed: bool = False) -> Any:
    """Return the arrays of a policy as `vulcan.kernels.episodes` takes them; see `node_values`."""
    from vulcan.kernels.episodes import OUTCOME

    outcomes = np.zeros(len(policy.child), OUTCOME)
    for name in ("probability", "reward", "child"):
        outcomes[name] = getattr(policy, name)
    if claimed and policy.beyond is not None:
        frontier = policy.child == UNPLANNED
        outcomes["later_risk"][frontier] = policy.beyond.risk
        outcomes["later_reward"][frontier] = policy.beyond.reward
    discounts = np.array((first, policy.about.discount), np.float64)
    return policy.first_outcome.copy(), outcomes, discounts


class RandomisedPolicy(AnyPolicy):
    """A weighted set of deterministic policies, of which one is drawn at the start and followed.

    It is used like a `Policy`: certified, shown, bound, started, saved, and read by `Policy.load`.

    Parameters
    ----------
    members
        The policies, at least one, all for the same model.
    weights
        The probability of each member: positive, and summing to 1.

    Raises
    ------
    PolicyError
        If the weights are no probabilities, or the members are not for one model.
    """

    def __init__(self, members: Sequence[Policy], weights: Sequence[float]) -> None:
        self._members = tuple(members)
        self.weights = tuple(float(weight) for weight in weights)
        problem = _find_problem(self._members, self.weights)
        if problem:
            raise PolicyError(problem)
        self.about, self.reader = self._members[0].about, self._members[0].reader

    @property
    def members(self) -> tuple[Policy, ...]:
        return self._members

    def __eq__(self, other: object) -> bool:
        """Whether both have equal members of equal weights, in the same order."""
        if not isinstance(other, RandomisedPolicy):
            return NotImplemented
        return self.weights == other.weights and self.members == other.members

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        members = f"{len(self.members)} member{'s' if len(self.members) != 1 else ''}"
        return f"<RandomisedPolicy for {self.about.model}: {members}, {len(self):,} decision nodes>"

    def attach(self, reader: ModelReader | None) -> RandomisedPolicy:
        return RandomisedPolicy([member.attach(reader) for member in self.members], self.weights)

    def start(self, seed: int | None = None) -> Run:
        drawn = np.random.default_rng(seed).choice(len(self.members), p=self.weights)
        run = self.members[drawn].start()
        run.whole = self
        return run


def _find_problem(members: Sequence[Policy], weights: Sequence[float]) -> str | None:
    """Return why members and weights are no randomised policy; None if they are one."""
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
        if member.beyond is not None:
            return "a plan that is only bounded beyond its frontier can't be a member"
    first = members[0].about
    for number, member in enumerate(members[1:], 2):
        for name in ("fingerprint", "horizon", "discount"):
            ours, others = getattr(first, name), getattr(member.about, name)
            if ours != others:
                return (
                    f"members 1 and {number} were made for different models: {first.model} and "
                    f"{member.about.model} ({name} {ours!r} and {others!r})"
                )
        if member.charges.keys() != members[0].charges.keys():
            names = " and ".join(repr(", ".join(m.charges)) for m in (members[0], member))
            return f"members 1 and {number} record charges for different constraints: {names}"
    return None


def open_own_model(about: About, model: Any) -> ModelReader:
    """Return a reader of the model that a policy was made for, or raise a `MismatchError`."""
    reader = ModelReader(model)
    require_own_model(about, reader)
    return reader


def require_own_model(about: About, reader: ModelReader) -> None:
    """Raise a `MismatchError` if a model differs at the start from that of a policy.

    A fingerprint is only text, and may be the model's own choice: equal fingerprints do not imply
    equal discounts.
    """
    if reader.fingerprint() != about.fingerprint:
        raise describe_mismatch(about, reader, "it answers differently at the start")
    if about.discount != reader.discount:
        detail = f"it has the discount {reader.discount!r}, and the policy {about.discount!r}"
        raise describe_mismatch(about, reader, detail)
    initial = isinstance(reader.root, Start)
    if about.initial_action not in (None, initial):
        some = "an" if initial else "no"
        detail = f"it has {some} initial action, unlike the policy"
        raise describe_mismatch(about, reader, detail)


def require_policy(policy: Any) -> None:
    """Raise an error that shows what is needed if an argument is not a policy."""
    if not isinstance(policy, AnyPolicy):
        use = "solve(problem).policy or Policy.load(path)"
        raise OptionError(f"a policy is missing, such as {use}; this is {shorten(policy)}")


def describe_mismatch(about: About, reader: ModelReader, detail: str) -> MismatchError:
    """Return the error of a policy and a model that don't belong together."""
    return MismatchError(
        f"this policy was made for {about.model} (horizon {about.horizon}); "
        f"{describe_model(reader.model)} is another, or no longer answers the same: {detail}"
    )
