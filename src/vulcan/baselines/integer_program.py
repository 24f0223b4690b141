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
HiGHS's tolerance does not separate the two.

**Reduction.** A tree has too many histories to write down. But the dual bound (`vulcan.exact.dual`)
gives an almost optimal policy and an upper bound in milliseconds, and both together rule out nearly
everything else. With a price of failure k, let V(n) be the largest E g - k er from a node on, and
s(e) >= 0 the gap of an edge of the node below it. Any policy, history-dependent or not, has

    E g - k er  =  V(root) - Σ_h q(h) s(e(h)),

the sum over the histories h that it can be in, each with its probability q(h) and the edge e(h)
that is taken there. So a policy that takes e after h loses at least the sum along h, e included:
the *loss* of that step. A policy that is acceptable and better than a known one cannot lose much
(`vulcan.exact.fronts`), so that steps of larger loss are dropped. Of a tree with millions of
histories a few hundred often remain. Where too many remain, those of least loss are searched first:
a better policy rules out more.

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
from numpy.typing import NDArray

from vulcan.baselines.programs import (
    COLUMN_BYTES,
    ON,
    SIZE,
    Choice,
    Cut,
    Ending,
    Floats,
    FlowProgram,
    Links,
    Network,
    ProgramSearch,
    cut_at,
    pack,
    pick_edges,
    unfold,
)
from vulcan.errors import OptionError
from vulcan.exact.fronts import DualGap
from vulcan.exact.pipeline import LAGRANGIAN, narrow
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.levels import Layers
from vulcan.model.reader import ModelReader
from vulcan.numerics import EXACT_GAP
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding, Status, is_closed

__all__ = ["TOLERANCE_OF_ROWS", "IntegerProgram", "SwitchProgram"]

TOLERANCE_OF_ROWS: Final = 1e-6
"""HiGHS's tolerance of rows and of integrality."""

LARGEST_VALUE: Final = 1e12
"""Largest coefficient; HiGHS refuses those of 1e15."""


class SwitchProgram(FlowProgram):
    """A flow program for deterministic policies.

    Parameters
    ----------
    run, layers, reward_size, risk_size
        As in `FlowProgram`.
    published
        Write the program as it was published: a binary variable for every choice, and 1 as the
        bound on every flow.
    """

    def __init__(
        self,
        run: ExactSearch,
        layers: Layers,
        reward_size: float,
        risk_size: float,
        *,
        published: bool = False,
    ) -> None:
        # The unit of each column is most(n); as published, the program is the same in any units.
        super().__init__(run, layers, None, reward_size, risk_size, TOLERANCE_OF_ROWS)
        links, count = self.links, len(layers.nodes)
        choosing = layers.nodes["edge_count"] > 1
        single = np.zeros(count, bool) if published else links.find_single(count)
        edges = np.arange(len(links.owner))
        switched = edges[(choosing & ~single)[links.owner]]
        # The column that says whether an edge is taken.
        self._taken = edges.copy()
        self._taken[switched] = self._highs.getNumCol() + np.arange(len(switched))
        # The largest flow of an edge in these units: most(n), or 1 as published, up to the largest
        # coefficient. No flow exceeds most(n), so that both are the same program.
        largest = np.ones(len(edges))
        if published:
            largest = 1 / np.maximum(self._most[links.owner], 1 / LARGEST_VALUE)
        self._add_switches(switched, largest)
        self._require(
            self._highs.changeColsBounds(
                len(edges), edges.astype(np.int32), np.zeros(len(edges)), largest
            )
        )
        whole = self._taken[choosing[links.owner]].astype(np.int32)
        self._chooses = len(whole) > 0
        kinds = np.ones(len(whole), np.uint8)
        self._require(self._highs.changeColsIntegrality(len(whole), whole, kinds))

    def _add_switches(self, edges: NDArray[np.intp], largest: Floats) -> None:
        """Add a z for each of some edges, the rows x <= largest z, and the sums of each node."""
        every, columns = np.arange(len(edges)), self._taken[edges]
        owners, owner = np.unique(self.links.owner[edges], return_inverse=True)
        nothing = np.zeros(0, np.int32)
        low, high = np.zeros(len(edges)), np.ones(len(edges))
        starts = np.zeros(len(edges), np.int32)
        status = self._highs.addCols(
            len(edges), low, low, high, 0, starts, nothing, nothing.astype(float)
        )
        self._require(status)
        rows = len(edges) + len(owners)
        least, most = np.full(rows, -np.inf), np.zeros(rows)
        least[len(edges) :] = most[len(edges) :] = 1.0
        parts = [
            (every, edges, 1.0),
            (every, columns, -largest[edges]),
            (len(edges) + owner, columns, 1.0),
        ]
        starts, indices, values = pack(parts, 0, rows)
        status = self._highs.addRows(rows, least, most, len(values), starts, indices, values)
        self._require(status)

    def exclude(self, choice: Choice) -> None:
        """Cut off one policy and no other."""
        there = self.links.reach(choice) > 0
        taken = self._taken[choice[there & (self._layers.nodes["edge_count"] > 1)]]
        self._add_row(len(taken) - 1.0, taken, np.ones(len(taken)))

    def stop_at(self, gap: float) -> None:
        """Let HiGHS stop when the relative gap to the upper bound is at most this."""
        self._require(self._highs.setOptionValue("mip_abs_gap", 0.0))
        # HiGHS divides by the policy's reward, which may be smaller than the bound.
        self._require(self._highs.setOptionValue("mip_rel_gap", gap / (1 + gap)))

    @property
    def choice(self) -> Choice | None:
        """The edges that the solution takes; None without one."""
        import highspy

        feasible = int(highspy.SolutionStatus.kSolutionStatusFeasible)
        if int(self._highs.getInfo().primal_solution_status) != feasible:
            return None
        return pick_edges(self._layers, self.values[self._taken])

    def upper_bound(self, ending: Ending) -> float:
        """Return a bound on deterministic policies within the cuts, up to HiGHS's tolerance."""
        if ending is Ending.INFEASIBLE:
            return -math.inf
        if ending is Ending.FAILED:
            return math.inf
        info = self._highs.getInfo()
        bound = float(info.mip_dual_bound)
        if ending is Ending.OPTIMAL and not (self._chooses and math.isfinite(bound)):
            bound = float(info.objective_function_value)  # nothing to choose, or presolve chose
        return -bound * self.reward_unit


