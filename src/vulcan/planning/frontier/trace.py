"""Solving a model for many bounds, several at once."""

from __future__ import annotations

import math
import os
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from typing import Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.reward_limit import RewardLine
from vulcan.bounds.straight import Constant
from vulcan.certificates.certificate import certify
from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.executors.base import Executor
from vulcan.executors.choice import choose_executor
from vulcan.executors.crew import Piece
from vulcan.model.interface import Model, describe_model
from vulcan.planning.batch import Batch, watch_batch
from vulcan.planning.frontier.enclosure import Enclosure, trim_lines
from vulcan.planning.frontier.placement import choose_place
from vulcan.planning.frontier.point import Frontier, FrontierFailure, FrontierPoint
from vulcan.planning.frontier.searcher import FrontierSearcher
from vulcan.planning.frontier.span import RangeFinder, Span
from vulcan.planning.jobs import Job
from vulcan.planning.records import Records, open_records
from vulcan.planning.sweep import Sweep, describe_error
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.automatic import Automatic
from vulcan.solvers.base import Options, Solver, refuse_unknown, require_solver
from vulcan.solvers.finding import Worth
from vulcan.tolerance import TOLERANCE

__all__ = ["trace_frontier"]

DEFAULT_GAP: Final = 0.001
"""A frontier is there to be looked at, and points without any gap may take long."""

FEWEST_AHEAD: Final = 2
ROUNDS: Final = 5
"""The points of a span are chosen so many ahead, or a fifth of them where that is more: without
knowing what those before them find. That is all that can be done at once, and the number of workers
plays no part in it. With more, points would crowd less where the frontier bends."""


