"""The exploration mission as machine code: the same as `model`, which is the reference.

Cells are numbered within a window of 2 h + 1 by 2 h + 1 cells around the start, all that can be
reached in h moves. Tables give risk by step and cell, the mean by cell and the kernel by distance.

Let c be a cell, and let the samples so far be numbered from 0. Notes say, for each number k of
samples and each cell that can still be reached with them,

    columns[k]    L_ck, the weight of the k-th sample in c, given those before it
    explained[k]  Σ_{j<=k} L_cj², the variance explained; infinite in the cells sampled
    sums[k]       Σ_{0<j<k} L_cj z_j, the shift of the mean by the samples after the first
    priors        the mean given the first sample

so that an outcome is a sum, and a bound a maximum of sums. Each is made from the one before it in a
step, and depends on the first samples only: columns on their cells, sums on their values, too. A
search asks for all actions of a history, and then for those of a history that goes on from it, so
that most of the time all but the last are known. The k-th is kept for all cells within h - k moves
of the k-th sample; a vehicle with k samples cannot get further. Bounds are noted for all values of
the last sample at once, as a search asks for these one after the other.

The last moves are planned exactly, and all at once (`last_value`). Weights depend on the cells of
samples, not on their values, so that one walk over all sequences of moves serves all combinations
of values: a *lane* for each combination of the last sample so far and those to come. Columns of
samples to come are written behind those that are known.

A state, and all tables and notes, which are the parameters, are records. They
have a fixed size, so that horizons are rounded up to one of `CAPACITIES`, and code is compiled once
for each of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numba import carray
from numpy.typing import NDArray

from vulcan.domains.exploration.cuda import DEGREE, KEPT, tabulate
from vulcan.domains.exploration.field import SMALLEST_SHARE
from vulcan.domains.exploration.model import LARGEST_DEGREE, MOVES
from vulcan.kernels.compilation import answer, look_up, part, routine
from vulcan.model.compiled import (
    CompiledModel,
    bound_signature,
    outcomes_signature,
    value_bound_signature,
)

if TYPE_CHECKING:
    from vulcan.domains.exploration.model import Exploration, History

CAPACITIES: Final = (6, 9, 12, 18, 27, 40)
"""Above the largest of these horizons the tables would no longer be small."""

READINGS: Final = 10  # bits of the readings on the first moves, behind those of the moves
Show = Callable[[NDArray[Any]], None]
LAST_MOVES: Final = 4  # at most this many are planned exactly at once,
MOST_LANES: Final = 256  # for at most this many combinations of samples


def parameters_dtype(capacity: int) -> np.dtype[Any]:
    """Return the record of all parameters and tables, and of the notes."""
    window = 2 * capacity + 1
    cells = window * window
    return np.dtype(
        [
            ("horizon", "i8"),
            ("begun", "i8"),  # steps that were taken before the search begins
            ("degree", "i8"),
            ("least_x", "i8"),  # the first and last columns and rows of the map
            ("most_x", "i8"),
            ("least_y", "i8"),
            ("most_y", "i8"),
            ("variance", "f8"),
            ("first_node", "f8"),
            ("collision_reward", "f8"),
            ("discount", "f8"),
            ("nodes", "f8", (LARGEST_DEGREE,)),
            ("chances", "f8", (LARGEST_DEGREE,)),
            ("risks", "f8", (capacity + 1, cells)),
            ("means", "f8", (cells,)),
            ("kernel", "f8", (2 * window - 1, 2 * window - 1)),  # by distance, 0 in the middle
            ("norms", "f8", (capacity + 1,)),
            # Notes; see the head of this module.
            ("known", "i8"),  # how many samples there are columns for
            ("summed", "i8"),  # and sums
            ("known_cells", "i2", (capacity + 1,)),
            ("known_nodes", "u1", (capacity + 1,)),
            ("row", "f8", (capacity + 1,)),  # of L, for the sample whose column is made
            ("priors", "f8", (cells,)),
            ("columns", "f8", (capacity + 1, cells)),
            ("explained", "f8", (capacity + 1, cells)),
            ("sums", "f8", (capacity + 2, cells)),
            ("limits", "f8", (LARGEST_DEGREE,)),  # for each node of the last sample
            ("limits_sampled", "i8"),  # of how many samples that are known; 0 without limits
            ("limits_here", "i8"),  # from where
            ("limits_step", "i8"),
            ("learned", "f8"),  # for the same, what samples to come can add to the value to go
            ("pays", "f8", (cells,)),  # and while that is found, what a cell pays, and is worth
            ("worths", "f8", (cells,)),
            ("values", "f8", (cells,)),
            ("last_steps", "i8"),  # how many moves `last_value` plans
            ("lanes", "f8", (LAST_MOVES, MOST_LANES)),  # the node of each sample, by lane
            ("lane_values", "f8", (LAST_MOVES, MOST_LANES)),  # by number of moves planned
            ("lane_means", "f8", (len(MOVES), MOST_LANES)),  # while these are found, by move
            ("lane_shifts", "f8", (len(MOVES),)),
            ("weights", "f8", (LAST_MOVES,)),  # of rewards, by number of moves planned
            ("lane_moves", "i8", (LAST_MOVES,)),  # the moves that are being compared, by depth
            ("lane_cells", "i8", (LAST_MOVES,)),
            ("lane_samples", "i8", (LAST_MOVES,)),
            ("lasts", "f8", (LARGEST_DEGREE,)),  # last values for each node of the last sample
            ("lasts_sampled", "i8"),  # of what they are, as of `limits`
            ("lasts_here", "i8"),
            ("lasts_step", "i8"),
            ("lasts_price", "f8"),
            ("table", "u8"),  # values that a GPU found: their address, 0 without any,
            ("table_price", "f8"),  # for which price,
            ("table_moves", "i8"),  # and the moves of the longest histories
        ],
        align=True,
    )


def fill_tables(mission: Exploration, capacity: int, parameters: NDArray[Any]) -> NDArray[Any]:
    """Fill the tables."""
    tables = parameters[0]
    area, horizon = mission.area, mission.horizon
    for name in ("horizon", "degree", "collision_reward", "discount"):
        tables[name] = getattr(mission, name)
    tables["variance"], tables["summed"] = mission.field.variance, 1
    tables["first_node"] = mission.first_node
    nodes, chances = mission.quadrature
    tables["nodes"][: len(nodes)], tables["chances"][: len(nodes)] = nodes, chances
    tables["norms"][:horizon], tables["worths"] = mission.norms, -np.inf
    tables["last_steps"] = count_last_steps(mission)
    tables["weights"] = mission.discount ** np.arange(LAST_MOVES)
    lanes = np.arange(MOST_LANES)
    for k in range(tables["last_steps"]):
        tables["lanes"][k] = tables["nodes"][lanes // len(nodes) ** k % len(nodes)]
    west, south = area.start[0] - capacity, area.start[1] - capacity
    least_x, most_x = max(0, -west), min(2 * capacity, area.columns - 1 - west)
    least_y, most_y = max(0, -south), min(2 * capacity, area.rows - 1 - south)
    tables["least_x"], tables["most_x"] = least_x, most_x
    tables["least_y"], tables["most_y"] = least_y, most_y
    window = 2 * capacity + 1
    for x in range(window):
        for y in range(window):
            covariance = mission.field.kernel(mission.displace((0, 0), (x, y)), (0.0, 0.0))
            for across in (window - 1 - x, window - 1 + x):
                tables["kernel"][across, [window - 1 - y, window - 1 + y]] = covariance
            distance = max(abs(x - capacity), abs(y - capacity))
            if least_x <= x <= most_x and least_y <= y <= most_y and distance <= horizon:
                cell, number = (west + x, south + y), x * window + y
                tables["means"][number] = mission.field.mean(area.locate(cell))
                for step in range(max(1, distance), horizon + 1):
                    tables["risks"][step, number] = mission.risk(cell, step)
    return parameters


def count_last_steps(mission: Exploration) -> int:
    """Return how many moves can be planned exactly at once."""
    return next(k for k in range(LAST_MOVES, 0, -1) if mission.degree**k <= MOST_LANES)


EAST: Final = np.array([east for east, _ in MOVES.values()])
NORTH: Final = np.array([north for _, north in MOVES.values()])


def outcomes(parameters, states, action, answers, following):
    """Write the outcomes of a move; see `vulcan.model.compiled`."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    window = find_window(tables)
    x, y = state.here // window + EAST[action], state.here % window + NORTH[action]
    if x < tables.least_x or x > tables.most_x or y < tables.least_y or y > tables.most_y:
        return 0
    answer, then = carray(answers, LARGEST_DEGREE + 1), carray(following, LARGEST_DEGREE + 1)
    cell, step, sampled = x * window + y, state.step + 1, state.sampled
    risk = tables.risks[step, cell]
    count = 0
    if risk < 1.0:
        know_columns(tables, state)
        if tables.explained[sampled - 1, cell] == np.inf:
            move(state, then, 0, step, cell, action)
            write(answer[0], 1.0 - risk, 0.0, 0)
            count = 1
        else:
            know_sums(tables, state, sampled)
            expected = tables.priors[cell] + tables.sums[sampled, cell]
            deviation = find_deviation(tables, sampled, cell)
            for k in range(tables.degree):
                value = expected + deviation * tables.nodes[k]
                write(answer[k], (1.0 - risk) * tables.chances[k], value, 0)
                move(state, then, k, step, cell, action)
                then[k].cells[sampled], then[k].nodes[sampled] = cell, k
                then[k].sampled = sampled + 1
            count = tables.degree
    if risk > 0.0:
        write(answer[count], risk, tables.collision_reward, 1)
        count += 1
    return count


