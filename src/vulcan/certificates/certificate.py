"""Certificates: what a policy earns and risks, from the model alone.

A certificate is computed from the model and the policy by the plain code of this room, which shares
no code with any search: only the reader that checks the model's answers, the walk along a policy
(`vulcan.policies.walk`), and the bound. Its histories make a chain (`vulcan.certificates.chain`;
that of a large policy level by level at once, `vulcan.certificates.sweep`), along which reward and
risk are added up (`vulcan.certificates.sums`). Of an incomplete policy they are those up to its
frontier.

Every number comes with an error: the true one is at most that far from it. The reward lies in an
interval, Δ makes another one of that, and the two that are compared in the end are [er] and [Δ]:

    safe              the risk is acceptable, wherever in their intervals the two lie:
                      max er  <=  min Δ + TOLERANCE
    not safe          it is not, wherever they lie:     min er  >  max Δ + TOLERANCE
    too close to say  neither.

What is too close to say in floating point is computed again in fractions, of which `PLACES` binary
places are kept. That settles it, unless the policy is larger than `MOST_WAYS`, or the bound is a
function, which rounds its values whatever it is given (`RiskBound.enclose`).

A randomised policy is followed the same way, from as many places as it has members: each has its
own nodes, and is reached at the start with the probability that is its weight.

The margin, how wrong the model's risks may be, is the business of `vulcan.certificates.margin`.

If an answer of the model differs from the one that the policy was made with, that is an error,
never a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

from vulcan.bounds.base import RiskBound
from vulcan.certificates.chain import Chain, Watch, follow_places
from vulcan.certificates.margin import find_margin
from vulcan.certificates.problem import Problem, require_problem
from vulcan.certificates.sums import Sum, Sums, add_up, add_up_exactly
from vulcan.certificates.sweep import sweep_policy
from vulcan.errors import BoundError
from vulcan.model.careful import CarefulReader
from vulcan.model.reader import ModelReader
from vulcan.policies.comparison import describe_mismatch
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import PolicyWalk
from vulcan.rounding import Number, is_infinite, to_float
from vulcan.runtime.garbage import pause_collection
from vulcan.tolerance import TOLERANCE

__all__ = ["Certificate", "Judgement", "certify", "follow_policy"]

LARGE: Final = 2_000
"""Policies of this many decisions are followed level by level at once."""

PLACES: Final = (512, 8192)
"""Binary places that are kept where fractions decide, and where that many can't tell."""