ACCURACY: Final = 4 * TOLERANCE_OF_ROWS / SIZE
"""Error of a bound by HiGHS's tolerances, relative to usual rewards."""

FIRST_EDGES: Final = 4000
"""Edges of the tree that is searched first."""

GROWTH: Final = 4
"""Factor of the edges of the next tree, and divisor of the slack if it has too many."""

MOST_PROGRAMS: Final = 100
"""A safeguard: one or two programs per tree are usual."""


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

    on: Literal["graph", "tree"] = "tree"
    reduced: bool = True

    def __post_init__(self) -> None:
        if self.on not in ("graph", "tree"):
            raise OptionError(f"on must be 'graph' or 'tree', not {self.on!r}")

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        import highspy  # noqa: F401  # now, before the clock starts

        run = IntegerSearch(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        if not run.unroll():
            return run.find()
        run.begin(self)
        if not self.reduced:
            run.search_as_published()
        elif self.on == "tree":
            run.search_histories()
        else:
            run.search_graph()
        return run.conclude()


class IntegerSearch(ProgramSearch):
    """One search; its upper bound may come from HiGHS."""

    def begin(self, solver: IntegerProgram) -> None:
        """Compute the dual bound of unrolled levels, if it is used to reduce them."""
        self._on = solver.on
        self._proved, self._top = False, math.inf
        self._doubtful = -math.inf  # largest reward of policies that rounding leaves undecided
        self._target = max(EXACT_GAP, self.monitor.limits.gap or 0.0)
        self._over = not len(self.levels)
        if not self._over and not solver.reduced:
            return
        narrow(self, LAGRANGIAN)
        self._size = self.size
        if self._on == "graph":
            accepted = [point for point in self.dual.points if self.accepts(point)]
            self.best = max(accepted, key=lambda point: point.reward, default=None)
        none = math.isinf(self.upper) or self.bound(self.upper) == -math.inf
        finished = self._reached or none or not len(self.levels)
        self._over = finished or not self.may_go_on()
        if not self._over:
            self._dual_gap = DualGap(self)
            self._gaps = self._find_gaps()

    def _find_gaps(self) -> Floats:
        """Return the gap of each edge below the best one of its node."""
        nodes, edges, _ = self.layers
        links, price = Links(self.layers), self._dual_gap.price
        arriving = links.probability * self._dual_gap.values[links.node]
        worth = edges["reward"] - price * edges["risk"]
        worth = worth + np.bincount(links.edge, arriving, len(edges))
        best = np.maximum.reduceat(worth, nodes["first_edge"])
        return np.asarray(np.repeat(best, nodes["edge_count"]) - worth)

    @property
    def rounding(self) -> float:
        """Error of a bound by rounding and HiGHS's tolerances."""
        return max(super().rounding, 2 * ACCURACY * self.size)

    @property
    def _reached(self) -> bool:
        """Whether the best policy is good enough."""
        if self.best is None or math.isinf(self.upper):
            return False
        return is_closed(self.best.reward, self.upper, self._target, self.rounding)

    def search_histories(self) -> None:
        """Search trees of histories of growing size until the gap is closed."""
        most = FIRST_EDGES
        while not self._over and not self._reached:
            if not self.may_go_on(COLUMN_BYTES * most):
                return
            found = self._grow(most)
            most *= GROWTH
            if found is None:
                continue
            slack, tree = found
            within = self._solve(tree)
            last = tree.complete or slack >= self._dual_gap.find_enough()
            dropped = -math.inf if tree.complete else self._dual_gap.limit(slack)
            self.upper = min(self.upper, max(within, dropped))
            self._over = last or not self.may_go_on()

    def search_as_published(self) -> None:
        """Solve the program over the whole layered graph, with tangents of Δ alone."""
        network = None if self._over else self.open_network(self._on)
        if network is None:
            return
        edges = network.layers.edges
        # The bound need not have a value beyond the largest reward.
        self._top = self.sweeps.find_best(1.0, 0.0).reward
        self.rewards.append(self._top)
        allowed, self._size = self.bound(self._top), abs(self._top) or 1.0
        if self.bound_test.refuses(PolicyPoint(self._top, 0.0)):  # less reward allows less risk
            self._proved, self.upper = True, -math.inf
            return
        if allowed == -math.inf:  # there is no tangent
            return
        sizes = (self._size, max(min(1.0, allowed), float(edges["risk"].max())))
        with SwitchProgram(self, network.layers, *sizes, published=True) as program:
            program.stop_at(self.monitor.limits.gap or 0.0)
            program.add_cut(Cut.along(self.bound.tangent(self._top), self._top))
            within = self._solve_with_cuts(program, network)
        for weights in ((0.0, 1.0), (1.0, 0.0)):
            point = self.sweeps.find_best(*weights)
            if point.reward > within and not self.bound_test.refuses(point):
                self._proved, within = False, math.inf  # HiGHS errs: here is a better policy
        if self._on == "tree":  # policies of state and step bound no others
            self.upper = within

    def _grow(self, most: float) -> tuple[float, Network] | None:
        """Return the tree of largest slack with at most this many edges; None if there is none."""
        slack = self._dual_gap.find_enough()
        while (tree := unfold(self.layers, lambda edges: edges <= most, self._gaps, slack)) is None:
            slack = min(slack, GROWTH * self._size) / GROWTH
            if slack <= ACCURACY * self._size:
                return None
        return slack, tree

    def search_graph(self) -> None:
        """Search the layered graph itself."""
        if self._over:
            self._proved = self._reached or self.upper == -math.inf
        elif network := self.open_network(self._on):
            self._solve(network)

    def conclude(self) -> Finding:
        """Return the finding; on a graph, among policies that depend on state and step only."""
        finding = self.find("HiGHS ended without a proof")
        if self._on == "tree" or not self._proved or finding.status is Status.SOLVED:
            return finding
        kind = "policy that depends on state and step only"
        if finding.policy is None:
            explanation = f"no {kind} is within the bound, proved by HiGHS"
            return replace(finding, status=Status.INFEASIBLE, explanation=explanation)
        exact = self._target <= EXACT_GAP
        best = "best" if exact else f"within {100 * self._target:.2g} % of the best"
        explanation = f"{best} {kind}, proved by HiGHS"
        return replace(finding, status=Status.SOLVED, explanation=explanation)

    def _solve(self, network: Network) -> float:
        """Find the best policy of a network; return a bound on all its policies."""
        risk_size = min(1.0, self.bound(self.upper))
        with SwitchProgram(self, network.layers, self._size, risk_size) as program:
            program.stop_at(self.monitor.limits.gap or 0.0)
            for cut in cut_at(self.bound, self.upper, self.upper):
                program.add_cut(cut)
            if self.best is not None:
                for cut in cut_at(self.bound, self.best.reward, self.upper):
                    program.add_cut(cut)
                program.add_cut(Cut.above(self.best.reward - ACCURACY * self._size))
            return self._solve_with_cuts(program, network)

    def _solve_with_cuts(self, program: SwitchProgram, network: Network) -> float:
        """Solve a program until its policy is acceptable; return a bound on all its policies."""
        for _ in range(MOST_PROGRAMS):
            ending = program.solve()
            upper = program.upper_bound(ending)  # now: HiGHS forgets it when a row is added
            refused = self._take(program, network)
            if ending is not Ending.OPTIMAL or not refused:
                break
        self.proof = "proved by HiGHS"
        if ending is Ending.INFEASIBLE and self.best is None and self.in_doubt:
            return math.inf  # within HiGHS's tolerances, which is no proof
        if ending is Ending.INFEASIBLE and self.best is not None and network.complete:
            return math.inf  # HiGHS errs: the best policy is a solution
        # The unit of rewards that are tiny beside their terms is larger than the rounding to a
        # power of two explains; then so is the error.
        scaled = SIZE * program.reward_unit
        size = self._size if scaled <= 2 * self._size else scaled
        upper = max(upper + ACCURACY * size, self._doubtful)
        complete = ending is Ending.INFEASIBLE or (ending is Ending.OPTIMAL and not refused)
        self._proved = complete and self._doubtful == -math.inf
        return upper

    def _take(self, program: SwitchProgram, network: Network) -> bool:
        """Take the policy that HiGHS found; True if it is not acceptable, and was cut off."""
        choice = program.choice
        if choice is None:
            return False
        point = network.make_point(choice)
        self.rewards.append(point.reward)
        if self.accepts(point):
            self.offer(point)
            return False
        if not self.bound_test.refuses(point):
            self._doubtful = max(self._doubtful, self.bound_test.raise_reward(point.reward))
        for cut in cut_at(self.bound, point.reward, min(self.upper, self._top)):
            program.add_cut(cut)
        # The tangent alone may leave the policy within HiGHS's tolerances.
        program.exclude(choice)
        return True
