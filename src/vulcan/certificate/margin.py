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
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.certificate.sums import UNIT, add_by_halves, count_operations, find_share
from vulcan.certificate.walk import NEGLIGIBLE, Chain, Floats
from vulcan.errors import BoundError
from vulcan.numerics import TOLERANCE, Number
from vulcan.runtime.limits import TimeUp

# Initial ends of intervals: dense where it matters, then ever wider apart.
FACTORS: Final = (1.0001, 1.01, 1.2, 2.0, 5.0, 20.0, 100.0, 1e3, 1e4, 1e6, 1e9, 1e12)

LARGEST: Final = 1e300  # the largest factor that is tried
PRECISION: Final = 1e-7  # relative precision of the margin
FEWEST_ROUNDS, MOST_ROUNDS = 12, 60  # rounds of tests: fewer for larger policies
FEWEST_INTERVALS, MOST_INTERVALS = 4, 12  # intervals tested at once: fewer for larger policies
NEAR: Final = 128  # intervals are divided at this part of their width from the estimated margin
ACCEPTED: Final = 0.999 * TOLERANCE  # largest negative slack that is accepted
WORK: Final = 500_000  # limit of places times rounds, and of places times intervals


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
    scaled = _Scaled(chain, np.array(start, float), bound, float(reward))
    if passes:
        # Beyond this every risky action fails surely, and nothing changes any more.
        most = min(LARGEST, (1 + PRECISION) / smallest)
        begin, ends = 1.0, [1.0, *(factor for factor in FACTORS if factor < most), most]
    else:
        begin, ends = 0.0, [0.0, 1 - PRECISION]
    found = _prove(scaled, begin, ends)
    try:
        # Far from the rewards of policies, a function need not be concave and nondecreasing.
        bound.verify(scaled.used)
    except BoundError:
        return begin
    return math.inf if passes and found == most >= 1 / smallest else found


def _find_safe(chain: Chain) -> Floats:
    """Return the probability of a safe outcome at each place."""
    return chain.gather(chain.probability * ~chain.fails)


def _prove(scaled: _Scaled, proved: float, ends: Sequence[float]) -> float:
    """Prove one interval after the other, from a proved factor on; return the last proved factor.

    An interval that can't be proved is divided: it may be too wide, or the bound breaks within.
    """
    waiting, left = list(reversed(ends)), math.nan  # the slack of the last interval proved
    for _ in range(scaled.rounds):
        factors = waiting[: -scaled.intervals - 1 : -1]
        try:
            for slack in scaled.test([proved, *factors[:-1]], factors):
                if not slack >= -ACCEPTED:
                    break
                proved, left = waiting.pop(), slack
            else:
                if not waiting:
                    break
                continue
        except TimeUp:  # keep what is proved so far
            break
        if waiting[-1] - proved <= PRECISION * waiting[-1]:
            break
        points = _divide(proved, waiting[-1], left / (left - slack), scaled.intervals)
        waiting += sorted(points, reverse=True)
    return proved


def _divide(begin: float, end: float, share: float, intervals: int) -> set[float]:
    """Return the ends of smaller intervals, two of them close to where the slack seems to be 0.

    That is after a share of the interval, if the slack falls along a line; nan if that is unknown.
    """
    divide = np.geomspace if end > 4 * begin > 0 else np.linspace
    points = divide(begin, end, intervals + 1 if math.isnan(share) else intervals - 1).tolist()
    near = max((end - begin) / NEAR, PRECISION * end / 4)
    middle = begin + share * (end - begin)
    return {point for point in (*points, middle - near, middle + near) if begin < point < end}


