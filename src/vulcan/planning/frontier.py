"""The frontier of risk and reward: the best reward for every allowed risk.

It helps to choose a risk bound. `trace_frontier` solves one model for a range of bounds, constant
ones or multiples k·Δ of one bound Δ, and puts the best certified reward beside the risk that each
allows. A level or a scale is called a *place* here.

**From below.** A policy that earns y with risk r is within every bound that allows y at least r: on
from the level r, or from the scale r / Δ(y). So what certified policies earn is a staircase, with a
step where each of them begins to be acceptable.

**From above.** An upper bound holds for all smaller levels and scales as well: a staircase, too,
with its steps at the points. And the searches prove lines, E g <= v + k er for every policy and the
prices k that they tried (`vulcan.bounds.base`): for the level D no policy earns more than

    min over prices k of   v_k + k D,

a concave envelope whose slope is the price of risk, constant between two corners. For a multiple
s Δ it is the largest y with y <= v_k + k s Δ(y), again the least over all prices. The least of
staircase and envelope is the limit. The envelope holds for randomised policies as well; upper
bounds of points may speak of deterministic ones alone (`Result.upper_bound`), and so does the limit
then.

**The price of risk** λ is the gain of the best reward per unit of allowed risk: the reward for
Δ + ε is about that for Δ, plus λ ε. It is known where the state graph is small enough to be
unrolled: it comes from the dual (`vulcan.exact.dual`), and is the slope of the frontier of
randomised policies.

**Where points go.** Between two neighbouring points the area between the certified reward and the
upper bound is unknown. The next points go where that area is largest, to where it is halved, so
that points crowd where the frontier bends and flat parts have few. Of deterministic policies the
frontier is a staircase, and halving would come close to a step only slowly. So where the point
before a step found nothing new, the next one goes just below the step: if there is no other policy
in between, its upper bound closes the area at once.

Points are chosen in rounds, at most one between two neighbours, and those of a round are solved at
once: a frontier does not depend on the number of workers. All searches of one worker share a state
graph, and evaluate each (state, action) once; only certificates evaluate it again. The result of a
search that samples depends on how much of the graph is known, so a worker unrolls the graph before
its first search, if that pays: then results depend neither on the worker nor on the order.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final

from vulcan.baselines.uct import UCT
from vulcan.bounds.base import RewardLine, RiskBound, limit_reward
from vulcan.bounds.forms import Constant
from vulcan.certificate.certify import Certificate, certify
from vulcan.errors import BoundError, ModelError, OptionError
from vulcan.exact.search import ExactSearch, UnrollingPolicy
from vulcan.graph.states import open_graph
from vulcan.model.interface import Model, describe_model
from vulcan.model.reader import ModelReader
from vulcan.numerics import TOLERANCE
from vulcan.parallel.executors import Channel, Executor
from vulcan.parallel.pool import choose_executor
from vulcan.parameters import knows_parameters, require_number
from vulcan.planning.automatic import Automatic, read_solver
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.planning.sweep import Searcher, SearchJob, Sweep, describe_error
from vulcan.policy.policy import AnyPolicy, RandomisedPolicy
from vulcan.problem import Problem
from vulcan.runtime.formatting import MISSING, TextTable, show_gap, show_probability, show_reward
from vulcan.runtime.limits import Limits, Monitor, OnProgress, StopReason
from vulcan.runtime.markup import build_card, build_table
from vulcan.solvers.base import EXACT, Options, Solver, require_solver
from vulcan.solvers.finding import Worth

__all__ = ["Enclosure", "Frontier", "FrontierPoint", "Span", "trace_frontier", "trim_lines"]

MOST_POINTS: Final = 10_000

DEFAULT_GAP: Final = 0.001
"""Default gap: closing it entirely may take long, and would not be visible."""

SAMPLES: Final = 100_000
"""Samples of a policy without a bound, by default."""

ROUNDS: Final = 5
"""A round has a fifth of the points, and at least two: larger ones would place fewer points where
the frontier bends."""

CELLS: Final = 16
"""Number of cells between two points in which the area is measured."""

ENOUGH: Final = 1e-4
"""Share of the whole area that is too small for another point."""

BELOW: Final = 1e-6
"""How far below a step a point is, as a share of the range."""

PARTS: Final = 16
"""Smallest number of straight lines of a bent curve between two corners."""

STRAIGHT: Final = 1e-4
"""Largest distance of a curve from its straight lines, relative to its height."""

Step = tuple[float, float]
"""A place, and a reward."""


@dataclass(frozen=True)
class Span:
    """A range of levels or scales, both ends included.

    Parameters
    ----------
    low, high
        The ends; None for the end that suits the model.
    """

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FrontierPoint:
    """The best policy for one bound.

    Attributes
    ----------
    bound
        The bound.
    level, scale
        The bound is this constant, or this multiple of the frontier's bound; the other is None.
    result
        The result of the search for this bound.
    policy, certificate
        The best safe policy: that of the result, or one of another point that is within this bound
        as well. None without one.
    carried_from
        The level or scale that the policy was found for, if it was not this one.
    upper_bound
        No policy within the bound earns more; as in `Result`. None if unknown.
    price
        The price of risk; None if unknown.
    """

    bound: RiskBound
    level: float | None
    scale: float | None
    result: Result
    policy: AnyPolicy | None
    certificate: Certificate | None
    carried_from: float | None = None
    upper_bound: float | None = None
    price: float | None = None

    def __repr__(self) -> str:
        earned = f"reward {show_reward(self.reward)}, risk {show_probability(self.risk)}"
        return f"<FrontierPoint at {self.at:.4g}: {earned if self.safe else 'no policy'}>"

    @property
    def at(self) -> float:
        """The level or the scale."""
        place = self.scale if self.level is None else self.level
        assert place is not None
        return place

    @property
    def safe(self) -> bool:
        """Whether there is a complete policy within the bound."""
        return self.certificate is not None

    @property
    def reward(self) -> float | None:
        """Certified reward of the best safe policy."""
        return None if self.certificate is None else float(self.certificate.reward)

    @property
    def risk(self) -> float | None:
        """Its certified risk."""
        return None if self.certificate is None else float(self.certificate.risk)

    @property
    def allowed(self) -> float | None:
        """The risk that the bound allows for its reward."""
        return self.level if self.certificate is None else float(self.certificate.allowed)

    @property
    def gap(self) -> float | None:
        """Largest relative distance of the reward from the optimum."""
        return self._best.gap

    @property
    def absolute_gap(self) -> float | None:
        """The same in units of reward."""
        return self._best.absolute_gap

    @property
    def _best(self) -> Result:
        """The result with what is known from other points."""
        return replace(self.result, certificate=self.certificate, upper_bound=self.upper_bound)

    @property
    def explanation(self) -> str:
        """How the search ended, and where the policy comes from if not from there."""
        found = self.result.summary
        return found if self.carried_from is None else f"policy for {self.carried_from:g}; {found}"

    @property
    def _remark(self) -> str:
        if self.carried_from is not None:
            return f"policy for {self.carried_from:.4g}"
        if not self.safe:
            return self.explanation.split(". ")[0]  # the first sentence
        return self.result.stopped_by or ""


@dataclass(frozen=True)
class Frontier:
    """Points in the order of the risk that they allow.

    Attributes
    ----------
    model
        Text of the model.
    bound
        The bound whose multiples were used; None for constant bounds.
    solver
        Text of the solver.
    points
        The points that were solved.
    seconds
        Time of everything.
    stopped_by
        `StopReason.INTERRUPTED` if Ctrl-C came before the last point; else None.
    lines
        Proved upper bounds on the reward of every policy, as functions of its risk.
    failures
        The error of each level or scale whose search raised one; the others continued.
    lost_workers
        Number of workers lost; their searches were repeated by others.
    """

    model: str
    bound: RiskBound | None
    solver: str
    points: tuple[FrontierPoint, ...]
    seconds: float
    stopped_by: StopReason | None = None
    lines: tuple[RewardLine, ...] = ()
    failures: Mapping[float, str] = field(default_factory=dict)
    lost_workers: int = 0

    @property
    def deterministic(self) -> bool:
        """Whether all policies are; upper bounds then hold for deterministic policies only."""
        return not any(isinstance(point.policy, RandomisedPolicy) for point in self.points)

    @cached_property
    def enclosure(self) -> Enclosure:
        """Proved lower and upper bounds at every level or scale, also between the points."""
        return Enclosure(self.points, self.lines, self.bound)

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def __iter__(self) -> Iterator[FrontierPoint]:
        """Return the points, one after the other."""
        return iter(self.points)

    def tabulate(self) -> TextTable:
        """Return the frontier as a table, for people."""
        scaled = self.bound is not None
        header = ["allowed", "reward", "risk", "at most", "gap", "price", ""]
        return TextTable(
            ["scale", *header] if scaled else header,
            [
                [
                    *([f"{point.scale:.4g}"] if scaled else []),
                    show_probability(point.allowed),
                    show_reward(point.reward),
                    show_probability(point.risk),
                    show_reward(point.upper_bound),
                    show_gap(point.gap, point.absolute_gap, point.upper_bound),
                    MISSING if point.price is None else f"{point.price:.4g}",
                    point._remark,
                ]
                for point in self.points
            ],
        )

    def __repr__(self) -> str:
        ends = f" from {self.points[0].at:.4g} to {self.points[-1].at:.4g}" if self.points else ""
        kind = "levels" if self.bound is None else f"multiples of {self.bound}"
        return f"<Frontier for {self.model}: {len(self)} {kind}{ends}>"

    def _repr_html_(self) -> str:
        table = self.tabulate()
        bound = "constant bounds" if self.bound is None else f"multiples of {self.bound}"
        return build_card(
            f"Frontier of {len(self)} points",
            build_table(table.header, table.rows, table.left),
            remark=f"{self.model}, {bound}",
        )

    def __str__(self) -> str:
        return str(self.tabulate())


# What is proved between the points.


def trim_lines(lines: Iterable[RewardLine]) -> tuple[RewardLine, ...]:
    """Return the lines of which each is the least for some risk, in the order of these risks."""
    least: list[RewardLine] = []
    for line in sorted(set(lines), key=lambda line: (-line.price, line.value)):
        if least and line.price == least[-1].price:
            continue
        while least and line.value <= least[-1].value:
            least.pop()  # the other is above it from the risk 0 on
        while len(least) > 1 and _cross(least[-1], line) <= _cross(least[-2], least[-1]):
            least.pop()
        if not least or _cross(least[-1], line) < 1.0:
            least.append(line)
    return tuple(least)


def _cross(steep: RewardLine, flat: RewardLine) -> float:
    """Return the risk from which on the flatter of two lines is the lower one."""
    return (flat.value - steep.value) / (steep.price - flat.price)


class Enclosure:
    """Proved lower and upper bounds on the best reward, at every level or scale.

    Parameters
    ----------
    points
        Certified policies, and upper bounds on the reward of all others.
    lines
        What holds for every policy.
    base
        The bound whose multiples are meant; None for constant bounds.

    Attributes
    ----------
    steps
        From which level or scale on which reward is earned by a certified policy, both increasing.
    limits
        The upper bounds in the order of levels or scales, each the least that holds.
    lines
        Those of the lines that matter.
    """

    def __init__(
        self,
        points: Sequence[FrontierPoint],
        lines: Iterable[RewardLine],
        base: RiskBound | None,
    ) -> None:
        self._base = base
        self.steps = _climb(
            (min(point.at, self.find_place(point.risk, point.reward)), point.reward)
            for point in points
            if point.risk is not None and point.reward is not None
        )
        self.limits = _descend((p.at, p.upper_bound) for p in points if p.upper_bound is not None)
        self.lines = trim_lines(lines)

    def find_place(self, risk: float, reward: float) -> float:
        """Return the least level or scale that accepts a policy; inf if none does."""
        if self._base is None:
            return risk
        allowed = self._base(reward)
        if risk <= 0:
            return 0.0 if allowed >= 0 else math.inf
        return risk / allowed if allowed > 0 else math.inf

    def find_reward(self, place: float) -> float:
        """Return the reward of a certified policy there; -inf without one."""
        number = bisect_right(self.steps, place, key=lambda step: step[0])
        return self.steps[number - 1][1] if number else -math.inf

    def find_limit(self, place: float) -> float:
        """Return an upper bound on the reward there; inf if nothing is proved."""
        limit = self._carry_limit(place)
        return min(limit, self._follow_lines(place, limit))

    def find_corners(self) -> list[float]:
        """Return the levels or scales where the limit bends: from line to line, and to a step."""
        risks = [_cross(steep, flat) for steep, flat in pairwise(self.lines)]
        rising = [line for line in self.lines if line.price > 0]
        for limit in {limit for _, limit in self.limits if rising and math.isfinite(limit)}:
            risks.append(max((limit - line.value) / line.price for line in rising))
        places = []
        for risk in risks:
            with suppress(BoundError):  # the bound can't be evaluated there: no policy is there
                places.append(self.find_place(risk, min(line(risk) for line in self.lines)))
        return sorted(place for place in places if math.isfinite(place))

    def trace_reward(self, low: float, high: float) -> list[Step]:
        """Return the corners of the staircase of certified policies, from one place to another."""
        begins = sorted({low, *(place for place, _ in self.steps if low < place <= high)})
        earned = [(place, self.find_reward(place)) for place in begins]
        earned = [step for step in earned if step[1] > -math.inf]
        return [
            corner
            for step, (end, _) in pairwise([*earned, (high, 0.0)])
            for corner in (step, (end, step[1]))
        ]

    def trace_limit(self, low: float, high: float) -> list[Step]:
        """Return points of the limit, straight lines between them; NaN where there is none."""
        jumps = [math.nextafter(place, math.inf) for place, _ in self.limits]
        places = sorted({*self._spread(low, high), *(end for end in jumps if low < end < high)})
        limits = [(place, self.find_limit(place)) for place in places]
        heights = [limit for _, limit in limits if math.isfinite(limit)]
        if not heights:
            return []
        if self._base is not None:
            most = STRAIGHT * (max(heights) - min(heights))
            bends = [self._bend(*ends, most, depth=8) for ends in pairwise(limits)]
            limits = [*limits[:1], *(step for bend in bends for step in bend)]
        return [(place, limit if math.isfinite(limit) else math.nan) for place, limit in limits]

    def _bend(self, left: Step, right: Step, most: float, depth: int) -> list[Step]:
        """Return points of the limit after one up to another, the closer the more it is bent."""
        place = (left[0] + right[0]) / 2
        middle = (place, self.find_limit(place))
        if depth == 0 or not abs(middle[1] - (left[1] + right[1]) / 2) > most:
            return [right]
        ends = (left, middle), (middle, right)
        return [step for pair in ends for step in self._bend(*pair, most, depth - 1)]

    def choose_places(self, places: Sequence[float], count: int) -> list[float]:
        """Return where the next points go; fewer than `count` if nothing is left to be seen.

        Parameters
        ----------
        places
            The levels or scales of the points so far, in order.
        count
            Number of places.
        """
        lowest = self.steps[0][1] if self.steps else 0.0
        gaps = {pair: self._measure(*pair, lowest) for pair in pairwise(places)}
        highest = max((gap for found in gaps.values() for gap in found), default=0.0)
        height = max(self.find_reward(places[-1]) - lowest, highest)
        areas = {pair: sum(gaps[pair]) / CELLS * (pair[1] - pair[0]) for pair in gaps}
        least = ENOUGH * (places[-1] - places[0]) * height
        chosen = []
        for pair in sorted(areas, key=lambda pair: -areas[pair]):
            place = self._split(places, pair, gaps[pair])
            if areas[pair] > least and pair[0] < place < pair[1]:
                chosen.append(place)
        return chosen[:count]

    def _measure(self, low: float, high: float, lowest: float) -> list[float]:
        """Return how far the limit is above what is earned, in the middle of each cell."""
        later = max(self.find_reward(high), lowest)
        gaps = []
        for k in range(CELLS):
            place = low + (high - low) * (k + 0.5) / CELLS
            limit = self.find_limit(place)
            # Without a proof, what is earned for more is the best guess.
            known = later if limit == math.inf else limit
            gaps.append(max(0.0, known - max(self.find_reward(place), lowest)))
        return gaps

    def _split(
        self, places: Sequence[float], pair: tuple[float, float], gaps: Sequence[float]
    ) -> float:
        """Return a place between two points: just below a step, or in the middle of the area."""
        low, high = pair
        number, reward = bisect_left(places, low), self.find_reward(low)
        fruitless = number > 0 and self.find_reward(places[number - 1]) == reward
        steps = [place for place, earned in self.steps if low < place <= high and earned > reward]
        if fruitless and steps:
            below = steps[0] - BELOW * (places[-1] - places[0])
            if below > low:
                return below
        sums = list(accumulate(gaps))
        cell = bisect_left(sums, sums[-1] / 2)
        return low + (high - low) * (cell + 0.5) / CELLS

    def _spread(self, low: float, high: float) -> list[float]:
        """Return the places of a range between which curves are straight, or almost."""
        bends = [*self.find_corners(), *(place for place, _ in self.limits)]
        ends = sorted({low, high, *(place for place in bends if low < place < high)})
        parts = 1 if self._base is None else PARTS
        inner = [a + (b - a) * k / parts for a, b in pairwise(ends) for k in range(parts)]
        return [*inner, high]

    def _carry_limit(self, place: float) -> float:
        """Return the least upper bound of a point for as much or more; inf without one."""
        number = bisect_left(self.limits, place, key=lambda step: step[0])
        return self.limits[number][1] if number < len(self.limits) else math.inf

    def _follow_lines(self, place: float, most: float) -> float:
        """Return the least limit of the lines."""
        if self._base is None:
            return min((line(place + TOLERANCE) for line in self.lines), default=most)
        if place <= 0 or not self.lines:
            return most
        bound = self._base.scale(place)
        reward = min(most, *(line(1.0) for line in self.lines))  # no risk is above 1
        with suppress(BoundError):  # it can't be evaluated so far below all that is earned
            while reward > -math.inf:  # from the line that is exceeded most to the next
                allowed = bound(reward) + TOLERANCE
                line = min(self.lines, key=lambda line: line(allowed))
                if line(allowed) >= reward:
                    break
                before, weights = reward, (1.0, line.price)
                reward, _ = limit_reward(bound, weights, line.value, -math.inf, before)
                if reward == before:
                    break  # within rounding
        return reward


def _climb(steps: Iterable[Step]) -> list[Step]:
    """Return those steps that lead higher than all before."""
    rising: list[Step] = []
    for place, reward in sorted(steps, key=lambda step: (step[0], -step[1])):
        if place < math.inf and (not rising or reward > rising[-1][1]):
            rising.append((place, reward))
    return rising


def _descend(limits: Iterable[Step]) -> list[Step]:
    """Return upper bounds, each the least of those for as much or more."""
    carried: list[Step] = []
    least = math.inf
    for place, limit in sorted(limits, reverse=True):
        least = min(least, limit)
        carried.append((place, least))
    return carried[::-1]


# The searches.


class _FrontierSearcher(Searcher):
    """A searcher whose searches share a state graph, and that finds the ends of a range."""

    def __init__(self, channel: Channel, problem: Problem) -> None:
        super().__init__(channel, problem, open_graph(ModelReader(problem.model)))
        self._prepared = False

    def search(self, job: SearchJob) -> Result:
        """Run a job, in a graph that is unrolled if that pays."""
        if not self._prepared:
            with suppress(ModelError, KeyboardInterrupt):  # the search itself will raise them
                self._unroll(job.limits)
        return super().search(job)

    def find_extremes(self, job: SearchJob) -> tuple[Worth, Worth] | None:
        """Return the worth of the policies of least risk and of most reward; None after Ctrl-C."""
        try:
            return self._unroll(job.limits) or (Worth(0.0, 0.0), self._sample_best(job))
        except KeyboardInterrupt:
            return None

    def _unroll(self, limits: Limits) -> tuple[Worth, Worth] | None:
        """Return both, if the state graph is small enough."""
        assert self._graph is not None
        self._prepared = True
        with Monitor(limits.keep(EXACT), self._channel.report) as monitor:
            run = ExactSearch(self._problem, self._graph.reader, monitor, None, self._graph)
            monitor.start_clock()
            if run.unroll(within=UnrollingPolicy(run.graph, monitor)):
                safest, best = run.sweep(0.0, 1.0), run.sweep(1.0, 0.0)
                return Worth(safest.reward, safest.risk), Worth(best.reward, best.risk)
            if monitor.requested:
                raise KeyboardInterrupt
        return None

    def _sample_best(self, job: SearchJob) -> Worth:
        """Return the best policy without a bound that sampling finds."""
        limits = replace(job.limits, gap=None)
        if limits.time_limit is limits.samples is limits.histories is None:
            limits = replace(limits, samples=SAMPLES)
        options = replace(job.options, graph=self._graph)
        result = plan_and_certify(
            self._problem, UCT(), limits, options, progress=self._channel.report
        )
        if result.stopped_by is not None and result.stopped_by.is_request:
            raise KeyboardInterrupt
        if result.certificate is None:
            raise OptionError(
                "the range of risk can't be found within the limits; give levels or scales"
            )
        return Worth(float(result.certificate.reward), float(result.certificate.risk))


@knows_parameters
def trace_frontier(
    problem: Problem | Model,
    *,
    solver: Solver | str | None = None,
    levels: Sequence[float] | Span | None = None,
    scales: Sequence[float] | Span | None = None,
    points: int = 21,
    time_limit: float | None = None,
    gap: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    parallel: int | str | Executor | None = None,
    progress: bool | OnProgress = False,
) -> Frontier:
    """Find the best certified reward, and the price of risk, over a range of risk bounds.

    Parameters
    ----------
    problem
        A model, or a problem. The bound of a problem is used for `scales` only.
    solver
        How to search for each point, as in `solve`; by default `Automatic()`.
    levels
        Constant bounds, or the `Span` that they cover. By default, unless there are scales, from
        the smallest risk that any policy has to that of the best policy without a bound.
    scales
        Multiples of the problem's bound, or the `Span` that they cover: `Span()` ends where the
        bound no longer binds, and 1, the bound itself, is among its scales.
    points
        Largest number of points of a span. They are placed where the frontier bends: where the
        certified reward and the proved upper bound are furthest apart.
    time_limit
        Seconds for the search of each point.
    gap
        Stop the search of a point when its policy is proved to be within this share of the best. By
        default 0.001, unless there is another solver or another limit.
    samples
        Samples for each point.
    seed
        Seed of the random numbers of each search.
    limits
        The limits above and others, for each point.
    parallel
        Number of points that are solved at once, or where: see `solve`. Several are processes by
        default, for which all arguments must be picklable. The points don't depend on it, as long
        as limits of time and memory don't end searches, and the state graph is small enough to be
        unrolled. Elsewhere a search that samples also uses what the earlier ones of the same worker
        have evaluated.
    progress
        True shows the progress in the terminal; a function is called with the `Progress` of the
        frontier as a whole.

    Returns
    -------
    Frontier
        With one point for each bound, those without a policy included, and the errors of other
        bounds (`failures`). After Ctrl-C, with the points so far: interrupted searches contribute
        what they had found.

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
    scaled = scales is not None
    if scaled and not isinstance(problem, Problem):
        raise OptionError("scales need a bound to scale: give a Problem, not a model alone")
    if scaled and levels is not None:
        raise OptionError("levels or scales, not both: a bound is constant, or scaled")
    own = problem if isinstance(problem, Problem) else Problem(problem, Constant(1.0))
    limits = Limits.combine(limits, time_limit=time_limit, samples=samples, gap=gap)
    solver = read_solver(solver, limits)
    if isinstance(solver, Automatic) and limits == Limits():
        limits = Limits(gap=DEFAULT_GAP)
    job = SearchJob(solver, limits, Options(seed), bound=True)
    require_solver(solver, limits, job.options)
    wanted = scales if scales is not None else Span() if levels is None else levels
    tracer = _Tracer(own, job, scaled)
    with Sweep(choose_executor(parallel), progress, _FrontierSearcher, own) as sweep:
        places = _choose_first(
            own.risk_bound, lambda: _find_extremes(sweep, job), wanted, points, scaled
        )
        sweep.total = max(len(places), points) if isinstance(wanted, Span) else len(places)
        while places and not sweep.stopped:
            tracer.solve(places, sweep)
            count = min(max(2, points // ROUNDS), sweep.total - tracer.solved)
            places = tracer.choose_places(count) if isinstance(wanted, Span) else []
        sweep.total = tracer.solved
    return tracer.finish(sweep)


def _find_extremes(sweep: Sweep, job: SearchJob) -> tuple[Worth, Worth]:
    """Return the worth of the policy of least risk, and of that of most reward."""
    found: tuple[Worth, Worth] | None = sweep.ask("find_extremes", job)
    if found is None:
        raise KeyboardInterrupt
    return found


def _choose_first(
    bound: RiskBound,
    find_extremes: Callable[[], tuple[Worth, Worth]],
    wanted: Sequence[float] | Span,
    points: int,
    scaled: bool,
) -> list[float]:
    """Return the levels or scales that are solved first: those given, or the ends of a span.

    If a span of scales has an end of its own, the bound itself is among them. `find_extremes` is
    called for such ends.
    """
    name = "scales" if scaled else "levels"
    if not isinstance(wanted, Span):
        given = sorted({_require_place(name, value) for value in wanted})
        if not given:
            raise OptionError(f"{name} are needed, and none are given")
        return given
    if not isinstance(points, int) or not 2 <= points <= MOST_POINTS:
        raise OptionError(
            f"points must be a whole number from 2 to {MOST_POINTS:,}, not {points!r}"
        )
    low, high = (
        None if end is None else _require_place(name, end) for end in (wanted.low, wanted.high)
    )
    extra, reason = set[float](), ""
    if low is None or high is None:
        first, last = _find_range(bound, *find_extremes(), points, scaled)
        low, high = (first if low is None else low), (last if high is None else high)
        extra = {1.0} if scaled else set()
        reason = f"; by themselves they go from {first:g} to {last:g}"
    if low > high:
        raise OptionError(f"{name} can't go up from {low:g} to {high:g}{reason}")
    return sorted({low, high, *extra})


def _find_range(
    bound: RiskBound, safest: Worth, best: Worth, points: int, scaled: bool
) -> tuple[float, float]:
    """Return the levels or scales between which a frontier rises.

    Levels go from the smallest risk of all to that of the best policy without a bound, scales from
    a small one to the one from which on the bound does not bind.
    """
    if not scaled:
        return safest.risk, max(best.risk, safest.risk)
    allowed = bound(best.reward)
    high = best.risk / allowed if allowed > 0 and best.risk > 0 else 1.0
    return high / points, high


def _require_place(name: str, value: Any) -> float:
    """Return a level or a scale."""
    if name == "scales" and value == 0:
        raise OptionError("scales must be above 0; level 0 allows no risk at all")
    return require_number(f"each of the {name}", value, above=0.0 if name == "scales" else None)


class _Tracer:
    """The points so far, by their levels or scales, and what they share."""

    def __init__(self, problem: Problem, job: SearchJob, scaled: bool) -> None:
        self._problem, self._job, self._scaled = problem, job, scaled
        self._base = problem.risk_bound if scaled else None
        self._points: dict[float, FrontierPoint] = {}
        self._errors: dict[float, BaseException] = {}
        self._lines: tuple[RewardLine, ...] = ()

    @property
    def solved(self) -> int:
        """Number of points, those that failed included."""
        return len(self._points) + len(self._errors)

    def solve(self, places: Sequence[float], sweep: Sweep) -> None:
        """Add points at some levels or scales."""
        tasks = {}
        for place in places:
            level, scale = (None, place) if self._scaled else (place, None)
            tasks[sweep.search(replace(self._job, level=level, scale=scale))] = place
        for task in sweep.run():
            place = tasks[task]
            if task.error is None:
                job: SearchJob = task.arguments[0]
                self._add(job, job.unpack(task.answer, self._problem))
            else:
                self._errors[place] = task.error

    def _add(self, job: SearchJob, result: Result) -> None:
        point = FrontierPoint(
            bound=result.problem.risk_bound,
            level=job.level,
            scale=job.scale,
            result=result,
            policy=result.policy if result.safe else None,
            certificate=result.certificate if result.safe else None,
            upper_bound=None if result.upper_bound is None else float(result.upper_bound),
            price=result.price,
        )
        self._points[point.at] = point
        self._lines = trim_lines([*self._lines, *result.lines])

    def choose_places(self, count: int) -> list[float]:
        """Return up to `count` levels or scales for the next points."""
        if not self._points or count <= 0:
            return []
        return self._enclose().choose_places(sorted([*self._points, *self._errors]), count)

    def _enclose(self) -> Enclosure:
        return Enclosure(list(self._points.values()), self._lines, self._base)

    def finish(self, sweep: Sweep) -> Frontier:
        """Return the frontier, whose points share policies and upper bounds."""
        if self._errors and not self._points and not sweep.stopped:
            raise self._errors[min(self._errors)]
        enclosure, points = self._enclose(), []
        for place in sorted(self._points):
            limit = enclosure.find_limit(place)
            point = replace(self._points[place], upper_bound=None if limit == math.inf else limit)
            points.append(self._share(point))
        return Frontier(
            model=describe_model(self._problem.model),
            bound=self._base,
            solver=repr(self._job.solver),
            points=tuple(points),
            seconds=sweep.seconds,
            stopped_by=sweep.stopped_by,
            lines=self._lines,
            failures={
                place: describe_error(f"{place:g}", self._errors[place])
                for place in sorted(self._errors)
            },
            lost_workers=sweep.lost,
        )

    def _share(self, point: FrontierPoint) -> FrontierPoint:
        """Return a point with the best policy of all points that is within its bound."""
        for other in sorted(self._points.values(), key=lambda other: -(other.reward or -math.inf)):
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
