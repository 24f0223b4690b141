"""Several solvers on one problem, side by side.

Each solver gets the limits that it knows, and one that refuses the problem or fails has a row with
the reason. All rewards are measured against one upper bound, the least that any of the solvers has
proved. There are two kinds: a *dual* bound holds for every policy, a bound of `Pareto`,
`IntegerProgram` and the like for deterministic policies only. So a randomised policy is measured
against the least dual bound, a deterministic one against the least of all.

Nothing is shared between the searches, so that their times can be compared; unless several run at
once, and share a machine. What they find does not depend on that, as long as limits of time and
memory don't end them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from vulcan.certificates.problem import Problem, require_problem
from vulcan.errors import OptionError
from vulcan.executors.base import Executor
from vulcan.executors.choice import choose_executor
from vulcan.executors.crew import Piece
from vulcan.planning.batch import watch_batch
from vulcan.planning.comparison import Comparison, ComparisonRow
from vulcan.planning.jobs import Job
from vulcan.planning.records import open_records
from vulcan.planning.sweep import Searcher, Sweep, describe_error
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.base import Coverage, Options, Solver
from vulcan.solvers.layered.upper_bound import RewardBound
from vulcan.solvers.registry import load_solvers

__all__ = ["compare"]


def compare(
    problem: Problem,
    solvers: Mapping[str, Solver] | Sequence[Solver] | None = None,
    *,
    time_limit: float | None = 10.0,
    samples: int | None = None,
    histories: int | None = None,
    memory: int | None = None,
    seed: int = 0,
    bound: bool = True,
    workers: int | None = None,
    executor: Executor | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_row: Callable[[ComparisonRow], None] | None = None,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Comparison:
    """Solve a problem with several solvers.

    Parameters
    ----------
    problem
        Model and risk bound.
    solvers
        The solvers, by the names that they are to have, or without; by default one of each kind.
    time_limit
        Seconds for each search. A solver that does not know a limit does not get it.
    samples
        Samples for each search.
    histories
        Histories for each search.
    memory
        Bytes for each search.
    seed
        Seed of the random numbers of each search.
    bound
        Find an upper bound on the reward of any policy, if no solver has one of its own. It may
        take as long again as the time limit, once.
    workers
        How many searches run at once, one by default. Only limits of time and memory, and times,
        depend on it: searches that run at once share the machine.
    executor
        Who runs them: "threads", "processes" or "ray", or an executor such as
        `Ray("auto", workers=8)`; processes by default, if there are several workers. Problem and
        solvers must be picklable for another process.
    checkpoint
        A file in which what was found is kept. An existing one is an error, unless it is resumed or
        overwritten.
    resume
        Take from that file, if it exists, what was found already with the same solver, limits, seed
        and bound; each policy is certified anew.
    overwrite
        Replace that file, if it exists.
    on_row
        Called with each row when it is done, before it has the upper bound of all.
    on_progress
        Called now and then with a `Progress` of the comparison as a whole.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Comparison
        With a row for each solver, in the order given. After Ctrl-C, with the rows so far: those of
        searches under way have what they had found.

    Raises
    ------
    OptionError
        If there are no solvers.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import ThreeActions
    >>> problem = vulcan.Problem(ThreeActions(), vulcan.Linear(0.004))
    >>> for row in compare(problem, [vulcan.Pareto(), vulcan.Penalty()]):
    ...     print(row.name, row.reward, row.safe)
    Pareto 6.0 True
    Penalty 5.0 True
    """
    require_problem(problem, beside=solvers)
    named = _name_solvers(solvers)
    limits = Limits(time_limit, samples, histories, memory)
    asked = _choose_bounding(named) if bound else None
    jobs = {
        name: Job(solver, _keep_known(solver, limits), Options(seed), bound=name == asked)
        for name, solver in named.items()
    }
    records = open_records(checkpoint, problem, resume=resume, overwrite=overwrite)
    rows: dict[str, ComparisonRow] = {}
    added, stopped_by = RewardBound(), None
    with (
        watch_batch(on_progress, progress) as batch,
        Sweep(
            choose_executor(executor, workers),
            batch,
            Searcher,
            problem,
            most=len(jobs),
            records=records,
        ) as sweep,
    ):
        batch.total = len(jobs)
        pieces = {sweep.search(job): name for name, job in jobs.items()}
        try:
            for piece in sweep.run():
                row = _build_row(problem, pieces[piece], piece)
                rows[row.name] = row
                batch.finish(piece, row.result)
                if on_row is not None:
                    on_row(row)
            if bound and _lack_bound(list(rows.values())):
                added = sweep.ask("bound", limits) or added
            sweep.require_whole()
        except KeyboardInterrupt:
            stopped_by = sweep.reason
    ordered = [rows[name] for name in named if name in rows]
    return _share_bounds(problem, ordered, added, stopped_by, sweep.lost)


def _keep_known(solver: Any, limits: Limits) -> Limits:
    """Return those of the limits that a solver knows."""
    return limits.keep(solver.limits) if isinstance(solver, Solver) else limits


def _choose_bounding(named: Mapping[str, Solver]) -> str | None:
    """Return the name of the solver whose result gets an upper bound, if it has none itself.

    It is the first without one of its own, unless another before it covers every policy: which one
    must not depend on who is done first.
    """
    for name, solver in named.items():
        covers = getattr(solver, "covers", Coverage.NOTHING)
        if covers is Coverage.NOTHING:
            return name
        if covers is Coverage.EVERY:
            break
    return None


def _build_row(problem: Problem, name: str, piece: Piece) -> ComparisonRow:
    """Return the row of a solver; whatever it raised is in the row."""
    job = piece.arguments[0]
    if piece.error is None:
        return ComparisonRow(name, job.solver, piece.answer.unpack(problem))
    # Of a solver of the user's own, or a defect: the other rows are worth having all the same.
    return ComparisonRow(name, job.solver, error=describe_error(name, piece.error))


def _lack_bound(rows: Sequence[ComparisonRow]) -> bool:
    """Whether a bound on every policy is neither known nor was looked for in vain."""
    return not any(
        _bounds_every_policy(row) or row.result.statistics.bound_seconds
        for row in rows
        if row.result is not None
    )


def _bounds_every_policy(row: ComparisonRow) -> bool:
    """Whether a row has an upper bound that holds for randomised policies as well."""
    if row.result is None or row.result.upper_bound is None:
        return False
    own = row.result.statistics.bound_seconds == 0
    covers = getattr(row.solver, "covers", Coverage.NOTHING)
    return not own or row.deterministic is False or covers is Coverage.EVERY


def _share_bounds(
    problem: Problem,
    rows: Sequence[ComparisonRow],
    added: RewardBound,
    stopped_by: StopReason | None,
    lost: int,
) -> Comparison:
    """Return the comparison, each row with the least upper bound of its kind."""

    def least(chosen: Sequence[ComparisonRow]) -> float | None:
        uppers = [row.result.upper_bound for row in chosen if row.result is not None]
        uppers.append(added.upper)
        return min((float(upper) for upper in uppers if upper is not None), default=None)

    of_all, of_every_policy = least(rows), least([row for row in rows if _bounds_every_policy(row)])
    return Comparison(
        problem=problem,
        rows=tuple(
            replace(row, upper_bound=of_every_policy if row.deterministic is False else of_all)
            for row in rows
        ),
        upper_bound=of_all,
        randomised_upper_bound=of_every_policy,
        stopped_by=stopped_by,
        lost_workers=lost,
    )


def _name_solvers(solvers: Mapping[str, Solver] | Sequence[Solver] | None) -> dict[str, Solver]:
    """Return the solvers by their names, all different."""
    if isinstance(solvers, Mapping):
        named = dict(solvers)
    else:
        _, *kinds = load_solvers().values()  # the first one chooses among the others
        named = {}
        for solver in [kind() for kind in kinds] if solvers is None else solvers:
            name = text = _describe(solver)
            number = 2
            while name in named:
                name, number = f"{text} ({number})", number + 1
            named[name] = solver
    if not named:
        raise OptionError("a comparison needs at least one solver")
    return named


def _describe(solver: Any) -> str:
    """Return the name of a solver's class, with the parameters that are not the usual ones."""
    usual = {
        field.name: field.default_factory()
        if field.default_factory is not dataclasses.MISSING
        else field.default
        for field in (fields(solver) if hasattr(solver, "__dataclass_fields__") else ())
    }
    special = [
        f"{name}={getattr(solver, name)!r}"
        for name, value in usual.items()
        if getattr(solver, name) != value
    ]
    name = type(solver).__name__
    return f"{name}({', '.join(special)})" if special else name
