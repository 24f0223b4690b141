"""The best history-dependent deterministic policy, by fronts over merged states.

The fronts, and what is dropped from them, are in `vulcan.kernels.fronts`. A round keeps every
policy that falls short of the Lagrangian optimum v = max (E g - k er) by at most a `slack`, up to
an `error` of reward. What a round proves: a policy within the risk bound either fell short by more,
and then earns at most the largest y with y - k Δ(y) <= v - slack; or it is represented in the front
of the root by a point of no more risk and at most `error` less reward. The larger of the two is an
upper bound, and the best acceptable point of the root's front is a policy.

The slack grows from round to round until both meet: the smaller it is, the smaller the fronts. It
need never be larger than what the best policy so far falls short, for then the first case can't be
better than that policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from vulcan.layers import Layers
from vulcan.policy import END, About, Policy
from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.reader import ModelReader
from vulcan.result import EXACT_GAP
from vulcan.solvers.dual import ROUNDING, Corner, Dual, accepts, limit_reward
from vulcan.solvers.layered_run import LayeredRun, refuse_options
from vulcan.solvers.solver import Finding, Options
from vulcan.tolerance import TOLERANCE

__all__ = ["Pareto", "advance_fronts"]

FIRST_SHARE: Final = 1 / 256
"""The slack of the first round, as a share of what the best policy so far falls short."""

FIRST_POINTS: Final = 64
"""Points that a front may have in the first round."""

GROWTH: Final = 4
"""How much more slack, or points, another round gets."""

THINNESS: Final = 1e-14
"""Rewards closer than this share of the largest count as equal: the order of sums differs."""

CHUNK: Final = 1 << 22
"""Drafts between two looks at the clock; some hundredths of a second."""


@dataclass(frozen=True)
class Pareto:
    """Find the best deterministic policy, history-dependent, by fronts of risk and reward.

    With a target gap (`solve(..., gap=0.001)`) it ends as soon as that is proved. Without one it
    goes on until its policy is proved to be the best.
    """

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search; used by `vulcan.solve`."""
        refuse_options("Pareto", monitor, options, ("time_limit", "memory", "gap"))
        run = LayeredRun(problem, reader, monitor, self)
        monitor.start_clock()
        if run.unroll():
            advance_fronts(run, run.find_dual())
        return run.find()


@dataclass(frozen=True)
class FrontPlan:
    """A policy out of fronts: an edge and the following keys for each key (node, place)."""

    root: tuple[int, int]
    steps: dict[tuple[int, int], tuple[int, list[tuple[int, int]]]]

    def build(self, layers: Layers, about: About) -> Policy:
        """Return the policy."""
        return layers.link_policy(self.root, self.steps.__getitem__, about)


def advance_fronts(run: LayeredRun, dual: Dual) -> None:
    """Compute fronts of growing slack until the gap is closed or a limit is reached."""
    target = max(EXACT_GAP, run.monitor.limits.gap or 0.0)
    if run.gap <= target or run.upper == -math.inf or not len(run.layers):
        return
    fronts = FrontRun(run, dual)
    slack, points = FIRST_SHARE * fronts.enough_slack(), FIRST_POINTS
    while run.gap > target and run.upper > -math.inf:
        if not fronts.compute(slack, points):
            return
        run.upper = min(run.upper, max(fronts.upper_of_dropped, fronts.upper_of_kept))
        fronts.offer_best()
        # More of what keeps the bound up.
        goal = -math.inf if run.best is None else run.best.reward + target * abs(run.best.reward)
        if fronts.upper_of_dropped > goal:
            slack = min(GROWTH * slack, fronts.enough_slack())
        if fronts.upper_of_kept > goal:
            points *= GROWTH


