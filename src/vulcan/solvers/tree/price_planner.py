"""One run of Vulcan: a tree for several prices, and plans on its top.

In each round the prices are moved to where they decide, and a plan is made
(`vulcan.solvers.tree.plans`). Between rounds, coarser plans guide half of the samples.

There is more than one road to a policy within the bound, and the best of all is kept. Prices and
fronts come first. Where these find nothing, prices go up until they ask for the least risk, and a
search with local constraint B joins in, with as many samples as were taken so far.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from vulcan.certificates.problem import Problem
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.finding import Status
from vulcan.solvers.fronts import load_kernels
from vulcan.solvers.tree.completion import HistoryCompletion
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.plans import Planning
from vulcan.solvers.tree.price_run import PriceRun
from vulcan.solvers.tree.prices import choose_prices, raise_prices
from vulcan.solvers.tree.rounds import Rounds

if TYPE_CHECKING:
    from vulcan.solvers.tree.vulcan import Vulcan

__all__ = ["PricePlanner"]

STEPS_PER_PLACE: Final = 4
"""A plan before the end may look at this many times fewer histories than samples had steps."""

GUIDING_NODES: Final = 1 << 11
"""Histories in the top of a tree, for a plan that only guides."""

FEWEST_PLACES: Final = 1 << 16
"""Or at this many."""


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
        places = max(FEWEST_PLACES, run.samples * run.reader.levels // STEPS_PER_PLACE)
        completion = HistoryCompletion(run)

        def may_go_on() -> bool:
            return time.perf_counter() < until and (final or completion.work <= places)

        planning = Planning(run, completion, may_go_on)
        plan = planning.settle()
        draft = None if plan is None else planning.write(plan)
        self._keep_better(draft)
        if not final:
            self._guide()
        return draft

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
