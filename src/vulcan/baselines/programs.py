"""The best randomised policy, by linear programming over flows in HiGHS.

**The flow program.** A policy is known by its flow: x(e), the probability of taking edge e of a
layered graph. With p(e, n) the probability that e leads to node n, the flows of all policies,
randomised or not, are the solutions of

    Σ_{e of n} x(e)  =  [n is the root] + Σ_e p(e, n) x(e)    for each node n,      x >= 0,

and reward and risk are linear in them:  E g = Σ reward(e) x(e),  er = Σ risk(e) x(e). The set that
a risk bound accepts, {er <= Δ(E g)}, is convex, so that tangents of Δ suffice:

    er <= Δ(y) + Δ'(y) (E g - y)    for some rewards y,

where a solution that is not acceptable is cut off by the tangent at its own reward; the simplex
method continues from where it was. Of several constraints (`vulcan.constraints`) each has tangents
of its own, and a charge E c_k = Σ charge_k(e) x(e) in place of er. A cap on the risk ahead is not
linear in flows.

The columns of the program are x(e) / most(n), with most(n) a bound on the probability of being in
the node, and E g, er and other charges, each in a unit in which it is about `SIZE`. HiGHS satisfies
rows up to an absolute tolerance: the larger the numbers, the smaller the relative error.

**From a solution to an answer.** HiGHS computes with tolerances, a certificate has none to give
away. So the solution is not the answer, but leads to it, primal and dual:

- Its flow is peeled into deterministic policies. In a layered graph no node is visited twice, so a
  flow is a mixture of policies: take in every node an edge with a flow, subtract the largest
  multiple of that policy's flow that leaves nothing negative, and repeat. Some edge is used up each
  time; a basic solution mixes two policies, rarely three. Each is evaluated exactly, and the best
  acceptable mixture of two is found exactly. Of several constraints that is a small linear program
  (`vulcan.exact.several`).
- The prices μ of its cuts a er - b E g <= c are weights 1 + Σ μ b of reward and Σ μ a of risk. The
  largest value of any policy for these weights is one dynamic program, and bounds the reward of all
  acceptable policies (`vulcan.exact.dual`). HiGHS is not trusted: prices that are slightly wrong
  make the bound slightly worse, and never invalid.

Mixture and bound meet, up to the tolerances of HiGHS. So this is the dual search in directions that
HiGHS chooses. Where a gap is left, or the program has no solution, it goes on by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound, Tangent
from vulcan.errors import OptionError, VulcanError
from vulcan.exact.dual import Dual
from vulcan.exact.search import ExactSearch
from vulcan.exact.several import find_prices, offer_mixture
from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.levels import Decisions, Layers, collect_decisions
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, TOLERANCE
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import Monitor, StopReason
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding, Status

Floats = NDArray[np.float64]
EdgeChoice = NDArray[np.int32]
"""An edge for each node."""


class Network:
    """A layered graph for HiGHS: that of a search, or a tree of its histories.

    `pairs` has the state–step pair of each node, and `complete` says whether it has all policies. A
    link has an edge, the nodes that it leads from (`source`) and to, and a probability. Outcomes of
    an edge that lead to the same node are one link. `charged` has what each action row is charged
    where there are several constraints.
    """

    def __init__(
        self,
        layers: Layers,
        pairs: NDArray[np.intp] | None = None,
        complete: bool = True,
        charged: Floats | None = None,
    ) -> None:
        self.layers, self.complete = layers, complete
        nodes, edges, targets = layers
        self.several = charged is not None
        self.charges = edges["risk"][:, None] if charged is None else charged[edges["action"]]
        self.pairs = np.arange(len(nodes)) if pairs is None else pairs
        self.owner = np.repeat(np.arange(len(nodes)), nodes["edge_count"])  # of each edge
        edge = np.repeat(np.arange(len(edges)), edges["target_count"])
        inner = targets["node"] >= 0
        keys = edge[inner] * len(nodes) + targets["node"][inner]
        links, which = np.unique(keys, return_inverse=True)
        self.edge, self.node = np.divmod(links, len(nodes))
        self.probability = np.bincount(which, targets["probability"][inner], len(links))
        self.source = self.owner[self.edge]
        level = nodes["level"][self.source]
        # The links that start in each level.
        self.levels = [np.flatnonzero(level == k) for k in range(int(nodes["level"][-1]))]

    def reach(self, choice: EdgeChoice) -> Floats:
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

    def find_single(self) -> NDArray[np.bool_]:
        """Return whether a single path leads from the root to each node."""
        single = np.asarray(np.bincount(self.node, minlength=len(self.pairs)) == 1)
        single[0] = True
        for links in self.levels:
            single[self.node[links]] &= single[self.source[links]]
        return single

    def find_most(self) -> Floats:
        """Return a bound on the probability of being in each node; exact where the path is single.

        A policy takes one edge of a node, so that only the likeliest of those from one node to
        another counts; those of different nodes add up.
        """
        count = len(self.pairs)
        most = np.zeros(count)
        most[0] = 1.0
        for links in self.levels:
            source, node = self.source[links], self.node[links]
            keys, which = np.unique(source * count + node, return_inverse=True)
            arriving = np.zeros(len(keys))
            np.maximum.at(arriving, which, most[source] * self.probability[links])
            np.add.at(most, keys % count, arriving)
            np.minimum(most, 1.0, out=most)
        return np.maximum(most, np.finfo(float).tiny)  # no underflow to 0

    def pick_edges(self, values: Floats) -> EdgeChoice:
        """Return the edge of largest value of each node; the first one among equals."""
        nodes = self.layers.nodes
        largest = np.maximum.reduceat(values, nodes["first_edge"])
        places = np.flatnonzero(values == np.repeat(largest, nodes["edge_count"]))
        return places[np.unique(self.owner[places], return_index=True)[1]].astype(np.int32)

    def make_point(self, choice: EdgeChoice) -> PolicyPoint:
        """Return the policy that takes an edge in each node."""
        from vulcan.kernels.dp import evaluate_edges

        def choose(node: int) -> tuple[int, int, list[int | None]]:
            edge = int(choice[node])
            after = [None if target == END else target for target in self.layers.follow(edge)]
            return int(self.pairs[node]), int(self.layers.edges["action"][edge]), after

        def decide() -> Decisions:
            return collect_decisions(0, choose)

        rewards, risks = np.zeros((2, len(self.pairs)))
        evaluate_edges(self.layers, choice, rewards, risks)
        point = PolicyPoint(float(rewards[0]), float(risks[0]), decide)
        if not self.several:
            return point
        charges, edges = [point.risk], self.layers.edges.copy()
        for charge in self.charges.T[1:]:
            edges["risk"] = charge
            evaluate_edges(self.layers._replace(edges=edges), choice, rewards, risks)
            charges.append(float(risks[0]))
        return replace(point, charges=tuple(charges))


def find_charges(run: ExactSearch) -> Floats | None:
    """Return what each action row is charged; None where there is one risk bound."""
    return run.several.charges if run.problem.constraints else None


def open_network(run: ExactSearch, on: str) -> Network | None:
    """Return the graph of a search, or the tree of its histories; None if it is too large."""

    def may_go_on(edges: int) -> bool:
        return run.may_go_on(COLUMN_BYTES * edges)

    if on == "tree":
        return unfold(run.layers, may_go_on, charged=find_charges(run))
    if not may_go_on(len(run.layers.edges)):
        return None
    return Network(run.layers, charged=find_charges(run))


def unfold(
    layers: Layers,
    may_go_on: Callable[[int], bool],
    gaps: Floats | None = None,
    slack: float = math.inf,
    charged: Floats | None = None,
) -> Network | None:
    """Return the tree of histories of a layered graph; None if it may not go on.

    `may_go_on` is called level by level with the number of edges so far. Steps whose loss, with
    `gaps` those of edges, is larger than `slack` are dropped (`vulcan.baselines.integer_program`).
    `charged` is as of `Network`.
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
    return Network(Layers(*arrays), pairs, complete, charged)


