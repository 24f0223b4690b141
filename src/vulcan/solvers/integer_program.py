"""The best deterministic policy, by integer programming over flows.

The program is that of `vulcan.solvers.flow_program`, for deterministic policies (Dolgov and Durfee,
2005): a binary variable z(e) says whether e is the edge that its node takes, and only such an edge
may have a flow,

    x(e) <= most(n) z(e),    Σ_{e of n} z(e) = 1,

with most(n) the largest probability of being in n, or more. Where a single way leads to n, as
everywhere on histories, a deterministic policy is in n with probability most(n) or 0. Then
x(e) / most(n) is binary itself, and needs no z.

On histories ("tree") the solutions are all deterministic policies; on merged states ("graph") those
that are functions of state and step, which may earn less. Tangents of Δ are added as cuts: a policy
that HiGHS finds and Δ does not accept is cut off by the tangent at its reward, or by itself where
HiGHS's tolerance can't tell.

A tree has too many histories to write down. But a price of failure gives a policy that is almost
the best, and a bound on all others, in milliseconds (`LayeredRun.find_dual`), and both together
rule out nearly all that a better policy could do (`vulcan.solvers.reduction`). Where too much is
left, a part of it that loses little is searched first: a better policy rules out more.

HiGHS proves that nothing better is left, in floating point and with tolerances, and results say so:
unlike all else here, that proof is not checked. Its tolerances are left as they are; reward and
risk are scaled up instead. With 1e-7, and often with 1e-10, HiGHS 1.15 called policies the best
that were not. `Pareto` gives the same answer with a proof of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.layers import Layers
from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.reader import ModelReader
from vulcan.result import EXACT_GAP, Status
from vulcan.solvers.dual import Corner, Dual, accepts
from vulcan.solvers.flow_program import COLUMN_BYTES, Cut, Ending, FlowProgram, cut_at, pack
from vulcan.solvers.layered_run import LayeredRun, refuse_options
from vulcan.solvers.links import Choice, Links, judge, pick_edges
from vulcan.solvers.reduction import Reduced, ReducedPlan, Shortfall
from vulcan.solvers.solver import Finding, Options

__all__ = ["IntegerProgram"]

TOLERANCE_OF_ROWS: Final = 1e-6
"""Up to what HiGHS satisfies rows, and variables are whole."""

ACCURACY: Final = 1e-9
"""A bound that is closer to the best policy, as a share of usual rewards, is attained."""

FIRST_EDGES: Final = 4000
"""Edges of the tree that is searched first."""

GROWTH: Final = 4
"""How many times more edges the next one may have, or less slack if that is too much."""

MOST_PROGRAMS: Final = 100
"""A guard only, for cuts at one tree: one or two are usual."""


@dataclass(frozen=True)
class IntegerProgram:
    """Find the best deterministic policy by integer programming.

    Parameters
    ----------
    on
        "tree" for policies that may depend on the whole history; "graph" for those that depend on
        state and step only, which may earn less. The upper bound of the result holds for all
        policies in either case.
    reduced
        Leave out what the dual bound rules out. Without it the program is that of Dolgov and
        Durfee, over all histories or states: the same answer, thousands of times later.
    """

    on: Literal["graph", "tree"] = "tree"
    reduced: bool = True

    def __post_init__(self) -> None:
        if self.on not in ("graph", "tree"):
            raise OptionError(f"on must be 'graph' or 'tree', not {self.on!r}")

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search; used by `vulcan.solve`."""
        import highspy  # noqa: F401  # now, before the clock starts

        refuse_options("IntegerProgram", monitor, options, ("time_limit", "memory", "gap"))
        run = LayeredRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if not run.unroll():
            return run.find()
        search = _Search(run, run.find_dual(), self)
        if self.on == "tree":
            (search.search_histories if self.reduced else search.search_all_histories)()
            return search.find()
        search.search_graph()
        return search.find_among_functions()


