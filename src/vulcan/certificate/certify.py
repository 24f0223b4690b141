"""Certificates: expected reward and risk of a policy, computed from the model alone.

A certificate is computed by the plain code of this room, which shares no code with any search: only
the reader that checks the model's outcomes, the walk along a policy (`vulcan.policy.walk`), and the
bound. The histories of the policy form a Markov chain (`vulcan.certificate.walk`), along which
reward and risk are summed (`vulcan.certificate.sums`). The histories of an incomplete policy are
followed up to its frontier.

Every number has an error bound: the true value is at most that far away. The reward lies in an
interval, which Δ maps to an interval of allowed risks. The verdict compares the intervals [er] and
[Δ]:

    safe              acceptable for all values in the intervals:
                      max er  <=  min Δ + TOLERANCE
    not safe          acceptable for none of them:      min er  >  max Δ + TOLERANCE
    too close to say  neither.

If floating point is too close to say, the sums are computed again in fractions, truncated to
`PLACES` binary places. That decides, unless the policy has more than `MOST_WAYS` transitions or
the bound is a function, whose values are rounded for any argument (`RiskBound.enclose`).

A randomised policy has one initial place for each member, reached with the probability that is the
weight of the member.

What may follow the frontier of an incomplete policy counts, if the policy records a bound on it
that the model confirms (`vulcan.certificate.walk`). Reward and risk are then those that hold
whatever follows.

`vulcan.certificate.margin` computes the margin: by how much the model's risks may be wrong.

Outcomes that differ from those the policy was computed with are an error, never a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Constant
from vulcan.certificate.hidden import unfold
from vulcan.certificate.margin import find_margin
from vulcan.certificate.sums import (
    Sum,
    Sums,
    add_up,
    add_up_charge,
    add_up_charge_exactly,
    add_up_exactly,
    find_risk_ahead,
)
from vulcan.certificate.walk import Chain, Watch, find_claims, follow_policy
from vulcan.constraints import Cost, RiskAhead, describe_unknown
from vulcan.errors import BoundError
from vulcan.model.belief import BeliefModel
from vulcan.model.keys import require_honest_keys
from vulcan.model.reader import StrictReader
from vulcan.numerics import ANY, TOLERANCE, Number, is_infinite, to_float
from vulcan.parameters import knows_parameters
from vulcan.policy.policy import AnyPolicy, Policy, require_own_model, require_policy
from vulcan.policy.walk import Evaluations
from vulcan.problem import Problem, require_problem
from vulcan.runtime.formatting import (
    BAD,
    GOOD,
    build_card,
    build_table,
    show_probability,
    show_reward,
)
from vulcan.runtime.limits import pause_collection

BESIDE: Final = 1e-3  # how far the bound is verified beside the reward, relative to that and 1
PLACES: Final = (512, 8192)  # binary places of fractions: the second where the first is too coarse
MOST_WAYS: Final = 300_000  # policies with more transitions are not evaluated in fractions


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Expected reward and risk of a policy, whether certified or estimated.

    Attributes
    ----------
    reward, risk
        Expected lifetime reward and probability of failure, up to the frontier if there is one. If
        it is bounded: at least this reward, and at most this risk, with all that follows.
    allowed
        The risk that the bound accepts for this reward.
    complete
        Whether every safe history has an action until it ends.
    frontier
        Probability of reaching a history without a planned action; 0 for a complete policy.
    beyond
        What bounds the continuations there: "any continuation", or the model's claim for its
        "default action"; None if nothing does.
    """

    reward: Number
    risk: Number
    allowed: Number
    complete: bool
    frontier: Number
    beyond: str | None = None

    @property
    def slack(self) -> Number:
        """The additional risk that would be accepted: allowed - risk."""
        return self.allowed - self.risk

    @property
    def passes(self) -> bool:
        """Whether the risk is acceptable for the reward."""
        return self.slack >= -TOLERANCE

    @property
    def safe(self) -> bool:
        """Whether the policy is safe: it passes, and is complete or bounded beyond its frontier."""
        return self.passes and (self.complete or self.beyond is not None)


