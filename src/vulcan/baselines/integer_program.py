"""The best deterministic policy, by integer programming over flows in HiGHS.

**The program.** The flows of `vulcan.baselines.programs` become those of deterministic policies
with a binary variable z(e) that says whether e is the edge that its node takes; only such an edge
may have a flow (Dolgov and Durfee, 2005),

    x(e) <= most(n) z(e),    Σ_{e of n} z(e) = 1,

with most(n) the largest probability of being in n, or more: 1 as it was published. Where a single
path leads to n, as everywhere on histories, a deterministic policy is in n with probability most(n)
or 0. Then x(e) / most(n) is binary itself, and needs no z.

On histories ("tree") the solutions are all deterministic policies; on merged states ("graph") those
that are functions of state and step, which may earn less. Tangents of Δ are added as cuts: a policy
that HiGHS finds and Δ does not accept is cut off by the tangent at its reward, and by itself where
HiGHS's tolerance does not separate the two. Several constraints have tangents each.

**Reduction.** A tree has too many histories to write down. But the dual bound (`vulcan.exact.dual`)
gives an almost optimal policy and an upper bound in milliseconds, and both together rule out nearly
everything else. With a price of failure k, let V(n) be the largest E g - k er from a node on, and
s(e) >= 0 the gap of an edge of the node below it. Any policy, history-dependent or not, has

    E g - k er  =  V(root) - Σ_h q(h) s(e(h)),

the sum over the histories h that it can be in, each with its probability q(h) and the edge e(h)
that is taken there. Several constraints have a price each, those of their dual bound. So a policy
that takes e after h loses at least the sum along h, e included: the *loss* of that step. A policy
that is acceptable and better than a known one cannot lose much (`vulcan.exact.fronts`), so that
steps of larger loss are dropped. Of a tree with millions of histories a few hundred often remain.
Where too many remain, those of least loss are searched first: a better policy rules out more.

**Proof.** HiGHS proves that nothing better is left, in floating point and with tolerances, and
results say so: unlike all else here, that proof is not checked. Its tolerances are left as they
are; reward and risk are scaled up instead. With 1e-7, and often with 1e-10, HiGHS 1.15 called
policies the best that were not. `Pareto` gives the same answer with a proof of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from vulcan.baselines.programs import (
    COLUMN_BYTES,
    ON,
    SIZE,
    Cut,
    Floats,
    FlowProgram,
    Network,
    cut_all,
    cut_along,
    cut_below,
    find_charges,
    find_sizes,
    open_network,
    require_form,
    unfold,
)
from vulcan.exact.fronts import DualGap, open_gap
from vulcan.exact.pipeline import LAGRANGIAN, narrow
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint
from vulcan.model.reader import ModelReader
from vulcan.numerics import EXACT_GAP
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding, Status, is_closed

TOLERANCE_OF_ROWS: Final = 1e-6  # HiGHS's tolerance of rows and of integrality
ACCURACY: Final = 4 * TOLERANCE_OF_ROWS / SIZE  # of a bound by HiGHS, relative to usual rewards
FIRST_EDGES: Final = 4000  # edges of the tree that is searched first
GROWTH: Final = 4  # factor of the edges of the next tree; divisor of the slack if it has too many
MOST_PROGRAMS: Final = 100  # a safeguard: one or two programs per tree are usual


@dataclass(frozen=True)
class IntegerProgram(Solver):
    """Find the best deterministic policy by integer programming.

    Parameters
    ----------
    on
        "tree" for policies that may depend on the whole history; "graph" for those that depend on
        state and step only, which may earn less. The upper bound of the result holds for all
        policies; on a graph that is not reduced there is none.
    reduced
        Omit histories that the dual bound rules out. Without it the program is that of Dolgov and
        Durfee as published, over all histories or states: the same answer, thousands of times
        later.
    """

    finds: ClassVar[str] = "the best deterministic policy, or on graph the best Markov one"
    method: ClassVar[str] = "HiGHS, tangent cuts"
    limits: ClassVar[Sequence[str]] = (*EXACT, "gap")
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC
    options: ClassVar[Sequence[Option]] = (ON,)
    several: ClassVar[bool] = True
    sums_only: ClassVar[bool] = True

    on: Literal["graph", "tree"] = "tree"
    reduced: bool = True

    def __post_init__(self) -> None:
        require_form(self.on)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        import highspy  # noqa: F401  # now, before the clock starts

        run = IntegerSearch(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        if run.unroll():
            if not self.reduced and len(run.levels):
                run.search_as_published(self.on)
            elif run.reduce(self.on):
                run.search_reduced(self.on)
        return run.conclude(self.on)


class IntegerSearch(ExactSearch):
    """One search; its upper bound may come from HiGHS."""

    proved = False  # whether no policy of the last program is better than the best one
    _doubtful = -math.inf  # largest reward of policies that rounding leaves undecided
    _size = 1.0  # of rewards

    def reduce(self, on: str) -> bool:
        """Find the dual bound and policies near it; return whether anything is left to search."""
        narrow(self, LAGRANGIAN)
        self._size = self.size
        if on == "graph":
            points = self.several.points if self.problem.constraints else self.dual.points
            accepted = [point for point in points if self.accepts(point)]
            self.best = max(accepted, key=lambda point: point.reward, default=None)
        none = math.isinf(self.upper) or -math.inf in [bound(self.upper) for bound in self.bounds]
        if none or self._reached or not len(self.levels):
            self.proved = self._reached or self.upper == -math.inf
            return False
        return self.may_go_on()

    @property
    def rounding(self) -> float:
        """Error of a bound by rounding and HiGHS's tolerances."""
        return max(super().rounding, 2 * ACCURACY * self.size)

    @property
    def _target(self) -> float:
        """The relative gap at which a policy is good enough."""
        return max(EXACT_GAP, self.monitor.limits.gap or 0.0)

    @property
    def _reached(self) -> bool:
        """Whether the best policy is good enough."""
        if self.best is None or math.isinf(self.upper):
            return False
        return is_closed(self.best.reward, self.upper, self._target, self.rounding)

    def search_reduced(self, on: str) -> None:
        """Search the layered graph, or trees of histories of growing size."""
        if on == "graph":
            if network := open_network(self, on):
                self._solve(network)
            return
        dual_gap = open_gap(self)
        most, last = FIRST_EDGES, False
        # The gap of each edge below the best one of its node.
        nodes, edges, _ = self.layers
        network = Network(self.layers, charged=find_charges(self))
        arriving = network.probability * dual_gap.values[network.node]
        worth = edges["reward"] - dual_gap.charge(network.charges)
        worth = worth + np.bincount(network.edge, arriving, len(edges))
        best = np.maximum.reduceat(worth, nodes["first_edge"])
        gaps = np.repeat(best, nodes["edge_count"]) - worth
        while not (last or self._reached) and self.may_go_on(COLUMN_BYTES * most):
            found = self._grow(dual_gap, gaps, most)
            most *= GROWTH
            if found is None:
                continue
            slack, tree = found
            within = self._solve(tree)
            last = tree.complete or slack >= dual_gap.find_enough()
            dropped = -math.inf if tree.complete else dual_gap.limit(slack)
            self.upper = min(self.upper, max(within, dropped))

    def _grow(self, dual_gap: DualGap, gaps: Floats, most: int) -> tuple[float, Network] | None:
        """Return the tree of largest slack with at most this many edges; None if there is none."""
        slack = dual_gap.find_enough()
        charged = find_charges(self)
        while (tree := unfold(self.layers, lambda e: e <= most, gaps, slack, charged)) is None:
            slack = min(slack, GROWTH * self._size) / GROWTH
            if slack <= ACCURACY * self._size:
                return None
        return slack, tree

    def search_as_published(self, on: str) -> None:
        """Solve the program over the whole layered graph, with tangents of Δ alone."""
        network = open_network(self, on)
        if network is None:
            return
        # The bound need not have a value beyond the largest reward.
        if self.problem.constraints:
            directions = np.eye(1 + len(self.bounds))
            ends = [self.several.sweep(weights)[0] for weights in directions]
            least = (0.0, *(-self.several.sizes[1:]).tolist())
        else:
            ends = [self.sweeps.find_best(*weights) for weights in ((1.0, 0.0), (0.0, 1.0))]
            least = ()
        top = ends[0].reward
        self.rewards.append(top)
        self._size = abs(top) or 1.0
        if self.refuses(PolicyPoint(top, 0.0, charges=least)):  # less reward allows less risk
            self.proved, self.upper = True, -math.inf
            return
        if -math.inf in [bound(top) for bound in self.bounds]:  # there is no tangent
            return
        sizes = np.maximum(find_sizes(self, top), network.charges.max(axis=0))
        cuts = [cut_along(bound.tangent(top), top, k) for k, bound in enumerate(self.bounds)]
        within = self._solve_with_cuts(network, sizes, cuts, top, published=True)
        for point in ends:
            if point.reward > within and not self.refuses(point):
                self.proved, within = False, math.inf  # HiGHS errs: here is a better policy
        if on == "tree":  # policies of state and step bound no others
            self.upper = within

    def _solve(self, network: Network) -> float:
        """Find the best policy of a network; return a bound on all its policies."""
        sizes = find_sizes(self, self.upper)
        cuts = cut_all(self, self.upper, self.upper)
        if self.best is not None:
            cuts += cut_all(self, self.best.reward, self.upper)
            cuts.append(cut_below(self.best.reward - ACCURACY * self._size))
        return self._solve_with_cuts(network, sizes, cuts, self.upper)

    def _solve_with_cuts(
        self,
        network: Network,
        sizes: Floats,
        cuts: Sequence[Cut],
        top: float,
        *,
        published: bool = False,
    ) -> float:
        """Solve a program until its policy is acceptable; return a bound on all its policies."""
        with FlowProgram(self, network, self._size, sizes, TOLERANCE_OF_ROWS) as program:
            program.require_deterministic(published, self.monitor.limits.gap or 0.0)
            for cut in cuts:
                program.add_cut(cut)
            for _ in range(MOST_PROGRAMS):
                ending = program.solve()
                upper = program.upper_bound(ending)  # now: HiGHS forgets it when a row is added
                refused = self._take(program, top)
                if ending != "optimal" or not refused:
                    break
        self.proof = "proved by HiGHS"
        if ending == "infeasible" and self.best is None and self.in_doubt:
            return math.inf  # within HiGHS's tolerances, which is no proof
        if ending == "infeasible" and self.best is not None and network.complete:
            return math.inf  # HiGHS errs: the best policy is a solution
        # The unit of rewards that are tiny beside their terms is larger than the rounding to a
        # power of two explains; then so is the error.
        scaled = SIZE * program.reward_unit
        size = self._size if scaled <= 2 * self._size else scaled
        upper = max(upper + ACCURACY * size, self._doubtful)
        complete = ending == "infeasible" or (ending == "optimal" and not refused)
        self.proved = complete and self._doubtful == -math.inf
        return upper

    def _take(self, program: FlowProgram, top: float) -> bool:
        """Take the policy that HiGHS found; True if it is not acceptable, and was cut off."""
        choice = program.choice
        if choice is None:
            return False
        point = program.network.make_point(choice)
        self.rewards.append(point.reward)
        if self.accepts(point):
            self.offer(point)
            return False
        if not self.refuses(point):
            self._doubtful = max(self._doubtful, self.bound_test.raise_reward(point.reward))
        for cut in cut_all(self, point.reward, top):
            program.add_cut(cut)
        # The tangent alone may leave the policy within HiGHS's tolerances.
        program.exclude(choice)
        return True

    def conclude(self, on: str) -> Finding:
        """Return the finding; on a graph, among policies that depend on state and step only."""
        finding = self.find("HiGHS ended without a proof")
        if on == "tree" or not self.proved or finding.status is Status.SOLVED:
            return finding
        kind = "policy that depends on state and step only"
        if finding.policy is None:
            explanation = f"no {kind} is within the bound, proved by HiGHS"
            return replace(finding, status=Status.INFEASIBLE, explanation=explanation)
        exact = self._target <= EXACT_GAP
        best = "best" if exact else f"within {100 * self._target:.2g} % of the best"
        explanation = f"{best} {kind}, proved by HiGHS"
        return replace(finding, status=Status.SOLVED, explanation=explanation)
