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

On a long horizon waiting costs next to nothing, and there are far too many ways. So without a
discount limits are those of policies that may *stop*: give up all that follows, its rewards and its
risks. This adds policies, so that limits remain valid, and what can be done from a state at a step
can be done from there at any step before, stopping where the horizon ends. Then a node whose open
histories are in the same states as those of another, none of them earlier, is dropped as well.
Where stopping is worth much, because the last steps are risky, it is not allowed.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import le
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint, Sweeps
from vulcan.graph.levels import Decisions, Levels
from vulcan.numerics import END, NONE, TOLERANCE
from vulcan.runtime.arrays import ranges, starts

Vector = NDArray[np.float64]
"""A number for each price."""


Values = NDArray[np.float64]
"""Rewards and risks of the best policy for each price, in rows: of policies that may stop, and in
two more rows of those that may not."""


Seen = tuple[float, float, list[int]]
"""Reward and risk of the decided histories, and the levels of those open."""


Action = tuple[int, float, float, Values, list[tuple[int, float, int]]]
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
    values: Values  # of the policies that continue with the best actions for each price
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
WORTH_OF_STOPPING: Final = 0.3  # largest share of the gap for which policies may stop
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
    values = _follow_prices(search, search.sweeps, prices)
    if values is None:
        return
    stopping = _follow_stopping(search, prices, values)
    both = values if stopping is None else np.concatenate([stopping, values], axis=1)
    _grow(search, _BranchTree(search, prices, both))
    waits = _wait_at_first(search, values[:, 0] - prices * values[:, 1])
    if (waits or stopping is not None) and not search.closed:
        _grow(search, _BranchTree(search, prices, values, waits))


def _grow(search: ExactSearch, tree: _BranchTree) -> None:
    """Branch until the gap is closed, or nothing is gained for some time."""
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


def _follow_prices(search: ExactSearch, sweeps: Sweeps, prices: Vector) -> Values | None:
    """Return reward and risk of the best policy for each price from each pair on.

    None if a limit was reached.
    """
    shape = (len(search.levels), 2, len(prices))
    values = np.empty(shape if search.may_go_on(8 * math.prod(shape)) else (0, 2, 0))
    found = sweeps.follow_many([(1.0, float(price)) for price in prices])
    for place in range(len(prices) if len(values) else 0):
        if not search.may_go_on(values.nbytes):
            return None
        values[:, 0, place], values[:, 1, place] = next(found)
    return values if len(values) else None


def _follow_stopping(search: ExactSearch, prices: Vector, values: Values) -> Values | None:
    """Return the values of policies that may stop; None where this is worth too much."""
    if (search.levels.arrays.weights != 1).any():
        return None
    sweeps = Sweeps(_allow_stops(search.levels))
    price = search.dual.multiplier
    known = values[0, 0] - prices * values[0, 1]
    found = sweeps.find_best(1.0, price)
    gain = found.reward - price * found.risk - known[np.searchsorted(prices, price)]
    best = search.dual.least if search.best is None else search.best.reward
    if gain > WORTH_OF_STOPPING * (search.upper - best) or not search.may_go_on(4 * values.nbytes):
        return None
    return _follow_prices(search, sweeps, prices)


def _wait_at_first(search: ExactSearch, worth: Values) -> list[tuple[OpenHistory, int]]:
    """Return the decisions to wait at the start for as long as that costs next to nothing.

    `worth` is the value of each pair for each price. Where the last steps are risky, the
    best policies wait, and in a tree there are more ways to wait the longer its horizon is.
    """
    arrays, gap = search.levels.arrays, search.upper - search.dual.least
    state = arrays.state[0]
    pairs = np.flatnonzero(arrays.state == state)
    near = (worth[pairs] >= worth[0] - SMALL_GAIN * gap).all(axis=1)
    late = int(np.flatnonzero(near)[-1])
    first = int(arrays.first_action[state])
    for row in range(first, first + int(arrays.action_count[state])):
        free = arrays.expected_reward[row] == arrays.immediate_risk[row] == 0
        single = free and arrays.safe_count[row] == 1
        if single and arrays.target[arrays.first_outcome[row]] == state:
            waiting = enumerate(pairs[:late].tolist())
            return [(OpenHistory(1.0, pair, k - 1, 0), row) for k, pair in waiting]
    return []


def _allow_stops(levels: Levels) -> Levels:
    """Return levels with one more action in each state, to stop."""
    arrays = levels.arrays
    counts = np.maximum(0, arrays.action_count)
    some = (counts > 0).astype(counts.dtype)
    rows = ranges(arrays.first_action, counts)
    rows = np.insert(rows, np.cumsum(counts)[counts > 0], len(arrays.expected_reward))
    names = ("expected_reward", "immediate_risk", "first_outcome", "safe_count")
    columns = {name: np.append(getattr(arrays, name), 0)[rows] for name in names}
    given = {name: x.astype(getattr(arrays, name).dtype) for name, x in columns.items()}
    first = starts(counts + some).astype(arrays.first_action.dtype)
    return Levels(
        levels.graph, arrays._replace(first_action=first, action_count=counts + some, **given)
    )


