"""The flow program: the policies of a layered graph as solutions of linear equations, in HiGHS.

A policy is known by its flow: x(e), the probability of taking edge e. With p(e, n) the probability
that e leads to node n, the flows of all policies, randomised or not, are the solutions of

    Σ_{e of n} x(e)  =  [n is the root] + Σ_e p(e, n) x(e)    for each node n,      x >= 0,

and reward and risk are linear in them:  E g = Σ reward(e) x(e),  er = Σ risk(e) x(e). The set that
a risk bound accepts, {er <= Δ(E g)}, is convex, so that tangents of Δ are all that it takes:

    er <= Δ(y) + Δ'(y) (E g - y)    for some rewards y,

where a solution that is not acceptable is cut off by the tangent at its own reward.

The columns of the program are x(e) / most(n), with most(n) a bound on the probability of being in
the node, and E g and er, each in a unit in which it is about `SIZE`. HiGHS satisfies rows up to an
absolute tolerance: the larger the numbers, the smaller the share that they may be wrong by. The
policies that HiGHS finds are never believed as they stand: they are evaluated exactly afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound, Tangent
from vulcan.errors import VulcanError
from vulcan.graphs.layered_graph import Layers
from vulcan.runtime.limits import StopReason
from vulcan.solvers.base import Option
from vulcan.solvers.baselines.links import Floats, Links
from vulcan.solvers.layered.run import LayeredRun
from vulcan.tolerance import TOLERANCE

__all__ = ["COLUMN_BYTES", "ON", "SIZE", "Cut", "Ending", "FlowProgram", "cut_at", "pack"]

SIZE: Final = 2.0**14
"""What reward and risk are scaled to."""

SMALLEST_SHARE: Final = 1e-4
"""A reward or risk that is a smaller share of its largest part is not scaled up any further."""

SMALLEST_SIZE: Final = 1e-200
"""Rewards and risks that are all smaller are not scaled up any further."""

NEGLIGIBLE: Final = 1e-3
"""Coefficients below this share of the tolerance of rows are dropped: beside larger ones, HiGHS's
presolve divides by them."""

ROUNDING: Final = 1e-15
"""What a few operations do to a number, as a share of the largest that is involved."""

MISLED: Final = "untransformed violations"
"""What HiGHS says of a solution of the presolved program that violates rows of the program."""

COLUMN_BYTES: Final = 2000
"""What HiGHS takes for an edge, all its copies and the rows included, roughly."""


ON: Final = Option(
    "on",
    str,
    "Plan on merged states, or on histories.",
    default="graph, and tree for integer-program",
    choices=("graph", "tree"),
)


class Ending(Enum):
    """How HiGHS came to an end."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"
    FAILED = "failed"


class Cut(NamedTuple):
    """A line with every acceptable policy on one side: risk · er - reward · E g <= limit.

    Attributes
    ----------
    risk, reward, limit
        The numbers of the formula; the first two are not negative.
    """

    risk: float
    reward: float
    limit: float

    @classmethod
    def along(cls, tangent: Tangent, top: float) -> Cut:
        """Return the cut that a tangent of the bound makes, rounded so that it cuts off less.

        It holds for rewards up to `top`.
        """
        slope = tangent.least_slope
        level, doubt = slope * tangent.at, 2 * tangent.doubt * max(0.0, top - tangent.at)
        rounding = ROUNDING * (abs(level) + abs(tangent.value)) + doubt
        return cls(1.0, slope, tangent.value + TOLERANCE - level + rounding)

    @classmethod
    def above(cls, reward: float) -> Cut:
        """Return the cut that leaves rewards of at least this much."""
        return cls(0.0, 1.0, -reward)


