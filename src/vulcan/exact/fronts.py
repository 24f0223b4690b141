"""Exact fronts: the best history-dependent deterministic policy over merged states.

The fronts, and what is dropped from them, are in `vulcan.kernels.exact_front`. A round keeps every
policy that falls short of the Lagrangian optimum by at most a *slack*, up to an *error* of reward.
With k the price of failure of the dual bound, let v = max (E g - k er) over all policies. A policy
falls short by v - (E g - k er) >= 0. If it is acceptable and falls short by more than a slack, it
earns at most the largest y with y - k Δ(y) <= v - slack (`DualGap.limit`). What a round proves: a
policy within the risk bound either fell short by more, and then earns at most that limit; or it is
represented in the front of the root by a point of no more risk and at most `error` less reward. The
larger of the two is an upper bound, and the best acceptable point of the root's front is a policy.

The slack grows from round to round until both meet: the smaller it is, the smaller the fronts. It
need never be larger than what the best policy so far falls short, for then the first case can't be
better than that policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint, make_smallest_levels
from vulcan.graph.levels import Decisions, Layers, collect_decisions, count_bytes, write_layers
from vulcan.kernels import codes
from vulcan.numerics import END, NONE
from vulcan.solvers.finding import is_closed

CHUNK: Final = 1 << 22
"""Pairs of points between two checks of the clock; some hundredths of a second."""

THINNESS: Final = 1e-14
"""Relative difference of rewards up to which they count as equal: the order of sums differs."""


class FrontArrays:
    """The fronts of all nodes of a layered graph."""

    def __init__(self, layers: Layers) -> None:
        from vulcan.kernels import exact_front

        self._layers = layers
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

        # Of the last computation: pairs of points that it combined; how much it dropped that falls
        # short by too much; and the number of fronts with more points than were allowed.
        self.work = self.dropped = self.thinned = 0

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return sum(array.nbytes for array in self._memory)

    @property
    def error(self) -> float:
        """How much more reward a point of the root may stand for than its own."""
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
        """Compute all fronts; False if it may not go on, as asked before each chunk of work.

        `values` are the largest reward - price · risk from each node on. What falls short of that
        of the root by more than `slack` is dropped. `size` is that of rewards. `tips` are reward
        and risk of nodes without edges; other entries don't matter. A front has at most
        `most_points`, and `rare_points` where a node is hardly ever reached; between, the more the
        larger the probability.
        """
        from vulcan.kernels.exact_front import extend, find_least_reach

        find_least_reach(self._layers, values, price, slack, self._least_reach)
        control = self._memory.control
        control[:] = 0
        control["price"], control["slack"] = price, slack
        control["thinness"] = THINNESS * size
        control["most_points"], control["rare_points"] = most_points, rare_points or most_points
        control["patience"] = CHUNK
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
            if wants == codes.IMPATIENT:
                control["patience"] *= 2  # one node takes long; it begins anew
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

        # A key is a node, and the place in its front of the point that a history goes for.
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
    """What policies may fall short, for the price of failure of a search's dual.

    `rewards` and `risks` are those of the best policy for this price from each node on, and
    `values` the largest reward - price · risk.
    """

    def __init__(self, run: ExactSearch) -> None:
        self._run, self.price, self.size = run, run.dual.multiplier, run.size
        self.rewards, self.risks = run.sweeps.follow(1.0, self.price)
        self.values = self.rewards - self.price * self.risks

    def limit(self, slack: float) -> float:
        """Return an upper bound on acceptable policies that fall short by more than a slack."""
        dual, weights, best = self._run.dual, (1.0, self.price), float(self.values[0])
        # The value of every policy is rounded, and what each of its parts falls short of that.
        rounding = 4 * (self._run.bound_test.raise_value(best, weights, dual.most) - best)
        value = best - (1 - ROUNDING) * slack + rounding
        return dual.limit(weights, value, self._run.upper)[0]

    def find_enough(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        best = self._run.best
        if best is None:
            return math.inf
        # Where the policy of least risk is in doubt, no limit is below what it earns.
        least = self._run.dual.least_reward
        goal = max(self._run.bound_test.raise_reward(best.reward), least)
        low, high = 0.0, self.size * SMALL_SHARE or SMALL_SHARE
        while high < math.inf and self.limit(high) > goal:
            low, high = high, 2 * high
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.limit(middle) <= goal else (middle, high)
        return high


FIRST_SHARE: Final = 1 / 256
"""The slack of the first round, as a share of what the best policy so far falls short."""

FIRST_POINTS: Final = 64  # points that a front may have in the first round
ROOM_FOR_FRONTS: Final = 4  # memory of layers and fronts, in units of the memory of the layers
GROWTH: Final = 4  # how much more slack, or points, another round gets


def advance_fronts(run: ExactSearch, most_pairs: int | None = None) -> None:
    """Compute fronts of growing slack until the gap is closed or a limit is reached.

    At most `most_pairs` pairs of points are combined.
    """
    if not len(run.levels) or run.closed or run.upper == -math.inf:
        return
    with run.monitor.clock_stopped():
        load_kernels()
    if not run.may_go_on(ROOM_FOR_FRONTS * count_bytes(run.levels)):
        return
    dual_gap, fronts = DualGap(run), FrontArrays(run.layers)
    enough, points = dual_gap.find_enough(), FIRST_POINTS
    slack = SMALL_SHARE * dual_gap.size if enough == math.inf else FIRST_SHARE * enough
    pairs_left = math.inf if most_pairs is None else most_pairs + CHUNK

    def may_go_on() -> bool:
        run.report()
        return fronts.work <= pairs_left and run.may_go_on(fronts.nbytes)

    while not run.closed and run.upper > -math.inf:
        uppers = bound_by_fronts(run, dual_gap, fronts, slack, points, may_go_on)
        # The amount of work between two checks must not decide whether it was too much.
        if uppers is None or fronts.work > pairs_left:
            return
        pairs_left -= fronts.work
        _offer_best(run, fronts)
        known = -math.inf if run.best is None else run.bound_test.raise_reward(run.best.reward)
        run.upper = min(run.upper, max(*uppers, known))
        # More of what keeps the bound up.
        too_little, too_few = (
            not is_closed(known, upper, run.requested_gap, run.rounding) for upper in uppers
        )
        before, too_few = slack, too_few and fronts.thinned > 0
        if too_little:
            slack = max(slack, min(GROWTH * slack, dual_gap.find_enough()))
        if slack == before and not too_few:
            return  # roundings keep the bound up, and nothing else
        if too_few:
            points *= GROWTH


def bound_by_fronts(
    run: ExactSearch,
    dual_gap: DualGap,
    fronts: FrontArrays,
    slack: float,
    most_points: int,
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[float, float] | None:
    """Compute all fronts; return upper bounds on policies that were dropped, and on those kept.

    None if a limit was reached first.
    """
    tips = (dual_gap.rewards, dual_gap.risks)
    given = (dual_gap.price, dual_gap.values, slack, dual_gap.size, tips)
    if not fronts.compute(*given, may_go_on, most_points):
        return None
    upper_of_dropped = dual_gap.limit(slack) if fronts.dropped else -math.inf
    for point in reversed(fronts.points(0)):
        reward = min(float(point["reward"]) + fronts.error, run.upper)
        run.rewards.append(reward)
        if not run.bound_test.refuses(PolicyPoint(reward, float(point["risk"]))):
            return upper_of_dropped, run.bound_test.raise_reward(reward)
    return upper_of_dropped, -math.inf


def _offer_best(run: ExactSearch, fronts: FrontArrays) -> None:
    """Offer the acceptable point of the root's front with the largest reward to the run."""
    points = fronts.points(0)
    for place in range(len(points) - 1, -1, -1):
        point = PolicyPoint(float(points[place]["reward"]), float(points[place]["risk"]))
        if run.best is not None and point.reward <= run.best.reward:
            return
        if run.bound_test.refuses(point):
            continue
        # At once: another computation writes over these fronts.
        if run.offer(PolicyPoint.made(point.reward, point.risk, fronts.decide(place))):
            return
