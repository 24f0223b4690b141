"""The Markov chain of a policy.

A place is a decision point of the policy: a member, a node of it, and a state. Histories that reach
the same place are merged. Places are numbered level by level. Each outcome at a place is a
transition: to a place of the next level, to failure, to an end, or to a history without a planned
action. A chain holds the model's numbers; `vulcan.certificate.sums` computes with them.

`follow_policy` builds the chain, from answers that are compared with the policy's record
(`vulcan.policy.walk`).

**Beyond the frontier.** A policy may record, for each unplanned outcome, a bound u on the risk and
a bound l on the reward of what follows (`vulcan.policy.policy.Beyond`). With p the probability of
reaching it at step t, the policy is safe, whatever is done there as far as the claim goes, if

    er + Σ p u  <=  Δ(E g + Σ p γ^t l).

The model is queried for u and l at each state of the frontier, and must say what the policy has
recorded. Then the chain is closed: an unplanned outcome leads to a place that earns l, and from
there to one that fails with probability u and ends otherwise. So reward and risk of the closed
chain are the bounds above, with all that is known of their errors; and the margin holds for u
multiplied by the same factor as every immediate risk, with l unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.hidden import HiddenEvaluations, Sights
from vulcan.constraints import Constraint
from vulcan.model.belief import BeliefModel
from vulcan.model.reader import ModelReader
from vulcan.numerics import ANY, DEFAULT, END, FAILED, NONE, UNPLANNED, Number
from vulcan.parameters import shorten
from vulcan.policy.policy import AnyPolicy, Policy, describe_mismatch
from vulcan.policy.walk import Evaluations, Followed
from vulcan.runtime.arrays import starts
from vulcan.runtime.limits import check_time

NEGLIGIBLE: Final = 1e-200  # smaller probabilities count as 0

Floats = NDArray[np.float64]

NO_NUMBERS: Final = np.zeros(0, np.int64)

Watch = Callable[[float], None]  # called with the share of the levels that is done

Leave = Callable[[int, int, Any, int, int], None]
"""Called with the node and position of an unplanned outcome, and with the state after it, its level
and its number in `Evaluations`, or NONE."""


class Chain:
    """The places of a policy, level by level, and the transitions between them.

    `sizes` has the number of places of each level. The columns of `transitions`, in the order of
    source places, are source place; target place, `END`, `FAILED` or `UNPLANNED`; and probability
    and reward as given by the model, floats in arrays or numbers of any kind. `discounts` has those
    after each level, and `leaves` says which transitions leave the plan. `charges` has a column for
    each further constraint: what each transition is charged, and `quantities` what else could be.
    """

    quantities: Collection[str] = ()
    starts: Sequence[tuple[int, Number]] | None = None
    """The member of each first place and its share of the member's weight, if it has several."""
    sights: Sights | None = None
    """With hidden states: what the agent can tell apart."""

    def __init__(
        self,
        sizes: Sequence[int],
        transitions: Iterable[Any],
        discounts: Iterable[Any],
        leaves: NDArray[np.bool_] | None = None,
        charges: Sequence[NDArray[Any]] = (),
    ) -> None:
        self.charges = charges
        self.sizes = np.array(sizes, np.intp)
        source, target, *self.model_numbers = transitions
        self.source: NDArray[np.int32] = np.asarray(source, np.int32)
        self.target: NDArray[np.int32] = np.asarray(target, np.int32)
        self.discounts = list(discounts)
        self.leaves = self.target == UNPLANNED if leaves is None else leaves

    def __len__(self) -> int:
        """Return the number of places."""
        return int(self.sizes.sum())

    def start(self, weights: Sequence[Number]) -> list[Number]:
        """Return the probability of each first place, for weights of the members."""
        if self.starts is None:
            return list(weights) if len(self) else []
        return [weights[member] * share for member, share in self.starts]

    @cached_property
    def firsts(self) -> NDArray[np.intp]:
        """The first place of each level, and the number of places."""
        return np.append(starts(self.sizes), self.sizes.sum())

    @cached_property
    def probability(self) -> Floats:
        """The probability of each transition, as a float."""
        return np.asarray(self.model_numbers[0], float)

    @cached_property
    def reward(self) -> Floats:
        """The reward of each transition, as a float."""
        return np.asarray(self.model_numbers[1], float)

    @cached_property
    def weights(self) -> Floats:
        """γ^t at each place."""
        discounts = np.array([1.0, *map(float, self.discounts[:-1])])[: len(self.sizes)]
        return np.repeat(np.cumprod(discounts), self.sizes)

    @cached_property
    def most_outcomes(self) -> int:
        """The largest number of transitions from one place."""
        return int(self._rows[0].max(initial=0))

    @cached_property
    def entries(self) -> int:
        """The sum over levels of the largest number of transitions to one of their places."""
        counts = (np.bincount(step.indices, minlength=step.shape[0]) for step in self._steps)
        return sum(int(count[:-1].max()) for count in counts)

    @cached_property
    def fails(self) -> NDArray[np.bool_]:
        """Whether each transition leads to failure."""
        return np.asarray(self.target == FAILED)

    @cached_property
    def risk(self) -> Floats:
        """The immediate risk at each place."""
        return self.gather(self.probability * self.fails)

    @cached_property
    def unplanned(self) -> Floats:
        """The probability of leaving the plan at each place."""
        if not self.leaves.any():
            return np.zeros(len(self))
        return self.gather(self.probability * self.leaves)

    @cached_property
    def earned(self) -> tuple[Floats, Floats]:
        """The mean reward at each place, and the mean of the absolute rewards."""
        parts = self.probability * self.reward
        earned = self.gather(parts)
        return earned, earned if parts.min(initial=0.0) >= 0 else self.gather(np.abs(parts))

    def gather(self, parts: Floats) -> Floats:
        """Return the sum over the transitions from each place."""
        total, (counts, first, _) = np.zeros(len(self)), self._rows
        if len(parts):
            total[counts > 0] = np.add.reduceat(parts, first[:-1][counts > 0])
        return total

    @cached_property
    def _rows(self) -> tuple[NDArray[np.intp], NDArray[np.int32], list[int]]:
        """The number of transitions from each place, the first of each, and that of each level."""
        counts = np.bincount(self.source, minlength=len(self))
        first = np.append(starts(counts), len(self.source))
        return counts, first.astype(np.int32), first[self.firsts].tolist()

    def _step(self, probability: Floats) -> Iterator[Any]:
        """Yield the matrix of the transitions from each level to the places of the next.

        Its last row is for the transitions that lead to no place.
        """
        from scipy.sparse import csc_array

        _, first, begins = self._rows
        firsts = self.firsts.tolist()
        for level, (begin, end) in enumerate(pairwise(begins[:-1])):
            before, here, after = firsts[level : level + 3]
            own = self.target[begin:end]
            target = np.where(own >= 0, own - here, after - here).astype(np.int32)
            parts = probability[begin:end], target, first[before : here + 1] - begin
            yield csc_array(parts, shape=(after - here + 1, here - before))

    @cached_property
    def _steps(self) -> list[Any]:
        return list(self._step(self.probability))

    def spread(self, start: Floats, probability: Floats, survive: Floats | None = None) -> Floats:
        """Return the probability of being in each place.

        `start` has that of each place of the first level, and `probability` that of each
        transition. `survive` has a factor for each place, by which the transitions from it are
        multiplied.
        """
        own = probability is self.probability
        reach = np.zeros(len(self))
        reach[: len(start)] = start
        here, steps = slice(0, int(self.sizes[0])), self._steps if own else self._step(probability)
        for step, size in zip(steps, self.sizes[1:].tolist(), strict=True):
            check_time()
            leaving = reach[here] if survive is None else reach[here] * survive[here]
            arriving = (step @ leaving)[:-1]
            # Arithmetic with subnormal numbers takes a hundred times as long.
            arriving[arriving < NEGLIGIBLE] = 0.0
            here = slice(here.stop, here.stop + size)
            reach[here] = arriving
        return reach


