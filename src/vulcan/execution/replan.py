"""Replanning during a mission, within the guarantee given at its start.

The rest of the mission is a problem of its own (`Rest`), with a risk bound of its
own: the remaining risk of the old plan, plus what the run's account allows beyond it. The new plan
is followed if the account allows it and it is better; else the run continues unchanged.

**The account** of a run is the risk that it may take beyond its plan without breaking the guarantee
given at its start. A plan with reward y₀ and risk x₀ keeps x₀ <= Δ(y₀). Somewhere on the way, after
a history that happens with probability p, its continuation (risk x, reward g, both given that
history, rewards as seen from the start) is replaced by another (x', g'): the whole then risks p (x'
- x) more and earns p (g' - g) more. Each run keeps an account of two numbers,

    slack   risk that may still be added; Δ(y₀) - x₀ at first
    room    extra reward that may still be exchanged for risk; M - y₀ at first, for any M > y₀

and a rate d, the slope of the chord of Δ from y₀ to M. A replacement is allowed if

    g' >= g  and  x' <= x + slack + d c,    c = min(room, g' - g),

and is entered as slack += x + d c - x', room -= c. Where the line of slope d through Δ(y₀) is not
above Δ to the left of y₀ either, g' may also be smaller, by as much as is spare (`lossy`). Then the
whole keeps er <= Δ(E g), however often, wherever and however differently runs replan:
docs/theory/proofs.md has the proof.

Where Δ is straight the rate is its slope, and nothing limits the room. Where a plan is bounded
beyond its frontier, risk and reward of a continuation are these bounds.

**Further constraints** have an account each, in which x is what a continuation is still charged (an
event that has happened is charged no more). All of them have to allow a replacement. A cap on the
risk ahead has one for every history that was passed, with slack x̄ - er there and no rate; all are
charged alike, so that the least is kept. The new plan keeps the cap at its own histories as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Constant, Linear, PiecewiseLinear, Straight
from vulcan.bounds.parse import read_bound
from vulcan.certificate.certify import Certificate
from vulcan.certificate.sums import Sum, add_up_charge
from vulcan.certificate.walk import follow_policy
from vulcan.constraints import Constraint, Cost, Risk, RiskAhead
from vulcan.errors import BoundError, OptionError, PolicyError
from vulcan.model.arrays import ArrayModel
from vulcan.model.interface import Outcome, describe_model, stable_text
from vulcan.model.reader import ModelReader
from vulcan.numerics import TOLERANCE
from vulcan.parameters import knows_parameters
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify, read_solver
from vulcan.policy.policy import AnyPolicy
from vulcan.policy.run import Run
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, OnProgress
from vulcan.solvers.base import Options, Solver
from vulcan.solvers.finding import Worth

SHARE_OF_ROOM: Final = 0.1
"""Extra reward that may be exchanged for risk, as a share of the planned reward: a longer chord
is less steep, and plans are seldom so far from the optimum."""

ROUNDING: Final = TOLERANCE / 2
"""Amount by which all replacements together may exceed the account. A certificate tolerates twice
as much, which leaves the other half to its own rounding errors. A plan that used more of it from
the start may be replaced by one that risks no more."""


@dataclass(frozen=True)
class Account:
    """The risk that a run may take beyond its plan; see the head of this module."""

    slack: float  # risk that may still be added
    room: float  # reward that may still be exchanged for risk
    rate: float  # risk per reward
    risk_bound: RiskBound | None = None  # under which it was opened
    others: tuple[tuple[Constraint, Account], ...] = ()  # one for each further constraint
    spare: float = 0.0  # reward that may still be given up

    def replace(self, old: Worth, new: Worth, *, lossy: bool = False) -> Account | None:
        """Return the account after a replacement; None if that is not allowed.

        A `lossy` replacement may earn less than the old continuation.
        """
        gain = new.reward - old.reward
        if not gain >= (-self.spare if lossy else 0):
            return None
        exchanged = min(self.room, gain)
        slack = self.slack + old.risk + self.rate * exchanged - new.risk
        if slack < min(-ROUNDING, self.slack):
            return None
        spare = self.spare + exchanged
        return replace(self, slack=slack, room=self.room - exchanged, spare=spare)

    def allow(self, old: Worth, weight: float, least: float = 0.0, most: float = 1.0) -> RiskBound:
        """Return the risk that a new continuation may take, as the bound of its problem.

        The new problem discounts its rewards from here on: `weight` is the discount until here.
        Rewards below that of the old continuation don't matter, and risks need not be below `least`
        or above `most`.
        """
        # A search may use all of its tolerance (optimal mixtures do); the account has half of it.
        level = min(most, max(least, old.risk + max(0.0, self.slack) - ROUNDING))
        rate = self.rate * weight
        if rate <= 0 or self.room <= 0 or level >= most:
            return Constant(level)
        here, further = old.reward / weight, self.room / weight
        if most < 1:
            further = min(further, (most - level) / rate)
        if math.isinf(further):
            return Linear(rate, level - rate * here)
        if here + further == here:
            return Constant(level)
        return PiecewiseLinear([(here, level), (here + further, level + rate * further)])


def open_account(bound: RiskBound, whole: Worth) -> Account:
    """Return the account of a plan at its start, from its bound and its worth.

    A plan that is not within the bound has no slack; replacements then keep its distance from it.
    """
    reward, room = whole.reward, SHARE_OF_ROOM * abs(whole.reward)
    try:
        allowed = bound(reward)
    except BoundError:  # it has no value there
        allowed = -math.inf
    slack = allowed - whole.risk if allowed - whole.risk >= -TOLERANCE else 0.0
    if isinstance(bound, Straight):
        left, right, rate = bound.piece(reward)
        if right - reward >= room:
            return Account(slack, right - reward, rate, spare=reward - left)
    try:
        bound.verify([reward, reward + room])
        rate = (bound(reward + room) - allowed) / room if room > 0 else 0.0
    except BoundError:
        rate = 0.0
    if not (math.isfinite(rate) and rate > 0):
        return Account(slack, 0.0, 0.0)
    return Account(slack, room, rate)


@dataclass(frozen=True)
class Replan:
    """The outcome of a replan.

    Attributes
    ----------
    changed
        Whether the run follows a new plan now.
    before, after
        Risk and reward of the run's plan from here on, discounted from the start of the mission.
        None without a plan.
    kept
        Whether the guarantee given at the start still holds: not for a run that left its plan. It
        speaks of the bound of the first replan, where the policy does not know its own.
    result
        What the solver found for the rest of the mission, with rewards discounted from here on.
    """

    changed: bool
    before: Worth | None
    after: Worth | None
    kept: bool
    result: Result

    def __str__(self) -> str:
        before, after = (
            "no plan" if worth is None else f"reward {worth.reward:.6f} at risk {worth.risk:.6f}"
            for worth in (self.before, self.after)
        )
        promise = "the promise holds" if self.kept else "no guarantee: the run left its plan"
        ahead = (
            f"a new plan: {after}, before {before}" if self.changed else f"no better plan: {after}"
        )
        return f"{ahead}; {promise} ({self.result.explanation})"


OPTIONAL: Final = {
    "action_label": None,
    "default_action": None,
    "default_bounds": 1,
    "reward_to_go_bound": 1,
    "value_to_go_bound": 1,
    "risk_to_go_bound": 2,
    "key": None,
    "subgoals": None,
}
"""Optional methods of a model, and which argument is a step, if any."""


class Rest:
    """The rest of a mission after `step` steps, as a model that begins in a state.

    Rewards are discounted from there on. A model may provide its compiled form from a state on,
    `compile_from(state)`.
    """

    def __init__(self, reader: ModelReader, state: Any, step: int) -> None:
        self._model, self._state, self._step = reader.model, state, step
        self.horizon = reader.horizon - step
        self.discount = reader.discount_after(level=1)
        self.merges = reader.merges
        self.fingerprint = f"{reader.fingerprint()} at {step} in {stable_text(state)}"
        self.least_reward = reader.least_reward
        self.compiled = None
        if hasattr(reader.model, "compile_from"):
            self.compiled = reader.model.compile_from(state)
        # Optional methods are looked up by name: they exist here only if the model has them.
        for name, place in OPTIONAL.items():
            if hasattr(reader.model, name):
                own = getattr(reader.model, name)
                setattr(self, name, own if place is None else partial(self._shift, own, place))

    def __repr__(self) -> str:
        return f"{describe_model(self._model)} after {self._step} steps"

    def initial_state(self) -> Any:
        """Return the current state of the mission."""
        return self._state

    def actions(self, state: Any) -> Any:
        return self._model.actions(state)

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        answer: list[Outcome] = self._model.outcomes(state, action)
        return answer

    def _shift(self, own: Callable[..., Any], place: int, *arguments: Any) -> Any:
        """Call a method of the model, with its step counted from the start of the mission."""
        return own(*arguments[:place], arguments[place] + self._step, *arguments[place + 1 :])


def find_rest(run: Run) -> Any:
    """Return the model of the rest of a mission; before the first decision, the model itself."""
    if run.level == 0:
        return run.reader.model
    if isinstance(run.reader.model, ArrayModel):
        return run.reader.model.begin_at(run.state, run.reader.horizon - run.step)
    return Rest(run.reader, run.state, run.step)


@knows_parameters
def replan(
    run: Run,
    solver: Solver | str | None = None,
    *,
    risk_bound: RiskBound | float | str | None = None,
    constraints: Sequence[Constraint | str] | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    progress: bool | OnProgress = False,
) -> Replan:
    """Plan again from where a run is, and let it follow the new plan if that is better.

    The guarantee given at the start is kept: over all missions, the probability of failure is at
    most what the risk bound allows for the expected reward (if the plan was within its bound; else
    it is no further from it), and further constraints hold likewise. That holds whatever was
    replanned, how often, and in which of the
    possible histories; one mission alone may take more risk than the plan would have. A run that
    left its plan (`Run.leave`) has no such guarantee: by the model, what happened is impossible.
    Its new plan risks no more than the old one would have from the last foreseen history, with what
    was left in its account, or as little as can be found.

    Parameters
    ----------
    run
        A run of a policy that is bound to its model, not finished. It is changed in place.
    solver
        How to search; by default `Automatic()`.
    risk_bound
        The bound that the policy was made for, needed where the policy does not record it (a
        function without a text). Another is refused. A policy that was read from a file can't know
        such a function: what is given at a run's first replan counts, and stays.
    constraints
        The further constraints that the policy was made for, needed where it does not know them, as
        when it was read from a file. What is given at a run's first replan counts, and stays.
    time_limit
        Stop after this many seconds, certificate included. A plan that is not certified in time
        is not followed.
    gap
        Stop the search when the plan is proved to be within this share of the best.
    samples
        Stop the search after this many samples.
    seed
        Seed of the search's random numbers. Of a randomised plan a member is drawn afresh: if all
        missions drew the same one, their mean would not be what was promised.
    limits
        The limits above and others.
    progress
        As in `solve`.

    Returns
    -------
    Replan
        Whether the plan changed, and how.

    Raises
    ------
    MismatchError
        If the model differs on the next action from the one that the plan was made with.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=6), risk_bound="0.002*x")
    >>> run = vulcan.solve(problem, vulcan.LocalVulcan(), samples=10).policy.start()
    >>> run.observe(0)
    >>> replanned = vulcan.replan(run)
    >>> round(replanned.before.reward, 3), round(replanned.after.reward, 3), replanned.kept
    (1.701, 2.663, True)
    """
    limits = Limits.combine(limits, time_limit=time_limit, samples=samples, gap=gap)
    return plan_on(run, solver, limits, risk_bound, constraints, seed=seed, progress=progress)


def plan_on(
    run: Run,
    solver: Solver | str | None,
    limits: Limits,
    risk_bound: RiskBound | float | str | None = None,
    constraints: Sequence[Constraint | str] | None = None,
    *,
    seed: int = 0,
    progress: bool | OnProgress = False,
    lossy: bool = False,
) -> Replan:
    """Replan; with `lossy`, follow whatever plan is found that the account allows."""
    # Where a plan is incomplete the run has ended, but not the mission.
    if run.finished and (run.left_plan or not run.unplanned):
        raise PolicyError("the run is finished: there is nothing left to plan")
    # Refused before anything changes.
    bound = _find_bound(run, risk_bound)
    limited = _find_constraints(run, bound, constraints)
    run.compare()  # the remaining risk is known only in the model that the plan was made for
    if run.account is None:
        whole = _evaluate_rest(run.whole, run.reader, 0)
        others = _open_accounts(limited, run.whole, run.reader, whole.reward)
        run.account = replace(open_account(bound, whole), risk_bound=bound, others=others)
    rest = find_rest(run)
    solver = read_solver(solver, limits)

    def search(bound: RiskBound, constraints: Sequence[Constraint] = ()) -> Result:
        """Solve the rest of the mission within a bound."""
        problem = Problem(rest, bound, constraints=constraints)
        return plan_and_certify(problem, solver, limits, Options(seed), progress=progress)

    anew = run.left_plan and run.unplanned
    return _plan_anew(run, search) if anew else _improve(run, search, ModelReader(rest), lossy)


def _find_bound(run: Run, given: RiskBound | float | str | None) -> RiskBound:
    """Return the bound that a run's policy was made for; refuse any other."""
    recorded = run.whole.about.risk_bound
    if recorded is None and given is None:
        raise OptionError(
            "the policy has no text of its risk bound, a function: replan(run, risk_bound=...)"
        )
    bound = read_bound(recorded if given is None else given)
    planned = recorded or run.whole.members[0].risk_bound
    known = planned or (run.account and run.account.risk_bound)
    if known is not None and known != (bound.text if recorded else bound):
        made = "made" if planned else "first replanned"
        raise OptionError(
            f"the policy was {made} for the risk bound {known}, not for {bound}, and a replan "
            "keeps that: solve anew to plan with another"
        )
    return bound


