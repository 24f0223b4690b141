"""Vulcan, our anytime planner for problems in which every history is a state of its own.

One tree is searched for several prices of failure, and a plan may follow another price after each
history, so that little of the allowed risk stays unused (docs/theory/beyond.md). `LocalVulcan` is
the paper's planner, improved; `LocalVulcan.paper()` is the printed one.

A search goes in rounds (`VulcanSearch.run`): sample, plan, prove. A round makes a plan over the
tree (`vulcan.sampling.plan`), a fine one in the last round, and lowers the upper bound
(`vulcan.sampling.proof`), on another thread if there are several. Where memory is full, the less
visited half of the tree is recycled (`PriceRun.recycle`); if that frees too little, sampling ends,
and the upper bound gets the time that is left. Where states merge and the
state–step pairs are few enough, the plan is made over these instead. Before the next samples,
prices move closer to those that decide between the first actions, and a coarse plan is made that
guides half of these samples.

The best candidate of all methods is kept (`vulcan.sampling.incumbent`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from vulcan.errors import BoundError
from vulcan.graph.compiled import find_compiled
from vulcan.graph.states import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.parallel.executors import Threads
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor, StopReason
from vulcan.sampling.candidate import LOCAL
from vulcan.sampling.completion import COARSE, FINE
from vulcan.sampling.distributed_tree import DistributedTree, again_if_lost
from vulcan.sampling.incumbent import GROWTH, Incumbent
from vulcan.sampling.local_vulcan import EXPLORATION, PAPER, LocalVulcan
from vulcan.sampling.paper_tree import TreeRun
from vulcan.sampling.plan import Planning, WorkLimit, plan_merged
from vulcan.sampling.price_search import (
    ALIKE,
    PriceRun,
    are_at_an_end,
    choose_prices,
    raise_prices,
    warm_up,
)
from vulcan.sampling.proof import Proof
from vulcan.solvers.base import Coverage, Option, Options, Solver, require_exploration
from vulcan.solvers.finding import Finding, Status, find_gap, is_closed

logger = logging.getLogger("vulcan")

STEPS_PER_PLACE: Final = 4  # a plan may visit one pair or history for this many sampled steps

# The plan that proves the optimum of a tree in which everything was sampled: histories and points,
# and pairs of points that its fronts may combine, which takes about as long as the samples.
DETAIL_OF_PROOF: Final = (1 << 16, 1 << 15)
FEWEST_COMBINED: Final = 1 << 24
COMBINED_PER_SAMPLE: Final = 1 << 7

SHARE_OF_PROOF: Final = 0.15  # of memory, for upper bounds
SAMPLES_PER_PROOF: Final = 32  # one history is opened for the upper bound for this many samples
SAMPLES_PER_PROMISING_PROOF: Final = 4  # where the gap is small already
SAMPLES_PER_EAGER_PROOF: Final = 2  # where it is small, and a gap was requested
PROMISING: Final = 0.1  # a small gap
HISTORIES_AT_ONCE: Final = 256  # opened for the upper bound before limits are checked

# The smallest work limits of a plan, and the factors by which they grow until one is found.
FEWEST_PLACES: Final = 1 << 16  # pairs or histories
FEWEST_EVALUATIONS: Final = 256  # of states
SCALES: Final = tuple(4**k for k in range(12))
# Pairs of points that fronts over state–step pairs may combine: about as long as samples take.
FEWEST_FRONT_WORK: Final = 1 << 20
FRONT_WORK_PER_SAMPLE: Final = 1 << 12
AFFORDABLE: Final = 1 << 14  # states evaluated for a plan over pairs beside one over histories
FEWEST_LEVELS: Final = 4  # with fewer, subtrees are too small to distribute


class VulcanSearch:
    """One search; `warm` if the kernels are loaded already, or are being loaded by this search."""

    def __init__(
        self,
        solver: Vulcan,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        options: Options,
        warm: bool = False,
    ) -> None:
        self._solver, self._problem, self._monitor = solver, problem, monitor
        self._options, self._warm = options, warm
        self._tree = self._open_tree(problem, reader, options)
        settings = {"exploration": solver.exploration}
        self._incumbent = Incumbent(
            self._tree, problem, monitor, options, solver, settings, repeats=self._list_repeats
        )
        self._exhaustive = False  # whether the optimum is proved
        self._attained, self._rounding = math.inf, 0.0  # if so, the upper bound and its rounding
        # The upper bound of plans over pairs, and the rewards where they evaluated the risk bound.
        self._merged_upper, self._merged_rewards = math.inf, list[float]()
        memory = int(SHARE_OF_PROOF * self._tree.limit)
        graph = self._tree.known_graph
        self._proof_until = math.inf  # by `time.perf_counter`
        self._proof = Proof(problem, reader, memory, graph, self._hurries_proof, options.device)
        self._proved_for = 0  # number of samples when the upper bound was last lowered
        self._local_samples = 0  # of the search with a local test that found the best policy
        self._after_round = False  # whether a round was made since the last sample

    def run(self) -> Finding:
        """Sample, plan and prove, in rounds, until there is a reason to stop."""
        tree, incumbent = self._tree, self._incumbent
        with closing(tree):
            self._prepare()
            with incumbent.answering():
                ended = False
                while not ended:
                    self._sample()
                    ended = incumbent.must_end()
                    if tree.full:
                        self._prove_on()
                    if not incumbent.hurried:
                        if ended and tree.samples == incumbent.target and not tree.solved:
                            # A search with a larger limit makes this round here, then goes on:
                            # more samples never earn less.
                            self._take_round(final=False)
                        self._take_round(final=ended)
                        if tree.solved and incumbent.best is None:
                            self._take_round(final=True)
                    ended = ended or incumbent.error is not None or self._is_closed()
                    incumbent.target *= GROWTH
            taken = incumbent.measure()
            incumbent.certify(granted=True)
            return incumbent.conclude(
                *self._explain(),
                taken,
                credits=sorted({*tree.credits(), *self._proof.rewards, *self._merged_rewards}),
                upper_bound=self._upper_bound,
                rounding=self._rounding,
            )

    def _sample(self) -> None:
        """Take batches of samples until the next round, or a limit."""
        tree, monitor, incumbent = self._tree, self._monitor, self._incumbent
        target, reserve = incumbent.next_target, incumbent.reserve
        while tree.can_sample(target) and not monitor.wants_stop(
            tree.histories, tree.samples, reserve
        ):
            if self._after_round:
                # Only now that samples follow: values of new prices are rough until then.
                self._move_prices()
                self._guide()
                self._after_round = False
            tree.advance(target)
            if tree.full:
                tree.recycle(incumbent.best)
            if tree.needs_guide():
                self._guide()
            monitor.report(incumbent.describe)
            incumbent.save_if_due()

    def _take_round(self, final: bool) -> None:
        """Plan, and lower the upper bound.

        Without a policy within the bound, move the prices and plan again, then search with the
        paper's local test B.
        """
        with self._incumbent.round(final) as until:
            self._proof_until = until
            finish_proof = self._begin_proof()
            self._plan(until, final)
            if not self._incumbent.found:
                self._move_prices()
                self._plan(until, final)
            if self._tree.solved:
                self._prove_best(until)
            if not (self._incumbent.found or self._infeasible or self._monitor.overdue):
                self._try_local_test(until)
            finish_proof()
            self._after_round = not final

    def _open_tree(self, problem: Problem, reader: ModelReader, options: Options) -> PriceRun:
        """Return a tree of this process, or one distributed over workers."""
        executor, memory = options.executor, self._monitor.limits.memory
        how = options.seed, self._solver.exploration
        if not executor.in_process:
            if options.checkpoint is not None:
                logger.warning("a distributed tree has no checkpoints: searching in one process")
            elif self._solver.spreads(reader):
                return DistributedTree(problem, reader, memory, *how, executor)
        # Resuming evaluates the model again in the same order, so nothing may be known before.
        known = options.graph if options.checkpoint is None else None
        workers = executor.workers if isinstance(executor, Threads) else 1
        return PriceRun(problem, reader, memory, known, *how, workers=workers)

    def _prepare(self) -> None:
        """Load the kernels, open the tree, and resume a checkpoint."""
        if not self._warm:
            warm_up()
        if not isinstance(self._tree, DistributedTree):  # its workers load kernels first
            self._monitor.start_clock()
        self._tree.prepare()
        if not self._monitor.started:
            self._monitor.start_clock()
        snapshot = self._incumbent.resume()
        if snapshot is None:
            return
        for price, histories in snapshot.proof:
            self._proof.improve(price, histories)
        self._proved_for = snapshot.proved_for
        self._after_round = self._incumbent.target == GROWTH * self._tree.samples
        if snapshot.local:
            self._try_local_test(math.inf, snapshot.local)

    def _list_repeats(self) -> dict[str, Any]:
        """Return the work that a resumed search repeats, as fields of a `Snapshot`."""
        best = self._incumbent.best
        local = 0 if best is None or best.graph is None else self._local_samples
        return {"proof": self._proof.work, "proved_for": self._proved_for, "local": local}

    def _begin_proof(self) -> Callable[[], object]:
        """Begin to lower the upper bound, on another thread; return a function to wait for it."""
        run, gap = self._tree, math.inf
        if self._incumbent.best is not None and math.isfinite(self._proof.upper):
            gap = find_gap(self._incumbent.best.reward, self._proof.upper)
        per_proof = SAMPLES_PER_PROOF
        if gap < PROMISING:
            requested = self._monitor.limits.gap is not None
            per_proof = SAMPLES_PER_EAGER_PROOF if requested else SAMPLES_PER_PROMISING_PROOF
        histories = (run.samples - self._proved_for) // per_proof
        self._proved_for = run.samples
        return run.do_beside(partial(self._proof.improve, self._find_price(), histories))

    def _prove_on(self) -> None:
        """Lower the upper bound in the time that is left where there is no room for samples."""
        monitor, incumbent, opened = self._monitor, self._incumbent, -1
        if monitor.limits.time_limit is None or incumbent.best is None:
            return
        while self._proof.opened > opened and not self._is_closed():
            if (
                monitor.requested
                or monitor.seconds + incumbent.reserve >= monitor.limits.time_limit
            ):
                break
            opened, self._proof_until = self._proof.opened, math.inf
            self._proof.improve(self._find_price(), HISTORIES_AT_ONCE)
            monitor.report(incumbent.describe)

    def _hurries_proof(self) -> bool:
        """Whether the upper bound has to do for now."""
        return self._monitor.overdue or time.perf_counter() > self._proof_until

    def _find_price(self) -> float:
        """Return the price that decides between the first actions."""
        judged, prices = self._tree.judged, self._tree.prices
        return float(prices[0, int(judged["price_index"][int(np.argmax(judged["reward"]))])])

    @property
    def _upper_bound(self) -> float | None:
        if self._exhaustive and self._incumbent.error is None:
            return self._attained if self._incumbent.found else -math.inf
        upper = min(self._proof.upper, self._merged_upper)
        return None if upper == math.inf else float(upper)

    @property
    def _infeasible(self) -> bool:
        """Whether a plan over state–step pairs proved that no policy is within the bound."""
        return self._merged_upper == -math.inf

    def _is_closed(self) -> bool:
        """Whether there is nothing left to look for, or the target gap is reached."""
        if self._exhaustive or self._infeasible:
            return True
        target, best, upper = self._monitor.limits.gap, self._incumbent.best, self._upper_bound
        if target is None or best is None or upper is None or not best.judgement.safe:
            return False
        if not is_closed(float(best.judgement.reward), upper, target, self._rounding):
            return False
        if self._monitor.stopped_by is None and not self._tree.solved:
            self._monitor.stopped_by = StopReason.GAP
        return True

    def _plan(self, until: float, final: bool) -> None:
        """Plan over pairs or over histories, with larger and larger work limits until one succeeds.

        A plan over histories may be poor: beside it, one over pairs is made if `AFFORDABLE` states
        are enough for that. Once a policy is known, rounds before the last try the smallest limits
        only.
        """
        anew = final or self._incumbent.best is None
        for scale in SCALES if anew else SCALES[:1]:
            limit = self._scale_limit(scale, until, final)
            if self._tree.graph.merges and self._plan_by_pairs(limit):
                return
            exceeded = limit.exceeded  # a plan over histories sets it anew
            if self._plan_by_histories(limit, final):
                if exceeded and anew and limit.evaluations < AFFORDABLE:
                    self._plan_by_pairs(replace(limit, evaluations=AFFORDABLE))
                return
            if limit.late or not (exceeded or limit.exceeded):
                return

    def _scale_limit(self, scale: int, until: float, final: bool) -> WorkLimit:
        """Return the work limit of a plan: in proportion to the search so far, times a scale."""
        run = self._tree
        if final and not run.graph.merges:
            return WorkLimit(math.inf, math.inf, until)
        places = max(FEWEST_PLACES, run.samples * run.reader.levels // STEPS_PER_PLACE)
        evaluations = math.inf
        if isinstance(run.graph, StateGraph):
            evaluations = scale * max(FEWEST_EVALUATIONS, run.samples, len(run.graph.expanded))
        return WorkLimit(scale * places, evaluations, until)

    def _plan_by_pairs(self, limit: WorkLimit) -> bool:
        """Make a plan over all pairs; False if these are too many, or the bound has no value."""
        work = max(FEWEST_FRONT_WORK, FRONT_WORK_PER_SAMPLE * self._tree.samples)
        merged = plan_merged(self._tree, self._problem, self._solver, limit, work)
        if merged is None:
            return False
        candidate, exact, self._merged_upper = merged
        self._merged_rewards = exact.rewards
        self._incumbent.offer(candidate)
        if exact.closed and candidate is not None and candidate.judgement.safe:
            # No deterministic policy is better than the candidate, up to rounding.
            least = exact.bound_test.raise_reward(candidate.reward)
            self._exhaustive, self._rounding = True, exact.rounding
            self._attained = max(exact.upper, least)
        return True

    @again_if_lost
    def _plan_by_histories(self, limit: WorkLimit, final: bool) -> bool:
        """Make a plan over the tree, its leaves evaluated exactly; False if there is none."""
        completion, monitor = self._tree.complete(), self._monitor

        def may_go_on() -> bool:
            monitor.report(self._incumbent.describe)
            hurried = monitor.requested and self._incumbent.best is not None
            return not hurried and not limit.forbids(completion.work, completion.evaluations)

        planning = Planning(self._tree, completion, may_go_on, FINE if final else COARSE)
        plan = planning.finalise()
        self._incumbent.offer(planning.write(plan))
        return plan is not None

    @again_if_lost
    def _prove_best(self, until: float) -> None:
        """Plan over all actions of a tree in which everything was sampled, to prove the optimum."""
        completion, limit = self._tree.complete(), WorkLimit(math.inf, math.inf, until)
        planning = Planning(
            self._tree,
            completion,
            lambda: not limit.late,
            DETAIL_OF_PROOF,
            closeness=math.inf,
            most_combined=max(FEWEST_COMBINED, COMBINED_PER_SAMPLE * self._tree.samples),
        )
        self._incumbent.offer(planning.write(planning.finalise()))
        if planning.exhaustive:
            (upper, rounding), best = planning.limit(), self._incumbent.best
            near = best is not None and best.judgement.safe and upper - best.reward <= rounding
            if near or upper == -math.inf:
                self._exhaustive, self._attained, self._rounding = True, upper, rounding

    def _try_local_test(self, until: float, samples: int | None = None) -> None:
        """Search with a local test, with as many samples as were taken so far."""
        run, solver = self._tree, LocalVulcan(self._solver.exploration)
        left, target = max(1, run.limit - run.memory), samples or max(1, run.samples)
        with suppress(BoundError):  # the bound may have no value at a tested credit
            local = TreeRun(self._problem, run.reader, solver.local_test, left, run.known_graph)
            with self._monitor.clock_stopped():
                local.prepare(solver, self._options.seed)
            while local.can_sample(target) and time.perf_counter() < until:
                if self._monitor.overdue:
                    break
                local.advance(target)
            if not local.samples or local.exhausted:
                return
            for candidate in local.complete(until):
                other = None if local.graph is run.graph else local.graph
                found = replace(candidate, method=LOCAL, graph=other)
                self._incumbent.offer(found)
                if self._incumbent.best is found:
                    self._local_samples = local.samples

    @again_if_lost
    def _guide(self) -> None:
        """Make a coarse plan that guides samples; first move prices if one at an end decides."""
        run = self._tree
        if are_at_an_end(run.judged, run.prices[0]):
            self._move_prices()
        Planning(run, run.complete(), lambda: True, COARSE).guide()

    def _move_prices(self) -> None:
        """Move prices towards those that decide; raise them if no first action passes."""
        run = self._tree
        prices = run.prices[0].astype(np.float64)
        if np.isneginf(run.judged["reward"]).all():
            chosen = raise_prices(prices, run.size)
        else:
            chosen = choose_prices(run.judged, prices, run.size)
        if not np.allclose(chosen, prices, rtol=ALIKE, atol=0.0):  # small moves are not worth it
            run.move_prices(chosen)

    def _explain(self) -> tuple[Status, str]:
        """Return how the search ended."""
        tree, best = self._tree, self._incumbent.best
        method = "" if best is None else f" ({best.method})"
        proved = self._exhaustive and self._incumbent.error is None
        if self._infeasible or proved or tree.solved:
            self._monitor.stopped_by = None
        if self._infeasible:
            return Status.INFEASIBLE, "proved: no policy is within the bound"
        if proved and not self._incumbent.found:
            return Status.INFEASIBLE, "proved: no deterministic policy is within the bound"
        if proved:
            return Status.SOLVED, f"best deterministic policy, proved{method}"
        if tree.solved:
            found = "no policy was found" if best is None else f"best policy so far{method}"
            return Status.DONE, f"all histories were sampled: {found}"
        return Status.STOPPED, self._incumbent.explain_stop(method=method)


@dataclass(frozen=True)
class Vulcan(Solver):
    """Our planner: sample histories for several prices of failure, keep the best policy found.

    For a compiled model, several threads can sample at once (`solve(..., parallel=2)`). A model
    that has `value_to_go_bound` or `reward_to_go_bound` lets it prove a sharper upper bound sooner.
    It returns complete policies.

    Parameters
    ----------
    exploration
        The constant of UCT, in units of the range of reward that samples have collected; raised a
        little near the start of a history, and lowered further on.
    """

    finds: ClassVar[str] = "the best policy found so far, with an upper bound on the optimum"
    method: ClassVar[str] = "Monte Carlo tree search for several prices of failure, and fronts"
    sampling: ClassVar[bool] = True
    endless: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC
    threads: ClassVar[bool] = True
    devices: ClassVar[bool] = True
    options: ClassVar[Sequence[Option]] = (PAPER, EXPLORATION)

    exploration: float = 0.1

    def __post_init__(self) -> None:
        require_exploration(self.exploration)

    def spreads(self, reader: ModelReader) -> bool:
        return find_compiled(reader) is not None and reader.levels >= FEWEST_LEVELS

    @classmethod
    def paper(cls, exploration: float = math.sqrt(2)) -> LocalVulcan:
        """Return the paper's planner as printed; see `LocalVulcan.paper`."""
        return LocalVulcan.paper(exploration)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Solver:
        tuning = dict(given)
        return cls.paper(**tuning) if tuning.pop("paper", False) else cls(**tuning)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        return VulcanSearch(self, problem, reader, monitor, options).run()
