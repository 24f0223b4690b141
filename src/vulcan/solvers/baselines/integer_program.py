"""The best deterministic policy, by integer programming over flows.

The program is in `vulcan.solvers.baselines.switch_program`: the flows of deterministic policies.

On histories ("tree") the solutions are all deterministic policies; on merged states ("graph") those
that are functions of state and step, which may earn less. Tangents of Δ are added as cuts: a policy
that HiGHS finds and Δ does not accept is cut off by the tangent at its reward, or by itself where
HiGHS's tolerance can't tell.

A tree has too many histories to write down. But a price of failure gives a policy that is almost
the best, and a bound on all others, in milliseconds (`find_dual`), and both together
rule out nearly all that a better policy could do (`vulcan.solvers.baselines.reduction`). Where too
much is left, a part of it that loses little is searched first: a better policy rules out more.

HiGHS proves that nothing better is left, in floating point and with tolerances, and results say so:
unlike all else here, that proof is not checked. Its tolerances are left as they are; reward and
risk are scaled up instead. With 1e-7, and often with 1e-10, HiGHS 1.15 called policies the best
that were not. `Pareto` gives the same answer with a proof of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.baselines.flow_program import (
    COLUMN_BYTES,
    ON,
    SIZE,
    Cut,
    Ending,
    cut_at,
)
from vulcan.solvers.baselines.links import judge
from vulcan.solvers.baselines.reduction import Reduced, ReducedPlan, Reduction
from vulcan.solvers.baselines.switch_program import TOLERANCE_OF_ROWS, SwitchProgram
from vulcan.solvers.finding import Finding, Status
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.improvement import find_dual
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.shortfall import Shortfall
from vulcan.tolerance import EXACT_GAP

__all__ = ["IntegerProgram"]

ACCURACY: Final = 4 * TOLERANCE_OF_ROWS / SIZE
"""What HiGHS's tolerances may do to a bound, as a share of usual rewards."""

FIRST_EDGES: Final = 4000
"""Edges of the tree that is searched first."""

GROWTH: Final = 4
"""How many times more edges the next one may have, or less slack if that is too much."""

MOST_PROGRAMS: Final = 100
"""A guard only, for cuts at one tree: one or two are usual."""


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
        Omit what the dual bound rules out, and start from the policy that it leads to. Without it
        the program is that of Dolgov and Durfee as published, over all histories or states, which
        HiGHS solves from nothing: the same answer, thousands of times later.
    """

    finds: ClassVar[str] = "the best deterministic policy, or on graph the best of state and step"
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

        run = _ProgramRun(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        if not run.unroll(tree=self.on == "tree" and not self.reduced):
            return run.find()
        search = _Search(run, self)
        if not self.reduced:
            search.search_as_published()
        elif self.on == "tree":
            search.search_histories()
        else:
            search.search_graph()
        return search.find()


class _ProgramRun(LayeredRun):
    """A run whose upper bound may come from HiGHS."""

    @property
    def rounding(self) -> float:
        """What rounding, and HiGHS's tolerances, may do to a bound."""
        return max(super().rounding, 2 * ACCURACY * self.size)


