"""The flow program of deterministic policies: switches say which edge each node takes.

A binary variable z(e) says whether e is the edge that its node takes, and only such an edge may
have a flow (Dolgov and Durfee, 2005),

    x(e) <= most(n) z(e),    Σ_{e of n} z(e) = 1,

with most(n) the largest probability of being in n, or more: 1 as it was published. Where a single
way leads to n, as everywhere on histories, a deterministic policy is in n with probability most(n)
or 0. Then x(e) / most(n) is binary itself, and needs no z.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.layered_graph import Layers
from vulcan.solvers.baselines.flow_program import Ending, FlowProgram, pack
from vulcan.solvers.baselines.links import Choice, Floats, Links, pick_edges
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["TOLERANCE_OF_ROWS", "SwitchProgram"]

TOLERANCE_OF_ROWS: Final = 1e-6
"""Up to what HiGHS satisfies rows, and variables are whole."""

LARGEST_VALUE: Final = 1e12
"""Coefficients above this are not used; HiGHS refuses those of 1e15."""


class SwitchProgram(FlowProgram):
    """A flow program for deterministic policies.

    Parameters
    ----------
    run, layers, reward_size, risk_size
        As in `FlowProgram`.
    published
        Whether to write the program as it was published: a switch for every choice, and 1 as the
        bound on every flow.
    """

    def __init__(
        self,
        run: LayeredRun,
        layers: Layers,
        reward_size: float,
        risk_size: float,
        *,
        published: bool = False,
    ) -> None:
        links, count = Links(layers), len(layers)
        sizes = (reward_size, risk_size)
        # The unit of each column; as published, the program is the same in any units.
        super().__init__(run, layers, links, links.find_most(count), *sizes, TOLERANCE_OF_ROWS)
        choosing = layers.arrays.nodes["edge_count"] > 1
        single = np.zeros(count, bool) if published else links.find_single(count)
        edges = np.arange(len(links.owner))
        switched = edges[(choosing & ~single)[links.owner]]
        # The column that says whether an edge is taken.
        self._taken = edges.copy()
        self._taken[switched] = self._highs.getNumCol() + np.arange(len(switched))
        # The largest flow of an edge, in these units: most(n), or 1 as published, as far as HiGHS
        # takes such numbers. No flow is larger than most(n), so that all this is the same program.
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
        parts = [
            (every, edges, 1.0),
            (every, columns, -largest[edges]),
            (len(edges) + owner, columns, 1.0),
        ]
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
        if ending is Ending.OPTIMAL and not (self._chooses and math.isfinite(bound)):
            bound = float(info.objective_function_value)  # nothing to choose, or presolve chose
        return -bound * self.reward_unit
