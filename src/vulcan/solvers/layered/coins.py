"""From the price of failure to a deterministic policy: the world throws the coins.

The best randomised policy draws once between two policies of one price k. A deterministic policy
can't, but outcomes are random, too: it may do one thing after one outcome, another after another,
and wait for outcomes where the horizon has room. Fronts of a few points for each node
(`vulcan.kernels.thin_fronts`) find such policies.

A policy that earns more than the best so far falls short of the price's optimum by less than the
distance from there to the upper bound (see `shortfall`). Three rounds of search have the same
number of points: one drops what falls short by more than a small part of that distance anywhere,
and is quick; one what falls short by more than the distance; the last what falls short by ten times
as much, since what few histories come to may fall short more. Then the points are doubled.
Rounds that gain nothing end the search, but not before it has cost anything: on small graphs only
many points can spend the last of a small bound.

Where levels have few nodes, as those after the start, fronts have more points: they are passed by
every history, and cost little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.straight import Constant
from vulcan.graphs.decisions import DecidedPlan, Decisions
from vulcan.graphs.rows import MOST_ROWS
from vulcan.kernels import codes
from vulcan.runtime.reservation import set_apart
from vulcan.runtime.team import Team, cut_levels
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.referee import ACCEPTED, Referee
from vulcan.solvers.layered.sweeps import make_smallest_levels

__all__ = ["Coins", "find_between", "load_kernels"]

FIRST_POINTS: Final = 4
"""Points of a front in the first round."""

FEWEST_POINTS: Final = 2
MANY_NODES: Final = 2_000_000
"""The same on graphs with this many nodes, where a round takes long."""

MOST_POINTS: Final = 32
"""Points of a front in the last round."""

MORE_POINTS: Final = 16
"""How many times as many a front may have where levels are small."""

LONGEST_FRONT: Final = 1024

SLACKS: Final = (0.03, 1.0, 10.0)
"""What may fall short from a node on, as shares of the gap."""

IDLE_ROUNDS: Final = 3
"""After this many rounds that hardly gained anything the search ends."""

SMALL_GAIN: Final = 0.02
"""As a share of the gap: less is hardly anything."""

SLACK_OF_ROUNDING: Final = 1e-9
"""As a share of the rewards: equal policies fall short by this much at most."""

PLACES: Final = 256
"""At how many rewards the risk bound is evaluated."""

CHUNK: Final = 1 << 24
"""Pairs of points between two looks at the clock; about a tenth of a second."""

LITTLE_WORK: Final = 1 << 25
"""So many pairs of points cost next to nothing: whatever rounds gain, there is another."""

MOST_WORK: Final = 5_000_000_000
"""Pairs of points in all; half a minute."""

FIRST_DECISIONS: Final = 1 << 12

MOST_DECISIONS: Final = 1 << 22
"""A policy of more, and of more than two for each node, is not worth what it takes to certify."""

LARGEST: Final = 1e300

LEAST_NODES: Final = 256
"""Nodes with fronts that a block of a level has at least."""

BYTES_OF_A_POINT: Final = 20
BYTES_OF_A_NODE: Final = 12


def find_between(coins: Coins, upper: float, best: Corner | None) -> Iterator[Corner]:
    """Yield acceptable policies, each better than the one before.

    Parameters
    ----------
    coins
        The search.
    upper
        No acceptable policy earns more.
    best
        The best policy so far; None without one.
    """
    points = FIRST_POINTS if coins.nodes < MANY_NODES else FEWEST_POINTS
    idle = 0
    while points <= (MOST_POINTS if coins.work > LITTLE_WORK else LONGEST_FRONT):
        for share in SLACKS:
            gap = math.inf if best is None else upper - best.reward
            found = coins.search(share * gap, points, -math.inf if best is None else best.reward)
            if coins.stopped or (idle >= IDLE_ROUNDS and coins.work > LITTLE_WORK):
                return
            idle += 1
            if found is not None:
                if best is None or found.reward - best.reward > SMALL_GAIN * gap:
                    idle = 0
                best = found
                yield found
        points *= 2


class Coins:
    """The search for deterministic policies by thin fronts.

    Parameters
    ----------
    levels
        The levels (`vulcan.kernels.level_arrays`), all of them expanded, and not empty.
    referee
        The risk bound.
    price
        The price of failure, k.
    values
        The largest E g - k er from each node on.
    span
        The smallest and largest reward that matter.
    may_go_on
        Asked every tenth of a second.
    memory
        Bytes that the fronts may take.
    team
        Who shares the nodes of large levels.

    Attributes
    ----------
    work
        Pairs of points that were looked at so far.
    stopped
        Whether it was not allowed to go on, or had no room for any fronts.
    """

    def __init__(
        self,
        levels: Any,
        referee: Referee,
        price: float,
        values: NDArray[np.float64],
        span: tuple[float, float],
        may_go_on: Callable[[], bool] = lambda: True,
        memory: float = math.inf,
        team: Team | None = None,
    ) -> None:
        self._levels, self._referee, self._price, self._values = levels, referee, price, values
        self._may_go_on, self._memory = may_go_on, memory
        self._team = Team() if team is None else team
        self._size = max(abs(span[0]), abs(span[1])) or 1.0
        self._low, self._step = span[0], max((span[1] - span[0]) / PLACES, 1e-12 * self._size)
        places = [min(self._low + k * self._step, span[1]) for k in range(PLACES + 1)]
        allowed = [max(-LARGEST, referee.allow(place) + ACCEPTED / 2) for place in places]
        self._allowed = np.array(allowed)
        self._marked = np.zeros(len(levels.state), np.uint8)
        self._sizes = np.zeros(len(levels.first) - 1, np.int64)
        self.work = 0
        self.stopped = False

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._levels.state)

    def search(self, slack: float, points: int, least: float = -math.inf) -> Corner | None:
        """Return the best policy of fronts of some points.

        Parameters
        ----------
        slack
            How much less the points of a front may be worth than the best.
        points
            How many there are in a front, and more where levels are small.
        least
            Policies that earn no more than this are of no interest.

        Returns
        -------
        Corner or None
            None if there is no such policy, or the search was stopped.
        """
        from vulcan.kernels import thin_fronts

        slack = min(max(slack, SLACK_OF_ROUNDING * self._size), LARGEST)
        marking = (self._levels, self._values, self._price, slack, self._marked, self._sizes)
        thin_fronts.mark(*marking)
        fronts = self._make_fronts(points)
        self.stopped = fronts is None
        if fronts is None:
            return None
        fronts.control["slack"] = slack
        fronts.best["reward"] = -math.inf
        self.stopped = not self._extend(fronts)
        if self.stopped or float(fronts.best["reward"][0]) <= least:
            return None
        corner = self._trace(fronts)
        if corner is None or corner.reward <= least or not self._referee.accepts(corner):
            return None
        return corner

    def _extend(self, fronts: Any) -> bool:
        """Fill all fronts; False if it may not go on."""
        from vulcan.kernels import thin_fronts

        first, given = self._levels.first, (self._levels, self._values, self._marked)
        hands = [fronts, *(_give_scratch(fronts) for _ in range(self._team.count - 1))]
        rooms = fronts.bins + 1
        begins = np.cumsum((self._sizes * rooms)[::-1])[::-1] - self._sizes * rooms
        for blocks in cut_levels(first, LEAST_NODES, self._team.count, self._marked):
            if len(blocks) > 1:
                thin_fronts.prepare(self._levels, blocks[0][0])
            for hand, (begin, end) in zip(hands, blocks, strict=False):
                level = int(np.searchsorted(first, end - 1, side="right")) - 1
                after = int(self._marked[end : first[level + 1]].sum(dtype=np.int64))
                hand.control["node"], hand.control["last"] = end - 1, begin
                hand.control["points"] = begins[level] + after * rooms[level]
            if not self._call(partial(thin_fronts.extend, *given), hands[: len(blocks)]):
                return False
        # How much is done between two looks at the work must not decide whether it was too much.
        return self.work <= MOST_WORK

    def _call(self, kernel: Callable[[Any], int], hands: Sequence[Any]) -> bool:
        """Call a kernel with some fronts, all at once, until it is done; False if it may not be."""
        while hands:
            if not self._may_go_on() or self.work > MOST_WORK:
                return False
            before = _count_work(hands)
            for fronts in hands:
                fronts.control["pause"] = fronts.control["work"] + CHUNK
            found = self._team.share(kernel, hands)
            self.work += _count_work(hands) - before
            if any(status not in (codes.DONE, codes.PAUSED) for status in found):
                return False
            pairs = zip(hands, found, strict=True)
            hands = [fronts for fronts, status in pairs if status == codes.PAUSED]
        return True

    def _trace(self, fronts: Any) -> Corner | None:
        """Return the policy of the root's best point; None if stopped before it was written."""
        from vulcan.kernels import thin_plans

        plan = thin_plans.Decisions(
            rows=np.zeros(FIRST_DECISIONS, np.int32),
            children=np.zeros(4 * FIRST_DECISIONS, np.int32),
            starts=np.zeros(len(self._levels.first), np.int64),
        )
        given = (self._levels, self._values)
        fronts.control["node"] = 0
        while not self._call(partial(thin_plans.trace, *given, plan), [fronts]):
            most = max(MOST_DECISIONS, 2 * len(self._levels.state))
            if not self._may_go_on() or len(plan.rows) >= most:
                self.stopped = True
                return None
            rows, children = (np.concatenate([array, np.zeros_like(array)]) for array in plan[:2])
            plan = plan._replace(rows=rows, children=children)
        count, width = (int(fronts.control[name][0]) for name in ("decisions", "children"))
        rewards, risks = np.zeros(count), np.zeros(count)
        thin_plans.close(self._levels, fronts, plan, rewards, risks)
        nodes = np.zeros(count, np.int32)  # nobody asks where decisions are taken
        made = Decisions(plan.rows[:count].copy(), plan.children[:width].copy(), nodes)
        return Corner(float(rewards[0]), float(risks[0]), DecidedPlan(made))

    def _make_fronts(self, points: int) -> Any:
        """Return arrays with room for fronts of some points; None if there is too little memory."""
        from vulcan.kernels import thin_fronts

        levels, sizes = self._levels, np.maximum(self._sizes, 1)
        more = np.clip(np.sqrt(sizes.max() / sizes), 1, MORE_POINTS)
        bins = np.minimum(LONGEST_FRONT, points * more).astype(np.int64)
        room = int(self._sizes @ (bins + 1))
        longest = 4 * int(bins.max()) + 2
        first, counts = levels.first_action, np.maximum(0, levels.action_count)
        widths = np.concatenate(([0], np.cumsum(levels.safe_count + 1, dtype=np.int64)))
        widest = int((widths[first + counts] - widths[first]).max())
        taken = BYTES_OF_A_POINT * room + BYTES_OF_A_NODE * len(levels.state)
        scratch = widest * longest * thin_fronts.LINK.itemsize * self._team.count
        if taken + scratch > self._memory or room > MOST_ROWS:
            return None
        control = np.zeros(1, thin_fronts.CONTROL)
        control["price"], control["low"], control["step"] = self._price, self._low, self._step
        return thin_fronts.ThinFronts(
            first=np.zeros(len(levels.state), np.int64),
            count=np.zeros(len(levels.state), np.int32),
            bins=bins,
            risks=np.zeros(room),
            rewards=np.zeros(room),
            number=np.zeros(room, np.int32),
            allowed=self._allowed,
            kept=np.zeros(longest, thin_fronts.DRAFT),
            sums=np.zeros(longest, thin_fronts.DRAFT),
            links=np.zeros(widest * longest, thin_fronts.LINK),
            offered=np.zeros(int(counts.max(initial=1))),
            points=np.zeros(longest, thin_fronts.DRAFT),
            best=np.zeros(1, thin_fronts.DRAFT),
            control=control,
        )


def _give_scratch(fronts: Any) -> Any:
    """Return the same fronts for another thread, with scratch and a control of its own."""
    names = ("kept", "sums", "links", "offered", "points", "control")
    own = {
        name: set_apart(len(getattr(fronts, name)), getattr(fronts, name).dtype) for name in names
    }
    own["control"][:] = fronts.control
    return fronts._replace(**own)


def _count_work(hands: Sequence[Any]) -> int:
    return sum(int(fronts.control["work"][0]) for fronts in hands)


@cache
def load_kernels() -> None:
    """Load or compile the kernels of thin fronts, by a search of one node with an action."""
    from vulcan.kernels.compilation import announce_compilation
    from vulcan.kernels.thin_fronts import extend, prepare

    announce_compilation(extend)
    levels, span, values = make_smallest_levels(), (0.0, 1.0), np.zeros(1)
    prepare(levels, 0)
    Coins(levels, Referee(Constant(0.0)), 0.0, values, span).search(1.0, 1)