def follow_policy(
    policy: AnyPolicy,
    reader: ModelReader,
    watch: Watch = lambda _: None,
    leave: Leave | None = None,
    constraints: Sequence[Constraint] = (),
    known: Evaluations | None = None,
) -> tuple[Chain, int]:
    """Return the chain of a policy, and the number of its (state, action) pairs.

    The first level has one place for each member; with hidden states, one for each of these.
    Answers of the model that are `known` are not asked for again, and new ones are kept there.
    """
    if leave is None and not constraints and not policy.members[0].charges:
        from vulcan.certificate.arrays import follow_arrays

        found = follow_arrays(policy, reader, watch)
        if found is not None:
            return found
    hidden = isinstance(reader.model, BeliefModel)
    evaluated = known
    if evaluated is None:
        evaluated = (HiddenEvaluations if hidden else Evaluations)(policy, reader, constraints)
    first = np.array(evaluated.start(), np.int64)
    rows, targets, sizes = [NO_NUMBERS], [NO_NUMBERS], list[int]()
    # The places of a level: for each member its nodes, and the numbers of their states.
    places: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {
        number: (np.zeros(len(first), np.intp), first)
        for number, member in enumerate(policy.members)
        if len(member)
    }
    after = 0
    for level in range(reader.levels):
        if not places:
            break
        sizes.append(sum(len(nodes) for nodes, _ in places.values()))
        after += sizes[-1]
        following, number = dict[int, tuple[NDArray[Any], NDArray[Any]]](), after
        for member, (nodes, states) in places.items():
            check_time()
            followed = evaluated.follow(member, nodes, states, level)
            onward = followed.child >= 0
            child, state = followed.child[onward], followed.state[onward]
            keys = child * np.int64(len(evaluated.states)) + state
            order, group = _number_in_order(keys)
            target = followed.child.astype(np.int64)
            target[onward] = number + group
            rows.append(followed.rows)
            targets.append(target)
            number += len(order)
            if len(order):
                following[member] = child[order], state[order]
            if leave is not None:
                _leave(policy.members[member], nodes, followed, evaluated.states, level, leave)
        places = following
        if known is None:
            evaluated.release()
        watch((level + 1) / reader.levels)
    discounts = map(reader.discount_after, range(len(sizes)))
    flat = np.concatenate(rows)
    transitions = evaluated.list_transitions(flat, np.concatenate(targets))
    charges = evaluated.list_charges()
    chain = Chain(sizes, transitions, discounts, charges=charges)
    evaluated.close(chain)
    return chain, int(np.bincount(flat, minlength=1).astype(bool).sum())


