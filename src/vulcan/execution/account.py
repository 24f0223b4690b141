"""What a run may risk beyond its plan without breaking what was promised at its start.

A plan with reward y₀ and risk x₀ keeps x₀ <= Δ(y₀). Somewhere on the way, after a history that
happens with probability p, its continuation (risk x, reward g, both given that history, rewards as
seen from the start) is replaced by another (x', g'): the whole then risks p (x' - x) more and earns
p (g' - g) more. Each run keeps an account of two numbers,

    slack   risk that may still be added; Δ(y₀) - x₀ at first
    room    extra reward that may still be exchanged for risk; M - y₀ at first, for any M > y₀

and a rate d, the slope of the chord of Δ from y₀ to M. A replacement is allowed if

    g' >= g  and  x' <= x + slack + d c,    c = min(room, g' - g),

and is entered as slack += x + d c - x', room -= c. Then the whole keeps er <= Δ(E g), however
often, wherever and however differently runs replan: docs/theory/proofs.md has the proof. In the
mean over all runs no more than the first `slack` is added for nothing, and no more than the first
`room` is exchanged, up to where the chord is not above Δ.

Where Δ is straight the rate is its slope, and nothing limits the room.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.straight import Constant, Linear, PiecewiseLinear
from vulcan.errors import BoundError
from vulcan.tolerance import TOLERANCE

__all__ = ["Account", "Prospect", "open_account"]

SHARE_OF_ROOM: Final = 0.1
"""How much more than planned may be exchanged for risk, as a share of the planned reward: a chord
to further away is less steep, and plans are seldom so far from the best."""

ROUNDING: Final = TOLERANCE / 2
"""What all replacements together may exceed the account by. A certificate tolerates twice as much,
which leaves the other half to its own roundings. A plan that has used more of it from the start may
be replaced by one that risks no more."""


@dataclass(frozen=True)
class Prospect:
    """What a continuation risks and earns, given the history before it.

    Attributes
    ----------
    risk
        Probability of failing from there on.
    reward
        Expected reward from there on, discounted from the start of the mission.
    """

    risk: float
    reward: float


@dataclass(frozen=True)
class Account:
    """What a run may risk beyond its plan; see the head of this module.

    Attributes
    ----------
    slack
        Risk that may still be added.
    room
        Reward that may still be exchanged for risk.
    rate
        Risk per reward.
    """

    slack: float
    room: float
    rate: float

    def replace(self, old: Prospect, new: Prospect) -> Account | None:
        """Return the account after a replacement; None if that is not allowed."""
        gain = new.reward - old.reward
        if not gain >= 0:
            return None
        exchanged = min(self.room, gain)
        slack = self.slack + old.risk + self.rate * exchanged - new.risk
        if slack < min(-ROUNDING, self.slack):
            return None
        return Account(slack, self.room - exchanged, self.rate)

    def allow(self, old: Prospect, weight: float) -> RiskBound:
        """Return the risk that is allowed to a new continuation, as a bound of its own problem.

        Parameters
        ----------
        old
            The continuation that it may replace.
        weight
            The discount until here: the new problem discounts its rewards from here on. A reward
            below that of the old continuation is not worth asking about.
        """
        # A search may use all of its tolerance (best mixtures do), and the account has half of it.
        level = min(1.0, max(0.0, old.risk + max(0.0, self.slack) - ROUNDING))
        rate = self.rate * weight
        if rate <= 0 or self.room <= 0 or level >= 1:
            return Constant(level)
        here, further = old.reward / weight, self.room / weight
        if math.isinf(further):
            return Linear(rate, level - rate * here)
        if here + further == here:
            return Constant(level)
        return PiecewiseLinear([(here, level), (here + further, level + rate * further)])


def open_account(bound: RiskBound, whole: Prospect) -> Account:
    """Return the account of a plan at its start.

    Of a plan that is not within the bound there is no slack, and it is not the line that
    replacements keep, but how far the plan is from it.

    Parameters
    ----------
    bound
        The risk bound that the plan was made for.
    whole
        What the plan risks and earns from the start on.
    """
    reward, risk = whole.reward, whole.risk
    try:
        allowed = bound(reward)
    except BoundError:
        allowed = -math.inf
    slack = allowed - risk if allowed - risk >= -TOLERANCE else 0.0
    if isinstance(bound, Linear):
        return Account(slack, math.inf, bound.slope)
    room = SHARE_OF_ROOM * abs(reward)
    try:
        bound.verify([reward, reward + room])
        rate = (bound(reward + room) - allowed) / room if room > 0 else 0.0
    except BoundError:
        rate = 0.0
    if not (math.isfinite(rate) and rate > 0):
        return Account(slack, 0.0, 0.0)
    return Account(slack, room, rate)
