"""What all exact solvers share: the layered graph, its dual bound, and the best policy so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.graphs.layered_graph import KINDS, ChoicePlan, LayerArrays, Layers, build_layers
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.limits import DEFAULT_MEMORY, StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.solvers.base import describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status, Trial, find_gap
from vulcan.solvers.layered.coins import (
    Coins,
    DecisionPlan,
    find_between,
    load_kernels,
    make_levels,
)
from vulcan.solvers.layered.dual import Corner, Dual, DualSearch, accepts
from vulcan.tolerance import EXACT_GAP

__all__ = ["LayeredRun"]


ROUNDING_OF_REWARDS: Final = 1e-11
"""What rounding may do to a reward, as a share of the best."""

UNSETTLED: Final = "roundings leave it open whether there is a better policy"

SMALL_GAP: Final = 1e-6
"""A gap that fronts need little work to close, if it can be closed."""

GOOD_GAP: Final = 1e-4
"""Below this gap no better deterministic policies are looked for, unless a smaller one is asked."""


@dataclass(frozen=True)
class Ways:
    """A policy that is a function of state and step.

    Attributes
    ----------
    choice
        The edge of each node.
    rewards, risks
        What it earns and risks from each node on.
    """

    choice: NDArray[np.int32]
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]


class LayeredRun:
    """One search on a layered graph.

    Parameters
    ----------
    problem, reader, monitor
        As `Solver.search` gets them.
    solver
        Whose search it is.
    graph
        What is known of the model already.

    Attributes
    ----------
    best
        The best acceptable deterministic policy so far: a corner whose plan makes a `Policy`.
    upper
        No policy within the risk bound earns more.
    price
        What the upper bound gains per unit of allowed risk; None before there is one.
    trials
        One for each dynamic program.
    proof
        What a proof is called: who made it, if it was not made here.
    """

    layers: Layers

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        solver: object,
        graph: StateGraph | None = None,
    ) -> None:
        from vulcan.kernels import backward_induction
        from vulcan.kernels.compilation import announce_compilation

        announce_compilation(backward_induction.sweep)
        self.problem, self.reader, self.monitor = problem, reader, monitor
        self.bound = problem.risk_bound
        self.graph = StateGraph(reader) if graph is None else graph
        self._solver = solver
        self._kernel = backward_induction
        self.best: Corner | None = None
        self.upper = math.inf
        self.price: float | None = None
        self.proof = "proved"
        self.rewards: list[float] = []
        self.trials: list[Trial] = []
        self._compile()
        memory = monitor.limits.memory
        self._memory = DEFAULT_MEMORY if memory is None else memory

    def _compile(self) -> None:
        """Load or compile the kernels now, before the clock starts."""
        layers = LayerArrays(*(np.zeros(1, kind) for kind in KINDS))
        values, choice = np.zeros(1), np.zeros(1, np.int32)
        self._kernel.sweep(layers, 1.0, 0.0, values, values, choice)

    def unroll(self, *, tree: bool = False, within: Callable[[int], bool] | None = None) -> bool:
        """Build the layered graph; False if a limit or Ctrl-C came first.

        Parameters
        ----------
        tree
            One node for each history.
        within
            Asked with the number of nodes whether to go on.
        """

        def may_go_on(nodes: int, memory: int) -> bool:
            self.monitor.report(lambda: self.describe_progress(nodes))
            small = within is None or within(nodes)
            return small and self.may_go_on(self.graph.memory + memory)

        layers = build_layers(self.graph, tree=tree, may_go_on=may_go_on)
        if layers is not None:
            self.layers = layers
        return layers is not None

    def may_go_on(self, memory: int = 0) -> bool:
        """Whether no limit is reached yet, with this many bytes in use."""
        if memory > self._memory:
            self.monitor.stopped_by = StopReason.MEMORY
        return self.monitor.stopped_by is None and not self.monitor.wants_stop(0)

    def find_dual(self) -> Dual:
        """Find the dual bound, and the best deterministic policies that it leads to."""
        dual = self.find_relaxed()
        self.improve(dual)
        return dual

    def find_relaxed(self) -> Dual:
        """Find the best randomised policy, and with it the dual bound."""
        if not len(self.layers):
            self.offer(Corner(0.0, 0.0, ChoicePlan(np.zeros(0, np.int32))))
        search = DualSearch(self.bound, self.sweep, self.may_go_on)
        dual = search.run()
        self.rewards += search.rewards
        self.upper = dual.upper_bound
        self.price = None if self.upper == -math.inf else dual.price
        return dual

    def improve(self, dual: Dual) -> None:
        """Look for better deterministic policies near the price of failure of the dual bound."""
        whole = len(self.layers) > 0 and bool((self.layers.arrays.nodes["edge_count"] > 0).all())
        if not whole or self.upper == -math.inf or self._near_enough:
            return
        with self.monitor.clock_stopped():
            load_kernels()
        ways = self.follow_weights(1.0, dual.multiplier)
        values = ways.rewards - dual.multiplier * ways.risks
        span = (min(dual.corners, key=lambda corner: corner.risk).reward, self.upper)
        levels, left = make_levels(self.layers), self._memory - self.graph.memory
        price = dual.multiplier
        coins = Coins(levels, self.bound, price, values, span, self.may_go_on, left)
        for corner in find_between(coins, self.upper, self.best):
            self.offer(corner)
            self.report()
            if self._near_enough:
                return

    @property
    def _near_enough(self) -> bool:
        """Whether to look no further for deterministic policies."""
        return self.closed or (self.monitor.limits.gap is None and self.gap <= GOOD_GAP)

    def sweep(self, reward_weight: float, risk_weight: float) -> Corner:
        """Return the best policy for some weights: one dynamic program."""
        ways = self.follow_weights(reward_weight, risk_weight)
        corner = Corner(float(ways.rewards[0]), float(ways.risks[0]), ChoicePlan(ways.choice))
        allowed = self.bound(corner.reward)
        price = risk_weight / reward_weight if reward_weight else math.inf
        passes = accepts(self.bound, corner)
        self.trials.append(Trial(price, corner.reward, corner.risk, allowed, passes))
        self.offer(corner)
        self.report()
        return corner

    def follow_weights(self, reward_weight: float, risk_weight: float) -> Ways:
        """Return the same with what that policy earns and risks from each node on."""
        rewards, risks = self.make_values()
        choice = np.zeros(len(self.layers), np.int32)
        weights = (reward_weight, risk_weight)
        self._kernel.sweep(self.layers.arrays, *weights, rewards, risks, choice)
        return Ways(choice, rewards, risks)

    def make_values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return arrays for the reward and the risk from each node on, filled in for tips."""
        size = max(1, len(self.layers))  # also a graph without nodes has the values of its start
        return np.zeros(size), np.zeros(size)

    def offer(self, corner: Corner) -> bool:
        """Keep a policy if it is acceptable and the best so far."""
        better = self.best is None or corner.reward > self.best.reward
        if better and accepts(self.bound, corner):
            self.best = corner
            return True
        return False

    @property
    def gap(self) -> float:
        """How far the best policy may be from the best possible; inf without one."""
        return math.inf if self.best is None else find_gap(self.best.reward, self.upper)

    @property
    def size(self) -> float:
        """How large the rewards are that matter: of the best policies, with a bound or not."""
        most = max((trial.reward for trial in self.trials), default=0.0)
        return max(abs(most), 0.0 if self.best is None else abs(self.best.reward))

    @property
    def rounding(self) -> float:
        """What rounding may do to a reward; a bound that is no farther away is attained."""
        return max(EXACT_GAP * abs(self.upper), ROUNDING_OF_REWARDS * self.size)

    @property
    def tolerance(self) -> float:
        """The distance from the upper bound at which a policy is good enough."""
        return max(self.rounding, (self.monitor.limits.gap or 0.0) * abs(self.upper))

    @property
    def closed(self) -> bool:
        """Whether the best policy is good enough."""
        if self.best is None or self.upper == math.inf:
            return False
        return self.upper - self.best.reward <= self.tolerance

    def report(self) -> None:
        """Tell how far the search is, if it is time to."""
        self.monitor.report(lambda: self.describe_progress(len(self.layers)))

    def describe_progress(self, nodes: int) -> Progress:
        """Return how far the search is."""
        reward = None if self.best is None else self.best.reward
        return Progress(self.monitor.seconds, None, nodes, self.graph.evaluations, reward)

    def build_policy(self) -> AnyPolicy | None:
        """Return the best policy so far; None without one."""
        if self.best is None:
            return None
        about = describe_origin(self.problem, self.reader, self._solver)
        plan = self.best.plan
        if isinstance(plan, DecisionPlan):  # numbered already
            return self.graph.policy(plan.rows.tolist(), plan.list_children(), about)
        return self.layers.policy(plan, about)

    def find(self, otherwise: str = UNSETTLED) -> Finding:
        """Return what was found.

        Parameters
        ----------
        otherwise
            The explanation where nothing is proved and nothing stopped the search.
        """
        policy = self.build_policy()
        if self.closed and self.best is not None and self.upper - self.best.reward <= self.rounding:
            self.upper = self.best.reward
        status, explanation = self._explain(policy, otherwise)
        nodes = len(self.layers) if hasattr(self, "layers") else 0
        statistics = Statistics(
            self.monitor.seconds, 0, self.graph.evaluations, nodes=nodes, memory=self.graph.memory
        )
        return Finding(
            status=status,
            explanation=explanation,
            policy=policy,
            reward=-math.inf if self.best is None else self.best.reward,
            risk=0.0 if self.best is None else self.best.risk,
            credits=sorted(set(self.rewards)),
            statistics=statistics,
            upper_bound=None if self.upper == math.inf else self.upper,
            trials=tuple(self.trials),
            price=self.price,
            graph=self.graph,
        )

    def _explain(self, policy: AnyPolicy | None, otherwise: str) -> tuple[Status, str]:
        if policy is not None and self.closed:
            if self.gap <= EXACT_GAP:
                return Status.SOLVED, f"best policy within the risk bound, {self.proof}"
            return Status.SOLVED, f"within {100 * self.gap:.2g} % of the best policy, {self.proof}"
        if policy is None and self.upper == -math.inf:
            return Status.INFEASIBLE, f"no policy is within the risk bound, {self.proof}"
        found = "no policy found yet" if policy is None else "best policy so far"
        if self.monitor.stopped_by is not None:
            return Status.STOPPED, f"stopped by {self.monitor.stopped_by}: {found}"
        return Status.DONE, otherwise