def _number_in_order(keys: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first place of each different key, and for each key its number among them."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def _leave(
    member: Policy,
    nodes: NDArray[Any],
    followed: Followed,
    states: Sequence[Any],
    level: int,
    leave: Leave,
) -> None:
    """Call `leave` for each unplanned outcome of some nodes."""
    first = np.searchsorted(followed.source, np.arange(len(nodes)))
    for row in np.flatnonzero(followed.child == UNPLANNED).tolist():
        place = int(followed.source[row])
        position = row - int(first[place])
        number = int(followed.state[row])
        leave(int(nodes[place]), position, states[number], level + 1, number)


def find_claims(
    policy: AnyPolicy, reader: ModelReader, known: Evaluations | None = None
) -> FrontierClaims | None:
    """Return what a policy and its model claim of its frontier; None if they claim nothing."""
    if not isinstance(policy, Policy) or policy.beyond is None:
        return None
    claims = FrontierClaims(policy, reader, {} if known is None else known.claims)
    if policy.beyond.find_problem(policy.child):
        raise claims.refuse("its bounds beyond the frontier are damaged")
    if policy.beyond.claim == ANY and reader.least_reward is None:
        raise claims.refuse("it has no least_reward, by which the policy is bounded")
    if policy.beyond.claim == DEFAULT and not hasattr(reader.model, "default_bounds"):
        raise claims.refuse("it has no default_bounds, by which the policy is bounded")
    return claims


