"""Plans: which price to follow in which history, chosen by fronts over the top of the tree.

Near the root, where a history is probable, actions are weighed against each other by exact fronts
of risk and reward (`vulcan.kernels.plan_top`, `vulcan.kernels.pareto_fronts`). Below, at a stub,
each price has one policy: the best actions for that price as far as the tree goes, and greedy ones
beyond. What such a policy earns and risks is evaluated exactly, to the end of all its histories
(`vulcan.kernels.plan_values`). That takes long, so that it is done for the stubs of the plan only;
until then, a stub has what the tree believes of it. When all stubs of the best plan are known, it
is what the fronts say it is. It spends the allowed risk almost exactly, since it may follow another
price in each of many histories.

Soundness needs nothing of this: the points of a front are exact evaluations of complete policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from vulcan.graphs.layered_graph import EDGE, LayerArrays
from vulcan.sentinels import END
from vulcan.solvers.fronts import FrontArrays, Pruning
from vulcan.solvers.layered.accuracy import bound_accuracy
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.tree.completion import Completion
from vulcan.solvers.tree.draft import FRONTS, NEUTRAL, Draft
from vulcan.solvers.tree.price_run import PriceRun
from vulcan.solvers.tree.tops import FINE, Detail
from vulcan.tolerance import TOLERANCE

__all__ = ["Plan", "Planning"]


CLOSENESS: Final = 0.01
"""Actions may fall short by this share of the range of rewards, and still be weighed."""

MOST_ROUNDS: Final = 40
"""How often a plan is chosen anew, after stubs of the one before have become known."""

ROUNDING: Final = 1e-6
"""As a share of rewards: what values in single precision, and sums of them, are off."""

NO_SLACK: Final = 1e299

ROOM: Final = 1.25
"""How much more slack than is enough fronts get, for what changes as stubs become known."""

COARSER: Final = 16
FEWEST_POINTS: Final = 32
RARER: Final = 8

UNKNOWN: Final = -1e300


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan.

    Attributes
    ----------
    reward, risk
        What it earns and risks, by the fronts.
    actions
        Nodes of the tree, and the position of the action that each takes.
    stubs
        Nodes of the top, each with the price that it follows.
    road
        What led to it, for people.
    """

    reward: float
    risk: float
    actions: list[tuple[int, int]]
    stubs: list[tuple[int, int]]
    road: str = FRONTS


