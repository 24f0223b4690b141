"""The best randomised policy, by linear programming over flows in HiGHS.

**The flow program.** A policy is known by its flow: x(e), the probability of taking edge e of a
layered graph. With p(e, n) the probability that e leads to node n, the flows of all policies,
randomised or not, are the solutions of

    Σ_{e of n} x(e)  =  [n is the root] + Σ_e p(e, n) x(e)    for each node n,      x >= 0,

and reward and risk are linear in them:  E g = Σ reward(e) x(e),  er = Σ risk(e) x(e). The set that
a risk bound accepts, {er <= Δ(E g)}, is convex, so that tangents of Δ suffice:

    er <= Δ(y) + Δ'(y) (E g - y)    for some rewards y,

where a solution that is not acceptable is cut off by the tangent at its own reward; the simplex
method continues from where it was.

The columns of the program are x(e) / most(n), with most(n) a bound on the probability of being in
the node, and E g and er, each in a unit in which it is about `SIZE`. HiGHS satisfies rows up to an
absolute tolerance: the larger the numbers, the smaller the relative error.

**From a solution to an answer.** HiGHS computes with tolerances, a certificate has none to give
away. So the solution is not the answer, but leads to it, primal and dual:

- Its flow is peeled into deterministic policies. In a layered graph no node is visited twice, so a
  flow is a mixture of policies: take in every node an edge with a flow, subtract the largest
  multiple of that policy's flow that leaves nothing negative, and repeat. Some edge is used up each
  time; a basic solution mixes two policies, rarely three. Each is evaluated exactly, and the best
  acceptable mixture of two is found exactly.
- The prices μ of its cuts a er - b E g <= c make a bound. Every acceptable policy satisfies all
  cuts, whatever the prices, so that

      E g  <=  E g + Σ μ (c - a er + b E g)  <=  max over all policies of
               [(1 + Σ μ b) E g - Σ μ a er]  +  Σ μ c.

  The maximum is one dynamic program, in which HiGHS is not trusted: prices that are slightly wrong
  make the bound slightly worse, and never invalid. If the program has no solution, HiGHS finds the
  flow that violates the cuts least, and the same with those prices and without the first E g,
  0 <= ..., is the contradiction.

Mixture and bound meet, up to the tolerances of HiGHS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound, Tangent
from vulcan.errors import OptionError, VulcanError
from vulcan.exact.dual import best_mix
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.levels import Decisions, Layers, collect_decisions
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, EXACT_GAP, TOLERANCE
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import Monitor, StopReason
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding, Status

__all__ = [
    "COLUMN_BYTES",
    "ON",
    "SIZE",
    "Choice",
    "Cut",
    "Ending",
    "Floats",
    "FlowProgram",
    "LinearProgram",
    "Links",
    "Network",
    "ProgramSearch",
    "cut_at",
    "pack",
    "pick_edges",
    "unfold",
]

Floats = NDArray[np.float64]
Choice = NDArray[np.int32]
"""An edge for each node."""


class Links:
    """Which edges of a layered graph lead to which nodes.

    Attributes
    ----------
    owner
        The node of each edge.
    edge, source, node, probability
        Of each link: its edge, the nodes that it leads from and to, and its probability. Outcomes
        of an edge that lead to the same node are one link.
    levels
        The links that start in each level.
    """

    def __init__(self, layers: Layers) -> None:
        nodes, edges, targets = layers
        self.owner = np.repeat(np.arange(len(nodes)), nodes["edge_count"])
        edge = np.repeat(np.arange(len(edges)), edges["target_count"])
        inner = targets["node"] >= 0
        pairs = edge[inner] * len(nodes) + targets["node"][inner]
        links, which = np.unique(pairs, return_inverse=True)
        self.edge, self.node = np.divmod(links, len(nodes))
        self.probability = np.bincount(which, targets["probability"][inner], len(links))
        self.source = self.owner[self.edge]
        level = nodes["level"][self.source]
        self.levels = [np.flatnonzero(level == k) for k in range(int(nodes["level"][-1]))]

    def reach(self, choice: Choice) -> Floats:
        """Return the probability of being in each node under a policy."""
        taken = np.zeros(len(self.owner), bool)
        taken[choice] = True
        reach = np.zeros(len(choice))
        reach[0] = 1.0
        for level in self.levels:
            links = level[taken[self.edge[level]]]
            arriving = reach[self.source[links]] * self.probability[links]
            np.add.at(reach, self.node[links], arriving)
        return reach

    def find_single(self, nodes: int) -> NDArray[np.bool_]:
        """Return whether a single path leads from the root to each of this many nodes."""
        single = np.asarray(np.bincount(self.node, minlength=nodes) == 1)
        single[0] = True
        for links in self.levels:
            single[self.node[links]] &= single[self.source[links]]
        return single

    def find_most(self, nodes: int) -> Floats:
        """Return a bound on the probability of being in each node; exact where the path is single.

        A policy takes one edge of a node, so that only the likeliest of those from one node to
        another counts; those of different nodes add up.
        """
        most = np.zeros(nodes)
        most[0] = 1.0
        for links in self.levels:
            source, node = self.source[links], self.node[links]
            pairs, which = np.unique(source * nodes + node, return_inverse=True)
            arriving = np.zeros(len(pairs))
            np.maximum.at(arriving, which, most[source] * self.probability[links])
            np.add.at(most, pairs % nodes, arriving)
            np.minimum(most, 1.0, out=most)
        return np.maximum(most, np.finfo(float).tiny)  # no underflow to 0


@dataclass(frozen=True)
class Network:
    """The layered graph of a program: that of the search, or histories of it as a tree.

    Attributes
    ----------
    layers
        The nodes and edges.
    pairs
        The state–step pair of each node.
    complete
        Whether it has all policies.
    """

    layers: Layers
    pairs: NDArray[np.intp]
    complete: bool = True

    @classmethod
    def whole(cls, layers: Layers) -> Self:
        """Return all state–step pairs."""
        return cls(layers, np.arange(len(layers.nodes)))

    def make_point(self, choice: Choice) -> PolicyPoint:
        """Return the policy that takes an edge in each node."""
        from vulcan.kernels.dp import evaluate_edges

        rewards, risks = np.zeros((2, len(self.layers.nodes)))
        evaluate_edges(self.layers, choice, rewards, risks)
        return PolicyPoint(float(rewards[0]), float(risks[0]), lambda: self._decide(choice))

    def _decide(self, choice: Choice) -> Decisions:
        def choose(node: int) -> tuple[int, int, list[int | None]]:
            edge = int(choice[node])
            after = [None if target == END else target for target in self.layers.follow(edge)]
            return int(self.pairs[node]), int(self.layers.edges["action"][edge]), after

        return collect_decisions(0, choose)


def unfold(
    layers: Layers,
    may_go_on: Callable[[int], bool],
    gaps: Floats | None = None,
    slack: float = math.inf,
) -> Network | None:
    """Return the tree of histories of a layered graph; None if it may not go on.

    Parameters
    ----------
    layers
        The graph.
    may_go_on
        Called with the number of edges so far, level by level.
    gaps, slack
        The gap of each edge, and the largest loss: the sum of gaps along a history, each weighted
        by the probability of the history there. Steps of a larger loss are dropped.
    """
    nodes, edges, targets = layers
    gaps = np.zeros(len(edges)) if gaps is None else gaps
    parts: list[tuple[NDArray[Any], ...]] = []
    node_count = edge_count = target_count = 0
    complete = True
    here, chance, loss = np.zeros(1, np.intp), np.ones(1), np.zeros(1)
    while len(here):
        counts = nodes["edge_count"][here]
        if not may_go_on(edge_count + int(counts.sum())):
            return None
        rows = ranges(nodes["first_edge"][here], counts)
        owner = np.repeat(np.arange(len(here)), counts)
        losses = loss[owner] + chance[owner] * gaps[rows]
        kept = losses <= slack
        complete = complete and bool(kept.all())
        rows, owner, losses = rows[kept], owner[kept], losses[kept]
        level_nodes, level_edges = nodes[here], edges[rows]
        level_nodes["edge_count"] = np.bincount(owner, minlength=len(here))
        level_nodes["first_edge"] = edge_count + starts(level_nodes["edge_count"])
        level_edges["first_target"] = target_count + starts(level_edges["target_count"])
        level_targets = targets[ranges(edges["first_target"][rows], edges["target_count"][rows])]
        way = np.repeat(np.arange(len(rows)), level_edges["target_count"])
        inner = level_targets["node"] != END
        parts.append((level_nodes, level_edges, level_targets, here))
        node_count += len(here)
        edge_count += len(rows)
        target_count += len(level_targets)
        here = level_targets["node"][inner].astype(np.intp)
        chance = chance[owner[way[inner]]] * level_targets["probability"][inner]
        loss = losses[way[inner]]
        level_targets["node"][inner] = node_count + np.arange(len(here))
    *arrays, pairs = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    return Network(Layers(*arrays), pairs, complete)


def pick_edges(layers: Layers, values: Floats) -> Choice:
    """Return the edge of largest value of each node; the first one among equals."""
    nodes = layers.nodes
    largest = np.maximum.reduceat(values, nodes["first_edge"])
    places = np.flatnonzero(values == np.repeat(largest, nodes["edge_count"]))
    owners = np.repeat(np.arange(len(layers.nodes)), nodes["edge_count"])[places]
    return places[np.unique(owners, return_index=True)[1]].astype(np.int32)


SIZE: Final = 2.0**14
"""The scale of reward and risk in the program."""

SMALLEST_SHARE: Final = 1e-4
"""A reward or risk that is a smaller fraction of its largest term is not scaled up further."""

SMALLEST_SIZE: Final = 1e-200
"""Rewards and risks below this are not scaled up further."""

NEGLIGIBLE: Final = 1e-3
"""Coefficients below this fraction of the tolerance of rows are dropped: HiGHS's presolve would
divide by them."""

ROUNDING: Final = 1e-15
"""Relative rounding error allowed for a few operations."""

MISLED: Final = "untransformed violations"
"""Part of HiGHS's message if a solution of the presolved program violates rows of the program."""

