"""Expected reward and risk of a policy, summed along its chain, with error bounds.

With reach the probability of being in a place,

    er = Σ reach · r,    E g = Σ γ^t reach · R̄,    frontier = Σ reach · (leaving the plan).

**In floating point.** Only sums and products of the model's numbers are formed, so that each result
is a sum of products of these numbers, one for each path through the chain. An operation multiplies
its result by some 1 + δ, |δ| <= u = 2^-53, and so does the conversion of a number to a float. If no
product takes part in more than N operations, the computed sum is Σ x (1 + θ) instead of Σ x, with
|θ| <= N u / (1 - N u) for each product x. This holds for any order of summation, where each of n
addends takes part in at most n - 1 additions. Hence

    |error|  <=  N u / (1 - 2 N u)  ·  computed Σ |x|,

where N u / (1 - N u) was divided by 1 - N u / (1 - N u), since Σ |x| is computed as well. For risk
and frontier that sum is the result itself; for the reward it is the sum with all rewards replaced
by their absolute values, which shows how much cancels. N counts: for each level, 2 for the
probability and its product, and the additions where transitions meet; the transitions of a place;
the powers of the discount; and finally two for each halving of a sum over all places.

Products below `NEGLIGIBLE` are the exception: they may underflow, or are set to 0. Each of them
loses at most that much of a probability, which would still have failed, or left the plan, at most
once, and earned at most the largest reward at each level. These losses are counted and added.
(Probabilities sum to 1 up to 1e-12, and so does reach in every level up to a factor below 2: there
are at most a million levels.)

**In fractions.** The same sums without rounding. To keep the numbers short, reach and powers of the
discount may be truncated after a number of binary places: they become slightly smaller. The
dropped amounts are summed; they have the same effect as above.

**Further constraints** (`vulcan.constraints`). A cost is summed like a reward without discount. The
probability that an event ever happens is that of the transitions with the event, where histories
are followed no further: each of them ends at its first event. The risk ahead of a place,

    ahead = Σ p · (1 for failing, else ahead of the place that follows),

is computed backwards, and the largest is taken over the places that are reached. The products are
those of the risk, so that they have the same relative error; no probability is dropped.

**With hidden states** a history h of observations may be in several places of one sight. With w(k)
proportional to the probability of h and place k,

    ahead(h) = Σ w ahead / Σ w.

Histories that lead to the same sight have almost the same w, if a search has merged their beliefs.
So each place gets an interval l <= c w <= u that holds for all of them, c being a factor of the
history. Sums of products lead from the intervals of a level to those of the next; for each
observation they are scaled to Σ u = 1, and where histories meet the least l and the largest u
remain. Then, for every history,

    Σ l ahead / (Σ l ahead + Σ u (1 - ahead))  <=  ahead(h)
        <=  Σ u ahead / (Σ u ahead + Σ l (1 - ahead)),

with equality for a single history. The certificate states the largest upper end, and as its error
the distance to the largest lower end.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.certificate.walk import NEGLIGIBLE, Chain, Floats
from vulcan.numerics import FAILED, Number, is_infinite, round_up
from vulcan.runtime.limits import check_time

UNIT: Final = 2.0**-53  # largest relative error of a floating-point operation


class Sum(NamedTuple):
    """A number, with a bound on its error."""

    value: Number
    error: Number

    def enclose(self) -> tuple[Number, Number]:
        """Return an interval that contains the true number."""
        if is_infinite(self.error):
            return -math.inf, math.inf
        if is_infinite(self.value):
            return self.value, self.value
        value, error = Fraction(self.value), Fraction(self.error)
        return value - error, value + error

    def to_floats(self) -> Sum:
        """Return the sum as floats; the error includes the rounding."""
        if is_infinite(self.value) or is_infinite(self.error):
            return Sum(float(self.value), float(self.error))
        try:
            value = float(self.value)
        except OverflowError:  # larger than any float
            largest = sys.float_info.max
            return Sum(largest if self.value > 0 else -largest, math.inf)
        off = abs(Fraction(value) - Fraction(self.value))
        return Sum(value, round_up(off + Fraction(self.error)))


Sums = tuple[Sum, Sum, Sum]
"""Expected reward and risk of a policy, and the probability of leaving it."""


def add_up(chain: Chain, start: Sequence[Number]) -> Sums:
    """Return the sums in floating point; `start` has the probability of each first place."""
    if not len(chain):
        return Sum(0.0, 0.0), Sum(0.0, 0.0), Sum(0.0, 0.0)
    reach = chain.spread(np.array(start, float), chain.probability)
    earned, size = chain.earned
    weighted = chain.weights * reach
    share = Fraction(find_share(count_operations(chain)))
    lost, unpaid = _count_lost(chain, reach)
    longest = 2 * len(chain.sizes) * Fraction(float(size.max()))
    most = Fraction(float(add_by_halves(weighted * size)))
    risk, frontier = (float(add_by_halves(reach * part)) for part in (chain.risk, chain.unplanned))
    return (
        Sum(
            float(add_by_halves(weighted * earned)),
            round_up(share * most + (lost + unpaid) * (1 + longest)),
        ),
        Sum(risk, round_up(share * Fraction(risk) + 2 * lost)),
        Sum(frontier, round_up(share * Fraction(frontier) + 2 * lost)),
    )


def count_operations(chain: Chain) -> int:
    """Return N, an upper bound on the number of roundings that affect one product."""
    levels = len(chain.sizes)
    onward = 2 * levels + chain.entries
    powers = 0 if all(discount == 1 for discount in chain.discounts) else 2 * levels
    return onward + powers + chain.most_outcomes + 2 * len(chain).bit_length() + 8


def find_share(operations: float) -> float:
    """Return the relative error of a sum after this many operations."""
    off = operations * UNIT
    # The last factor covers the rounding of this line.
    return off / (1 - 2 * off) * (1 + 1e-9) if off < 0.25 else math.inf


def add_by_halves(terms: Floats) -> Any:
    """Return the sum over the first axis; each term takes part in at most 2 log2 n additions."""
    while len(terms) > 1:
        half = len(terms) // 2
        halves = terms[:half] + terms[half : 2 * half]
        if len(terms) % 2:
            halves[0] += terms[-1]
        terms = halves
    return terms[0]


def add_up_charge(chain: Chain, start: Sequence[Number], column: int, once: bool) -> Sum:
    """Return the expected total of a charge, or of its first occurrence, in floating point."""
    if not len(chain):
        return Sum(0.0, 0.0)
    charges = np.asarray(chain.charges[column], float)
    onward = np.where(charges != 0, 0.0, chain.probability) if once else chain.probability
    reach = chain.spread(np.array(start, float), onward)
    parts = chain.probability * charges
    size = chain.gather(np.abs(parts))
    share = Fraction(find_share(count_operations(chain)))
    small = np.abs(parts) < NEGLIGIBLE
    terms = np.abs(reach * size) < NEGLIGIBLE
    lost = NEGLIGIBLE * Fraction(int(small.sum() + terms.sum()) + len(parts))
    most = Fraction(float(add_by_halves(reach * size)))
    longest = 2 * len(chain.sizes) * Fraction(float(size.max()))
    value = float(add_by_halves(reach * chain.gather(parts)))
    return Sum(value, round_up(share * most + lost * (1 + longest)))


def find_risk_ahead(chain: Chain, exact: bool) -> Sum:
    """Return the largest risk that is still ahead at any place that is reached."""
    if not len(chain):
        return Sum(0.0, 0.0)
    likely: Any = chain.probability
    if exact:
        likely = np.array(list(map(to_fraction, chain.model_numbers[0])), object)
    zero: Any = Fraction(0) if exact else 0.0
    ahead = np.full(len(chain), zero, object if exact else float)
    ends = np.searchsorted(chain.source, chain.firsts)
    for level in range(len(chain.sizes) - 1, -1, -1):
        check_time()
        rows = slice(ends[level], ends[level + 1])
        target = chain.target[rows]
        after = np.where(target >= 0, ahead[np.maximum(target, 0)], zero)
        after[target == FAILED] = 1
        np.add.at(ahead, chain.source[rows], likely[rows] * after)
    operations = count_operations(chain)
    if chain.sights is None:
        least = worst = max(ahead.tolist(), default=zero)
    else:
        least, worst = find_mean_ahead(chain, likely, ahead)
        operations = 4 * (operations + 2 * len(chain.sizes))
    if exact:
        return Sum(worst, worst - least)
    off = Fraction(find_share(operations)) * Fraction(worst) + len(ahead) * NEGLIGIBLE
    return Sum(worst, round_up(Fraction(worst) - Fraction(least) + off))


def find_mean_ahead(chain: Chain, likely: Any, ahead: Any) -> tuple[Any, Any]:
    """Return an interval of the risk ahead of the worst history of observations.

    `ahead` has the risk ahead of each place, and `likely` the probability of each transition.
    """
    assert chain.sights is not None
    low, high = _enclose_weights(chain, likely)
    ends = []
    for one, other in ((low, high), (high, low)):
        fails, survives = (np.zeros(len(chain), ahead.dtype) for _ in range(2))
        np.add.at(fails, chain.sights.place, one * ahead)
        np.add.at(survives, chain.sights.place, other * (1 - ahead))
        total = fails + survives
        ends.append(max((fails[total > 0] / total[total > 0]).tolist(), default=0))
    return ends[0], ends[1]


def _enclose_weights(chain: Chain, likely: Any) -> tuple[Any, Any]:
    """Return the interval of each place: its share of all histories of its sight."""
    assert chain.sights is not None
    assert chain.starts is not None
    sight, seen = chain.sights.place, chain.sights.seen
    exact = likely.dtype == object
    low, high = (np.zeros(len(chain), likely.dtype) for _ in range(2))
    for k, (_, share) in enumerate(chain.starts):
        low[k] = high[k] = to_fraction(share) if exact else float(share)
    ends = np.searchsorted(chain.source, chain.firsts)
    for begin, end in pairwise(ends[:-1].tolist()):
        check_time()
        rows = np.arange(begin, end)[chain.target[begin:end] >= 0]
        source, target = chain.source[rows], chain.target[rows]
        # An *arrival* is an observation after a sight; it has a share for each place that follows.
        width, size = int(seen.max()) + 1, len(chain)
        _, arrival = np.unique(sight[source] * width + seen[rows], return_inverse=True)
        keys, pair = np.unique(arrival * size + target, return_inverse=True)
        came, place = np.divmod(keys, size)
        shares = np.zeros((2, len(came)), likely.dtype)
        np.add.at(shares[0], pair, low[source] * likely[rows])
        np.add.at(shares[1], pair, high[source] * likely[rows])
        if not exact:
            np.maximum(shares[1], NEGLIGIBLE, out=shares[1])
        total = np.zeros(int(came.max(initial=-1)) + 1, likely.dtype)
        np.add.at(total, came, shares[1])
        shares = shares / total[came]
        np.maximum.at(high, place, shares[1])
        low[place] = 2
        np.minimum.at(low, place, shares[0])
        # A history that does not come to a place has no share there.
        met = sight[place[np.unique(came, return_index=True)[1]]]
        arrivals = np.bincount(met, minlength=size)
        missed = np.bincount(place, minlength=size)[place] < arrivals[sight[place]]
        low[place[missed]] = 0
    return low, high


def add_up_charge_exactly(
    chain: Chain, start: Sequence[Number], column: int, once: bool, places: int | None = None
) -> Sum:
    """Return the expected total of a charge in fractions; see `add_up_exactly`."""
    probabilities, charges = (
        list(map(to_fraction, numbers))
        for numbers in (chain.model_numbers[0], chain.charges[column])
    )
    reach = [*map(to_fraction, start), *[Fraction(0)] * (len(chain) - len(start))]
    total = lost = Fraction(0)
    transitions = zip(
        chain.source.tolist(), chain.target.tolist(), probabilities, charges, strict=True
    )
    before = -1
    for source, target, probability, amount in transitions:
        if source != before:
            reach[source], dropped = _cut(reach[source], places)
            lost, before = lost + dropped, source
        flow = reach[source] * probability
        total += flow * amount
        if target >= 0 and not (once and amount):
            reach[target] += flow
    longest = len(chain.sizes) * max(map(abs, charges), default=Fraction(0))
    return Sum(total, 2 * longest * lost)


def _count_lost(chain: Chain, reach: Floats) -> tuple[Fraction, Fraction]:
    """Return bounds on the losses from negligible products: of reach, and of rewards."""

    def count(one: Floats, other: Floats) -> int:
        if _find_least(one) * _find_least(other) >= NEGLIGIBLE:
            return 0
        small = np.abs(one * other) < NEGLIGIBLE
        return int(np.count_nonzero(small & (one != 0) & (other != 0)))

    weights, size = chain.weights, chain.earned[1]
    powers = 0 if 0 in chain.discounts else int(np.count_nonzero(weights < NEGLIGIBLE))
    rewards = count(chain.probability, chain.reward) + count(weights, reach)
    terms = count(weights * reach, size)
    lost = 0
    if (likely := _find_least(chain.probability)) * _find_least(reach) < NEGLIGIBLE:
        small = (reach > 0) & (reach * likely < NEGLIGIBLE)
        lost = int(np.count_nonzero(small[chain.source]))
    return lost * Fraction(NEGLIGIBLE), (powers + rewards + terms) * Fraction(NEGLIGIBLE)


def _find_least(numbers: Floats) -> float:
    """Return the smallest size of a number that is not 0."""
    if (least := float(numbers.min(initial=math.inf))) > 0:
        return least
    sizes = np.abs(numbers)
    return float(sizes.min(initial=math.inf, where=sizes > 0))


def add_up_exactly(chain: Chain, start: Sequence[Number], places: int | None = None) -> Sums:
    """Return the sums in fractions.

    A probability keeps this many binary `places`; None keeps all.
    """
    probabilities, rewards = (list(map(to_fraction, numbers)) for numbers in chain.model_numbers)
    reach = [*map(to_fraction, start), *[Fraction(0)] * (len(chain) - len(start))]
    sources, targets = chain.source.tolist(), chain.target.tolist()
    ends = np.searchsorted(chain.source, chain.firsts).tolist()
    firsts, leaves = chain.firsts.tolist(), chain.leaves.tolist()
    reward = risk = frontier = lost = Fraction(0)
    weight = Fraction(1)
    for level, discount in enumerate(chain.discounts):
        check_time()
        for place in range(firsts[level], firsts[level + 1]):
            reach[place], dropped = _cut(reach[place], places)
            lost += dropped
        earned = Fraction(0)
        for transition in range(ends[level], ends[level + 1]):
            flow = reach[sources[transition]] * probabilities[transition]
            target = targets[transition]
            earned += flow * rewards[transition]
            if target >= 0:
                reach[target] += flow
            elif target == FAILED:
                risk += flow
            if leaves[transition]:
                frontier += flow
        reward += weight * earned
        weight, dropped = _cut(weight * to_fraction(discount), places)
        lost += dropped
    longest = len(chain.sizes) * max(map(abs, rewards), default=Fraction(0))
    return Sum(reward, 4 * longest * lost), Sum(risk, 2 * lost), Sum(frontier, 2 * lost)


def _cut(number: Fraction, places: int | None) -> tuple[Fraction, Fraction]:
    """Return a number truncated to some binary places, and the amount dropped."""
    if places is None or number.denominator.bit_length() <= places:
        return number, Fraction(0)
    kept = Fraction((number.numerator << places) // number.denominator, 1 << places)
    return kept, number - kept


def to_fraction(number: Any) -> Fraction:
    """Return a number of the model as an exact fraction."""
    return Fraction(number.item() if isinstance(number, np.generic) else number)
