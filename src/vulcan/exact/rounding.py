"""From the best mixture of policies to a deterministic policy: outcomes in place of the draw.

The best mixture within several limits draws one of a few policies at the start. A deterministic
policy cannot draw, but it may follow one of them after some histories and another after others.
Take a *cut*: histories h that exclude each other, with probabilities p_h, of which one occurs
unless the mission ends before. With reward g and charges x decided so far, and those of policy m
from h on, g_hm and x_hm, the linear program

    maximise    g + Σ p_h w_hm g_hm
    so that     x_k + Σ p_h w_hm x_hmk  <=  T(g + Σ p_h w_hm g_hm)    for tangents T of each Δ_k,
                Σ_m w_hm = 1,  w >= 0

has a solution in which at most as many histories as there are tight limits follow more than one
policy. These are *opened*: an action is chosen there, and the histories after it join the cut. So
what is left to a draw becomes ever less probable. Each way to follow one policy after these few
histories is a deterministic policy; limits that are lowered a little leave room for that. At the
first cut, the root alone, this is the program of the mixture itself.

Charges are summed along histories without memory, as in `vulcan.exact.several`. A cap on the risk
ahead is no sum: with one, policies are followed only from where they keep it, and what is found is
offered only if the opened histories keep it as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.levels import Decisions, Levels
from vulcan.numerics import END
from vulcan.runtime.arrays import ranges, starts

if TYPE_CHECKING:
    from vulcan.bounds.base import Tangent
    from vulcan.exact.search import ExactSearch
    from vulcan.exact.several import Several

Floats = NDArray[np.float64]

MOST_CUTS: Final = 200
BETWEEN_OFFERS: Final = 10  # cuts between two attempts at a deterministic policy
LATEST: Final = 2  # policies of the last directions among the first ones
MOST_POLICIES: Final = 24
BETTER: Final = 1e-9  # smallest improvement by a policy that joins, relative to the sums
FRACTION: Final = 1e-7  # weights that differ by less from 0 or 1 are whole
MARGINS: Final = (0.0, *np.geomspace(1e-8, 1e-2, 7))  # shares by which limits are lowered
MOST_WAYS: Final = 50_000  # ways to follow one policy after each history that are compared


@dataclass(frozen=True)
class History:
    """A history of the cut, or one that is opened: then `row` is its action."""

    reach: float
    pair: int
    row: int = -1
    after: Sequence[int] = ()  # histories after its safe outcomes, or END


def round_mixture(search: ExactSearch) -> None:
    """Look for deterministic policies close to the best mixture."""
    several = search.several
    capped = math.isfinite(several.cap)
    if search.closed or (search.mixture is None and not capped) or search.upper == -math.inf:
        return
    cut = Cut(several)
    for number in range(1, MOST_CUTS + 1):
        if search.closed or not search.may_go_on(cut.memory):
            return
        weights = cut.solve()
        if weights is None:
            return
        drawn = np.flatnonzero(weights.max(axis=1) < 1 - FRACTION)
        if not len(drawn) or number % BETWEEN_OFFERS == 0:
            cut.improve()
            cut.offer()
            search.report()
        if not len(drawn):
            return
        shares = dict(zip(cut.list_histories(drawn), weights[drawn], strict=True))
        for history, share in shares.items():
            cut.open(history, share)


class Cut:
    """The histories of a cut, the policies that may be followed after them, and the programs."""

    def __init__(self, several: Several) -> None:
        self._several, search = several, several.search
        self._levels, mixture = search.levels, search.mixture
        members = () if mixture is None else mixture.members or (mixture,)
        # Its members, and the policies of least charges: what one history lacks, others have.
        known = [k for k, p in enumerate(several.points) if any(p is m for m in members)]
        known += [k for k in range(1, 1 + len(several.bounds)) if k not in known]
        known += [k for k in range(len(several.points)) if k not in known][-LATEST:]
        known = [k for k in known if k < len(several.directions)]
        given = [several.directions[k] for k in known]
        self._values = [several.evaluate(weights) for weights in given]
        self._choices = np.array([several.choose(weights) for weights in given])
        self._histories = [History(1.0, 0)]
        self._cut = [0]
        self._decided = np.zeros(1 + several.charges.shape[1])  # reward and charges
        self._tangents: list[tuple[int, Tangent]] = []
        self._reward, self._prices = search.upper, np.zeros(0)
        self._keeps = [
            self._find_kept(*policy) for policy in zip(self._choices, self._values, strict=True)
        ]

    def _find_kept(self, choice: NDArray[np.int32], values: Floats) -> NDArray[np.bool_]:
        """Return whether a policy keeps the cap from each pair on."""
        kept = values[:, 2] <= self._several.cap
        arrays, first = self._levels.arrays, self._levels.arrays.first
        for level in range(len(first) - 3, -1, -1) if not kept.all() else ():
            here = slice(first[level], first[level + 1])
            rows = choice[here]
            widths = arrays.safe_count[rows].astype(np.int64)
            states = arrays.target[ranges(arrays.first_outcome[rows], widths)]
            places = np.searchsorted(arrays.state[first[level + 1] : first[level + 2]], states)
            goes_on = arrays.action_count[states] != 0
            broken = np.zeros(len(states), np.bool_)
            broken[goes_on] = ~kept[first[level + 1] + places[goes_on]]
            owner = np.repeat(np.arange(len(rows)), widths)
            kept[here] &= np.bincount(owner, broken, len(rows)) == 0
        return kept

    @property
    def memory(self) -> int:
        """Bytes of the policies."""
        return sum(values.nbytes for values in self._values) + self._choices.nbytes

    def solve(self, margin: float = 0.0) -> Floats | None:
        """Return the best weights of the policies for each history; None without any.

        Limits are lowered by a share. Where no weights keep them, policies for other prices join,
        as long as these come closer.
        """
        while self._several.search.may_go_on(self.memory):
            options = self._evaluate()
            found = self._run(options, margin)
            if found is None:
                closest = self._run(options, margin, excess=True) if self._tangents else None
                if closest is None or not self._join(options, closest[1], 0.0):
                    return None
                continue
            self._reward = float(self._decided[0] + (found[0] * options[:, :, 0]).sum())
            if not self._several.add_tangents(self._tangents, self._reward):
                self._prices = found[1]
                return found[0]
        return None

    def improve(self) -> None:
        """Let the best policy for the prices of the last program join, if it is new."""
        self._join(self._evaluate(), self._prices, 1.0)

    def _join(self, options: Floats, prices: Floats, reward_weight: float) -> bool:
        """Let the best policy for some prices of tangents join, if it is better than the others."""
        if len(self._choices) >= MOST_POLICIES:
            return False
        weights = np.zeros(options.shape[2])
        weights[0] = reward_weight
        for (k, line), price in zip(self._tangents, prices, strict=True):
            weights[1 + k] += price
            weights[0] += price * line.slope
        signed = np.array([1.0, *-np.ones(len(weights) - 1)]) * weights
        values = self._several.evaluate(weights)
        reach = np.array([self._histories[n].reach for n in self._cut])
        pairs = [self._histories[n].pair for n in self._cut]
        known = float((options @ signed).max(axis=1).sum())
        size = float(np.abs(options @ np.abs(signed)).max(axis=1).sum())
        if float(reach @ values[pairs, 0]) <= known + BETTER * size:
            return False
        choice = self._several.choose(weights)
        self._values.append(values)
        self._choices = np.vstack((self._choices, choice))
        self._keeps.append(self._find_kept(choice, values))
        return True

    def _evaluate(self) -> Floats:
        """Return what each policy adds after each history: reward and charges."""
        pairs = [self._histories[n].pair for n in self._cut]
        reach = np.array([self._histories[n].reach for n in self._cut])
        each = np.stack([values[pairs, 1:] for values in self._values], axis=1)
        return np.asarray(each * reach[:, None, None])

    def _run(
        self, options: Floats, margin: float, excess: bool = False
    ) -> tuple[Floats, Floats] | None:
        """Return the weights of a program with the tangents so far, and the tangents' prices.

        With `excess` it minimises the largest excess over a limit instead.
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        count, policies, _ = options.shape
        if not count:  # all that can happen is decided
            return np.zeros((0, policies)), np.zeros(len(self._tangents))
        places, rewards = np.arange(count * policies), options[:, :, 0].ravel()
        rows, limits, scales = [], [], []
        for k, line in self._tangents:
            scale = max(abs(line(self._reward)), 1e-9 * self._several.scales[k])
            scales.append(scale)
            rows.append((options[:, :, 1 + k].ravel() - line.slope * rewards) / scale)
            limit = line.value + line.slope * (self._decided[0] - line.at) - self._decided[1 + k]
            limits.append(limit / scale - margin)
        sums = csr_array((np.ones(len(places)), (places // policies, places)))
        given: dict[str, Any] = {"A_ub": np.array(rows), "b_ub": limits} if rows else {}
        unit = max(float(np.abs(rewards).max()), 1e-300)
        costs = -rewards / unit
        pairs = [self._histories[n].pair for n in self._cut]
        most = np.stack([kept[pairs] for kept in self._keeps], axis=1).ravel().astype(float)
        if excess:
            unit, costs, most = 1.0, np.append(np.zeros(len(places)), 1.0), np.append(most, np.inf)
            sums.resize(count, len(places) + 1)
            given["A_ub"] = np.column_stack((given["A_ub"], -np.ones(len(rows))))
        given |= {"bounds": np.column_stack((np.zeros(len(most)), most))}
        found = linprog(costs, A_eq=sums, b_eq=np.ones(count), method="highs-ds", **given)
        if found.status:
            return None
        marginals = found.ineqlin.marginals if rows else np.zeros(0)
        prices = np.maximum(0.0, -marginals) * unit / np.array(scales)
        return found.x[: len(places)].reshape(count, policies), prices

    def list_histories(self, places: NDArray[np.intp]) -> list[int]:
        """Return the histories at some places of the cut."""
        return [self._cut[place] for place in places.tolist()]

    def open(self, number: int, shares: Floats) -> None:
        """Open a history by the action after which most can be earned.

        Actions are those of the policies that it follows now, by their shares.
        """
        rows = self._choices[:, self._histories[number].pair]
        actions = np.unique(rows[: len(shares)][shares > FRACTION]).tolist()
        before = self._cut, len(self._histories), self._decided
        best: tuple[float, int] | None = None
        for row in actions if len(actions) > 1 else ():
            self._take(number, row)
            reward = -math.inf if self.solve() is None else self._reward
            best = max(best or (-math.inf, row), (reward, row))
            self._cut, length, self._decided = before
            del self._histories[length:]
        self._take(number, actions[0] if best is None else best[1])

    def _take(self, number: int, row: int) -> None:
        """Take an action in a history of the cut; the histories after it join the cut."""
        history, arrays = self._histories[number], self._levels.arrays
        level = self._levels.find_level(history.pair)
        reward = arrays.weights[level] * arrays.expected_reward[row]
        charged = np.array([reward, *self._several.charges[row]])
        self._decided = self._decided + history.reach * charged
        self._cut = [other for other in self._cut if other != number]
        after = []
        for probability, pair in self._levels.list_targets(history.pair, row):
            after.append(END if pair == END else len(self._histories))
            if pair != END:
                self._cut.append(len(self._histories))
                self._histories.append(History(history.reach * probability, pair))
        self._histories[number] = replace(history, row=row, after=after)

    def offer(self) -> None:
        """Offer the best policy that follows one policy after each history, if one is found."""
        for margin in MARGINS:
            weights = self.solve(margin)
            if weights is None:
                return
            options = self._evaluate()
            taken = self._draw(weights, options)
            if taken is not None:
                break
        else:
            return
        totals = self._decided + options[np.arange(len(taken)), taken].sum(axis=0)
        follows = dict(zip(self._cut, taken.tolist(), strict=True))
        given = self._levels, self._choices, tuple(self._histories), follows
        decide = partial(decide_mixed, *given)
        reward, *charges = totals.tolist()
        point = PolicyPoint(reward, charges[0], decide, charges=tuple(charges))
        if math.isfinite(self._several.cap):
            point = replace(point, ahead=self._find_risk_ahead(decide()))
        if self._several.search.offer(point):
            self._several.search.expect(len(decide().rows))

    def _find_risk_ahead(self, decisions: Decisions) -> float:
        """Return the largest risk that is ahead at any decision."""
        arrays, charges = self._levels.arrays, self._several.charges
        ahead = charges[decisions.rows, 0].copy()
        begins = starts(arrays.safe_count[decisions.rows]).tolist()
        for number in range(len(ahead) - 1, -1, -1):
            row, begin = decisions.rows[number], begins[number]
            first, width = arrays.first_outcome[row], arrays.safe_count[row]
            after = decisions.children[begin : begin + width]
            onward = after >= 0
            ahead[number] += (
                arrays.probability[first : first + width][onward] @ ahead[after[onward]]
            )
        return float(ahead.max(initial=0.0))

    def _draw(self, weights: Floats, options: Floats) -> NDArray[np.intp] | None:
        """Return the policy after each history, of all ways to replace draws the best acceptable.

        None if none is acceptable.
        """
        taken: NDArray[np.intp] = weights.argmax(axis=1)
        drawn = np.flatnonzero(weights.max(axis=1) < 1 - FRACTION)
        policies = options.shape[1]
        drawn = drawn[: int(math.log(MOST_WAYS) / math.log(max(2, policies)))]
        ways = np.array(list(product(range(policies), repeat=len(drawn))), np.intp)
        ways = ways.reshape(policies ** len(drawn), len(drawn))
        others = np.delete(np.arange(len(taken)), drawn)
        fixed = self._decided + options[others, taken[others]].sum(axis=0)
        pairs = [self._histories[self._cut[place]].pair for place in drawn.tolist()]
        kept = np.stack([keeps[pairs] for keeps in self._keeps], axis=1)
        ways = ways[kept[np.arange(len(drawn)), ways].all(axis=1)]
        totals = fixed + options[drawn, ways].sum(axis=1)
        for way in np.argsort(-totals[:, 0], kind="stable").tolist():
            reward, *charges = totals[way].tolist()
            point = PolicyPoint(reward, charges[0], charges=tuple(charges))
            if self._several.judge(point) is not False:
                taken[drawn] = ways[way]
                return taken
        return None


def decide_mixed(
    levels: Levels,
    choices: NDArray[np.int32],
    histories: Sequence[History],
    follows: dict[int, int],
) -> Decisions:
    """Return the decisions of a policy that takes the rows of opened histories.

    After the other histories it follows the policy, a row of `choices`, that `follows` names.
    Decisions of the same policy in the same pair are one.
    """
    arrays, size = levels.arrays, len(levels)

    def find_key(number: int) -> int:
        """Return the key of a history: its policy and pair, or its own if it is opened."""
        if number not in follows:
            return len(choices) * size + number
        return follows[number] * size + histories[number].pair

    keys = np.array([find_key(0)], np.int64)
    rows, children, pairs, count = [], [], [], 1
    for level in range(len(arrays.first) - 1):
        opened = keys >= len(choices) * size
        policy, pair = np.divmod(keys, size)
        own = [histories[key - len(choices) * size] for key in keys[opened].tolist()]
        pair[opened] = [history.pair for history in own]
        row = choices[np.where(opened, 0, policy), pair].astype(np.int64)
        row[opened] = [history.row for history in own]
        widths = arrays.safe_count[row].astype(np.int64)
        flat = ranges(arrays.first_outcome[row], widths)
        states = arrays.target[flat]
        after = np.full(len(flat), END, np.int64)
        if level + 2 < len(arrays.first):
            first, end = arrays.first[level + 1 : level + 3].tolist()
            places = first + np.searchsorted(arrays.state[first:end], states)
            goes_on = arrays.action_count[states] != 0
            after = np.where(goes_on, np.repeat(policy, widths) * size + places, END)
        begins = starts(widths)
        for place, history in zip(np.flatnonzero(opened).tolist(), own, strict=True):
            given = [END if n == END else find_key(n) for n in history.after]
            after[begins[place] : begins[place] + widths[place]] = given
        goes_on = after != END
        keys, numbers = np.unique(after[goes_on], return_inverse=True)
        after[goes_on] = count + numbers
        rows.append(row)
        children.append(after)
        pairs.append(pair)
        count += len(keys)
        if not len(keys):
            break
    return Decisions(*(np.concatenate(part).astype(np.int32) for part in (rows, children, pairs)))