COLUMN_BYTES: Final = 2000
"""Approximate memory of HiGHS per edge, with all copies and rows."""


ON: Final = Option(
    "on",
    str,
    "Plan on merged states, or on histories.",
    default="graph, and tree for integer-program",
    choices=("graph", "tree"),
)


class Ending(Enum):
    """How a run of HiGHS ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"
    FAILED = "failed"


class Cut(NamedTuple):
    """A valid inequality for acceptable policies: risk · er - reward · E g <= limit."""

    risk: float  # not negative
    reward: float  # not negative
    limit: float

    @classmethod
    def along(cls, tangent: Tangent, top: float) -> Cut:
        """Return the cut of a tangent of Δ, valid for rewards up to `top`, rounded outwards."""
        slope = tangent.least_slope
        level, doubt = slope * tangent.at, 2 * tangent.doubt * max(0.0, top - tangent.at)
        rounding = ROUNDING * (abs(level) + abs(tangent.value)) + doubt
        return cls(1.0, slope, tangent.value + TOLERANCE - level + rounding)

    @classmethod
    def above(cls, reward: float) -> Cut:
        """Return the cut that leaves rewards of at least this much."""
        return cls(0.0, 1.0, -reward)


def cut_at(bound: RiskBound, reward: float, top: float) -> list[Cut]:
    """Return the tightest cuts at a reward that no acceptable policy violates.

    Parameters
    ----------
    bound
        The risk bound.
    reward
        Where to cut. If the bound is -inf there, the cut is where it becomes finite.
    top
        A larger reward at which the bound is finite, and up to which the cuts hold.
    """
    if bound(reward) > -math.inf:
        return [Cut.along(bound.tangent(reward), top)]
    low, high = reward, top
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if bound(middle) == -math.inf else (low, middle)
    return [Cut.above(low), Cut.along(bound.tangent(high), top)]


Entries = tuple[Any, Any, Any]
"""Rows, columns and values of a matrix; a number stands for as many of it as there are columns."""


def pack(
    parts: Sequence[Entries], major: int, size: int, least: float = 0.0
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return a matrix in compressed form: starts, indices and values.

    Parameters
    ----------
    parts
        The entries, each place once.
    major
        0 for a matrix that is stored row by row, 1 for column by column.
    size
        The number of rows or columns.
    least
        Values of smaller magnitude are dropped.
    """
    shaped = [np.broadcast_arrays(*part) for part in parts]
    rows, columns, values = (np.concatenate([part[k].ravel() for part in shaped]) for k in range(3))
    first, second = (columns, rows) if major else (rows, columns)
    order = np.lexsort((second, first))
    order = order[np.abs(values[order]) >= least]
    starts = np.searchsorted(first[order], np.arange(size + 1))
    return starts.astype(np.int32), second[order].astype(np.int32), values[order].astype(float)


