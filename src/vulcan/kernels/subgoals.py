"""Orders of subgoals: what legs between them take, the search for an order, and plans along it.

States are reduced to *places* here (`vulcan.exact.subgoals`): P places, some of them subgoals that
pay their worth when they are reached for the first time. An order is a list of K subgoals, and a
plan along it knows the step t, the number i of subgoals that it is done with, and the place p:

    V(t, i, p) = max(V(t, i + 1, p),                                         give subgoal i up
                     max over actions of γ^t R̄ - k r + Σ_safe q [γ^t w + V(t + 1, i', p')]),

where i' = i + 1 and w is the worth of subgoal i if p' is its place, else i' = i and w = 0. Where
all subgoals are done with, the same holds without the first line. Ties go to the action.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.numerics import NONE

GIVE_UP: Final = -2  # instead of an action: go on with the next subgoal of the order

ROUNDS: Final = 500  # of value iteration, for a leg
PRECISION: Final = 1e-4


class Places(NamedTuple):
    """Places and moves between them; the actions of a place are consecutive, as are outcomes."""

    first_action: Any  # [P + 1]
    number: Any  # [A] of an action's label
    reward: Any  # [A] R̄, without the worth of subgoals
    risk: Any  # [A]
    first_outcome: Any  # [A + 1] of the safe outcomes
    probability: Any  # [O]
    target: Any  # [O]


class Chain(NamedTuple):
    """What an order of subgoals takes: legs between them, from the start (row 0) or another."""

    time: Any  # [K + 1, K] steps from a subgoal (row k + 1) to another, on average
    risk: Any
    worth: Any  # [K]


@kernel
def measure_legs(places, goals, price, pace, legs):
    """Fill steps and risk to each goal, from each place: `legs` is [2, goals, P].

    Each leg takes the actions with the least pace · steps + price · risk, on average.
    """
    places, goals, legs = borrow(places), borrow(goals), borrow(legs)
    count = len(places.first_action) - 1
    cost = np.zeros(count)
    for k in range(len(goals)):
        cost[:] = 0.0
        steps, risks = borrow(legs[0, k]), borrow(legs[1, k])
        steps[:], risks[:] = 0.0, 0.0
        for turn in range(ROUNDS):
            change = 0.0
            for n in range(count):
                place = n if turn % 2 else count - 1 - n
                first, end = places.first_action[place], places.first_action[place + 1]
                if place == goals[k]:
                    continue
                best, step, risk = np.inf, 0.0, 0.0
                for a in range(first, end):
                    value, s, r = pace + price * places.risk[a], 1.0, places.risk[a]
                    for o in range(places.first_outcome[a], places.first_outcome[a + 1]):
                        q, target = places.probability[o], places.target[o]
                        value += q * cost[target]
                        s += q * steps[target]
                        r += q * risks[target]
                    if value < best:
                        best, step, risk = value, s, r
                if best == np.inf:  # the mission ends here
                    best, step, risk = pace * ROUNDS, float(ROUNDS), 0.0
                change = max(change, abs(best - cost[place]))
                cost[place], steps[place], risks[place] = best, step, risk
            if change < PRECISION * pace:
                break


@part
def value_order(chain, order, count, horizon, price):
    """Return what the first subgoals of an order are worth, by their mean legs.

    Within some steps of the horizon a subgoal counts in part: steps vary.
    """
    value, alive, time, before = 0.0, 1.0, 0.0, 0
    for k in range(count):
        goal = order[k]
        time += chain.time[before, goal]
        risk = chain.risk[before, goal]
        margin = 0.5 + 0.7 * np.sqrt(time)
        share = min(1.0, max(0.0, 0.5 + (horizon - time) / (2.0 * margin)))
        if share == 0.0:
            break
        value += share * alive * ((1.0 - risk) * chain.worth[goal] - price * risk)
        alive *= max(0.0, 1.0 - risk)
        before = goal + 1
    return value


@kernel
def anneal(chain, order, count, horizon, price, heat, turns, seed):
    """Improve an order by simulated annealing.

    `order` has all subgoals, and begins with the `count` that are to be reached. Returns the new
    count, and what the order is worth by its mean legs.
    """
    chain, order = borrow(chain), borrow(order)
    np.random.seed(seed)
    size = len(order)
    trial, best = order.copy(), order.copy()
    value = value_order(chain, order, count, horizon, price)
    best_value, best_count = value, count
    for turn in range(turns):
        now = heat * (1e-3 ** (turn / turns))
        kind = np.random.randint(5)
        number = count
        trial[:] = order
        if kind == 0 and count > 1:  # reverse a part
            a, b = np.random.randint(count), np.random.randint(count)
            a, b = min(a, b), max(a, b)
            for k in range(a, b + 1):
                trial[k] = order[a + b - k]
        elif kind == 1 and count > 1:  # move a subgoal
            move(trial, np.random.randint(count), np.random.randint(count))
        elif kind == 2 and count < size:  # add one
            move(trial, np.random.randint(count, size), np.random.randint(count + 1))
            number = count + 1
        elif kind == 3 and count > 0:  # drop one
            move(trial, np.random.randint(count), size - 1)
            number = count - 1
        elif kind == 4 and 0 < count < size:  # replace one
            a, b = np.random.randint(count), np.random.randint(count, size)
            trial[a], trial[b] = trial[b], trial[a]
            move(trial, a, np.random.randint(count))
        else:
            continue
        offered = value_order(chain, trial, number, horizon, price)
        if offered >= value or np.random.random() < np.exp((offered - value) / now):
            order[:], value, count = trial, offered, number
            if value > best_value:
                best[:], best_value, best_count = order, value, count
    order[:] = best
    return best_count, best_value


@part
def move(order, source, target):
    """Move an element of an array, and shift those between."""
    goal = order[source]
    step = 1 if target > source else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = goal


@kernel
def plan_order(places, goals, worth, weights, price, rest, values, risks, choice, begin, end):
    """Find the best plan along an order, for steps `end` - 1 to `begin`, the last ones first.

    `goals` and `worth` are of its subgoals, in this order. `values` and `risks`, [2, K + 1, P], are
    0 at first and get those of the plan, of even steps first. `choice`, [T, K + 1, P], gets the
    number of the action's label, GIVE_UP, or NONE where there is none. Once all subgoals are done
    with, the plan rests: staying where it is counts `rest` more for each step.
    """
    places, goals, worth = borrow(places), borrow(goals), borrow(worth)
    weights, values, risks, choice = borrow(weights), borrow(values), borrow(risks), borrow(choice)
    size = len(goals)
    for t in range(end - 1, begin - 1, -1):
        after, here = borrow(values[(t + 1) % 2]), borrow(values[t % 2])
        ahead, risk = borrow(risks[(t + 1) % 2]), borrow(risks[t % 2])
        for i in range(size, -1, -1):
            goal, gain, bonus = NONE, 0.0, rest
            if i < size:
                goal, gain, bonus = goals[i], weights[t] * worth[i], 0.0
            for p in range(len(places.first_action) - 1):
                best, taken = -np.inf, NONE
                for a in range(places.first_action[p], places.first_action[p + 1]):
                    value = weights[t] * places.reward[a] - price * places.risk[a]
                    for o in range(places.first_outcome[a], places.first_outcome[a + 1]):
                        target, q = places.target[o], places.probability[o]
                        if target == goal:
                            value += q * (gain + after[i + 1, target])
                        else:
                            value += q * (after[i, target] + (bonus if target == p else 0.0))
                    if value > best:
                        best, taken = value, a
                if i < size and (here[i + 1, p] > best or p == goal):
                    choice[t, i, p] = GIVE_UP
                    here[i, p], risk[i, p] = here[i + 1, p], risk[i + 1, p]
                elif taken == NONE:
                    choice[t, i, p], here[i, p], risk[i, p] = NONE, 0.0, 0.0
                else:
                    choice[t, i, p], here[i, p] = places.number[taken], best
                    risk[i, p] = sum_risk(places, ahead, goal, i, taken)


@part
def sum_risk(places, ahead, goal, i, a):
    """Return the risk of an action and of the plan after it."""
    total = places.risk[a]
    for o in range(places.first_outcome[a], places.first_outcome[a + 1]):
        target = places.target[o]
        total += places.probability[o] * ahead[i + 1 if target == goal else i, target]
    return total


@kernel
def advance(choice, left, order, place, index):
    """Move each index on, past subgoals that are reached or given up; `choice` is of one step.

    `left` has for each state, in rows, whether a subgoal is still to be reached.
    """
    choice, left, order = borrow(choice), borrow(left), borrow(order)
    place, index = borrow(place), borrow(index)
    size = len(order)
    for n in range(len(index)):
        i = index[n]
        while i < size and (
            not left[n, order[i]] or (place[n] != NONE and choice[i, place[n]] == GIVE_UP)
        ):
            i += 1
        index[n] = i