class _SwitchProgram(FlowProgram):
    """A flow program for deterministic policies."""

    def __init__(self, run: LayeredRun, layers: Layers, size: float) -> None:
        links, count = Links(layers), len(layers)
        most = links.find_most(count)
        super().__init__(run, layers, links, most, size, TOLERANCE_OF_ROWS)
        choosing = layers.arrays.nodes["edge_count"] > 1
        single = links.find_single(count)
        edges = np.arange(len(links.owner))
        switched = edges[(choosing & ~single)[links.owner]]
        # The column that says whether an edge is taken.
        self._taken = edges.copy()
        self._taken[switched] = self._highs.getNumCol() + np.arange(len(switched))
        self._add_switches(switched)
        self._require(
            self._highs.changeColsBounds(
                len(edges), edges.astype(np.int32), np.zeros(len(edges)), np.ones(len(edges))
            )
        )
        whole = self._taken[choosing[links.owner]].astype(np.int32)
        kinds = np.ones(len(whole), np.uint8)
        self._require(self._highs.changeColsIntegrality(len(whole), whole, kinds))

    def _add_switches(self, edges: NDArray[np.intp]) -> None:
        """Add a z for each of some edges, the rows x / most <= z, and the sums of each node."""
        every, columns = np.arange(len(edges)), self._taken[edges]
        owners, owner = np.unique(self._links.owner[edges], return_inverse=True)
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
        parts = [(every, edges, 1.0), (every, columns, -1.0), (len(edges) + owner, columns, 1.0)]
        starts, indices, values = pack(parts, 0, rows)
        status = self._highs.addRows(rows, least, most, len(values), starts, indices, values)
        self._require(status)

    def suggest(self, choice: Choice, corner: Corner) -> None:
        """Give HiGHS a policy to start from."""
        import highspy

        values = np.zeros(self._highs.getNumCol())
        values[self._taken[choice]] = 1.0
        values[choice] = self._links.reach(choice) / self._most
        values[self._reward_column] = corner.reward / self.reward_unit
        values[self._risk_column] = corner.risk / self.risk_unit
        solution = highspy.HighsSolution()
        solution.col_value = values.tolist()
        self._require(self._highs.setSolution(solution))

    def exclude(self, choice: Choice) -> None:
        """Cut off one policy and no other."""
        there = self._links.reach(choice) > 0
        taken = self._taken[choice[there & (self._layers.arrays.nodes["edge_count"] > 1)]]
        self._add_row(len(taken) - 1.0, taken, np.ones(len(taken)))

    def stop_at(self, gap: float) -> None:
        """Let HiGHS stop when a policy is within a share of the bound on all."""
        self._require(self._highs.setOptionValue("mip_abs_gap", 0.0))
        # HiGHS takes the share of the policy's reward, which may be the smaller one.
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
        if ending is Ending.OPTIMAL and not math.isfinite(bound):
            bound = float(info.objective_function_value)  # presolve alone was enough
        return -bound * self.reward_unit