class _Search:
    """One search, on a layered graph that is there."""

    def __init__(self, run: _ProgramRun, solver: IntegerProgram) -> None:
        self._run, self._on = run, solver.on
        self._proved, self._top = False, math.inf
        self._doubtful = -math.inf  # what policies earn of which roundings leave it open
        self._target = max(EXACT_GAP, run.monitor.limits.gap or 0.0)
        self._over = not len(run.levels)
        if self._over or solver.reduced:
            self._begin(find_dual(run))

    def _begin(self, dual: Dual) -> None:
        """Take from the dual bound what it settles, and what it says of all edges."""
        run = self._run
        self._size = run.size
        if self._on == "graph":
            accepted = [corner for corner in dual.corners if run.accepts(corner)]
            run.best = max(accepted, key=lambda corner: corner.reward, default=None)
        none = math.isinf(run.upper) or run.bound(run.upper) == -math.inf
        settled = self._reached or none or not len(run.levels)
        self._over = settled or not run.may_go_on()
        if not self._over:
            self._shortfall = Shortfall(run, dual)
            self._reduction = Reduction(run, self._shortfall)

    @property
    def _reached(self) -> bool:
        """Whether the best policy is good enough."""
        run = self._run
        if run.best is None or math.isinf(run.upper):
            return False
        distance = run.upper - run.best.reward
        return distance <= max(self._target * abs(run.upper), run.rounding)

    def search_histories(self) -> None:
        """Search trees of histories of growing size until the gap is closed."""
        run, most = self._run, FIRST_EDGES
        while not self._over and not self._reached:
            if not run.may_go_on(COLUMN_BYTES * most):
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

    def search_as_published(self) -> None:
        """Solve the program over the whole layered graph, with nothing but the bound's tangents."""
        run = self._run
        edges = run.layers.arrays.edges
        if self._over or not run.may_go_on(COLUMN_BYTES * len(edges)):
            return
        # The bound need not have a value where no policy comes.
        self._top = run.sweeps.find_best(1.0, 0.0).reward
        run.rewards.append(self._top)
        allowed, self._size = run.bound(self._top), abs(self._top) or 1.0
        if run.referee.refuses(Corner(self._top, 0.0)):  # and less is allowed for smaller rewards
            self._proved, run.upper = True, -math.inf
            return
        if allowed == -math.inf:  # and there is no tangent
            return
        whole = Reduced(run.layers, complete=True)
        sizes = (self._size, max(min(1.0, allowed), float(edges["risk"].max())))
        with SwitchProgram(run, run.layers, *sizes, published=True) as program:
            program.stop_at(run.monitor.limits.gap or 0.0)
            program.add_cut(Cut.along(run.bound.tangent(self._top), self._top))
            within = self._solve_with_cuts(program, whole, suggest=False)
        for weights in ((0.0, 1.0), (1.0, 0.0)):
            corner = run.sweeps.find_best(*weights)
            if corner.reward > within and not run.referee.refuses(corner):
                self._proved, within = False, math.inf  # HiGHS errs: here is a better policy
        if self._on == "tree":  # functions of state and step bound no other policies
            run.upper = within

    def _grow(self, most: float) -> tuple[float, Reduced] | None:
        """Return the largest tree of this many edges that might hold better policies."""
        slack = self._shortfall.find_enough()
        while (reduced := self._reduction.grow_histories(slack, most)) is None:
            slack = min(slack, GROWTH * self._size) / GROWTH
            if slack <= ACCURACY * self._size:
                return None
        return slack, reduced

    def search_graph(self) -> None:
        """Search the layered graph itself."""
        run = self._run
        if self._over:
            self._proved = self._reached or run.upper == -math.inf
            return
        reduced = self._reduction.prune_graph(self._shortfall.find_enough())
        edges = len(reduced.layers.arrays.edges)
        if run.may_go_on(COLUMN_BYTES * edges):
            self._solve(reduced)

    def find(self) -> Finding:
        """Return what was found; on a graph, among policies that depend on state and step only."""
        finding = self._run.find("HiGHS ended without a proof")
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

    def _solve(self, reduced: Reduced) -> float:
        """Find the best policy of a reduced graph; return a bound on all its policies."""
        run = self._run
        risk_size = min(1.0, run.bound(run.upper))
        with SwitchProgram(run, reduced.layers, self._size, risk_size) as program:
            program.stop_at(run.monitor.limits.gap or 0.0)
            for cut in cut_at(run.bound, run.upper, run.upper):
                program.add_cut(cut)
            if run.best is not None:
                for cut in cut_at(run.bound, run.best.reward, run.upper):
                    program.add_cut(cut)
                program.add_cut(Cut.above(run.best.reward - ACCURACY * self._size))
            return self._solve_with_cuts(program, reduced, suggest=True)

    def _solve_with_cuts(self, program: SwitchProgram, reduced: Reduced, suggest: bool) -> float:
        """Solve a program until its policy is acceptable; return a bound on all its policies."""
        for _ in range(MOST_PROGRAMS):
            if suggest:
                self._suggest_best(program, reduced)
            ending = program.solve()
            upper = program.upper_bound(ending)  # now: HiGHS forgets it when a row is added
            refused = self._take(program, reduced)
            if ending is not Ending.OPTIMAL or not refused:
                break
        self._run.proof = "proved by HiGHS"
        if ending is Ending.INFEASIBLE and self._run.best is None and self._run.in_doubt:
            return math.inf  # what HiGHS's tolerances say is no proof
        # Rewards that are tiny beside others, or beside all that HiGHS tells from 0, weigh less:
        # then their unit is larger than by the rounding to a power of two.
        scaled = SIZE * program.reward_unit
        size = self._size if scaled <= 2 * self._size else scaled
        upper = max(upper + ACCURACY * size, self._doubtful)
        complete = ending is Ending.INFEASIBLE or (ending is Ending.OPTIMAL and not refused)
        self._proved = complete and self._doubtful == -math.inf
        return upper

    def _suggest_best(self, program: SwitchProgram, reduced: Reduced) -> None:
        """Let HiGHS start from the best policy so far, if that is in the reduced graph."""
        best = self._run.best
        if best is not None:
            choice = reduced.follow(self._run.levels, best.plan)
            if choice is not None:
                program.suggest(choice, best)

    def _take(self, program: SwitchProgram, reduced: Reduced) -> bool:
        """Take the policy that HiGHS found; True if it is not acceptable, and was cut off."""
        run, choice = self._run, program.choice
        if choice is None:
            return False
        reward, risk = judge(reduced.layers, choice)
        corner = Corner(reward, risk, ReducedPlan(reduced, choice))
        run.rewards.append(reward)
        if run.accepts(corner):
            run.offer(corner)
            return False
        if not run.referee.refuses(corner):
            self._doubtful = max(self._doubtful, run.referee.raise_reward(reward))
        for cut in cut_at(run.bound, reward, min(run.upper, self._top)):
            program.add_cut(cut)
        # The tangent alone may leave the policy within HiGHS's tolerances.
        program.exclude(choice)
        return True
