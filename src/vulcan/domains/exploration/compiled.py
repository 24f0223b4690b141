"""The exploration mission as machine code: the same as `model`, which is the reference.

Cells are numbered within a window of 2 h + 1 by 2 h + 1 cells around the start, all that can be
reached in h moves. Tables of risk by step and cell, of the mean by cell and of the kernel by
distance make an outcome a dot product.

The rows of the Cholesky factor L that it needs depend on the cells sampled alone. They are kept
from one call to the next (`known_cells`, `rows`): a search asks for all actions of a history, and
then for those of a history that goes on from it, so that most of the time all rows but one are
known. Likewise the outlook, of which the outcomes of one action need the same.

Records have a fixed size, so that horizons are rounded up to one of `CAPACITIES`, and code is
compiled once for each of these.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numba import carray
from numpy.typing import NDArray

from vulcan.domains.exploration.field import SMALLEST_SHARE
from vulcan.domains.exploration.model import LARGEST_DEGREE, MOVES
from vulcan.kernels.compilation import answer, part
from vulcan.model.compiled import CompiledModel, bound_signature, outcomes_signature

if TYPE_CHECKING:
    from vulcan.domains.exploration.model import Exploration

__all__ = ["CAPACITIES", "compile_exploration"]

CAPACITIES: Final = (6, 9, 12, 18, 27, 40)
"""Above the largest of these horizons the tables would no longer be small."""

EAST: Final = np.array([east for east, _ in MOVES.values()])
NORTH: Final = np.array([north for _, north in MOVES.values()])


def state_dtype(capacity: int) -> np.dtype[Any]:
    """Return the record of a state: step, cell, and the samples so far with their nodes."""
    return np.dtype(
        [
            ("step", "i2"),
            ("here", "i2"),
            ("sampled", "i2"),  # how many cells
            ("cells", "i2", (capacity + 1,)),
            ("nodes", "u1", (capacity + 1,)),
        ],
        align=True,
    )


def parameters_dtype(capacity: int) -> np.dtype[Any]:
    """Return the record of all parameters and tables."""
    window = 2 * capacity + 1
    return np.dtype(
        [
            ("horizon", "i8"),
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
            ("risks", "f8", (capacity + 1, window, window)),
            ("means", "f8", (window, window)),
            ("kernel", "f8", (window, window)),  # by distance in x and in y
            ("known", "i8"),  # how many rows of L are known
            ("known_cells", "i8", (capacity + 1,)),
            ("rows", "f8", (capacity + 1, capacity + 1)),
            ("seen", "i8"),  # the samples that the outlook was made for: how many
            ("seen_here", "i8"),  # from where
            ("seen_moves", "i8"),  # how far
            ("seen_cells", "i8", (capacity + 1,)),  # and which
            ("weights", "f8", (window, window, capacity + 1)),  # the row of L of each cell there
            ("variances", "f8", (window, window)),
        ],
        align=True,
    )


def outcomes(parameters, states, action, answers, following):
    """Write the outcomes of a move; see `vulcan.model.compiled`."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    window = tables.means.shape[0]
    x, y = state.here // window + EAST[action], state.here % window + NORTH[action]
    if x < tables.least_x or x > tables.most_x or y < tables.least_y or y > tables.most_y:
        return 0
    answer, then = carray(answers, LARGEST_DEGREE + 1), carray(following, LARGEST_DEGREE + 1)
    cell, step, risk = x * window + y, state.step + 1, tables.risks[state.step + 1, x, y]
    count = 0
    if risk < 1.0 and was_sampled(state, cell):
        copy_state(state, then[0], step, cell)
        write(answer[0], 1.0 - risk, 0.0, 0)
        count = 1
    elif risk < 1.0:
        last = state.sampled
        know_rows(tables, state)
        know_row(tables, last, cell)
        # In the order of the plain model, so that both give the very same numbers.
        more = 0.0
        for k in range(1, last):
            more += tables.rows[last, k] * find_node(tables, state, k)
        expected = tables.means[x, y] + tables.rows[last, 0] * tables.first_node + more
        for k in range(tables.degree):
            value = expected + tables.rows[last, last] * tables.nodes[k]
            write(answer[k], (1.0 - risk) * tables.chances[k], value, 0)
            copy_state(state, then[k], step, cell)
            then[k].cells[last], then[k].nodes[last] = cell, k
            then[k].sampled = last + 1
        count = tables.degree
    if risk > 0.0:
        write(answer[count], risk, tables.collision_reward, 1)
        count += 1
    return count