def cut_at(bound: RiskBound, reward: float, top: float) -> list[Cut]:
    """Return cuts that no acceptable policy violates, as close to the bound as can be.

    Parameters
    ----------
    bound
        The risk bound.
    reward
        Where to cut. If the bound is -inf there, it is cut where it begins instead.
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
        How many rows or columns that makes.
    least
        Smaller values are dropped.
    """
    shaped = [np.broadcast_arrays(*part) for part in parts]
    rows, columns, values = (np.concatenate([part[k].ravel() for part in shaped]) for k in range(3))
    first, second = (columns, rows) if major else (rows, columns)
    order = np.lexsort((second, first))
    order = order[np.abs(values[order]) >= least]
    starts = np.searchsorted(first[order], np.arange(size + 1))
    return starts.astype(np.int32), second[order].astype(np.int32), values[order].astype(float)


class FlowProgram:
    """A flow program in HiGHS, to which cuts are added; it is used in a `with` statement.

    Parameters
    ----------
    run
        Whose bound it is, and whose clock and limits are watched.
    layers
        The layered graph; every node has an edge.
    links
        Of the layered graph.
    most
        A bound on the probability of being in each node.
    reward_size, risk_size
        What rewards and risks are about.
    tolerance
        Up to what HiGHS satisfies rows.

    Attributes
    ----------
    cuts
        The cuts so far.
    """

    def __init__(
        self,
        run: LayeredRun,
        layers: Layers,
        links: Links,
        most: Floats,
        reward_size: float,
        risk_size: float,
        tolerance: float,
    ) -> None:
        import highspy

        self._run, self._layers, self._links, self._most = run, layers, links, most
        rewards, risks = (np.abs(layers.arrays.edges[name]) for name in ("reward", "risk"))
        self.reward_unit = _find_unit(reward_size, rewards)
        self.risk_unit = _find_unit(risk_size, risks)
        self._reward_column = len(layers.arrays.edges)
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
        # Now, not when somebody collects the circle of program, HiGHS and callback.
        self._highs.clearCallbacks()
        self._highs.clear()
        self._free_threads()

    def _describe(self) -> Any:
        """Return the program for HiGHS: minimise -E g."""
        import highspy

        nodes, edges, _ = self._layers.arrays
        rewards, risks = len(nodes), len(nodes) + 1  # the rows that say what both are
        links, every = self._links, np.arange(len(edges))
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
        """Check that HiGHS took what it was given."""
        import highspy

        if status == highspy.HighsStatus.kError:
            raise VulcanError("HiGHS refuses the program; this is a defect in Vulcan")

    def add_cut(self, cut: Cut) -> bool:
        """Add a cut, so scaled that its larger coefficient is 1; False if no floats can say it."""
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
            left = max(0.0, monitor.limits.time_limit - monitor.seconds)
            self._require(self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left))
        if self._highs.run() == highspy.HighsStatus.kError and self._trouble is None:
            self._free_threads()
            self._highs.run()
        if self._trouble is not None:
            raise self._trouble

    def _free_threads(self) -> None:
        """Let whoever uses HiGHS next in this process have as many threads as he wants.

        The first to use it decides, and HiGHS refuses to run for others.
        """
        import highspy

        highspy.Highs.resetGlobalScheduler(True)

    def _watch(self, event: Any) -> None:
        """Tell HiGHS whether to go on; it asks all the time."""
        try:
            self._run.report()
            if self._run.may_go_on():
                return
        except BaseException as trouble:  # it must not pass through HiGHS
            self._trouble = trouble
        event.interrupt()

    def _listen(self, event: Any) -> None:
        """Notice that a solution of the presolved program is none of this one.

        HiGHS drops it, and all that is like it: what is left need not be the best.
        """
        self._misled |= MISLED in event.message

    @property
    def values(self) -> Floats:
        """The columns of the solution."""
        return np.asarray(self._highs.getSolution().col_value)


def _find_unit(size: float, parts: Floats) -> float:
    """Return a power of two in which a size is about `SIZE`.

    A size that is tiny beside the parts that it is the sum of is no measure of them.
    """
    largest = max(size, SMALLEST_SHARE * float(parts.max()))
    # Nothing that HiGHS takes for a number is smaller than that.
    return 2.0 ** round(math.log2(max(largest, SMALLEST_SIZE) / SIZE if largest > 0 else 1 / SIZE))