class FrontierClaims:
    """The claims for the frontier of a policy, in the order in which its histories reach it."""

    def __init__(self, policy: Policy, reader: ModelReader, known: dict[Any, Any]) -> None:
        assert policy.beyond is not None
        self._known = known  # by number of the state and level
        self._policy, self._reader, self._beyond = policy, reader, policy.beyond
        self.claim = policy.beyond.claim
        self._number = np.cumsum(policy.child == UNPLANNED) - 1
        self._risks: list[Number] = []
        self._rewards: list[Number] = []

    def enter(self, node: int, position: int, state: Any, level: int, own: int) -> None:
        """Evaluate the model's claim for a state of the frontier, after an outcome of a node."""
        number = self._number[self._policy.first_outcome[node] + position]
        recorded = float(self._beyond.risk[number]), float(self._beyond.reward[number])
        answer = self._known.get((own, level))
        if answer is None:
            answer = self._reader.bound_continuation(self._beyond.claim, state, level)
            if own != NONE:
                self._known[own, level] = answer
        risk, reward = answer
        if (float(risk), float(reward)) != recorded:
            raise self.refuse(
                f"after {level} steps, in state {shorten(state)}: the recorded (largest risk, "
                f"least reward) is {recorded}, the model's {(float(risk), float(reward))}"
            )
        self._risks.append(risk)
        self._rewards.append(reward)

    def refuse(self, detail: str) -> Exception:
        """Return the error that says how policy and model differ."""
        return describe_mismatch(self._policy.about, self._reader, detail)

    def close(self, chain: Chain) -> Chain:
        """Return the chain with places for what follows the frontier."""
        leaves = chain.leaves
        level = np.repeat(np.arange(len(chain.sizes)), chain.sizes)
        after = level[chain.source[leaves]] + 1  # it does not decrease
        count = len(after)
        earning, risking = (np.bincount(after + k, minlength=len(chain.sizes) + 2) for k in (0, 1))
        own = np.pad(chain.sizes, (0, 2))
        sizes = own + earning + risking
        firsts = np.cumsum(sizes) - sizes
        rank = np.arange(count) - (np.cumsum(earning) - earning)[after]
        earns = firsts[after] + own[after] + rank
        risks = firsts[after + 1] + (own + earning)[after + 1] + rank
        moved = firsts[level] + np.arange(len(chain)) - chain.firsts[level]
        target = np.where(chain.target >= 0, moved[np.maximum(chain.target, 0)], chain.target)
        target[leaves] = earns
        risk, nothing = _to_array(self._risks), np.zeros(count)
        parts = (
            (moved[chain.source], target, *chain.model_numbers),
            (earns, risks, np.ones(count), _to_array(self._rewards)),
            (risks, np.full(count, FAILED), risk, nothing),
            # It earns nothing, so that its probability may be rounded.
            (risks, np.full(count, END), 1 - risk, nothing),
        )
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        left = np.concatenate((leaves, np.zeros(3 * count, np.bool_)))
        order = np.argsort(columns[0], kind="stable")
        order = order[columns[2][order] != 0]
        sizes = np.trim_zeros(sizes, "b")
        # Beyond the places that earn something, discounts don't matter.
        discounts = [*chain.discounts, 1, 1][: len(sizes)]
        closed = Chain(sizes.tolist(), [c[order] for c in columns], discounts, left[order])
        closed.starts = chain.starts
        return closed


def _to_array(numbers: list[Number]) -> NDArray[Any]:
    """Return numbers as floats, or as they are if some would be rounded."""
    return np.array(numbers, float if all(float(n) == n for n in numbers) else object)
