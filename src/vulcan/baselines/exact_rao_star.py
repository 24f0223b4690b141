"""RAO* with an exact update, and the heuristics of a model.

It grows an *explicit graph* of state-step pairs from the initial state. Pairs that are not expanded
yet, its tips, have the values of the heuristics. Then

    1. find the best policy of the explicit graph within the risk bound, by the dual bound and by
       fronts (`vulcan.exact.fronts`);
    2. if it reaches no tip, it is optimal;
    3. otherwise expand all the tips that it reaches, and repeat.

Since the heuristics are optimistic, the best policy of the explicit graph has at least the reward
of the optimum: an upper bound that falls until it is attained.
"""

from __future__ import annotations

import math
from typing import Any, Final

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

ROUNDING_OF_BOUNDS: Final = 1e-9
"""Rounding error allowed for heuristics, which are sums, too."""

BEYOND: Final = 1e300
"""The reward to go where the model has no bound; with the other sign, the loss at a tip."""


class Heuristics:
    """The bounds that a model offers for heuristic search, checked to be numbers.

    Attributes
    ----------
    guided
        Whether there is an upper bound on the reward to go.
    """

    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader
        self.guided = hasattr(reader.model, "reward_to_go_bound")
        self._cautious = hasattr(reader.model, "risk_to_go_bound")

    def estimate(self, place: Any, level: int) -> tuple[float, float]:
        """Return the upper bound on the reward and the lower bound on the risk to go."""
        step = self._find_step(level)
        # A model may return inf; the arithmetic needs a finite number.
        reward = min(self._reader.bound_reward(place, step), BEYOND) if self.guided else BEYOND
        if reward == -math.inf:
            message = "reward_to_go_bound is -inf, which is no upper bound"
            raise ModelError(Violation(Rule.BOUNDS, message, place))
        if not self._cautious:
            return reward, 0.0
        actions = self._reader.actions(place).values()
        return reward, min(self._reader.bound_risk(place, action, step) for action in actions)

    def require(
        self, place: Any, level: int, claimed: tuple[float, float], found: tuple[float, float]
    ) -> None:
        """Refuse bounds that the reward and risk of a policy from a level on prove wrong."""
        allowed = ROUNDING_OF_BOUNDS * max(1.0, abs(claimed[0]))
        for name, says, has, wrong in (
            ("reward_to_go_bound", claimed[0], found[0], found[0] > claimed[0] + allowed),
            ("risk_to_go_bound", claimed[1], found[1], found[1] < claimed[1] - ROUNDING_OF_BOUNDS),
        ):
            if wrong:
                step = self._find_step(level)
                message = f"{name} says {says!r} at step {step}, a policy has {has:.17g}"
                raise ModelError(Violation(Rule.BOUNDS, message, place))

    def _find_step(self, level: int) -> int:
        return level - isinstance(self._reader.root, Start)


class ExactRun(ExactSearch):
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
        self._source = Heuristics(reader)
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
            opens=self._opens if self._source.guided else None,
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
            reward, risk = self._source.estimate(self.graph.state_object(state), level)
            self._heuristics[key] = (float(self.reader.weights[level]) * reward, risk)
        return self._heuristics[key]

    def _check_heuristics(self) -> None:
        """Refuse heuristics that a policy of the explicit graph proves wrong."""
        worst = make_values(len(self.levels))
        worst["reward"], worst["risk"] = -BEYOND, BEYOND
        sweeps = Sweeps(self.levels, worst)
        earned = sweeps.follow(1.0, 0.0)[0]
        risked = sweeps.follow(0.0, 1.0)[1]
        for node, (state, level) in enumerate(self._keys):
            if (state, level) in self._heuristics:
                found = (float(earned[node]), float(risked[node]))
                place, claimed = self.graph.state_object(state), self._heuristics[state, level]
                self._source.require(place, level, claimed, found)
