"""Certificates: what a policy earns and risks, from the model alone.

A certificate is computed from the model and the policy by the plain code of this file, which
shares no code with any search: only the reader that checks the model's answers, and the bound.
Histories are followed level by level. With reach(node, state) the probability of being there,

    er = Σ reach · r,    E g = Σ γ^t reach · R̄,    frontier = Σ reach at unplanned places,

and the policy is acceptable when er <= Δ(E g) up to the one tolerance of `vulcan.tolerance`. Of an
incomplete policy, reward and risk are those up to its frontier.

The *margin* is the largest common factor κ on all immediate risks up to which the bound holds: each
r becomes min(1, κ r), and the safe outcomes share what is left. It says how wrong the model's risks
may be, all in the same direction, before the policy is no longer acceptable. It is found by trying
factors, ever wider apart, and then to a relative 1e-7 between the last that held and the first that
did not.

The model is asked once for each (state, action) that the policy meets. If an answer differs from
the one the policy was made with, that is an error, never a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError, MismatchError
from vulcan.model import Outcome, describe_model, label_outcomes
from vulcan.policy import END, FAILED, UNPLANNED, Policy
from vulcan.problem import Problem
from vulcan.reader import ModelReader
from vulcan.tolerance import TOLERANCE

__all__ = ["Certificate", "certify"]

Number = float | Fraction


@dataclass(frozen=True)
class Certificate:
    """What a policy earns and risks, and whether the one is acceptable for the other.

    Attributes
    ----------
    reward, risk
        Expected lifetime reward and probability of failure, up to the frontier if there is one.
    allowed
        The risk that the bound accepts for this reward.
    slack
        allowed - risk.
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

    reward: Number
    risk: Number
    allowed: Number
    slack: Number
    margin: float
    complete: bool
    frontier: Number
    exact: bool
    evaluations: int

    @property
    def passes(self) -> bool:
        """Whether the risk is acceptable for the reward."""
        return self.slack >= -TOLERANCE

    @property
    def safe(self) -> bool:
        """Whether the policy may be called safe: it passes, and nothing in it is unplanned."""
        return self.passes and self.complete


class _Level:
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


def certify(problem: Problem, policy: Policy, *, exact: bool = False) -> Certificate:
    """Compute the certificate of a policy.

    Parameters
    ----------
    problem
        Model and risk bound to judge it by.
    policy
        Any policy, wherever it comes from.
    exact
        Compute with rationals. Slow, and meant for small policies. A bound that is a function is
        still evaluated in floating point.

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
    follower = _Follower(reader, policy, _to_fraction if exact else float)
    try:
        levels = list(follower.levels())
    except MismatchError as error:
        raise _describe_mismatch(policy, problem, f": {error}") from None
    if reader.fingerprint() != policy.about.fingerprint:
        raise _describe_mismatch(policy, problem, "")
    reward, risk, frontier = _evaluate(levels, exact)
    bound = problem.risk_bound
    allowed = bound.exact(Fraction(reward)) if exact else bound(float(reward))
    return Certificate(
        reward=reward,
        risk=risk,
        allowed=allowed,
        slack=allowed - risk,
        margin=_find_margin(levels, problem),
        complete=policy.complete,
        frontier=frontier,
        exact=exact,
        evaluations=follower.evaluations,
    )


def _to_fraction(number: Any) -> Fraction:
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def _describe_mismatch(policy: Policy, problem: Problem, detail: str) -> MismatchError:
    return MismatchError(
        f"this policy was made for {policy.about.model} (horizon {policy.about.horizon}); "
        f"{describe_model(problem.model)} is another, or no longer answers the same{detail}"
    )


class _Follower:
    """Follows every history of a policy through a model."""

    def __init__(self, reader: ModelReader, policy: Policy, number: Callable[[Any], Any]) -> None:
        self.reader = reader
        self.policy = policy
        self.number = number
        self.evaluations = 0
        self._answers: dict[tuple[Any, str], list[Outcome]] = {}

    def levels(self) -> Iterator[_Level]:
        """Yield the levels; places with the same node and state are one."""
        places: dict[tuple[int, Any], int] = {}
        if len(self.policy):
            places[0, self.reader.root] = 0
        else:
            self._require_end(self.reader.root)
        weight = self.number(1)
        for number in range(self.reader.levels):
            if not places:
                return
            level = _Level(weight)
            following: dict[tuple[int, Any], int] = {}
            for node, state in places:
                self._follow(level, node, state, following, number + 1 == self.reader.levels)
            yield level
            places = following
            weight *= self.number(self.reader.discount_after(number))

    def _follow(
        self,
        level: _Level,
        node: int,
        state: Any,
        following: dict[tuple[int, Any], int],
        last: bool,
    ) -> None:
        risk = failing_reward = safe_reward = unplanned = self.number(0)
        for outcome, child in self._outcomes(node, state):
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
                level.target.append(following.setdefault((child, outcome.state), len(following)))
                level.probability.append(probability)
        level.risk.append(risk)
        level.failing_reward.append(failing_reward)
        level.safe_reward.append(safe_reward)
        level.unplanned.append(unplanned)

    def _outcomes(self, node: int, state: Any) -> Iterator[tuple[Outcome, int]]:
        """Yield the model's outcomes at a place, each with what the policy does next."""
        policy = self.policy
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