def _find_constraints(
    run: Run, bound: RiskBound, given: Sequence[Constraint | str] | None
) -> tuple[Constraint, ...]:
    """Return the constraints that a run's policy was made for; refuse any others."""
    known = run.whole.members[0].constraints
    if run.account is not None:
        known = tuple(constraint for constraint, _ in run.account.others)
    recorded = run.whole.about.constraints
    unknown = run.account is None and len(known) < len(recorded)  # functions have no text
    if unknown and given is None:
        raise OptionError(
            f"the policy has no text of a limit, a function ({', '.join(recorded)}): "
            "replan(run, constraints=[...])"
        )
    asked = known if given is None else given
    limited = Problem(run.reader.model, bound, constraints=asked).constraints
    agrees = limited == known
    if unknown:
        quantities = [text.partition(" <= ")[0] for text in recorded]
        agrees = [c.quantity for c in limited] == quantities and set(known) <= set(limited)
    if not agrees and (recorded or known or run.account is not None):
        made = ", ".join(map(str, known)) or "no further constraints"
        raise OptionError(
            f"the run keeps {made}, not {', '.join(map(str, limited)) or 'none'}: solve anew to "
            "plan with others"
        )
    if limited and any(member.beyond is not None for member in run.whole.members):
        raise PolicyError(
            f"{limited[0].quantity} is not known beyond the frontier of the plan, so that it can't "
            "be replanned within further constraints"
        )
    return limited