def bound(parameters, states, step):
    """Return an upper bound on what can still be earned; see `outlook` for the mathematics."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    window = tables.means.shape[0]
    here_x, here_y = state.here // window, state.here % window
    know_outlook(tables, state, tables.horizon - step)
    least = max(0.0, tables.collision_reward)
    mean, variance, total, weight = 0.0, 0.0, 0.0, 1.0
    for moves in range(1, tables.horizon - step + 1):
        for x in range(max(tables.least_x, here_x - moves), min(tables.most_x, here_x + moves) + 1):
            # The whole column on either side, else its two ends: what is this many moves away.
            stride = 1 if abs(x - here_x) == moves else 2 * moves
            for y in range(here_y - moves, here_y + moves + 1, stride):
                if tables.least_y <= y <= tables.most_y and tables.variances[x, y] >= 0.0:
                    mean = max(mean, predict(tables, state, x, y))
                    variance = max(variance, tables.variances[x, y])
        total += weight * (max(mean, least) + math.sqrt(variance * (moves - 1)))
        weight *= tables.discount
    return total


@part
def write(answer, probability, reward, fails):
    """Write one outcome."""
    answer.probability, answer.reward, answer.fails = probability, reward, fails


@part
def was_sampled(state, cell):
    """Whether a cell was visited before."""
    for k in range(state.sampled):  # noqa: SIM110 - Numba has no generators in `any`
        if state.cells[k] == cell:
            return True
    return False


@part
def copy_state(state, then, step, cell):
    """Copy a state, with the vehicle in its new cell."""
    then.step, then.here, then.sampled = step, cell, state.sampled
    for k in range(len(state.cells)):
        then.cells[k], then.nodes[k] = state.cells[k], state.nodes[k]


@part
def find_node(tables, state, k):
    """Return z_k, the k-th sample in whitened coordinates."""
    return tables.first_node if k == 0 else tables.nodes[state.nodes[k]]


@part
def know_rows(tables, state):
    """See to it that the rows of L for the samples of a state are known."""
    for k in range(state.sampled):
        know_row(tables, k, state.cells[k])


@part
def know_row(tables, k, cell):
    """See to it that row k of L is known, given those before it."""
    if k < tables.known and tables.known_cells[k] == cell:
        return
    window = tables.means.shape[0]
    left = weigh(tables, tables.rows[k], k, cell // window, cell % window)
    tables.rows[k, k] = math.sqrt(left) if left > SMALLEST_SHARE * tables.variance else 0.0
    tables.known_cells[k] = cell
    tables.known = k + 1


@part
def weigh(tables, row, count, x, y):
    """Write what the first samples say of a cell into a row, and return the variance left."""
    window = tables.means.shape[0]
    explained = 0.0
    for j in range(count):
        known = tables.known_cells[j]
        weight = 0.0
        for i in range(j):
            weight += tables.rows[j, i] * row[i]
        weight = tables.kernel[abs(known // window - x), abs(known % window - y)] - weight
        pivot = tables.rows[j, j]
        # Where a sample brings nothing new, nothing can be learned from it, either.
        row[j] = weight / pivot if pivot > 0.0 else 0.0
        explained += row[j] * row[j]
    return tables.variance - explained


@part
def know_outlook(tables, state, moves):
    """Weigh the cells within this many moves, unless that was done for the same samples."""
    same = tables.seen == state.sampled and tables.seen_here == state.here
    same = same and tables.seen_moves >= moves
    for k in range(state.sampled):
        same = same and tables.seen_cells[k] == state.cells[k]
    if same:
        return
    know_rows(tables, state)
    window = tables.means.shape[0]
    here_x, here_y = state.here // window, state.here % window
    for x in range(max(tables.least_x, here_x - moves), min(tables.most_x, here_x + moves) + 1):
        for y in range(max(tables.least_y, here_y - moves), min(tables.most_y, here_y + moves) + 1):
            left = weigh(tables, tables.weights[x, y], state.sampled, x, y)
            tables.variances[x, y] = max(0.0, left)
    for k in range(state.sampled):
        cell = state.cells[k]
        tables.seen_cells[k] = cell
        tables.variances[cell // window, cell % window] = -1.0  # nothing to be had there
    tables.seen, tables.seen_here, tables.seen_moves = state.sampled, state.here, moves


@part
def predict(tables, state, x, y):
    """Return the mean of the field in a cell, given the samples so far."""
    mean = tables.means[x, y]
    for k in range(state.sampled):
        mean += tables.weights[x, y, k] * find_node(tables, state, k)
    return mean


def compile_exploration(mission: Exploration) -> CompiledModel | None:
    """Return the compiled form of a mission; None if it is too long.

    Parameters
    ----------
    mission
        The mission.
    """
    capacity = next((size for size in CAPACITIES if size >= mission.horizon), None)
    if capacity is None:
        return None
    state, parameters = state_dtype(capacity), parameters_dtype(capacity)
    initial = np.zeros(1, state)
    centre = capacity * (2 * capacity + 1) + capacity
    initial["here"], initial["sampled"] = centre, 1
    initial["cells"][0, 0] = centre
    return CompiledModel(
        initial=initial,
        parameters=_fill(mission, capacity, np.zeros(1, parameters)),
        actions=tuple(MOVES),
        most_outcomes=mission.degree + 1,
        outcomes=answer(outcomes_signature(state, parameters))(outcomes),
        bound=answer(bound_signature(state, parameters))(bound),
    )


def _fill(mission: Exploration, capacity: int, parameters: NDArray[Any]) -> NDArray[Any]:
    """Fill the tables."""
    tables = parameters[0]
    area, horizon = mission.area, mission.horizon
    for name in ("horizon", "degree", "collision_reward", "discount"):
        tables[name] = getattr(mission, name)
    tables["variance"] = mission.field.variance
    tables["first_node"] = mission.first_node
    nodes, chances = mission.quadrature
    tables["nodes"][: len(nodes)], tables["chances"][: len(nodes)] = nodes, chances
    west, south = area.start[0] - capacity, area.start[1] - capacity
    least_x, most_x = max(0, -west), min(2 * capacity, area.columns - 1 - west)
    least_y, most_y = max(0, -south), min(2 * capacity, area.rows - 1 - south)
    tables["least_x"], tables["most_x"] = least_x, most_x
    tables["least_y"], tables["most_y"] = least_y, most_y
    for x in range(2 * capacity + 1):
        for y in range(2 * capacity + 1):
            apart = mission.displace((0, 0), (x, y))
            tables["kernel"][x, y] = mission.field.kernel(apart, (0.0, 0.0))
            distance = max(abs(x - capacity), abs(y - capacity))
            if least_x <= x <= most_x and least_y <= y <= most_y and distance <= horizon:
                cell = (west + x, south + y)
                tables["means"][x, y] = mission.field.mean(area.locate(cell))
                for step in range(max(1, distance), horizon + 1):
                    tables["risks"][step, x, y] = mission.risk(cell, step)
    return parameters
