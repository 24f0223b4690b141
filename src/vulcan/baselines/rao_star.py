"""RAO*: heuristic forward search for the best policy within a risk bound.

The algorithm of Santana, Thiébaux and Williams (2016) for states that are fully observed. It grows
an *explicit graph* from the initial state. Nodes that are not expanded yet, its tips, are valued by
two heuristics of the model: `reward_to_go_bound`, an upper bound on the reward to go, and
`risk_to_go_bound`, a lower bound on the risk to go. Then

    1. find the best policy of the explicit graph within the risk bound, tips at their heuristic
       values;
    2. if it reaches no tip, it is optimal;
    3. otherwise expand all the tips that it reaches, and repeat.

Since the heuristics are optimistic, the best policy of the explicit graph has at least the reward
of the optimum: an upper bound that falls until it is attained.

The published update chooses the best action of a node that keeps to an execution risk bound handed
down from its parent, computed from the present policies of its siblings. It may miss the optimum:
risk that is granted to one branch is missing in another. Here step 1 is exact, by the dual bound
and by fronts over the explicit graph (see `vulcan.exact.fronts`), so that it also works for bounds
that depend on the reward. Histories that lead to the same state and step share a node.

Without `reward_to_go_bound` all states are expanded at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError
from vulcan.exact.fronts import advance_fronts
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint, Sweeps, make_values
from vulcan.exact.thin_fronts import improve
from vulcan.graph.levels import build_levels
from vulcan.graph.states import StateGraph
from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.numerics import UNEVALUATED
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor
from vulcan.solvers.base import EXACT, Coverage, Options, Solver
from vulcan.solvers.finding import Finding

__all__ = ["RAOStar"]

ROUNDING_OF_BOUNDS: Final = 1e-9
"""Rounding error allowed for heuristics, which are sums, too."""

BEYOND: Final = 1e300
"""The loss at a tip, to find the best policy that reaches none."""


@dataclass(frozen=True)
class RAOStar(Solver):
    """Expand only what the best policy within the bound may need, by the model's heuristics (RAO*).

    The model offers `reward_to_go_bound(state, step)` and, optionally, `risk_to_go_bound(state,
    action, step)`. The policy is the best deterministic, history-dependent one. A search that is
    stopped by a limit returns an upper bound only.
    """

    finds: ClassVar[str] = "the best deterministic policy, evaluating only what may matter"
    method: ClassVar[str] = "the model's reward_to_go_bound and risk_to_go_bound"
    limits: ClassVar[Sequence[str]] = EXACT
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        run = RAOStarRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        while run.grow() and run.plan():
            pass
        run.conclude()
        return run.find()


class RAOStarRun(ExactSearch):
    """One search: the explicit graph, and the heuristic values of its tips."""

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        solver: object,
        graph: StateGraph | None = None,
    ) -> None:
        super().__init__(problem, reader, monitor, solver, graph)
        self._guided = hasattr(problem.model, "reward_to_go_bound")
        self._cautious = hasattr(problem.model, "risk_to_go_bound")
        self._opened = {(StateGraph.ROOT, 0)}
        self._ends: dict[int, bool] = {}
        self._heuristics: dict[tuple[int, int], tuple[float, float]] = {}
        self._least_upper = math.inf
        self._finished = False

    def grow(self) -> bool:
        """Build the explicit graph from the opened nodes; False if a limit came first."""
        levels = build_levels(
            self.graph,
            may_go_on=lambda nodes, memory: self.may_go_on(memory),
            opens=self._opens if self._guided else None,
        )
        if levels is None:
            return False
        expanded = levels.arrays.expanded
        self._tips = np.flatnonzero(~expanded) if len(expanded) else np.zeros(0, np.intp)
        self._keys = list(zip(levels.arrays.state.tolist(), levels.levels.tolist(), strict=True))
        values = make_values(len(levels))
        for tip in self._tips.tolist():
            values[tip] = self._estimate(*self._keys[tip])
        self.use(levels, values)
        return True

    def plan(self) -> bool:
        """Find the best policy of the explicit graph and open its tips; False if it has none.

        The best randomised policy takes milliseconds, so that its tips are opened first.
        """
        self.best, self.trials = None, []
        dual = self.find_dual()
        if dual.best is not None:
            points = (dual.best.safe, dual.best.risky)
            tips = {tip for point in points for tip in point.decide().find_tips()}
            if tips:
                return self._open(sorted(tips))
        improve(self)
        advance_fronts(self)
        if self.monitor.stopped_by is not None:
            return False
        if self.best is None:
            self._finished = self.upper == -math.inf
            self._least_upper = min(self._least_upper, self.upper)
            return False
        tips_of_best = self.best.decide().find_tips()
        self._finished = not tips_of_best
        return not self._finished and self._open(tips_of_best)

    def accepts(self, point: PolicyPoint) -> bool:
        """Whether a policy may be acceptable; one that ends in tips has no certificate yet."""
        known = self.bound_test.accepts(point) or self.bound_test.refuses(point)
        if not known and point.decide().find_tips():
            return True
        return super().accepts(point)

    def conclude(self) -> None:
        """Keep a policy that reaches no tip, else the upper bound only."""
        if self._finished:
            self._check_heuristics()
        else:
            self.best, self.upper = None, self._least_upper

    def _open(self, tips: list[int]) -> bool:
        self._least_upper = min(self._least_upper, self.upper)
        self._opened.update(self._keys[tip] for tip in tips)
        return self.may_go_on()

    def _opens(self, states: NDArray[np.int32], level: int) -> NDArray[np.bool_]:
        opened = [
            (state, level) in self._opened or self._is_end(state) for state in states.tolist()
        ]
        return np.array(opened, bool)

    def _is_end(self, state: int) -> bool:
        """Whether a state is a safe terminal; evaluates the model's actions, not its outcomes."""
        count = int(self.graph.states.array["action_count"][state])
        if count != UNEVALUATED:
            return count == 0
        if state not in self._ends:
            self._ends[state] = not self.reader.actions(self.graph.state_object(state))
        return self._ends[state]

    def _estimate(self, state: int, level: int) -> tuple[float, float]:
        """Return the heuristic values of a tip: reward from the start of the mission, and risk."""
        key = (state, level)
        if key not in self._heuristics:
            place, step = self.graph.state_object(state), self._step(level)
            # A model may return inf; the arithmetic needs a finite number.
            bound = min(self.reader.bound_reward(place, step), BEYOND)
            if bound == -math.inf:
                message = "reward_to_go_bound is -inf, which is no upper bound"
                raise ModelError(Violation(Rule.BOUNDS, message, place))
            reward = float(self.reader.weights[level]) * bound
            risk = 0.0
            if self._cautious:
                actions = self.reader.actions(place).values()
                risk = min(self.reader.bound_risk(place, action, step) for action in actions)
            self._heuristics[key] = (reward, risk)
        return self._heuristics[key]

    def _step(self, level: int) -> int:
        return level - isinstance(self.reader.root, Start)

    def _check_heuristics(self) -> None:
        """Refuse heuristics that a policy of the explicit graph proves wrong."""
        worst = make_values(len(self.levels))
        worst["reward"], worst["risk"] = -BEYOND, BEYOND
        sweeps = Sweeps(self.levels, worst)
        earned = sweeps.follow_weights(1.0, 0.0).rewards
        risked = sweeps.follow_weights(0.0, 1.0).risks
        for node, key in enumerate(self._keys):
            if key not in self._heuristics:
                continue
            reward, risk = self._heuristics[key]
            allowed = ROUNDING_OF_BOUNDS * max(1.0, abs(reward))
            for name, found, claimed, wrong in (
                ("reward_to_go_bound", earned[node], reward, earned[node] > reward + allowed),
                ("risk_to_go_bound", risked[node], risk, risked[node] < risk - ROUNDING_OF_BOUNDS),
            ):
                if wrong:
                    state, step = self.graph.state_object(key[0]), self._step(key[1])
                    message = f"{name} says {claimed!r} at step {step}, a policy has {found:.17g}"
                    raise ModelError(Violation(Rule.BOUNDS, message, state))