def _evaluate(levels: list[_Level], exact: bool) -> tuple[Number, Number, Number]:
    """Return expected reward, risk and the probability of reaching the frontier."""
    total = sum if exact else math.fsum
    rewards: list[Number] = []
    risks: list[Number] = []
    unplanned: list[Number] = []
    reach: list[Number] = [Fraction(1) if exact else 1.0]
    for level in levels:
        arrived: list[list[Number]] = [[] for _ in range(max(level.target, default=-1) + 1)]
        for place, (here, risk) in enumerate(zip(reach, level.risk, strict=False)):
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


class _Scaled:
    """Reward and risk of the same policy with every immediate risk times a factor."""

    def __init__(self, levels: list[_Level]) -> None:
        self._weights = [float(level.weight) for level in levels]
        self._sources = [np.array(level.source, int) for level in levels]
        self._targets = [np.array(level.target, int) for level in levels]
        self._probabilities = [_floats(level.probability) for level in levels]
        self._risks = [_floats(level.risk) for level in levels]
        self._failing = [_floats(level.failing_reward) for level in levels]
        self._safe = [_floats(level.safe_reward) for level in levels]

    def smallest_risk(self) -> float:
        """Return the smallest positive immediate risk; inf without any."""
        risks = np.concatenate(self._risks)
        return float(np.min(risks, where=risks > 0, initial=math.inf))

    def evaluate(self, factor: float) -> tuple[float, float]:
        """Return reward and risk under a factor."""
        reward = risk = 0.0
        reach: NDArray[np.float64] = np.ones(len(self._risks[0]))
        for k, risks in enumerate(self._risks):
            scaled = np.minimum(1.0, factor * risks)
            more = np.divide(scaled, risks, out=np.zeros_like(risks), where=risks > 0)
            less = np.divide(1 - scaled, 1 - risks, out=np.zeros_like(risks), where=risks < 1)
            risk += float(reach @ scaled)
            reward += self._weights[k] * float(
                reach @ (more * self._failing[k] + less * self._safe[k])
            )
            source = self._sources[k]
            arriving = reach[source] * less[source] * self._probabilities[k]
            following = len(self._risks[k + 1]) if k + 1 < len(self._risks) else 0
            reach = np.bincount(self._targets[k], arriving, following).astype(float)
        return reward, risk


def _floats(numbers: list[Number]) -> NDArray[np.float64]:
    return np.array([float(number) for number in numbers])


# Factors to try from 1 upwards: densely where it matters, and then ever wider apart.
FACTORS: Final = (
    *np.geomspace(1.0, 2.0, 16),
    *np.geomspace(2.0, 10.0, 10)[1:],
    *np.geomspace(10.0, 1e12, 40)[1:],
)


def _find_margin(levels: list[_Level], problem: Problem) -> float:
    """Return the largest factor up to which the bound held at every factor that was tried."""
    if not levels:
        return math.inf
    scaled = _Scaled(levels)
    certified, _ = scaled.evaluate(1.0)

    def holds(factor: float) -> bool:
        reward, risk = scaled.evaluate(factor)
        try:
            allowed = problem.risk_bound(reward)
            # Far from any reward that a policy has, the function need not be a bound any more.
            most = problem.risk_bound(certified) if reward < certified else math.inf
        except BoundError:
            return False
        return risk <= min(allowed, most) + TOLERANCE

    if not holds(1.0):
        tried = np.linspace(0.0, 1.0, 16).tolist()
        if not holds(0.0):
            return 0.0
    else:
        # Beyond this every risky action fails for sure, and nothing changes any more.
        most = 1 / max(scaled.smallest_risk(), FACTORS[-1] ** -1)
        tried = [*(factor for factor in FACTORS if factor < most), max(most, 1.0)]
    broken = next((k for k, factor in enumerate(tried) if k and not holds(factor)), None)
    if broken is None:
        return math.inf
    low, high = float(tried[broken - 1]), float(tried[broken])
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