def _add_up_charges(
    policy: AnyPolicy, reader: ModelReader, constraints: Sequence[Constraint]
) -> list[Sum]:
    """Return what a policy from the start of a model is charged for each constraint."""
    if not constraints or not len(policy):
        return [Sum(0.0, 0.0)] * len(constraints)
    chain, _ = follow_policy(policy, reader, constraints=constraints)
    once = [not isinstance(constraint, Cost) for constraint in constraints]
    return [
        add_up_charge(chain, chain.start(policy.weights), k, flag) for k, flag in enumerate(once)
    ]


def _open_accounts(
    constraints: Sequence[Constraint], whole: AnyPolicy, reader: ModelReader, reward: float
) -> tuple[tuple[Constraint, Account], ...]:
    """Return the account of each further constraint at the start of a plan."""
    charged = _add_up_charges(whole, reader, constraints)
    return tuple(
        (constraint, Account(math.inf, 0.0, 0.0))  # charged at the histories that were passed
        if isinstance(constraint, RiskAhead)
        else (constraint, open_account(constraint.bound, Worth(reward, float(value + error))))
        for constraint, (value, error) in zip(constraints, charged, strict=True)
    )


def _evaluate_rest(policy: AnyPolicy, reader: ModelReader, level: int) -> Worth:
    """Return risk and reward of a policy that begins at a level."""
    risk = reward = 0.0
    for member, chance in zip(policy.members, policy.weights, strict=True):
        if len(member):
            ahead = member.node_values(float(reader.discounts[level]))[0]
            risk += chance * float(ahead["risk"])
            reward += chance * float(ahead["mean"])
    return Worth(float(reader.weights[level]) * reward, risk)


