"""Exact fronts: the best history-dependent deterministic policy over merged states.

The fronts, and what is dropped from them, are in `vulcan.kernels.exact_front`. A round keeps every
policy whose dual gap is at most a *slack*, up to an *error* of reward. With k the price of failure
of the dual bound and v = max (E g - k er) over all policies, a policy has the *dual gap*
v - (E g - k er) >= 0. If an acceptable policy has a dual gap above a slack, it earns at most the
largest y with y - k Δ(y) <= v - slack (`DualGap.limit`). So a round proves that a policy within the
risk bound either has a larger dual gap, and earns at most that limit, or is represented in the
front of the root by a point of no more risk and at most `error` less reward. The larger of the two
rewards is an upper bound, and the best acceptable point of the root's front is a policy.

The slack grows from round to round until the two meet: the smaller the slack, the smaller the
fronts. It need never exceed the slack at which the limit is the reward of the best policy so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.acceptance import ACCEPTED
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint, make_smallest_levels
from vulcan.graph.levels import Decisions, Layers, collect_decisions, count_bytes, write_layers
from vulcan.kernels import codes
from vulcan.numerics import END, NONE
from vulcan.solvers.finding import is_closed

CHUNK: Final = 1 << 20
"""Pairs of points between two checks of the clock; about a hundredth of a second."""


class FrontArrays:
    """The fronts of all nodes of a layered graph."""

    def __init__(self, layers: Layers, cap: float = math.inf) -> None:
        from vulcan.kernels import exact_front

        self._layers, self._cap = layers, cap
        self._least_reach = np.zeros(len(layers.nodes))  # smallest probability of a history
        width = int(layers.edges["target_count"].max(initial=1))
        most = exact_front.FIRST_CANDIDATES
        self._memory = exact_front.Fronts(
            fronts=np.zeros(len(layers.nodes), exact_front.FRONT),
            points=np.zeros(1 << 12, exact_front.POINT),
            parts=np.zeros(1 << 13, np.int32),
            candidates=np.zeros(most, exact_front.CANDIDATE),
            kept=np.zeros(most // 2, exact_front.CANDIDATE),
            chosen=np.zeros((most // 2, width), np.int32),
            keys=np.zeros(most),
            bins=np.zeros(exact_front.BINS + 1),
            control=np.zeros(1, exact_front.CONTROL),
        )

        # Counts of the last computation: pairs of points combined, edges and pairs dropped for
        # their dual gaps, and fronts with more points than were allowed.
        self.work = self.dropped = self.thinned = 0

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return sum(array.nbytes for array in self._memory)

    @property
    def error(self) -> float:
        """Largest reward that a policy may lose to the point of the root that represents it."""
        return float(self._memory.fronts[0]["error"])

    def compute(
        self,
        price: float,
        values: NDArray[np.float64],
        slack: float,
        size: float,
        tips: tuple[NDArray[np.float64], NDArray[np.float64]],
        may_go_on: Callable[[], bool],
        most_points: int,
        rare_points: int | None = None,
    ) -> bool:
        """Compute all fronts; False if `may_go_on`, called before each chunk of work, ends this.

        `values` are the largest reward - price · risk from each node on. Policies with a dual gap
        above `slack` are dropped. `size` is the size of rewards. `tips` are reward and risk of
        nodes without edges; other entries don't matter. A front has at most `most_points`, and
        `rare_points` where a node is hardly ever reached; between, the more the larger the
        probability.
        """
        from vulcan.kernels.exact_front import extend, find_least_reach

        find_least_reach(self._layers, values, price, slack, self._least_reach)
        control = self._memory.control
        control[:] = 0
        control["price"], control["slack"], control["cap"] = price, slack, self._cap
        control["thinness"] = 1e-14 * size  # rewards differ by the order of sums
        control["most_points"], control["rare_points"] = most_points, rare_points or most_points
        control["work_limit"] = CHUNK
        control["next_node"] = len(self._layers.nodes) - 1
        self.work = self.dropped = self.thinned = 0
        while may_go_on():
            control["pause"] = control["work"] + CHUNK
            wants = extend(self._layers, *tips, values, self._least_reach, self._memory)
            self.work, self.dropped, self.thinned = control[["work", "dropped", "thinned"]][
                0
            ].item()
            if wants == codes.DONE:
                return True
            if wants == codes.NODE_LIMIT:
                control["work_limit"] *= 2  # the node begins anew
            elif wants == codes.NEEDS_SCRATCH:
                self._double("candidates", "kept", "chosen", "keys")
            elif wants == codes.NEEDS_POINTS:
                self._double("points")
            elif wants == codes.NEEDS_PARTS:
                self._double("parts")
        return False

    def _double(self, *names: str) -> None:
        arrays = {name: getattr(self._memory, name) for name in names}
        longer = {name: np.concatenate([a, np.zeros_like(a)]) for name, a in arrays.items()}
        self._memory = self._memory._replace(**longer)

    def points(self, node: int) -> Any:
        """Return the points of a node's front, in the order of risk and reward."""
        front = self._memory.fronts[node]
        return self._memory.points[front["first"] : front["first"] + front["count"]]

    def follow(self, node: int, place: int) -> tuple[int, list[int]]:
        """Return the edge of a point, NONE at a tip, and the places of the points after it."""
        point = self.points(node)[place]
        edge, first = int(point["edge"]), int(point["first_part"])
        if edge < 0:
            return edge, []
        count = int(self._layers.edges["target_count"][edge])
        return edge, self._memory.parts[first : first + count].tolist()

    def decide(self, place: int) -> Decisions:
        """Return the decisions of a point of the root's front."""

        def choose(key: tuple[int, int]) -> tuple[int, int, list[tuple[int, int] | None]]:
            node, _ = key
            edge, places = self.follow(*key)
            if edge == NONE:  # a tip
                return node, NONE, []
            after = [
                None if target == END else (target, at)
                for target, at in zip(self._layers.follow(edge), places, strict=True)
            ]
            return node, int(self._layers.edges["action"][edge]), after

        # A key is a node, and the place in its front of the point that a history aims at.
        return collect_decisions((0, place), choose)


