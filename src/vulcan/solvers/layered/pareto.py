"""The best history-dependent deterministic policy, by fronts over merged states.

The fronts, and what is dropped from them, are in `vulcan.kernels.pareto_fronts`. A round keeps
every policy that falls short of the Lagrangian optimum by at most a `slack` (see `shortfall`), up
to an `error` of reward. What a round proves: a policy within the risk bound either fell short by
more, and then earns at most what that limits it to; or it is represented in the front of the root
by a point of no more risk and at most `error` less reward. The larger of the two is an upper bound,
and the best acceptable point of the root's front is a policy.

The slack grows from round to round until both meet: the smaller it is, the smaller the fronts. It
need never be larger than what the best policy so far falls short, for then the first case can't be
better than that policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from vulcan.certificates.problem import Problem
from vulcan.graphs.decisions import Decisions, collect_decisions
from vulcan.graphs.layered_graph import KINDS, LayerArrays
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.sentinels import END, NONE
from vulcan.solvers.base import EXACT, Coverage, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.layered.dual import Corner, Dual, accepts
from vulcan.solvers.layered.first_steps import bound_first_steps
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.shortfall import SMALL_SHARE, Shortfall
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
"""Pairs of points between two looks at the clock; some hundredths of a second."""


@dataclass(frozen=True)
class Pareto(Solver):
    """Find the best deterministic policy, history-dependent, by fronts of risk and reward.

    With a target gap (`solve(..., gap=0.001)`) it ends as soon as that is proved. Without one it
    goes on until its policy is proved to be the best, up to roundings.
    """

    finds: ClassVar[str] = "the best deterministic policy, history-dependent, proved"
    method: ClassVar[str] = "fronts of risk and reward over pairs of state and step"
    limits: ClassVar[Sequence[str]] = (*EXACT, "gap")
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        run = LayeredRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if run.unroll():
            dual = run.find_dual()
            bound_first_steps(run, dual)
            advance_fronts(run, dual)
        return run.find()


Key = tuple[int, int]
"""A node, and the place in its front of the point that a history goes for."""


@dataclass(frozen=True)
class FrontPlan:
    """A policy out of fronts.

    Attributes
    ----------
    root
        The key of the initial node.
    steps
        For each key the row that is taken, and the keys of its targets, None at ends.
    """

    root: Key
    steps: dict[Key, tuple[int, list[Key | None]]]

    def decide(self) -> Decisions:
        """Return its decisions."""
        return collect_decisions(self.root, lambda key: (key[0], *self.steps[key]))


def advance_fronts(run: LayeredRun, dual: Dual, most_pairs: int | None = None) -> None:
    """Compute fronts of growing slack until the gap is closed or a limit is reached.

    Parameters
    ----------
    run
        The search; its best policy and its upper bound get better.
    dual
        Its dual.
    most_pairs
        Pairs of points that may be combined; None for no limit.
    """
    if not len(run.levels):
        return
    fronts: FrontRun | None = None
    slack, points = 0.0, FIRST_POINTS
    while not run.closed and run.upper > -math.inf:
        if fronts is None:
            with run.monitor.clock_stopped():
                load_kernels()
            if not run.has_room_for_layers():
                return
            fronts = FrontRun(run, dual, most_pairs)
            slack = fronts.first_slack()
        if not fronts.compute(slack, points):
            return
        fronts.offer_best()
        known = -math.inf if run.best is None else run.best.reward
        run.upper = min(run.upper, max(fronts.upper_of_dropped, fronts.upper_of_kept, known))
        # More of what keeps the bound up.
        goal = known + run.tolerance
        too_little, too_few = fronts.upper_of_dropped > goal, fronts.upper_of_kept > goal
        if too_little:
            slack = min(GROWTH * slack, fronts.enough_slack())
        elif not fronts.thinned:
            return
        if too_few:
            points *= GROWTH


class FrontRun:
    """The arrays of fronts over a layered graph, and what the last computation of them proved.

    Attributes
    ----------
    upper_of_dropped
        No policy within the risk bound that was dropped earns more.
    upper_of_kept
        No policy within the risk bound that is represented in the fronts earns more.
    thinned
        Whether some front had more points than were allowed.
    """

    def __init__(self, run: LayeredRun, dual: Dual, most_pairs: int | None) -> None:
        from vulcan.kernels import pareto_fronts

        self._kernels = pareto_fronts
        self._run = run
        self._pairs_left = math.inf if most_pairs is None else most_pairs
        self._shortfall = Shortfall(run, dual)
        self._least_reach = np.zeros(len(run.layers))
        self._memory = make_memory(run.layers.arrays)
        self.upper_of_dropped = self.upper_of_kept = math.inf
        self.thinned = False

    def first_slack(self) -> float:
        """Return a slack to begin with."""
        enough = self._shortfall.find_enough()
        return SMALL_SHARE * self._shortfall.size if enough == math.inf else FIRST_SHARE * enough

    def enough_slack(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        return self._shortfall.find_enough()

    def compute(self, slack: float, most_points: int) -> bool:
        """Compute all fronts; False if a limit was reached first."""
        layers, kernels = self._run.layers.arrays, self._kernels
        short, control = self._shortfall, self._memory.control
        control[:] = 0
        control["price"], control["slack"] = short.price, slack
        control["thinness"], control["most_points"] = THINNESS * short.size, most_points
        control["next_node"] = len(self._run.layers) - 1
        control["patience"] = CHUNK
        kernels.find_least_reach(layers, short.values, short.price, slack, self._least_reach)
        while self._run.may_go_on(self._bytes()):
            done = int(control["work"][0])
            if done > self._pairs_left:
                return False
            control["pause"] = done + CHUNK
            to_go = (short.ways.rewards, short.ways.risks, short.values, self._least_reach)
            wants = kernels.extend(layers, *to_go, self._memory)
            if wants == codes.DONE:
                self._pairs_left -= int(control["work"][0])
                self._judge(slack)
                return True
            if wants == codes.IMPATIENT:
                # One node takes long. It begins anew, so that patience must grow.
                control["patience"] *= 2
            self._grow(wants)
            self._run.report()
        return False

    def _judge(self, slack: float) -> None:
        """Find what the fronts prove."""
        front = self._memory.fronts[0]
        self.upper_of_kept = -math.inf
        for point in reversed(self._points_of_root()):
            reward = min(float(point["reward"] + front["error"]), self._run.upper)
            self._run.rewards.append(reward)
            if accepts(self._run.bound, Corner(reward, float(point["risk"]) - TOLERANCE)):
                self.upper_of_kept = reward
                break
        self.thinned = bool(self._memory.control["thinned"][0])
        dropped = self._memory.control["dropped"][0] > 0
        self.upper_of_dropped = self._shortfall.limit(slack) if dropped else -math.inf

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
        layers = self._run.layers
        steps: dict[Key, tuple[int, list[Key | None]]] = {}
        pending = [(0, place)]
        while pending:
            key = pending.pop()
            if key in steps:
                continue
            node, at = key
            point = self._memory.points[self._memory.fronts[node]["first"] + at]
            edge, first = int(point["edge"]), int(point["first_part"])
            if edge < 0:  # a tip
                steps[key] = (NONE, [])
                continue
            nodes = layers.follow(edge)
            parts = self._memory.parts[first : first + len(nodes)].tolist()
            after = [
                None if target == END else (target, at)
                for target, at in zip(nodes, parts, strict=True)
            ]
            steps[key] = (int(layers.arrays.edges["action"][edge]), after)
            pending.extend(target for target in after if target is not None)
        return FrontPlan((0, place), steps)

    def _points_of_root(self) -> Any:
        front = self._memory.fronts[0]
        return self._memory.points[front["first"] : front["first"] + front["count"]]

    def _bytes(self) -> int:
        return sum(array.nbytes for array in self._memory)

    def _grow(self, wants: int) -> None:
        """Double the arrays that are too short."""
        names = {
            codes.NEEDS_POINTS: ("points",),
            codes.NEEDS_PARTS: ("parts",),
            codes.NEEDS_SCRATCH: ("drafts", "kept", "chosen", "keys"),
        }.get(wants, ())
        longer = {
            name: np.concatenate([array, np.zeros_like(array)])
            for name in names
            for array in [getattr(self._memory, name)]
        }
        self._memory = self._memory._replace(**longer)


def load_kernels() -> None:
    """Load or compile the kernels of fronts."""
    from vulcan.kernels import pareto_fronts
    from vulcan.kernels.compilation import announce_compilation

    announce_compilation(pareto_fronts.extend)
    arrays = LayerArrays(*(np.zeros(1, kind) for kind in KINDS))
    number = np.zeros(1)
    pareto_fronts.find_least_reach(arrays, number, 0.0, 0.0, number)
    pareto_fronts.extend(arrays, number, number, number, number, make_memory(arrays))


def make_memory(layers: LayerArrays) -> Any:
    """Return the arrays for fronts over a layered graph, short at first."""
    from vulcan.kernels import pareto_fronts

    width = int(layers.edges["target_count"].max(initial=1))
    return pareto_fronts.Fronts(
        fronts=np.zeros(len(layers.nodes), pareto_fronts.FRONT),
        points=np.zeros(1 << 12, pareto_fronts.POINT),
        parts=np.zeros(1 << 13, np.int32),
        drafts=np.zeros(1 << 14, pareto_fronts.DRAFT),
        kept=np.zeros(1 << 13, pareto_fronts.DRAFT),
        chosen=np.zeros((1 << 13, width), np.int32),
        keys=np.zeros(1 << 14),
        bins=np.zeros(pareto_fronts.BINS + 1),
        control=np.zeros(1, pareto_fronts.CONTROL),
    )
