"""Solving a model for one bound after the other."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.reward_limit import RewardLine
from vulcan.bounds.straight import Constant
from vulcan.certificates.certificate import certify
from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.graphs.array_graph import open_graph
from vulcan.model.interface import Model, describe_model
from vulcan.model.reader import ModelReader
from vulcan.planning.batch import watch_batch
from vulcan.planning.frontier.enclosure import Enclosure, trim_lines
from vulcan.planning.frontier.placement import choose_place
from vulcan.planning.frontier.point import Frontier, FrontierPoint
from vulcan.planning.frontier.span import RangeFinder, Span
from vulcan.planning.solve import plan_and_certify
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.automatic import Automatic
from vulcan.solvers.base import Options, Solver, require_solver
from vulcan.tolerance import TOLERANCE

__all__ = ["trace_frontier"]

DEFAULT_GAP: Final = 0.001
"""A frontier is there to be looked at, and points without any gap may take long."""


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
    on_point
        Called with each point when it is done, before prices are compared with its neighbours.
    on_progress
        Called now and then with a `Progress` of the frontier as a whole.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Frontier
        With one point for each bound, those without a policy included. After Ctrl-C, with the
        points so far.

    Raises
    ------
    OptionError
        If levels or scales can't be used, or have no end that can be found.
    ModelError, BoundError
        As in `solve`.

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
    tracer = _Tracer(own, chosen, limits, seed, scaled=scales is not None)
    with watch_batch(on_progress, progress) as batch:
        try:
            wanted = Span() if levels is scales is None else levels if scales is None else scales
            assert wanted is not None
            places = tracer.choose(wanted, points, batch.tell)
            batch.total = max(len(places), points if isinstance(wanted, Span) else 0)
            while places:
                point = tracer.solve(places.pop(0), batch.tell)
                if not places and tracer.count < batch.total:
                    places = tracer.choose_next()
                    batch.total = batch.total if places else tracer.count
                batch.finish(point.result)
                if on_point is not None:
                    on_point(point)
                if point.result.stopped_by is StopReason.INTERRUPTED:
                    raise KeyboardInterrupt
            tracer.share()
        except KeyboardInterrupt:
            tracer.stopped_by = StopReason.INTERRUPTED
        return tracer.finish(batch.seconds)


class _Tracer:
    """The points so far, and what they share."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        limits: Limits,
        seed: int,
        scaled: bool,
    ) -> None:
        self._problem, self._solver = problem, solver
        self._graph = open_graph(ModelReader(problem.model))
        self._limits, self._options = limits, Options(seed, graph=self._graph)
        self._scaled = scaled
        self._base = problem.risk_bound if scaled else None
        self._points: list[FrontierPoint] = []
        self._lines: tuple[RewardLine, ...] = ()
        self.stopped_by: StopReason | None = None

    @property
    def count(self) -> int:
        """How many points there are."""
        return len(self._points)

    def choose(
        self, wanted: Sequence[float] | Span, points: int, on_progress: OnProgress
    ) -> list[float]:
        """Return the levels or scales to begin with, in their order."""
        finder = RangeFinder(self._problem, self._limits, self._options, on_progress)
        return finder.choose(wanted, points, self._scaled)

    def choose_next(self) -> list[float]:
        """Return the level or scale that would tell most; none if nothing more would be seen."""
        place = choose_place(self._enclose(), [point.at for point in self._points])
        return [] if place is None else [place]

    def _enclose(self) -> Enclosure:
        return Enclosure(self._points, self._lines, self._base)

    def solve(self, place: float, on_progress: OnProgress) -> FrontierPoint:
        """Add the point of a level or scale."""
        scaled = self._scaled
        bound = self._problem.risk_bound.scale(place) if scaled else Constant(place)
        problem = Problem(self._problem.model, bound)
        result = plan_and_certify(
            problem, self._solver, self._limits, self._options, bound=True, on_progress=on_progress
        )
        own = result.safe
        point = FrontierPoint(
            bound=bound,
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
        enclosure, points = self._enclose(), []
        for point in self._points:
            limit = enclosure.find_limit(point.at)
            points.append(replace(point, upper_bound=None if limit == math.inf else limit))
        return Frontier(
            model=describe_model(self._problem.model),
            bound=self._base,
            solver=repr(self._solver),
            points=tuple(_compare_neighbours(points, self._base)),
            evaluations=self._graph.evaluations,
            seconds=seconds,
            stopped_by=self.stopped_by,
            lines=self._lines,
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
