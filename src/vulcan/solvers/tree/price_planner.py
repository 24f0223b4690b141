"""One run of Vulcan: a tree for several prices, and plans on its top.

In each round a plan is made (`vulcan.solvers.tree.plans`), a fine one in the last. Then the prices
are moved to where they decide. Between rounds, coarse plans guide half of the samples.

Where states merge and all pairs of a state and a step may be looked at, a plan is made over these
instead (`vulcan.solvers.tree.merged`).

There is more than one road to a policy within the bound, and the best of all is kept. Prices and
fronts come first. Where these find nothing, prices go up until they ask for the least risk, and a
search with local constraint B joins in, with as many samples as were taken so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from vulcan.certificates.problem import Problem
from vulcan.errors import BoundError, ModelError
from vulcan.executors.base import Executor
from vulcan.executors.here import Threads
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.constraints import SurvivalConstraint
from vulcan.solvers.finding import Finding, Status, find_gap
from vulcan.solvers.knowledge import Knowledge
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.checkpoint import Repetition, Snapshot
from vulcan.solvers.tree.draft import LOCAL, Draft
from vulcan.solvers.tree.forest import Forest
from vulcan.solvers.tree.known import plan_known
from vulcan.solvers.tree.merged import MergedPlan, plan_merged
from vulcan.solvers.tree.plans import Plan, Planning
from vulcan.solvers.tree.price_proof import PriceProof
from vulcan.solvers.tree.price_run import PriceRun
from vulcan.solvers.tree.prices import are_alike, are_at_an_end, choose_prices, raise_prices
from vulcan.solvers.tree.rounds import GROWTH, Rounds
from vulcan.solvers.tree.sampling import TreeRun
from vulcan.solvers.tree.tops import COARSE, FINE, Detail
from vulcan.solvers.tree.warm_up import warm_up
from vulcan.solvers.tree.whole import plan_whole

if TYPE_CHECKING:
    from vulcan.solvers.tree.vulcan import Vulcan

__all__ = ["PricePlanner"]

STEPS_PER_PLACE: Final = 4
"""A plan before the end may look at this many times fewer histories than samples had steps."""

DETAIL_OF_PROOF: Final = Detail(1 << 16, 1 << 15)
"""For a tree in which everything was sampled."""

FEWEST_PAIRS: Final = 1 << 24
PAIRS_PER_SAMPLE: Final = 1 << 7
"""Points that its fronts may combine: about as long as samples took."""

SHARE_OF_PROOF: Final = 0.1
"""Of memory, for upper bounds."""

SAMPLES_PER_PROOF: Final = 64
"""For this many samples one history is opened to bound what can be earned: little of the time."""

PROMISING: Final = 0.05
SAMPLES_PER_PROMISING_PROOF: Final = 8
SAMPLES_PER_EAGER_PROOF: Final = 4
"""The same where the gap is smaller than this already, and where such a gap was asked for."""

FEWEST_PLACES: Final = 1 << 16
FEWEST_QUESTIONS: Final = 256
"""Pairs or histories, and states that the model is asked, that a plan may always take."""

SCALES: Final = tuple(4**k for k in range(12))
"""How many times more a plan may take if nothing was found with less."""

AFFORDABLE: Final = 1 << 14
"""As many states are asked for a plan over all pairs even where histories gave one already."""


class PricePlanner(Rounds):
    """One search.

    Parameters
    ----------
    solver, problem, reader, monitor, options
        As in `Solver.search`.
    warm
        Whether the kernels are loaded already, or are being loaded by this very search.
    """

    def __init__(
        self,
        solver: Vulcan,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        options: Options,
        warm: bool = False,
    ) -> None:
        self._solver, self._warm = solver, warm
        # A checkpoint asks the model again, in the order in which the search itself asked.
        known = options.graph if options.checkpoint is None else None
        executor = options.executor
        how: dict[str, Any] = {"seed": options.seed, "exploration": solver.exploration}
        memory = monitor.limits.memory
        self._run: PriceRun
        if isinstance(executor, Executor) and solver.spreads(reader) and not executor.near:
            self._run = Forest(problem, reader, memory, **how, executor=executor)
        else:
            workers = executor.workers if isinstance(executor, Threads) else 1
            how |= {"workers": workers, "knowledge": options.knowledge}
            self._run = PriceRun(problem, reader, memory, known, **how)
        super().__init__(self._run, problem, monitor, options, solver)
        inherited = self._run.inherited
        if inherited:  # limits are for what is new
            self._target = inherited
            if monitor.limits.samples is not None:
                samples = monitor.limits.samples + inherited
                monitor.limits = replace(monitor.limits, samples=samples)
        self._exhaustive = False  # whether no policy was left out
        self._attained, self._rounding = math.inf, 0.0  # then, what none of them earns more than
        self._merged: MergedPlan | None = None
        memory = int(SHARE_OF_PROOF * self._run.limit)
        self._proof = PriceProof(problem, reader, memory, self._run.known_graph)
        self._local_samples = 0  # with which the best policy was found, on a graph of its own
        self._proved_for = inherited  # samples that histories of the proof were opened for

    def search(self) -> Finding:
        """Sample in rounds until there is a reason to stop, and let workers go."""
        try:
            return super().search()
        finally:
            self._run.close()

    def _prepare(self) -> None:
        if not self._warm:
            warm_up()
        self._run.prepare()
        self._run.on_guide = self._guide

    def _identify_solver(self) -> dict[str, object]:
        way = "prices, in a forest" if isinstance(self._run, Forest) else "prices"
        return {"exploration": self._solver.exploration, "way": way}

    def _take_snapshot(self) -> Snapshot:
        local = 0 if self._best is None or self._best.graph is None else self._local_samples
        repetition = Repetition(self._proof.work, self._proved_for, local)
        return msgspec.structs.replace(super()._take_snapshot(), repetition=repetition)

    def _restore(self, snapshot: Snapshot) -> None:
        super()._restore(snapshot)
        repetition = snapshot.repetition
        repetition.check(self._run.samples)
        for price, histories in repetition.proof:
            self._proof.advance(price, histories)
        self._proved_for = repetition.proved_for
        if snapshot.target == GROWTH * self._run.samples:  # right after a round
            self._run.before_sampling = self._move_and_guide
        if repetition.local:
            with suppress(BoundError):
                self._try_local_constraint(math.inf, repetition.local)

    def _is_worth_a_round(self) -> bool:
        return True  # first actions are known at once

    def _make_policies(self, until: float, final: bool) -> Draft | None:
        run = self._run
        if final and run.samples == self._target and not run.solved:
            # A search that goes on, and is stopped before the next sample, has this round as well.
            self._make_policies(until, final=False)
        finish_proof = self._begin_proof()
        self._plan(until, final)
        if not self._found:
            self._move_prices()
            self._plan(until, final)
        if run.solved:
            self._prove(until)
        if not self._found and not self._infeasible:
            with suppress(BoundError):  # it may have no value at the credits of histories
                self._try_local_constraint(until)
        if not final:
            # Not before the next sample: values of prices that were not sampled yet are rough.
            run.before_sampling = self._move_and_guide
        finish_proof()
        return self._best

    def _move_and_guide(self) -> None:
        self._move_prices()
        self._guide()

    @property
    def _found(self) -> bool:
        """Whether there is a policy within the bound."""
        return self._best is not None and self._best.judgement.safe

    def _begin_proof(self) -> Callable[[], object]:
        """Begin to prove a little more of what no policy can earn; return what ends that."""
        run, gap = self._run, math.inf
        if self._best is not None and math.isfinite(self._proof.upper):
            gap = find_gap(self._best.reward, self._proof.upper)
        per_proof = SAMPLES_PER_PROOF
        if gap < PROMISING:
            asked = self._monitor.limits.gap is not None
            per_proof = SAMPLES_PER_EAGER_PROOF if asked else SAMPLES_PER_PROMISING_PROOF
        histories = (run.samples - self._proved_for) // per_proof
        self._proved_for = run.samples
        price = run.prices[0, int(run.judged["lane"][int(np.argmax(run.judged["reward"]))])]
        return run.do_beside(partial(self._proof.advance, float(price), histories))

    def _conclude(self) -> Finding:
        finding, run = super()._conclude(), self._run
        fresh = replace(finding.statistics, samples=run.samples - run.inherited)
        known = None
        if not isinstance(run, Forest):  # whose tree is with workers, who go
            known = Knowledge(run.graph, None if run.graph.merges else run.filled_tree())
        return replace(finding, statistics=fresh, knowledge=known, rounding=self._rounding)

    @property
    def _upper_bound(self) -> float | None:
        best = self._best
        if self._exhaustive and self._error is None:
            found = best is not None and best.judgement.safe
            return self._attained if found else -math.inf
        upper = min(self._proof.upper, math.inf if self._merged is None else self._merged.upper)
        return None if upper == math.inf else float(upper)

    @property
    def _infeasible(self) -> bool:
        """Whether pairs prove that no policy is within the bound."""
        return self._merged is not None and self._merged.upper == -math.inf

    def _list_credits(self) -> list[float]:
        merged = [] if self._merged is None else self._merged.rewards
        return sorted({*self._run.credits(), *self._proof.rewards, *merged})

    def _reached_gap(self) -> bool:
        if self._exhaustive or self._infeasible:
            return True  # there is nothing left to look for
        target, best, upper = self._monitor.limits.gap, self._best, self._upper_bound
        if target is None or best is None or upper is None or not best.judgement.safe:
            return False
        if find_gap(float(best.judgement.reward), upper) > target:
            return False
        if self._monitor.stopped_by is None and not self._run.solved:
            self._monitor.stopped_by = StopReason.GAP
        return True

    def _plan(self, until: float, final: bool) -> None:
        """Plan over pairs or over histories, with more and more allowed until one succeeds.

        A plan of histories may be poor, and does not keep pairs from what they can afford. A round
        before the last need not succeed if another did before.
        """
        anew = final or self._best is None
        for scale in SCALES if anew else SCALES[:1]:
            allowance = self._allow_scaled(scale, until, final)
            if self._run.graph.merges and self._plan_by_pairs(allowance):
                return
            exceeded = allowance.exceeded
            if self._plan_by_histories(allowance, final):
                if exceeded and anew and allowance.questions < AFFORDABLE:
                    self._plan_by_pairs(replace(allowance, questions=AFFORDABLE))
                return
            if allowance.late or not (exceeded or allowance.exceeded):
                return

    def _allow_scaled(self, scale: int, until: float, final: bool) -> Allowance:
        """Return a share of what the search has taken, times a scale."""
        run = self._run
        if final and not run.graph.merges:
            return Allowance(math.inf, math.inf, until)
        places = max(FEWEST_PLACES, run.samples * run.reader.levels // STEPS_PER_PLACE)
        questions = math.inf
        if isinstance(run.graph, StateGraph):
            questions = scale * max(FEWEST_QUESTIONS, run.samples, len(run.graph.expanded))
        return Allowance(scale * places, questions, until)

    def _plan_by_pairs(self, allowance: Allowance) -> bool:
        """Make a plan over all pairs; False if these are too many."""
        merged = None
        with suppress(BoundError):  # it may have no value where a price leads to
            merged = plan_merged(self._run, self._solver, allowance)
        if merged is not None:
            self._merged = merged
            self._keep_better(merged.draft)
            if merged.proved:
                self._exhaustive = True
                self._attained, self._rounding = merged.attained, merged.rounding
        return merged is not None

    def _plan_by_histories(self, allowance: Allowance, final: bool) -> bool:
        """Make a plan whose stubs are known by walks; False if there is none."""
        completion = self._run.complete()

        def may_go_on() -> bool:
            self._monitor.report(self._describe)
            hurried = self._monitor.requested and self._best is not None
            return not hurried and not allowance.forbids(completion.work, completion.questions)

        planning = Planning(self._run, completion, may_go_on, FINE if final else COARSE)
        plan = planning.settle()
        self._keep_plan(planning, plan)
        return plan is not None

    def _keep_plan(self, planning: Planning, plan: Plan | None) -> None:
        draft = None if plan is None else planning.write(plan)
        if plan is not None and draft is not None:
            self._keep_better(replace(draft, road=plan.road))

    def _make_known_policy(self) -> None:
        with suppress(ModelError):  # a complete one, if the answers so far suffice
            self._plan_by_histories(Allowance(math.inf, 0, math.inf), final=True)
        if self._best is None and not isinstance(self._run, Forest):  # whose tree is elsewhere
            for draft in plan_known(self._run):
                self._keep_better(draft)

    def _prove(self, until: float) -> None:
        """Make a plan of all actions of a tree in which everything was sampled."""
        completion, allowance = self._run.complete(), Allowance(math.inf, math.inf, until)
        planning = Planning(
            self._run,
            completion,
            lambda: not allowance.late,
            DETAIL_OF_PROOF,
            closeness=math.inf,
            most_pairs=max(FEWEST_PAIRS, PAIRS_PER_SAMPLE * self._run.samples),
        )
        self._keep_plan(planning, planning.settle())
        if planning.exhaustive:
            (upper, rounding), best = planning.limit(), self._best
            near = best is not None and best.judgement.safe and upper - best.reward <= rounding
            if near or upper == -math.inf:
                self._exhaustive, self._attained, self._rounding = True, upper, rounding

    def _try_local_constraint(self, until: float, samples: int | None = None) -> None:
        """Look for a policy on the other road, with as many samples as were taken so far."""
        run = self._run
        left = max(1, run.limit - run.memory)
        local = TreeRun(self._problem, run.reader, SurvivalConstraint(), left, run.known_graph)
        with self._monitor.clock_stopped():
            local.prepare(
                seed=self._options.seed,
                exploration=self._solver.exploration,
                default_policy="greedy",
                as_printed=False,
                bounded=False,
            )
        monitor = Monitor(Limits(time_limit=max(0.0, until - time.perf_counter())))
        local.sample(monitor, samples or max(1, run.samples), 0.0, self._describe, lambda: None)
        if local.samples and not local.exhausted:
            for draft in plan_whole(local, until):
                other = None if local.graph is run.graph else local.graph
                found = replace(draft, road=LOCAL, graph=other)
                self._keep_better(found)
                if self._best is found:
                    self._local_samples = local.samples

    def _guide(self) -> None:
        """Let samples follow a plan of what the tree knows, after a look at the prices."""
        run = self._run
        if are_at_an_end(run.judged, run.prices[0]):
            self._move_prices()
        Planning(run, run.complete(), lambda: True, COARSE).guide()

    def _move_prices(self) -> None:
        run = self._run
        prices = run.prices[0].astype(np.float64)
        hopeless = np.isneginf(run.judged["reward"]).all()
        chosen = (
            raise_prices(prices, run.size)
            if hopeless
            else choose_prices(run.judged, prices, run.size)
        )
        if not are_alike(chosen, prices):
            run.move_prices(chosen)

    def _explain(self) -> tuple[Status, str]:
        run, best = self._run, self._best
        if self._infeasible:
            self._monitor.stopped_by = None
            return Status.INFEASIBLE, "no policy is within the bound, proved"
        if self._exhaustive and self._error is None:
            self._monitor.stopped_by = None
            if best is None or not best.judgement.safe:
                self._best = None
                return Status.INFEASIBLE, "no deterministic policy is within the bound, proved"
            return Status.SOLVED, f"best deterministic policy, proved ({best.road})"
        if run.solved:
            self._monitor.stopped_by = None
        cause = f" ({self._error})" if self._error else ""
        found = "no policy yet" if best is None else f"best policy so far ({best.road})"
        if run.solved:
            return Status.DONE, f"all histories were sampled: {found}"
        return Status.STOPPED, (
            f"stopped by {self._monitor.stopped_by} after {run.samples:,} samples: {found}{cause}"
        )