MOST_WAYS: Final = 300_000
"""Outcomes of a policy, over all its places, beyond which fractions would take too long."""


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
    complete
        Whether every safe history has an action until it ends.
    frontier
        Probability of reaching a history that is not planned; 0 for a complete policy.
    reward_error, risk_error, allowed_error, frontier_error
        How far the true number may be from the one given: what rounding can have done to it, and
        to the bound.
    margin
        The bound holds for every common factor on all immediate risks from 1 to this one; inf where
        no factor breaks it. Nothing is claimed of factors below 1. Of a policy that does not pass,
        it would hold for every factor from 0 to this one; 0 where none is known.
    exact
        Whether the numbers are rationals, computed without rounding.
    refined
        Whether floating point was too close to say, and fractions were used to decide.
    decided
        What they decided: whether the policy passes. None where they were not used, or could not
        say either. The numbers above are the fractions as floats, which may be too coarse for it.
    evaluations
        How many (state, action) of the policy the model was asked. For the fingerprint the other
        actions of the initial state were asked as well.
    """

    reward_error: Number
    risk_error: Number
    allowed_error: Number
    frontier_error: Number
    margin: float
    exact: bool
    refined: bool
    decided: bool | None
    evaluations: int

    @property
    def passes(self) -> bool:
        """Whether the risk is acceptable for the reward, whatever rounding did to the two."""
        return self._verdict is True

    @property
    def undecided(self) -> bool:
        """Whether rounding decides if the risk is acceptable: it is too close to say."""
        return self._verdict is None

    @property
    def _verdict(self) -> bool | None:
        if self.decided is not None:
            return self.decided
        allowed, risk = Sum(self.allowed, self.allowed_error), Sum(self.risk, self.risk_error)
        return decide(allowed, risk)

    def __repr__(self) -> str:
        numbers = {name: to_float(getattr(self, name)) for name in ("reward", "risk", "allowed")}
        told = ", ".join(f"{name} {number:.6g}" for name, number in numbers.items())
        verdict = "safe" if self.safe else "not safe" if self.complete else "not complete"
        if self.undecided and self.complete:
            verdict = "too close to say"
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
        still evaluated in floating point. Without this, rationals are used only where floating
        point can't say whether the policy passes. The weights of a randomised policy sum to 1 up
        to a rounding: each is taken as it is, and the largest as 1 minus the others.
    watch
        Told which share is done, again and again.

    Returns
    -------
    Certificate
        It may say that the policy does not pass, or that this is too close to say; look at `safe`.

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
    with pause_collection():
        chain, evaluations = follow_policy(policy, reader, exact, watch)
    if reader.fingerprint() != policy.about.fingerprint:
        raise describe_mismatch(policy.about, problem.model)
    start = _to_exact_weights(policy.weights) if len(chain) else []
    bound = problem.risk_bound
    found = _add_up(chain, start, bound, exact)
    reward, risk, frontier = found.sums
    numbers: dict[str, Any] = {
        "reward": reward,
        "risk": risk,
        "allowed": found.allowed,
        "frontier": frontier,
    }
    return Certificate(
        **{name: number.value for name, number in numbers.items()},
        **{f"{name}_error": number.error for name, number in numbers.items()},
        margin=find_margin(chain, start, bound, reward.value, found.verdict is True),
        complete=policy.complete,
        exact=exact,
        refined=found.refined,
        decided=found.verdict if found.refined else None,
        evaluations=evaluations,
    )


def follow_policy(
    policy: AnyPolicy, reader: ModelReader, exact: bool = False, watch: Watch | None = None
) -> tuple[Chain, int]:
    """Return the chain of a policy, and how many (state, action) the model was asked."""
    watch = watch or (lambda share: None)
    if not exact and len(policy) >= LARGE:
        swept = sweep_policy(policy.members, reader, watch)
        if swept is not None:
            return swept
    walk = PolicyWalk(policy, reader)
    return follow_places(walk, reader, watch), walk.evaluations


class _Found(NamedTuple):
    """What was added up, what is allowed for it, the verdict, and whether that took fractions."""

    sums: Sums
    allowed: Sum
    verdict: bool | None
    refined: bool


def _add_up(chain: Chain, start: Sequence[Number], bound: RiskBound, exact: bool) -> _Found:
    if exact:
        sums = add_up_exactly(chain, start)
        allowed = _allow(bound, sums.reward)
        return _Found(sums, allowed, decide(allowed, sums.risk), refined=False)
    small = len(chain.source) <= MOST_WAYS
    sums = add_up(chain, start)
    try:
        allowed = _allow(bound, sums.reward).to_floats()
    except BoundError:  # where the reward is rounded to, the bound may have no value
        if not small:
            raise
        allowed = Sum(-math.inf, math.inf)
    verdict = decide(allowed, sums.risk)
    if not small or verdict is not None:
        return _Found(sums, allowed, verdict, refined=False)
    for places in PLACES:
        sums = add_up_exactly(chain, start, places)
        allowed = _allow(bound, sums.reward)
        verdict = decide(allowed, sums.risk)  # now: floats may be too coarse to say so
        if verdict is not None or not any(number.error for number in sums):
            break
    floats = Sums(*(number.to_floats() for number in sums))
    return _Found(floats, allowed.to_floats(), verdict, refined=True)


def _allow(bound: RiskBound, reward: Sum) -> Sum:
    """Return what a bound allows for a reward, and how far that may be off."""
    exact = isinstance(reward.value, Fraction)
    allowed = bound.exact(Fraction(reward.value)) if exact else bound(float(reward.value))
    least, most = bound.enclose(*reward.enclose())
    if allowed == least == most:
        return Sum(allowed, 0)
    if any(map(is_infinite, (allowed, least, most))):
        return Sum(allowed, math.inf)
    exactly = Fraction(allowed)  # a float and a fraction would be subtracted as floats
    return Sum(allowed, max(exactly - Fraction(least), Fraction(most) - exactly))


def decide(allowed: Sum, risk: Sum) -> bool | None:
    """Return whether a risk is acceptable; None where that is too close to say."""
    (least, most), (lowest, highest) = allowed.enclose(), risk.enclose()
    if least - highest >= -TOLERANCE:
        return True
    return None if most - lowest >= -TOLERANCE else False


def _to_exact_weights(weights: Sequence[float]) -> list[Fraction]:
    """Return weights that sum to 1 without a rounding; what is missing goes to the largest."""
    exact = [Fraction(weight) for weight in weights]
    # The largest can bear it: a weight of less than the tolerance might become negative.
    exact[exact.index(max(exact))] += 1 - sum(exact)
    return exact
