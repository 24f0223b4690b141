"""One run of LocalVulcan: samples, rounds, and the best policy so far.

Samples are taken by `vulcan.kernels.tree_search`. In rounds, at sample counts that grow by a factor
of four and once at the end, the policy of the tree is settled (`vulcan.solvers.tree.whole`:
completed; or cleaned up as in the paper) and judged. The best policy so far is the answer, whenever
the search has to stop: a complete one that passes outranks any other, then the larger reward wins.
Rounds depend on sample counts alone, so that the same seed and samples give the same policy,
however long they took.

The answer is written out and certified once, at the end. Before that, a policy is certified where
it takes next to no time, in case the model should fail later.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from vulcan.certificates.certificate import Certificate, Judgement, certify
from vulcan.certificates.problem import Problem
from vulcan.errors import ModelError, OptionError
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule
from vulcan.policies.policy import Policy
from vulcan.runtime.limits import StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.solvers.base import Options, describe_origin
from vulcan.solvers.constraints import NoConstraint
from vulcan.solvers.finding import Finding, Statistics, Status, find_gap
from vulcan.solvers.tree.checkpoint import MODEL, read_snapshot, require_free
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.sampling import TreeRun
from vulcan.solvers.tree.whole import plan_whole
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.solvers.tree.local import LocalVulcan

__all__ = ["Planner"]

FIRST_ROUND: Final = 1024
GROWTH: Final = 4

logger = logging.getLogger("vulcan")

OWN_SECONDS: Final = 2e-5
"""What a certificate takes for a decision, beside the model's answer."""

TRIAL_STEPS: Final = 3
"""Steps into a model after which its answers take as long as they usually do."""

GROWING: Final = 1.3
"""How much larger the next policy is expected to be than the best so far."""

SHARE_OF_CERTIFYING: Final = 0.05
"""This share of the time spent so far may go into certifying a policy before the end."""

SHORTEST_ROUND: Final = 1.0
"""Seconds that a round may take, however little time is left."""

PATIENCE: Final = 0.5
"""Seconds that an answer may still take after Ctrl-C if there is one already."""