def bound(parameters, states, step):
    """Return an upper bound on what can still be earned; see `field`."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    step += tables.begun
    if step < state.step:
        return np.inf  # the columns do not reach as far as that
    know_limits(tables, state, step)
    return tables.limits[state.nodes[state.sampled - 1]]


def value_bound(parameters, states, step, price):
    """Return an upper bound on reward less price times risk; see `field`."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    step += tables.begun
    if step < state.step:
        return np.inf
    if has_table(tables, state, step, price):
        return look_up(tables.table, find_place(state))
    know_limits(tables, state, step)
    know_sums(tables, state, state.sampled)
    return plan_path(tables, state, step, tables.collision_reward - price) + tables.learned


def last_value(parameters, states, step, price):
    """Return the largest reward less price times risk, with at most `last_steps` moves left."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    step += tables.begun
    if step < state.step:
        return np.inf
    know_columns(tables, state)
    know_sums(tables, state, state.sampled - 1)
    same = tables.lasts_here == state.here and tables.lasts_step == step
    same = same and tables.lasts_price == price
    if not same or tables.lasts_sampled != state.sampled:
        plan_last_moves(tables, state, step, price)
        tables.lasts_here, tables.lasts_step = state.here, step
        tables.lasts_sampled, tables.lasts_price = state.sampled, price
    return tables.lasts[state.nodes[state.sampled - 1]]


@part
def has_table(tables, state, step, price):
    """Whether a table has the value of a state."""
    there = tables.table != 0 and step == state.step and step <= tables.table_moves
    return there and price == tables.table_price


@part
def find_place(state):
    """Return the place of a history among those of a table, all shorter ones before it."""
    moves, readings = state.history >> READINGS, state.history & ((1 << READINGS) - 1)
    before = ((1 << (5 * state.step)) - 1) // 31
    return before + (moves << (2 * state.step)) + readings


@part
def write(answer, probability, reward, fails):
    """Write an outcome."""
    answer.probability, answer.reward, answer.fails = probability, reward, fails


@part
def move(state, then, k, step, cell, action):
    """Copy a state, with the vehicle in its new cell."""
    then[k] = state
    then[k].step, then[k].here = step, cell
    if step <= KEPT:
        moves = (state.history >> READINGS) * len(EAST) + action
        readings = (state.history & ((1 << READINGS) - 1)) * DEGREE + k
        then[k].history = (moves << READINGS) + readings


@part
def find_window(tables):
    """Return how many cells the window has each way: a constant, so that no division is made."""
    return 2 * tables.known_cells.shape[0] - 1


@part
def find_deviation(tables, k, cell):
    """Return L_kk if the k-th sample is taken in a cell."""
    left = tables.variance - tables.explained[k - 1, cell] if k > 0 else tables.variance
    return math.sqrt(left) if left > SMALLEST_SHARE * tables.variance else 0.0


@part
def know_columns(tables, state):
    """Update the columns to the samples of a state."""
    shared, most = 0, min(tables.known, state.sampled)
    while shared < most and tables.known_cells[shared] == state.cells[shared]:
        shared += 1
    if shared < state.sampled:
        for k in range(shared, state.sampled):
            add_column(tables, k, state.cells[k])
        tables.known, tables.summed = state.sampled, min(tables.summed, max(1, shared))
        tables.limits_sampled = tables.lasts_sampled = 0


@part
def know_sums(tables, state, count):
    """Update the sums to the first samples of a state."""
    shared, most = 1, min(tables.summed, count)
    while shared < most and tables.known_nodes[shared] == state.nodes[shared]:
        shared += 1
    if shared < count:
        for k in range(shared, count):
            add_to_sums(tables, k, state.cells[k], state.nodes[k])
        tables.summed = count
        if shared + 1 < tables.limits_sampled:
            tables.limits_sampled = 0
        if shared + 1 < tables.lasts_sampled:
            tables.lasts_sampled = 0


@part
def know_limits(tables, state, step):
    """Update the bounds to a state."""
    know_columns(tables, state)
    know_sums(tables, state, state.sampled - 1)
    same = tables.limits_here == state.here and tables.limits_step == step
    if not same or tables.limits_sampled != state.sampled:
        for first in range(0, tables.degree, 4):
            look_ahead(tables, state, step, first)
        tables.limits_here, tables.limits_step = state.here, step
        tables.limits_sampled = state.sampled


@part
def find_reach(tables, cell, moves):
    """Return the first and last column and row of the map within a number of moves of a cell."""
    window = find_window(tables)
    x, y = cell // window, cell % window
    return (
        max(tables.least_x, x - moves),
        min(tables.most_x, x + moves),
        max(tables.least_y, y - moves),
        min(tables.most_y, y + moves),
    )


@part
def add_column(tables, k, cell):
    """Find what the k-th sample says of the cells around it, given those before."""
    window = find_window(tables)
    here_x, here_y = cell // window, cell % window
    for i in range(k):
        tables.row[i] = tables.columns[i, cell]
    pivot = find_deviation(tables, k, cell)
    left, right, bottom, top = find_reach(tables, cell, tables.horizon - k)
    for x in range(left, right + 1):
        for y in range(bottom, top + 1):
            place = x * window + y
            # In the order of the plain model, so that both give the very same numbers.
            known = 0.0
            for i in range(k):
                known += tables.row[i] * tables.columns[i, place]
            covariance = tables.kernel[x - here_x + window - 1, y - here_y + window - 1]
            # Where a sample brings nothing new, nothing can be learned from it, either.
            weight = (covariance - known) / pivot if pivot > 0.0 else 0.0
            before = tables.explained[k - 1, place] if k > 0 else 0.0
            tables.columns[k, place] = weight
            tables.explained[k, place] = before + weight * weight
            if k == 0:
                tables.priors[place] = tables.means[place] + weight * tables.first_node
    tables.explained[k, cell] = np.inf
    tables.known_cells[k] = cell


@part
def add_to_sums(tables, k, cell, node):
    """Add what the k-th sample says, now that its value is known."""
    window, z = find_window(tables), tables.nodes[node]
    left, right, bottom, top = find_reach(tables, cell, tables.horizon - k)
    for x in range(left, right + 1):
        for c in range(x * window + bottom, x * window + top + 1):
            tables.sums[k + 1, c] = tables.sums[k, c] + tables.columns[k, c] * z
    tables.known_nodes[k] = node


@part
def look_ahead(tables, state, step, first):
    """Note the bounds if the last sample was one of four nodes, from the first given on."""
    window, last = find_window(tables), state.sampled - 1
    here_x, here_y = state.here // window, state.here % window
    # The first sample is part of the priors.
    scale = 1.0 if last > 0 else 0.0
    a, b = scale * tables.nodes[first], scale * tables.nodes[first + 1]
    c, d = scale * tables.nodes[first + 2], scale * tables.nodes[first + 3]
    least = max(0.0, tables.collision_reward)
    most_a = most_b = most_c = most_d = least
    limit_a = limit_b = limit_c = limit_d = variance = 0.0
    weight, learned = 1.0, 0.0
    for moves in range(1, tables.horizon - step + 1):
        left, right, bottom, top = find_reach(tables, state.here, moves)
        for x in range(left, right + 1):
            # The whole column on either side, else its two ends: what is this many moves away.
            side = abs(x - here_x) == moves
            stride = 1 if side else 2 * moves
            for y in range(bottom if side else here_y - moves, top + 1, stride):
                cell = x * window + y
                if y < bottom or tables.explained[last, cell] == np.inf:
                    continue
                variance = max(variance, tables.variance - tables.explained[last, cell])
                mean = tables.priors[cell] + tables.sums[last, cell]
                more = tables.columns[last, cell]
                most_a, most_b = max(most_a, mean + more * a), max(most_b, mean + more * b)
                most_c, most_d = max(most_c, mean + more * c), max(most_d, mean + more * d)
        more = math.sqrt(variance * (moves - 1))
        limit_a, limit_b = limit_a + weight * (most_a + more), limit_b + weight * (most_b + more)
        limit_c, limit_d = limit_c + weight * (most_c + more), limit_d + weight * (most_d + more)
        learned += weight * math.sqrt(variance) * tables.norms[moves - 1]
        weight *= tables.discount
    tables.learned = learned
    tables.limits[first], tables.limits[first + 1] = limit_a, limit_b
    tables.limits[first + 2], tables.limits[first + 3] = limit_c, limit_d


@part
def plan_path(tables, state, step, failure):
    """Return what the best path is worth if nothing more is learned: W_1 of `field`."""
    window, moves = find_window(tables), tables.horizon - step
    left, right, bottom, top = find_reach(tables, state.here, moves)
    for x in range(left, right + 1):
        for cell in range(x * window + bottom, x * window + top + 1):
            new = tables.explained[state.sampled - 1, cell] < np.inf
            mean = tables.priors[cell] + tables.sums[state.sampled, cell]
            tables.pays[cell] = mean if new and mean > 0.0 else 0.0
            tables.values[cell] = 0.0
    for i in range(moves, 0, -1):
        left, right, bottom, top = find_reach(tables, state.here, i)
        for x in range(left, right + 1):
            for cell in range(x * window + bottom, x * window + top + 1):
                risk = tables.risks[step + i, cell]
                safe = tables.pays[cell] + tables.discount * tables.values[cell]
                tables.worths[cell] = (1.0 - risk) * safe + risk * failure
        step_back(tables, state.here, i - 1)
    return tables.values[state.here]


@part
def step_back(tables, here, moves):
    """Find the largest worth among the neighbours of each cell within a number of moves."""
    window = find_window(tables)
    left, right, bottom, top = find_reach(tables, here, moves)
    for x in range(left, right + 1):
        # Cells outside the map have a worth of -inf.
        for c in range(x * window + bottom, x * window + top + 1):
            west, east = c - window, c + window
            beside = max(tables.worths[c - 1], tables.worths[c + 1])
            largest = max(beside, tables.worths[west], tables.worths[east])
            largest = max(largest, tables.worths[west - 1], tables.worths[west + 1])
            largest = max(largest, tables.worths[east - 1], tables.worths[east + 1])
            tables.values[c] = largest if largest > -np.inf else 0.0


@part
def plan_last_moves(tables, state, step, price):
    """Note the values of a state for all values of its last sample."""
    sampled = state.sampled
    # Columns of samples to come are written behind those that are known.
    tables.known, tables.summed = sampled, min(tables.summed, sampled)
    if tables.limits_sampled > sampled:
        tables.limits_sampled = 0
    if step < tables.horizon:
        decide_moves(tables, state, step, price)
    for k in range(tables.degree):
        value = tables.lane_values[0, k]
        tables.lasts[k] = value if step < tables.horizon and value > -np.inf else 0.0


@part
def decide_moves(tables, state, step, price):
    """Find the values of a state for all values of its last sample, move by move."""
    first, depth = state.sampled - 1, 0
    tables.lane_cells[0], tables.lane_samples[0] = state.here, state.sampled
    begin_moves(tables, 0, first)
    while True:
        here, k = tables.lane_cells[depth], tables.lane_samples[depth]
        if step + depth + 1 == tables.horizon:
            decide_last_move(tables, first, k, here, depth, price)
        elif tables.lane_moves[depth] < len(EAST):
            cell = find_neighbour(tables, here, tables.lane_moves[depth])
            if cell < 0:
                tables.lane_moves[depth] += 1
                continue
            new = tables.explained[k - 1, cell] < np.inf
            if new:
                add_column(tables, k, cell)
            depth += 1
            tables.lane_cells[depth], tables.lane_samples[depth] = cell, k + 1 if new else k
            begin_moves(tables, depth, first)
            continue
        if depth == 0:
            return
        depth -= 1
        end_move(tables, first, step + depth + 1, depth, price)
        tables.lane_moves[depth] += 1


@part
def find_neighbour(tables, here, action):
    """Return the cell that a move leads to; -1 if it is not on the map."""
    window = find_window(tables)
    x, y = here // window + EAST[action], here % window + NORTH[action]
    off = x < tables.least_x or x > tables.most_x or y < tables.least_y or y > tables.most_y
    return -1 if off else x * window + y


@part
def count_lanes(tables, first, k):
    """Return how many combinations of values the samples from `first` on have, with k samples."""
    count = 1
    for _ in range(first, k):
        count *= tables.degree
    return count


@part
def begin_moves(tables, depth, first):
    """Begin with the first of the moves at a depth."""
    tables.lane_moves[depth] = 0
    values = tables.lane_values[depth]
    for lane in range(count_lanes(tables, first, tables.lane_samples[depth])):
        values[lane] = -np.inf


@part
def end_move(tables, first, step, depth, price):
    """Compare a move, whose next values are known, with those before it."""
    k, cell = tables.lane_samples[depth], tables.lane_cells[depth + 1]
    count, new = count_lanes(tables, first, k - 1), tables.lane_samples[depth + 1] > k
    risk = tables.risks[step, cell]
    average(tables, depth + 1, count * tables.degree, 1.0 - risk, new)
    means = tables.lane_means[0]
    slope = expect_lanes(tables, means, first, k, cell, count, risk, depth, price, new)
    best, after = tables.lane_values[depth], tables.lane_values[depth + 1]
    for j in range(tables.degree):
        shift = slope * tables.nodes[j]
        begin, end = j * count, (j + 1) * count
        most, later = best[begin:end], after[begin:end]
        for lane in range(count):
            most[lane] = max(most[lane], means[lane] + shift + later[lane])


@routine
def decide_last_move(tables, first, k, here, depth, price):
    """Compare all last moves."""
    count = count_lanes(tables, first, k - 1)
    for action in range(len(EAST)):
        cell = find_neighbour(tables, here, action)
        means = tables.lane_means[action]
        if cell < 0:
            tables.lane_shifts[action] = 0.0
            for lane in range(count):
                means[lane] = -np.inf
            continue
        risk, new = tables.risks[tables.horizon, cell], tables.explained[k - 1, cell] < np.inf
        tables.lane_shifts[action] = expect_lanes(
            tables, means, first, k, cell, count, risk, depth, price, new
        )
    compare_last_moves(tables, tables.lane_values[depth], count)


@part
def expect_lanes(tables, means, first, k, cell, count, risk, depth, price, new):
    """Write what a move is worth by itself where the last sample is 0; return its slope in that."""
    weight = tables.weights[depth]
    safe, mean = weight * (1.0 - risk), risk * (weight * tables.collision_reward - price)
    if new:
        mean += safe * (tables.priors[cell] + tables.sums[first, cell])
    for lane in range(count):
        means[lane] = mean
    if not new:
        return 0.0
    for i in range(max(1, first), k - 1):
        nodes, more = tables.lanes[i - first], safe * tables.columns[i, cell]
        for lane in range(count):
            means[lane] += more * nodes[lane]
    return safe * tables.columns[k - 1, cell] if k > 1 else 0.0


@part
def average(tables, depth, lanes, weight, new):
    """Weigh the values after a move, and average them over the sample that it brought."""
    values = tables.lane_values[depth]
    scale = weight * tables.chances[0] if new else weight
    for lane in range(lanes):
        values[lane] *= scale
    for i in range(1, tables.degree if new else 1):
        scale, more = weight * tables.chances[i], values[i * lanes : (i + 1) * lanes]
        for lane in range(lanes):
            values[lane] += scale * more[lane]


@routine
def compare_last_moves(tables, best, count):
    """Write the largest of all last moves."""
    means, slopes = tables.lane_means, tables.lane_shifts
    for j in range(tables.degree):
        z, most = tables.nodes[j], best[j * count : (j + 1) * count]
        a, b, c, d = slopes[0] * z, slopes[1] * z, slopes[2] * z, slopes[3] * z
        e, f, g, h = slopes[4] * z, slopes[5] * z, slopes[6] * z, slopes[7] * z
        for lane in range(count):
            north = max(means[0, lane] + a, means[1, lane] + b)
            east = max(means[2, lane] + c, means[3, lane] + d)
            south = max(means[4, lane] + e, means[5, lane] + f)
            west = max(means[6, lane] + g, means[7, lane] + h)
            most[lane] = max(north, east, south, west)


def compile_exploration(mission: Exploration, history: History) -> CompiledModel | None:
    """Return the compiled form of a mission from a history on; None if it is too long."""
    capacity = next((size for size in CAPACITIES if size >= mission.horizon), None)
    if capacity is None:
        return None
    # A state is its first moves and readings, step, cell, and the samples with their nodes.
    size = (capacity + 1,)
    names = [("history", "i4"), ("step", "i2"), ("here", "i2"), ("sampled", "i2")]
    state = np.dtype([*names, ("cells", "i2", size), ("nodes", "u1", size)], align=True)
    parameters = parameters_dtype(capacity)
    tables = fill_tables(mission, capacity, np.zeros(1, parameters))
    tables["begun"] = len(history.path) - 1
    west, south = (place - capacity for place in mission.area.start)
    # Each cell once, in the order of the samples.
    numbers = {(x, y): (x - west) * (2 * capacity + 1) + y - south for x, y in history.path}
    initial = np.zeros(1, state)
    initial["step"], initial["here"] = len(history.path) - 1, numbers[history.path[-1]]
    initial["sampled"] = len(numbers)
    initial["cells"][0, : len(numbers)] = list(numbers.values())
    initial["nodes"][0, 1 : len(numbers)] = history.nodes
    return CompiledModel(
        initial=initial,
        parameters=tables,
        actions=tuple(MOVES),
        most_outcomes=mission.degree + 1,
        outcomes=answer(outcomes_signature(state, parameters))(outcomes),
        bound=answer(bound_signature(state, parameters))(bound),
        value_bound=answer(value_bound_signature(state, parameters))(value_bound),
        last_value=answer(value_bound_signature(state, parameters))(last_value),
        last_steps=int(tables["last_steps"][0]),
        tabulate=partial(show_table, tables),
    )


def show_table(tables: NDArray[Any], arrays: Any, price: float | None) -> Show | None:
    """Return a function that shows the values of a GPU to `value_bound`, by the parameters."""
    values = tabulate(arrays, tables, price)
    if values is None:
        return None

    def show(parameters: NDArray[Any]) -> None:
        parameters["table"], parameters["table_price"] = values.ctypes.data, price
        parameters["table_moves"] = min(KEPT, tables["horizon"][0] - LAST_MOVES)

    return show