class FlowProgram:
    """A flow program in HiGHS, to which cuts are added; used in a `with` statement.

    Parameters
    ----------
    run
        The search, with its bound, clock and limits.
    layers
        The layered graph, in which every node has an edge.
    most
        A bound on the probability of being in each node; None to compute one.
    reward_size, risk_size
        The order of magnitude of rewards and risks.
    tolerance
        The feasibility tolerance of HiGHS.
    """

    def __init__(
        self,
        run: ExactSearch,
        layers: Layers,
        most: Floats | None,
        reward_size: float,
        risk_size: float,
        tolerance: float,
    ) -> None:
        import highspy

        self._run, self._layers, self.links = run, layers, Links(layers)
        self._most = self.links.find_most(len(layers.nodes)) if most is None else most
        rewards, risks = (np.abs(layers.edges[name]) for name in ("reward", "risk"))
        self.reward_unit = _find_unit(reward_size, rewards)
        self.risk_unit = _find_unit(risk_size, risks)
        self._reward_column = len(layers.edges)
        self._risk_column = self._reward_column + 1
        self._negligible = NEGLIGIBLE * tolerance
        self.cuts: list[Cut] = []
        self._trouble: BaseException | None = None
        self._misled = False
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (
            ("log_to_console", False),
            ("threads", 1),
            ("primal_feasibility_tolerance", tolerance),
            ("dual_feasibility_tolerance", tolerance),
            ("mip_feasibility_tolerance", tolerance),
            ("small_matrix_value", self._negligible),
        ):
            self._require(self._highs.setOptionValue(name, value))
        self._require(self._highs.passModel(self._describe()))

    def __enter__(self) -> Self:
        for event in (self._highs.cbSimplexInterrupt, self._highs.cbMipInterrupt):
            event.subscribe(self._watch)
        self._highs.cbLogging.subscribe(self._listen)
        return self

    def __exit__(self, *error: object) -> None:
        # Now, not when the cycle of program, HiGHS and callback is garbage-collected.
        self._highs.clearCallbacks()
        self._highs.clear()
        self._free_threads()

    def _describe(self) -> Any:
        """Return the program for HiGHS: minimise -E g."""
        import highspy

        nodes, edges, _ = self._layers
        rewards, risks = len(nodes), len(nodes) + 1  # the rows that define both
        links, every = self.links, np.arange(len(edges))
        weight = self._most[links.owner]
        shares = links.probability * weight[links.edge] / self._most[links.node]
        parts: list[Entries] = [
            (links.owner, every, 1.0),
            (links.node, links.edge, -shares),
            (rewards, every, weight * edges["reward"] / self.reward_unit),
            (risks, every, weight * edges["risk"] / self.risk_unit),
            (rewards, self._reward_column, -1.0),
            (risks, self._risk_column, -1.0),
        ]
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(edges) + 2, len(nodes) + 2
        cost, lower = np.zeros((2, program.num_col_))
        cost[self._reward_column], lower[self._reward_column] = -1.0, -np.inf
        program.col_cost_, program.col_lower_ = cost, lower
        program.col_upper_ = np.full(program.num_col_, np.inf)
        level = np.zeros(program.num_row_)
        level[0] = 1.0
        program.row_lower_ = program.row_upper_ = level
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = pack(
            parts, 1, program.num_col_, self._negligible
        )
        return program

    def _require(self, status: Any) -> None:
        """Check that HiGHS accepted a call."""
        import highspy

        if status == highspy.HighsStatus.kError:
            raise VulcanError("HiGHS refuses the program; this is a defect in Vulcan")

    def add_cut(self, cut: Cut) -> bool:
        """Add a cut, scaled so that its larger coefficient is 1; False if that overflows."""
        if not math.isfinite(cut.limit * self._scale(cut)):
            return False
        columns = np.array([self._risk_column, self._reward_column])
        values = np.array([cut.risk * self.risk_unit, -cut.reward * self.reward_unit])
        self._add_row(cut.limit * self._scale(cut), columns, values * self._scale(cut))
        self.cuts.append(cut)
        return True

    def _scale(self, cut: Cut) -> float:
        largest = max(cut.risk * self.risk_unit, cut.reward * self.reward_unit)
        return 1 / largest if largest < math.inf else math.nan

    def _add_row(self, limit: float, columns: NDArray[Any], values: Floats) -> None:
        kept = np.abs(values) >= self._negligible
        columns, values = columns[kept].astype(np.int32), values[kept]
        self._require(self._highs.addRow(-np.inf, limit, len(columns), columns, values))

    def solve(self) -> Ending:
        """Run HiGHS, unless a limit or Ctrl-C comes first."""
        import highspy

        self._run_highs()
        if self._misled:
            self._misled = False
            self._require(self._highs.setOptionValue("presolve", "off"))
            self._require(self._highs.clearSolver())
            self._run_highs()
        status, monitor = self._highs.getModelStatus(), self._run.monitor
        if status == highspy.HighsModelStatus.kTimeLimit:
            monitor.stopped_by = monitor.stopped_by or StopReason.TIME
        return {
            highspy.HighsModelStatus.kOptimal: Ending.OPTIMAL,
            highspy.HighsModelStatus.kInfeasible: Ending.INFEASIBLE,
            highspy.HighsModelStatus.kTimeLimit: Ending.STOPPED,
            highspy.HighsModelStatus.kInterrupt: Ending.STOPPED,
        }.get(status, Ending.FAILED)

    def _run_highs(self) -> None:
        import highspy

        monitor = self._run.monitor
        if monitor.limits.time_limit is not None:
            spent = monitor.seconds + self._run.reserve
            left = max(0.0, monitor.limits.time_limit - spent)
            self._require(self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left))
        if self._highs.run() == highspy.HighsStatus.kError and self._trouble is None:
            self._free_threads()
            self._highs.run()
        if self._trouble is not None:
            raise self._trouble

    def _free_threads(self) -> None:
        """Reset HiGHS's global thread pool.

        The first user in a process fixes its size, and HiGHS refuses to run for others.
        """
        import highspy

        highspy.Highs.resetGlobalScheduler(True)

    def _watch(self, event: Any) -> None:
        """Interrupt HiGHS if a limit is reached; HiGHS calls this often."""
        try:
            self._run.report()
            if self._run.may_go_on():
                return
        except BaseException as trouble:  # it must not pass through HiGHS
            self._trouble = trouble
        event.interrupt()

    def _listen(self, event: Any) -> None:
        """Detect that a solution of the presolved program is infeasible here.

        HiGHS drops it and similar ones, so that the best of the rest need not be optimal.
        """
        self._misled |= MISLED in event.message

    @property
    def values(self) -> Floats:
        """The columns of the solution."""
        return np.asarray(self._highs.getSolution().col_value)


