"""Joint fronts: points of reward and several charges, for each state–step pair.

A point of a pair is the reward g and the charges x_1 ... x_D of a deterministic, history-dependent
policy from there on. The points of an action are the sums over its outcomes

    g = γ^t R̄ + Σ_safe p g_j,    x_k = c_k + Σ_safe p x_kj,

with any point of each next pair; those of a pair are the points of all its actions. With weights w
of reward and λ_k of charges, and V(n) the largest w g - Σ λ_k x_k from a pair on, a point has the
dual gap V(n) - (w g - Σ λ_k x_k). Gaps add up: that of a point is the gap of its action and the sum
of p times the gaps of the points that it was made of.

Kept are at most `most` points of a set: points with a dual gap above `slack` are dropped, then
dominated points; and of what is left, if it is too much, the point of the least gap in each cell of
a grid over the charges, with the points of the least charge of each kind. Only the last step loses
anything that matters (`thinned`). Points whose first charge, the risk, exceeds `cap` are no points
of a pair: so every history keeps the cap. The point of least risk is never dropped before that, so
that a pair without points has no policy that keeps the cap.

Every point has its action row and, for each safe outcome, the point that follows (END for an end).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, NEEDS_POINTS, PAUSED
from vulcan.kernels.compilation import borrow, find_bin, kernel, part, routine, scale_bins
from vulcan.kernels.dp import find_next, put_in_place, value_row
from vulcan.numerics import END

CONTROL: Final = np.dtype(
    [
        ("slack", "f8"),
        ("cap", "f8"),
        ("most", "i8"),  # points of a set
        ("node", "i8"),  # the next pair; -1 when done
        ("points", "i8"),  # stored so far
        ("links", "i8"),
        ("work", "i8"),  # pairs of points combined or compared so far
        ("pause", "i8"),
        ("thinned", "i8"),  # whether points were lost that matter
    ],
    align=True,
)


class JointFronts(NamedTuple):
    """The arrays of a computation. A point has the columns gap, reward, and the charges."""

    first: Any  # of each pair, its first point, and their number
    count: Any
    points: Any  # [P, 2 + D]
    row: Any  # [P] the action row of each point
    first_link: Any  # [P]
    links: Any  # the point that follows each safe outcome, or END
    sums: Any  # scratch: [2, M, 2 + D] points of the outcomes so far, and with one more outcome
    origins: Any  # scratch: [2, M, B] the points that they were made of
    found: Any  # scratch: [F, 2 + D] the points of all actions of a pair
    found_row: Any  # scratch: [F]
    found_links: Any  # scratch: [F, B]
    cells: Any  # scratch: the point in each cell
    control: Any


GAP: Final = 0
REWARD: Final = 1
RISK: Final = 2  # the first charge

SEVERAL: Final = 8  # sets of this many times the points that are kept lose points before dominance


@kernel
def extend(levels, charges, weights, values, fronts):
    """Fill the fronts of pairs from `node` down to the root: DONE, PAUSED or NEEDS_POINTS."""
    levels, charges, fronts = borrow(levels), borrow(charges), borrow(fronts)
    weights, values = borrow(weights), borrow(values)
    control = fronts.control[0]
    level = np.searchsorted(levels.first, control.node, side="right") - 1
    if level + 2 < len(levels.first):
        put_in_place(levels, level + 1)
    while control.node >= 0:
        n = control.node
        if n < levels.first[level]:
            level -= 1
            put_in_place(levels, level + 1)
        if control.work >= control.pause:
            return PAUSED
        state = levels.state[n]
        first, found = levels.first_action[state], 0
        for row in range(first, first + levels.action_count[state]):
            gap = values[n, 0] - value_row(levels, charges, weights, values, level, row)
            if gap <= control.slack:
                found = add_action(levels, charges, fronts, level, row, max(gap, 0.0), found)
        found = thin(fronts, fronts.found[:found], found, True)
        width = fronts.found_links.shape[1]
        if control.points + found > len(fronts.points):
            return NEEDS_POINTS
        if control.links + found * width > len(fronts.links):
            return NEEDS_POINTS
        store(levels, fronts, n, found)
        control.node -= 1
    return DONE


@part
def store(levels, fronts, n, found):
    """Store the points of a pair."""
    control = fronts.control[0]
    fronts.first[n], count = control.points, 0
    for k in range(found):
        if fronts.found[k, RISK] > control.cap:
            continue
        point = control.points
        fronts.points[point] = fronts.found[k]
        row = fronts.found_row[k]
        fronts.row[point] = row
        fronts.first_link[point] = control.links
        for place in range(levels.safe_count[row]):
            fronts.links[control.links + place] = fronts.found_links[k, place]
        control.links += levels.safe_count[row]
        control.points += 1
        count += 1
    fronts.count[n] = count


@routine
def add_action(levels, charges, fronts, level, row, gap, found):
    """Add the points of an action to those found for its pair; return their number."""
    sums, origins = fronts.sums, fronts.origins
    here, count = 0, 1
    sums[0, 0, GAP] = gap
    sums[0, 0, REWARD] = levels.weights[level] * levels.expected_reward[row]
    for k in range(charges.shape[1]):
        sums[0, 0, RISK + k] = charges[row, k]
    begin, outcomes = levels.first_outcome[row], levels.safe_count[row]
    for place in range(outcomes):
        after = find_next(levels, level, begin + place)
        if after < 0:
            for k in range(count):
                origins[here, k, place] = END
            continue
        count = combine(fronts, here, count, place, after, levels.probability[begin + place])
        here = 1 - here
        count = thin_sums(fronts, here, count, place + 1)
        if count == 0:
            return found
    for k in range(min(count, len(fronts.found) - found)):
        fronts.found[found] = sums[here, k]
        fronts.found_row[found] = row
        for place in range(outcomes):
            fronts.found_links[found, place] = origins[here, k, place]
        found += 1
    return found


@part
def combine(fronts, here, count, place, after, probability):
    """Combine some sums with every point of the next pair; return the number of new sums."""
    control, sums, origins = fronts.control[0], fronts.sums, fronts.origins
    there, made = 1 - here, 0
    first, size = fronts.first[after], fronts.count[after]
    control.work += count * size
    for k in range(count):
        for point in range(first, first + size):
            gap = sums[here, k, GAP] + probability * fronts.points[point, GAP]
            if gap > control.slack or made == sums.shape[1]:
                continue
            sums[there, made, GAP] = gap
            for c in range(REWARD, sums.shape[2]):
                sums[there, made, c] = sums[here, k, c] + probability * fronts.points[point, c]
            for before in range(place):
                origins[there, made, before] = origins[here, k, before]
            origins[there, made, place] = point
            made += 1
    return made


@part
def thin_sums(fronts, here, count, width):
    """Drop what need not be kept of some sums; return the number that is left."""
    order = select(fronts, fronts.sums[here], count)
    kept = 0
    for k in range(count):
        if order[k]:
            if kept < k:
                fronts.sums[here, kept] = fronts.sums[here, k]
                for place in range(width):
                    fronts.origins[here, kept, place] = fronts.origins[here, k, place]
            kept += 1
    return kept


@part
def thin(fronts, points, count, final):
    """Drop what need not be kept of the points of a pair; return the number that is left."""
    order = select(fronts, points, count)
    kept = 0
    for k in range(count):
        if order[k]:
            if kept < k:
                fronts.found[kept] = fronts.found[k]
                fronts.found_row[kept] = fronts.found_row[k]
                fronts.found_links[kept] = fronts.found_links[k]
            kept += 1
    return kept


@routine
def select(fronts, points, count):
    """Return which of some points are kept."""
    control, cells = fronts.control[0], fronts.cells
    keep = np.ones(count, np.bool_)
    if count > SEVERAL * control.most:
        control.thinned = 1
        keep_in_cells(points, count, control.most, cells, keep)
    control.work += np.count_nonzero(keep) ** 2
    left = drop_dominated(points, count, keep)
    if left > control.most:
        control.thinned = 1
        keep_in_cells(points, count, control.most, cells, keep)
    return keep


@part
def drop_dominated(points, count, keep):
    """Drop points that another one equals or exceeds in everything; return how many are left."""
    left = 0
    for k in range(count):
        if not keep[k]:
            continue
        for other in range(count):
            if other == k or not keep[other]:
                continue
            if points[other, REWARD] < points[k, REWARD]:
                continue
            better, equal = True, points[other, REWARD] == points[k, REWARD]
            for c in range(RISK, points.shape[1]):
                if points[other, c] > points[k, c]:
                    better = False
                    break
                equal = equal and points[other, c] == points[k, c]
            if better and (not equal or other < k):
                keep[k] = False
                break
        left += keep[k]
    return left


@part
def keep_in_cells(points, count, most, cells, keep):
    """Keep the point of the least gap in each cell, and those of the least charges."""
    charges = points.shape[1] - RISK
    low, scale = np.zeros(charges), np.zeros(charges)
    safest = np.zeros(charges, np.int64)
    side, total = divide(points, count, most, len(cells), keep, low, scale, safest)
    cells[:total] = -1
    for k in range(count):
        if not keep[k]:
            continue
        keep[k] = False
        cell = 0
        for c in range(charges):
            if scale[c] > 0:
                cell = cell * side + find_bin((points[k, RISK + c] - low[c]) * scale[c], side - 1)
        if cells[cell] < 0 or points[k, GAP] < points[cells[cell], GAP]:
            cells[cell] = k
    for cell in range(total):
        if cells[cell] >= 0:
            keep[cells[cell]] = True
    for c in range(charges):
        keep[safest[c]] = True


@part
def raise_to(base, exponent):
    """Return the power of an integer."""
    power = 1
    for _ in range(exponent):
        power *= base
    return power


@part
def divide(points, count, most, room, keep, low, scale, safest):
    """Divide the ranges of charges into cells: return those of one charge, and of all.

    Filled are the least of each charge, its cells per unit (0 where it is not divided), and the
    point that has it.
    """
    wide = 0
    for c in range(len(low)):
        least, largest = np.inf, -np.inf
        for k in range(count):
            if keep[k]:
                charge = points[k, RISK + c]
                if charge < least:
                    least, safest[c] = charge, k
                largest = max(largest, charge)
        low[c], scale[c] = least, largest - least
        wide += largest > least
    side = 2  # at least; the largest whose power is at most `most`
    while raise_to(side + 1, max(1, wide)) <= most:
        side += 1
    total = 1
    for c in range(len(low)):
        if scale[c] > 0 and total * side <= room:
            scale[c] = scale_bins(low[c], low[c] + scale[c], side)
            total *= side
        else:
            scale[c] = 0.0
    return side, total