class _Scaled:
    """A policy with every immediate risk times a factor."""

    def __init__(self, chain: Chain, start: Floats, bound: RiskBound, reward: float) -> None:
        self._chain, self._start, self._bound = chain, start, bound
        self.used = reward, reward  # least and largest reward at which the bound was used
        bearable = WORK // len(chain)
        self.intervals = max(FEWEST_INTERVALS, min(MOST_INTERVALS, bearable))  # tested at once
        self.rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, bearable))
        outcomes, safe = chain.most_outcomes, _find_safe(chain)
        risk = np.where(safe > 0, np.minimum(1.0, chain.risk), 1.0)
        rest = 1 - risk
        self._risk = risk[:, None]
        self._likely = np.divide(
            chain.probability,
            rest[chain.source],
            out=np.zeros(len(chain.source)),
            where=rest[chain.source] > 0,
        )
        parts = chain.probability * chain.reward
        self._pays = []
        for part in (parts, np.abs(parts)):
            for share, own in ((risk, chain.fails), (rest, ~chain.fails)):
                total = chain.gather(part * own)
                mean = np.divide(total, share, out=np.zeros(len(chain)), where=share > 0)
                self._pays.append(mean[:, None])
        self._widened = 4 * (outcomes + 4) * UNIT
        # 1 - r has the absolute error of r, which is relatively larger the smaller 1 - r is.
        doubt = np.divide(outcomes + 4, rest, out=np.zeros(len(chain)), where=rest > 0)
        doubts = float(np.maximum.reduceat(doubt, chain.firsts[:-1]).sum())
        operations = count_operations(chain) + 4 * len(chain.sizes) + 3 * outcomes + 16 + 2 * doubts
        self._share = min(2 * find_share(operations), 1.0)  # with 1, nothing is proved
        lost = 4 * NEGLIGIBLE * (len(chain.source) + len(chain))
        largest = float(np.abs(chain.reward).max(initial=0.0))
        self._lost = lost, lost * (1 + 2 * len(chain.sizes) * largest)

    def test(self, lows: Sequence[float], highs: Sequence[float]) -> Iterator[float]:
        """Yield the least slack in each interval from `lows` to `highs`, or less."""
        factors = np.append(
            np.array(lows) * (1 - self._widened), np.array(highs) * (1 + self._widened)
        )
        chain = self._chain
        reach = chain.spread(
            np.repeat(self._start[:, None], len(factors), axis=1),
            self._likely,
            lambda span: 1 - np.minimum(1.0, self._risk[span] * factors),
        )
        firsts = chain.firsts.tolist()
        spans = [slice(firsts[begin], firsts[end]) for begin, end in chain.blocks]
        parts = np.array([self._add_up(span, reach[span], factors) for span in spans])
        risk, size, low, high = add_by_halves(parts)
        off = self._share * size + self._lost[1]
        for k in range(len(highs)):
            risked = float(risk[k]) * (1 + self._share) + self._lost[0]
            yield self._find_slack(risked, float(low[k] - off[k]), float(high[k] + off[k]))

    def _add_up(self, span: slice, reach: Floats, factors: Floats) -> list[Any]:
        """Return the contributions of some places.

        These are risk, absolute reward, and least and largest reward in the interval. The first
        half of the columns belongs to the begins of intervals, the second half to their ends.
        """
        count = len(factors) // 2
        failing_pay, safe_pay, failing_size, safe_size = (pay[span] for pay in self._pays)
        fails = np.minimum(1.0, self._risk[span] * factors)
        survives = 1 - fails
        risk = reach[:, count:] * fails[:, count:]
        weighted = reach * self._chain.weights[span, None]
        likely, unlikely = weighted[:, :count], weighted[:, count:]
        size = likely * (fails[:, count:] * failing_size + survives[:, :count] * safe_size)
        earned = fails * failing_pay + survives * safe_pay
        at_begin, at_end = earned[:, :count], earned[:, count:]
        least, most = np.minimum(at_begin, at_end), np.maximum(at_begin, at_end)
        low = np.where(least >= 0, unlikely, likely) * least
        high = np.where(most >= 0, likely, unlikely) * most
        return [add_by_halves(terms) for terms in (risk, size, low, high)]

    def _find_slack(self, risk: float, low: float, high: float) -> float:
        """Return what is left of the allowed risk, for all rewards between two."""
        slack = float(self._bound.enclose(low, low)[0]) - risk
        if slack >= -ACCEPTED:
            self.used = min(low, self.used[0]), max(high, self.used[1])
        return slack
