"""One run of Vulcan: a tree for several prices, and plans on its top.

In each round the prices are moved to where they decide, and a plan is made
(`vulcan.solvers.tree.plans`). Between rounds, coarser plans guide half of the samples.

There is more than one road to a policy within the bound, and the best of all is kept. Prices and
fronts come first. Where these find nothing, prices go up until they ask for the least risk, and a
search with local constraint B joins in, with as many samples as were taken so far.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from vulcan.certificates.problem import Problem
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.finding import Status
from vulcan.solvers.fronts import load_kernels
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.completion import HistoryCompletion
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.pairs import PairCompletion, Top, find_price, unroll
from vulcan.solvers.tree.plans import Planning
from vulcan.solvers.tree.price_run import PriceRun
from vulcan.solvers.tree.prices import choose_prices, raise_prices, surround
from vulcan.solvers.tree.rounds import Rounds

if TYPE_CHECKING:
    from vulcan.solvers.tree.vulcan import Vulcan

__all__ = ["PricePlanner"]

STEPS_PER_PLACE: Final = 4
"""A plan before the end may look at this many times fewer histories than samples had steps."""

GUIDING_NODES: Final = 1 << 11
"""Histories in the top of a tree, for a plan that only guides."""

FEWEST_PLACES: Final = 1 << 16
FEWEST_QUESTIONS: Final = 256
"""Pairs or histories, and states that the model is asked, that a plan may always take."""

SCALES: Final = tuple(4**k for k in range(12))
"""How many times more a plan may take if nothing was found with less."""


class PricePlanner(Rounds):
    """One search."""

    def __init__(
        self,
        solver: Vulcan,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        options: Options,
    ) -> None:
        self._solver = solver
        # A checkpoint asks the model again, in the order in which the search itself asked.
        known = options.graph if options.checkpoint is None else None
        self._run = PriceRun(
            problem,
            reader,
            monitor.limits.memory,
            known,
            seed=options.seed,
            exploration=solver.exploration,
        )
        super().__init__(self._run, problem, monitor, options, solver)

    def _prepare(self) -> None:
        load_kernels()
        self._run.prepare()
        self._run.on_guide = self._guide

    def _identify_solver(self) -> dict[str, object]:
        return {"exploration": self._solver.exploration, "way": "prices"}

    def _is_worth_a_round(self) -> bool:
        return True  # first actions are known at once

    def _make_policies(self, until: float, final: bool) -> Draft | None:
        run = self._run
        if not final:
            self._move_prices()
        # A round that is not the last need not succeed, if one before it did.
        scales = SCALES if final or self._best is None else SCALES[:1]
        draft = None
        for scale in scales:
            allowance = self._allow_scaled(scale, until, final)
            draft = self._plan_by_pairs(allowance) if run.graph.merges else None
            exceeded = allowance.exceeded
            if draft is None and not allowance.late:
                draft = self._plan_by_histories(allowance)
            if draft is not None or not (exceeded or allowance.exceeded) or allowance.late:
                break
        self._keep_better(draft)
        if not final:
            self._guide()
        return draft

    def _allow_scaled(self, scale: int, until: float, final: bool) -> Allowance:
        """Return a share of what the search has taken, times a scale."""
        run = self._run
        if final and not run.graph.merges:
            return Allowance(math.inf, math.inf, until)
        places = max(FEWEST_PLACES, run.samples * run.reader.levels // STEPS_PER_PLACE)
        questions = math.inf
        if isinstance(run.graph, StateGraph):
            questions = scale * max(FEWEST_QUESTIONS, len(run.graph.expanded) // STEPS_PER_PLACE)
        return Allowance(scale * places, questions, until)

    def _plan_by_pairs(self, allowance: Allowance) -> Draft | None:
        """Return the best plan whose stubs are known by pairs; None if they take too much."""
        run = self._run
        pairs = unroll(run, Top.leave_out().frontier, allowance, run.prices.shape[1])
        if pairs is None:
            return None
        run.move_prices(surround(find_price(run, pairs, allowance), run.prices[0], run.size))
        completion = PairCompletion(run, pairs)
        planning = Planning(run, completion, lambda: not allowance.late)
        plans = [plan for plan in (planning.settle(), completion.plan_all()) if plan is not None]
        plan = max(plans, key=lambda plan: plan.reward, default=None)
        return None if plan is None else planning.write(plan)

    def _plan_by_histories(self, allowance: Allowance) -> Draft | None:
        """Return the best plan whose stubs are known by walks; None if they take too long."""
        completion = HistoryCompletion(self._run)

        def may_go_on() -> bool:
            return not allowance.forbids(completion.work, completion.questions)

        planning = Planning(self._run, completion, may_go_on)
        plan = planning.settle()
        return None if plan is None else planning.write(plan)

    def _guide(self) -> None:
        run = self._run
        Planning(run, HistoryCompletion(run), lambda: True, GUIDING_NODES).guide()

    def _move_prices(self) -> None:
        run = self._run
        prices = run.prices[0].astype(np.float64)
        if np.isneginf(run.judged["reward"]).all():
            run.move_prices(raise_prices(prices, run.size))
        else:
            run.move_prices(choose_prices(run.judged, prices, run.size))

    def _explain(self) -> tuple[Status, str]:
        run, best = self._run, self._best
        if run.solved and best is not None:
            self._monitor.stopped_by = None
            return Status.DONE, "best policy found; all histories were sampled"
        cause = f" ({self._error})" if self._error else ""
        found = "no policy yet" if best is None else "best policy so far"
        return Status.STOPPED, (
            f"stopped by {self._monitor.stopped_by} after {run.samples:,} samples: {found}{cause}"
        )
