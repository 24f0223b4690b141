"""Plans: over state–step pairs where states merge, else over histories.

**Pairs.** Where there are few enough state–step pairs, nothing need be sampled. The dual bound,
deterministic policies near its price, and fronts are those of `vulcan.exact`; here they are limited
by counts, so that the same samples give the same policy.

**Histories.** An action or a price for each history is chosen by fronts over the upper tree. Near
the root, where a history is probable, exact fronts of risk and reward weigh actions against
each other (`vulcan.kernels.plan`, `vulcan.kernels.exact_front`). At a leaf of the upper tree, each
price has one policy: the best actions for that price as far as the tree goes, and greedy ones
beyond. The reward and the risk of such a policy are evaluated exactly, to the end of all its
histories (`vulcan.sampling.completion`). That takes long, so only the leaves of the best plan are
evaluated; other leaves have the estimates of the tree. When all leaves of the best plan are
evaluated, the fronts give its exact reward and risk. It spends the allowed risk almost exactly,
since it may follow another price in each of many histories.

A certificate relies on none of this: the points of a final front are exact evaluations of complete
policies.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from vulcan.errors import BoundError
from vulcan.exact import sweeps, thin_fronts
from vulcan.exact.acceptance import ACCEPTED, BoundTest
from vulcan.exact.fronts import FrontArrays, advance_fronts
from vulcan.exact.pipeline import LAGRANGIAN, narrow
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.levels import EDGE, Layers
from vulcan.numerics import END
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor, listen, must_answer
from vulcan.sampling.candidate import FRONTS, NEUTRAL, PAIRS, Candidate
from vulcan.sampling.completion import FINE, Completion
from vulcan.sampling.kernel_run import KernelRun
from vulcan.sampling.price_search import PriceRun

CLOSENESS: Final = 0.01  # of the range of rewards: how much worse than the best actions may be
MOST_ROUNDS: Final = 40  # of choosing a plan and evaluating its leaves
ROUNDING: Final = 1e-6  # of rewards: the error of values in single precision, and of their sums
NO_SLACK: Final = 1e299
ROOM: Final = 1.25  # times the slack that is enough, since leaves change when evaluated
COARSER: Final = 16
FEWEST_POINTS: Final = 32
RARER: Final = 8
WORTHLESS: Final = -1e300


# Plans over pairs.


@dataclass
class WorkLimit:
    """The work that a plan may take; `exceeded` says that it would have taken more."""

    places: float  # state–step pairs, or histories
    evaluations: float  # of states
    until: float  # by `time.perf_counter`
    exceeded: bool = False

    def forbids(self, places: int, evaluations: int = 0) -> bool:
        """Whether a completion that has done this much must stop."""
        self.exceeded = places > self.places or evaluations > self.evaluations
        return self.exceeded or self.late

    @property
    def late(self) -> bool:
        """Whether its time is over, the user has waited long enough, or the memory is full."""
        return time.perf_counter() > self.until or must_answer()


def plan_merged(
    run: KernelRun, problem: Problem, solver: object, limit: WorkLimit, front_work: int = 0
) -> tuple[Candidate | None, ExactSearch, float] | None:
    """Return the best policy found over state–step pairs, its search, and an upper bound.

    The upper bound holds for all policies within the risk bound, randomised or not. There is no
    plan if there are too many pairs, or the bound has no value there. States that were not
    evaluated yet are evaluated. Fronts combine at most `front_work` pairs of points.
    """
    left = limit.until - time.perf_counter()
    limits = Limits(
        memory=max(1, run.limit - (run.memory - run.graph.memory)),
        time_limit=None if math.isinf(left) else max(1e-3, left),
    )
    with listen(lambda: limit.late):
        monitor = Monitor(limits)
    layered = ExactSearch(problem, run.reader, monitor, solver, run.state_graph)
    if not layered.unroll(most_pairs=limit.places, most_new=limit.evaluations):
        limit.exceeded = layered.monitor.stopped_by is None
        return None
    if not len(layered.levels):
        return None
    try:
        narrow(layered, LAGRANGIAN)
        upper = layered.upper
        if front_work:
            advance_fronts(layered, front_work)
    except BoundError:
        return None
    best = layered.best
    if best is None:
        return None, layered, upper
    rows, below, _ = best.decide()
    counts = run.graph.actions.array["safe_count"][rows]
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    worth = best.reward, best.risk, run.allow(best.reward), 0.0
    method = PAIRS if layered.dual.price else NEUTRAL
    return Candidate(rows, firsts, below, *worth, method), layered, upper


def load_kernels() -> None:
    """Load or compile the kernels, before the clock runs."""
    sweeps.load_kernels()
    thin_fronts.load_kernels()


# Plans over histories.


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan: its reward by the fronts, and how it was found, for people."""

    reward: float
    actions: list[tuple[int, int]]  # nodes of the tree, and the position of the action of each
    leaves: list[tuple[int, int]]  # leaves of the upper tree, each with the price that it follows
    method: str


