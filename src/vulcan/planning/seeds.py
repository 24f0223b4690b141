"""One search with several seeds: the best result, and how far apart they are.

A search that samples is a matter of luck, too. Several seeds show how much of it, and give the best
of several tries. Each search has a worker of its own, and is what it would be alone.

With a checkpoint each seed has a file beside the one that was named: `plan-7.ckpt` for seed 7 and
`plan.ckpt`. So an interrupted sweep is resumed where each of its searches was, and a search whose
worker was lost goes on where the file is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vulcan.certificates.problem import Problem, require_problem
from vulcan.errors import OptionError
from vulcan.executors.choice import choose_executor
from vulcan.executors.crew import Piece
from vulcan.planning.batch import watch_batch
from vulcan.planning.jobs import Job
from vulcan.planning.result import Result
from vulcan.planning.spread import SeedRun, Spread
from vulcan.planning.sweep import Searcher, Sweep, describe_error
from vulcan.runtime.limits import Limits
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.base import Options, Solver, refuse_unknown, require_solver
from vulcan.solvers.layered.upper_bound import RewardBound
from vulcan.solvers.tree.checkpoint import require_free

__all__ = ["solve_seeds"]


def solve_seeds(
    problem: Problem,
    solver: Solver,
    limits: Limits,
    options: Options,
    seeds: Sequence[int],
    *,
    bound: bool = False,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Result:
    """Solve with each of several seeds; see `vulcan.solve`.

    Parameters
    ----------
    problem, solver, limits
        What to solve, and how.
    options
        What else searches are told; their workers and executor are those of the seeds.
    seeds
        The seeds.
    bound
        Add an upper bound, if the best result has none.
    on_progress, progress
        Who is told how far all searches are.

    Returns
    -------
    Result
        The best, with the spread of all.

    Raises
    ------
    Exception
        What the first seed raised, if all did.
    """
    require_problem(problem, beside=solver)
    require_solver(solver)
    refuse_unknown(solver, limits, options)
    seeds = _require_seeds(solver, options, seeds)
    executor = choose_executor(options.executor, options.workers)
    jobs = [Job(solver, limits, _divide(options, seed)) for seed in seeds]
    tries = _Tries(problem, seeds, limits)
    with (
        watch_batch(on_progress, progress) as batch,
        Sweep(executor, batch, Searcher, problem, most=len(jobs)) as sweep,
    ):
        batch.total = len(jobs)
        pieces = {sweep.search(job): job.options.seed for job in jobs}
        try:
            for piece in sweep.run():
                batch.finish(piece, tries.add(pieces[piece], piece))
            if bound and tries.best is not None and tries.best.upper_bound is None:
                tries.add_bound(sweep)
        except KeyboardInterrupt:
            sweep.stopped = True
    return tries.finish(sweep)


class _Tries:
    """What the seeds found so far; of the results the best alone is kept."""

    def __init__(self, problem: Problem, seeds: Sequence[int], limits: Limits) -> None:
        self._problem, self._seeds, self._limits = problem, seeds, limits
        self._runs: dict[int, SeedRun] = {}
        self._errors: dict[int, BaseException] = {}
        self._rank: tuple[Any, ...] = ()
        self.best: Result | None = None

    def add(self, seed: int, piece: Piece) -> Result | None:
        """Add what a seed found, and return it; None if it raised."""
        if piece.error is not None:
            self._errors[seed] = piece.error
            text = describe_error(f"seed {seed}", piece.error)
            self._runs[seed] = SeedRun(seed, explanation=text, error=text)
            return None
        result: Result = piece.answer.unpack(self._problem)
        self._runs[seed] = _describe(seed, result)
        rank = (*_rank(result), -self._seeds.index(seed))  # of equals the first, whoever is first
        if self.best is None or rank > self._rank:
            self.best, self._rank = result, rank
        return result

    def add_bound(self, sweep: Sweep) -> None:
        """Add an upper bound to the best."""
        began = time.perf_counter()
        found: RewardBound | None = sweep.ask("bound", self._limits)
        if found is not None and self.best is not None:
            seconds = time.perf_counter() - began
            statistics = replace(self.best.statistics, bound_seconds=seconds)
            self.best = replace(
                self.best,
                statistics=statistics,
                upper_bound=found.upper,
                price=found.price,
                lines=found.lines,
            )

    def finish(self, sweep: Sweep) -> Result:
        """Return the best, with the spread of all."""
        if self.best is None:
            first = next((self._errors[k] for k in self._seeds if k in self._errors), None)
            raise KeyboardInterrupt if first is None else first
        spread = Spread(
            tuple(self._runs[seed] for seed in self._seeds if seed in self._runs),
            tuple(seed for seed in self._seeds if seed not in self._runs),
            sweep.lost,
        )
        stopped_by = sweep.reason if sweep.stopped else self.best.stopped_by
        return replace(self.best, spread=spread, stopped_by=stopped_by)


def _require_seeds(solver: Solver, options: Options, seeds: Any) -> list[int]:
    """Return the seeds; refuse what can't be used, or makes no difference."""
    try:
        listed = list(seeds)
    except TypeError:
        raise OptionError(f"seeds must be whole numbers, as in range(20), not {seeds!r}") from None
    if not listed or len(set(listed)) < len(listed):
        raise OptionError(f"seeds must be different, and at least one, not {seeds!r}")
    if not getattr(solver, "sampling", True):
        raise OptionError(f"{type(solver).__name__} takes no samples: all seeds are the same to it")
    if options.seed != 0:
        raise OptionError("seed or seeds, not both")
    if options.keep:
        raise OptionError("keep is for one search: of several seeds nothing is kept")
    return listed


def _divide(options: Options, seed: int) -> Options:
    """Return what the search of one seed is told."""
    own = replace(options, seed=seed, workers=None, executor=None)
    if options.checkpoint is None:
        return own
    path = Path(options.checkpoint)
    path = path.with_name(f"{path.stem}-{seed}{path.suffix}")
    require_free(path, resume=options.resume, overwrite=options.overwrite)
    if options.overwrite:
        path.unlink(missing_ok=True)
    # Whoever takes the place of a lost worker finds what that one wrote.
    return replace(own, checkpoint=path, resume=True, overwrite=False)


def _rank(result: Result) -> tuple[bool, bool, float]:
    """Return how good a result is: safe before complete before any policy, then by reward."""
    certificate = result.certificate
    if certificate is None:
        return False, False, -math.inf
    return result.safe, certificate.complete, float(certificate.reward)


def _describe(seed: int, result: Result) -> SeedRun:
    """Return what a spread says of a seed."""
    certificate = result.certificate
    return SeedRun(
        seed,
        reward=None if certificate is None else float(certificate.reward),
        risk=None if certificate is None else float(certificate.risk),
        safe=result.safe,
        explanation=result.summary,
        stopped_by=result.stopped_by,
        samples=result.statistics.samples,
        seconds=result.statistics.search_seconds,
    )