SIZE: Final = 2.0**14  # the scale of reward and risk in the program
SMALLEST_SHARE: Final = 1e-4  # no smaller fraction of its largest term is scaled up further
SMALLEST_SIZE: Final = 1e-200  # rewards and risks below this are not scaled up further
LARGEST_VALUE: Final = 1e12  # largest coefficient; HiGHS refuses those of 1e15
LARGEST_LIMIT: Final = 1e19  # of a row, which nothing attains; for HiGHS 1e20 is infinite
ROUNDING: Final = 1e-15  # relative rounding error allowed for a few operations
COLUMN_BYTES: Final = 2000  # approximate memory of HiGHS per edge, with all copies and rows

NEGLIGIBLE: Final = 1e-3
"""Coefficients below this fraction of the tolerance of rows are dropped: HiGHS's presolve would
divide by them."""

ON: Final = Option(
    "on",
    str,
    "Plan on merged states, or on histories.",
    default="graph, and tree for integer-program",
    choices=("graph", "tree"),
)

Ending = Literal["optimal", "infeasible", "stopped", "failed"]
"""How a run of HiGHS ended."""


def require_form(on: str) -> None:
    """Refuse what is neither a graph nor a tree."""
    if on not in ("graph", "tree"):
        raise OptionError(f"on must be 'graph' or 'tree', not {on!r}")


