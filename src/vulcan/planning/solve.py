"""Solve a problem with any solver, and certify the policy."""

from __future__ import annotations

import math
import os
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from vulcan.bounds.base import warn_of_loose
from vulcan.certificate.certify import certify
from vulcan.constraints import list_events
from vulcan.errors import DisagreementError, ModelError
from vulcan.graph.compiled import CompiledGraph
from vulcan.model.arrays import ArrayModel
from vulcan.model.keys import require_honest_keys
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule
from vulcan.numerics import AGREEMENT, TOLERANCE, find_sum_cost
from vulcan.parallel.executors import Executor, count_losses
from vulcan.parallel.pool import choose_executor
from vulcan.parameters import knows_parameters
from vulcan.planning.automatic import Automatic
from vulcan.planning.result import Result
from vulcan.policy.policy import AnyPolicy
from vulcan.problem import Problem, require_problem
from vulcan.runtime.files import Checkpoint
from vulcan.runtime.limits import (
    DEFAULT_SECONDS,
    Limits,
    Monitor,
    OnProgress,
    Progress,
    StopReason,
    TimeUp,
    watch_progress,
)
from vulcan.solvers.base import Options, Solver, find_solver, require_fit, require_solver
from vulcan.solvers.finding import Finding, Statistics, Status, Worth


