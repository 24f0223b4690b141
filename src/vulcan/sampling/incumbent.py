"""The incumbent of a sampling search: its best policy so far, with its certificate and checkpoints.

A search makes policies in rounds, at sample counts that grow by a factor of four and once at the
end, and offers them here. The best so far is the answer whenever the search has to stop: a complete
policy that passes outranks any other, then the larger reward wins. Rounds depend on sample counts
alone, so that the same seed and samples give the same policy, however long they took.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from vulcan.certificate.certify import Certificate, Judgement, certify
from vulcan.errors import CheckpointError, ModelError
from vulcan.graph.states import StateGraph
from vulcan.model.rules import Rule
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.runtime.arrays import require
from vulcan.runtime.limits import Monitor, Progress, StopReason, TimeUp
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.checkpoint import MODEL, Snapshot, read_snapshot
from vulcan.sampling.paper_tree import TreeRun
from vulcan.sampling.price_search import PriceRun
from vulcan.solvers.base import Options, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status, Worth

FIRST_ROUND: Final = 1024
GROWTH: Final = 4

OWN_SECONDS: Final = 2e-5  # of a certificate per decision, without evaluating the model
TRIAL_STEPS: Final = 3  # into a model, until evaluations take as long as they usually do
GROWING: Final = 1.3  # how much larger the next policy is expected to be than the best so far
SHARE_OF_CERTIFYING: Final = 0.05  # of the time so far, for certificates before the end
SHORTEST_ROUND: Final = 0.1  # seconds that a round may take, however little time is left
FIRST_RESERVE: Final = 0.4  # of the time limit, for the first policy and its certificate
SLOW_ROUND: Final = 0.5  # seconds of a round from which Ctrl-C skips the last one, with a policy

logger = logging.getLogger("vulcan")

Rank = Callable[[Judgement], tuple[bool, bool, float]]


def rank_within_bound(judgement: Judgement) -> tuple[bool, bool, float]:
    """Rank policies within the risk bound first."""
    return judgement.safe, judgement.passes, float(judgement.reward)


class Incumbent:
    """The best policy of a search so far.

    Policies name `solver` as their origin, and a checkpoint of other `settings` is refused. `error`
    is the error of the model that ended the search, if any, and `target` the number of samples of
    the next round. `repeats` returns the fields of a `Snapshot` for work that resuming repeats.
    """

    def __init__(
        self,
        run: PriceRun | TreeRun,
        problem: Problem,
        monitor: Monitor,
        options: Options,
        solver: object,
        settings: Mapping[str, object],
        rank: Rank = rank_within_bound,
        repeats: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._run, self._problem, self._monitor, self._options = run, problem, monitor, options
        self._solver, self._settings, self._rank = solver, settings, rank
        self._repeats = repeats
        if options.checkpoint is not None:
            options.checkpoint.require_free()
        self.best: Candidate | None = None
        self.error: ModelError | None = None
        self.target = FIRST_ROUND
        self._saved = time.perf_counter()
        self._certified: tuple[Candidate, Policy, Certificate] | None = None
        self._uncertified: tuple[Candidate, Policy | None] | None = None  # where time ran out
        self._seconds_per_decision: float | None = None
        self._round_seconds = 0.0

    @property
    def found(self) -> bool:
        """Whether there is a policy within the bound."""
        return self.best is not None and self.best.judgement.safe

    def offer(self, candidate: Candidate | None) -> None:
        """Keep a policy if it is the best so far."""
        if candidate is not None and (
            self.best is None or self._rank(candidate.judgement) > self._rank(self.best.judgement)
        ):
            self.best = candidate

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Let the best policy so far be the answer if the model fails or time is up."""
        try:
            yield
        except ModelError as error:
            self._keep_error(error)
        except TimeUp:
            self._monitor.stopped_by = StopReason.TIME

    def _keep_error(self, error: ModelError) -> None:
        """End the search with the best policy if a model call raised; re-raise rule violations."""
        if error.violation.rule is not Rule.ANSWERS:
            raise error
        self.error, self._monitor.stopped_by = error, StopReason.MODEL

    def must_end(self) -> bool:
        """Return whether the search must end; if it was stopped, save a checkpoint first.

        This precedes the last round, which an uninterrupted search would not take here.
        """
        run, monitor = self._run, self._monitor
        if not run.solved and not run.exhausted:
            monitor.wants_stop(run.histories, run.samples)
        if monitor.stopped_by is not None:
            self.save()
        if run.full:
            monitor.stopped_by = StopReason.MEMORY
        return run.solved or run.exhausted or monitor.stopped_by is not None

    # Rounds and their time.

    @property
    def next_target(self) -> int:
        """The number of samples of the next round, within the limit."""
        most = self._monitor.limits.samples
        return self.target if most is None else min(self.target, most)

    @property
    def reserve(self) -> float:
        """Seconds to leave for the last round and the certificate."""
        if self.best is None:
            return FIRST_RESERVE * (self._monitor.limits.time_limit or 0.0)
        return self._round_seconds + GROWING * self._expected_certifying

    @property
    def hurried(self) -> bool:
        """Whether the last round is skipped: it would take long, and the user wants an answer."""
        by = self._monitor.stopped_by
        slow = self._round_seconds > SLOW_ROUND
        return by is not None and by.is_request and slow and self.best is not None

    @contextmanager
    def round(self, final: bool) -> Iterator[float]:
        """Time a round; yield its deadline (`time.perf_counter`).

        A round gets half of the time that is left, or a moment. The last round leaves only the time
        of a certificate, if that is known. A policy is certified after the round if that is quick,
        in case the model fails later.
        """
        began, until = time.perf_counter(), math.inf
        limit = self._monitor.limits.time_limit
        if limit is not None:
            left = limit - self._monitor.seconds
            certifying = GROWING * self._expected_certifying
            share = left - certifying if final and certifying else left / 2
            until = began + max(SHORTEST_ROUND, share)
        yield until
        self._round_seconds = time.perf_counter() - began
        expected = self._expected_certifying
        if expected and expected < SHARE_OF_CERTIFYING * self._monitor.seconds:
            self.certify()

    @property
    def _expected_certifying(self) -> float:
        """Seconds that it takes to write the best policy out and certify it; 0 without one."""
        if self.best is None:
            return 0.0
        if self._seconds_per_decision is None:
            self._seconds_per_decision = OWN_SECONDS + self._time_answer()
        return len(self.best) * self._seconds_per_decision

    def _time_answer(self) -> float:
        """Return the seconds that the model takes for each decision that is certified."""
        graph, reader = self._run.graph, self._run.reader
        if isinstance(graph, StateGraph):
            return graph.evaluation_seconds / max(1, graph.evaluations)
        state, seconds = reader.root, 0.0
        for _ in range(TRIAL_STEPS):
            began = time.perf_counter()
            answers = [reader.outcomes(state, action) for action in reader.actions(state).values()]
            seconds = (time.perf_counter() - began) / max(1, len(answers))
            safe = [o.state for outcomes in answers for o in outcomes if not o.fails]
            if not safe:
                break
            state = safe[0]
        return 2 * seconds  # twice: writing out the policy of a compiled model evaluates it again

    def certify(self, granted: bool = False) -> None:
        """Write out the best policy and certify it, unless it is certified already.

        If `granted`, a certificate of usual length may exceed the time limit by a moment.
        """
        candidate, done = self.best, self._certified
        if candidate is None or (done is not None and done[0] is candidate):
            return
        if granted:
            # No evaluation is timed here: it may be too late for that.
            seconds = self._seconds_per_decision or OWN_SECONDS
            self._monitor.grant_certificate(len(candidate) * seconds)
        began = time.perf_counter()
        policy = None
        try:
            origin = describe_origin(self._problem, self._run.reader, self._solver)
            policy = candidate.write_out(self._run.graph, origin)
            self._certified = candidate, policy, certify(self._problem, policy)
        except TimeUp:
            self._uncertified = candidate, policy
        except ModelError as error:
            self._keep_error(error)
            self.best = done[0] if done else None
        self._seconds_per_decision = (time.perf_counter() - began) / max(1, len(candidate))

    # Checkpoints.

    def save_if_due(self) -> None:
        """Write a checkpoint if the last one is long enough ago."""
        checkpoint = self._options.checkpoint
        if checkpoint is not None and time.perf_counter() - self._saved >= checkpoint.every:
            self.save()

    def save(self) -> None:
        """Write a checkpoint, if one was requested."""
        checkpoint = self._options.checkpoint
        if checkpoint is None:
            return
        # A policy of another graph could not be read again: only the graph of the run is saved.
        best = None if self.best is None or self.best.graph is not None else self.best
        try:
            Snapshot(
                identity=self._identify(),
                **self._run.pack(),
                target=self.target,
                best=None if best is None else best.pack(),
                **self._repeats(),
            ).write(checkpoint.path)
        except OSError as error:
            # The search goes on without a checkpoint.
            logger.warning("the checkpoint could not be written: %s", error)
        self._saved = time.perf_counter()

    def resume(self) -> Snapshot | None:
        """Resume the search of a checkpoint, except for the work to repeat; None without one.

        The run must be prepared.
        """
        checkpoint, run = self._options.checkpoint, self._run
        if checkpoint is None or not checkpoint.resume:
            return None
        snapshot = read_snapshot(checkpoint.path, self._identify())
        if snapshot is None:
            return None
        try:
            run.restore(snapshot)
            most = GROWTH * max(FIRST_ROUND, run.samples)
            require(1 <= snapshot.target <= most, "the next round is not within the samples")
            if snapshot.best is not None:
                self.best = Candidate.unpack(snapshot.best, run.graph)
            snapshot.check_work(run.samples)
        except CheckpointError as error:
            raise CheckpointError(f"{checkpoint.path}: {error}") from error
        self.target = snapshot.target
        return snapshot

    def _identify(self) -> dict[str, str]:
        """Return the problem and the settings as strings that are the same in every process."""
        bound = self._problem.risk_bound
        parts: dict[str, object] = {
            MODEL: self._run.reader.fingerprint(),
            "risk bound": bound.text or name_part(getattr(bound, "function", bound)),
            "solver": type(self._solver).__name__,
            **self._settings,
            "kind of state graph": type(self._run.graph).__name__,
            "seed": self._options.seed,
        }
        return {name: str(part) for name, part in parts.items()}

    # Results.

    def describe(self) -> Progress:
        """Return the progress of the search."""
        run, monitor = self._run, self._monitor
        limits = monitor.limits
        spent = ((monitor.seconds, limits.time_limit), (run.samples, limits.samples))
        shares = [used / limit for used, limit in spent if limit]
        judgement = self.best.judgement if self.best else None
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

    def measure(self) -> Statistics:
        """Return the statistics of the search, when it has ended."""
        run = self._run
        seconds, histories = self._monitor.seconds, run.histories
        return Statistics(seconds, histories, run.evaluations, run.samples, run.memory)

    def explain_stop(self, kind: str = "best", method: str = "") -> str:
        """Return why a search ended early, and what it found."""
        found = "no policy yet" if self.best is None else f"{kind} policy so far{method}"
        cause = f" ({self.error})" if self.error else ""
        samples = f"{self._run.samples:,} samples"
        return f"stopped by {self._monitor.stopped_by} after {samples}: {found}{cause}"

    def conclude(self, status: Status, explanation: str, taken: Statistics, **more: Any) -> Finding:
        """Return the finding, given how the search ended, its statistics, and its own bounds."""
        if status is Status.INFEASIBLE:
            self.best = self._certified = None
        candidate, policy, certificate = self._certified or (None, None, None)
        planned = None
        if self._uncertified is not None and self._uncertified[0] is self.best:
            better, written = self._uncertified
            self._monitor.stopped_by = StopReason.TIME
            if status is not Status.STOPPED:
                status, explanation = Status.STOPPED, f"stopped by {StopReason.TIME}"
            if written is None:  # else a last certificate is tried
                explanation += "; the policy is not certified"
            planned = Worth(better.reward, better.risk)
            if certificate is None:
                candidate, policy = better, written
            else:
                explanation = f"stopped by {StopReason.TIME}: best policy certified in time"
        elif candidate is not self.best:  # as printed, cleanup may leave no policy in the end
            candidate = policy = certificate = None
        certifying = self._monitor.seconds - taken.search_seconds
        return Finding(
            status=status,
            explanation=explanation,
            policy=policy,
            planned=planned,
            reward=-math.inf if candidate is None else candidate.reward,
            risk=0.0 if candidate is None else candidate.risk,
            statistics=replace(taken, certificate_seconds=certifying),
            certificate=certificate,
            error=self.error,
            **more,
        )


def name_part(part: object) -> str:
    """Return a name that is the same in every process: no addresses."""
    if not callable(part):
        return str(part)
    return str(getattr(part, "__qualname__", type(part).__qualname__))