class Cut(NamedTuple):
    """Numbers a, b >= 0 and c of a valid inequality for acceptable policies: a x - b E g <= c.

    Here x is one of the charges, the risk by default.
    """

    a: float
    b: float
    c: float
    charge: int = 0


def cut_along(tangent: Tangent, top: float, charge: int = 0) -> Cut:
    """Return the cut of a tangent of Δ, valid for rewards up to `top`, rounded outwards."""
    slope = tangent.least_slope
    level, doubt = slope * tangent.at, 2 * tangent.doubt * max(0.0, top - tangent.at)
    rounding = ROUNDING * (abs(level) + abs(tangent.value)) + doubt
    return Cut(1.0, slope, tangent.value + TOLERANCE - level + rounding, charge)


def cut_below(reward: float) -> Cut:
    """Return the cut that leaves rewards of at least this much."""
    return Cut(0.0, 1.0, -reward)


def cut_at(bound: RiskBound, reward: float, top: float, charge: int = 0) -> list[Cut]:
    """Return the tightest cuts at a reward that no acceptable policy violates.

    They hold up to `top`, a larger reward at which the bound is finite. If it is -inf at the first,
    the cut is where it becomes finite.
    """
    if bound(reward) > -math.inf:
        return [cut_along(bound.tangent(reward), top, charge)]
    low, high = reward, top
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if bound(middle) == -math.inf else (low, middle)
    return [cut_below(low), cut_along(bound.tangent(high), top, charge)]


def cut_all(run: ExactSearch, reward: float, top: float) -> list[Cut]:
    """Return the tightest cuts of all constraints at a reward, as `cut_at` does."""
    each = (cut_at(bound, reward, top, k) for k, bound in enumerate(run.bounds))
    return [cut for cuts in each for cut in cuts]


def find_sizes(run: ExactSearch, most: float) -> Floats:
    """Return orders of magnitude of the charges that are allowed at the largest reward."""
    if not run.problem.constraints:
        return np.array([min(1.0, run.bound(most))])
    allowed = np.array([bound(most) for bound in run.bounds])
    return np.asarray(np.minimum(run.several.sizes, np.abs(allowed)))


Entries = tuple[Any, Any, Any]
"""Rows, columns and values of a matrix; a number stands for as many of it as there are columns."""


