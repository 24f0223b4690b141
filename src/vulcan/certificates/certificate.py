"""Certificates: what a policy earns and risks, from the model alone.

A certificate is computed from the model and the policy by the plain code of this file, which shares
no code with any search: only the reader that checks the model's answers, the walk along a policy
(`vulcan.policies.walk`), and the bound. Histories are followed level by level. With reach(node,
state) the probability of being there,

    er = Σ reach · r,    E g = Σ γ^t reach · R̄,    frontier = Σ reach at unplanned places,

and the policy is acceptable when er <= Δ(E g) up to the one tolerance of `vulcan.tolerance`. Of an
incomplete policy, reward and risk are those up to its frontier.

A randomised policy is followed the same way, from as many places as it has members: each has its
own nodes, and is reached at the start with the probability that is its weight.

The margin, how wrong the model's risks may be, is the business of `vulcan.certificates.margin`.

If an answer of the model differs from the one that the policy was made with, that is an error,
never a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from vulcan.certificates.margin import find_margin
from vulcan.certificates.problem import Problem
from vulcan.model.reader import ModelReader
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place, PolicyWalk, Way, describe_mismatch
from vulcan.runtime.garbage import pause_collection
from vulcan.sentinels import END, FAILED, UNPLANNED
from vulcan.tolerance import TOLERANCE

__all__ = ["Certificate", "Judgement", "certify"]

Number = float | Fraction


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
    walk = PolicyWalk(policy, reader)
    with pause_collection():
        number = _to_fraction if exact else float
        levels = list(_follow_levels(walk, reader, number))
    if reader.fingerprint() != policy.about.fingerprint:
        raise describe_mismatch(policy.about, problem.model)
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
        evaluations=walk.evaluations,
    )


def _to_fraction(number: Any) -> Fraction:
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def _to_exact_weights(weights: Sequence[float]) -> Sequence[Number]:
    """Return weights that sum to 1 without a rounding; what is missing goes to the largest."""
    exact = [Fraction(weight) for weight in weights]
    # The largest can bear it: a weight of less than the tolerance might become negative.
    exact[exact.index(max(exact))] += 1 - sum(exact)
    return exact


def _follow_levels(
    walk: PolicyWalk, reader: ModelReader, number: Callable[[Any], Any]
) -> Iterator[Level]:
    """Yield the levels; the first has one place per member."""
    places = {place: place.member for place in walk.begin()}
    weight = number(1)
    for level_number in range(reader.levels):
        if not places:
            return
        level = Level(weight)
        following: dict[Place, int] = {}
        for place in places:
            _add_place(level, place, walk.follow(place, level_number), following, number)
        yield level
        places = following
        weight *= number(reader.discount_after(level_number))


def _add_place(
    level: Level,
    place: Place,
    ways: Sequence[Way],
    following: dict[Place, int],
    number: Callable[[Any], Any],
) -> None:
    """Add a place and the ways from it; histories that meet go on as one."""
    risk = failing_reward = safe_reward = unplanned = number(0)
    for outcome, child in ways:
        probability = number(outcome.probability)
        part = probability * number(outcome.reward)
        if child == FAILED:
            risk += probability
            failing_reward += part
            continue
        safe_reward += part
        if child == UNPLANNED:
            unplanned += probability
        elif child != END:
            level.source.append(len(level.risk))
            target = Place(place.member, child, outcome.state)
            level.target.append(following.setdefault(target, len(following)))
            level.probability.append(probability)
    level.risk.append(risk)
    level.failing_reward.append(failing_reward)
    level.safe_reward.append(safe_reward)
    level.unplanned.append(unplanned)


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
