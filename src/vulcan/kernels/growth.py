"""Values of groups of histories, and the best plan in a tree of opened histories.

**Groups.** With λ the price of failure, and ρ the price of a decision divided by the probability of
its history, the value of a group g at step t is

    U(g, ρ) = max( C(g) - ρ |C|,   max over actions of  γ^t R̄ - λ r - ρ + Σ p U(g', ρ / p) ),

where C is reward - λ risk of what closes the group, and |C| its number of decisions. ρ is one of a
geometric sequence with factor 2, `bins`; ρ / p is rounded to one of them.

**Histories.** Every history of the tree can be closed, and may have been opened by several actions.
With μ the price of a decision and P(h) the probability of the history, it is worth

    W(h) = max( P(h) C(h) - μ |C|,   max over openings of  P(h) (γ^t R̄ - λ r) - μ + Σ W(child) ).

For histories whose opening is given, the maximum is over that one alone.

**A cap** on the risk ahead is kept at every history of the plan. Each history has a plan for every
one of a few additional prices κ of failing, the last of them so high that it risks the least. Where
what follows an opening risks too much for κ, it is planned for higher prices, history by history,
the one first that loses the least for what it risks less. Openings and closings that exceed the cap
even so are not taken.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.compilation import find_bin, kernel, part
from vulcan.numerics import END, NONE

CLOSED: Final = -1  # instead of an action or an opening: closed by the default
UNREACHED: Final = -2  # instead of an opening: the plan does not reach the history
UNKNOWN: Final = -4  # instead of a group: not evaluated yet


class GroupArrays(NamedTuple):
    """G groups with R actions and O safe outcomes, in compressed rows."""

    order: Any  # [G] groups, those of the last step first; the root is the last
    first_row: Any  # [G + 1] the actions of group g are first_row[g] to first_row[g + 1] - 1
    close_reward: Any  # [G] -inf where nothing closes the group
    close_risk: Any  # [G]
    close_size: Any  # [G] decisions
    reward: Any  # [R] γ^t R̄
    risk: Any  # [R]
    first_outcome: Any  # [R + 1]
    probability: Any  # [O]
    child: Any  # [O] a group, END or UNKNOWN


@part
def shift_bin(bin_, probability, count):
    """Return the bin of a price that is divided by a probability."""
    return bin_ + find_bin(0.5 - np.log2(probability), count - 1 - bin_)


@kernel
def value_groups(groups, price, bins, values, actions):
    """Fill `values` and `actions` [G, bins]; actions with unknown children are not taken."""
    for g in groups.order:
        first = groups.first_row[g]
        for j in range(len(bins)):
            best = groups.close_reward[g] - price * groups.close_risk[g]
            best -= bins[j] * groups.close_size[g]
            chosen = CLOSED
            for row in range(first, groups.first_row[g + 1]):
                value = groups.reward[row] - price * groups.risk[row] - bins[j]
                for o in range(groups.first_outcome[row], groups.first_outcome[row + 1]):
                    child = groups.child[o]
                    if child == UNKNOWN:
                        value = -np.inf
                        break
                    if child != END:
                        p = groups.probability[o]
                        value += p * values[child, shift_bin(j, p, len(bins))]
                if value > best:
                    best, chosen = value, row - first
            values[g, j], actions[g, j] = best, chosen


@kernel
def forecast(groups, actions, start, mass, number, found):
    """Follow actions from the root at bin `start`; reward, risk and decisions into `found`.

    `mass` and `number` [G, bins] are filled with the probability and the number of histories.
    """
    mass[:] = 0.0
    number[:] = 0.0
    found[:] = 0.0
    bins = mass.shape[1]
    root = groups.order[len(groups.order) - 1]
    mass[root, start] = number[root, start] = 1.0
    for place in range(len(groups.order) - 1, -1, -1):
        g = groups.order[place]
        for j in range(bins):
            here, many = mass[g, j], number[g, j]
            if here == 0.0:
                continue
            if actions[g, j] < 0:
                found[0] += here * max(groups.close_reward[g], -1e300)
                found[1] += here * groups.close_risk[g]
                found[2] += many * groups.close_size[g]
                continue
            row = groups.first_row[g] + actions[g, j]
            found[0] += here * groups.reward[row]
            found[1] += here * groups.risk[row]
            found[2] += many
            for o in range(groups.first_outcome[row], groups.first_outcome[row + 1]):
                child, p = groups.child[o], groups.probability[o]
                if child >= 0:
                    k = shift_bin(j, p, bins)
                    mass[child, k] += here * p
                    number[child, k] += many


class PlanArrays(NamedTuple):
    """N histories and E openings; all values are multiplied by the probability of the history.

    Histories have larger numbers than those before them.
    """

    close_reward: Any  # [N] -inf where nothing closes the history
    close_risk: Any  # [N]
    close_size: Any  # [N] decisions
    first_opening: Any  # [N] NONE for a history that was never opened
    next_opening: Any  # [E] another opening of the same history, or NONE
    reward: Any  # [E]
    risk: Any  # [E]
    first_child: Any  # [E]
    child_count: Any  # [E]


@kernel
def choose_plan(tree, price, decision_price, held, values, chosen, found):
    """Choose the best plan; its reward, risk and decisions into `found`.

    `chosen` [N] is the opening of each history of the plan, CLOSED or UNREACHED. `held` [N] is the
    same for histories whose opening is given, and UNREACHED for others. `values` [N] is filled with
    W.
    """
    count = len(tree.first_opening)
    for n in range(count - 1, -1, -1):
        best, chosen[n] = -np.inf, CLOSED
        if held[n] < 0:
            best = tree.close_reward[n] - price * tree.close_risk[n]
            best -= decision_price * tree.close_size[n]
        opening = NONE if held[n] == CLOSED else tree.first_opening[n]
        while opening != NONE:
            if held[n] >= 0 and opening != held[n]:
                opening = tree.next_opening[opening]
                continue
            value = tree.reward[opening] - price * tree.risk[opening] - decision_price
            first = tree.first_child[opening]
            for child in range(first, first + tree.child_count[opening]):
                value += values[child]
            if value > best:
                best = value
                chosen[n] = opening
            opening = tree.next_opening[opening]
        values[n] = best
    found[:] = 0.0
    reached = np.zeros(count, np.bool_)
    reached[0] = True
    for n in range(count):
        opening = chosen[n]
        if not reached[n]:
            chosen[n] = UNREACHED
        elif opening >= 0:
            found[0] += tree.reward[opening]
            found[1] += tree.risk[opening]
            found[2] += 1
            first = tree.first_child[opening]
            for child in range(first, first + tree.child_count[opening]):
                reached[child] = True
        else:
            found[0] += tree.close_reward[n]
            found[1] += tree.close_risk[n]
            found[2] += tree.close_size[n]


class CapArrays(NamedTuple):
    """A cap on the risk ahead, and the plans of N histories for C additional prices of failing.

    Risks are those of failing, multiplied by the probability of the history.
    """

    keeps: Any  # [N] whether the closing keeps the cap wherever it leads
    close_risk: Any  # [N]
    risk: Any  # [E]
    allowed: Any  # [N] the cap times the probability of the history
    prices: Any  # [C]
    value: Any  # [N, C] without the additional price; -inf where nothing keeps the cap
    total: Any  # [N, C] the risk of failing
    opening: Any  # [N, C]
    column: Any  # [N, C] the price for this history when C is that of the history before


@part
def fit_children(cap, first, end, total, allowed, c):
    """Choose prices for histories in `column[:, c]`, so that a total risk is at most `allowed`."""
    for child in range(first, end):
        cap.column[child, c] = c
        total += cap.total[child, c]
    while total > allowed:
        best, ratio, price = NONE, np.inf, NONE
        for child in range(first, end):
            here = cap.column[child, c]
            for k in range(here + 1, cap.value.shape[1]):
                less = cap.total[child, here] - cap.total[child, k]
                if less > 0.0:
                    lost = (cap.value[child, here] - cap.value[child, k]) / less
                    if lost < ratio:
                        best, ratio, price = child, lost, k
        if best == NONE:
            break
        total -= cap.total[best, cap.column[best, c]] - cap.total[best, price]
        cap.column[best, c] = price
    return total


@kernel
def choose_capped(tree, cap, decision_price, held, chosen, found):
    """Choose the best plan that keeps a cap, as `choose_plan` does for a price of 1."""
    count, columns = cap.value.shape
    for n in range(count - 1, -1, -1):
        for c in range(columns):
            best = worth = -np.inf
            cap.opening[n, c], cap.total[n, c] = CLOSED, cap.close_risk[n]
            if held[n] < 0 and cap.keeps[n]:
                best = tree.close_reward[n] - tree.close_risk[n]
                best -= decision_price * tree.close_size[n]
                worth = best - cap.prices[c] * cap.close_risk[n]
            opening = NONE if held[n] == CLOSED else tree.first_opening[n]
            while opening != NONE:
                if held[n] < 0 or opening == held[n]:
                    first = tree.first_child[opening]
                    end = first + tree.child_count[opening]
                    total = fit_children(cap, first, end, cap.risk[opening], cap.allowed[n], c)
                    value = tree.reward[opening] - tree.risk[opening] - decision_price
                    for child in range(first, end):
                        value += cap.value[child, cap.column[child, c]]
                    if total <= cap.allowed[n] and value - cap.prices[c] * total > worth:
                        best, worth = value, value - cap.prices[c] * total
                        cap.opening[n, c], cap.total[n, c] = opening, total
                opening = tree.next_opening[opening]
            cap.value[n, c] = best
    found[:] = 0.0
    column = np.full(count, NONE)
    column[0] = 0
    for n in range(count):
        chosen[n] = UNREACHED
        if column[n] == NONE:
            continue
        chosen[n] = opening = cap.opening[n, column[n]]
        if opening >= 0:
            found[0] += tree.reward[opening]
            found[1] += tree.risk[opening]
            found[2] += 1
            first = tree.first_child[opening]
            for child in range(first, first + tree.child_count[opening]):
                column[child] = cap.column[child, column[n]]
        else:
            found[0] += tree.close_reward[n] if cap.value[n, column[n]] > -np.inf else -np.inf
            found[1] += tree.close_risk[n]
            found[2] += tree.close_size[n]