class Planner:
    """One search: samples, rounds, and the best policy certified so far."""

    def __init__(
        self,
        solver: LocalVulcan,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        options: Options,
        name: object = None,
    ) -> None:
        self._solver = solver
        self._name = name or solver
        self._problem = problem
        self._monitor = monitor
        self._options = options
        if monitor.limits.gap is not None and not solver.bounded:
            raise OptionError("a target gap needs upper bounds: use LocalVulcan(bounded=True)")
        if solver.bounded and not hasattr(problem.model, "reward_to_go_bound"):
            raise OptionError("bounded needs a model with reward_to_go_bound(state, step)")
        if options.checkpoint is not None:
            require_free(options.checkpoint, resume=options.resume, overwrite=options.overwrite)
        # A checkpoint asks the model again, in the order in which the search itself asked.
        known = options.graph if options.checkpoint is None else None
        # A function of the user gets the model's own states, and so does a bound in Python.
        asked = callable(solver.default_policy)
        form = None if asked else find_compiled(reader)
        compiled = form is not None and not (solver.bounded and form.bound is None)
        self._run = TreeRun(
            problem, reader, solver.constraint, monitor.limits.memory, known, compiled
        )
        self._complete = options.complete and not solver.as_printed  # the paper's are never
        self._error: ModelError | None = None
        self._proved: Draft | None = None  # the policy of a solved tree
        self._target = FIRST_ROUND
        self._kept = time.perf_counter()
        self._best: Draft | None = None
        self._certified: tuple[Draft, Policy, Certificate] | None = None
        self._seconds_per_decision: float | None = None
        self._round_seconds = 0.0
        self._search_seconds = 0.0

    def search(self) -> Finding:
        """Sample in rounds until there is a reason to stop."""
        run, monitor, solver = self._run, self._monitor, self._solver
        run.prepare(
            seed=self._options.seed,
            exploration=solver.exploration,
            default_policy=solver.default_policy,
            as_printed=solver.as_printed,
            bounded=solver.bounded,
        )
        monitor.start_clock()
        target = self._resume() if self._options.resume else FIRST_ROUND
        try:
            self._sample_in_rounds(target)
        except ModelError as error:
            # A model that raised may have done so for a passing reason; one that lies gets nothing.
            if error.violation.rule is not Rule.ANSWERS:
                raise
            self._error, monitor.stopped_by = error, StopReason.MODEL
            if self._best is None and run.samples:
                with suppress(ModelError):  # what was sampled may still be an answer
                    self._keep_better(run.plan(False, lambda: False))
        self._search_seconds = monitor.seconds
        self._certify_best()
        return self._conclude()

    def _sample_in_rounds(self, target: int) -> None:
        run, monitor = self._run, self._monitor
        ended = False
        while not ended:
            self._target = target
            most = target if monitor.limits.samples is None else monitor.limits.samples
            run.sample(
                monitor,
                min(target, most),
                self._round_seconds + GROWING * self._expected_certifying,
                self._describe,
                self._keep_checkpoint,
            )
            if not run.solved and not run.exhausted:
                monitor.wants_stop(run.histories, run.samples)
            if monitor.stopped_by is not None:
                # Before the last round, which an uninterrupted search would not have at this point.
                self._write_checkpoint()
            if run.full:
                monitor.stopped_by = StopReason.MEMORY
            ended = run.solved or run.exhausted or monitor.stopped_by is not None
            hurried = (
                monitor.stopped_by is StopReason.INTERRUPTED and self._round_seconds > PATIENCE
            )
            # Where no history passes, a policy may be within the bound all the same.
            worth = self._complete and run.graph.merges if run.exhausted else run.samples
            if worth and not (hurried and self._best):
                self._take_round()
                if run.solved and self._proved is None:
                    # Completion itself settled the tree, after it had chosen actions higher up.
                    self._take_round()
            ended = ended or run.exhausted or self._error is not None or self._reached_gap()
            target *= GROWTH

    def _take_round(self) -> None:
        """Settle the policy of the tree, certify it, and keep it if it is the best so far."""
        run = self._run
        began = time.perf_counter()
        solved = run.solved
        draft = None
        for whole in plan_whole(run, self._allow(began)) if self._complete else ():
            # At once: the model may fail while the next one is planned.
            self._keep_better(whole)
            draft = whole
        if draft is None and not run.exhausted:
            # Without room or time for all of it, a part with its frontier is an answer, too.
            draft = run.plan(False, lambda: False)
            self._keep_better(draft)
        self._proved = draft if solved else None
        self._round_seconds = time.perf_counter() - began
        expected = self._expected_certifying
        if expected and expected < SHARE_OF_CERTIFYING * self._monitor.seconds:
            self._certify_best()

    @property
    def _expected_certifying(self) -> float:
        """Seconds that it takes to write the best policy out and certify it; 0 without one."""
        if self._best is None:
            return 0.0
        if self._seconds_per_decision is None:
            self._seconds_per_decision = OWN_SECONDS + self._time_answer()
        return len(self._best) * self._seconds_per_decision

    def _time_answer(self) -> float:
        """Return the seconds of the plain model's answers for a decision that is certified."""
        graph, reader = self._run.graph, self._run.reader
        if isinstance(graph, StateGraph):
            return graph.asking_seconds / max(1, graph.evaluations)
        state, seconds = reader.root, 0.0
        for _ in range(TRIAL_STEPS):
            began = time.perf_counter()
            answers = [reader.outcomes(state, action) for action in reader.actions(state).values()]
            seconds = (time.perf_counter() - began) / max(1, len(answers))
            safe = [o.state for outcomes in answers for o in outcomes if not o.fails]
            if not safe:
                break
            state = safe[0]
        return 2 * seconds  # one more to write the policy of a compiled model out

    def _keep_better(self, draft: Draft | None) -> None:
        """Keep a policy if it is the best so far."""
        if self._solver.as_printed:
            self._best = draft  # the paper returns what the tree says last
        elif draft is not None and (
            self._best is None or self._rank(draft.judgement) > self._rank(self._best.judgement)
        ):
            self._best = draft

    def _certify_best(self) -> None:
        """Write the best policy out and certify it, unless that was done."""
        draft, done = self._best, self._certified
        if draft is None or (done is not None and done[0] is draft):
            return
        began = time.perf_counter()
        origin = describe_origin(self._problem, self._run.reader, self._name)
        try:
            policy = draft.write_out(self._run.graph, origin)
            self._certified = draft, policy, certify(self._problem, policy)
        except ModelError as error:
            if error.violation.rule is not Rule.ANSWERS:
                raise
            self._error, self._monitor.stopped_by = error, StopReason.MODEL
            self._best, self._proved = done[0] if done else None, None
        self._seconds_per_decision = (time.perf_counter() - began) / max(1, len(draft))

    def _identify(self) -> dict[str, str]:
        """Return what was searched, and how, in strings that are the same in every process."""
        solver, bound = self._solver, self._problem.risk_bound
        parts = {
            MODEL: self._run.reader.fingerprint(),
            "risk bound": bound.text or _name(getattr(bound, "function", bound)),
            "solver": type(self._name).__name__,
            "exploration": solver.exploration,
            "constraint": solver.constraint.letter,
            "credit": _name(getattr(solver.constraint, "credit", None)),
            "default_policy": _name(solver.default_policy),
            "bounded": solver.bounded,
            "as_printed": solver.as_printed,
            "kind of state graph": type(self._run.graph).__name__,
            "seed": self._options.seed,
            "complete": self._options.complete,
        }
        return {name: str(part) for name, part in parts.items()}

    def _keep_checkpoint(self) -> None:
        if time.perf_counter() - self._kept >= self._options.checkpoint_every:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        if self._options.checkpoint is not None:
            snapshot = self._run.take_snapshot(self._identify(), self._target, self._best)
            try:
                snapshot.write(self._options.checkpoint)
            except OSError as error:
                # The search is worth more than its copy.
                logger.warning("the checkpoint could not be written: %s", error)
            self._kept = time.perf_counter()

    def _resume(self) -> int:
        """Take up the search of a checkpoint, if there is one, and return its next round."""
        assert self._options.checkpoint is not None
        snapshot = read_snapshot(self._options.checkpoint, self._identify())
        if snapshot is None:
            return FIRST_ROUND
        self._run.restore(snapshot)
        self._best = None if snapshot.best is None else Draft.unpack(snapshot.best)
        return snapshot.target

    def _reached_gap(self) -> bool:
        """Whether the best policy is as close to the upper bound as was asked for."""
        target = self._monitor.limits.gap
        if target is None or self._best is None or self._run.solved:
            return False
        if not self._best.judgement.safe:
            return False
        reward = float(self._best.judgement.reward)
        if find_gap(reward, self._run.bound_reward()) > target:
            return False
        self._monitor.stopped_by = StopReason.GAP
        return True

    def _rank(self, judgement: Judgement) -> tuple[bool, bool, float]:
        """Return what makes one policy better than another."""
        reward = float(judgement.reward)
        if isinstance(self._solver.constraint, NoConstraint):
            return judgement.complete, True, reward
        return judgement.safe, judgement.passes, reward

    def _allow(self, began: float) -> float:
        """Return until when a round may go on: for half of the time that is left, or a trifle."""
        limit = self._monitor.limits.time_limit
        if limit is None:
            return math.inf
        left = limit - self._monitor.seconds
        return began + max(SHORTEST_ROUND, limit / 10, left / 2)

    def _conclude(self) -> Finding:
        run, monitor = self._run, self._monitor
        status, explanation = self._explain()
        if status is Status.INFEASIBLE:
            self._best = self._certified = None
        draft, policy, certificate = self._certified or (None, None, None)
        if draft is not self._best:  # as printed, cleanup may leave no policy in the end
            draft = policy = certificate = None
        return Finding(
            status=status,
            explanation=explanation,
            policy=policy,
            reward=-math.inf if draft is None else draft.reward,
            risk=0.0 if draft is None else draft.risk,
            credits=run.credits(),
            statistics=Statistics(
                self._search_seconds,
                run.histories,
                run.graph.evaluations,
                run.samples,
                run.memory,
                certificate_seconds=monitor.seconds - self._search_seconds,
            ),
            certificate=certificate,
            error=self._error,
            graph=run.known_graph,
            estimate=run.settled_value if self._solver.as_printed else run.estimate,
        )

    def _explain(self) -> tuple[Status, str]:
        run, constraint = self._run, self._solver.constraint
        admits = f"that constraint {constraint.letter} admits, proved"
        best = None if self._solver.as_printed else self._best
        if run.exhausted and best is not None and best.judgement.safe:
            # Completion on merged states looks at the bound itself, which is less strict.
            self._monitor.stopped_by = None
            return Status.DONE, f"best policy found within the bound; there is none {admits}"
        if run.exhausted:
            return Status.INFEASIBLE, run.explain_infeasible(constraint)
        if self._proved is not None and best is not None:
            self._monitor.stopped_by = None
            if isinstance(constraint, NoConstraint):
                return Status.SOLVED, "best policy without regard to risk, proved"
            more = best.reward > self._proved.reward + TOLERANCE
            return Status.SOLVED, f"{'better than any' if more else 'best'} policy {admits}"
        kind = "last" if self._solver.as_printed else "best"
        found = "no policy yet" if self._best is None else f"{kind} policy so far"
        cause = f" ({self._error})" if self._error else ""
        return Status.STOPPED, (
            f"stopped by {self._monitor.stopped_by} after {run.samples:,} samples: {found}{cause}"
        )

    def _describe(self) -> Progress:
        run, monitor = self._run, self._monitor
        limits = monitor.limits
        shares = []
        if limits.time_limit:
            shares.append(monitor.seconds / limits.time_limit)
        if limits.samples:
            shares.append(run.samples / limits.samples)
        judgement = self._best.judgement if self._best else None
        return Progress(
            seconds=monitor.seconds,
            fraction=min(1.0, max(shares)) if shares else None,
            histories=run.histories,
            evaluations=run.graph.evaluations,
            reward=float(judgement.reward) if judgement else None,
            samples=run.samples,
            memory=run.memory,
            judgement=judgement,
        )


def _name(part: object) -> str:
    """Return a name that is the same in every process: no addresses."""
    if not callable(part):
        return str(part)
    return str(getattr(part, "__qualname__", type(part).__qualname__))
