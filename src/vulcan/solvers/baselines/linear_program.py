"""The best randomised policy, by linear programming over flows.

The program is in `vulcan.solvers.baselines.flow_program`: its variables are the probabilities of
taking each edge, so that its best solution is the best randomised policy. Tangents of Δ are added
as cuts until the solution is acceptable to Δ itself; each time the simplex method goes on from
where it was.

HiGHS computes with tolerances, a certificate has none to give away. So the solution is not the
answer, but shows the way to it, primal and dual:

- Its flow is peeled into deterministic policies. In a layered graph no node is visited twice, so a
  flow is a mixture of policies: take in every node an edge with a flow, subtract the largest
  multiple of that policy's flow that leaves nothing negative, and repeat. Some edge is used up each
  time; a solution in a corner mixes two policies, rarely three. Each is evaluated exactly, and
  the best acceptable mixture of two is found exactly.
- The prices μ of its cuts a er - b E g <= c make a bound. Every acceptable policy satisfies all
  cuts, whatever the prices, so that

      E g  <=  E g + Σ μ (c - a er + b E g)  <=  max over all policies of
               [(1 + Σ μ b) E g - Σ μ a er]  +  Σ μ c.

  The maximum is one dynamic program, in which HiGHS is not trusted: prices that are slightly wrong
  make the bound slightly worse, and never invalid. If the program has no solution, HiGHS looks for
  the flow that violates the cuts least, and the same with those prices and without the first E g,
  0 <= ..., is the contradiction.

Mixture and bound meet, up to what HiGHS leaves of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.graphs.layered_graph import Layers
from vulcan.graphs.levels import ChoicePlan
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.baselines.flow_program import (
    COLUMN_BYTES,
    ON,
    ROUNDING,
    Cut,
    Ending,
    FlowProgram,
    cut_at,
)
from vulcan.solvers.baselines.links import Choice, Floats, Links, judge, pick_edges
from vulcan.solvers.finding import Finding, Status
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.dual import best_mix
from vulcan.solvers.layered.run import LayeredRun
from vulcan.tolerance import EXACT_GAP, TOLERANCE

__all__ = ["LinearProgram", "peel"]

MOST_CUTS: Final = 100
"""A guard only: less than ten are usual."""

MOST_POLICIES: Final = 8
"""A guard only: a flow in a corner of the program is made of two policies, or three."""

TOLERANCE_OF_ROWS: Final = 1e-9
"""Up to what HiGHS satisfies rows, and prices are right."""

NEGLIGIBLE: Final = 1e-9
"""A smaller share of a flow than this is taken for a rounding."""


@dataclass(frozen=True)
class LinearProgram(Solver):
    """Find the best randomised policy by linear programming.

    The answer draws one of two deterministic policies at the start, or is a deterministic policy
    where that is best. Its upper bound holds for every policy, randomised or not.

    Parameters
    ----------
    on
        "graph" for merged states, "tree" for histories. Both give the same reward; the tree is
        there to show it, and for models that merge nothing.
    tolerance
        Stop when the reward is within this share of the upper bound.
    warm
        Whether to start the simplex method from the policy of largest reward, or as HiGHS does for
        any program: the same answer sooner or later. By default, that policy is where it starts on
        a graph; on a large tree HiGHS gains more by simplifying the program first, which it does
        only if it may start where it likes.
    """

    finds: ClassVar[str] = "the best randomised policy"
    method: ClassVar[str] = "HiGHS, tangent cuts"
    limits: ClassVar[Sequence[str]] = EXACT
    covers: ClassVar[Coverage] = Coverage.EVERY
    options: ClassVar[Sequence[Option]] = (ON,)

    on: Literal["graph", "tree"] = "graph"
    tolerance: float = EXACT_GAP
    warm: bool | None = None

    def __post_init__(self) -> None:
        if self.on not in ("graph", "tree"):
            raise OptionError(f"on must be 'graph' or 'tree', not {self.on!r}")
        if not 0 <= self.tolerance < math.inf:
            raise OptionError(f"tolerance must be at least 0, not {self.tolerance!r}")

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        import highspy  # noqa: F401  # now, before the clock starts

        run = _MixRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if run.unroll(tree=self.on == "tree"):
            _Search(run, self).go()
        finding = run.find("the tolerances of HiGHS leave a gap")
        if finding.status is Status.SOLVED or not run.meets(self.tolerance):
            return finding
        explanation = f"within {100 * run.gap:.2g} % of the best randomised policy, proved"
        rounding = finding.rounding
        if run.gap <= EXACT_GAP or run.gap > self.tolerance:
            # Near 0 that is more than the share of a reward which is rounding; a larger gap is what
            # the tolerance of the bound is worth.
            left = run.upper - run.referee.lower_reward(finding.reward)
            # The weights of a mixture are rounded as well.
            mix = run.mix
            spread = 0.0 if mix is None else abs(mix.daring.reward - mix.safe.reward)
            rounding = max(rounding, left + ROUNDING * spread)
        return replace(finding, status=Status.SOLVED, explanation=explanation, rounding=rounding)


class _MixRun(LayeredRun):
    """A run whose best policy is a mixture."""

    def meets(self, tolerance: float) -> bool:
        """Whether reward and bound meet, but for what the tolerance of the bound is worth."""
        if self.best is None or self.gap <= tolerance:
            return self.best is not None
        price = max(self.price or 0.0, self._price_of_mix())
        return self.upper - self.best.reward <= price * TOLERANCE + self.rounding

    def _price_of_mix(self) -> float:
        """Return what the mixture would earn for more risk, per unit."""
        if self.mix is None or self.mix.daring.risk <= self.mix.safe.risk:
            return 0.0
        earned = self.mix.daring.reward - self.mix.safe.reward
        return earned / (self.mix.daring.risk - self.mix.safe.risk)


class _SimplexProgram(FlowProgram):
    """A flow program for randomised policies, with its dual."""

    def __init__(self, run: LayeredRun, size: float) -> None:
        self.links = Links(run.layers)
        most = np.ones(len(run.layers))
        risk_size = min(1.0, run.bound(run.upper))
        super().__init__(run, run.layers, self.links, most, size, risk_size, TOLERANCE_OF_ROWS)
        self._first_cut = self._highs.getNumRow()
        self._excess_column = self._highs.getNumCol()
        self._require(self._highs.addCol(0.0, 0.0, 0.0, 0, [], []))

    def add_cut(self, cut: Cut) -> bool:
        """Add a cut that the excess relaxes, where it may; False if no floats can say it."""
        added = super().add_cut(cut)
        if added:
            row = self._highs.getNumRow() - 1
            self._require(self._highs.changeCoeff(row, self._excess_column, -1.0))
        return added

    def relax(self) -> None:
        """Look for the flow that violates the cuts least, instead of the best one."""
        self._require(self._highs.changeColBounds(self._excess_column, 0.0, np.inf))
        self._require(self._highs.changeColCost(self._excess_column, 1.0))
        self._require(self._highs.changeColCost(self._reward_column, 0.0))

    def start_from(self, choice: Choice) -> None:
        """Start the simplex method from a policy: its edges are the basis.

        The policy of largest reward is optimal but for the cuts, so that the dual simplex method
        has a fraction of the work that it has from nowhere.
        """
        import highspy

        kinds = (highspy.HighsBasisStatus.kLower, highspy.HighsBasisStatus.kBasic)
        columns = np.zeros(self._highs.getNumCol(), int)
        columns[choice] = columns[self._reward_column] = columns[self._risk_column] = 1
        basis = highspy.HighsBasis()
        basis.col_status = [kinds[kind] for kind in columns.tolist()]
        basis.row_status = [kinds[0]] * self._first_cut + [kinds[1]] * len(self.cuts)
        self._require(self._highs.setBasis(basis))

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
        """Return the combination of the cuts that their prices make."""
        rows = np.asarray(self._highs.getSolution().row_dual)[self._first_cut :]
        scales = [self.reward_unit * self._scale(cut) for cut in self.cuts]
        prices = np.maximum(0.0, -rows) * scales
        risk, reward, limit = (float(prices @ part) for part in np.transpose(self.cuts))
        # So many numbers are summed, of which some may cancel.
        sizes = prices @ np.abs([cut.limit for cut in self.cuts])
        return Cut(risk, reward, limit + len(prices) * ROUNDING * float(sizes))


class _Search:
    """One search on a layered graph that is there."""

    def __init__(self, run: _MixRun, solver: LinearProgram) -> None:
        self._run = run
        self._tolerance = solver.tolerance
        self._warm = solver.on == "graph" if solver.warm is None else solver.warm
        self._top = run.sweep(1.0, 0.0)
        self._corners = [self._top, run.sweep(0.0, 1.0)]
        self._most = run.referee.raise_reward(self._top.reward)
        # The bound does not decrease: where it allows less than no risk, so does all before.
        none = run.referee.refuses(Corner(self._top.reward, 0.0))
        run.upper = -math.inf if none else self._most
        self._offer_mix()

    def go(self) -> None:
        """Solve programs with more and more cuts until the gap is closed."""
        run = self._run
        if run.mix is not None and run.mix.safe is self._top:
            run.price = 0.0  # the policy of largest reward is acceptable
            return
        if run.upper == -math.inf:
            return
        if run.bound(self._most) == -math.inf:  # and just above it is not: there is no tangent
            run.offer_mix(run.find_relaxed().best)
            return
        memory = COLUMN_BYTES * len(run.layers.arrays.edges)
        if not run.may_go_on(memory):
            return
        with _SimplexProgram(run, abs(self._top.reward)) as program:
            if not self._cut(program, self._most):
                run.offer_mix(run.find_relaxed().best)
                return
            if self._warm:
                program.start_from(self._find_edges(self._top))
            while len(program.cuts) < MOST_CUTS and run.may_go_on():
                ending = program.solve()
                if ending is Ending.STOPPED:
                    return
                if ending is not Ending.OPTIMAL or self._use(program):
                    break
            if run.best is None:
                self._refute(program)

    def _cut(self, program: FlowProgram, reward: float) -> bool:
        """Add the tangent at a reward; False if it is there already, or beyond all floats."""
        cuts = cut_at(self._run.bound, min(reward, self._most), self._most)
        added = [program.add_cut(cut) for cut in cuts if cut not in program.cuts]
        return any(added)

    def _bound(self, cut: Cut, value: float) -> None:
        """Bound the reward of all policies by the largest value of any of them."""
        run = self._run
        upper = value + cut.limit + ROUNDING * (abs(value) + abs(cut.limit))
        if upper < run.upper:
            run.upper, run.price = upper, cut.risk
        if run.best is None:
            return

        def excludes(reward: float) -> bool:
            allowed = float(run.bound.enclose(reward, reward)[1]) + TOLERANCE
            worth, cost = (1 + cut.reward) * reward, cut.risk * allowed
            rounding = ROUNDING * (abs(worth) + abs(cost) + abs(value))
            return worth - cost - rounding > value

        # Tangents that are found numerically lie a trifle above the bound, which itself excludes
        # more. The left side is convex, and not above the value at the best policy: to the right of
        # an excluded reward all are excluded.
        low, high = run.best.reward, run.upper
        while low < (middle := low + (high - low) / 2) < high:
            low, high = (low, middle) if excludes(middle) else (middle, high)
        run.upper = high

    def _refute(self, program: _SimplexProgram) -> None:
        """Prove by one dynamic program that no policy satisfies all the cuts.

        Where the bound is so steep that HiGHS's tolerances can't tell, the dual search decides.
        """
        program.relax()
        if program.solve() is Ending.OPTIMAL:
            cut = program.combine_cuts()
            value = self._sweep(cut.reward, cut.risk)
            if value + cut.limit < -ROUNDING * (abs(value) + abs(cut.limit)):
                self._run.upper = -math.inf
                return
        self._run.offer_mix(self._run.find_relaxed().best)

    def _sweep(self, reward: float, risk: float) -> float:
        """Return the largest reward · E g - risk · er of any policy, or a trifle more."""
        corner = self._run.sweep(reward, risk)
        self._corners.append(corner)
        value = reward * corner.reward - risk * corner.risk
        return self._run.referee.raise_value(value, (reward, risk), self._most)

    def _use(self, program: _SimplexProgram) -> bool:
        """Take from a solution what it shows, and cut it off; True if the search is over."""
        run, cut = self._run, program.combine_cuts()
        value = self._sweep(1.0 + cut.reward, cut.risk)
        otherwise = self._find_edges(self._corners[-1])
        for choice in peel(run.layers, program.links, program.flow, otherwise):
            plan = ChoicePlan(run.levels, run.layers.arrays.edges["action"][choice])
            self._corners.append(Corner(*judge(run.layers, choice), plan))
        self._offer_mix()
        self._bound(cut, value)
        if run.meets(self._tolerance):
            return True
        run.rewards.append(program.reward)
        acceptable = program.risk <= run.bound(program.reward)
        return acceptable or not self._cut(program, program.reward)

    def _find_edges(self, corner: Corner) -> Choice:
        """Return the edge that a policy takes in each node."""
        return self._run.layers.find_edges(self._run.levels, corner.plan.choice)

    def _offer_mix(self) -> None:
        """Keep the best acceptable mixture of the policies so far."""
        self._run.rewards += [corner.reward for corner in self._corners]
        self._run.offer_mix(best_mix(self._corners, self._run.referee))


def peel(layers: Layers, links: Links, flow: Floats, otherwise: Choice) -> list[Choice]:
    """Return deterministic policies whose mixture has a given flow, up to roundings.

    Parameters
    ----------
    layers, links
        The layered graph.
    flow
        The probability of taking each edge.
    otherwise
        What to do in nodes without a flow.
    """
    flow = np.maximum(0.0, flow)
    policies: list[Choice] = []
    left = 1.0
    while left > NEGLIGIBLE and len(policies) < MOST_POLICIES:
        choice = pick_edges(layers, flow)
        choice = np.where(flow[choice] > 0, choice, otherwise).astype(np.int32)
        policies.append(choice)
        reach = links.reach(choice)
        used = np.flatnonzero((reach > 0) & (flow[choice] > 0))
        shares = flow[choice[used]] / reach[used]
        share = float(shares[shares > NEGLIGIBLE].min(initial=left))
        rest = np.where(shares - share > NEGLIGIBLE, (shares - share) * reach[used], 0.0)
        flow[choice[used]] = rest
        left -= share
    return policies