class Planning:
    """The top of a tree, and the plans on it.

    Parameters
    ----------
    run
        The search.
    completion
        What evaluates and writes what lies below the top.
    may_go_on
        Asked again and again.
    detail
        How large top and fronts may be.
    closeness
        By how much actions may fall short, and still be weighed; a share of the range of rewards
        by default.
    most_pairs
        How many pairs of points fronts may combine, each time.
    """

    def __init__(
        self,
        run: PriceRun,
        completion: Completion,
        may_go_on: Callable[[], bool],
        detail: Detail = FINE,
        closeness: float | None = None,
        most_pairs: float = math.inf,
    ) -> None:
        self._run, self._completion, self._may_go_on = run, completion, may_go_on
        self._detail, self._most_pairs = detail, most_pairs
        low, high = run.reward_span()
        self._closeness = CLOSENESS * (high - low) if closeness is None else closeness
        self._top = run.grow_top(detail.nodes, self._closeness)
        top = self._top.nodes
        self._stubs = np.flatnonzero(top["edge_count"] == 0).astype(np.int32)
        width = run.prices.shape[1]
        top["first_edge"][self._stubs] = len(self._top.edges) + width * np.arange(len(self._stubs))
        edges = np.concatenate([self._top.edges, np.zeros(width * len(self._stubs), EDGE)])
        self._layers = LayerArrays(top, edges, self._top.targets)
        self._histories = self._top.histories
        self._known = np.zeros(len(top), bool)
        self._fronts = FrontArrays(self._layers)
        self._lane = int(run.judged["lane"][int(np.argmax(run.judged["reward"]))])
        self._price, self._slack = float(run.prices[0, self._lane]), NO_SLACK
        self._size = max(*map(abs, run.reward_span()), 1e-9)
        self._layer_values, self._reach = np.zeros(len(top)), np.zeros(len(top))
        self._most_reward = math.inf
        self._finished = False  # the last fronts
        self._estimate()

    def guide(self) -> None:
        """Let half of the samples to come follow the best plan, as far as the tree knows."""
        self.mark(self._choose())

    def mark(self, plan: Plan | None) -> None:
        """Write a plan into the tree."""
        if plan is None:
            self._run.follow([], [])
        else:
            lanes = [(int(self._histories[n]), lane) for n, lane in plan.stubs]
            self._run.follow(plan.actions, lanes)

    def settle(self) -> Plan | None:
        """Return the best plan all of whose stubs are known; None if there is none."""
        unsampled = self._stubs[self._top.visits[self._stubs] == 0]
        if not self._evaluate(unsampled.tolist()):
            return None
        for _ in range(MOST_ROUNDS):
            plan = self._choose()
            if plan is None:
                break
            unknown = [n for n, _ in plan.stubs if not self._known[n]]
            if not unknown:
                return plan
            if not self._evaluate(unknown):
                break
        if self._known[self._stubs].all():
            return None  # there is nothing to forget
        self._forget_unknown()
        self._may_go_on = lambda: True
        return self._choose()

    def write(self, plan: Plan) -> Draft | None:
        """Return a plan as a policy; None without room for it."""
        self.mark(plan)
        return self._completion.write()

    @property
    def exhaustive(self) -> bool:
        """Whether the last plan is the best of all policies, as far as values are exact."""
        ended = self._top.action_counts[self._stubs] == 0  # a root may have no actions
        return bool(ended.all()) and self._finished and not self._fronts.thinned

    def limit(self) -> tuple[float, float]:
        """Return what no policy of the last fronts earns more than, and what of that is rounding.

        The bound is -inf if no policy is acceptable, whatever rounding can do.
        """
        accuracy = bound_accuracy(self._run.find_extremes(), self._run.reader.weights)
        referee = Referee(self._run.problem.risk_bound, accuracy)
        for point in reversed(self._fronts.points(0)):
            reward = float(point["reward"]) + self._fronts.error
            if not referee.refuses(Corner(reward, float(point["risk"]))):
                upper = referee.raise_reward(reward)
                return upper, max(referee.find_rounding(upper), 2 * self._fronts.error)
        return -math.inf, 0.0

    def _estimate(self) -> None:
        """Give the stubs what the tree believes of them."""
        from vulcan.kernels.plan_top import estimate_stubs

        sampled = self._stubs[self._top.visits[self._stubs] > 0]
        known = (self._top.values, self._run.prices)
        estimate_stubs(*known, self._layers.nodes, self._layers.edges, sampled)

    def _evaluate(self, some: list[int]) -> bool:
        """Evaluate the policies of all prices from stubs on; False if there is no time for all."""
        histories = self._histories[some].tolist()
        found = self._completion.evaluate(histories, self._may_go_on)
        for n, (rewards, risks) in zip(some, found, strict=False):
            first, count = int(self._layers.nodes["first_edge"][n]), len(rewards)
            edges = self._layers.edges[first : first + count]
            edges["reward"], edges["risk"], edges["action"] = rewards, risks, np.arange(count)
            self._layers.nodes["edge_count"][n] = count
            self._known[n] = True
        return len(found) == len(some)

    def _forget_unknown(self) -> None:
        """Let stubs that are not known be worth nothing."""
        for n in self._stubs[~self._known[self._stubs]]:
            first = int(self._layers.nodes["first_edge"][n])
            self._layers.nodes["edge_count"][n] = 1
            self._layers.edges["reward"][first], self._layers.edges["risk"][first] = UNKNOWN, 1.0
            self._layers.edges["action"][first] = 0

    def _choose(self) -> Plan | None:
        """Return the best acceptable plan of the fronts; None if there is none.

        What is better than a plan falls short of the largest value for a price by no more than
        `_enough`: fronts of what falls short no more are small, and can be fine. Where no plan is
        known yet, coarse fronts of everything find one.
        """
        from vulcan.kernels.plan_top import value_layers

        value_layers(self._layers, 0.0, self._layer_values)
        self._most_reward = float(self._layer_values[0])
        value_layers(self._layers, self._price, self._layer_values)
        plan = None
        if self._slack < NO_SLACK:
            plan = self._choose_within(self._slack, self._detail.points)
        if plan is None:
            plan = self._choose_within(NO_SLACK, max(FEWEST_POINTS, self._detail.points // COARSER))
            if plan is None and self._fronts.thinned:
                plan = self._choose_within(NO_SLACK, self._detail.points)
            self._slack = 0.0
        while plan is not None and self._enough(plan) > self._slack:
            self._slack = ROOM * self._enough(plan)
            finer = self._choose_within(self._slack, self._detail.points)
            if finer is None or finer.reward <= plan.reward:
                break
            plan = finer
        return plan

    def _enough(self, plan: Plan) -> float:
        """Return how much a policy that is better than a plan can fall short.

        If it earns y, it is worth at least y - λ Δ(y), which is convex in y.
        """
        low, high = plan.reward, max(plan.reward, self._most_reward)
        for _ in range(60):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if self._worth(left) < self._worth(right) else (left, high)
        worth = min(self._worth(low), self._worth(plan.reward))
        return max(float(self._layer_values[0]) - worth, 0.0) + ROUNDING * self._size

    def _worth(self, reward: float) -> float:
        """Return the least that a policy of this reward within the bound is worth."""
        return reward - self._price * self._run.allow(reward)

    def _may_combine(self) -> bool:
        return self._may_go_on() and self._fronts.work <= self._most_pairs

    def _choose_within(self, slack: float, points: int) -> Plan | None:
        """Return the best acceptable plan that falls short by at most a slack."""
        from vulcan.kernels.pareto_fronts import find_least_reach

        run, values, reach = self._run, self._layer_values, self._reach
        find_least_reach(self._layers, values, self._price, slack, reach)
        rare = points if self._closeness == math.inf else max(2, points // RARER)
        pruning = Pruning(self._price, values, slack, reach, self._size, points, rare)
        self._finished = self._fronts.compute(pruning, (values, values), self._may_combine)
        if not self._finished:
            return None
        found = self._fronts.points(0)
        for place in range(len(found) - 1, -1, -1):
            reward, risk = float(found[place]["reward"]), float(found[place]["risk"])
            if reward > UNKNOWN / 1e9 and risk <= run.allow(reward) + TOLERANCE / 2:
                run.accepted.add(reward)
                return self._trace(place, reward, risk)
        return None

    def _trace(self, place: int, reward: float, risk: float) -> Plan:
        """Return the plan of a point of the root's front."""
        nodes, edges, targets = self._layers
        actions: list[tuple[int, int]] = []
        stubs: list[tuple[int, int]] = []
        stub = np.zeros(len(nodes), bool)
        stub[self._stubs] = True
        pending = [(0, place)]
        while pending:
            n, at = pending.pop()
            edge, places = self._fronts.follow(n, at)
            chosen = int(edges["action"][edge])
            if stub[n]:
                stubs.append((n, chosen))
                continue
            actions.append((int(self._histories[n]), chosen))
            first = int(edges["first_target"][edge])
            for k, part in enumerate(places):
                after = int(targets["node"][first + k])
                if after != END:
                    pending.append((after, part))
        if reward >= self._most_reward - 1e-12 * self._size:
            return Plan(reward, risk, actions, stubs, NEUTRAL)
        return Plan(reward, risk, actions, stubs)
