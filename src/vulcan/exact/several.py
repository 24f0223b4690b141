"""Several constraints: prices, mixtures and fronts over all of them at once.

A problem limits D charges x_1 ... x_D, the first of them the risk of failing, each by
E x_k <= Δ_k(E g) with Δ_k concave and nondecreasing (`vulcan.constraints`).

**The dual bound.** For a weight w and prices λ >= 0 one dynamic program gives the largest value v
of w E g - Σ λ_k E x_k over all policies, randomised or not. A policy within all limits with reward
y has

    w y - Σ λ_k Δ_k(y)  <=  v,

and the left side is convex in y, so the largest such y bounds every policy. With one limit this is
the dual bound of `vulcan.exact.dual`, for the sum of the limits, each times its price.

A cap on the risk ahead is no sum. But where the least risk that a policy can keep the cap with is
above it after an action, no policy takes that action: dynamic programs leave it out, so that their
bound knows of the cap, as far as single actions break it.

**The best mixture.** Policies are points (g, x). A linear program over the weights of the points
found so far maximises the reward of their mixture, with tangents of Δ_k as rows; its prices are the
next direction, and the dynamic program in that direction finds a new point or proves that the
mixture is the best. A vertex mixes at most D + 1 policies. As long as no mixture is within the
limits, the program minimises the sum of the excesses instead: if no point is beyond the best
mixture then, no reward satisfies the inequality above, and no policy is within the limits. With
large penalties on the excess over all limits but one, it says by how much that one alone must be
raised.

**Deterministic policies** come from the same dynamic programs, from joint fronts of a few points
for each state–step pair (`vulcan.kernels.joint_front`) near the best prices, and, where nothing was
dropped that matters, from all points: then the best policy is proved, or that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RewardLine, RiskBound, Tangent, limit_reward
from vulcan.bounds.forms import Constant
from vulcan.constraints import RiskAhead
from vulcan.exact.acceptance import ACCEPTED, UNIT
from vulcan.exact.sweeps import PolicyPoint, make_smallest_levels
from vulcan.graph.levels import Decisions, collect_decisions
from vulcan.graph.states import MOST_ROWS
from vulcan.kernels import codes
from vulcan.numerics import END, TOLERANCE, Number

if TYPE_CHECKING:
    from vulcan.exact.search import ExactSearch

Floats = NDArray[np.float64]

MOST_POINTS: Final = 400  # dynamic programs of the dual bound: some twenty are usual
PENALTY: Final = 1e4  # of exceeding a limit, where another one alone may be raised
STEEPEST: Final = 1e300  # slope of a tangent times a reward; steeper ones are left out
CLOSE: Final = 1e-10  # relative improvement that is worth another dynamic program

SLACKS: Final = (1e-3, 1e-2, 0.1, 1.0, math.inf)  # dual gaps of points, relative to the value
FIRST_KEPT: Final = 4  # points of a pair in the first round
MOST_KEPT: Final = 256  # without a time limit
MOST_KEPT_IN_TIME: Final = 1024  # with one
CHUNK: Final = 1 << 24  # pairs of points between two looks at the limits
MOST_WORK: Final = 2_000_000_000  # pairs of points of all rounds without a time limit
GOOD_GAP: Final = 1e-4  # the rounds end below this gap, unless another one is requested
FIRST_ROOM: Final = 1 << 14


@dataclass(frozen=True)
class WeightedBound:
    """The sum of several bounds, each times its price; what `limit_reward` needs of a bound."""

    bounds: Sequence[RiskBound]
    prices: Floats

    def __call__(self, reward: float) -> float:
        """Return the value of the sum."""
        return math.fsum(p * b(reward) for p, b in self._pairs())

    def tangent(self, reward: float) -> Tangent:
        """Return a tangent."""
        tangents = [(p, b.tangent(reward)) for p, b in self._pairs()]
        return Tangent(
            reward,
            math.fsum(p * t.value for p, t in tangents),
            math.fsum(p * t.slope for p, t in tangents),
            math.fsum(p * t.doubt for p, t in tangents) + 4 * UNIT * len(tangents),
        )

    def enclose(self, low: Number, high: Number) -> tuple[Number, Number]:
        """Return two numbers between which the sum lies at all rewards from `low` to `high`."""
        parts = [(p, *map(float, b.enclose(low, high))) for p, b in self._pairs()]
        size = math.fsum(p * (abs(least) + abs(most)) for p, least, most in parts)
        error = 8 * UNIT * len(parts) * size
        least, most = (math.fsum(part[0] * part[k] for part in parts) for k in (1, 2))
        return least - error, most + error

    def _pairs(self) -> list[tuple[float, RiskBound]]:
        return [(p, b) for p, b in zip(self.prices.tolist(), self.bounds, strict=True) if p > 0]


class PricedPoints:
    """Policies found so far under several limits; `scales` are usual sizes of charges."""

    def __init__(self, bounds: Sequence[RiskBound], scales: Floats) -> None:
        self.bounds, self.scales = list(bounds), scales
        # Policies found so far, and the weights for which each is the best.
        self.points: list[PolicyPoint] = []
        self.directions: list[Floats] = []

    def knows(self, point: PolicyPoint) -> bool:
        """Return whether a policy that is worth the same was found before."""
        worth = point.reward, point.charges
        return any(worth == (other.reward, other.charges) for other in self.points)

    def add_tangents(self, tangents: list[tuple[int, Tangent]], reward: float) -> bool:
        """Add the tangents of all limits at a reward; False if they are there already."""
        added, most = False, max(abs(point.reward) for point in self.points)
        for k, bound in enumerate(self.bounds):
            if bound(reward) == -math.inf:
                continue
            tangent = bound.tangent(reward)
            if tangent.slope > STEEPEST / max(1.0, most):  # as at the floor of a square root
                continue
            near = tangent.value + 1e-9 * self.scales[k]
            if all(line(reward) > near for j, line in tangents if j == k):
                tangents.append((k, tangent))
                added = True
        return added


class Several(PricedPoints):
    """What an exact search knows of a problem with several limits.

    `charges` has what each action row is charged, the immediate risk first; `sizes` bound the sums
    of absolute charges, and `cap` the risk ahead.
    """

    def __init__(self, search: ExactSearch) -> None:
        problem, levels = search.problem, search.levels
        summed = [k for k, c in enumerate(problem.constraints) if not isinstance(c, RiskAhead)]
        caps = [c.level for c in problem.constraints if isinstance(c, RiskAhead)]
        graph = search.graph
        means = graph.charges.array["mean"][: graph.charges.count][:, summed]
        risks = graph.actions.array["immediate_risk"][: graph.actions.count]
        self.search, self.cap = search, min(caps, default=math.inf)
        self.charges: Floats = np.ascontiguousarray(np.column_stack((risks, means)))
        bounds = [problem.risk_bound, *(problem.constraints[k].bound for k in summed)]
        steps = len(levels.arrays.first) - 1
        # Charges may cancel within an action, and are rounded before.
        likely = graph.outcomes.array["probability"][: graph.outcomes.count]
        own = graph.outcome_charges.array["own"][: graph.outcome_charges.count][:, summed]
        firsts = graph.actions.array["first_outcome"][: graph.actions.count]
        each = np.add.reduceat(np.abs(own) * likely[:, None], firsts) if len(firsts) else own
        self.sizes = steps * np.column_stack((risks, each)).max(axis=0, initial=0.0)
        super().__init__(bounds, np.maximum(self.sizes, 1e-12))
        self.weights = np.zeros(1 + len(self.bounds))  # of the last direction: w and the prices
        self._least = np.zeros(0)  # risks ahead, if they are capped
        if math.isfinite(self.cap):
            from vulcan.kernels.dp import find_least_risks

            self._least = np.zeros(len(levels))
            given = levels.arrays, self.charges, self.cap + TOLERANCE, self._least
            find_least_risks(*given)

    @property
    def hopeless(self) -> bool:
        """Whether no policy keeps the cap."""
        return len(self._least) > 0 and bool(self._least[0] == math.inf)

    def evaluate(self, weights: Floats) -> Floats:
        """Return what the best policy for some weights is worth from each pair on.

        The columns are the value, the reward, and the charges (`vulcan.kernels.dp.sweep_several`).
        """
        from vulcan.kernels.dp import sweep_several

        values = np.zeros((len(self.search.levels), 1 + len(weights)))
        given = weights, values, self.cap + TOLERANCE, self._least
        sweep_several(self.search.levels.arrays, self.charges, *given)
        return values

    def sweep(self, weights: Floats) -> tuple[PolicyPoint, float]:
        """Return the best policy for some weights, and its value."""
        values = self.evaluate(weights)

        def decide() -> Decisions:
            return self.search.levels.decide(self.choose(weights))

        value, reward, *charged = values[0].tolist()
        point = PolicyPoint(reward, charged[0], decide, charges=tuple(charged))
        if math.isfinite(self.cap):
            point = self._look_ahead(point, values)
        return point, value

    def _look_ahead(self, point: PolicyPoint, values: Floats) -> PolicyPoint:
        """Return the point with the largest risk that is ahead at any pair of its policy."""
        reached = np.unique(point.decide().pairs)
        ahead = float(values[reached, 2].max(initial=0.0))
        return replace(point, ahead=ahead)

    def judge(self, point: PolicyPoint) -> bool | None:
        """Return whether a policy is within all limits; None if rounding leaves that open."""
        test = self.search.bound_test
        verdict: bool | None = True
        low, high = test.lower_reward(point.reward), test.raise_reward(point.reward)
        charged = zip(self.bounds, point.charges, self.sizes.tolist(), strict=True)
        limits = [(bound, x, 2 * test.share * size) for bound, x, size in charged]
        if math.isfinite(self.cap):
            limits.append((Constant(self.cap), point.ahead, 4 * test.risk_share))
        for bound, x, error in limits:
            least, most = float(bound.enclose(low, low)[0]), float(bound.enclose(high, high)[1])
            if x - error > most + TOLERANCE:
                return False
            if x + error > least + ACCEPTED:
                verdict = None
        return verdict

    def look(self, weights: Floats) -> tuple[float, bool]:
        """Keep the best policy for some weights, and lower the upper bound where that does.

        Return its value, and whether it is new. Where the other limits are constant, the bound is
        a line over the allowed risk.
        """
        point, best = self.sweep(weights)
        limit = self.bound_by(weights, best)
        if limit < self.search.upper:
            self.search.upper, self.weights = limit, weights
        if weights[0] > 0 and all(isinstance(bound, Constant) for bound in self.bounds[1:]):
            allowed = [bound(0.0) + TOLERANCE for bound in self.bounds[1:]]
            most = best + 2 * self.find_error(weights, best) + float(weights[2:] @ allowed)
            line = RewardLine(float(weights[1] / weights[0]), most / float(weights[0]))
            self.search.lines = (*self.search.lines, line)
        self.search.report()
        new = not self.knows(point)
        self.keep(point, weights)
        return best, new

    def keep(self, point: PolicyPoint, weights: Floats) -> None:
        """Keep a policy for mixtures, and offer it as an answer."""
        self.points.append(point)
        self.directions.append(weights)
        self.search.rewards.append(point.reward)
        self.search.offer(point)

    def choose(self, weights: Floats) -> NDArray[np.int32]:
        """Return the action row that the best policy for some weights takes in each pair."""
        from vulcan.kernels.dp import choose_several

        choice = np.zeros(len(self.search.levels), np.int32)
        values = self.evaluate(weights)
        given = weights, values, choice, self.cap + TOLERANCE, self._least
        choose_several(self.search.levels.arrays, self.charges, *given)
        return choice

    def bound_by(self, weights: Floats, value: float) -> float:
        """Return the largest reward within the limits, given the largest value for some weights."""
        search, reward_weight = self.search, float(weights[0])
        if not weights.any():
            return math.inf
        bound: Any = WeightedBound(self.bounds, weights[1:])
        value += 2 * self.find_error(weights, value)
        least = search.bound_test.lower_reward(search.least)
        return limit_reward(bound, (reward_weight, 1.0), value, least, search.most)[0]

    def find_error(self, weights: Floats, value: float) -> float:
        """Return a bound on the rounding error of the value of a policy for some weights."""
        test, charged = self.search.bound_test, float(weights[1:] @ self.sizes)
        error = float(weights[0]) * test.find_error(self.search.most)
        return error + test.share * (charged + abs(value))


def find_prices(search: ExactSearch, look_first: Callable[[], None] = lambda: None) -> None:
    """Find the best mixture of policies within all limits, and the dual bound.

    `look_first` may add policies, and lower the bound, once the extreme ones are known.
    """
    several = search.several
    with search.monitor.clock_stopped():
        load_kernels()
    if not len(search.levels):
        empty = PolicyPoint(0.0, 0.0, charges=(0.0,) * len(several.bounds))
        search.offer(empty)
        search.upper = 0.0
        return
    if several.hopeless:
        search.upper = -math.inf
        return
    reward_alone = np.array([1.0, *np.zeros(len(several.bounds))])
    top, worst = (several.sweep(sign * reward_alone)[0] for sign in (1, -1))
    search.least = worst.reward
    search.most = search.upper = search.bound_test.raise_reward(top.reward)
    several.keep(top, reward_alone)
    if search.closed:
        return
    for k in range(len(several.bounds)):
        if not search.may_go_on():
            return
        weights = np.zeros(1 + len(several.bounds))
        weights[[0, 1 + k]] = 1e-9, 1.0
        several.keep(several.sweep(weights)[0], weights)
    look_first()
    program = MixtureProgram(several)
    while len(several.points) < MOST_POINTS and search.may_go_on():
        found = program.solve()
        if found is None:
            break
        weights, value = found
        best, new = several.look(weights)
        done = not new or best <= value + CLOSE * (1 + abs(value))
        if done or search.closed or search.upper == -math.inf:
            break
    if search.upper == -math.inf:
        search.relaxations = find_relaxations(several, search.may_go_on)
    mixture = mix(several, program)
    if mixture is not None:
        search.relaxed, search.mixture = mixture.reward, mixture
        search.rewards.append(mixture.reward)
    weight, price, *_ = several.weights.tolist()
    search.price = None if search.upper == -math.inf else price / weight if weight > 0 else 0.0


def find_relaxations(
    several: Several, may_go_on: Callable[[], bool]
) -> tuple[tuple[str, float | None], ...]:
    """Return by how much each limit alone must be raised for a randomised policy to be within all.

    None where that alone does not help.
    """
    problem = several.search.problem
    names = ["risk", *(c.quantity for c in problem.constraints if not isinstance(c, RiskAhead))]
    return tuple((name, relax(several, number, may_go_on)) for number, name in enumerate(names))


class MixtureProgram:
    """The linear program over the weights of points found so far, with tangents as rows.

    Of its last solution it keeps whether a mixture is within the limits, its reward, and the share
    of each point.
    """

    def __init__(self, several: PricedPoints) -> None:
        self._several = several
        self._tangents: list[tuple[int, Tangent]] = []
        self.feasible, self.reward, self.shares = False, -math.inf, np.zeros(0)

    def solve(
        self, penalties: Floats | None = None, margin: float = 0.0
    ) -> tuple[Floats, float] | None:
        """Return the next weights, and the value of the best mixture for them.

        None if nothing is to be gained. Limits are lowered by a relative margin.
        """
        several = self._several
        points = several.points
        margins = np.full(len(several.bounds), margin) if margin else None
        # A bound without a value at a small reward has a tangent further to the right.
        for _ in range(50):
            rewards = np.array([point.reward for point in points])
            best = self.run(rewards, margins=margins) if penalties is None else None
            feasible = best is not None
            if best is None:
                equal = np.ones(len(several.bounds))
                best = self.run(rewards, equal if penalties is None else penalties, margins)
            if best is None:
                return None
            solution, prices = best
            reward = float(solution @ rewards)
            if not several.add_tangents(self._tangents, reward):
                break
        self.feasible, self.reward, self.shares = feasible, reward, solution
        weights = np.zeros(1 + len(several.bounds))
        weights[0] = float(feasible)
        for (k, tangent), price in zip(self._tangents, prices, strict=True):
            weights[1 + k] += price
            weights[0] += price * tangent.slope
        charges = np.array([point.charges for point in points])
        values = weights[0] * rewards - charges @ weights[1:]
        return weights, float(values @ solution)

    def run(
        self, rewards: Floats, penalties: Floats | None = None, margins: Floats | None = None
    ) -> tuple[Floats, Floats] | None:
        """Return the weights of the points and the prices of the tangents; None if infeasible.

        With penalties, limits may be exceeded, and the sum of excesses times penalties is the least
        possible. Limits are lowered by relative margins.
        """
        from scipy.optimize import linprog

        points = self._several.points
        charges = np.array([point.charges for point in points])
        rows = np.array([charges[:, k] - t.slope * rewards for k, t in self._tangents])
        rows = rows.reshape(-1, len(points))
        limits = np.array([t.value - t.slope * t.at for _, t in self._tangents])
        unit = max(float(np.abs(rewards).max()), 1e-300)
        self.units = self._several.scales.copy()
        for (k, tangent), limit in zip(self._tangents, limits.tolist(), strict=True):
            self.units[k] = max(self.units[k], abs(tangent.slope) * unit, abs(limit))
        scales = np.array([1 / self.units[k] for k, _ in self._tangents])
        rows, limits = rows * scales[:, None], limits * scales
        if margins is not None:
            limits = limits - margins[[k for k, _ in self._tangents]]
        costs, total = -rewards / unit, np.ones((1, len(points)))
        if penalties is not None:
            unit, count = 1.0, len(penalties)
            exceeded = np.array([k for k, _ in self._tangents])[:, None] == np.arange(count)
            rows = np.column_stack((rows, -exceeded.astype(float)))
            costs = np.append(np.zeros(len(points)), penalties)
            total = np.append(total, np.zeros((1, count)), axis=1)
        given = {"A_ub": rows, "b_ub": limits} if len(rows) else {}
        tight = {f"{kind}_feasibility_tolerance": 1e-10 for kind in ("primal", "dual")}
        found = linprog(costs, A_eq=total, b_eq=[1.0], method="highs-ds", options=tight, **given)
        if found.status != 0:
            return None
        prices = -found.ineqlin.marginals if len(rows) else np.zeros(0)
        self.excess = found.x[len(points) :]
        return found.x[: len(points)], np.maximum(0.0, prices) * scales * unit


def relax(several: Several, number: int, may_go_on: Callable[[], bool]) -> float | None:
    """Return by how much a limit alone must be raised so that a mixture is within all.

    None if that does not help, or a limit of the search came first.
    """
    program = MixtureProgram(several)
    penalties = np.full(len(several.bounds), PENALTY)
    penalties[number] = 1.0
    while len(several.points) < 2 * MOST_POINTS and may_go_on():
        found = program.solve(penalties)
        if found is None:
            return None
        weights, value = found
        point, best = several.sweep(weights)
        if several.knows(point) or best <= value + CLOSE * (1 + abs(value)):
            others = np.delete(program.excess, number)
            raised = float(program.excess[number] * program.units[number])
            return None if (others > CLOSE).any() else raised
        several.points.append(point)
        several.directions.append(weights)
    return None


def mix(several: Several, program: MixtureProgram) -> PolicyPoint | None:
    """Return the best mixture within all limits; None if none is known."""
    closest = None
    rewards = np.array([point.reward for point in several.points])
    margins = np.zeros(len(several.bounds))
    # HiGHS works with tolerances; somewhat lower limits are kept, if there is room.
    while program.feasible and margins.max() <= 1e-6:
        found = program.run(rewards, margins=margins)
        if found is None:
            break
        used = [(w, p) for w, p in zip(found[0], several.points, strict=True) if w > 1e-12]
        weights = np.array([w for w, _ in used]) / math.fsum(w for w, _ in used)
        mixture = mix_points(tuple(point for _, point in used), weights)
        if several.judge(mixture):
            return mixture
        closest = mixture
        allowed = [bound(mixture.reward) for bound in several.bounds]
        broken = np.greater(mixture.charges, allowed)
        if not broken.any():
            break
        margins[broken] = np.maximum(1e-14, 10 * margins[broken])
    return closest if closest is not None and several.search.accepts(closest) else None


def mix_points(members: tuple[PolicyPoint, ...], weights: Floats) -> PolicyPoint:
    """Return a randomised policy."""
    if len(members) == 1:
        return members[0]
    charges = weights @ np.array([point.charges for point in members])
    return PolicyPoint(
        float(weights @ [point.reward for point in members]),
        float(charges[0]),
        members[0].decide,
        members,
        charges=tuple(charges.tolist()),
        ahead=max(point.ahead for point in members),
        weights=tuple(weights.tolist()),
    )


def offer_mixture(search: ExactSearch) -> None:
    """Take the best mixture that `find_prices` found as the answer."""
    if search.mixture is not None:
        search.offer_mix(search.mixture)


def join_fronts(search: ExactSearch, proves: bool = True) -> None:
    """Look for deterministic policies by joint fronts, with more and more points.

    If it `proves`, the upper bound is lowered to what deterministic policies earn.
    """
    if search.closed or search.upper == -math.inf or not len(search.levels):
        return
    if proves and len(search.bounds) == 1:  # `advance_fronts` proves more of these
        return
    several, work, kept = search.several, 0, FIRST_KEPT
    weights = several.weights.copy()
    if not weights.any():
        weights[0] = 1.0
    values = several.evaluate(weights)
    scale = max(abs(float(values[0, 0])), weights[0] * abs(search.upper), 1e-300)
    hurried = search.monitor.limits.time_limit is not None
    most_kept, most_work = (MOST_KEPT_IN_TIME, math.inf) if hurried else (MOST_KEPT, MOST_WORK)
    while kept <= most_kept:
        for share in SLACKS:
            gap = share * scale if share < math.inf else math.inf
            run = FrontRun(several, weights, values, gap, kept)
            done = run.extend(most_work - work)
            work += run.work
            if not done:
                return
            run.offer_best()
            search.report()
            if not run.thinned and gap == math.inf:
                # All policies that matter were compared.
                if not proves:
                    return
                best = -math.inf if search.best is None else search.best.reward
                raised = best if best == -math.inf else search.bound_test.raise_reward(best)
                search.upper = min(search.upper, max(raised, run.doubtful))
                return
            limited = search.monitor.limits.gap is None and search.gap <= GOOD_GAP
            if search.closed or limited:
                return
            if gap == math.inf:
                break
        kept *= 2


def make_fronts(arrays: Any, charges: int, slack: float, cap: float, kept: int) -> Any:
    """Return the arrays of joint fronts over some levels."""
    from vulcan.kernels import joint_front

    pairs, width, size = len(arrays.state), 2 + charges, max(kept, 2**charges) + charges
    actions = int(arrays.action_count.max(initial=1))
    outcomes = max(1, int(arrays.safe_count.max(initial=1)))
    control = np.zeros(1, joint_front.CONTROL)
    control["slack"], control["cap"] = slack, cap
    control["most"], control["node"] = kept, pairs - 1
    return joint_front.JointFronts(
        first=np.zeros(pairs, np.int64),
        count=np.zeros(pairs, np.int64),
        points=np.zeros((FIRST_ROOM, width)),
        row=np.zeros(FIRST_ROOM, np.int32),
        first_link=np.zeros(FIRST_ROOM, np.int64),
        links=np.zeros(FIRST_ROOM * outcomes, np.int32),
        sums=np.zeros((2, size * size, width)),
        origins=np.zeros((2, size * size, outcomes), np.int32),
        found=np.zeros((actions * size, width)),
        found_row=np.zeros(actions * size, np.int32),
        found_links=np.zeros((actions * size, outcomes), np.int32),
        cells=np.zeros(max(kept, 2**charges), np.int64),
        control=control,
    )


@cache
def load_kernels() -> None:
    """Load or compile the kernels of several constraints, and what solves linear programs."""
    import scipy.optimize  # noqa: F401

    from vulcan.kernels import dp, joint_front

    arrays = make_smallest_levels().arrays
    charges, weights = np.zeros((len(arrays.expected_reward), 1)), np.array([1.0, 0.0])
    values, choice = np.zeros((len(arrays.state), 3)), np.zeros(len(arrays.state), np.int32)
    least = np.zeros(len(arrays.state))
    dp.find_least_risks(arrays, charges, 1.0, least)
    dp.sweep_several(arrays, charges, weights, values, 1.0, least)
    dp.choose_several(arrays, charges, weights, values, choice, 1.0, least)
    fronts = make_fronts(arrays, 1, math.inf, math.inf, 1)
    fronts.control["pause"] = CHUNK
    joint_front.extend(arrays, charges, weights, values, fronts)


class FrontRun:
    """One computation of joint fronts."""

    def __init__(
        self, several: Several, weights: Floats, values: Floats, slack: float, kept: int
    ) -> None:
        self._several, self._weights, self._values = several, weights, values
        arrays, count = several.search.levels.arrays, several.charges.shape[1]
        self._fronts = make_fronts(arrays, count, slack, several.cap + ACCEPTED, kept)
        self.work = 0
        self.doubtful = -math.inf  # the largest reward of a point that is neither in nor out

    @property
    def thinned(self) -> bool:
        """Whether points were lost that matter."""
        return bool(self._fronts.control["thinned"][0])

    def extend(self, most_work: float) -> bool:
        """Fill the fronts; False if a limit came first."""
        from vulcan.kernels.joint_front import extend

        search, several = self._several.search, self._several
        control = self._fronts.control
        while True:
            taken = sum(array.nbytes for array in self._fronts)
            if not search.may_go_on(2 * taken) or self.work > most_work:
                return False
            control["pause"] = self.work + CHUNK
            given = (search.levels.arrays, several.charges, self._weights, self._values)
            status = extend(*given, self._fronts)
            self.work = int(control["work"][0])
            if status == codes.DONE:
                return True
            if status == codes.NEEDS_POINTS and not self._lengthen():
                return False

    def _lengthen(self) -> bool:
        grown = {}
        for name in ("points", "row", "first_link", "links"):
            array = getattr(self._fronts, name)
            grown[name] = np.concatenate([array, np.zeros_like(array)])
        self._fronts = self._fronts._replace(**grown)
        return len(self._fronts.links) < MOST_ROWS

    def offer_best(self) -> None:
        """Offer the best points of the root that are within all limits."""
        search, fronts = self._several.search, self._fronts
        first, count = int(fronts.first[0]), int(fronts.count[0])
        order = first + np.argsort(-fronts.points[first : first + count, 1], kind="stable")
        for point in order.tolist():
            _, reward, *charged = fronts.points[point].tolist()
            if search.best is not None and reward <= search.best.reward:
                return
            found = PolicyPoint(
                reward,
                charged[0],
                partial(self._decide, point),
                charges=tuple(charged),
                ahead=self._several.cap if math.isfinite(self._several.cap) else 0.0,
            )
            if search.offer(found):
                # The fronts are given up, so that its decisions are made now.
                search.best = replace(found, decide=partial(Decisions, *self._decide(point)))
                search.rewards.append(reward)
                return
            if self._several.judge(found) is None:
                self.doubtful = max(self.doubtful, search.bound_test.raise_reward(reward))

    def _decide(self, point: int) -> Decisions:
        """Return the decisions of a point of the root."""
        levels, fronts = self._several.search.levels, self._fronts
        safe = levels.arrays.safe_count
        firsts = fronts.first

        def choose(key: int) -> tuple[int, int, list[int | None]]:
            row, begin = int(fronts.row[key]), int(fronts.first_link[key])
            after = fronts.links[begin : begin + int(safe[row])].tolist()
            # Pairs are filled from the last to the first: their first points descend.
            pair = len(firsts) - int(np.searchsorted(firsts[::-1], key, side="right"))
            return pair, row, [None if k == END else k for k in after]

        return collect_decisions(point, choose)
