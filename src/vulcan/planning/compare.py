"""Several solvers on one problem, side by side.

Each solver gets the limits that it knows, and one that refuses the problem or fails has a row with
the reason. All rewards are measured against one upper bound, the least that any of the solvers has
proved. There are two kinds: a *dual* bound holds for every policy, a bound of `Pareto`,
`IntegerProgram` and the like for deterministic policies only. So a randomised policy is measured
against the least dual bound, a deterministic one against the least of all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.exact.pipeline import RewardBound
from vulcan.model.interface import describe_model
from vulcan.parallel.executors import Executor
from vulcan.parameters import knows_parameters
from vulcan.planning.result import Result
from vulcan.planning.solve import read_solver
from vulcan.planning.sweep import ResultRow, describe_error, open_sweep
from vulcan.policy.policy import RandomisedPolicy
from vulcan.problem import Problem, require_problem
from vulcan.runtime.formatting import (
    MISSING,
    TextTable,
    build_card,
    show_count,
    show_gap,
    show_probability,
    show_reward,
    show_seconds,
)
from vulcan.runtime.limits import Limits, OnProgress, StopReason
from vulcan.solvers.base import Coverage, Options, Solver, find_solver, load_solvers, require_solver

DEFAULT_SECONDS: Final = 10.0  # time limit of each search by default


@dataclass(frozen=True)
class ComparisonRow(ResultRow):
    """One solver and its result.

    Attributes
    ----------
    name
        The name of the solver here.
    solver
        The solver.
    result
        Its result, with the least upper bound of all that holds for the kind of policy that it
        found; None if it raised an error.
    error
        The error; None if there was none.
    """

    name: str
    solver: Solver
    result: Result | None = None
    error: str | None = None

    def __repr__(self) -> str:
        return f"<ComparisonRow {self.name}: {self.error or repr(self.result)}>"

    @property
    def complete(self) -> bool | None:
        """Whether the policy is complete; None without one."""
        return None if self.certificate is None else self.certificate.complete

    @property
    def deterministic(self) -> bool | None:
        """Whether the policy is deterministic; None without one."""
        if self.result is None or self.result.policy is None:
            return None
        return not isinstance(self.result.policy, RandomisedPolicy)

    @property
    def seconds(self) -> float | None:
        """Time of the search."""
        return None if self.result is None else self.result.statistics.search_seconds

    @property
    def evaluations(self) -> int | None:
        """Number of (state, action) pairs that the search evaluated."""
        return None if self.result is None else self.result.statistics.evaluations

    @property
    def explanation(self) -> str:
        """How the search ended, or the error."""
        if self.result is None:
            return self.error or ""
        text = self.result.summary
        known = self.deterministic is not False or "randomised" in text
        return text if known else f"{text}; randomised"


@dataclass(frozen=True)
class Comparison:
    """Solvers side by side.

    Attributes
    ----------
    problem
        The problem.
    rows
        One for each solver, in the order in which they were given.
    upper_bound
        No deterministic policy within the risk bound earns more; None if unknown.
    randomised_upper_bound
        No policy earns more, randomised or not; None if unknown.
    stopped_by
        `StopReason.INTERRUPTED` if Ctrl-C came before the last solver was done; else None.
    lost_workers
        Number of workers lost; their searches were repeated by others.
    """

    problem: Problem
    rows: tuple[ComparisonRow, ...]
    upper_bound: float | None = None
    randomised_upper_bound: float | None = None
    stopped_by: StopReason | None = None
    lost_workers: int = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[ComparisonRow]:
        """Return the rows, one after the other."""
        return iter(self.rows)

    def tabulate(self) -> TextTable:
        """Return the comparison as a table, for people."""
        return TextTable(
            ["", "solver", "reward", "risk", "allowed", "gap", "time", "evaluations", ""],
            [
                [
                    "✓" if row.safe else "✗" if row.reward is not None else MISSING,
                    row.name,
                    show_reward(row.reward),
                    show_probability(row.risk),
                    show_probability(row.allowed),
                    show_gap(row.gap, row.absolute_gap, row.upper_bound),
                    show_seconds(row.seconds),
                    show_count(row.evaluations),
                    row.explanation,
                ]
                for row in self.rows
            ],
            left=2,
        )

    def __repr__(self) -> str:
        safe = [row.reward for row in self.rows if row.safe and row.reward is not None]
        best = max(safe, default=None)
        names = ", ".join(row.name for row in self.rows)
        found = f"best safe reward {show_reward(best)}"
        return f"<Comparison of {len(self)} solvers ({names}): {found}>"

    def _repr_html_(self) -> str:
        remark = f"{describe_model(self.problem.model)}, Δ(x) = {self.problem.risk_bound}"
        return build_card(f"{len(self)} solvers", self.tabulate().html, remark)

    def __str__(self) -> str:
        return str(self.tabulate())


@knows_parameters
def compare(
    problem: Problem,
    solvers: Mapping[str, Solver | str] | Sequence[Solver | str] | None = None,
    *,
    time_limit: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    upper_bound: bool = True,
    parallel: int | str | Executor | None = None,
    progress: bool | OnProgress | None = None,
) -> Comparison:
    """Solve a problem with several solvers.

    Parameters
    ----------
    problem
        Model and risk bound.
    solvers
        The solvers, by the names that they are to have, or without; by default one of each kind.
        A string is a name on the command line: "pareto", or "paper-vulcan:2" for `Vulcan.paper(2)`.
    time_limit, samples, seed, limits
        Of each search, as in `solve`; by default 10 seconds. Solvers get only the limits that they
        support.
    upper_bound
        Find an upper bound on the reward of any policy, if no solver has one of its own. It may
        take as long again as the time limit, once.
    parallel
        Number of searches at once, or where they run: see `solve`. Several are processes by
        default, for which problem and solvers must be picklable. Only times, and limits of time and
        memory, depend on it: searches that run at once share the machine.
    progress
        True shows the progress in the terminal; a function is called with the `Progress` of the
        comparison as a whole.

    Returns
    -------
    Comparison
        With a row for each solver, in the order given. After Ctrl-C, with the rows so far:
        interrupted searches contribute what they had found.

    Raises
    ------
    OptionError
        If there are no solvers, or none of a name.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import ThreeActions
    >>> problem = vulcan.Problem(ThreeActions(), vulcan.Linear(0.004))
    >>> for row in compare(problem, [vulcan.Pareto(), vulcan.baselines.Penalty()]):
    ...     print(row.name, row.reward, row.safe)
    Pareto 6.0 True
    Penalty 5.0 True
    """
    require_problem(problem)
    named = _name_solvers(solvers)
    if time_limit is None and limits is None:
        time_limit = DEFAULT_SECONDS
    limits = Limits.combine(limits, time_limit=time_limit, samples=samples)
    searches = {
        name: (problem.risk_bound, solver, limits.keep(solver.limits), Options(seed))
        for name, solver in named.items()
    }
    found: dict[str, ComparisonRow] = {}
    added = RewardBound()
    with open_sweep(problem, parallel, progress) as sweep:
        sweep.total = len(searches)
        for name, result, error in sweep.solve(searches):
            # The solver may be the user's own; the other rows are still useful.
            text = None if error is None else describe_error(name, error)
            found[name] = ComparisonRow(name, named[name], result, text)
        if upper_bound and not any(map(_bounds_every_policy, found.values())):
            added = sweep.call("bound", limits) or added
    rows = [found[name] for name in named if name in found]
    uppers = [(True, added.upper), *((_bounds_every_policy(x), x.upper_bound) for x in rows)]
    known = [(every, float(upper)) for every, upper in uppers if upper is not None]
    of_all = min((upper for _, upper in known), default=None)
    of_every_policy = min((upper for every, upper in known if every), default=None)
    for k, row in enumerate(rows):
        if row.result is not None:
            upper = of_every_policy if row.deterministic is False else of_all
            rows[k] = replace(row, result=replace(row.result, upper_bound=upper))
    return Comparison(
        problem=problem,
        rows=tuple(rows),
        upper_bound=of_all,
        randomised_upper_bound=of_every_policy,
        stopped_by=sweep.stopped_by,
        lost_workers=sweep.lost,
    )


def _bounds_every_policy(row: ComparisonRow) -> bool:
    """Whether a row has an upper bound that holds for randomised policies as well."""
    every = row.deterministic is False or row.solver.covers is Coverage.EVERY
    return row.upper_bound is not None and every


def _name_solvers(
    solvers: Mapping[str, Solver | str] | Sequence[Solver | str] | None,
) -> dict[str, Solver]:
    """Return the solvers by their names, all different."""
    if isinstance(solvers, Mapping):
        named = dict(solvers)
    else:
        solvers = [solvers] if isinstance(solvers, str) else solvers
        if solvers is None:
            solvers = [kind() for kind in list(load_solvers().values())[1:]]  # not automatic
        named = {}
        for solver in solvers:
            name = text = solver if isinstance(solver, str) else _describe_solver(solver)
            number = 2
            while name in named:
                name, number = f"{text} ({number})", number + 1
            named[name] = solver
    if not named:
        raise OptionError("a comparison needs at least one solver")
    chosen = {name: _read_named(solver) for name, solver in named.items()}
    for solver in chosen.values():
        require_solver(solver, Limits(), Options())
    return chosen


def _read_named(solver: Solver | str) -> Solver:
    """Return a solver, perhaps by its name; `paper-vulcan:2` sets its exploration constant."""
    if not isinstance(solver, str) or ":" not in solver:
        return read_solver(solver, Limits())
    name, _, constant = solver.partition(":")
    kind = find_solver(name)
    with suppress(ValueError):
        if "exploration" in {option.name for option in kind.options}:
            return kind.from_options({"exploration": float(constant)}, Limits())
    raise OptionError(f"solver {solver!r} sets no --exploration constant; paper-vulcan:2 does")


def _describe_solver(solver: Any) -> str:
    """Return the name of a solver's class, with the parameters that are not defaults."""
    special = []
    for field in fields(solver) if is_dataclass(solver) else ():
        made = field.default_factory
        usual = field.default if made is dataclasses.MISSING else made()
        if (value := getattr(solver, field.name)) != usual:
            special.append(f"{field.name}={value!r}")
    name = type(solver).__name__
    return f"{name}({', '.join(special)})" if special else name
