"""An upper bound on deterministic policies, by cases of what single histories do.

The dual bound holds for randomised policies, too, which may be far better: where the only way to
earn anything begins with a risk that is too large, one draws lots for it, and a deterministic
policy earns nothing. A *case* is what all policies have in common that take certain actions in some
histories, beginning with the first: an expected reward g and a risk x so far, and the *open*
histories that come next, history h with the probability q(h) in the node n(h). For any price of
failure k, and V_k(n) the largest E g - k er from a node on,

    g - k x + Σ q(h) V_k(n(h))  =  v_k

is the most that a policy of the case is worth. One within the bound earns at most the largest y
with y - k Δ(y) <= v_k, whatever k, so the least of these over some prices is the limit of the case.
The policies that go on with the best actions for a price are policies of the case as well, and are
offered to the search.

The case with the largest limit is branched: its open history in which the policies of the two
prices beside the deciding one differ most gets one action after another. Limits fall as the
randomised policy has only rare histories left to draw lots in. Cases with the same open histories,
one of which has earned no less and risked no more, are one case: waiting comes in many ways.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from vulcan.graphs.levels import ChoicePlan
from vulcan.sentinels import END
from vulcan.solvers.layered.cases import Case, Open, Step, Vector, Vectors
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.derandomise import SAFE, UNDECIDED, Decision, HistoryPlan
from vulcan.solvers.layered.dual import Dual, Floor
from vulcan.solvers.layered.run import LayeredRun
from vulcan.tolerance import TOLERANCE

__all__ = ["branch"]

NEAR: Final = (1 - 1e-9, 1.0, 1 + 1e-9)
MIDDLE: Final = np.geomspace(1 / 8, 8, 61)
FAR: Final = (0.0, *np.geomspace(16, 1e4, 8))
"""The prices, as multiples of that of the dual bound; at that itself policies differ."""

MOST_VALUES: Final = 20_000_000
"""Values of nodes for all prices from which on it is not worth its memory."""

MOST_WORK: Final = 2_000_000
"""Open histories of all cases that are looked at, and..."""

WORK_OF_A_CASE: Final = 20
"""... so many more for each: some seconds."""

PATIENCE: Final = 1_000_000
"""As much work without a gain ends it."""

SMALL_GAP: Final = 1e-3
LITTLE_PATIENCE: Final = 100_000
"""The same where the gap is small already."""

SMALL_GAIN: Final = 0.01
"""As a share of the gap: less is no gain."""

NEWTON_STEPS: Final = 3

ROUNDING: Final = 1e-15
"""What a few operations do to a number, as a share of the largest that is involved."""


def branch(run: LayeredRun, dual: Dual) -> None:
    """Lower the upper bound of a run to what deterministic policies can earn.

    Parameters
    ----------
    run
        The search, with its best policy, which may get better, and its dual bound.
    dual
        That bound.
    """
    if run.closed or dual.multiplier <= 0 or not len(run.levels):
        return
    prices = dual.multiplier * np.unique(np.concatenate([NEAR, MIDDLE, FAR]))
    if len(prices) * len(run.levels) > MOST_VALUES or math.isinf(run.upper):
        return
    if run.bound(run.upper) == -math.inf:  # and just above it is not: there is no tangent
        return
    values = _follow_prices(run, prices)
    if values is None:
        return
    cases = _Cases(run, prices, values, dual.floor, dual.corners[-1].reward)
    gained, gap = 0, run.upper - cases.known
    while not run.closed and run.may_go_on() and cases.branch():
        run.upper = min(run.upper, cases.upper)
        run.report()
        if run.upper - cases.known < (1 - SMALL_GAIN) * gap:
            gained, gap = cases.work, run.upper - cases.known
        patience = PATIENCE if run.gap > SMALL_GAP else LITTLE_PATIENCE
        if cases.work > min(MOST_WORK, gained + patience):
            break


def _follow_prices(run: LayeredRun, prices: Vector) -> tuple[Vectors, Vectors] | None:
    """Return what the best policy for each price earns and risks from each node on.

    None if a limit was reached.
    """
    shape = (len(run.levels), len(prices))
    if not run.may_go_on(2 * np.dtype(float).itemsize * math.prod(shape)):
        return None
    rewards, risks = np.empty(shape), np.empty(shape)
    for place, price in enumerate(prices):
        if not run.may_go_on(rewards.nbytes + risks.nbytes):
            return None
        ways = run.sweeps.follow_weights(1.0, float(price))
        rewards[:, place], risks[:, place] = ways.rewards, ways.risks
    return rewards, risks


class _Cases:
    """Cases that cover all policies that may be better than the best one so far.

    Parameters
    ----------
    run
        The search.
    prices
        The prices, ascending.
    values
        What the best policy for each price earns from each node on, and what it risks.
    floor
        What the policy of least risk says of others.
    most
        What the policy of largest reward earns.

    Attributes
    ----------
    work
        What was looked at so far.
    """

    def __init__(
        self,
        run: LayeredRun,
        prices: Vector,
        values: tuple[Vectors, Vectors],
        floor: Floor,
        most: float,
    ) -> None:
        self._run, self._prices, self._floor = run, prices, floor
        self._rewards, self._risks = values
        self._steps: dict[int, list[Step]] = {}
        roots = (self._rewards[0] - prices * self._risks[0]).tolist()
        most = run.referee.raise_reward(most)
        self._margins = np.array(
            [
                2 * (run.referee.raise_value(value, (1.0, price), most) - value)
                for value, price in zip(roots, prices.tolist(), strict=True)
            ]
        )
        self._seen: dict[tuple[tuple[int, float], ...], list[tuple[float, float]]] = {}
        self.work = 0
        root = (0.0, 0.0, self._rewards[0], self._risks[0], (Open(1.0, 0, -1, -1),))
        self._pending: list[tuple[float, int, Case]] = []
        self._settled = -math.inf  # the largest limit of a case that can't be branched
        self._add(Case(run.upper, *root))

    @property
    def upper(self) -> float:
        """No acceptable policy earns more."""
        largest = -self._pending[0][0] if self._pending else -math.inf
        known = self._run.referee.raise_reward(self.known) if self._run.best else -math.inf
        return max(largest, self._settled, known, self._floor.reward)

    @property
    def known(self) -> float:
        """What the best policy so far earns; -inf without one."""
        return -math.inf if self._run.best is None else self._run.best.reward

    def branch(self) -> bool:
        """Branch the case of the largest limit; False if there is none left."""
        if not self._pending:
            return False
        _, _, case = heapq.heappop(self._pending)
        opened = self._choose(case)
        if opened is None:
            self._settled = max(self._settled, case.limit)
            return True
        for after in self._split(case, opened):
            self._add(after)
        return True

    def _choose(self, case: Case) -> Open | None:
        """Return the open history that the two prices beside the deciding one disagree on most."""
        excess = self._exceed(case.limit, case.rewards, case.risks, case.depth)
        decides = int(np.argmax(excess))
        if case.risks[decides] > self._run.bound(case.limit):
            low, high = decides, min(decides + 1, len(self._prices) - 1)
        else:
            low, high = max(0, decides - 1), decides
        nodes = [one.node for one in case.opened]
        apart = np.abs(self._rewards[nodes, low] - self._rewards[nodes, high])
        weights = apart * [one.reach for one in case.opened]
        place = int(np.argmax(weights)) if nodes else 0
        return case.opened[place] if nodes and weights[place] > 0 else None

    def _split(self, case: Case, chosen: Open) -> Iterator[Case]:
        """Yield a case for each action in a history."""
        others = tuple(one for one in case.opened if one is not chosen)
        for step in self._list_steps(chosen.node):
            rewards = case.rewards + chosen.reach * step.rewards
            risks = case.risks + chosen.reach * step.risks
            limit = self._limit(case.limit, rewards, risks, case.depth + 1)
            following = tuple(
                Open(chosen.reach * probability, node, case.depth, place)
                for place, probability, node in step.targets
            )
            yield Case(
                limit,
                case.reward + chosen.reach * step.reward,
                case.risk + chosen.reach * step.risk,
                rewards,
                risks,
                others + following,
                case,
                (chosen, step.row),
                case.depth + 1,
            )

    def _add(self, case: Case) -> None:
        """Offer the policies of a case, and keep it if there may be better ones in it."""
        self.work += WORK_OF_A_CASE + len(case.opened)
        if case.limit == -math.inf:
            return
        self._offer(case)
        if case.limit <= self.known:
            return
        if not case.opened:  # a single policy
            if not self._run.referee.refuses(Corner(case.reward, case.risk)):
                self._settled = max(self._settled, case.limit)
            return
        key = tuple(sorted((one.node, one.reach) for one in case.opened))
        seen = self._seen.setdefault(key, [])
        if any(reward >= case.reward and risk <= case.risk for reward, risk in seen):
            return
        seen.append((case.reward, case.risk))
        heapq.heappush(self._pending, (-case.limit, self.work, case))

    def _offer(self, case: Case) -> None:
        """Offer the best acceptable policy among those of the prices."""
        referee = self._run.referee
        # To those that earn no more than the limit.
        allowed = float(referee.bound.enclose(case.limit, case.limit)[1]) + TOLERANCE
        near = (case.rewards > self.known) & ((1 - referee.accuracy.risk) * case.risks <= allowed)
        places = np.flatnonzero(near)
        for place in sorted(places.tolist(), key=lambda place: -case.rewards[place]):
            corner = Corner(float(case.rewards[place]), float(case.risks[place]))
            if not referee.refuses(corner) and self._run.offer(self._build(case, place)):
                return

    def _build(self, case: Case, place: int) -> Corner:
        """Return the policy of a case that goes on with the best actions for a price."""
        levels = self._run.levels
        choice = self._run.sweeps.choose(1.0, float(self._prices[place]))
        decisions: list[Decision] = []
        for one, row in case.trace():
            if one.parent >= 0:
                decisions[one.parent][2][one.place] = (UNDECIDED, len(decisions))
            ways = [(SAFE, node) for node in levels.follow(one.node, row)]
            decisions.append((one.node, row, ways))
        plan = HistoryPlan(levels, choice, choice, decisions) if decisions else None
        rewards = [one.reach * float(self._rewards[one.node, place]) for one in case.opened]
        risks = [one.reach * float(self._risks[one.node, place]) for one in case.opened]
        return Corner(
            math.fsum([case.reward, *rewards]),
            math.fsum([case.risk, *risks]),
            ChoicePlan(levels, choice) if plan is None else plan,
        )

    def _exceed(self, most: float, rewards: Vector, risks: Vector, depth: int) -> Vector:
        """Return by how much too large a reward is, for each price: what a policy must give up.

        The risk bound lies below its tangent in `most`. Where its slope is so steep that giving up
        reward only makes it worse, no policy is acceptable: inf.
        """
        bound = self._run.bound
        tangent = bound.tangent(most)
        allowed = max(tangent.value, float(bound.enclose(most, most)[1])) + TOLERANCE
        values = rewards - self._prices * risks + (1 + depth) * self._margins
        costs = self._prices * allowed
        excess = most - values - costs - ROUNDING * (abs(most) + np.abs(values) + np.abs(costs))
        steepness = 1 - (1 - ROUNDING) * self._prices * tangent.least_slope
        far = np.where(excess > 0, math.inf, -math.inf)
        np.divide((1 - ROUNDING) * excess, steepness, out=far, where=steepness > 0)
        return far

    def _limit(self, most: float, rewards: Vector, risks: Vector, depth: int) -> float:
        """Return a reward, at most `most`, that no acceptable policy of a case exceeds."""
        least = self._floor.least
        for _ in range(NEWTON_STEPS):
            if most < least or self._run.bound(most) == -math.inf:
                return -math.inf
            less = float(self._exceed(most, rewards, risks, depth).max())
            if not less > 0:
                break
            most = math.nextafter(most - less, math.inf)
        return most if most >= least else -math.inf

    def _list_steps(self, node: int) -> list[Step]:
        """Return the actions in a node."""
        if node not in self._steps:
            arrays = self._run.levels.arrays
            level = int(np.searchsorted(arrays.first, node, side="right")) - 1
            state = int(arrays.state[node])
            first = int(arrays.first_action[state])
            rows = range(first, first + int(arrays.action_count[state]))
            self._steps[node] = [self._make_step(node, level, row) for row in rows]
        return self._steps[node]

    def _make_step(self, node: int, level: int, row: int) -> Step:
        """Return an action in a node of a level."""
        arrays = self._run.levels.arrays
        reward = float(arrays.weights[level] * arrays.expected_reward[row])
        risk = float(arrays.immediate_risk[row])
        rewards, risks = reward - self._rewards[node], risk - self._risks[node]
        targets = [
            (place, probability, target)
            for place, (probability, target) in enumerate(self._run.levels.list_targets(node, row))
            if target != END
        ]
        for _, probability, target in targets:
            rewards += probability * self._rewards[target]
            risks += probability * self._risks[target]
        return Step(row, reward, risk, rewards, risks, targets)
