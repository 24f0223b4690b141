"""Several solvers on one problem, side by side.

Each solver gets the limits that it knows, and one that refuses the problem or fails has a row with
the reason. All rewards are measured against one upper bound, the least that any of the solvers has
proved. There are two kinds: a *dual* bound holds for every policy, a bound of `Pareto`,
`IntegerProgram` and the like for deterministic policies only. So a randomised policy is measured
against the least dual bound, a deterministic one against the least of all.

Nothing is shared between the searches, so that their times can be compared.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from vulcan.certificates.problem import Problem, require_problem
from vulcan.errors import OptionError, VulcanError
from vulcan.planning.batch import watch_batch
from vulcan.planning.comparison import Comparison, ComparisonRow
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.base import Coverage, Options, Solver
from vulcan.solvers.registry import load_solvers

__all__ = ["compare"]

logger = logging.getLogger("vulcan")


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
    on_row
        Called with each row when it is done, before it has the upper bound of all.
    on_progress
        Called now and then with a `Progress` of the comparison as a whole.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Comparison
        With a row for each solver. After Ctrl-C, with the rows so far.

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
    rows: list[ComparisonRow] = []
    stopped_by = None
    with watch_batch(on_progress, progress) as batch:
        batch.total = len(named)
        try:
            for name, solver in named.items():
                search = partial(
                    plan_and_certify,
                    problem,
                    solver,
                    options=Options(seed),
                    bound=bound and _lack_bound(rows),
                    on_progress=batch.tell,
                )
                row = _solve_row(name, solver, limits, search)
                rows.append(row)
                batch.finish(row.result)
                if on_row is not None:
                    on_row(row)
                if row.result is not None and row.result.stopped_by is StopReason.INTERRUPTED:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            stopped_by = StopReason.INTERRUPTED
    return _share_bounds(problem, rows, stopped_by)


def _solve_row(
    name: str, solver: Solver, limits: Limits, search: Callable[..., Result]
) -> ComparisonRow:
    """Return the row of a solver; whatever it raises is in the row."""
    try:
        known = limits.keep(solver.limits) if isinstance(solver, Solver) else limits
        return ComparisonRow(name, solver, search(limits=known))
    except VulcanError as error:
        return ComparisonRow(name, solver, error=str(error))
    except Exception as error:
        # A solver of the user's own, or a defect: the other rows are worth having all the same.
        logger.exception("%s failed", name)
        return ComparisonRow(name, solver, error=f"{type(error).__name__}: {error}")


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
    problem: Problem, rows: Sequence[ComparisonRow], stopped_by: StopReason | None
) -> Comparison:
    """Return the comparison, each row with the least upper bound of its kind."""

    def least(chosen: Sequence[ComparisonRow]) -> float | None:
        uppers = [row.result.upper_bound for row in chosen if row.result is not None]
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