@dataclass(frozen=True, kw_only=True)
class Limited:
    """What a certificate says of one constraint beside the risk bound.

    Attributes
    ----------
    quantity
        What is limited, such as "fuel", "risk(collision)" or "risk ahead".
    bound
        The limit, as a function of expected reward.
    value, allowed
        The expected total, the probability, or the largest risk ahead, and what is allowed for the
        policy's reward.
    value_error, allowed_error
        Bounds on the distance to the true number.
    decided
        Whether it is acceptable; None if the errors are too large to say.
    remark
        That no outcome of the policy has this cost or event, with a close name that one has.
    """

    quantity: str
    bound: RiskBound
    value: Number
    value_error: Number
    allowed: Number
    allowed_error: Number
    decided: bool | None
    remark: str = ""

    @property
    def slack(self) -> Number:
        """What is left of the limit: allowed - value."""
        return self.allowed - self.value

    @property
    def passes(self) -> bool:
        """Whether the value is acceptable, for all values within the errors."""
        return self.decided is True


@dataclass(frozen=True, kw_only=True)
class Certificate(Judgement):
    """Expected reward and risk of a policy, with error bounds and the verdict.

    For a randomised policy these are expectations over the draw of the member. It may pass
    although a member alone does not.

    Attributes
    ----------
    reward, risk, allowed, complete, frontier, beyond
        As in `Judgement`.
    reward_error, risk_error, allowed_error, frontier_error
        Bounds on the distance to the true number, from rounding here and in the bound.
    margin
        The bound holds for every common factor on all immediate risks from 1 to this one; inf if
        no factor breaks it, even if every risky action failed surely. Nothing is claimed for
        factors below 1. For a policy that does not pass: the bound would hold for every factor
        from 0 to this one; 0 if none is known, as where an action fails surely.
    exact
        Whether the numbers are rationals, computed without rounding.
    refined
        Whether floating point was too close to say, so that fractions were used.
    decided
        Whether the policy passes according to the fractions; None if they were not used or did not
        decide. The numbers above are the fractions rounded to floats, which may not show it.
    evaluations
        Number of (state, action) pairs of the policy that were evaluated. The fingerprint also
        evaluates the other actions of the initial state.
    constraints
        What is said of each further constraint of the problem, in their order.
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
    constraints: tuple[Limited, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether all that is limited is acceptable, for all values within the errors."""
        return self.risk_verdict is True and all(limited.passes for limited in self.constraints)

    @property
    def undecided(self) -> bool:
        """Whether the errors are too large to say if all that is limited is acceptable."""
        verdicts = [self.risk_verdict, *(limited.decided for limited in self.constraints)]
        return None in verdicts and False not in verdicts

    @property
    def risk_verdict(self) -> bool | None:
        """Whether the risk is acceptable for the reward; None if the errors are too large."""
        if self.decided is not None:
            return self.decided
        allowed, risk = Sum(self.allowed, self.allowed_error), Sum(self.risk, self.risk_error)
        return decide(allowed, risk)

    def __repr__(self) -> str:
        numbers = {name: to_float(getattr(self, name)) for name in ("reward", "risk", "allowed")}
        shown = ", ".join(f"{name} {number:.6g}" for name, number in numbers.items())
        verdict = judge_certificate(self)[0].removeprefix("✓ ").removeprefix("✗ ")
        return f"<Certificate: {verdict}, {shown}{', exact' if self.exact else ''}>"

    def _repr_html_(self) -> str:
        verdict, colour = judge_certificate(self)
        exact = "exact, in fractions" if self.exact else "from the model alone"
        rows = build_table((), describe_certificate(self))
        return build_card(verdict, rows, remark=exact, colour=colour)


@knows_parameters
def certify(
    problem: Problem, policy: AnyPolicy, *, exact: bool = False, watch: Watch = lambda _: None
) -> Certificate:
    """Compute the certificate of a policy.

    Parameters
    ----------
    problem
        Model and risk bound. Give the bound that you accept, not `policy.about.risk_bound`, which
        the author of a policy file wrote into it.
    policy
        Any policy, deterministic or randomised, from any source. A randomised policy is judged as
        a whole, before the draw: it may pass although a member alone does not.
    exact
        Compute in fractions; slow, meant for small policies. A bound that is a function is still
        evaluated in floating point. By default fractions are used only if floating point can't
        decide. The weights of a randomised policy sum to 1 up to rounding: the largest is replaced
        by 1 minus the others.
    watch
        Called repeatedly with the completed share of the work.

    Returns
    -------
    Certificate
        The policy may fail the bound, or be too close to say; check `safe`.

    Raises
    ------
    ModelError
        If the model breaks a rule.
    BoundError
        If the bound has no value for the policy's reward, or is not concave and nondecreasing
        beside it.
    MismatchError
        If the policy was computed for another model, or the model has changed since.
    """
    require_problem(problem)
    require_policy(policy)
    return Certifier(problem).certify(policy, exact, watch)


