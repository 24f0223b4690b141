"""Rows of a state graph: numbers of states that are given as integers, and sums over outcomes."""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import kernel, part
from vulcan.numerics import FAILURE_STATE, NONE

MIXING = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


@part
def find_slot(rows, k, keys, slots):
    """Return the slot of row k: that of an equal key, or a free one."""
    code = np.uint64(0)
    for j in range(rows.shape[1]):
        code = (code ^ np.uint64(rows[k, j])) * MIXING
        code ^= code >> HALF
    last = len(slots) - 1
    place = np.int64(code & np.uint64(last))
    while slots[place] != NONE:
        number, same = slots[place], True
        for j in range(rows.shape[1]):
            same = same and keys[number, j] == rows[k, j]
        if same:
            break
        place = (place + 1) & last
    return place


@kernel
def number_rows(rows, keys, slots, known, numbers, k):
    """Write the numbers of rows from row k on; return where it ended, and how many keys are known.

    `keys` has the different rows in the order of their numbers, and new ones are added. `slots` is
    a table of numbers, NONE where it is free; its length is a power of two, and twice that of
    `keys`. The kernel ends where `keys` is full.
    """
    while k < len(rows) and known < len(keys):
        place = find_slot(rows, k, keys, slots)
        if slots[place] == NONE:
            for j in range(rows.shape[1]):
                keys[known, j] = rows[k, j]
            slots[place] = known
            known += 1
        numbers[k] = slots[place]
        k += 1
    return k, known


@part
def add_exactly(total, rest, x):
    """Return the sum of two numbers, and a rest with the rounding error added."""
    added = total + x
    back = added - total
    return added, rest + ((total - (added - back)) + (x - back))


@kernel
def sum_outcomes(actions, outcomes, states, first):
    """Fill the rows of some actions, whose outcomes begin at `first` and follow each other."""
    for k in range(len(actions)):
        begin, end = first, first + actions[k].outcome_count
        mean = mean_rest = risk = risk_rest = 0.0
        safe = open_count = 0
        for o in range(begin, end):
            p = outcomes[o].probability
            mean, mean_rest = add_exactly(mean, mean_rest, p * outcomes[o].reward)
            if outcomes[o].state == FAILURE_STATE:
                risk, risk_rest = add_exactly(risk, risk_rest, p)
            else:
                safe += 1
                open_count += states[outcomes[o].state].action_count != 0
        actions[k].expected_reward = actions[k].credit = mean + mean_rest
        actions[k].immediate_risk = risk + risk_rest if safe else 1.0
        actions[k].first_outcome, actions[k].safe_count = begin, safe
        actions[k].open_count = open_count
        first = end