class FrontRun:
    """The arrays of fronts over a layered graph, and what the last computation of them proved.

    Attributes
    ----------
    upper_of_dropped
        No policy within the risk bound that was dropped earns more.
    upper_of_kept
        No policy within the risk bound that is represented in the fronts earns more.
    """

    def __init__(self, run: LayeredRun, dual: Dual) -> None:
        from vulcan.kernels import fronts

        self._kernels = fronts
        self._run = run
        self._price = dual.multiplier
        self._size = max(abs(corner.reward) for corner in dual.corners)
        self._rewards, self._risks = run.follow_price(dual.multiplier)
        self._values = self._rewards - self._price * self._risks
        self._least_reach = np.zeros(len(run.layers))
        self._memory = make_memory(run.layers)
        self.upper_of_dropped = self.upper_of_kept = math.inf

    def enough_slack(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        low, high = 0.0, self._size * 1e-6
        best = self._run.best
        if best is None:
            return high
        while self._limit(high) > best.reward:
            low, high = high, 2 * high
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self._limit(middle) <= best.reward else (middle, high)
        return high

    def _limit(self, slack: float) -> float:
        """Return an upper bound on policies that fall short by more than the slack."""
        value = self._values[0] - slack + ROUNDING * self._size
        return limit_reward(self._run.bound, (1.0, self._price), value, self._run.upper)[0]

    def compute(self, slack: float, most_points: int) -> bool:
        """Compute all fronts; False if a limit was reached first."""
        layers, kernels = self._run.layers.arrays, self._kernels
        control = self._memory.control
        control[:] = 0
        control["price"], control["slack"] = self._price, slack
        control["thinness"], control["most_points"] = THINNESS * self._size, most_points
        control["next_node"] = len(self._run.layers) - 1
        kernels.find_least_reach(layers, self._values, self._price, slack, self._least_reach)
        while self._run.may_go_on(self._run.graph.memory + self._bytes()):
            control["pause"] = control["work"] + CHUNK
            wants = kernels.extend(
                layers, self._rewards, self._risks, self._values, self._least_reach, self._memory
            )
            if wants == kernels.DONE:
                self._judge(slack)
                return True
            self._grow(wants)
            self._run.report()
        return False

    def _judge(self, slack: float) -> None:
        """Find what the fronts prove."""
        front = self._memory.fronts[0]
        self.upper_of_kept = -math.inf
        for point in reversed(self._points_of_root()):
            reward = float(point["reward"] + front["error"])
            self._run.rewards.append(reward)
            if accepts(self._run.bound, Corner(reward, float(point["risk"]) - TOLERANCE)):
                self.upper_of_kept = reward
                break
        dropped = self._memory.control["dropped"][0] > 0
        self.upper_of_dropped = self._limit(slack) if dropped else -math.inf

    def offer_best(self) -> None:
        """Offer the acceptable point of largest reward to the run."""
        points = self._points_of_root()
        for place in range(len(points) - 1, -1, -1):
            corner = Corner(float(points[place]["reward"]), float(points[place]["risk"]))
            if accepts(self._run.bound, corner):
                self._run.offer(replace(corner, plan=self.plan(place)))
                return

    def plan(self, place: int) -> FrontPlan:
        """Return the policy of a point of the root's front."""
        layers = self._run.layers.arrays
        steps: dict[tuple[int, int], tuple[int, list[tuple[int, int]]]] = {}
        pending = [(0, place)]
        while pending:
            key = pending.pop()
            if key in steps or key[0] == END:
                continue
            node, at = key
            point = self._memory.points[self._memory.fronts[node]["first"] + at]
            edge = layers.edges[point["edge"]]
            count, first = int(edge["target_count"]), int(edge["first_target"])
            nodes = layers.targets["node"][first : first + count].tolist()
            parts = self._memory.parts[point["first_part"] : point["first_part"] + count].tolist()
            following = list(zip(nodes, parts, strict=True))
            steps[key] = (int(point["edge"]), following)
            pending.extend(following)
        return FrontPlan((0, place), steps)

    def _points_of_root(self) -> Any:
        front = self._memory.fronts[0]
        return self._memory.points[front["first"] : front["first"] + front["count"]]

    def _bytes(self) -> int:
        return sum(array.nbytes for array in self._memory)

    def _grow(self, wants: int) -> None:
        """Double the arrays that are too short."""
        kernels = self._kernels
        names = {
            kernels.NEEDS_POINTS: ("points",),
            kernels.NEEDS_PARTS: ("parts",),
            kernels.NEEDS_SCRATCH: ("drafts", "kept", "chosen", "keys"),
        }.get(wants, ())
        longer = {
            name: np.concatenate([array, np.zeros_like(array)])
            for name in names
            for array in [getattr(self._memory, name)]
        }
        self._memory = self._memory._replace(**longer)


def make_memory(layers: Layers) -> Any:
    """Return the arrays for fronts over a layered graph, short at first."""
    from vulcan.kernels import fronts

    width = int(layers.arrays.edges["target_count"].max(initial=1))
    return fronts.Fronts(
        fronts=np.zeros(len(layers), fronts.FRONT),
        points=np.zeros(1 << 12, fronts.POINT),
        parts=np.zeros(1 << 13, np.int32),
        drafts=np.zeros(1 << 14, fronts.DRAFT),
        kept=np.zeros(1 << 13, fronts.DRAFT),
        chosen=np.zeros((1 << 13, width), np.int32),
        keys=np.zeros(1 << 14),
        bins=np.zeros(fronts.BINS + 1),
        control=np.zeros(1, fronts.CONTROL),
    )
