"""From the price of failure to a deterministic policy: outcomes in place of random draws.

The best randomised policy draws once between two policies of one price k. A deterministic policy
can't, but outcomes are random, too: it may act differently after different outcomes, and wait for
outcomes where the horizon has room. Fronts of a few points for each pair
(`vulcan.kernels.thin_front`) find such policies.

A policy that earns more than the best so far has a smaller dual gap (see `DualGap`) than the gap of
the search, from the best policy to the upper bound. Three rounds of search have the same number of
points: they drop points with a dual gap above a small part of the gap of the search, above that
gap, and above ten times that gap, since points that few histories reach may have larger dual gaps.
Then the points are doubled. The search ends after rounds that gain little, but not while it is
cheap: on small graphs only many points can spend the last of a small bound.

Levels with few pairs, such as the first ones, get more points: every history passes them, and they
cost little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.forms import Constant
from vulcan.exact.acceptance import ACCEPTED, BoundTest
from vulcan.exact.sweeps import PolicyPoint, make_smallest_levels
from vulcan.graph.levels import Decisions
from vulcan.graph.states import MOST_ROWS
from vulcan.kernels import codes

if TYPE_CHECKING:
    from vulcan.exact.search import ExactSearch

# Points of a front.
FIRST_POINTS: Final = 4  # in the first round
FEWEST_POINTS: Final = 2  # in the first round on graphs with many pairs
MOST_POINTS: Final = 32  # in the last round
MORE_POINTS: Final = 16  # largest factor where levels are small
LONGEST_FRONT: Final = 1024

MANY_PAIRS: Final = 2_000_000  # of a graph where a round takes long

# The search ends after this many rounds that gain less than this fraction of the gap.
IDLE_ROUNDS: Final = 3
SMALL_GAIN: Final = 0.02

# The search for better policies ends below this gap, unless a target gap is set.
GOOD_GAP: Final = 1e-4
FAIR_GAP: Final = 1e-3  # on graphs with many pairs

# Work, in pairs of points.
CHUNK: Final = 1 << 24  # between two checks of the clock; about a tenth of a second
LITTLE_WORK: Final = 1 << 25, 40_000  # below this, or that for each node, there is another round
MOST_WORK: Final = 5_000_000_000  # of all rounds; half a minute

PLACES: Final = 256  # number of rewards at which the risk bound is evaluated
FIRST_DECISIONS: Final = 1 << 12
MOST_DECISIONS: Final = 1 << 22  # more, and more than two per pair, take too long to certify
BYTES_OF_A_POINT: Final = 20
BYTES_OF_A_NODE: Final = 12

SLACK_OF_ROUNDING: Final = 1e-9  # relative difference of rewards that count as equal
SMALLEST: Final = 2.0**-1022  # the smallest normal float, for divisors
LARGEST: Final = 1e300


def improve(search: ExactSearch) -> None:
    """Look for better deterministic policies near the price of failure of the dual bound."""
    dual = search.dual
    levels = search.levels.arrays
    plain = len(levels.state) > 0 and not len(levels.expanded)
    if not plain or search.upper == -math.inf or _is_near_enough(search) or not search.may_go_on():
        return
    with search.monitor.clock_stopped():
        load_kernels()
    price = dual.multiplier
    rewards, risks = search.sweeps.follow(1.0, price)
    values = rewards - price * risks
    span = (min(dual.points, key=lambda point: point.risk).reward, search.upper)
    given = (levels, search.bound_test, price, values, span, search.may_go_on, search.room / 4)
    for point in find_between(ThinFrontSearch(*given), search.upper, search.best):
        search.offer(point)
        search.report()
        if _is_near_enough(search):
            return


def _is_near_enough(search: ExactSearch) -> bool:
    """Whether to look no further for deterministic policies."""
    good = GOOD_GAP if len(search.levels) < MANY_PAIRS else FAIR_GAP
    return search.closed or (search.monitor.limits.gap is None and search.gap <= good)


def find_between(
    search: ThinFrontSearch, upper: float, best: PolicyPoint | None
) -> Iterator[PolicyPoint]:
    """Yield acceptable policies, each better than `best` and the one before.

    No acceptable policy earns more than `upper`.
    """
    points = FIRST_POINTS if search.nodes < MANY_PAIRS else FEWEST_POINTS
    idle, little = 0, min(LITTLE_WORK[0], LITTLE_WORK[1] * search.nodes)
    while points <= (MOST_POINTS if search.work > little else LONGEST_FRONT):
        for share in (0.03, 1.0, 10.0):  # largest dual gap, relative to the gap of the search
            gap = math.inf if best is None else upper - best.reward
            found = search.search(share * gap, points, -math.inf if best is None else best.reward)
            if search.stopped or (idle >= IDLE_ROUNDS and search.work > little):
                return
            idle += 1
            if found is not None:
                if best is None or found.reward - best.reward > SMALL_GAIN * gap:
                    idle = 0
                best = found
                yield found
        points *= 2


class ThinFrontSearch:
    """The search for deterministic policies by thin fronts.

    `levels` (`vulcan.kernels.dp`) are all expanded, and not empty; `values` are the largest
    E g - k er from each node on, with the price of failure k, and `span` the smallest and largest
    reward that matter. `may_go_on` is called every tenth of a second, and fronts may take `memory`
    bytes.
    """

    def __init__(
        self,
        levels: Any,
        bound_test: BoundTest,
        price: float,
        values: NDArray[np.float64],
        span: tuple[float, float],
        may_go_on: Callable[[], bool] = lambda: True,
        memory: float = math.inf,
    ) -> None:
        self._levels, self._bound_test = levels, bound_test
        self._price, self._values = price, values
        self._may_go_on, self._memory = may_go_on, memory
        self._size = max(abs(span[0]), abs(span[1])) or 1.0
        step = max((span[1] - span[0]) / PLACES, 1e-12 * self._size, SMALLEST)
        self._low, self._step = span[0], step
        places = [min(self._low + k * self._step, span[1]) for k in range(PLACES + 1)]
        allowed = [max(-LARGEST, bound_test.allow(place) + ACCEPTED / 2) for place in places]
        self._allowed = np.array(allowed)
        self._marked = np.zeros(len(levels.state), np.uint8)
        self._sizes = np.zeros(len(levels.first) - 1, np.int64)
        self.nodes = len(levels.state)
        self.work = 0  # pairs of points combined so far
        self.stopped = False  # not allowed to go on, or no room for any fronts

    def search(self, slack: float, points: int, least: float = -math.inf) -> PolicyPoint | None:
        """Return the best policy of fronts of this many points, more where levels are small.

        Points have a dual gap of at most `slack`. None if no policy earns more than
        `least`, or the search was stopped.
        """
        from vulcan.kernels import thin_front

        slack = min(max(slack, SLACK_OF_ROUNDING * self._size), LARGEST)
        marking = (self._levels, self._values, self._price, slack, self._marked, self._sizes)
        thin_front.mark(*marking)
        fronts = self._make_fronts(points)
        self.stopped = fronts is None
        if fronts is None:
            return None
        fronts.control["slack"] = slack
        fronts.control["node"] = self.nodes - 1
        fronts.best["reward"] = -math.inf
        extend = partial(thin_front.extend, self._levels, self._values, self._marked)
        # The result must not depend on the amount of work between two checks.
        self.stopped = not self._call(extend, fronts) or self.work > MOST_WORK
        if self.stopped or float(fronts.best["reward"][0]) <= least:
            return None
        point = self._trace(fronts)
        if point is None or point.reward <= least or not self._bound_test.accepts(point):
            return None
        return point

    def _call(self, kernel: Callable[[Any], int], fronts: Any) -> bool:
        """Call a kernel until it is done; False if it may not go on or has no room."""
        status = codes.PAUSED
        while status == codes.PAUSED:
            if not self._may_go_on() or self.work > MOST_WORK:
                return False
            before = int(fronts.control["work"][0])
            fronts.control["pause"] = before + CHUNK
            status = kernel(fronts)
            self.work += int(fronts.control["work"][0]) - before
        return status == codes.DONE

    def _trace(self, fronts: Any) -> PolicyPoint | None:
        """Return the policy of the root's best point; None if stopped before that."""
        from vulcan.kernels import thin_front

        fronts.control["node"] = 0
        while not self._call(partial(thin_front.trace, self._levels, self._values), fronts):
            most = max(MOST_DECISIONS, 2 * len(self._levels.state))
            if not self._may_go_on() or len(fronts.rows) >= most:
                self.stopped = True
                return None
            longer = (fronts.rows, fronts.children)
            rows, children = (np.concatenate([array, np.zeros_like(array)]) for array in longer)
            fronts = fronts._replace(rows=rows, children=children)
        count, width = (int(fronts.control[name][0]) for name in ("decisions", "children"))
        rewards, risks = np.zeros(count), np.zeros(count)
        thin_front.close(self._levels, fronts, rewards, risks)
        pairs = np.zeros(count, np.int32)  # not used
        made = Decisions(fronts.rows[:count].copy(), fronts.children[:width].copy(), pairs)
        return PolicyPoint.made(float(rewards[0]), float(risks[0]), made)

    def _make_fronts(self, points: int) -> Any:
        """Return arrays with room for fronts of some points; None if there is too little memory."""
        from vulcan.kernels import thin_front

        levels, sizes = self._levels, np.maximum(self._sizes, 1)
        more = np.clip(np.sqrt(sizes.max() / sizes), 1, MORE_POINTS)
        bins = np.minimum(LONGEST_FRONT, points * more).astype(np.int64)
        room = int(self._sizes @ (bins + 1))
        longest = 4 * int(bins.max()) + 2
        first, counts = levels.first_action, np.maximum(0, levels.action_count)
        widths = np.concatenate(([0], np.cumsum(levels.safe_count + 1, dtype=np.int64)))
        widest = int((widths[first + counts] - widths[first]).max())
        taken = BYTES_OF_A_POINT * room + BYTES_OF_A_NODE * len(levels.state)
        scratch = widest * longest * thin_front.LINK.itemsize
        if taken + scratch > self._memory or room > MOST_ROWS:
            return None
        control = np.zeros(1, thin_front.CONTROL)
        control["price"], control["low"], control["step"] = self._price, self._low, self._step
        return thin_front.ThinFronts(
            first=np.zeros(len(levels.state), np.int64),
            count=np.zeros(len(levels.state), np.int32),
            bins=bins,
            risks=np.zeros(room),
            rewards=np.zeros(room),
            number=np.zeros(room, np.int32),
            allowed=self._allowed,
            kept=np.zeros(longest, thin_front.CANDIDATE),
            sums=np.zeros(longest, thin_front.CANDIDATE),
            links=np.zeros(widest * longest, thin_front.LINK),
            offered=np.zeros(int(counts.max(initial=1))),
            points=np.zeros(longest, thin_front.CANDIDATE),
            best=np.zeros(1, thin_front.CANDIDATE),
            rows=np.zeros(FIRST_DECISIONS, np.int32),
            children=np.zeros(4 * FIRST_DECISIONS, np.int32),
            starts=np.zeros(len(levels.first), np.int64),
            control=control,
        )


@cache
def load_kernels() -> None:
    """Load or compile the kernels of thin fronts."""
    levels, span, values = make_smallest_levels().arrays, (0.0, 1.0), np.zeros(2)
    ThinFrontSearch(levels, BoundTest(Constant(0.0)), 0.0, values, span).search(1.0, 1)