def _pack(
    parts: Sequence[Entries], major: int, size: int, least: float = 0.0
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return a matrix in compressed form: starts, indices and values.

    It is stored row by row (`major` 0) or column by column (1); `size` is the number of these.
    Values of a magnitude below `least` are dropped.
    """
    shaped = [np.broadcast_arrays(*part) for part in parts]
    rows, columns, values = (np.concatenate([part[k].ravel() for part in shaped]) for k in range(3))
    first, second = (columns, rows) if major else (rows, columns)
    order = np.lexsort((second, first))
    order = order[np.abs(values[order]) >= least]
    begins = np.searchsorted(first[order], np.arange(size + 1))
    return begins.astype(np.int32), second[order].astype(np.int32), values[order].astype(float)


class FlowProgram:
    """A flow program in HiGHS, to which cuts are added; used in a `with` statement.

    Every node of its network has an edge. `reward_size` and `sizes`, those of charges, are orders
    of magnitude, and `tolerance` is HiGHS's tolerance of rows and prices.
    """

    def __init__(
        self,
        run: ExactSearch,
        network: Network,
        reward_size: float,
        sizes: Floats,
        tolerance: float,
    ) -> None:
        import highspy

        self._run, self.network, self._most = run, network, network.find_most()
        edges = network.layers.edges
        self.reward_unit = _find_unit(reward_size, np.abs(edges["reward"]))
        columns = zip(sizes.tolist(), np.abs(network.charges).T, strict=True)
        self._units = [_find_unit(size, charges) for size, charges in columns]
        self._reward_column = len(edges)  # those of charges follow
        self._negligible = NEGLIGIBLE * tolerance
        self.cuts: list[Cut] = []
        self._taken: NDArray[np.intp] = np.arange(len(edges))
        self._trouble: BaseException | None = None
        self._misled = False
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._set("log_to_console", False)
        self._set("threads", 1)
        for kind in ("primal", "dual", "mip"):
            self._set(f"{kind}_feasibility_tolerance", tolerance)
        self._set("small_matrix_value", self._negligible)
        self._require(self._highs.passModel(self._describe()))
        self._first_cut = self._highs.getNumRow()

    def __enter__(self) -> Self:
        for event in (self._highs.cbSimplexInterrupt, self._highs.cbMipInterrupt):
            event.subscribe(self._watch)
        self._highs.cbLogging.subscribe(self._listen)
        return self

    def __exit__(self, *error: object) -> None:
        # Now, not when the cycle of program, HiGHS and callback is garbage-collected.
        self._highs.clearCallbacks()
        self._highs.clear()
        self._highs.resetGlobalScheduler(True)

    def _describe(self) -> Any:
        """Return the program for HiGHS: minimise -E g."""
        import highspy

        network = self.network
        nodes, edges, _ = network.layers
        rewards, count = len(nodes), 1 + len(self._units)  # the rows that define reward and charges
        every, weight = np.arange(len(edges)), self._most[network.owner]
        shares = network.probability * weight[network.edge] / self._most[network.node]
        parts: list[Entries] = [
            (network.owner, every, 1.0),
            (network.node, network.edge, -shares),
            (rewards, every, weight * edges["reward"] / self.reward_unit),
            (rewards + np.arange(count), self._reward_column + np.arange(count), -1.0),
        ]
        for k, unit in enumerate(self._units):
            parts.append((rewards + 1 + k, every, weight * network.charges[:, k] / unit))
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(edges) + count, len(nodes) + count
        cost, lower = np.zeros((2, program.num_col_))
        cost[self._reward_column], lower[self._reward_column] = -1.0, -np.inf
        lower[self._reward_column + 2 :] = -np.inf  # costs may be negative
        program.col_cost_, program.col_lower_ = cost, lower
        program.col_upper_ = np.full(program.num_col_, np.inf)
        level = np.zeros(program.num_row_)
        level[0] = 1.0
        program.row_lower_ = program.row_upper_ = level
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = _pack(
            parts, 1, program.num_col_, self._negligible
        )
        return program

    def require_deterministic(self, published: bool, gap: float) -> None:
        """Let the flow of each node take one edge: a binary variable says which.

        `published` gives one of its own to every edge, and 1 as the bound on every flow. HiGHS may
        stop when the relative gap to the upper bound is at most `gap`.
        """
        self._set("mip_abs_gap", 0.0)
        # HiGHS divides by the policy's reward, which may be smaller than the bound.
        self._set("mip_rel_gap", gap / (1 + gap))
        network, count = self.network, len(self.network.pairs)
        choosing = network.layers.nodes["edge_count"] > 1
        single = np.zeros(count, bool) if published else network.find_single()
        edges = np.arange(len(network.owner))
        switched = edges[(choosing & ~single)[network.owner]]
        self._taken[switched] = self._highs.getNumCol() + np.arange(len(switched))
        # The largest flow of an edge in these units: most(n), or 1 as published, up to the largest
        # coefficient. No flow exceeds most(n), so that both are the same program.
        largest = np.ones(len(edges))
        if published:
            largest = 1 / np.maximum(self._most[network.owner], 1 / LARGEST_VALUE)
        self._add_switches(switched, largest)
        limits = (len(edges), edges.astype(np.int32), np.zeros(len(edges)), largest)
        self._require(self._highs.changeColsBounds(*limits))
        whole = self._taken[choosing[network.owner]].astype(np.int32)
        kinds = np.ones(len(whole), np.uint8)
        self._require(self._highs.changeColsIntegrality(len(whole), whole, kinds))
        self._chooses = len(whole) > 0

    def _add_switches(self, edges: NDArray[np.intp], largest: Floats) -> None:
        """Add a z for each of some edges, the rows x <= largest z, and the sums of each node."""
        every, columns = np.arange(len(edges)), self._taken[edges]
        owners, owner = np.unique(self.network.owner[edges], return_inverse=True)
        low, high = np.zeros(len(edges)), np.ones(len(edges))
        empty = (np.zeros(len(edges), np.int32), np.zeros(0, np.int32), np.zeros(0))
        self._require(self._highs.addCols(len(edges), low, low, high, 0, *empty))
        rows = len(edges) + len(owners)
        least, most = np.full(rows, -np.inf), np.zeros(rows)
        least[len(edges) :] = most[len(edges) :] = 1.0
        parts = [
            (every, edges, 1.0),
            (every, columns, -largest[edges]),
            (len(edges) + owner, columns, 1.0),
        ]
        begins, indices, values = _pack(parts, 0, rows)
        status = self._highs.addRows(rows, least, most, len(values), begins, indices, values)
        self._require(status)

    def _set(self, name: str, value: bool | int | float | str) -> None:
        self._require(self._highs.setOptionValue(name, value))

    def _require(self, status: Any) -> None:
        """Check that HiGHS accepted a call."""
        import highspy

        if status == highspy.HighsStatus.kError:
            raise VulcanError("HiGHS refuses the program; this is a defect in Vulcan")

    def add_cut(self, cut: Cut) -> bool:
        """Add a cut, scaled so that its larger coefficient is 1.

        False if it is there already, or overflows.
        """
        scale = self._scale(cut)
        if cut in self.cuts or not math.isfinite(cut.c * scale):
            return False
        columns = self._reward_column + np.array([1 + cut.charge, 0])
        values = np.array([cut.a * self._units[cut.charge], -cut.b * self.reward_unit])
        self._add_row(cut.c * scale, columns, values * scale)
        self.cuts.append(cut)
        return True

    def _scale(self, cut: Cut) -> float:
        largest = max(cut.a * self._units[cut.charge], cut.b * self.reward_unit)
        return 1 / largest if largest < math.inf else math.nan

    def _add_row(self, limit: float, columns: NDArray[Any], values: Floats) -> None:
        kept = np.abs(values) >= self._negligible
        columns, values = columns[kept].astype(np.int32), values[kept]
        limit = max(limit, -LARGEST_LIMIT)
        self._require(self._highs.addRow(-np.inf, limit, len(columns), columns, values))

    def exclude(self, choice: EdgeChoice) -> None:
        """Cut off one deterministic policy and no other."""
        there = self.network.reach(choice) > 0
        taken = self._taken[choice[there & (self.network.layers.nodes["edge_count"] > 1)]]
        self._add_row(len(taken) - 1.0, taken, np.ones(len(taken)))

    def solve(self) -> Ending:
        """Run HiGHS, unless a limit or Ctrl-C comes first."""
        import highspy

        self._run_highs()
        if self._misled:
            self._misled = False
            self._set("presolve", "off")
            self._require(self._highs.clearSolver())
            self._run_highs()
        status, monitor = self._highs.getModelStatus(), self._run.monitor
        if status == highspy.HighsModelStatus.kTimeLimit:
            monitor.stopped_by = monitor.stopped_by or StopReason.TIME
        endings: dict[Any, Ending] = {
            highspy.HighsModelStatus.kOptimal: "optimal",
            highspy.HighsModelStatus.kInfeasible: "infeasible",
            highspy.HighsModelStatus.kTimeLimit: "stopped",
            highspy.HighsModelStatus.kInterrupt: "stopped",
        }
        return endings.get(status, "failed")

    def _run_highs(self) -> None:
        import highspy

        monitor = self._run.monitor
        if monitor.limits.time_limit is not None:
            spent = monitor.seconds + self._run.reserve
            left = max(0.0, monitor.limits.time_limit - spent)
            self._set("time_limit", self._highs.getRunTime() + left)
        if self._highs.run() == highspy.HighsStatus.kError and self._trouble is None:
            # The first user in a process fixes the number of threads, and HiGHS refuses others.
            self._highs.resetGlobalScheduler(True)
            self._highs.run()
        if self._trouble is not None:
            raise self._trouble

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
        self._misled |= "untransformed violations" in event.message

    @property
    def _values(self) -> Floats:
        """The columns of the solution."""
        return np.asarray(self._highs.getSolution().col_value)

    @property
    def reward(self) -> float:
        """Expected reward of the solution, up to HiGHS's tolerance."""
        return float(self._values[self._reward_column]) * self.reward_unit

    @property
    def flow(self) -> Floats:
        """The probability of taking each edge, up to HiGHS's tolerance."""
        return self._values[: self._reward_column] * self._most[self.network.owner]

    @property
    def weights(self) -> list[float]:
        """The weights of reward and charges at which a randomised solution is the best of all."""
        prices = np.asarray(self._highs.getSolution().row_dual)[self._first_cut :]
        scales = [self.reward_unit * self._scale(cut) for cut in self.cuts]
        prices = np.maximum(0.0, -prices) * scales
        charges, rewards, _, numbers = np.transpose(self.cuts)
        each = [float(prices @ (charges * (numbers == k))) for k in range(len(self._units))]
        return [1.0 + float(prices @ rewards), *each]

    @property
    def choice(self) -> EdgeChoice | None:
        """The edges that a deterministic solution takes; None without one."""
        import highspy

        feasible = int(highspy.SolutionStatus.kSolutionStatusFeasible)
        if int(self._highs.getInfo().primal_solution_status) != feasible:
            return None
        return self.network.pick_edges(self._values[self._taken])

    def upper_bound(self, ending: Ending) -> float:
        """Return a bound on deterministic policies within the cuts, up to HiGHS's tolerance."""
        if ending == "infeasible":
            return -math.inf
        if ending == "failed":
            return math.inf
        info = self._highs.getInfo()
        bound = float(info.mip_dual_bound)
        if ending == "optimal" and not (self._chooses and math.isfinite(bound)):
            bound = float(info.objective_function_value)  # nothing to choose, or presolve chose
        return -bound * self.reward_unit


def _find_unit(size: float, parts: Floats) -> float:
    """Return a power of two in which a size is about `SIZE`, if its terms are not much larger."""
    largest = max(size, SMALLEST_SHARE * float(parts.max()))
    return 2.0 ** round(math.log2(max(largest, SMALLEST_SIZE) / SIZE if largest > 0 else 1 / SIZE))


MOST_CUTS: Final = 100  # a safeguard: fewer than ten are usual
MOST_POLICIES: Final = 8  # a safeguard: a basic solution is a mixture of two policies, or three
TOLERANCE_OF_ROWS: Final = 1e-9  # HiGHS's tolerance of rows and prices
NEGLIGIBLE_WEIGHT: Final = 1e-9  # a smaller fraction of a flow is taken for a rounding error


@dataclass(frozen=True)
class LinearProgram(Solver):
    """Find the best randomised policy by linear programming.

    The answer draws one of two deterministic policies at the start, of more under several
    constraints, or is a deterministic policy where that is best. Its upper bound holds for every
    policy, randomised or not. A cap on the risk ahead (`RiskAhead`) is refused.

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
    several: ClassVar[bool] = True
    sums_only: ClassVar[bool] = True

    on: Literal["graph", "tree"] = "graph"

    def __post_init__(self) -> None:
        require_form(self.on)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        import highspy  # noqa: F401  # now, before the clock starts

        run = ExactSearch(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if run.unroll():
            (_search_several if problem.constraints else _search)(run, self.on)
        return _allow_for_tolerance(run, run.find("a gap remains because of HiGHS's tolerances"))


def _search(run: ExactSearch, on: str) -> None:
    """Find the best mixture within one risk bound."""
    dual = run.open_dual()
    if len(run.levels):
        _solve(run, dual, on)
    run.offer_mix(run.find_dual(dual).best)


def _search_several(run: ExactSearch, on: str) -> None:
    """Find the best mixture within several limits."""
    find_prices(run, partial(_solve_several, run, on))
    offer_mixture(run)


def _allow_for_tolerance(run: ExactSearch, finding: Finding) -> Finding:
    """Call a gap closed that is worth no more than the tolerance of the risk bound."""
    if finding.status is not Status.DONE or run.mix is None or run.problem.constraints:
        return finding
    safe, risky = run.mix.members or (run.mix, run.mix)
    earned, risked = risky.reward - safe.reward, risky.risk - safe.risk
    price = max(run.price or 0.0, earned / risked if risked > 0 else 0.0)
    if run.upper - run.mix.reward > price * TOLERANCE + run.rounding:
        return finding
    explanation = f"within {100 * run.gap:.2g} % of the best randomised policy, proved"
    # The weights of a mixture are rounded as well.
    left = run.upper - run.bound_test.lower_reward(run.mix.reward)
    rounding = max(finding.rounding, left + ROUNDING * abs(earned))
    return replace(finding, status=Status.SOLVED, explanation=explanation, rounding=rounding)


def _solve(run: ExactSearch, dual: Dual, on: str) -> None:
    """Solve programs with more and more cuts until the gap is closed."""
    dual.begin()
    run.offer_mix(dual.best)
    most = dual.most
    if dual.finished or run.bound(most) == -math.inf:  # or there is no tangent
        return
    network = open_network(run, on)
    if network is None:
        return
    with FlowProgram(run, network, abs(most), find_sizes(run, most), TOLERANCE_OF_ROWS) as program:
        reward = most
        while not run.closed and len(program.cuts) < MOST_CUTS and run.may_go_on():
            added = [program.add_cut(cut) for cut in cut_at(run.bound, min(reward, most), most)]
            if not any(added) or program.solve() != "optimal":
                break
            reward, (first, second) = program.reward, program.weights
            dual.look((first, second), _peel(program, run.sweeps.choose(first, second)))
            run.offer_mix(dual.best)
            run.upper = dual.upper_bound


def _solve_several(run: ExactSearch, on: str) -> None:
    """Add the policies of programs with more and more cuts to those known for several limits."""
    most, several = run.most, run.several
    if any(bound(most) == -math.inf for bound in run.bounds):
        return
    network = open_network(run, on)
    if network is None:
        return
    with FlowProgram(run, network, abs(most), find_sizes(run, most), TOLERANCE_OF_ROWS) as program:
        reward = most
        while not run.closed and len(program.cuts) < MOST_CUTS and run.may_go_on():
            added = [program.add_cut(cut) for cut in cut_all(run, min(reward, most), most)]
            if not any(added) or program.solve() != "optimal":
                break
            reward, weights = program.reward, np.array(program.weights)
            several.look(weights)
            for point in _peel(program, several.choose(weights)):
                several.keep(point, weights)


def _peel(program: FlowProgram, otherwise: EdgeChoice) -> list[PolicyPoint]:
    """Return deterministic policies whose mixture has the flow of a solution, up to rounding.

    Nodes without a flow take the action of another policy, given by the row of each pair.
    """
    network, flow = program.network, np.maximum(0.0, program.flow)
    first = network.layers.nodes["first_edge"]
    otherwise = first + otherwise[network.pairs] - network.layers.edges["action"][first]
    points: list[PolicyPoint] = []
    left = 1.0
    while left > NEGLIGIBLE_WEIGHT and len(points) < MOST_POLICIES:
        choice = network.pick_edges(flow)
        choice = np.where(flow[choice] > 0, choice, otherwise).astype(np.int32)
        points.append(network.make_point(choice))
        reach = network.reach(choice)
        used = np.flatnonzero((reach > 0) & (flow[choice] > 0))
        shares = flow[choice[used]] / reach[used]
        share = float(shares[shares > NEGLIGIBLE_WEIGHT].min(initial=left))
        rest = np.where(shares - share > NEGLIGIBLE_WEIGHT, (shares - share) * reach[used], 0.0)
        flow[choice[used]] = rest
        left -= share
    return points