@knows_parameters
def solve(
    problem: Problem,
    solver: Solver | str | None = None,
    *,
    time_limit: float | None = None,
    gap: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    parallel: int | str | Executor | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    progress: bool | OnProgress | None = None,
    device: str = "cpu",
) -> Result:
    """Plan, and certify the plan.

    Without a limit of time or samples, a search that samples or grows ends after about 20 s.

    Parameters
    ----------
    problem
        Model and risk bound.
    solver
        How to search: a solver, or its name on the command line, such as "pareto". By default
        `Automatic()`, which solves with a small proved gap what it can unroll, and samples the
        rest.
    time_limit
        Stop after this many seconds, certificate included, up to a tenth of it, a quarter of a
        second, or one answer of the model. Loading and compiling kernels does not count. Where
        there was no time for a certificate, `Result.planned` says what was found.
    gap
        Stop the search when the policy is proved to be within this share of the best. By default
        1e-4 without a solver's name; named solvers go on until their policy is the best. 0
        requests a proof.
    samples
        Stop the search after this many samples.
    seed
        Seed of the random numbers. The same seed and the same samples give the same policy.
    limits
        The limits above and others, such as `Limits(memory=4_000_000_000)`.
    parallel
        A number of workers; an executor, such as `vulcan.parallel.Ray("auto", workers=8)`; or its
        name, such as "threads", "processes:4" or "ray". Workers are threads that search, where the
        solver knows how and the model is compiled, or processes that evaluate the model, which must
        be picklable. Solvers on state–step pairs also compute in as many threads, for any model.
        The result does not depend on it, unless a limit of time or memory ends the search.
    checkpoint
        A file to which a search that samples writes itself regularly, or a `Checkpoint`, which also
        says how often, and whether to resume or overwrite an existing file. `Automatic` chooses as
        it does without a checkpoint, and says so where nothing was sampled and no file written.
    progress
        True shows the progress in the terminal, False never; by default a terminal or a notebook
        shows it after two seconds. A function is called with a `Progress` about ten times a second.
    device
        "cuda" computes large dynamic programs on a GPU of NVIDIA, with the same results (needs
        `vulcan-planner[cuda]`). Certificates are always computed on the processor.

    Returns
    -------
    Result
        With a policy and its certificate, or the reason why there is none. A search that a limit
        or Ctrl-C ended returns the best complete policy that it had found.

    Raises
    ------
    OptionError
        If an option does not exist, or has an impossible value.
    ModelError
        If the model breaks a rule or raises, or contradicts an earlier answer when a sample of them
        is queried again before something is reported as proved.
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
    limits = Limits.combine(limits, time_limit=time_limit, samples=samples, gap=gap)
    options = Options(seed, checkpoint=Checkpoint.read(checkpoint), device=device)
    chosen = read_solver(solver, limits)
    return plan_and_certify(problem, chosen, limits, options, parallel=parallel, progress=progress)


def read_solver(solver: Solver | str | None, limits: Limits) -> Solver:
    """Return the solver that a user gives, perhaps by its name; the default one for None."""
    if isinstance(solver, str):
        return find_solver(solver).from_options({}, limits)
    return Automatic() if solver is None else solver


def plan_and_certify(
    problem: Problem,
    solver: Solver,
    limits: Limits,
    options: Options,
    *,
    parallel: int | str | Executor | None = None,
    progress: bool | OnProgress | None = False,
) -> Result:
    """Plan, and certify the plan: `solve` with limits and options as objects."""
    require_problem(problem)
    require_solver(solver, limits, options)
    require_fit(problem, solver)
    asked = limits
    if solver.endless:
        limits = limits.by_default()
    events = list_events(problem.constraints)
    reader = ModelReader(problem.model, events) if options.graph is None else options.graph.reader
    compiled = solver.threads and getattr(reader.model, "compiled", None) is not None
    threaded = compiled or isinstance(reader.model, ArrayModel)
    executor = choose_executor(parallel, "threads" if threaded else "processes")
    options = replace(options, executor=executor)
    with (
        count_losses() as losses,
        _open_reader(reader, solver, options) as reader,
        watch_progress(progress) as watch,
        Monitor(limits, watch) as monitor,
    ):
        try:
            finding = solver.search(problem, reader, monitor, options)
        except TimeUp:  # between two answers of the model
            monitor.stopped_by = StopReason.TIME
            finding = Finding(
                status=Status.STOPPED,
                explanation=f"stopped by {StopReason.TIME}: no policy found yet",
                policy=None,
                reward=-math.inf,
                risk=0.0,
                credits=(),
                statistics=Statistics(monitor.seconds, 0, 0),
            )
        # Still inside, so that the first Ctrl-C does not lose the policy.
        finding = _certify(problem, finding, monitor)
        _check(problem, finding)
        finding = _downgrade(problem, finding)
        finding = _query_again(reader, monitor, finding)
    if asked.time_limit is None and monitor.stopped_by is StopReason.TIME:
        remark = f"{DEFAULT_SECONDS:.0f} s by default, time_limit=60 goes on for longer"
        finding = replace(finding, explanation=f"{finding.explanation} ({remark})")
    policy = finding.policy
    if policy is not None:
        policy = policy.attach(ModelReader(problem.model))
        for member in policy.members:
            member.risk_bound = problem.risk_bound
            member.constraints = problem.constraints
    changed = {
        "policy": policy,
        "statistics": replace(finding.statistics, lost_workers=len(losses)),
    }
    return Result(
        problem=problem,
        solver=repr(solver),
        stopped_by=monitor.stopped_by,
        **{**vars(finding), **changed},
    )


def _open_reader(
    reader: ModelReader, solver: Solver, options: Options
) -> AbstractContextManager[ModelReader]:
    """Return the reader; with workers that evaluate the model, if the solver uses none itself."""
    from vulcan.model.workers import WorkerReader

    alone = options.graph is not None or options.executor.in_process or solver.spreads(reader)
    workers = (reader.model, options.executor, reader.events)
    return nullcontext(reader) if alone else WorkerReader(*workers)


def _certify(problem: Problem, finding: Finding, monitor: Monitor) -> Finding:
    """Return the finding with the certificate of its policy, if there is time for it."""
    policy, statistics = finding.policy, finding.statistics
    if policy is None or finding.certificate is not None:
        return finding
    counts = (statistics.histories, statistics.evaluations, finding.reward)
    rest: Any = {"pairs": statistics.nodes, "phase": "certifying"}

    def watch(share: float) -> None:
        monitor.report(lambda: Progress(monitor.seconds, share, *counts, **rest))

    if finding.planned is None:
        monitor.grant_certificate()
    began = time.perf_counter()
    try:
        certificate = certify(problem, policy, watch=watch)
    except (KeyboardInterrupt, TimeUp) as ended:
        why = "interrupted"
        if isinstance(ended, TimeUp):
            monitor.stopped_by = monitor.stopped_by or StopReason.TIME
            why = f"stopped by {monitor.stopped_by}"
        why = finding.explanation if finding.status is Status.STOPPED else why
        return replace(
            finding,
            status=Status.STOPPED,
            explanation=f"{why}; the policy is not certified",
            planned=Worth(finding.reward, finding.risk),
        )
    taken = statistics.certificate_seconds + time.perf_counter() - began
    return replace(
        finding,
        certificate=certificate,
        planned=None,
        statistics=replace(statistics, certificate_seconds=taken),
    )


def _check(problem: Problem, finding: Finding) -> None:
    """Check the assumptions of a search: the shape of the bound, and its own arithmetic."""
    certificate, policy = finding.certificate, finding.policy
    rewards = [] if certificate is None else [float(certificate.reward)]
    if points := [*finding.credits, *rewards]:
        problem.risk_bound.verify(points)
        warn_of_loose(problem.risk_bound, points)
    if certificate is None or policy is None:
        return
    largest = _find_largest_reward(policy)
    for name, found, certified, most in (
        ("reward", finding.reward, certificate.reward, largest * policy.about.horizon),
        ("risk", finding.risk, certificate.risk, 1.0),
    ):
        if not abs(found - float(certified)) <= AGREEMENT * most:
            raise DisagreementError(
                f"the search found {name} {found!r}, the certificate {float(certified)!r}; "
                "this is a defect in Vulcan, please report it with the model"
            )


def _downgrade(problem: Problem, finding: Finding) -> Finding:
    """Return a finding that claims no more than its certificate proves.

    Where a bound is very steep, large rewards cancel, or probabilities sum to 1 only nearly over
    many steps, rounding decides whether a policy is acceptable to a search. The certificate is not
    misled by that, or reports that it can't decide.
    """
    certificate = finding.certificate
    if finding.status is not Status.SOLVED or certificate is None or certificate.safe:
        return finding
    # A search that ignores the bound has solved its own problem, and claims no acceptability.
    assert finding.policy is not None
    steps = finding.policy.about.horizon + 1
    cost = find_sum_cost(steps)
    reward = finding.reward + cost * steps * _find_largest_reward(finding.policy)
    _, most = problem.risk_bound.enclose(finding.reward, reward)
    if finding.upper_bound is None and finding.risk > most + TOLERANCE + cost:
        return finding
    explanation = (
        "best policy found; its risk is so close to what is allowed that roundings decide"
        if certificate.undecided
        else "best policy found; it exceeds the bound because of rounding in the search"
    )
    return replace(finding, status=Status.DONE, explanation=explanation)


def _find_largest_reward(policy: AnyPolicy) -> float:
    """Return the size of the largest reward of any outcome; at least 1."""
    return max(float(np.abs(p.reward).max(initial=1.0)) for p in policy.members)


def _query_again(reader: ModelReader, monitor: Monitor, finding: Finding) -> Finding:
    """Query a sample of a model's answers, of both forms, before something is reported as proved.

    It takes a small share of the time of the search, and at most one answer beyond a time limit.
    What was proved is not reported as such where there is no time for that answer.
    """
    proved = finding.status in (Status.SOLVED, Status.INFEASIBLE)
    limit = monitor.limits.time_limit
    late = limit is not None and monitor.seconds >= limit
    unsettled = not proved and (finding.upper_bound is None or late)
    if unsettled or finding.error is not None or isinstance(reader.model, ArrayModel):
        return finding
    end = monitor.seconds + max(0.1, 0.02 * finding.statistics.search_seconds)
    end = end if limit is None else min(end, limit)
    begun = False

    def may_go_on() -> bool:
        nonlocal begun
        first, begun = not begun, True
        return not monitor.requested and (first or monitor.seconds < end)

    monitor.grant_certificate()
    error: ModelError | None = None
    try:
        if finding.policy is None:  # certificates test them otherwise
            require_honest_keys(reader)
        reader.require_repeatable(may_go_on)
        if reader.compiled is not None:
            CompiledGraph(reader, reader.compiled).compare_forms(may_go_on)
        return finding
    except TimeUp:
        reason, explanation = StopReason.TIME, "no time to query answers again"
    except ModelError as raised:
        if raised.violation.rule is not Rule.ANSWERS:
            raise
        error, reason, explanation = raised, StopReason.MODEL, str(raised)
    monitor.stopped_by = reason
    return replace(
        finding,
        status=Status.STOPPED,
        explanation=f"stopped by {reason}: {explanation}",
        error=error,
        upper_bound=None,
        safest=None,
        sufficient=None,
    )
