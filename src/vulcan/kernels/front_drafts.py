"""Points of a front in the making: pairs of points combined, and what no other point beats.

Most pairs are beaten by others. Where there are many, they are first counted into bins of reward,
so that few are ever sorted.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.codes import DONE, IMPATIENT, NEEDS_SCRATCH
from vulcan.kernels.compilation import kernel, part

__all__ = ["BINS", "DRAFT", "FIRST_DRAFTS", "combine", "reduce_drafts"]

DRAFT = np.dtype(
    [
        ("risk", "f8"),
        ("reward", "f8"),
        ("shortfall", "f8"),
        ("left", "i4"),
        ("right", "i4"),
    ],
    align=True,
)
"""A point in the making: a draft of the outcomes before (`left`), and a point of one more."""

MANY_PAIRS = 512
BINS = 1024

FIRST_DRAFTS = 1 << 14
"""After so many drafts those that others beat are left out; after twice as many, and so on, where
most are left. Among equal points that decides which is kept, so it is not the room that decides."""


@part
def combine(memory, probability, front, begin, count, limit):
    """Draft every pair of a kept draft and a point of one more target that may matter.

    Most pairs are beaten by others. Where there are many, a first pass notes the least risk in each
    of some bins of reward, and the second drafts only what no bin of more reward beats.
    """
    control, drafts, kept = memory.control, memory.drafts, memory.kept
    points, bins = memory.points, memory.bins
    low, scale = find_bins(kept, points, bins, probability, front, begin, count)
    last = len(bins) - 2
    drafted, most = 0, FIRST_DRAFTS
    for drafting in range(0 if scale > 0 else 1, 2):
        for a in range(count):
            if control[0].node_work > control[0].patience:
                return IMPATIENT, 0
            control[0].node_work += front.count
            before = kept[begin + a]
            for j in range(front.count):
                place = points[front.first + j].by_shortfall
                point = points[front.first + place]
                shortfall = before.shortfall + probability * point.shortfall
                if shortfall > limit:
                    control[0].dropped += 1
                    break  # all others fall short even more
                risk = before.risk + probability * point.risk
                reward = before.reward + probability * point.reward
                b = min(last, int((reward - low) * scale))
                if drafting == 0:
                    bins[b] = min(bins[b], risk)
                    continue
                if risk >= bins[b + 1]:
                    continue
                if drafted == most:
                    drafted = sort_drafts(drafts, memory.keys, drafted, 0.0)
                    if 2 * drafted > most:
                        most *= 2
                    if most > len(drafts):
                        return NEEDS_SCRATCH, 0
                draft = drafts[drafted]
                draft.risk = risk
                draft.reward = reward
                draft.shortfall = shortfall
                draft.left = a
                draft.right = place
                drafted += 1
        for b in range(last, -1, -1):
            bins[b] = min(bins[b], bins[b + 1])
    return DONE, drafted


@part
def find_bins(kept, points, bins, probability, front, begin, count):
    """Empty the bins; return where they begin and how many there are per reward, 0 for none."""
    bins[:] = np.inf
    if count * front.count <= MANY_PAIRS:
        return 0.0, 0.0
    low = high = kept[begin].reward
    for a in range(count):
        low = min(low, kept[begin + a].reward)
        high = max(high, kept[begin + a].reward)
    low += probability * points[front.first].reward
    high += probability * points[front.first + front.count - 1].reward
    return low, (len(bins) - 1) / (high - low) if high > low else 0.0


@part
def reduce_drafts(memory, drafted):
    """Keep the drafts that no other beats or represents; return their number and the loss."""
    thinness, most = memory.control[0].thinness, memory.control[0].points_here
    drafts, keys = memory.drafts, memory.keys
    left = sort_drafts(drafts, keys, drafted, thinness)
    if left <= most:
        return left, thinness
    memory.control[0].thinned += 1
    span = drafts[left - 1].reward - drafts[0].reward
    return sort_drafts(drafts, keys, left, span / most), thinness + span / most


@kernel  # called, not inlined: sorting is long to compile, and a call costs nothing beside it
def sort_drafts(drafts, keys, drafted, thinness):
    """Order the drafts by risk, without those that earn no more than one before, or hardly more."""
    for j in range(drafted):
        keys[j] = drafts[j].risk
    order = np.argsort(keys[:drafted])
    moved = drafts[:drafted].copy()
    count = 0
    for j in order:
        draft = moved[j]
        if count > 0:
            last = drafts[count - 1]
            if draft.reward <= last.reward + thinness:
                continue
            if draft.risk == last.risk:
                count -= 1
        drafts[count] = draft
        count += 1
    return count