class _Search:
    """One search, on a layered graph whose dual bound is known."""

    def __init__(self, run: LayeredRun, dual: Dual, solver: IntegerProgram) -> None:
        self._run = run
        self._reduced = solver.reduced
        self._proved = self._by_highs = False
        self._target = max(EXACT_GAP, run.monitor.limits.gap or 0.0)
        self._size = run.size
        if solver.on == "graph":
            accepted = [corner for corner in dual.corners if accepts(run.bound, corner)]
            run.best = max(accepted, key=lambda corner: corner.reward, default=None)
        settled = run.gap <= self._target or run.upper == -math.inf or not len(run.layers)
        self._over = settled or not run.may_go_on()
        if not self._over:
            self._shortfall = Shortfall(run, dual.multiplier)

    def search_histories(self) -> None:
        """Search trees of histories of growing size until the gap is closed."""
        run, most = self._run, FIRST_EDGES
        while not self._over and run.gap > self._target:
            if not run.may_go_on(run.graph.memory + COLUMN_BYTES * most):
                return
            found = self._grow(most)
            most *= GROWTH
            if found is None:
                continue
            slack, reduced = found
            within = self._solve(reduced)
            last = reduced.complete or slack >= self._shortfall.find_enough()
            dropped = -math.inf if reduced.complete else self._shortfall.limit(slack)
            run.upper = min(run.upper, max(within, dropped))
            self._over = last or not run.may_go_on()

    def search_all_histories(self) -> None:
        """Search the tree of all histories at once, if that fits into memory."""
        run = self._run
        if self._over:
            return
        tree = self._shortfall.grow_histories(math.inf, run.memory_left / COLUMN_BYTES)
        if tree is None:
            run.monitor.stopped_by = "limit of memory"
            return
        run.upper = min(run.upper, self._solve(tree))

    def _grow(self, most: float) -> tuple[float, Reduced] | None:
        """Return the largest tree of so many edges that might hold better policies."""
        slack = self._shortfall.find_enough()
        while (reduced := self._shortfall.grow_histories(slack, most)) is None:
            slack = min(slack, GROWTH * self._size) / GROWTH
            if slack <= ACCURACY * self._size:
                return None
        return slack, reduced

    def search_graph(self) -> None:
        """Search the layered graph itself."""
        run = self._run
        if self._over:
            self._proved = run.gap <= self._target or run.upper == -math.inf
            return
        enough = self._shortfall.find_enough() if self._reduced else math.inf
        reduced = self._shortfall.prune_graph(enough)
        edges = len(reduced.layers.arrays.edges)
        if run.may_go_on(run.graph.memory + COLUMN_BYTES * edges):
            self._solve(reduced)

    def find(self) -> Finding:
        """Return what was found, and who proved it."""
        finding = self._run.find("HiGHS ended without a proof")
        proof = "proved by HiGHS" if self._by_highs else "proved"
        return replace(finding, explanation=finding.explanation.replace("proved", proof))

    def find_among_functions(self) -> Finding:
        """Return what was found among the policies that depend on state and step only."""
        finding = self.find()
        if not self._proved or finding.status is Status.SOLVED:
            return finding
        kind = "policy that depends on state and step only"
        if finding.policy is None:
            explanation = f"no {kind} is within the bound, proved by HiGHS"
            return replace(finding, status=Status.INFEASIBLE, explanation=explanation)
        exact = self._target <= EXACT_GAP
        best = "best" if exact else f"within {100 * self._target:.2g} % of the best"
        explanation = f"{best} {kind}, proved by HiGHS"
        return replace(finding, status=Status.SOLVED, explanation=explanation)

    def _solve(self, reduced: Reduced) -> float:
        """Find the best policy of a reduced graph; return a bound on all its policies."""
        run = self._run
        with _SwitchProgram(run, reduced.layers, self._size) as program:
            program.stop_at(run.monitor.limits.gap or 0.0)
            for cut in cut_at(run.bound, run.upper, run.upper):
                program.add_cut(cut)
            if run.best is not None:
                for cut in cut_at(run.bound, run.best.reward, run.upper):
                    program.add_cut(cut)
                program.add_cut(Cut.above(run.best.reward - ACCURACY * self._size))
            for _ in range(MOST_PROGRAMS):
                self._suggest_best(program, reduced)
                ending = program.solve()
                upper = program.upper_bound(ending)  # now: HiGHS forgets it when a row is added
                refused = self._take(program, reduced)
                if ending is not Ending.OPTIMAL or not refused:
                    break
            self._by_highs = True
            self._proved = ending is Ending.INFEASIBLE or (ending is Ending.OPTIMAL and not refused)
            return self._attain(upper)

    def _suggest_best(self, program: _SwitchProgram, reduced: Reduced) -> None:
        """Let HiGHS start from the best policy so far, if that is in the reduced graph."""
        best = self._run.best
        if best is not None:
            choice = reduced.follow(self._run.layers, best.plan)
            if choice is not None:
                program.suggest(choice, best)

    def _take(self, program: _SwitchProgram, reduced: Reduced) -> bool:
        """Take the policy that HiGHS found; True if it is not acceptable, and was cut off."""
        run, choice = self._run, program.choice
        if choice is None:
            return False
        reward, risk = judge(reduced.layers, choice)
        corner = Corner(reward, risk, ReducedPlan(reduced, choice))
        run.rewards.append(reward)
        if accepts(run.bound, corner):
            run.offer(corner)
            return False
        for cut in cut_at(run.bound, reward, run.upper):
            program.add_cut(cut)
        # The tangent alone may leave the policy within HiGHS's tolerances.
        program.exclude(choice)
        return True

    def _attain(self, bound: float) -> float:
        """Return a bound, or the best reward where they are the same but for roundings."""
        best = self._run.best
        if best is None or bound > best.reward + ACCURACY * self._size:
            return bound
        return best.reward