class Certifier:
    """Certifies policies of a problem, one after the other.

    What the model has answered for one policy is not evaluated again for the next one: policies of
    a growing plan have most decisions in common. The answers are those of this certifier alone.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._reader = problem, StrictReader(problem.model)
        require_honest_keys(self._reader)
        self._known: Evaluations | None = None

    def certify_next(self, policy: Policy) -> Certificate:
        """Return the certificate of a policy, and keep what the model has answered."""
        if isinstance(self._reader.model, BeliefModel):
            return self.certify(policy)
        if self._known is None or not self._known.turn_to(policy):
            self._known = Evaluations(policy, self._reader, self._problem.constraints)
        return self.certify(policy, known=self._known)

    def certify(
        self,
        policy: AnyPolicy,
        exact: bool = False,
        watch: Watch = lambda _: None,
        known: Evaluations | None = None,
    ) -> Certificate:
        """Return the certificate of a policy, as `certify` does."""
        problem, reader = self._problem, self._reader
        claims = find_claims(policy, reader, known)
        with pause_collection():
            leave = None if claims is None else claims.enter
            constraints = problem.constraints
            chain, evaluations = follow_policy(policy, reader, watch, leave, constraints, known)
        require_own_model(policy.about, reader)
        if chain.sights is not None:
            for member in policy.members:
                alone = chain
                if member is not policy:
                    alone, _ = follow_policy(member, reader, constraints=problem.constraints)
                member.unfolded = unfold(member, alone)
        planned = chain  # what is charged beyond the frontier is not known
        if claims is not None:
            chain = claims.close(chain)
        start = chain.start(_to_exact_weights(policy.weights)) if len(chain) else []
        bound = problem.risk_bound
        (reward, risk, frontier), allowed, verdict, refined = _add_up(chain, start, bound, exact)
        for limit in (bound, *(constraint.bound for constraint in problem.constraints)):
            _verify_at(limit, to_float(reward.value))
        limited = tuple(
            _limit(problem, number, planned, start, reward, exact, claims is not None)
            for number in range(len(problem.constraints))
        )
        numbers = {"reward": reward, "risk": risk, "frontier": frontier, "allowed": allowed}
        values: dict[str, Any] = {name: number.value for name, number in numbers.items()}
        return Certificate(
            **values,
            **{f"{name}_error": number.error for name, number in numbers.items()},
            margin=find_margin(chain, start, bound, reward.value, verdict is True),
            complete=policy.complete,
            beyond=None if claims is None else claims.claim,
            exact=exact,
            refined=refined,
            decided=verdict if refined else None,
            evaluations=evaluations,
            constraints=limited,
        )


def _limit(
    problem: Problem,
    number: int,
    chain: Chain,
    start: Sequence[Number],
    reward: Sum,
    exact: bool,
    unknown: bool,
) -> Limited:
    """Return what can be said of a constraint; nothing if a part of the charges is `unknown`."""
    constraint = problem.constraints[number]
    ahead, once = isinstance(constraint, RiskAhead), not isinstance(constraint, Cost)

    def add_up_in(places: int | None) -> Sum:
        if ahead:
            return find_risk_ahead(chain, exact=True)
        return add_up_charge_exactly(chain, start, number, once, places)

    if exact:
        value = add_up_in(None)
    elif ahead:
        value = find_risk_ahead(chain, exact=False)
    else:
        value = add_up_charge(chain, start, number, once)
    allowed = _allow(constraint.bound, reward)
    decided = decide(allowed, value)
    small = not exact and not unknown and len(chain.source) <= MOST_WAYS
    for places in PLACES if small and decided is None else ():
        value = add_up_in(places)
        allowed = _allow(constraint.bound, add_up_exactly(chain, start, places)[0])
        decided = decide(allowed, value)
        if decided is not None:
            break
    if unknown:
        value, decided = Sum(value.value, math.inf), None
    if not exact:
        value, allowed = value.to_floats(), allowed.to_floats()
    return Limited(
        quantity=constraint.quantity,
        bound=constraint.bound,
        value=value.value,
        value_error=value.error,
        allowed=allowed.value,
        allowed_error=allowed.error,
        decided=decided,
        remark=describe_unknown(constraint, chain.quantities),
    )


def _add_up(
    chain: Chain, start: Sequence[Number], bound: RiskBound, exact: bool
) -> tuple[Sums, Sum, bool | None, bool]:
    """Return the sums, the allowed risk, the verdict, and whether it took fractions."""
    if exact:
        sums = reward, risk, _ = add_up_exactly(chain, start)
        allowed = _allow(bound, reward)
        return sums, allowed, decide(allowed, risk), False
    small = len(chain.source) <= MOST_WAYS
    sums = reward, risk, frontier = add_up(chain, start)
    try:
        allowed = _allow(bound, reward).to_floats()
    except BoundError:  # the bound may have no value at the rounded reward
        if not small:
            raise
        allowed = Sum(-math.inf, math.inf)
    verdict = decide(allowed, risk)
    if not small or verdict is not None:
        return sums, allowed, verdict, False
    for places in PLACES:
        sums = reward, risk, frontier = add_up_exactly(chain, start, places)
        allowed = _allow(bound, reward)
        verdict = decide(allowed, risk)  # before rounding to floats, which may not show it
        if verdict is not None or not any(number.error for number in sums):
            break
    floats = reward.to_floats(), risk.to_floats(), frontier.to_floats()
    return floats, allowed.to_floats(), verdict, True


def _allow(bound: RiskBound, reward: Sum) -> Sum:
    """Return the allowed risk for a reward, with its error."""
    exact = isinstance(reward.value, Fraction)
    allowed = bound.exact(Fraction(reward.value)) if exact else bound(float(reward.value))
    least, most = bound.enclose(*reward.enclose())
    if allowed == least == most:
        return Sum(allowed, 0)
    if any(map(is_infinite, (allowed, least, most))):
        return Sum(allowed, math.inf)
    exactly = Fraction(allowed)  # a float and a fraction would be subtracted as floats
    return Sum(allowed, max(exactly - Fraction(least), Fraction(most) - exactly))


def _verify_at(bound: RiskBound, reward: float) -> None:
    """Raise an error unless a bound is concave and nondecreasing on one side of a reward.

    The other side may lie outside of its domain, or beyond its maximum.
    """
    faults = []
    width = BESIDE * max(1.0, abs(reward))
    for end in (reward - width, reward + width):
        try:
            bound(end)
        except BoundError:  # outside of its domain
            continue
        try:
            bound.verify([reward, end])
        except BoundError as error:
            faults.append(error)
        else:
            return
    for fault in faults:
        raise fault


def decide(allowed: Sum, risk: Sum) -> bool | None:
    """Return whether a risk is acceptable; None if that is too close to say."""
    (least, most), (lowest, highest) = allowed.enclose(), risk.enclose()
    if least - highest >= -TOLERANCE:
        return True
    return None if most - lowest >= -TOLERANCE else False


def _to_exact_weights(weights: Sequence[float]) -> list[Fraction]:
    """Return weights that sum to exactly 1; the largest absorbs the difference."""
    exact = [Fraction(weight) for weight in weights]
    # A weight below the tolerance might become negative.
    exact[exact.index(max(exact))] += 1 - sum(exact)
    return exact


NO_ROOM: Final = 1e-6  # a margin closer to 1 than this is indistinguishable from rounding
VERDICTS: Final = {True: "acceptable", False: "NOT ACCEPTABLE", None: "TOO CLOSE TO SAY"}
WORTH_SHOWING: Final = 1e-9  # errors above this are shown, relative to the number or 1


def describe_certificate(
    certificate: Certificate, problem: Problem | None = None, nodes: int | None = None
) -> list[tuple[str, str]]:
    """Return the rows of a readable table: pairs of a name and a text.

    The problem, and the number of decisions of the policy, are shown if they are known.
    """
    risk, allowed = (show_probability(to_float(x)) for x in (certificate.risk, certificate.allowed))
    verdict = VERDICTS[certificate.risk_verdict]
    bound = "" if problem is None else f"  Δ(x) = {problem.risk_bound}"
    complete = "yes" if nodes is None else f"yes, {nodes:,} decision{'s' if nodes != 1 else ''}"
    if not certificate.complete:
        complete = describe_frontier(certificate)
    reward = show_reward(to_float(certificate.reward))
    return [
        ("reward", f"{reward}{_show_error(certificate, 'reward')}"),
        ("risk", f"{risk}{_show_error(certificate, 'risk')}  {verdict}"),
        ("allowed risk", f"{allowed}{_show_error(certificate, 'allowed')}{bound}"),
        ("slack", f"{to_float(certificate.slack):.3g}  {_describe_margin(certificate)}"),
        *map(describe_limited, certificate.constraints),
        ("complete", complete),
    ]


def describe_limited(limited: Limited) -> tuple[str, str]:
    """Return the row of a constraint."""
    number, error = to_float(limited.value), to_float(limited.value_error)
    value, allowed = show_reward(number), show_reward(to_float(limited.allowed))
    if error == math.inf:
        return limited.quantity, f"{value} inside the plan, UNKNOWN beyond its frontier"
    near = (
        f" ± {error:.1g}" if error > WORTH_SHOWING * max(1.0, abs(to_float(limited.value))) else ""
    )
    bound = "" if isinstance(limited.bound, Constant) else f"  Δ(x) = {limited.bound}"
    remark = f"; {limited.remark}" if limited.remark else ""
    verdict = f"{VERDICTS[limited.decided]}{remark}"
    return limited.quantity, f"{value}{near} of {allowed}{bound}  {verdict}"


def describe_frontier(certificate: Judgement) -> str:
    """Return what is known of an incomplete policy beyond its frontier, in words."""
    if certificate.beyond is None:
        return f"no: {to_float(certificate.frontier):.4g} is the probability of leaving the plan"
    frontier = show_probability(to_float(certificate.frontier))
    verdict = "safe" if certificate.passes else "bounded"
    if certificate.beyond == ANY:
        return f"no: {verdict} whatever happens beyond its frontier, probability {frontier}"
    return (
        f"no: {verdict} if the default action is followed beyond its frontier, probability "
        f"{frontier}; risk and reward there are claimed by the model"
    )


def _show_error(certificate: Certificate, name: str) -> str:
    """Return the error bound of a number as text; empty if it is negligible."""
    error = to_float(getattr(certificate, f"{name}_error"))
    visible = WORTH_SHOWING * max(1.0, abs(to_float(getattr(certificate, name))))
    return f" ± {error:.1g}" if certificate.undecided or error > visible else ""


def list_excesses(certificate: Certificate) -> list[str]:
    """Return in words what is not acceptable, or else what is too close to say."""
    verdicts = {"risk": certificate.risk_verdict}
    verdicts |= {limited.quantity: limited.decided for limited in certificate.constraints}
    worst, much = (None, "too close to what") if certificate.undecided else (False, "more than")
    limits = {"risk": "the bound allows"}
    return [
        f"its {name} is {much} {limits.get(name, 'is allowed')} for its reward"
        for name, verdict in verdicts.items()
        if verdict is worst
    ]


def judge_certificate(certificate: Certificate) -> tuple[str, str]:
    """Return the verdict in a few words, and its colour."""
    if certificate.safe:
        return "✓ safe", GOOD
    if certificate.undecided and (certificate.complete or certificate.beyond is not None):
        return "✗ too close to say", BAD
    return ("✗ not safe", BAD) if not certificate.passes else ("✗ not complete", BAD)


def _describe_margin(certificate: Certificate) -> str:
    """Return the margin in words: by which common factor the model's risks may be wrong."""
    margin = certificate.margin
    if certificate.risk == 0:
        return "no risk at all"
    if certificate.risk_verdict is None:
        return "too close to decide in floating point"
    if margin == 0:
        return "not known to be acceptable for any smaller failure probabilities"
    if margin == math.inf:
        return "still acceptable if every risky action failed surely"
    if not certificate.risk_verdict:
        return f"acceptable if every failure probability were {margin:.4g} times as large"
    if margin < 1 + NO_ROOM:
        return "not acceptable if failure probabilities grow at all"
    if margin < 1.001:
        grown = f"{100 * (margin - 1):.2g} %"
        return f"still acceptable if every failure probability grows by up to {grown}"
    return f"still acceptable if every failure probability is up to {margin:.4g} times as large"