def _improve(
    run: Run, search: Callable[..., Result], reader: ModelReader, lossy: bool = False
) -> Replan:
    """Follow a better plan, if one is found that the accounts allow; `reader` is of the rest.

    With `lossy`, it need not be better.
    """
    old = Worth(run.reward_ahead, run.risk)
    before: Worth | None = old
    if math.isnan(old.risk):  # nothing is planned, and nothing is known of what follows
        old, before = Worth(0.0, 0.0), None
    limits = _Limits(run, old, reader)
    result = search(*limits.allow(float(run.reader.weights[run.level])))
    certificate, policy = result.certificate, result.policy
    # There may have been no time for a certificate.
    known = certificate is not None and (certificate.complete or certificate.beyond is not None)
    if certificate is not None and known and policy is not None and run.replaceable:
        new = _evaluate_rest(policy, run.reader, run.level)
        account = limits.replace(new, certificate, lossy)
        better = lossy or new.reward > old.reward or new.risk < old.risk or before is None
        if account is not None and better:
            run.follow(policy.start().policy)
            run.account = account
            return Replan(True, before, new, not run.left_plan, result)
    return Replan(False, before, before, not run.left_plan, result)


class _Limits:
    """What a new continuation may risk and be charged in place of the old one."""

    def __init__(self, run: Run, old: Worth, reader: ModelReader) -> None:
        self._risk: Account = run.account
        self._old, accounts = old, dict(self._risk.others)
        for constraint in tuple(accounts):
            if isinstance(constraint, Risk) and constraint.event in run.events:
                accounts.pop(constraint)  # it is charged no more
        charged = [Sum(0.0, 0.0)] * len(accounts)
        if run.place >= 0 and accounts:
            charged = _add_up_charges(run.policy.cut_before(run.place), reader, list(accounts))
        self._limits: dict[Constraint, tuple[Account, Worth]] = {}
        for (constraint, account), (value, error) in zip(accounts.items(), charged, strict=True):
            self._limits[constraint] = account, Worth(old.reward, float(value) - float(error))
            if isinstance(constraint, RiskAhead):
                left = constraint.level - max(run.list_risks(), default=0.0)
                self._limits[constraint] = replace(account, slack=min(account.slack, left)), old

    def allow(self, weight: float) -> tuple[RiskBound, list[Constraint]]:
        """Return the risk bound and the constraints of the rest of the mission."""
        most, constraints = 1.0, list[Constraint]()
        for constraint, (account, old) in self._limits.items():
            if isinstance(constraint, RiskAhead):
                most = min(1.0, max(0.0, old.risk + max(0.0, account.slack) - ROUNDING))
                constraints.append(constraint)
            else:
                bound = account.allow(old, weight, -math.inf, math.inf)
                constraints.append(replace(constraint, bound=bound))
        return self._risk.allow(self._old, weight, most=most), constraints

    def replace(self, new: Worth, certificate: Certificate, lossy: bool) -> Account | None:
        """Return the accounts after a replacement; None if one of them does not allow it."""
        followed = self._risk.replace(self._old, new, lossy=lossy and not self._limits)
        others = dict(self._risk.others)
        limits = zip(self._limits.items(), certificate.constraints, strict=True)
        for (constraint, (account, old)), limited in limits:
            after = Worth(new.reward, float(limited.value) + float(limited.value_error))
            if isinstance(constraint, RiskAhead):
                followed, after = followed if limited.passes else None, new
            own = account.replace(old, after)
            if followed is None or own is None:
                return None
            others[constraint] = own
        return None if followed is None else replace(followed, others=tuple(others.items()))


def _plan_anew(run: Run, search: Callable[..., Result]) -> Replan:
    """Find a plan for a run that left its own: with no more risk than that, or with the least.

    It keeps the further constraints, as if the mission began here, if any plan is found that does.
    """
    planned = 0.0 if math.isnan(run.risk_left) else run.risk_left
    bound = Constant(min(1.0, planned + run.account.slack))
    limited = [constraint for constraint, _ in run.account.others]
    result = search(bound, limited)
    if limited and not result.safe:
        result = search(bound)
    if not result.safe and result.safest is not None:
        result = search(Constant(min(1.0, result.safest.risk + TOLERANCE)))
    if not result.safe or result.policy is None:
        return Replan(False, None, None, False, result)
    new = _evaluate_rest(result.policy, run.reader, run.level)
    run.follow(result.policy.start().policy)
    none = Account(0.0, 0.0, 0.0)
    others = tuple((constraint, none) for constraint in limited)
    run.account = replace(run.account, slack=0.0, room=0.0, rate=0.0, others=others)
    return Replan(True, None, new, False, result)
