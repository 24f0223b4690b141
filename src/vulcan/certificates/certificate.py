"""Certificates: what a policy earns and risks, from the model alone.

A certificate is computed from the model and the policy by the plain code of this room, which shares
no code with any search: only the reader that checks the model's answers, the walk along a policy
(`vulcan.policies.walk`), and the bound. Histories are followed level by level
(`vulcan.certificates.levels`; those of large policies all at once, `vulcan.certificates.sweep`),
and the policy is acceptable when er <= Δ(E g) up to the one tolerance of `vulcan.tolerance`. Of an
incomplete policy, reward and risk are those up to its frontier.

A randomised policy is followed the same way, from as many places as it has members: each has its
own nodes, and is reached at the start with the probability that is its weight.

The margin, how wrong the model's risks may be, is the business of `vulcan.certificates.margin`.

If an answer of the model differs from the one that the policy was made with, that is an error,
never a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from vulcan.certificates.levels import Level, Number, Watch, add_up, follow_levels
from vulcan.certificates.margin import find_margin
from vulcan.certificates.problem import Problem, require_problem
from vulcan.certificates.sweep import sweep_policy
from vulcan.model.careful import CarefulReader
from vulcan.model.reader import ModelReader
from vulcan.policies.comparison import describe_mismatch
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import PolicyWalk
from vulcan.runtime.garbage import pause_collection
from vulcan.tolerance import TOLERANCE

__all__ = ["Certificate", "Judgement", "certify", "follow_policy"]

LARGE: Final = 2_000
"""Policies of this many decisions are followed level by level at once."""


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

    def __repr__(self) -> str:
        numbers = {name: float(getattr(self, name)) for name in ("reward", "risk", "allowed")}
        told = ", ".join(f"{name} {number:.6g}" for name, number in numbers.items())
        verdict = "safe" if self.safe else "not safe" if self.complete else "not complete"
        return f"<Certificate: {verdict}, {told}{', exact' if self.exact else ''}>"

    def _repr_html_(self) -> str:
        from vulcan.certificates.text import write_certificate

        return write_certificate(self)


def certify(
    problem: Problem, policy: AnyPolicy, *, exact: bool = False, watch: Watch | None = None
) -> Certificate:
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
    watch
        Told which share is done, again and again.

    Returns
    -------
    Certificate
        It may say that the policy does not pass; look at `safe`.

    Raises
    ------
    OptionError
        If the problem is not one: a model alone has no bound to judge by.
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that the policy was made for, or no longer answers the same.
    """
    require_problem(problem, call="certify(Problem(model, {bound}), policy)")
    reader = CarefulReader(problem.model)
    start = _to_exact_weights(policy.weights) if exact else policy.weights
    with pause_collection():
        levels, evaluations = follow_policy(policy, reader, exact, watch)
    if reader.fingerprint() != policy.about.fingerprint:
        raise describe_mismatch(policy.about, problem.model)
    reward, risk, frontier = add_up(levels, start, exact)
    bound = problem.risk_bound
    allowed = bound.exact(Fraction(reward)) if exact else bound(float(reward))
    return Certificate(
        reward=reward,
        risk=risk,
        allowed=allowed,
        margin=float(find_margin(levels, start, bound)),
        complete=policy.complete,
        frontier=frontier,
        exact=exact,
        evaluations=evaluations,
    )


def follow_policy(
    policy: AnyPolicy, reader: ModelReader, exact: bool = False, watch: Watch | None = None
) -> tuple[list[Level], int]:
    """Return the levels of a policy, and how many (state, action) the model was asked."""
    watch = watch or (lambda share: None)
    if not exact and len(policy) >= LARGE:
        swept = sweep_policy(policy.members, reader, watch)
        if swept is not None:
            return swept
    walk = PolicyWalk(policy, reader)
    levels = list(follow_levels(walk, reader, _to_fraction if exact else float, watch))
    return levels, walk.evaluations


def _to_fraction(number: Any) -> Fraction:
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def _to_exact_weights(weights: Sequence[float]) -> Sequence[Number]:
    """Return weights that sum to 1 without a rounding; what is missing goes to the largest."""
    exact = [Fraction(weight) for weight in weights]
    # The largest can bear it: a weight of less than the tolerance might become negative.
    exact[exact.index(max(exact))] += 1 - sum(exact)
    return exact
