"""One way to solve: any problem, any solver, and always a certificate."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from vulcan.bounds.shape import warn_of_loose
from vulcan.certificates.certificate import Certificate, certify
from vulcan.certificates.problem import Problem, require_problem
from vulcan.errors import DisagreementError, ModelError
from vulcan.executors.base import Executor
from vulcan.executors.choice import choose_executor
from vulcan.executors.losses import count_losses
from vulcan.model.arrays import ArrayModel
from vulcan.model.reader import ModelReader
from vulcan.planning.result import Result
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import OnProgress, Phase, Progress, watch_progress
from vulcan.solvers.automatic import Automatic
from vulcan.solvers.base import (
    Options,
    Solver,
    ask_for_randomised,
    refuse_unknown,
    require_solver,
)
from vulcan.solvers.finding import Finding, Status
from vulcan.solvers.layered.upper_bound import RewardBound, bound_any_policy
from vulcan.tolerance import AGREEMENT, TOLERANCE

__all__ = ["solve"]

UNCERTIFIED: Final = "interrupted before the policy was certified; certify() can still do it"


def solve(
    problem: Problem,
    solver: Solver | None = None,
    *,
    time_limit: float | None = None,
    samples: int | None = None,
    histories: int | None = None,
    memory: int | None = None,
    gap: float | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    complete: bool = True,
    randomised: bool = False,
    bound: bool = False,
    workers: int | None = None,
    executor: Executor | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    overwrite: bool = False,
    keep: bool = False,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Result:
    """Plan, and certify the plan.

    Parameters
    ----------
    problem
        Model and risk bound.
    solver
        How to search; by default `Automatic()`, which solves with a small proved gap what it can
        unroll, and samples the rest.
    time_limit
        Stop the search after this many seconds. Loading and compiling kernels does not count.
    samples
        Stop the search after this many samples.
    histories
        Stop the search after this many histories.
    memory
        Stop the search when its tree and the state graph take this many bytes.
    gap
        Stop the search when the policy is proved to be within this share of the best: of the best
        at all for the exact solvers, of the best that the constraint admits for `Vulcan` and
        `LocalVulcan(bounded=True)`. By default 1e-4 without a solver's name (and an absolute 1e-6
        where rewards are near 0); solvers with a name go on until nothing better is left. 0 asks
        for proof.
    seed
        Seed of the random numbers. The same seed and the same samples give the same policy.
    seeds
        Search with each of these seeds, and return the best result: its `spread` has what each of
        them found. Limits are those of each search. A seed that fails stops no others.
    complete
        Plan to the end what the search left unexplored. Without it a policy may have a frontier.
    randomised
        Return the best randomised policy, which draws one of two policies at the start. The solver
        must know how: `Automatic` and `Lagrangian` do, and `LinearProgram` does nothing else.
    bound
        Add an upper bound on the reward of any policy, if the solver has none of its own, so that
        the result has a gap. The model is asked for what the search left out, if the state graph
        is small enough; the bound may take as long again as the time limit.
    workers
        How many work at once. With several seeds they search, each with one of them. Else they are
        threads that search, where the solver knows how and the model is compiled, or quick to
        answer `ForwardSearch`; or processes that answer for the model, which must be picklable, or
        search parts of what `ForwardSearch` searches. Solvers on pairs of state and step also
        compute in as many threads, for any model. The result does not depend on it, as long as
        limits of samples and not of time or memory end the search.
    executor
        Who they are: "threads", "processes" or "ray", or an executor such as
        `Ray("auto", workers=8)`. By default what suits the model and the solver.
    checkpoint
        A file to which a search that samples writes itself now and then. An existing file is an
        error, unless the search in it is resumed or overwritten. `Automatic` chooses as it does
        without a checkpoint, and says so where nothing was sampled and no file written. Each of
        several seeds has a file of its own beside it: `plan-7.ckpt` for seed 7 and `plan.ckpt`.
    checkpoint_every
        Seconds between two checkpoints.
    resume
        Go on from that file, if it exists. With a limit of samples the result is the same, bit for
        bit, as that of a search that was never interrupted.
    overwrite
        Replace that file, if it exists.
    keep
        Keep what the search knows, its tree and what the model said, in memory with the policy:
        a run of it that replans goes on from there. Without it, the first replan of a run begins
        with nothing. A tree that is with other processes or machines is not kept.
    on_progress
        Called with a `Progress` about ten times a second.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Result
        With a policy and its certificate, or the reason why there is no policy. A search that a
        limit or Ctrl-C ended returns the best complete policy that it had found; of several seeds,
        those under way do, and no other begins.

    Raises
    ------
    ModelError
        If the model breaks a rule or raises.
    BoundError
        If the risk bound is not concave and nondecreasing where it was used.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), risk_bound=vulcan.Linear(0.002))
    >>> result = vulcan.solve(problem)
    >>> round(result.certificate.reward, 4), result.safe
    (1.528, True)
    """
    limits = Limits(time_limit, samples, histories, memory, gap)
    options = Options(
        seed,
        complete,
        checkpoint,
        checkpoint_every,
        resume,
        overwrite,
        keep=keep,
        workers=workers,
        executor=executor,
    )
    solver = Automatic() if solver is None else solver
    if randomised:
        solver = ask_for_randomised(solver)
    return choose_search(seeds)(
        problem,
        solver,
        limits,
        options,
        bound=bound,
        on_progress=on_progress,
        progress=progress,
    )


def choose_search(seeds: Sequence[int] | None) -> Callable[..., Result]:
    """Return what plans and certifies: once, or with each of several seeds."""
    if seeds is None:
        return plan_and_certify
    from vulcan.planning.seeds import solve_seeds  # many of the former

    return partial(solve_seeds, seeds=seeds)


def plan_and_certify(
    problem: Problem,
    solver: Solver,
    limits: Limits,
    options: Options,
    *,
    bound: bool = False,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Result:
    """Plan, and certify the plan: `solve` for those who have limits and options as objects."""
    require_problem(problem, beside=solver)
    require_solver(solver)
    refuse_unknown(solver, limits, options)
    reader = _find_reader(problem.model, options)
    options = _choose_executor(reader, solver, options)
    with (
        count_losses() as losses,
        _open_reader(reader, solver, options) as reader,
        watch_progress(on_progress, progress) as watch,
        Monitor(limits, watch) as monitor,
    ):
        finding = solver.search(problem, reader, monitor, options)
        # Still inside, so that the first Ctrl-C does not lose what was found.
        began = time.perf_counter()
        certificate = finding.certificate
        if finding.policy is not None and certificate is None:
            try:
                certificate = _certify(problem, finding, monitor)
            except KeyboardInterrupt:
                finding = replace(finding, status=Status.STOPPED, explanation=UNCERTIFIED)
        _check(problem, finding, certificate)
        finding = _doubt(problem, finding, certificate)
        seconds = time.perf_counter() - began
        if bound and finding.upper_bound is None:
            finding = _add_bound(problem, reader, monitor, finding, options.threads)
    policy, knowledge = finding.policy, finding.knowledge if options.keep else None
    if policy is not None:
        policy = policy.attach(ModelReader(problem.model))
        policy.knowledge = knowledge
    return Result(
        problem=problem,
        solver=repr(solver),
        status=finding.status,
        explanation=finding.explanation,
        stopped_by=monitor.stopped_by,
        policy=policy,
        certificate=certificate,
        statistics=replace(
            finding.statistics,
            certificate_seconds=finding.statistics.certificate_seconds + seconds,
            lost_workers=losses.count,
        ),
        error=finding.error,
        upper_bound=finding.upper_bound,
        rounding=finding.rounding,
        trials=finding.trials,
        price=finding.price,
        lines=finding.lines,
        estimate=finding.estimate,
        relaxed=finding.relaxed,
        safest=finding.safest,
        sufficient=finding.sufficient,
        knowledge=knowledge,
    )


def _certify(problem: Problem, finding: Finding, monitor: Monitor) -> Certificate:
    """Return the certificate of what was found, telling how far it is."""
    assert finding.policy is not None
    statistics = finding.statistics

    def watch(share: float) -> None:
        def describe() -> Progress:
            counts = (statistics.histories, statistics.evaluations)
            return Progress(
                monitor.seconds,
                share,
                *counts,
                finding.reward,
                pairs=statistics.nodes,
                phase=Phase.CERTIFYING,
            )

        monitor.report(describe)

    return certify(problem, finding.policy, watch=watch)


def _find_reader(model: Any, options: Options) -> ModelReader:
    """Return what asks the model: the reader of what is known of it already, or a new one."""
    if options.graph is not None:
        return options.graph.reader
    if options.knowledge is not None:
        return options.knowledge.graph.reader
    return ModelReader(model)


def _choose_executor(reader: ModelReader, solver: Solver, options: Options) -> Options:
    """Return the options with the executor that was asked for, or suits the search."""
    chosen = options.executor is not None or options.workers in (None, 1)
    threaded = isinstance(reader.model, ArrayModel) or (
        not chosen and isinstance(solver, Solver) and solver.suits_threads(reader)
    )
    several = "threads" if threaded else "processes"
    return replace(options, executor=choose_executor(options.executor, options.workers, several))


@contextmanager
def _open_reader(reader: ModelReader, solver: Solver, options: Options) -> Iterator[ModelReader]:
    """Yield a reader, or one with workers that answer for the model if these are not to search."""
    executor = options.executor
    assert isinstance(executor, Executor)
    known = options.graph is not None or options.knowledge is not None
    if known or executor.near or (isinstance(solver, Solver) and solver.spreads(reader)):
        yield reader
    else:
        from vulcan.model.workers import WorkerReader

        with WorkerReader(reader.model, executor) as asking:
            yield asking


def _doubt(problem: Problem, finding: Finding, certificate: Certificate | None) -> Finding:
    """Return a finding that claims no more than the certificate says.

    Where a bound is very steep, or large rewards cancel, a rounding decides whether a policy is
    acceptable to a search. The certificate is not misled by that, or says that it can't say.
    """
    if finding.status is not Status.SOLVED or certificate is None or certificate.safe:
        return finding
    # A search that heeds no bound has solved its own problem, and calls nothing acceptable.
    _, most = problem.risk_bound.enclose(finding.reward, finding.reward)
    if finding.upper_bound is None and finding.risk > most + TOLERANCE:
        return finding
    explanation = (
        "best policy found; its risk is so close to what is allowed that roundings decide"
        if certificate.undecided
        else "best policy found; roundings misled the search: it is not within the bound"
    )
    return replace(finding, status=Status.DONE, explanation=explanation)


def _add_bound(
    problem: Problem, reader: ModelReader, monitor: Monitor, finding: Finding, threads: int
) -> Finding:
    """Return the same finding with an upper bound; Ctrl-C and errors of the model forgo it."""
    if monitor.requested:
        return finding
    stopped_by, monitor.stopped_by = monitor.stopped_by, None
    began = time.perf_counter()
    try:
        found = bound_any_policy(problem, reader, monitor, finding.graph, threads)
    except ModelError:
        found = RewardBound()
    monitor.stopped_by = stopped_by
    statistics = replace(finding.statistics, bound_seconds=time.perf_counter() - began)
    return replace(
        finding,
        upper_bound=found.upper,
        price=found.price,
        lines=found.lines,
        statistics=statistics,
    )


def _check(problem: Problem, finding: Finding, certificate: Certificate | None) -> None:
    """Check what a search took for granted: the shape of the bound, and its own arithmetic."""
    rewards = [] if certificate is None else [float(certificate.reward)]
    if points := [*finding.credits, *rewards]:
        problem.risk_bound.verify(points)
        warn_of_loose(problem.risk_bound, points)
    if certificate is None or finding.policy is None:
        return
    largest = max(float(np.abs(p.reward).max(initial=1.0)) for p in finding.policy.members)
    for name, found, certified, most in (
        ("reward", finding.reward, certificate.reward, largest * finding.policy.about.horizon),
        ("risk", finding.risk, certificate.risk, 1.0),
    ):
        if not abs(found - float(certified)) <= AGREEMENT * most:
            raise DisagreementError(
                f"the search found {name} {found!r}, the certificate {float(certified)!r}; "
                "this is a defect in Vulcan, please report it with the model"
            )