@cache
def load_kernels() -> None:
    """Load or compile the kernels of fronts."""
    numbers = np.zeros(2)
    arrays = FrontArrays(write_layers(make_smallest_levels()))
    arrays.compute(0.0, numbers, 0.0, 1.0, (numbers, numbers), lambda: True, 1)


ROUNDING: Final = 1e-12
"""Relative rounding error of a slack, which is divided by probabilities, and summed."""

SMALL_SHARE: Final = 1e-6  # a small slack, as a share of the rewards that matter


class DualGap:
    """Dual gaps of policies at the price of failure of the dual.

    `rewards` and `risks` belong to the best policy for this price from each node on, and `values`
    are the largest reward - price · risk.
    """

    def __init__(self, search: ExactSearch) -> None:
        self._search, self.price, self.size = search, search.dual.multiplier, search.size
        self.rewards, self.risks = search.sweeps.follow(1.0, self.price)
        self.values = self.rewards - self.price * self.risks
        # Where the policy of least risk is in doubt, no limit is below its reward.
        self._least = search.dual.least_reward

    def charge(self, charges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what charges cost at these prices, those of a row in a row."""
        return self.price * charges[:, 0]

    def limit(self, slack: float) -> float:
        """Return an upper bound on acceptable policies with a dual gap above a slack."""
        dual, weights, best = self._search.dual, (1.0, self.price), float(self.values[0])
        # The value of every policy is rounded, and so are the dual gaps of its parts.
        rounding = 4 * (self._search.bound_test.raise_value(best, weights, dual.most) - best)
        value = best - (1 - ROUNDING) * slack + rounding
        return dual.limit(weights, value, self._search.upper)[0]

    def find_enough(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        best = self._search.best
        if best is None:
            return math.inf
        goal = max(self._search.bound_test.raise_reward(best.reward), self._least)
        low, high = 0.0, self.size * SMALL_SHARE or SMALL_SHARE
        while high < math.inf and self.limit(high) > goal:
            low, high = high, 2 * high
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.limit(middle) <= goal else (middle, high)
        return high


class SeveralGap(DualGap):
    """Dual gaps of policies at the prices of several constraints."""

    def __init__(self, search: ExactSearch) -> None:
        several = search.several
        weight = float(several.weights[0])
        # Without a weight of reward there is no price for the best policies.
        weights = several.weights / weight if weight > 0 else np.eye(len(several.weights))[0]
        self._search, self._weights = search, weights
        self.size, self._least = search.size, -math.inf
        self.price = float(weights[1])  # of failure
        values = several.evaluate(weights)
        self.values, self.rewards, self.risks = np.ascontiguousarray(values.T[:3])

    def charge(self, charges: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(charges @ self._weights[1:])

    def limit(self, slack: float) -> float:
        several, best = self._search.several, float(self.values[0])
        if slack == math.inf:
            return -math.inf
        # The value of every policy is rounded, and so are the dual gaps of its parts.
        rounding = 8 * several.find_error(self._weights, best)
        value = best - (1 - ROUNDING) * slack + rounding
        return min(self._search.upper, several.bound_by(self._weights, value))


def open_gap(search: ExactSearch) -> DualGap:
    """Return the dual gaps of a search."""
    return SeveralGap(search) if search.problem.constraints else DualGap(search)


FIRST_SHARE: Final = 1 / 256
"""The slack of the first round, as a share of the largest slack that may be needed."""

FIRST_POINTS: Final = 64  # points that a front may have in the first round
ROOM_FOR_FRONTS: Final = 4  # memory of layers and fronts, in units of the memory of the layers
GROWTH: Final = 4  # the factor of slack, or of points, between two rounds


def advance_fronts(search: ExactSearch, most_combined: int | None = None) -> None:
    """Compute fronts of growing slack until the gap is closed or a limit is reached.

    At most `most_combined` pairs of points are combined. They know a cap on the risk ahead, but no
    other constraint beside the risk bound.
    """
    if not len(search.levels) or search.closed or search.upper == -math.inf:
        return
    if len(search.bounds) > 1:
        return
    with search.monitor.clock_stopped():
        load_kernels()
    if not search.may_go_on(ROOM_FOR_FRONTS * count_bytes(search.levels)):
        return
    cap = search.several.cap + ACCEPTED if search.problem.constraints else math.inf
    dual_gap, fronts = open_gap(search), FrontArrays(search.layers, cap)
    enough, points = dual_gap.find_enough(), FIRST_POINTS
    slack = SMALL_SHARE * dual_gap.size if enough == math.inf else FIRST_SHARE * enough
    pairs_left = math.inf if most_combined is None else most_combined + CHUNK

    def may_go_on() -> bool:
        search.report()
        return fronts.work <= pairs_left and search.may_go_on(fronts.nbytes)

    while not search.closed and search.upper > -math.inf:
        uppers = bound_by_fronts(search, dual_gap, fronts, slack, points, may_go_on)
        # The result must not depend on the amount of work between two checks.
        if uppers is None or fronts.work > pairs_left:
            return
        pairs_left -= fronts.work
        _offer_best(search, fronts)
        best = search.best
        known = -math.inf if best is None else search.bound_test.raise_reward(best.reward)
        search.upper = min(search.upper, max(*uppers, known))
        # Increase whichever of slack and points limits the bound.
        too_little, too_few = (
            not is_closed(known, upper, search.requested_gap, search.rounding) for upper in uppers
        )
        before, too_few = slack, too_few and fronts.thinned > 0
        if too_little:
            slack = max(slack, min(GROWTH * slack, dual_gap.find_enough()))
        if slack == before and not too_few:
            return  # only rounding limits the bound
        if too_few:
            points *= GROWTH


def bound_by_fronts(
    search: ExactSearch,
    dual_gap: DualGap,
    fronts: FrontArrays,
    slack: float,
    most_points: int,
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[float, float] | None:
    """Compute all fronts; return upper bounds on the policies dropped and on the policies kept.

    None if a limit was reached first.
    """
    tips = (dual_gap.rewards, dual_gap.risks)
    given = (dual_gap.price, dual_gap.values, slack, dual_gap.size, tips)
    if not fronts.compute(*given, may_go_on, most_points):
        return None
    upper_of_dropped = dual_gap.limit(slack) if fronts.dropped else -math.inf
    for point in reversed(fronts.points(0)):
        reward = min(float(point["reward"]) + fronts.error, search.upper)
        search.rewards.append(reward)
        if not search.refuses(_make_point(reward, float(point["risk"]))):
            return upper_of_dropped, search.bound_test.raise_reward(reward)
    return upper_of_dropped, -math.inf


def _offer_best(search: ExactSearch, fronts: FrontArrays) -> None:
    """Offer the acceptable point of the root's front with the largest reward to the search."""
    points = fronts.points(0)
    for place in range(len(points) - 1, -1, -1):
        point = _make_point(float(points[place]["reward"]), float(points[place]["risk"]))
        if search.best is not None and point.reward <= search.best.reward:
            return
        if search.refuses(point):
            continue
        # At once: another computation writes over these fronts.
        if search.offer(replace(point, decide=partial(Decisions, *fronts.decide(place)))):
            return


def _make_point(reward: float, risk: float) -> PolicyPoint:
    """Return a point of the root, which keeps a cap as all points do."""
    return PolicyPoint(reward, risk, charges=(risk,))