def trace_frontier(
    problem: Problem | Model,
    *,
    solver: Solver | None = None,
    levels: Sequence[float] | Span | None = None,
    scales: Sequence[float] | Span | None = None,
    points: int = 21,
    time_limit: float | None = None,
    samples: int | None = None,
    histories: int | None = None,
    memory: int | None = None,
    gap: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_point: Callable[[FrontierPoint], None] | None = None,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Frontier:
    """Find the best certified reward, and the price of risk, over a range of risk bounds.

    Parameters
    ----------
    problem
        A model, or a problem. The bound of a problem is used for `scales` only.
    solver
        How to search for each point; by default `Automatic()`.
    levels
        Constant bounds, or the `Span` that they cover. By default, unless there are scales, from
        the smallest risk that any policy has to that of the best policy without a bound.
    scales
        Multiples of the problem's bound, or the `Span` that they cover: `Span()` ends where the
        bound no longer binds, and 1, the bound itself, is among its scales.
    points
        How many points a span has at most. They are placed where the frontier bends: where most
        lies between what is earned and what is proved to be the limit.
    time_limit
        Seconds for the search of each point.
    samples
        Samples for each point.
    histories
        Histories for each point.
    memory
        Bytes for each point.
    gap
        Stop the search of a point when its policy is proved to be within this share of the best. By
        default 0.001, unless there is another solver or another limit.
    seed
        Seed of the random numbers of each search.
    workers
        How many points are searched for at once, one by default. The points don't depend on it, as
        long as limits of time and memory don't end searches, and the state graph is small enough to
        be unrolled. Elsewhere a search that samples also uses what the earlier ones of the same
        worker have asked. How often the model is asked depends on it: each worker asks for itself.
    executor
        Who searches: "threads", "processes" or "ray", or an executor such as
        `Ray("auto", workers=8)`; processes by default, if there are several workers. What goes to
        another process must be picklable.
    checkpoint
        A file in which what was found is kept. An existing one is an error, unless it is resumed or
        overwritten.
    resume
        Take from that file, if it exists, what was found already with the same solver, limits, seed
        and bound; each policy is certified anew.
    overwrite
        Replace that file, if it exists.
    on_point
        Called with each point when it is done, and all that were begun before it are; before prices
        are compared with its neighbours.
    on_progress
        Called now and then with a `Progress` of the frontier as a whole.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Frontier
        With one point for each bound, those without a policy included, and the reasons why there is
        none for others (`failures`). After Ctrl-C, with the points so far: those of searches under
        way have what they had found.

    Raises
    ------
    OptionError
        If levels or scales can't be used, or have no end that can be found.
    ModelError, BoundError
        As in `solve`, if all points raise them.

    Examples
    --------
    >>> from vulcan.domains import Bandit
    >>> frontier = trace_frontier(Bandit(horizon=3), levels=[0, 0.001, 0.003])
    >>> [round(point.reward, 4) for point in frontier]
    [0.75, 1.0571, 1.528]
    """
    own = problem if isinstance(problem, Problem) else Problem(problem, Constant(1.0))
    if scales is not None and not isinstance(problem, Problem):
        raise OptionError("scales need a bound to scale: give a Problem, not a model alone")
    if scales is not None and levels is not None:
        raise OptionError("levels or scales, not both: a bound is constant, or scaled")
    limits = Limits(time_limit, samples, histories, memory, gap)
    chosen = Automatic() if solver is None else solver
    require_solver(chosen)
    if isinstance(chosen, Automatic) and limits == Limits():
        limits = Limits(gap=DEFAULT_GAP)
    options = Options(seed)
    refuse_unknown(chosen, limits, options)
    wanted = Span() if levels is scales is None else levels if scales is None else scales
    assert wanted is not None
    job = Job(chosen, limits, options, bound=True)
    who = choose_executor(executor, workers)
    records = open_records(checkpoint, own, resume=resume, overwrite=overwrite)
    with (
        watch_batch(on_progress, progress) as batch,
        Sweep(who, batch, FrontierSearcher, own, True, early=True, records=records) as sweep,
    ):
        tracer = _Tracer(own, job, scales is not None, sweep, batch, records)
        try:
            tracer.trace(wanted, points, on_point)
            sweep.require_whole()
        except KeyboardInterrupt:
            tracer.stopped_by = sweep.reason
        return tracer.finish(batch.seconds)


class _Tracer:
    """The points so far, and what they share.

    Places are numbered as they are chosen, and points are added in that order, whoever is done
    first. So what is known when a place is chosen depends on its number alone.
    """

    def __init__(
        self,
        problem: Problem,
        job: Job,
        scaled: bool,
        sweep: Sweep,
        batch: Batch,
        records: Records,
    ) -> None:
        self._problem, self._job, self._scaled = problem, job, scaled
        self._sweep, self._batch, self._records = sweep, batch, records
        self._base = problem.risk_bound if scaled else None
        self._pieces: dict[Piece, float] = {}
        self._ended: set[Piece] = set()
        self._points: list[FrontierPoint] = []
        self._failures: list[tuple[float, BaseException]] = []
        self._lines: tuple[RewardLine, ...] = ()
        self._evaluations = 0
        self.stopped_by: StopReason | None = None

    def trace(
        self,
        wanted: Sequence[float] | Span,
        points: int,
        on_point: Callable[[FrontierPoint], None] | None,
    ) -> None:
        """Add all points."""
        finder = RangeFinder(self._problem.risk_bound, self._find_extremes)
        places = finder.choose(wanted, points, self._scaled)
        total = max(len(places), points) if isinstance(wanted, Span) else len(places)
        ahead = max(FEWEST_AHEAD, points // ROUNDS)
        self._batch.total = total
        self._hand_out(places)
        first = len(places)
        for piece in self._sweep.run():
            self._ended.add(piece)
            self._batch.finish(piece, None if piece.error else piece.answer.result)
            for point in self._settle():
                if on_point is not None and point is not None:
                    on_point(point)
                if self._settled >= first:
                    self._go_on(total, ahead)
        # After Ctrl-C there may be points behind others that never began.
        for piece in [piece for piece in self._waiting if piece in self._ended]:
            self._add(piece)
        self.share()

    @property
    def _settled(self) -> int:
        return len(self._points) + len(self._failures)

    @property
    def _waiting(self) -> list[Piece]:
        """The pieces whose points are not there yet, in the order of their numbers."""
        return list(self._pieces)[self._settled :]

    def _find_extremes(self) -> tuple[Worth, Worth]:
        """Let a worker find the policy of least risk, and that of most reward."""

        def find() -> list[float]:
            found = self._sweep.ask("find_extremes", self._job.limits, self._job.options)
            if found is None:
                raise KeyboardInterrupt
            return [*astuple(found.safest), *astuple(found.best), found.evaluations]

        asked = f"extremes within {self._job.limits!r}, seed {self._job.options.seed}"
        least, least_risk, most, most_risk, evaluations = self._records.remember(asked, 5, find)
        self._evaluations += int(evaluations)
        return Worth(least, least_risk), Worth(most, most_risk)

    def _hand_out(self, places: Sequence[float]) -> None:
        """Let points be solved at these levels or scales."""
        for place in places:
            level, scale = (None, place) if self._scaled else (place, None)
            job = replace(self._job, level=level, scale=scale)
            self._pieces[self._sweep.search(job)] = place

    def _settle(self) -> Iterator[FrontierPoint | None]:
        """Add the points whose turn it is, and yield each; None for one that failed."""
        while (waiting := self._waiting) and waiting[0] in self._ended:
            yield self._add(waiting[0])

    def _go_on(self, total: int, ahead: int) -> None:
        """Choose places, until so many are under way."""
        known = len(self._failures) + len(self._points)
        while not self._sweep.stopped and self._points and len(self._pieces) < total:
            under_way = [self._pieces[piece] for piece in self._waiting]
            if len(under_way) >= ahead:
                return
            places = sorted(self._pieces.values())
            place = choose_place(self._enclose(), places, under_way)
            if place is None:
                if not under_way:
                    self._batch.total = known
                return
            self._hand_out([place])

    def _enclose(self) -> Enclosure:
        return Enclosure(self._points, self._lines, self._base)

    def _add(self, piece: Piece) -> FrontierPoint | None:
        """Add the point of a piece that ended; None if it failed."""
        place = self._pieces[piece]
        if piece.error is not None:
            self._failures.append((place, piece.error))
            return None
        scaled = self._scaled
        result = piece.answer.unpack(piece.arguments[0].pose(self._problem))
        self._evaluations += piece.answer.evaluations
        own = result.safe
        point = FrontierPoint(
            bound=result.problem.risk_bound,
            level=None if scaled else place,
            scale=place if scaled else None,
            result=result,
            policy=result.policy if own else None,
            certificate=result.certificate if own else None,
            upper_bound=None if result.upper_bound is None else float(result.upper_bound),
            price=result.price,
            price_from=None if result.price is None else "dual",
        )
        self._lines = trim_lines([*self._lines, *result.lines])
        point = self._share(point)
        insort(self._points, point, key=lambda point: point.at)
        return point

    def share(self) -> None:
        """Use the policies of all points for all others, those before them as well."""
        self._points = [self._share(point) for point in self._points]

    def _share(self, point: FrontierPoint) -> FrontierPoint:
        """Return a point with the best policy of the other points that is within its bound."""
        own = [other for other in self._points if other.carried_from is None and other is not point]
        for other in sorted(own, key=lambda other: -(other.reward or -math.inf)):
            if other.policy is None or other.reward is None or other.risk is None:
                continue
            if point.reward is not None and point.reward >= other.reward:
                return point
            if other.risk > point.bound(other.reward) + TOLERANCE:
                continue
            certificate = certify(Problem(self._problem.model, point.bound), other.policy)
            if certificate.safe:
                policy = other.policy
                return replace(point, policy=policy, certificate=certificate, carried_from=other.at)
        return point

    def finish(self, seconds: float) -> Frontier:
        """Return the frontier: what bounds one point bounds all, and prices are compared."""
        if self._failures and not self._points and self.stopped_by is None:
            raise self._failures[0][1]
        enclosure, points = self._enclose(), []
        for point in self._points:
            limit = enclosure.find_limit(point.at)
            points.append(replace(point, upper_bound=None if limit == math.inf else limit))
        return Frontier(
            model=describe_model(self._problem.model),
            bound=self._base,
            solver=repr(self._job.solver),
            points=tuple(_compare_neighbours(points, self._base)),
            evaluations=self._evaluations,
            seconds=seconds,
            stopped_by=self.stopped_by,
            lines=self._lines,
            failures=tuple(
                FrontierFailure(place, describe_error(f"{place:g}", error))
                for place, error in sorted(self._failures, key=lambda failure: failure[0])
            ),
            lost_workers=self._sweep.lost,
        )


def _compare_neighbours(
    points: Sequence[FrontierPoint], base: RiskBound | None
) -> Iterator[FrontierPoint]:
    """Yield points, with a price from their neighbours where the dual gave none."""
    earning = [k for k, point in enumerate(points) if point.reward is not None]
    for k, point in enumerate(points):
        if point.price is not None or point.reward is None:
            yield point
            continue
        place = earning.index(k)
        first, last = earning[max(0, place - 1)], earning[min(place + 1, len(earning) - 1)]
        price = _quotient(points[first], points[last], base)
        yield replace(point, price=price, price_from=None if price is None else "difference")


def _quotient(first: FrontierPoint, last: FrontierPoint, base: RiskBound | None) -> float | None:
    """Return the reward gained per unit of allowed risk between two points."""
    assert first.reward is not None
    assert last.reward is not None
    step = last.at - first.at
    if base is not None:
        step *= (base(first.reward) + base(last.reward)) / 2
    return (last.reward - first.reward) / step if step > 0 else None
