"""A search in rounds: samples, policies of the tree, and the best policy so far.

In rounds, at sample counts that grow by a factor of four and once at the end, a policy is made of
the tree and judged. The best policy so far is the answer, whenever the search has to stop: a
complete one that passes outranks any other, then the larger reward wins. Rounds depend on sample
counts alone, so that the same seed and samples give the same policy, however long they took.

The answer is written out and certified once, at the end. Before that, a policy is certified where
it takes next to no time, in case the model should fail later.
"""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final

from vulcan.certificates.certificate import Certificate, Judgement, certify
from vulcan.certificates.problem import Problem
from vulcan.errors import CheckpointError, ModelError
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.rules import Rule
from vulcan.policies.policy import Policy
from vulcan.runtime.limits import StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.packing import require
from vulcan.runtime.progress import Progress
from vulcan.solvers.base import Options, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status
from vulcan.solvers.tree.checkpoint import MODEL, Snapshot, read_snapshot, require_free
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.sampled_tree import SampledTree

__all__ = ["Rounds"]

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


class Rounds(ABC):
    """One search: samples, rounds, and the best policy certified so far.

    Parameters
    ----------
    run
        The tree.
    problem, monitor, options
        As in `Solver.search`.
    name
        The solver, as policies name it.
    """

    def __init__(
        self,
        run: SampledTree,
        problem: Problem,
        monitor: Monitor,
        options: Options,
        name: object,
    ) -> None:
        self._tree = run
        self._problem, self._monitor, self._options = problem, monitor, options
        self._name = name
        if options.checkpoint is not None:
            require_free(options.checkpoint, resume=options.resume, overwrite=options.overwrite)
        self._error: ModelError | None = None
        self._proved: Draft | None = None  # the policy of a solved tree
        self._target = FIRST_ROUND
        self._kept = time.perf_counter()
        self._best: Draft | None = None
        self._certified: tuple[Draft, Policy, Certificate] | None = None
        self._seconds_per_decision: float | None = None
        self._round_seconds = 0.0
        self._search_seconds, self._memory = 0.0, 0

    @abstractmethod
    def _prepare(self) -> None:
        """Compile the kernels, and set how to sample."""

    @abstractmethod
    def _make_policies(self, until: float, final: bool) -> Draft | None:
        """Make policies of the tree, keep the best, and return the last one."""

    def _make_known_policy(self) -> None:  # noqa: B027 - not every search can
        """Keep a policy of what was sampled, after the model has failed."""

    @abstractmethod
    def _identify_solver(self) -> dict[str, object]:
        """Return how the search goes, by name, for checkpoints."""

    @abstractmethod
    def _explain(self) -> tuple[Status, str]:
        """Return how the search ended."""

    @property
    def _estimate(self) -> float | None:
        """The value of the root."""
        return None

    @property
    def _upper_bound(self) -> float | None:
        """What no policy within the bound earns more than."""
        return None

    def _release_tree(self) -> None:  # noqa: B027 - others may go on with it
        """Give back the memory that only sampling needs, before the policy is written out."""

    def _list_credits(self) -> list[float]:
        """Return where the risk bound was evaluated."""
        return self._tree.credits()

    def _reached_gap(self) -> bool:
        """Whether the best policy is as close to the upper bound as was asked for."""
        return False

    def _is_worth_a_round(self) -> bool:
        """Whether there is anything to make a policy of."""
        return self._tree.samples > 0

    def search(self) -> Finding:
        """Sample in rounds until there is a reason to stop."""
        self._prepare()
        self._monitor.start_clock()
        target = self._resume() if self._options.resume else self._target
        try:
            self._sample_in_rounds(target)
        except ModelError as error:
            # A model that raised may have done so for a passing reason; one that lies gets nothing.
            if error.violation.rule is not Rule.ANSWERS:
                raise
            self._error, self._monitor.stopped_by = error, StopReason.MODEL
            if self._best is None and self._tree.samples:
                with suppress(ModelError):  # what was sampled may still be an answer
                    self._make_known_policy()
        self._search_seconds, self._memory = self._monitor.seconds, self._tree.memory
        self._release_tree()
        self._certify_best()
        return self._conclude()

    def _sample_in_rounds(self, target: int) -> None:
        run, monitor = self._tree, self._monitor
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
                monitor.stopped_by is not None
                and monitor.stopped_by.is_request
                and self._round_seconds > PATIENCE
            )
            if self._is_worth_a_round() and not (hurried and self._best):
                self._take_round(ended)
                if run.solved and self._proved is None:
                    # Completion itself settled the tree, after it had chosen actions higher up.
                    self._take_round(final=True)
            ended = ended or run.exhausted or self._error is not None or self._reached_gap()
            target *= GROWTH

    def _take_round(self, final: bool) -> None:
        """Make policies of the tree, keep the best, and certify it if that takes no time."""
        began = time.perf_counter()
        solved = self._tree.solved
        draft = self._make_policies(self._allow(began, final), final)
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
        graph, reader = self._tree.graph, self._tree.reader
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
        if draft is not None and (
            self._best is None or self._rank(draft.judgement) > self._rank(self._best.judgement)
        ):
            self._best = draft

    def _certify_best(self) -> None:
        """Write the best policy out and certify it, unless that was done."""
        draft, done = self._best, self._certified
        if draft is None or (done is not None and done[0] is draft):
            return
        began = time.perf_counter()
        origin = describe_origin(self._problem, self._tree.reader, self._name)
        try:
            policy = draft.write_out(self._tree.graph, origin)
            self._certified = draft, policy, certify(self._problem, policy)
        except ModelError as error:
            if error.violation.rule is not Rule.ANSWERS:
                raise
            self._error, self._monitor.stopped_by = error, StopReason.MODEL
            self._best, self._proved = done[0] if done else None, None
        self._seconds_per_decision = (time.perf_counter() - began) / max(1, len(draft))

    def _identify(self) -> dict[str, str]:
        """Return what was searched, and how, in strings that are the same in every process."""
        bound = self._problem.risk_bound
        parts: dict[str, object] = {
            MODEL: self._tree.reader.fingerprint(),
            "risk bound": bound.text or name_part(getattr(bound, "function", bound)),
            "solver": type(self._name).__name__,
            **self._identify_solver(),
            "kind of state graph": type(self._tree.graph).__name__,
            "seed": self._options.seed,
            "complete": self._options.complete,
        }
        return {name: str(part) for name, part in parts.items()}

    def _keep_checkpoint(self) -> None:
        if time.perf_counter() - self._kept >= self._options.checkpoint_every:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        if self._options.checkpoint is not None:
            try:
                self._take_snapshot().write(self._options.checkpoint)
            except OSError as error:
                # The search is worth more than its copy.
                logger.warning("the checkpoint could not be written: %s", error)
            self._kept = time.perf_counter()

    def _take_snapshot(self) -> Snapshot:
        """Return all that is needed to go on from here."""
        # A policy of another graph than the one that is kept could not be read again.
        best = None if self._best is None or self._best.graph is not None else self._best
        return self._tree.take_snapshot(self._identify(), self._target, best)

    def _restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        run, target = self._tree, snapshot.target
        run.restore(snapshot)
        most = GROWTH * max(FIRST_ROUND, run.samples)
        require(1 <= target <= most, f"{target} samples can't be the next round")
        if snapshot.best is not None:
            self._best = Draft.unpack(snapshot.best, run.graph)

    def _resume(self) -> int:
        """Take up the search of a checkpoint, if there is one, and return its next round."""
        assert self._options.checkpoint is not None
        snapshot = read_snapshot(self._options.checkpoint, self._identify())
        if snapshot is None:
            return FIRST_ROUND
        try:
            self._restore(snapshot)
        except CheckpointError as error:
            raise CheckpointError(f"{self._options.checkpoint}: {error}") from error
        return snapshot.target

    def _rank(self, judgement: Judgement) -> tuple[bool, bool, float]:
        """Return what makes one policy better than another."""
        return judgement.safe, judgement.passes, float(judgement.reward)

    def _allow(self, began: float, final: bool) -> float:
        """Return until when a round may go on: for half of the time that is left, or a trifle.

        The last one leaves what a certificate takes, and no more, if that is known.
        """
        limit = self._monitor.limits.time_limit
        if limit is None:
            return math.inf
        left = limit - self._monitor.seconds
        certifying = GROWING * self._expected_certifying
        share = left - certifying if final and certifying else left / 2
        return began + max(SHORTEST_ROUND, limit / 10, share)

    def _conclude(self) -> Finding:
        run, monitor = self._tree, self._monitor
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
            credits=self._list_credits(),
            statistics=Statistics(
                self._search_seconds,
                run.histories,
                run.evaluations,
                run.samples,
                self._memory,
                certificate_seconds=monitor.seconds - self._search_seconds,
            ),
            certificate=certificate,
            error=self._error,
            graph=run.known_graph,
            estimate=self._estimate,
            upper_bound=self._upper_bound,
        )

    def _describe(self) -> Progress:
        run, monitor = self._tree, self._monitor
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
            evaluations=run.evaluations,
            reward=float(judgement.reward) if judgement else None,
            samples=run.samples,
            memory=run.memory,
            judgement=judgement,
        )


def name_part(part: object) -> str:
    """Return a name that is the same in every process: no addresses."""
    if not callable(part):
        return str(part)
    return str(getattr(part, "__qualname__", type(part).__qualname__))
