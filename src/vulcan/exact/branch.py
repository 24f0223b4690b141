"""An upper bound on deterministic policies, by branching over the actions of single histories.

The dual bound holds for randomised policies, too, which may be far better: where the only way to
earn anything begins with a risk that is too large, a randomised policy takes it now and then, but a
deterministic policy never does. A *branch node* stands for all policies that take certain actions
in some histories, beginning with the first: an expected reward g and a risk x so far, and the
*open* histories that come next, history h with the probability q(h) in the pair n(h). For any price
of failure k, and V_k(n) the largest E g - k er from a pair on,

    g - k x + Σ q(h) V_k(n(h))  =  v_k

is the largest value of its policies. A policy within the bound earns at most the largest y with
y - k Δ(y) <= v_k, whatever k, so the least of these y over some prices is the limit of the node.
The policies that go on with the best actions for a price are policies of the node, and are offered
to the search.

The node with the largest limit is branched over the actions of one open history: the one in which
the policies of the two prices beside the deciding price differ most. Limits fall as only rare
histories are left in which a policy may be randomised. Of nodes with the same open histories, a
node with no more reward and no less risk than another is dropped: there are many ways to wait.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint
from vulcan.numerics import END, NONE, TOLERANCE

Vector = NDArray[np.float64]
"""A number for each price."""


Action = tuple[int, float, float, Vector, Vector, list[tuple[int, float, int]]]
"""Row, immediate reward and risk of an action; for each price, how much more it earns and risks
than the best action; and the places, probabilities and pairs of its outcomes that go on."""


class OpenHistory(NamedTuple):
    """A history in which nothing is decided yet."""

    reach: float  # its probability
    pair: int
    parent: int  # the number of the decision before it
    place: int  # the position of the outcome of that decision


@dataclass(frozen=True)
class BranchNode:
    """A set of policies that share their first decisions."""

    limit: float  # no acceptable policy of the node earns more
    reward: float  # expected reward and risk of the decided histories
    risk: float
    rewards: Vector  # of the policies that continue with the best actions for each price
    risks: Vector
    opened: tuple[OpenHistory, ...]
    # Histories with their actions, the first history first; each adds a rounding to the sums.
    decided: tuple[tuple[OpenHistory, int], ...] = ()


NEAR: Final = (1 - 1e-9, 1.0, 1 + 1e-9)
MIDDLE: Final = np.geomspace(1 / 8, 8, 61)
FAR: Final = (0.0, *np.geomspace(16, 1e4, 8))
"""The prices, as multiples of the price of the dual bound, at which the best policy changes."""

MOST_VALUES: Final = 20_000_000  # largest number of values, of all pairs for all prices
WORK_OF_A_NODE: Final = 20  # and 1 for each of its open histories
MOST_IDLE_WORK: Final = 1_000_000  # work without a gain that ends the branching
IDLE_WORK: Final = 30_000, 100  # the same without a time limit: at least, and for each pair
SMALL_GAIN: Final = 0.01  # smallest decrease of the gap that counts as a gain, relative to it
MOST_LINES: Final = 4096  # tangents that are kept: limits of branch nodes recur
ROUNDING: Final = 1e-15  # relative rounding error allowed for a few operations


def branch(search: ExactSearch) -> None:
    """Lower the upper bound of a search to what deterministic policies can earn."""
    dual = search.dual
    if search.closed or dual.multiplier <= 0 or not len(search.levels):
        return
    prices = dual.multiplier * np.unique(np.concatenate([NEAR, MIDDLE, FAR]))
    if len(prices) * len(search.levels) > MOST_VALUES or math.isinf(search.upper):
        return
    if search.bound(search.upper) == -math.inf:  # and just above it is not: there is no tangent
        return
    values = _follow_prices(search, prices)
    if values is None:
        return
    tree = _BranchTree(search, prices, values)
    gained, gap = 0, search.upper - tree.best_reward
    idle = MOST_IDLE_WORK
    if search.monitor.limits.time_limit is None:
        idle = min(idle, max(IDLE_WORK[0], IDLE_WORK[1] * len(search.levels)))
    while not search.closed and search.may_go_on() and tree.branch():
        search.upper = min(search.upper, tree.upper)
        search.report()
        if search.upper - tree.best_reward < (1 - SMALL_GAIN) * gap:
            gained, gap = tree.work, search.upper - tree.best_reward
        if tree.work > min(2 * idle, gained + idle):
            break


def _follow_prices(search: ExactSearch, prices: Vector) -> tuple[Vector, Vector] | None:
    """Return reward and risk of the best policy for each price from each pair on.

    None if a limit was reached.
    """
    shape = (len(search.levels), len(prices))
    if not search.may_go_on(2 * np.dtype(float).itemsize * math.prod(shape)):
        return None
    rewards, risks = np.empty(shape), np.empty(shape)
    found = search.sweeps.follow_many([(1.0, float(price)) for price in prices])
    for place in range(len(prices)):
        if not search.may_go_on(rewards.nbytes + risks.nbytes):
            return None
        rewards[:, place], risks[:, place] = next(found)
    return rewards, risks


class _BranchTree:
    """Branch nodes that cover all policies that may be better than the best one so far.

    `prices` ascend, and `values` are reward and risk of the best policy for each of them from each
    pair on. `work` counts the histories looked at so far.
    """

    def __init__(self, search: ExactSearch, prices: Vector, values: tuple[Vector, Vector]) -> None:
        self._search, self._prices = search, prices
        self._rewards, self._risks = values
        self._actions: dict[int, list[Action]] = {}
        roots = (self._rewards[0] - prices * self._risks[0]).tolist()
        self._margins = np.array(
            [
                2 * (search.bound_test.raise_value(value, (1.0, price), search.dual.most) - value)
                for value, price in zip(roots, prices.tolist(), strict=True)
            ]
        )
        self._seen: dict[tuple[tuple[int, float], ...], list[tuple[float, float]]] = {}
        self.work = 0
        root = (0.0, 0.0, self._rewards[0], self._risks[0], (OpenHistory(1.0, 0, -1, -1),))
        self._allow = lru_cache(MOST_LINES)(self._find_line)
        self._pending: list[tuple[float, int, BranchNode]] = []
        self._closed_limit = -math.inf  # the largest limit of a node that can't be branched
        self._add(BranchNode(search.upper, *root))

    @property
    def upper(self) -> float:
        """No acceptable policy earns more."""
        largest = -self._pending[0][0] if self._pending else -math.inf
        best = self.best_reward
        best = self._search.bound_test.raise_reward(best) if self._search.best else best
        return max(largest, self._closed_limit, best, self._search.dual.least_reward)

    @property
    def best_reward(self) -> float:
        """The reward of the best policy so far; -inf without one."""
        return -math.inf if self._search.best is None else self._search.best.reward

    def branch(self) -> bool:
        """Branch the node of the largest limit; False if there is none left."""
        if not self._pending:
            return False
        _, _, here = heapq.heappop(self._pending)
        opened = self._choose(here)
        if opened is None:
            self._closed_limit = max(self._closed_limit, here.limit)
            return True
        for after in self._split(here, opened):
            self._add(after)
        return True

    def _choose(self, here: BranchNode) -> OpenHistory | None:
        """Return the open history that the two prices beside the deciding one disagree on most."""
        excess = self._exceed(here.limit, here.rewards, here.risks, len(here.decided))
        decides = int(np.argmax(excess))
        if here.risks[decides] > self._search.bound(here.limit):
            low, high = decides, min(decides + 1, len(self._prices) - 1)
        else:
            low, high = max(0, decides - 1), decides
        pairs = [history.pair for history in here.opened]
        apart = np.abs(self._rewards[pairs, low] - self._rewards[pairs, high])
        weights = apart * [history.reach for history in here.opened]
        place = int(np.argmax(weights)) if pairs else 0
        return here.opened[place] if pairs and weights[place] > 0 else None

    def _split(self, here: BranchNode, chosen: OpenHistory) -> Iterator[BranchNode]:
        """Yield a node for each action in a history."""
        others = tuple(history for history in here.opened if history is not chosen)
        reach, depth = chosen.reach, len(here.decided)
        for row, reward, risk, more_rewards, more_risks, targets in self._list_actions(chosen.pair):
            rewards = here.rewards + reach * more_rewards
            risks = here.risks + reach * more_risks
            yield BranchNode(
                self._limit(here.limit, rewards, risks, depth + 1),
                here.reward + reach * reward,
                here.risk + reach * risk,
                rewards,
                risks,
                others + tuple(OpenHistory(reach * p, pair, depth, k) for k, p, pair in targets),
                (*here.decided, (chosen, row)),
            )

    def _add(self, here: BranchNode) -> None:
        """Offer the policies of a node, and keep the node if it may have better policies."""
        self.work += WORK_OF_A_NODE + len(here.opened)
        if here.limit == -math.inf:
            return
        self._offer(here)
        if here.limit <= self.best_reward:
            return
        if not here.opened:  # a single policy
            if not self._search.bound_test.refuses(PolicyPoint(here.reward, here.risk)):
                self._closed_limit = max(self._closed_limit, here.limit)
            return
        key = tuple(sorted((history.pair, history.reach) for history in here.opened))
        seen = self._seen.setdefault(key, [])
        if any(reward >= here.reward and risk <= here.risk for reward, risk in seen):
            return
        seen.append((here.reward, here.risk))
        heapq.heappush(self._pending, (-here.limit, self.work, here))

    def _offer(self, here: BranchNode) -> None:
        """Offer the best acceptable policy among the policies of the prices."""
        bound_test = self._search.bound_test
        # The largest risk allowed to policies that earn no more than the limit.
        allowed, _ = self._allow(here.limit)
        within = (1 - bound_test.risk_share) * here.risks <= allowed
        places = np.flatnonzero(within & (here.rewards > self.best_reward))
        for place in sorted(places.tolist(), key=lambda place: -here.rewards[place]):
            point = PolicyPoint(float(here.rewards[place]), float(here.risks[place]))
            if not bound_test.refuses(point) and self._search.offer(self._build(here, place)):
                return

    def _build(self, here: BranchNode, place: int) -> PolicyPoint:
        """Return the policy of a node that goes on with the best actions for a price."""
        levels = self._search.levels
        choice = self._search.sweeps.choose(1.0, float(self._prices[place]))
        decisions: list[tuple[int, int, list[int]]] = []  # as in `Levels.decide`
        for history, row in here.decided:
            if history.parent >= 0:
                decisions[history.parent][2][history.place] = len(decisions)
            decisions.append((history.pair, row, [NONE] * int(levels.arrays.safe_count[row])))
        rewards = [some.reach * float(self._rewards[some.pair, place]) for some in here.opened]
        risks = [some.reach * float(self._risks[some.pair, place]) for some in here.opened]
        return PolicyPoint(
            math.fsum([here.reward, *rewards]),
            math.fsum([here.risk, *risks]),
            lambda: levels.decide(choice, decisions),
        )

    def _exceed(self, most: float, rewards: Vector, risks: Vector, depth: int) -> Vector:
        """Return the excess of a reward over the limit of a node, for each price.

        The risk bound lies below its tangent in `most`. Where the slope is so steep that less
        reward only enlarges the excess, no policy is acceptable: inf.
        """
        allowed, slope = self._allow(most)
        values = rewards - self._prices * risks + (1 + depth) * self._margins
        costs = self._prices * allowed
        excess = most - values - costs - ROUNDING * (abs(most) + np.abs(values) + np.abs(costs))
        steepness = 1 - (1 - ROUNDING) * self._prices * slope
        far = np.where(excess > 0, math.inf, -math.inf)
        np.divide((1 - ROUNDING) * excess, steepness, out=far, where=steepness > 0)
        return far

    def _find_line(self, reward: float) -> tuple[float, float]:
        """Return the largest risk allowed for a reward, and the least slope of a tangent there."""
        bound = self._search.bound
        tangent = bound.tangent(reward)
        allowed = max(tangent.value, float(bound.enclose(reward, reward)[1]))
        return allowed + TOLERANCE, tangent.least_slope

    def _limit(self, most: float, rewards: Vector, risks: Vector, depth: int) -> float:
        """Return a reward, at most `most`, that no acceptable policy of a node exceeds."""
        least = self._search.dual.least
        for _ in range(3):  # each gives a valid limit
            if most < least or self._search.bound(most) == -math.inf:
                return -math.inf
            less = float(self._exceed(most, rewards, risks, depth).max())
            if not less > 0:
                break
            most = math.nextafter(most - less, math.inf)
        return most if most >= least else -math.inf

    def _list_actions(self, pair: int) -> list[Action]:
        """Return the actions of a pair."""
        if pair not in self._actions:
            levels, arrays = self._search.levels, self._search.levels.arrays
            level, state = levels.find_level(pair), int(arrays.state[pair])
            first, count = int(arrays.first_action[state]), int(arrays.action_count[state])
            actions = self._actions[pair] = []
            for row in range(first, first + count):
                reward = float(arrays.weights[level] * arrays.expected_reward[row])
                risk = float(arrays.immediate_risk[row])
                rewards, risks = reward - self._rewards[pair], risk - self._risks[pair]
                after = enumerate(levels.list_targets(pair, row))
                targets = [(place, p, target) for place, (p, target) in after if target != END]
                for _, p, target in targets:
                    rewards += p * self._rewards[target]
                    risks += p * self._risks[target]
                actions.append((row, reward, risk, rewards, risks, targets))
        return self._actions[pair]
