"""The margin of a certificate: by how much the model's risks may be wrong.

Let every immediate risk r become s = min(1, κ r), with the safe outcomes sharing the rest: each of
their probabilities is multiplied by (1 - s) / (1 - r). The margin is the largest m such that the
bound holds for *every* factor κ from 1 to m, all risks wrong by the same factor. Nothing is claimed
below 1: less risk can mean less reward where failing pays, and a bound may allow less for that. For
a policy that does not pass, the margin is the largest m below 1 such that the bound would hold for
every factor from 0 to m. It is 0, which claims nothing, where an action fails surely: such an
action has no safe outcomes to share the rest.

Tests of single factors would prove nothing about those between them, so each test covers an
interval [a, b] of factors. With q the law of histories without failures, independent of κ,

    er(κ) = 1 - E_q Π (1 - s)      and      reach(κ) = q · Π (1 - s) over the places before

are monotone in every single s: the risk is largest, and every reach smallest, at b. A place earns
s φ + (1 - s) σ, with φ the mean reward of its failing outcomes and σ that of its safe ones. This is
linear in s, so that its minimum e is at a or at b. For all factors of the interval

    E g(κ)  >=  Σ γ^t · (reach(b) if e >= 0 else reach(a)) · e  =: low,

and the bound, which is nondecreasing, holds throughout if er(b) <= Δ(low). (That a function is
nondecreasing between all such rewards is verified in the end, else nothing is claimed.) The
narrower the interval, the closer low is to the least reward in it; where all rewards are positive
and failing pays nothing, low is E g(b), and intervals of any width are judged exactly. The margin
returned is always proved. It is smaller than the largest m by more than `PRECISION` only if the
proof takes too many intervals: where failing pays, or large rewards cancel, and the bound is steep.

Rounding is accounted for. A relative error ε of r is equivalent to one of κ: intervals are widened
by ε at both ends, which keeps everything monotone on the safe side. The errors of all other
operations are relative to their results, and counted as in `vulcan.certificate.sums`; those of
1 - r, in which r may cancel, 1 / (1 - r) times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.certificate.sums import UNIT, add_by_halves, count_operations, find_share
from vulcan.certificate.walk import NEGLIGIBLE, Chain, Floats
from vulcan.errors import BoundError
from vulcan.numerics import TOLERANCE, Number
from vulcan.runtime.limits import TimeUp

LARGEST: Final = 1e300  # the largest factor that is tried
PRECISION: Final = 1e-7  # relative precision of the margin
FEWEST_TESTS, MOST_TESTS = 8, 720  # of intervals: fewer for larger policies
WORK: Final = 8_000_000  # limit of transitions times tests, above the fewest
NEAR: Final = 64  # intervals end at this part of their width from the estimated margin
GROWTH: Final = 8.0  # largest ratio of the widths of one interval and the one before
ACCEPTED: Final = 0.999 * TOLERANCE  # largest negative slack that is accepted


def find_margin(
    chain: Chain, start: Sequence[Number], bound: RiskBound, reward: Number, passes: bool
) -> float:
    """Return the largest factor up to which the bound is proved to hold.

    `start` has the probability of each place of the first level; `reward` and `passes` are the
    expected reward of the unscaled policy, and whether the bound accepts it.
    """
    smallest = float(np.min(chain.risk, where=chain.risk > 0, initial=math.inf))
    if smallest == math.inf:
        return math.inf if passes else 0.0
    if not passes and np.any((chain.risk > 0) & (_find_safe(chain) <= 0)):
        return 0.0
    most, begin = 1 - PRECISION, 0.0
    if passes:
        # Beyond this every risky action fails surely, and nothing changes any more.
        most, begin = min(LARGEST, (1 + PRECISION) / smallest), 1.0
    scaled = _Scaled(chain, np.array(start, float), bound, float(reward), begin)
    found = _prove(scaled, begin, most)
    try:
        # Far from the rewards of policies, a function need not be concave and nondecreasing.
        bound.verify(scaled.used)
    except BoundError:
        return begin
    return math.inf if passes and found == most >= 1 / smallest else found


def _find_safe(chain: Chain) -> Floats:
    """Return the probability of a safe outcome at each place."""
    return chain.gather(chain.probability * ~chain.fails)


def _prove(scaled: _Scaled, proved: float, most: float) -> float:
    """Prove one interval after the other, from a factor on; return the last proved factor.

    An interval that can't be proved is too wide, or the bound breaks within. Slacks of factors that
    are close to each other lie along a line, nearly: the next interval ends close to where that
    line is 0, after a failure before it, otherwise beyond it.
    """
    try:
        left, slack = scaled.test(proved, proved), scaled.test(proved, most)
        if left < -ACCEPTED or slack >= -ACCEPTED:
            return proved if left < -ACCEPTED else most
        # To begin with, the risk is in proportion to the factor.
        width, passed = left / scaled.risk if proved else left / (left - slack), False
        for _ in range(scaled.tests):
            width = max(width * (1 + 1 / NEAR if passed else 1 - 1 / NEAR), PRECISION * proved / 2)
            factor = min(proved + width, most)
            width = factor - proved
            slack = scaled.test(proved, factor)
            share = left / (left - slack) if slack < left else math.inf
            if slack >= -ACCEPTED:
                if factor == most:
                    return most
                proved, left, passed = factor, slack, True
                width *= min(share - 1, GROWTH)
            elif width <= PRECISION * factor:
                break
            else:
                width *= max(min(share, 1.0 if passed else 0.5), 0.0)
                passed = False
    except TimeUp:  # keep what is proved so far
        pass
    return proved


class _Scaled:
    """A policy with every immediate risk times a factor, `begin` or larger."""

    def __init__(
        self, chain: Chain, start: Floats, bound: RiskBound, reward: float, begin: float
    ) -> None:
        self._chain, self._start, self._bound, self._begin = chain, start, bound, begin
        self.used = reward, reward  # least and largest reward at which the bound was used
        self.tests = max(FEWEST_TESTS, min(MOST_TESTS, WORK // len(chain.source)))
        outcomes, safe = chain.most_outcomes, _find_safe(chain)
        self._risk = np.where(safe > 0, np.minimum(1.0, chain.risk), 1.0)
        self._rest = 1 - self._risk
        self._pays, failing = self._find_pays(), chain.reward[chain.fails]
        # Whether more risk never means more reward: then single ends of intervals are enough.
        self._falls = not failing.any() and bool(self._pays[1].min() >= 0)
        self._widened = 4 * (outcomes + 4) * UNIT
        # 1 - r has the absolute error of r, which is relatively larger the smaller 1 - r is.
        doubt = _divide(np.full(len(chain), outcomes + 4.0), self._rest)
        doubts = float(np.maximum.reduceat(doubt, chain.firsts[:-1]).sum())
        operations = count_operations(chain) + 4 * len(chain.sizes) + 3 * outcomes + 16 + 2 * doubts
        self._share = min(2 * find_share(operations), 1.0)  # with 1, nothing is proved
        lost = 4 * NEGLIGIBLE * (len(chain.source) + len(chain))
        largest = float(np.abs(chain.reward).max(initial=0.0))
        self._lost = lost, lost * (1 + 2 * len(chain.sizes) * largest)
        self._reached = self._reach(np.minimum(1.0, self._risk * self._lower(begin)))
        self.risk = max(UNIT, float(add_by_halves(self._reached * self._risk)))

    def _find_pays(self) -> list[Floats]:
        """Return the mean rewards of failing and of safe outcomes at each place, and of sizes."""
        chain = self._chain
        if not chain.reward[chain.fails].any():
            (earned, size), nothing = chain.earned, np.zeros(len(chain))
            safe = _divide(earned, self._rest)
            return [nothing, safe, nothing, safe if size is earned else _divide(size, self._rest)]
        parts, pays = chain.probability * chain.reward, []
        for part in (parts, np.abs(parts)):
            pays.append(_divide(chain.gather(part * chain.fails), self._risk))
            pays.append(_divide(chain.gather(part * ~chain.fails), self._rest))
        return pays

    def _lower(self, factor: float) -> float:
        return factor * (1 - self._widened)

    def _reach(self, fails: Floats) -> Floats:
        """Return the probability of being in each place, for immediate risks."""
        survive = _divide(1 - fails, self._rest)
        return self._chain.spread(self._start, self._chain.probability, survive)

    def test(self, low: float, high: float) -> float:
        """Return the least slack in the interval of two factors, or less."""
        end = np.minimum(1.0, self._risk * (high * (1 + self._widened)))
        unlikely, likely = self._reach(end), self._reached
        risk = float(add_by_halves(unlikely * end))
        failing_pay, safe_pay, failing_size, safe_size = self._pays
        if self._falls:
            least = (1 - end) * safe_pay
            most, size = safe_pay, safe_pay
        else:
            begin = np.minimum(1.0, self._risk * self._lower(low))
            if low != self._begin:
                likely = self._reach(begin)
            ends = [fails * failing_pay + (1 - fails) * safe_pay for fails in (begin, end)]
            least, most = np.minimum(*ends), np.maximum(*ends)
            size = end * failing_size + (1 - begin) * safe_size
        weights = self._chain.weights
        lower, upper, total = (
            float(add_by_halves(weights * terms))
            for terms in (
                np.where(least >= 0, unlikely, likely) * least,
                np.where(most >= 0, likely, unlikely) * most,
                likely * size,
            )
        )
        off = self._share * total + self._lost[1]
        risked = risk * (1 + self._share) + self._lost[0]
        return self._find_slack(risked, lower - off, upper + off)

    def _find_slack(self, risk: float, low: float, high: float) -> float:
        """Return what is left of the allowed risk, for all rewards between two."""
        slack = float(self._bound.enclose(low, low)[0]) - risk
        slack = min(max(slack, -LARGEST), LARGEST)
        if slack >= -ACCEPTED:
            self.used = min(low, self.used[0]), max(high, self.used[1])
        return slack


def _divide(one: Floats, other: Floats) -> Floats:
    """Return quotients, 0 where the divisor is 0."""
    return np.divide(one, other, out=np.zeros(len(one)), where=other > 0)