class _BranchTree:
    """Branch nodes that cover all policies that may be better than the best one so far.

    `prices` ascend, and `values` are those of the best policies from each pair on. `work` counts
    the histories looked at so far.
    """

    def __init__(
        self,
        search: ExactSearch,
        prices: Vector,
        values: Values,
        waits: Sequence[tuple[OpenHistory, int]] = (),
    ) -> None:
        self._search, self._prices, self._values = search, prices, values
        self._stops = values.shape[1] > 2
        self._actions: dict[int, list[Action]] = {}
        roots = (values[0, 0] - prices * values[0, 1]).tolist()
        most = search.bound_test.raise_reward(max(search.dual.most, float(values[0, 0].max())))
        self._margins = np.array(
            [
                2 * (search.bound_test.raise_value(value, (1.0, price), most) - value)
                for value, price in zip(roots, prices.tolist(), strict=True)
            ]
        )
        # With stops, open histories are known by their states, else by their pairs.
        levels = search.levels
        self._name = (levels.arrays.state if self._stops else np.arange(len(levels))).tolist()
        self._level = (levels.levels * self._stops).tolist()
        self._seen: dict[tuple[tuple[int, float], ...], list[Seen]] = {}
        self.work = 0
        first = OpenHistory(1.0, 0, -1, -1)
        if waits:
            (_, pair), *_ = levels.list_targets(waits[-1][0].pair, waits[-1][1])
            first = OpenHistory(1.0, pair, len(waits) - 1, 0)
        self._allow = lru_cache(MOST_LINES)(self._find_line)
        self._pending: list[tuple[float, int, BranchNode]] = []
        # The largest limit of a node that can't be branched, or of policies that are not looked at.
        self._closed_limit = search.upper if waits else -math.inf
        values = values[first.pair]
        self._add(BranchNode(search.upper, 0.0, 0.0, values, (first,), tuple(waits)))

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
        self._combine(here)
        for after in self._split(here, opened):
            self._add(after)
        return True

    def _choose(self, here: BranchNode) -> OpenHistory | None:
        """Return the open history that the two prices beside the deciding one disagree on most."""
        excess = self._exceed(here.limit, here.values, len(here.decided))
        decides = int(np.argmax(excess))
        if here.values[1, decides] > self._search.bound(here.limit):
            low, high = decides, min(decides + 1, len(self._prices) - 1)
        else:
            low, high = max(0, decides - 1), decides
        pairs = [history.pair for history in here.opened]
        apart = np.abs(self._values[pairs, 0, low] - self._values[pairs, 0, high])
        weights = apart * [history.reach for history in here.opened]
        place = int(np.argmax(weights)) if pairs else 0
        return here.opened[place] if pairs and weights[place] > 0 else None

    def _split(self, here: BranchNode, chosen: OpenHistory) -> Iterator[BranchNode]:
        """Yield a node for each action in a history."""
        others = tuple(history for history in here.opened if history is not chosen)
        reach, depth = chosen.reach, len(here.decided)
        for row, reward, risk, more, targets in self._list_actions(chosen.pair):
            values = here.values + reach * more
            yield BranchNode(
                self._limit(here.limit, values, depth + 1),
                here.reward + reach * reward,
                here.risk + reach * risk,
                values,
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
        name, level = self._name, self._level
        keys = sorted((name[some.pair], some.reach, level[some.pair]) for some in here.opened)
        seen = self._seen.setdefault(tuple([key[:2] for key in keys]), [])
        levels = [key[2] for key in keys]
        for reward, risk, before in seen:
            if reward >= here.reward and risk <= here.risk and all(map(le, before, levels)):
                return
        seen.append((here.reward, here.risk, levels))
        heapq.heappush(self._pending, (-here.limit, self.work, here))

    def _offer(self, here: BranchNode) -> None:
        """Offer the best acceptable policy among the policies of the prices."""
        bound_test = self._search.bound_test
        # The largest risk allowed to policies that earn no more than the limit.
        allowed, _ = self._allow(here.limit)
        rewards, risks = here.values[-2:]
        within = (1 - bound_test.risk_share) * risks <= allowed
        places = np.flatnonzero(within & (rewards > self.best_reward))
        for place in sorted(places.tolist(), key=lambda place: -rewards[place]):
            point = PolicyPoint(float(rewards[place]), float(risks[place]))
            if not bound_test.refuses(point):
                built = self._build(here, np.full(len(here.opened), place))
                if self._search.offer(built):
                    return

    def _combine(self, here: BranchNode) -> None:
        """Offer a policy of a node with a price of its own in each open history.

        It begins with the least price that is acceptable in all of them, and goes on to the next
        one, and then to any, where the reward rises most within the risk that is left.
        """
        bound_test, (rewards, risks) = self._search.bound_test, here.values[-2:]

        def accepts(place: int) -> bool:
            return bound_test.accepts(PolicyPoint(float(rewards[place]), float(risks[place])))

        start = bisect_left(range(len(rewards)), True, key=accepts)
        if start in (0, len(rewards)) or rewards[0] == -math.inf:
            return
        reward = float(rewards[start])
        left = bound_test.allow(reward) - float(risks[start]) * (1 + bound_test.risk_share)
        reach = np.array([some.reach for some in here.opened])
        values = reach[:, None, None] * self._values[[some.pair for some in here.opened], -2:]
        places = np.full(len(reach), start)
        for first in (start - 1, 0):
            for _ in reach:
                now = values[np.arange(len(reach)), :, places]
                more = values[:, :, first:] - now[:, :, None]
                gains = np.where(more[:, 1] <= left, more[:, 0], 0.0)
                which, place = divmod(int(np.argmax(gains)), gains.shape[1])
                if gains[which, place] <= 0:
                    break
                places[which] = first + place
                left -= float(more[which, 1, place])
                reward += float(gains[which, place])
        if reward > self.best_reward:
            self._search.offer(self._build(here, places))

    def _build(self, here: BranchNode, places: NDArray[np.intp]) -> PolicyPoint:
        """Return the policy of a node that goes on with the best actions for some prices.

        `places` are those of the prices in the open histories.
        """
        levels, chosen = self._search.levels, np.unique(places)
        decisions: list[tuple[int, int, list[int]]] = []  # as in `Levels.decide`
        for history, row in here.decided:
            if history.parent >= 0:
                decisions[history.parent][2][history.place] = len(decisions)
            decisions.append((history.pair, row, [NONE] * int(levels.arrays.safe_count[row])))
        rewards, risks = [here.reward], [here.risk]
        for some, place in zip(here.opened, places.tolist(), strict=True):
            reward, risk = self._values[some.pair, -2:, place].tolist()
            rewards.append(some.reach * reward)
            risks.append(some.reach * risk)
            if some.parent >= 0:
                number = int(np.searchsorted(chosen, place))
                decisions[some.parent][2][some.place] = NONE - number

        def decide() -> Decisions:
            choose = self._search.sweeps.choose
            choices = [choose(1.0, float(self._prices[place])) for place in chosen]
            # Without open histories no choice is needed.
            taken = np.array(choices, np.int32).reshape(len(choices), len(levels))
            return levels.decide(taken, decisions)

        return PolicyPoint(math.fsum(rewards), math.fsum(risks), decide)

    def _exceed(self, most: float, values: Values, depth: int) -> Vector:
        """Return the excess of a reward over the limit of a node, for each price.

        The risk bound lies below its tangent in `most`. Where the slope is so steep that less
        reward only enlarges the excess, no policy is acceptable: inf.
        """
        allowed, slope = self._allow(most)
        worth = values[0] - self._prices * values[1] + (1 + depth) * self._margins
        costs = self._prices * allowed
        excess = most - worth - costs - ROUNDING * (abs(most) + np.abs(worth) + np.abs(costs))
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

    def _limit(self, most: float, values: Values, depth: int) -> float:
        """Return a reward, at most `most`, that no acceptable policy of a node exceeds."""
        least = self._search.dual.least
        for _ in range(3):  # each gives a valid limit
            if most < least or self._search.bound(most) == -math.inf:
                return -math.inf
            less = float(self._exceed(most, values, depth).max())
            if not less > 0:
                break
            most = math.nextafter(most - less, math.inf)
        return most if most >= least else -math.inf

    def _list_actions(self, pair: int) -> list[Action]:
        """Return the actions of a pair."""
        if pair in self._actions:
            return self._actions[pair]
        levels, arrays = self._search.levels, self._search.levels.arrays
        level, state = levels.find_level(pair), int(arrays.state[pair])
        first, count = int(arrays.first_action[state]), int(arrays.action_count[state])
        actions = self._actions[pair] = []
        for row in range(first, first + count):
            reward = float(arrays.weights[level] * arrays.expected_reward[row])
            risk = float(arrays.immediate_risk[row])
            more = -self._values[pair]
            more[::2] += reward
            more[1::2] += risk
            after = enumerate(levels.list_targets(pair, row))
            targets = [(place, p, target) for place, (p, target) in after if target != END]
            for _, p, target in targets:
                more += p * self._values[target]
            actions.append((row, reward, risk, more, targets))
        if self._stops:
            more = -self._values[pair]
            more[2] = -math.inf  # a policy that stops is not offered
            actions.append((NONE, 0.0, 0.0, more, []))
        return actions
