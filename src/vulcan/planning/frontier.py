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

**Further constraints** of a problem stay as they are: the frontier is that of the policies that
keep them. Where their bounds are constant, the searches prove lines for these policies; elsewhere
the frontier is bounded from above by the staircase alone. Several frontiers, each with another
value of one constraint, show the reward over both.

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
once: a frontier does not depend on the number of workers (`vulcan.planning.sweep`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, Final

from vulcan.bounds.base import RewardLine, RiskBound, limit_reward
from vulcan.bounds.forms import Constant
from vulcan.certificate.certify import certify
from vulcan.constraints import Constraint
from vulcan.errors import BoundError, OptionError
from vulcan.model.interface import Model, describe_model
from vulcan.numerics import TOLERANCE
from vulcan.parallel.executors import Executor
from vulcan.parameters import knows_parameters, require_number, require_whole
from vulcan.planning.automatic import Automatic
from vulcan.planning.result import Result
from vulcan.planning.solve import read_solver
from vulcan.planning.sweep import ResultRow, describe_error, open_sweep
from vulcan.policy.policy import AnyPolicy, RandomisedPolicy
from vulcan.problem import Problem, require_problem
from vulcan.runtime.formatting import (
    MISSING,
    TextTable,
    build_card,
    show_gap,
    show_probability,
    show_reward,
)
from vulcan.runtime.limits import Limits, OnProgress, StopReason
from vulcan.solvers.base import Options, Solver, require_solver
from vulcan.solvers.finding import Worth

MOST_POINTS: Final = 10_000

DEFAULT_GAP: Final = 0.001  # closing it entirely may take long, and would not be visible

ROUNDS: Final = 5
"""A round has a fifth of the points, and at least two: larger ones would place fewer points where
the frontier bends."""

CELLS: Final = 16  # number of cells between two points in which the area is measured
ENOUGH: Final = 1e-4  # share of the whole area that is too small for another point
BELOW: Final = 1e-6  # how far below a step a point is, as a share of the range

STRAIGHT: Final = 1e-4
"""Largest distance of a curve from its straight lines, relative to its height."""

Step = tuple[float, float]  # a place, and a reward


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
class FrontierPoint(ResultRow):
    """The best policy for one bound.

    Attributes
    ----------
    bound
        The bound.
    level, scale
        The bound is this constant, or this multiple of the frontier's bound; the other is None.
    result
        The result of the search for this bound.
    best
        The same with what is known from all points: the best safe policy, that of the result or one
        of another point that is within this bound as well, its certificate, and the least upper
        bound. The numbers of the point are those of `best`.
    carried_from
        The level or scale that the policy was found for, if it was not this one.
    """

    bound: RiskBound
    level: float | None
    scale: float | None
    result: Result
    best: Result
    carried_from: float | None = None

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
    def _source(self) -> Result:
        return self.best

    @property
    def policy(self) -> AnyPolicy | None:
        """The best safe policy; None without one."""
        return self.best.policy

    @property
    def price(self) -> float | None:
        """The price of risk; None if unknown."""
        return self.best.price

    @property
    def allowed(self) -> float | None:
        """The risk that the bound allows for the reward."""
        return self.level if self.certificate is None else float(self.certificate.allowed)

    @property
    def explanation(self) -> str:
        """How the search ended, and which other point supplied the policy, if one did."""
        found = self.result.summary
        return found if self.carried_from is None else f"policy for {self.carried_from:g}; {found}"


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
    constraints
        Further limits that all policies keep.
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
    constraints: tuple[Constraint, ...] = ()
    failures: Mapping[float, str] = field(default_factory=dict)
    lost_workers: int = 0

    @property
    def deterministic(self) -> bool:
        """Whether all policies are; upper bounds then hold for deterministic policies only."""
        return not any(isinstance(point.policy, RandomisedPolicy) for point in self.points)

    @cached_property
    def steps(self) -> list[Step]:
        """Steps (level or scale, certified reward), both increasing."""
        earned = [
            (min(point.at, self.find_place(point.risk, point.reward)), point.reward)
            for point in self.points
            if point.risk is not None and point.reward is not None
        ]
        rising: list[Step] = []
        for place, reward in sorted(earned, key=lambda step: (step[0], -step[1])):
            if place < math.inf and (not rising or reward > rising[-1][1]):
                rising.append((place, reward))
        return rising

    @cached_property
    def limits(self) -> list[Step]:
        """The upper bounds in the order of levels or scales, each the least for as much or more."""
        carried: list[Step] = []
        least = math.inf
        known = [(p.at, p.upper_bound) for p in self.points if p.upper_bound is not None]
        for place, limit in sorted(known, reverse=True):
            least = min(least, limit)
            carried.append((place, least))
        return carried[::-1]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def __iter__(self) -> Iterator[FrontierPoint]:
        """Return the points, one after the other."""
        return iter(self.points)

    # What is proved between the points.

    def find_place(self, risk: float, reward: float) -> float:
        """Return the least level or scale that accepts a policy; inf if none does."""
        if self.bound is None:
            return risk
        allowed = self.bound(reward)
        if risk <= 0:
            return 0.0 if allowed >= 0 else math.inf
        return risk / allowed if allowed > 0 else math.inf

    def find_reward(self, place: float) -> float:
        """Return the reward of a certified policy there; -inf without one."""
        number = bisect_right(self.steps, place, key=lambda step: step[0])
        return self.steps[number - 1][1] if number else -math.inf

    def find_limit(self, place: float) -> float:
        """Return an upper bound on the reward there; inf if nothing is proved."""
        number = bisect_left(self.limits, place, key=lambda step: step[0])
        limit = self.limits[number][1] if number < len(self.limits) else math.inf
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
        bends = [*self.find_corners(), *(place for place, _ in self.limits), *jumps]
        ends = sorted({low, high, *(place for place in bends if low < place < high)})
        limits = [(place, self.find_limit(place)) for place in ends]
        heights = [limit for _, limit in limits if math.isfinite(limit)]
        if not heights:
            return []
        most = STRAIGHT * (max(heights) - min(heights))
        pieces = [self._bend(*pair, most, depth=12) for pair in pairwise(limits)]
        limits = [*limits[:1], *(step for piece in pieces for step in piece)]
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
        """Return where the next points go, between those so far; at most `count`, perhaps none."""
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

    def _follow_lines(self, place: float, most: float) -> float:
        """Return the least limit of the lines."""
        if self.bound is None:
            return min((line(place + TOLERANCE) for line in self.lines), default=most)
        if place <= 0 or not self.lines:
            return most
        bound = self.bound.scale(place)
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

    # For people.

    def tabulate(self) -> TextTable:
        """Return the frontier as a table, for people."""
        scaled = self.bound is not None

        def describe(point: FrontierPoint) -> str:
            if point.carried_from is not None:
                return f"policy for {point.carried_from:.4g}"
            if not point.safe:
                return point.explanation.split(". ")[0]  # the first sentence
            return point.result.stopped_by or ""

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
                    describe(point),
                ]
                for point in self.points
            ],
        )

    def __repr__(self) -> str:
        ends = f" from {self.points[0].at:.4g} to {self.points[-1].at:.4g}" if self.points else ""
        kind = "levels" if self.bound is None else f"multiples of {self.bound}"
        return f"<Frontier for {self.model}: {len(self)} {kind}{ends}>"

    def _repr_html_(self) -> str:
        bound = "constant bounds" if self.bound is None else f"multiples of {self.bound}"
        heading = f"Frontier of {len(self)} points"
        return build_card(heading, self.tabulate().html, f"{self.model}, {bound}")

    def __str__(self) -> str:
        return str(self.tabulate())


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
    progress: bool | OnProgress | None = None,
) -> Frontier:
    """Find the best certified reward, and the price of risk, over a range of risk bounds.

    Parameters
    ----------
    problem
        A model, or a problem. The bound of a problem is used for `scales` only; its further
        constraints hold at all points.
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
    time_limit, samples, seed, limits
        Of the search of each point, as in `solve`.
    gap
        Stop the search of a point when its policy is proved to be within this share of the best. By
        default 0.001, unless there is another solver or another limit.
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
    require_problem(own)
    limits = Limits.combine(limits, time_limit=time_limit, samples=samples, gap=gap)
    solver = read_solver(solver, limits)
    if isinstance(solver, Automatic) and limits == Limits():
        limits = Limits(gap=DEFAULT_GAP)
    how = (solver, limits, Options(seed))
    require_solver(*how)
    wanted = scales if scales is not None else Span() if levels is None else levels
    found: dict[float, FrontierPoint] = {}
    errors: dict[float, BaseException] = {}

    def collect() -> Frontier:
        points = tuple(found[at] for at in sorted(found))
        lines = trim_lines(line for point in points for line in point.result.lines)
        base = own.risk_bound if scaled else None
        about = describe_model(own.model), base, repr(solver), points, 0.0, None
        return Frontier(*about, lines, own.constraints)

    with open_sweep(own, parallel, progress, shares_graph=True) as sweep:
        find_extremes = partial(sweep.call, "find_extremes", *how)
        places = _choose_first(own.risk_bound, find_extremes, wanted, points, scaled)
        sweep.total = max(len(places), points) if isinstance(wanted, Span) else len(places)
        while places and not sweep.stopped:
            bounds = {at: own.risk_bound.scale(at) if scaled else Constant(at) for at in places}
            for at, result, error in sweep.solve({at: (bounds[at], *how) for at in places}):
                if result is not None:
                    best = result
                    if not result.safe:
                        best = replace(result, policy=None, certificate=None)
                    level, scale = (None, at) if scaled else (at, None)
                    found[at] = FrontierPoint(bounds[at], level, scale, result, best)
                elif error is not None:
                    errors[at] = error
            count = sweep.total - len(found) - len(errors)
            places = []
            if isinstance(wanted, Span) and found and count > 0:
                solved = sorted([*found, *errors])
                places = collect().choose_places(solved, min(max(2, points // ROUNDS), count))
        sweep.total = len(found) + len(errors)
    if errors and not found and not sweep.stopped:
        raise errors[min(errors)]
    frontier = collect()
    return replace(
        frontier,
        points=_share_points(own, frontier),
        seconds=sweep.seconds,
        stopped_by=sweep.stopped_by,
        failures={at: describe_error(f"{at:g}", errors[at]) for at in sorted(errors)},
        lost_workers=sweep.lost,
    )


def _share_points(problem: Problem, frontier: Frontier) -> tuple[FrontierPoint, ...]:
    """Return the points, each with the best policy of all and the least upper bound there."""
    known = [
        (point.reward, point.risk, point.policy, point.at)
        for point in frontier
        if point.policy is not None and point.reward is not None and point.risk is not None
    ]
    known.sort(key=lambda policy: -policy[0])
    shared = []
    for point in frontier:
        limit = frontier.find_limit(point.at)
        best = replace(point.best, upper_bound=None if limit == math.inf else limit)
        carried_from = None
        for reward, risk, policy, at in known:
            if point.reward is not None and point.reward >= reward:
                break
            if risk <= point.bound(reward) + TOLERANCE:
                constraints = problem.constraints
                own = Problem(problem.model, point.bound, constraints=constraints)
                certificate = certify(own, policy)
                if certificate.safe:
                    best = replace(best, policy=policy, certificate=certificate)
                    carried_from = at
                    break
        shared.append(replace(point, best=best, carried_from=carried_from))
    return tuple(shared)


def _choose_first(
    bound: RiskBound,
    find_extremes: Callable[[], tuple[Worth, Worth] | None],
    wanted: Sequence[float] | Span,
    points: int,
    scaled: bool,
) -> list[float]:
    """Return the levels or scales that are solved first: those given, or the ends of a span.

    Levels go from the smallest risk of all to that of the best policy without a bound, scales from
    a small one to the one from which on the bound does not bind, with the bound itself among them.
    """
    name = "scales" if scaled else "levels"
    if not isinstance(wanted, Span):
        given = sorted({_require_place(name, value) for value in wanted})
        if not given:
            raise OptionError(f"{name} are needed, and none are given")
        return given
    require_whole("points", points, 2, MOST_POINTS)
    low, high = (
        None if end is None else _require_place(name, end) for end in (wanted.low, wanted.high)
    )
    extra, reason = set[float](), ""
    if low is None or high is None:
        if (extremes := find_extremes()) is None:
            raise KeyboardInterrupt
        safest, best = extremes
        first, last = safest.risk, max(best.risk, safest.risk)
        if scaled:
            allowed = bound(best.reward)
            last = best.risk / allowed if allowed > 0 and best.risk > 0 else 1.0
            first = last / points
        low, high = (first if low is None else low), (last if high is None else high)
        extra = {1.0} if scaled else set()
        reason = f"; by themselves they go from {first:g} to {last:g}"
    if low > high:
        raise OptionError(f"{name} can't go up from {low:g} to {high:g}{reason}")
    return sorted({low, high, *extra})


def _require_place(name: str, value: Any) -> float:
    """Return a level or a scale."""
    if name == "scales" and value == 0:
        raise OptionError("scales must be above 0; level 0 allows no risk at all")
    return require_number(f"each of the {name}", value, above=0.0 if name == "scales" else None)
