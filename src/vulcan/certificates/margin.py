"""The margin of a certificate: how wrong the model's risks may be.

Let every immediate risk r become s = min(1, κ r), with the safe outcomes sharing what is left: each
of their probabilities is multiplied by (1 - s) / (1 - r). The margin is the largest m such that the
bound holds for *every* factor κ from 1 to m, all risks wrong by the same factor. Nothing is claimed
below 1: less risk can mean less reward where failing pays, and a bound may allow less for that. Of
a policy that the bound refuses as it is, the margin is the largest m below 1 such that the bound
would hold for every factor from 0 to m.

To try single factors would prove nothing about those between them. So an interval [a, b] of factors
is tested at once. With q the law of histories without failures, which does not depend on κ,

    er(κ) = 1 - E_q Π (1 - s)      and      reach(κ) = q · Π (1 - s) over the places before

are monotone in every single s: the risk is largest, and every reach smallest, at b. A place earns
s φ + (1 - s) σ, where φ is what its failing outcomes pay on average and σ its safe ones, which is
linear in s: it is least at a or at b, say e. So for all factors of the interval

    E g(κ)  >=  Σ γ^t · (reach(b) if e >= 0 else reach(a)) · e  =: low,

and the bound, which is nondecreasing, holds throughout if er(b) <= Δ(low). (That a function is
nondecreasing between all such rewards is verified in the end, else nothing is claimed.) The
narrower the interval, the closer low is to the least reward in it; where all rewards are positive
and failing pays nothing, low is E g(b), and intervals of any width are judged exactly. What is
found is always proved. It is less than the largest m, by more than `PRECISION`, only if proofs take
too many intervals: where failing pays, or large rewards cancel, beside a bound that is steep.

Roundings are taken into account. That r is known up to a share ε only is the same as factors that
are: intervals are widened by ε at both ends, which keeps all that is monotone on the safe side.
All other operations are relative to what they return, and counted as in `vulcan.certificates.sums`;
for 1 - r, in which r may cancel, 1 / (1 - r) times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.certificates.chain import NEGLIGIBLE, Chain, Floats
from vulcan.certificates.sums import UNIT, add_by_halves, count_operations, find_share
from vulcan.errors import BoundError
from vulcan.rounding import Number
from vulcan.tolerance import TOLERANCE

__all__ = ["find_margin"]

# Where intervals end at first: densely where it matters, and then ever wider apart.
FACTORS: Final = (1.0001, 1.01, 1.2, 2.0, 5.0, 20.0, 100.0, 1e3, 1e4, 1e6, 1e9, 1e12)

LARGEST: Final = 1e300
"""No factor is tried beyond this."""

PRECISION: Final = 1e-7
"""Of the margin, as a share of it."""

FEWEST_ROUNDS, MOST_ROUNDS = 12, 60
"""How often some intervals are tested: the larger a policy, the less often."""

FEWEST_INTERVALS, MOST_INTERVALS = 2, 12
"""How many are tested at once, likewise."""

WORK: Final = 500_000
"""Places times rounds, and places times intervals, that the former and the latter allow for."""


class End(NamedTuple):
    """Where an interval ends, and the slack there: negative where the bound is broken.

    It is None before the interval was tested.
    """

    factor: float
    slack: float | None = None


def find_margin(
    chain: Chain, start: Sequence[Number], bound: RiskBound, reward: Number, passes: bool
) -> float:
    """Return the largest factor up to which the bound is proved to hold.

    Parameters
    ----------
    chain
        The chain of the policy.
    start
        Probability of each place of its first level.
    bound
        The bound that is to hold.
    reward, passes
        What the policy earns as it is, and whether the bound accepts it.
    """
    smallest = float(np.min(chain.risk, where=chain.risk > 0, initial=math.inf))
    if smallest == math.inf:
        return math.inf if passes else 0.0
    scaled = _Scaled(chain, np.array(start, float), bound, float(reward))
    begin = 1.0 if passes else 0.0
    (at_once,) = scaled.test([begin], [begin])
    if not passes and not at_once.holds:
        return 0.0
    ends = [End(1.0, -TOLERANCE)]
    if passes:
        # Beyond this every risky action fails for sure, and nothing changes any more.
        most = min(LARGEST, (1 + PRECISION) / smallest)
        ends = [End(most), *(End(factor) for factor in reversed(FACTORS) if factor < most)]
    found = _march(scaled, End(begin, at_once.slack), ends)
    try:
        # Far from any reward that a policy has, a function need not be a bound any more.
        bound.verify(scaled.used)
    except BoundError:
        return begin
    return math.inf if passes and found == most >= 1 / smallest else found


def _march(scaled: _Scaled, proved: End, waiting: list[End]) -> float:
    """Return how far one interval after the other is proved.

    Parameters
    ----------
    scaled
        The policy.
    proved
        Where to begin.
    waiting
        Where intervals are to end, the next of them last.
    """
    for _ in range(scaled.rounds):
        goal = waiting[-1]
        if goal.slack is None:
            ends = list(takewhile(lambda end: end.slack is None, reversed(waiting)))
            ends = ends[: scaled.intervals]
        else:
            ends = [End(factor) for factor in _divide(proved, goal, scaled.intervals)]
        factors = [end.factor for end in ends]
        for test in scaled.test([proved.factor, *factors[:-1]], factors):
            known = test.factor == waiting[-1].factor
            if not test.holds:
                waiting[len(waiting) - known :] = [End(test.factor, test.slack)]
                break
            proved = End(test.factor, test.slack)
            if known:
                waiting.pop()
        if not waiting or waiting[-1].factor - proved.factor <= PRECISION * waiting[-1].factor:
            break
    return proved.factor


def _divide(proved: End, goal: End, count: int) -> list[float]:
    """Return where to end intervals between what is proved and where a proof failed."""
    low, high = proved.factor, goal.factor
    assert goal.slack is not None
    if goal.slack >= 0:  # nothing is broken there, the interval was too wide
        ends = np.linspace(low, high, count + 1)[1:]
    elif low == 0:
        ends = np.linspace(low, high, count + 2)[1:-1]
    elif high > 4 * low:
        ends = np.geomspace(low, high, count + 2)[1:-1]
    else:
        # The bound breaks about where the line between the two is 0: closely around that.
        slack = max(0.0, proved.slack or 0.0)
        root = low + (high - low) * slack / (slack - goal.slack)
        around = (high - low) * np.geomspace(1e-3, 0.3, count // 2)
        apart = PRECISION * high / 4
        ends = np.unique(np.clip([*(root - around), *(root + around)], low + apart, high - apart))
    return [float(end) for end in ends]


class _Test(NamedTuple):
    """Whether the bound is proved to hold in an interval that ends at a factor, and slack there."""

    factor: float
    holds: bool
    slack: float


class _Scaled:
    """A policy with every immediate risk times a factor.

    Attributes
    ----------
    intervals, rounds
        How many intervals are tested at once, and how often.
    used
        Between which rewards the bound was found to hold.
    """

    def __init__(self, chain: Chain, start: Floats, bound: RiskBound, reward: float) -> None:
        self._chain, self._start, self._bound = chain, start, bound
        self.used = reward, reward
        bearable = WORK // len(chain)
        self.intervals = max(FEWEST_INTERVALS, min(MOST_INTERVALS, bearable))
        self.rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, bearable))
        outcomes, safe = chain.most_outcomes, chain.gather(chain.probability * ~chain.fails)
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
        # 1 - r is off by what r is off, which counts for more the smaller it is.
        doubt = np.divide(outcomes + 4, rest, out=np.zeros(len(chain)), where=rest > 0)
        doubts = float(np.maximum.reduceat(doubt, chain.firsts[:-1]).sum())
        operations = count_operations(chain) + 4 * len(chain.sizes) + 3 * outcomes + 16 + 2 * doubts
        self._share = min(2 * find_share(operations), 1.0)  # of the sizes: this proves nothing
        lost = 4 * NEGLIGIBLE * (len(chain.source) + len(chain))
        largest = float(np.abs(chain.reward).max(initial=0.0))
        self._lost = lost, lost * (1 + 2 * len(chain.sizes) * largest)

    def test(self, lows: Sequence[float], highs: Sequence[float]) -> Iterator[_Test]:
        """Yield what is known of the intervals from `lows` to `highs`."""
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
        risk, size, low, high, at_end = add_by_halves(parts)
        off = self._share * size + self._lost[1]
        for k, factor in enumerate(highs):
            risked = float(risk[k]) * (1 + self._share) + self._lost[0]
            holds = self._allows(risked, float(low[k] - off[k]), float(high[k] + off[k]))
            yield _Test(factor, holds, self._find_slack(float(at_end[k]), float(risk[k])))

    def _add_up(self, span: slice, reach: Floats, factors: Floats) -> list[Any]:
        """Return what some places add to risk, size of rewards, and least, most and last reward.

        The first half of the columns is where intervals begin, the second where they end.
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
        return [add_by_halves(terms) for terms in (risk, size, low, high, unlikely * at_end)]

    def _allows(self, risk: float, low: float, high: float) -> bool:
        """Whether a risk is acceptable for all rewards between two."""
        if not self._bound.enclose(low, low)[0] - risk >= -0.999 * TOLERANCE:
            return False
        self.used = min(low, self.used[0]), max(high, self.used[1])
        return True

    def _find_slack(self, reward: float, risk: float) -> float:
        """Return about how much more is allowed than risked, as far as that matters."""
        try:
            return min(max(self._bound(reward) + TOLERANCE - risk, -1.0), 1.0)
        except BoundError:
            return -1.0