class Planning:
    """An upper tree, and the plans on it.

    `completion` evaluates and writes policies below the upper tree, and `may_go_on` says whether
    there is time left. `detail` is the largest number of histories of the upper tree, and of points
    of a front. Actions of the upper tree may be worse than the best by `closeness`, by default a
    share of the range of rewards. Fronts combine at most `most_combined` pairs of points each time.
    """

    def __init__(
        self,
        run: PriceRun,
        completion: Completion,
        may_go_on: Callable[[], bool],
        detail: tuple[int, int] = FINE,
        closeness: float | None = None,
        most_combined: float = math.inf,
    ) -> None:
        from vulcan.kernels.plan import estimate_leaves

        self._run, self._completion, self._may_go_on = run, completion, may_go_on
        (most_nodes, self._most_points), self._most_combined = detail, most_combined
        low, high = run.reward_span()
        self._closeness = CLOSENESS * (high - low) if closeness is None else closeness
        self._upper_tree = run.grow_upper_tree(most_nodes, self._closeness)
        nodes = self._upper_tree.nodes
        self._leaves = np.flatnonzero(nodes["edge_count"] == 0).astype(np.int32)
        width = run.prices.shape[1]
        nodes["first_edge"][self._leaves] = len(self._upper_tree.edges) + width * np.arange(
            len(self._leaves)
        )
        edges = np.concatenate([self._upper_tree.edges, np.zeros(width * len(self._leaves), EDGE)])
        self._layers = Layers(nodes, edges, self._upper_tree.targets)
        self._histories = self._upper_tree.histories
        self._evaluated = np.zeros(len(nodes), bool)
        self._fronts = FrontArrays(self._layers)
        price_index = int(run.judged["price_index"][int(np.argmax(run.judged["reward"]))])
        self._price, self._slack = float(run.prices[0, price_index]), NO_SLACK
        self._size = max(map(abs, run.reward_span())) or 1.0
        self._layer_values = np.zeros(len(nodes))
        self._most_reward = math.inf
        self._finished = False  # whether the last fronts are complete
        sampled = self._leaves[self._upper_tree.visits[self._leaves] > 0]
        estimate_leaves(self._upper_tree.values, run.prices, nodes, edges, sampled)

    def guide(self) -> None:
        """Mark the best plan by the estimates of the tree: half of the next samples follow it."""
        self._mark(self._choose())

    def _mark(self, plan: Plan | None) -> None:
        """Write a plan into the tree."""
        leaves = [] if plan is None else plan.leaves
        price_indices = [(int(self._histories[n]), price_index) for n, price_index in leaves]
        self._run.follow([] if plan is None else plan.actions, price_indices)

    def finalise(self) -> Plan | None:
        """Return the best plan all of whose leaves are evaluated; None if there is none."""
        unsampled = self._leaves[self._upper_tree.visits[self._leaves] == 0]
        if not self._evaluate(unsampled.tolist()):
            return None
        for _ in range(MOST_ROUNDS):
            plan = self._choose()
            if plan is None:
                break
            left = [n for n, _ in plan.leaves if not self._evaluated[n]]
            if not left:
                return plan
            if not self._evaluate(left):
                break
        if self._evaluated[self._leaves].all():
            return None  # no leaf is left to exclude
        for n in self._leaves[~self._evaluated[self._leaves]]:  # these become worthless
            first = int(self._layers.nodes["first_edge"][n])
            self._layers.nodes["edge_count"][n] = 1
            edge = self._layers.edges[first]
            edge["reward"], edge["risk"], edge["action"] = WORTHLESS, 1.0, 0
        self._may_go_on = lambda: True
        return self._choose()

    def write(self, plan: Plan | None) -> Candidate | None:
        """Return a plan as a policy; None without a plan, or without room for the policy."""
        if plan is None:
            return None
        self._mark(plan)
        candidate = self._completion.write()
        return None if candidate is None else replace(candidate, method=plan.method)

    @property
    def exhaustive(self) -> bool:
        """Whether the last plan is the best of all policies, up to rounding."""
        ended = self._upper_tree.action_counts[self._leaves] == 0  # a root may have no actions
        return bool(ended.all()) and self._finished and not self._fronts.thinned

    def limit(self) -> tuple[float, float]:
        """Return an upper bound on the rewards of the last fronts, and the rounding in it.

        The bound is -inf if no policy is acceptable, whatever the rounding.
        """
        bound_test = BoundTest.of_graphs(
            self._run.problem.risk_bound, self._run.find_extremes(), self._run.reader.weights
        )
        for point in reversed(self._fronts.points(0)):
            reward = float(point["reward"]) + self._fronts.error
            if not bound_test.refuses(PolicyPoint(reward, float(point["risk"]))):
                upper = bound_test.raise_reward(reward)
                return upper, max(bound_test.find_rounding(upper), 2 * self._fronts.error)
        return -math.inf, 0.0

    def _evaluate(self, some: list[int]) -> bool:
        """Evaluate the policies of all prices at leaves; False if there is no time for all."""
        histories = self._histories[some].tolist()
        found = self._completion.evaluate(histories, self._may_go_on)
        for n, (rewards, risks) in zip(some, found, strict=False):
            first, count = int(self._layers.nodes["first_edge"][n]), len(rewards)
            edges = self._layers.edges[first : first + count]
            edges["reward"], edges["risk"], edges["action"] = rewards, risks, np.arange(count)
            self._layers.nodes["edge_count"][n] = count
            self._evaluated[n] = True
        return len(found) == len(some)

    def _choose(self) -> Plan | None:
        """Return the best acceptable plan of the fronts; None if there is none.

        A better plan has a dual gap of at most `_enough`. Fronts of policies within that slack are
        small, and can be fine. The first plan is found by coarse fronts of all policies.
        """
        from vulcan.kernels.plan import value_layers

        value_layers(self._layers, 0.0, self._layer_values)
        self._most_reward = float(self._layer_values[0])
        value_layers(self._layers, self._price, self._layer_values)
        plan = None
        if self._slack < NO_SLACK:
            plan = self._choose_within(self._slack, self._most_points)
        if plan is None:
            plan = self._choose_within(NO_SLACK, max(FEWEST_POINTS, self._most_points // COARSER))
            if plan is None and self._fronts.thinned:
                plan = self._choose_within(NO_SLACK, self._most_points)
            self._slack = 0.0
        while plan is not None and self._enough(plan) > self._slack:
            self._slack = ROOM * self._enough(plan)
            finer = self._choose_within(self._slack, self._most_points)
            if finer is None or finer.reward <= plan.reward:
                break
            plan = finer
        return plan

    def _enough(self, plan: Plan) -> float:
        """Return the largest dual gap of a policy that is better than a plan.

        If its reward is y, its value is at least y - λ Δ(y), which is convex in y.
        """
        low, high = plan.reward, max(plan.reward, self._most_reward)
        for _ in range(60):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if self._worth(left) < self._worth(right) else (left, high)
        worth = min(self._worth(low), self._worth(plan.reward))
        return max(float(self._layer_values[0]) - worth, 0.0) + ROUNDING * self._size

    def _worth(self, reward: float) -> float:
        """Return the least value of a policy of this reward within the bound."""
        return reward - self._price * self._run.allow(reward)

    def _choose_within(self, slack: float, points: int) -> Plan | None:
        """Return the best acceptable plan with a dual gap of at most a slack."""
        run, values = self._run, self._layer_values

        def may_combine() -> bool:
            return self._may_go_on() and self._fronts.work <= self._most_combined

        rare = points if self._closeness == math.inf else max(2, points // RARER)
        given = (self._price, values, slack, self._size, (values, values), may_combine)
        self._finished = self._fronts.compute(*given, points, rare)
        if not self._finished:
            return None
        found = self._fronts.points(0)
        for place in range(len(found) - 1, -1, -1):
            reward, risk = float(found[place]["reward"]), float(found[place]["risk"])
            if reward > WORTHLESS / 1e9 and risk <= run.allow(reward) + ACCEPTED:
                run.accepted.add(reward)
                return self._trace(place, reward)
        return None

    def _trace(self, place: int, reward: float) -> Plan:
        """Return the plan of a point of the root's front."""
        nodes, edges, targets = self._layers
        actions: list[tuple[int, int]] = []
        leaves: list[tuple[int, int]] = []
        is_leaf = np.zeros(len(nodes), bool)
        is_leaf[self._leaves] = True
        pending = [(0, place)]
        while pending:
            n, at = pending.pop()
            edge, places = self._fronts.follow(n, at)
            chosen = int(edges["action"][edge])
            if is_leaf[n]:
                leaves.append((n, chosen))
                continue
            actions.append((int(self._histories[n]), chosen))
            first = int(edges["first_target"][edge])
            for k, point in enumerate(places):
                after = int(targets["node"][first + k])
                if after != END:
                    pending.append((after, point))
        neutral = reward >= self._most_reward - 1e-12 * self._size
        return Plan(reward, actions, leaves, NEUTRAL if neutral else FRONTS)
