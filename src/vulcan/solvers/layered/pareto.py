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
from typing import ClassVar, Final

import numpy as np

from vulcan.certificates.problem import Problem
from vulcan.graphs.decisions import Decisions, collect_decisions
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.sentinels import END, NONE
from vulcan.solvers.base import EXACT, Coverage, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.fronts import CHUNK, FrontArrays, Pruning, load_kernels
from vulcan.solvers.layered.branching import branch
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.improvement import find_dual
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.shortfall import SMALL_SHARE, Shortfall

__all__ = ["Pareto", "advance_fronts"]

FIRST_SHARE: Final = 1 / 256
"""The slack of the first round, as a share of what the best policy so far falls short."""

FIRST_POINTS: Final = 64
"""Points that a front may have in the first round."""

GROWTH: Final = 4
"""How much more slack, or points, another round gets."""


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
        run = LayeredRun(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        if run.unroll():
            dual = find_dual(run)
            branch(run, dual)
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
        known = -math.inf if run.best is None else run.referee.raise_reward(run.best.reward)
        run.upper = min(run.upper, max(fronts.upper_of_dropped, fronts.upper_of_kept, known))
        # More of what keeps the bound up.
        goal = known + run.tolerance
        too_little, too_few = fronts.upper_of_dropped > goal, fronts.upper_of_kept > goal
        before, too_few = slack, too_few and fronts.thinned
        if too_little:
            slack = max(slack, min(GROWTH * slack, fronts.enough_slack()))
        if slack == before and not too_few:
            return  # roundings keep the bound up, and nothing else
        if too_few:
            points *= GROWTH


class FrontRun:
    """Fronts over a layered graph, and what the last computation of them proved.

    Attributes
    ----------
    upper_of_dropped
        No policy within the risk bound that was dropped earns more.
    upper_of_kept
        No policy within the risk bound that is represented in the fronts earns more.
    """

    def __init__(self, run: LayeredRun, dual: Dual, most_pairs: int | None) -> None:
        self._run = run
        self._pairs_left = math.inf if most_pairs is None else most_pairs + CHUNK
        self._shortfall = Shortfall(run, dual)
        self._least_reach = np.zeros(len(run.layers))
        self._fronts = FrontArrays(run.layers.arrays, run.levels.arrays.first, run.team)
        self.upper_of_dropped = self.upper_of_kept = math.inf

    @property
    def thinned(self) -> bool:
        """Whether some front had more points than were allowed."""
        return self._fronts.thinned

    def first_slack(self) -> float:
        """Return a slack to begin with."""
        enough = self._shortfall.find_enough()
        return SMALL_SHARE * self._shortfall.size if enough == math.inf else FIRST_SHARE * enough

    def enough_slack(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        return self._shortfall.find_enough()

    def compute(self, slack: float, most_points: int) -> bool:
        """Compute all fronts; False if a limit was reached first."""
        from vulcan.kernels.pareto_fronts import find_least_reach

        short, reach = self._shortfall, self._least_reach
        find_least_reach(self._run.layers.arrays, short.values, short.price, slack, reach)
        pruning = Pruning(short.price, short.values, slack, reach, short.size, most_points)
        tips = (short.ways.rewards, short.ways.risks)
        if not self._fronts.compute(pruning, tips, self._may_go_on):
            return False
        # How much is done between two looks at the work must not decide whether it was too much.
        if self._fronts.work > self._pairs_left:
            return False
        self._pairs_left -= self._fronts.work
        self._judge(slack)
        return True

    def _may_go_on(self) -> bool:
        self._run.report()
        return self._fronts.work <= self._pairs_left and self._run.may_go_on(self._fronts.nbytes)

    def _judge(self, slack: float) -> None:
        """Find what the fronts prove."""
        self.upper_of_kept = -math.inf
        referee = self._run.referee
        for point in reversed(self._fronts.points(0)):
            reward = min(float(point["reward"]) + self._fronts.error, self._run.upper)
            self._run.rewards.append(reward)
            if not referee.refuses(Corner(reward, float(point["risk"]))):
                self.upper_of_kept = referee.raise_reward(reward)
                break
        self.upper_of_dropped = self._shortfall.limit(slack) if self._fronts.dropped else -math.inf

    def offer_best(self) -> None:
        """Offer the acceptable point of largest reward to the run."""
        points, run = self._fronts.points(0), self._run
        for place in range(len(points) - 1, -1, -1):
            corner = Corner(float(points[place]["reward"]), float(points[place]["risk"]))
            if run.best is not None and corner.reward <= run.best.reward:
                return
            if not run.referee.refuses(corner) and run.offer(
                replace(corner, plan=self.plan(place))
            ):
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
            edge, places = self._fronts.follow(*key)
            if edge == NONE:  # a tip
                steps[key] = (NONE, [])
                continue
            after = [
                None if target == END else (target, at)
                for target, at in zip(layers.follow(edge), places, strict=True)
            ]
            steps[key] = (int(layers.arrays.edges["action"][edge]), after)
            pending.extend(target for target in after if target is not None)
        return FrontPlan((0, place), steps)