def _find_unit(size: float, parts: Floats) -> float:
    """Return a power of two in which a size is about `SIZE`, if its terms are not much larger."""
    largest = max(size, SMALLEST_SHARE * float(parts.max()))
    return 2.0 ** round(math.log2(max(largest, SMALLEST_SIZE) / SIZE if largest > 0 else 1 / SIZE))


MOST_CUTS: Final = 100
"""A safeguard: fewer than ten are usual."""

MOST_POLICIES: Final = 8
"""A safeguard: a basic solution is a mixture of two policies, or three."""

TOLERANCE_OF_ROWS: Final = 1e-9
"""HiGHS's tolerance of rows and prices."""

NEGLIGIBLE_WEIGHT: Final = 1e-9
"""A smaller fraction of a flow is taken for a rounding error."""


@dataclass(frozen=True)
class LinearProgram(Solver):
    """Find the best randomised policy by linear programming.

    The answer draws one of two deterministic policies at the start, or is a deterministic policy
    where that is best. Its upper bound holds for every policy, randomised or not.

    Parameters
    ----------
    on
        "graph" for merged states, "tree" for histories. Both give the same reward.
    """

    finds: ClassVar[str] = "the best randomised policy"
    method: ClassVar[str] = "HiGHS, tangent cuts"
    limits: ClassVar[Sequence[str]] = EXACT
    covers: ClassVar[Coverage] = Coverage.EVERY
    options: ClassVar[Sequence[Option]] = (ON,)

    on: Literal["graph", "tree"] = "graph"

    def __post_init__(self) -> None:
        if self.on not in ("graph", "tree"):
            raise OptionError(f"on must be 'graph' or 'tree', not {self.on!r}")

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        import highspy  # noqa: F401  # now, before the clock starts

        run = LinearSearch(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if run.unroll():
            run.solve(self.on)
        finding = run.find("the tolerances of HiGHS leave a gap")
        if finding.status is Status.SOLVED or not run.meets_bound:
            return finding
        explanation = f"within {100 * run.gap:.2g} % of the best randomised policy, proved"
        # What the tolerance of the bound is worth; the weights of a mixture are rounded as well.
        left = run.upper - run.bound_test.lower_reward(finding.reward)
        spread = 0.0 if run.mix is None else abs(run.mix.risky.reward - run.mix.safe.reward)
        rounding = max(finding.rounding, left + ROUNDING * spread)
        return replace(finding, status=Status.SOLVED, explanation=explanation, rounding=rounding)


class ProgramSearch(ExactSearch):
    """A search that hands a network to HiGHS."""

    def open_network(self, on: str) -> Network | None:
        """Return the graph, or the tree of its histories; None if it is too large."""

        def may_go_on(edges: int) -> bool:
            return self.may_go_on(COLUMN_BYTES * edges)

        if on == "tree":
            return unfold(self.layers, may_go_on)
        return Network.whole(self.layers) if may_go_on(len(self.layers.edges)) else None


class LinearSearch(ProgramSearch):
    """One search for the best randomised policy: its best policy is a mixture."""

    def solve(self, on: str) -> None:
        """Solve programs with more and more cuts until the gap is closed."""
        self._top = self.sweep(1.0, 0.0)
        self._points = [self._top, self.sweep(0.0, 1.0)]
        self._most = self.bound_test.raise_reward(self._top.reward)
        # The bound does not decrease: if it is negative here, it is for all smaller rewards.
        none = self.bound_test.refuses(PolicyPoint(self._top.reward, 0.0))
        self.upper = -math.inf if none else self._most
        self._offer_best_mix()
        if self.mix is not None and self.mix.safe is self._top:
            self.price = 0.0  # the policy of largest reward is acceptable
        elif self.upper == -math.inf:
            return
        elif self.bound(self._most) == -math.inf:  # there is no tangent
            self.offer_mix(self.find_dual().best)
        elif network := self.open_network(on):
            with SimplexProgram(self, network, abs(self._top.reward)) as program:
                self._solve_with_cuts(program)

    def _solve_with_cuts(self, program: SimplexProgram) -> None:
        if not self._add_tangent(program, self._most):
            self.offer_mix(self.find_dual().best)
            return
        while len(program.cuts) < MOST_CUTS and self.may_go_on():
            ending = program.solve()
            if ending is Ending.STOPPED:
                return
            if ending is not Ending.OPTIMAL or self._use_solution(program):
                break
        if self.best is None:
            self._prove_infeasible(program)

    def _add_tangent(self, program: FlowProgram, reward: float) -> bool:
        """Add the tangent at a reward; False if it is there already, or overflows."""
        cuts = cut_at(self.bound, min(reward, self._most), self._most)
        added = [program.add_cut(cut) for cut in cuts if cut not in program.cuts]
        return any(added)

    def _lower_upper(self, cut: Cut, value: float) -> None:
        """Lower the upper bound, given the largest value of any policy for the weights of a cut."""
        upper = value + cut.limit + ROUNDING * (abs(value) + abs(cut.limit))
        if upper < self.upper:
            self.upper, self.price = upper, cut.risk
        if self.best is None:
            return

        def excludes(reward: float) -> bool:
            allowed = float(self.bound.enclose(reward, reward)[1]) + TOLERANCE
            worth, cost = (1 + cut.reward) * reward, cut.risk * allowed
            rounding = ROUNDING * (abs(worth) + abs(cost) + abs(value))
            return worth - cost - rounding > value

        # Numerical tangents lie slightly above the bound, which itself excludes more. The left side
        # is convex, and at most the value at the best policy: if a reward is excluded, so are all
        # larger ones.
        low, high = self.best.reward, self.upper
        while low < (middle := low + (high - low) / 2) < high:
            low, high = (low, middle) if excludes(middle) else (middle, high)
        self.upper = high

    def _prove_infeasible(self, program: SimplexProgram) -> None:
        """Prove by one dynamic program that no policy satisfies all the cuts.

        Where the bound is too steep for HiGHS's tolerances, the dual search decides.
        """
        program.relax()
        if program.solve() is Ending.OPTIMAL:
            cut = program.combine_cuts()
            value = self._bound_value(cut.reward, cut.risk)
            if value + cut.limit < -ROUNDING * (abs(value) + abs(cut.limit)):
                self.upper = -math.inf
                return
        self.offer_mix(self.find_dual().best)

    def _bound_value(self, reward: float, risk: float) -> float:
        """Return an upper bound on reward · E g - risk · er of all policies: a dynamic program."""
        point = self.sweep(reward, risk)
        self._points.append(point)
        self._choice = self.sweeps.choose(reward, risk)
        value = reward * point.reward - risk * point.risk
        return self.bound_test.raise_value(value, (reward, risk), self._most)

    def _use_solution(self, program: SimplexProgram) -> bool:
        """Offer the policies of a solution, and cut it off; True if the search is over."""
        cut = program.combine_cuts()
        value = self._bound_value(1.0 + cut.reward, cut.risk)
        self._points += map(program.network.make_point, self._peel(program))
        self._offer_best_mix()
        self._lower_upper(cut, value)
        if self.meets_bound:
            return True
        self.rewards.append(program.reward)
        acceptable = program.risk <= self.bound(program.reward)
        return acceptable or not self._add_tangent(program, program.reward)

    def _peel(self, program: SimplexProgram) -> list[Choice]:
        """Return deterministic policies whose mixture has the flow of a solution, up to rounding.

        Nodes without a flow take the edges of the last dynamic program.
        """
        network, links, flow = program.network, program.links, np.maximum(0.0, program.flow)
        nodes, pairs = network.layers.nodes, network.pairs
        rows = self._choice[pairs] - self.levels.arrays.first_action[nodes["state"]]
        otherwise = nodes["first_edge"] + rows
        policies: list[Choice] = []
        left = 1.0
        while left > NEGLIGIBLE_WEIGHT and len(policies) < MOST_POLICIES:
            choice = pick_edges(network.layers, flow)
            choice = np.where(flow[choice] > 0, choice, otherwise).astype(np.int32)
            policies.append(choice)
            reach = links.reach(choice)
            used = np.flatnonzero((reach > 0) & (flow[choice] > 0))
            shares = flow[choice[used]] / reach[used]
            share = float(shares[shares > NEGLIGIBLE_WEIGHT].min(initial=left))
            rest = np.where(shares - share > NEGLIGIBLE_WEIGHT, (shares - share) * reach[used], 0.0)
            flow[choice[used]] = rest
            left -= share
        return policies

    def _offer_best_mix(self) -> None:
        """Keep the best acceptable mixture of the policies so far."""
        self.rewards += [point.reward for point in self._points]
        self.offer_mix(best_mix(self._points, self.bound_test))

    @property
    def meets_bound(self) -> bool:
        """Whether the gap is closed, up to the reward that the tolerance of Δ is worth."""
        if self.best is None or self.gap <= EXACT_GAP:
            return self.best is not None
        price = max(self.price or 0.0, self._price_of_mix())
        return self.upper - self.best.reward <= price * TOLERANCE + self.rounding

    def _price_of_mix(self) -> float:
        """Return the reward that the mixture gains per unit of risk."""
        if self.mix is None or self.mix.risky.risk <= self.mix.safe.risk:
            return 0.0
        earned = self.mix.risky.reward - self.mix.safe.reward
        return earned / (self.mix.risky.risk - self.mix.safe.risk)


class SimplexProgram(FlowProgram):
    """A flow program for randomised policies, with its dual."""

    def __init__(self, run: ExactSearch, network: Network, size: float) -> None:
        self.network, most = network, np.ones(len(network.layers.nodes))
        risk_size = min(1.0, run.bound(run.upper))
        super().__init__(run, network.layers, most, size, risk_size, TOLERANCE_OF_ROWS)
        self._first_cut = self._highs.getNumRow()
        self._excess_column = self._highs.getNumCol()
        self._require(self._highs.addCol(0.0, 0.0, 0.0, 0, [], []))

    def add_cut(self, cut: Cut) -> bool:
        """Add a cut that the excess column may relax; False if it overflows."""
        added = super().add_cut(cut)
        if added:
            row = self._highs.getNumRow() - 1
            self._require(self._highs.changeCoeff(row, self._excess_column, -1.0))
        return added

    def relax(self) -> None:
        """Minimise the violation of the cuts instead of -E g."""
        self._require(self._highs.changeColBounds(self._excess_column, 0.0, np.inf))
        self._require(self._highs.changeColCost(self._excess_column, 1.0))
        self._require(self._highs.changeColCost(self._reward_column, 0.0))

    @property
    def reward(self) -> float:
        """Expected reward of the solution, up to HiGHS's tolerance."""
        return float(self.values[self._reward_column]) * self.reward_unit

    @property
    def risk(self) -> float:
        """Risk of the solution, up to HiGHS's tolerance."""
        return float(self.values[self._risk_column]) * self.risk_unit

    @property
    def flow(self) -> Floats:
        """The probability of taking each edge, up to HiGHS's tolerance."""
        return self.values[: self._reward_column]

    def combine_cuts(self) -> Cut:
        """Return the sum of the cuts, weighted by their prices."""
        rows = np.asarray(self._highs.getSolution().row_dual)[self._first_cut :]
        scales = [self.reward_unit * self._scale(cut) for cut in self.cuts]
        prices = np.maximum(0.0, -rows) * scales
        risk, reward, limit = (float(prices @ part) for part in np.transpose(self.cuts))
        # The rounding error of this sum, in which terms may cancel.
        sizes = prices @ np.abs([cut.limit for cut in self.cuts])
        return Cut(risk, reward, limit + len(prices) * ROUNDING * float(sizes))
