"""Certificates: what a policy earns and risks, from the model alone.

A certificate is computed from the model and the policy by the plain code of this file, which
shares no code with any search: only the reader that checks the model's answers, and the bound.
Histories are followed level by level. With reach(node, state) the probability of being there,

    er = Σ reach · r,    E g = Σ γ^t reach · R̄,    frontier = Σ reach at unplanned places,

and the policy is acceptable when er <= Δ(E g) up to the one tolerance of `vulcan.tolerance`. Of an
incomplete policy, reward and risk are those up to its frontier.

A randomised policy is followed the same way, from as many places as it has members: each has its
own nodes, and is reached at the start with the probability that is its weight.

The margin, how wrong the model's risks may be, is the business of `vulcan.margin`.

The model is asked once for each (state, action) that the policy meets. If an answer differs from
the one the policy was made with, that is an error, never a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from vulcan.collection import pause_collection
from vulcan.errors import MismatchError
from vulcan.margin import find_margin
from vulcan.model import Outcome, describe_model, label_outcomes
from vulcan.policy import END, FAILED, UNPLANNED, Policy
from vulcan.problem import Problem
from vulcan.randomised import AnyPolicy
from vulcan.reader import ModelReader
from vulcan.tolerance import TOLERANCE

__all__ = ["Certificate", "Judgement", "certify"]

Number = float | Fraction

Place = tuple[int, int, Any]
"""Where a history can be: a member of the policy, a node of that member, and a state."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a policy earns and risks, by whoever says so.

    Attributes
    ----------
    reward, risk
        Expected lifetime reward and probability of failure, up to the frontier if there is one.
    allowed
        The risk that the bound accepts for this reward.
    complete
        Whether every safe history has an action until it ends.
    frontier
        Probability of reaching a history that is not planned; 0 for a complete policy.
    """

    reward: Number
    risk: Number
    allowed: Number
    complete: bool
    frontier: Number

    @property
    def slack(self) -> Number:
        """How much more risk would be accepted: allowed - risk."""
        return self.allowed - self.risk

    @property
    def passes(self) -> bool:
        """Whether the risk is acceptable for the reward."""
        return self.slack >= -TOLERANCE

    @property
    def safe(self) -> bool:
        """Whether the policy may be called safe: it passes, and nothing in it is unplanned."""
        return self.passes and self.complete


@dataclass(frozen=True, kw_only=True)
class Certificate(Judgement):
    """What a policy earns and risks, and whether the one is acceptable for the other.

    Of a randomised policy these are the numbers before the draw: sums over its members, each times
    its weight. It may pass although a member alone does not.

    Attributes
    ----------
    reward, risk
        Expected lifetime reward and probability of failure, up to the frontier if there is one.
    allowed
        The risk that the bound accepts for this reward.
    margin
        Largest common factor on all immediate risks up to which the bound holds; inf where no
        factor breaks it, 0 where not even risks of 0 would pass.
    complete
        Whether every safe history has an action until it ends.
    frontier
        Probability of reaching a history that is not planned; 0 for a complete policy.
    exact
        Whether the numbers are rationals, computed without rounding.
    evaluations
        How many (state, action) of the policy the model was asked. For the fingerprint the other
        actions of the initial state were asked as well.
    """

    margin: float
    exact: bool
    evaluations: int


class Level:
    """The places that histories can be in at one level, and the safe ways on from them."""

    def __init__(self, weight: Number) -> None:
        self.weight = weight
        # Per place.
        self.risk: list[Number] = []
        self.failing_reward: list[Number] = []
        self.safe_reward: list[Number] = []
        self.unplanned: list[Number] = []
        # Per way to the next level.
        self.source: list[int] = []
        self.target: list[int] = []
        self.probability: list[Number] = []


def certify(problem: Problem, policy: AnyPolicy, *, exact: bool = False) -> Certificate:
    """Compute the certificate of a policy.

    Parameters
    ----------
    problem
        Model and risk bound to judge it by.
    policy
        Any policy, deterministic or randomised, wherever it comes from. A randomised one is judged
        as a whole, before the draw: it may pass although a member alone does not.
    exact
        Compute with rationals. Slow, and meant for small policies. A bound that is a function is
        still evaluated in floating point. The weights of a randomised policy sum to 1 up to a
        rounding: each is taken as the fraction that it is, and the largest as 1 minus the others.

    Returns
    -------
    Certificate
        It may say that the policy does not pass; look at `safe`.

    Raises
    ------
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that the policy was made for, or no longer answers the same.
    """
    reader = ModelReader(problem.model)
    start = _to_exact_weights(policy.weights) if exact else policy.weights
    follower = _Follower(reader, policy.members, _to_fraction if exact else float)
    try:
        with pause_collection():
            levels = list(follower.levels())
    except MismatchError as error:
        raise _describe_mismatch(policy, problem, f": {error}") from None
    if reader.fingerprint() != policy.about.fingerprint:
        raise _describe_mismatch(policy, problem, "")
    reward, risk, frontier = _evaluate(levels, start, exact)
    bound = problem.risk_bound
    allowed = bound.exact(Fraction(reward)) if exact else bound(float(reward))
    return Certificate(
        reward=reward,
        risk=risk,
        allowed=allowed,
        margin=find_margin(levels, start, bound),
        complete=policy.complete,
        frontier=frontier,
        exact=exact,
        evaluations=follower.evaluations,
    )


def _to_fraction(number: Any) -> Fraction:
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def _to_exact_weights(weights: Sequence[float]) -> Sequence[Number]:
    """Return weights that sum to 1 without a rounding; what is missing goes to the largest."""
    exact = [Fraction(weight) for weight in weights]
    # The largest can bear it: a weight of less than the tolerance might become negative.
    exact[exact.index(max(exact))] += 1 - sum(exact)
    return exact


def _describe_mismatch(policy: AnyPolicy, problem: Problem, detail: str) -> MismatchError:
    return MismatchError(
        f"this policy was made for {policy.about.model} (horizon {policy.about.horizon}); "
        f"{describe_model(problem.model)} is another, or no longer answers the same{detail}"
    )


class _Follower:
    """Follows every history of all members of a policy through a model."""

    def __init__(
        self, reader: ModelReader, members: Sequence[Policy], number: Callable[[Any], Any]
    ) -> None:
        self.reader = reader
        self.members = members
        self.number = number
        self.evaluations = 0
        self._answers: dict[tuple[Any, str], list[Outcome]] = {}

    def levels(self) -> Iterator[Level]:
        """Yield the levels; the first has one place per member."""
        places: dict[Place, int] = {}
        for k, member in enumerate(self.members):
            if len(member):
                places[k, 0, self.reader.root] = k
            else:
                self._require_end(self.reader.root)
        weight = self.number(1)
        for number in range(self.reader.levels):
            if not places:
                return
            level = Level(weight)
            following: dict[Place, int] = {}
            for place in places:
                self._follow(level, place, following, number + 1 == self.reader.levels)
            yield level
            places = following
            weight *= self.number(self.reader.discount_after(number))

    def _follow(self, level: Level, place: Place, following: dict[Place, int], last: bool) -> None:
        member, node, state = place
        risk = failing_reward = safe_reward = unplanned = self.number(0)
        for outcome, child in self._outcomes(self.members[member], node, state):
            probability = self.number(outcome.probability)
            part = probability * self.number(outcome.reward)
            if outcome.fails:
                risk += probability
                failing_reward += part
                continue
            safe_reward += part
            if child == UNPLANNED:
                unplanned += probability
            elif child == END:
                if not last:
                    self._require_end(outcome.state)
            elif last:
                raise MismatchError(f"the policy acts beyond the horizon, in {outcome.state!r}")
            else:
                level.source.append(len(level.risk))
                target = (member, child, outcome.state)
                level.target.append(following.setdefault(target, len(following)))
                level.probability.append(probability)
        level.risk.append(risk)
        level.failing_reward.append(failing_reward)
        level.safe_reward.append(safe_reward)
        level.unplanned.append(unplanned)

    def _outcomes(self, policy: Policy, node: int, state: Any) -> Iterator[tuple[Outcome, int]]:
        """Yield the model's outcomes at a place, each with what the policy does next."""
        label = policy.labels[policy.action[node]]
        outcomes = self._ask(state, label)
        rows = policy.outcomes(node)
        recorded = [policy.labels[policy.label[row]] for row in rows]
        # Outcomes keep their order. A label that the model did not give is the text of a state,
        # which need not be the same for equal states.
        same = len(outcomes) == len(rows) and all(
            outcome.label in (None, text) for outcome, text in zip(outcomes, recorded, strict=True)
        )
        if not same:
            raise MismatchError(
                f"action {label!r} in state {state!r} has the outcomes {label_outcomes(outcomes)}; "
                f"the policy was made with {recorded}"
            )
        for row, outcome, text in zip(rows, outcomes, recorded, strict=True):
            child = int(policy.child[row])
            said = (float(outcome.probability), float(outcome.reward), outcome.fails)
            before = (float(policy.probability[row]), float(policy.reward[row]), child == FAILED)
            if said != before:
                raise MismatchError(
                    f"the model changed its answer for outcome {text!r} of action {label!r} in "
                    f"state {state!r}: (probability, reward, fails) was {before}, is {said}"
                )
            yield outcome, child

    def _ask(self, state: Any, label: str) -> list[Outcome]:
        if (state, label) not in self._answers:
            actions = self.reader.actions(state)
            if label not in actions:
                raise MismatchError(
                    f"the policy takes {label!r} in state {state!r}, where the model has "
                    f"{', '.join(map(repr, actions)) or 'no actions'}"
                )
            self._answers[state, label] = self.reader.outcomes(state, actions[label])
            self.evaluations += 1
        return self._answers[state, label]

    def _require_end(self, state: Any) -> None:
        if self.reader.actions(state):
            raise MismatchError(f"the policy ends in state {state!r}, which has actions")


def _evaluate(
    levels: list[Level], start: Sequence[Number], exact: bool
) -> tuple[Number, Number, Number]:
    """Return expected reward, risk and the probability of reaching the frontier.

    The places of the first level are reached with the probabilities `start`.
    """
    total = sum if exact else math.fsum
    rewards: list[Number] = []
    risks: list[Number] = []
    unplanned: list[Number] = []
    reach: Sequence[Number] = start
    for level in levels:
        arrived: list[list[Number]] = [[] for _ in range(max(level.target, default=-1) + 1)]
        for place, (here, risk) in enumerate(zip(reach, level.risk, strict=True)):
            risks.append(here * risk)
            unplanned.append(here * level.unplanned[place])
            earned = level.failing_reward[place] + level.safe_reward[place]
            rewards.append(level.weight * here * earned)
        for source, target, probability in zip(
            level.source, level.target, level.probability, strict=True
        ):
            arrived[target].append(reach[source] * probability)
        reach = [total(parts) for parts in arrived]
    return total(rewards), total(risks), total(unplanned)
