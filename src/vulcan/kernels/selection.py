"""Which action a sample tries next.

Untried actions come first, and then the choice of UCT,

    a_uct = argmax_a  Q(h, a) + c · range(t) · sqrt(log N(h) / N(h, a)).

The exploration constant c is in units of range(t), the largest less the smallest sum of rewards
that a sample has collected from step t on, so that one constant serves all problems. What is known
of an action is biased by what was not yet tried below it, and this bias may outlive the bonus. So
an action with less than a twentieth of an even share of N(h) comes before a_uct. The algorithm as
printed has the constant alone, and no shares.

The order of untried actions is that of a default policy. "Greedy" begins with the largest expected
reward. But an action that ends the mission may be paid for all that it gives up, like *stop* in the
bandit: it would look like a gain in every new history, and what is known of other actions would be
for long that one stops right after them. So it comes first only if it earns more than the best
action that goes on together with what samples have collected on average from the next step on.

An action is taken to end the mission if it always did: if each history of that level in which it
was sampled, by its number, led to a safe terminal. The states after it, where they are known from
other histories, are not asked, so that merging them changes no sample.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.compilation import part
from vulcan.kernels.tree import LIVE, action_row
from vulcan.sentinels import NONE

SHARE: Final = 0.05
"""Of an even share of the visits of a history, for each of its actions."""

# What was seen of actions that have the same number, on one level.
ENDED: Final = 1
WENT_ON: Final = 2
NUMBERS: Final = 256  # larger ones are not noted

RETURNS: Final = np.dtype(
    [
        ("least", "f8"),
        ("most", "f8"),
        ("total", "f8"),
        ("samples", "i8"),
        ("endings", "u1", (NUMBERS,)),
    ],
    align=True,
)
"""What samples collected from a level on, and whether its actions ended the mission, by number."""


@part
def choose_greedy(problem, tree, returns, node, depth):
    """Choose the untried action with the largest expected reward, by what may come after it.

    An action that ends the mission gives up what going on would earn. So it is compared with the
    best of those that go on by adding to theirs what samples have collected from the next step on.
    """
    ending, going_on = NONE, NONE
    last, more = -np.inf, -np.inf
    for e in range(node.first_edge, node.first_edge + problem.states[node.state].action_count):
        if tree.edges[e].mark == LIVE and tree.edges[e].visits == 0:
            action = problem.actions[action_row(problem, node, e)]
            reward = action.expected_reward
            if ends_mission(returns[depth], action):
                if reward > last:
                    ending, last = e, reward
            elif reward > more:
                going_on, more = e, reward
    if ending == NONE:
        return going_on
    if going_on == NONE:
        return ending
    to_go = 0.0
    if depth + 1 < len(problem.discounts):
        after = returns[depth + 1]
        if after.samples == 0:  # nobody knows yet
            return going_on
        to_go = problem.discounts[depth] * after.total / after.samples
    return ending if last > more + to_go else going_on


@part
def ends_mission(seen, action):
    """Whether nothing comes after an action: it is sure to fail, or always led to an end."""
    if action.safe_count == 0:
        return True
    return action.number < NUMBERS and seen.endings[action.number] == ENDED


@part
def note_ending(problem, tree, returns, path, depth, ended):
    """Note whether the action before a new history, if there is one, ended the mission."""
    if depth > 0:
        step = path[depth - 1]
        number = problem.actions[action_row(problem, tree.nodes[step.node], step.edge)].number
        if number < NUMBERS:
            returns[depth - 1].endings[number] |= ENDED if ended else WENT_ON


@part
def choose_untried(problem, tree, node, control):
    """Let the default policy choose among the actions that were never sampled."""
    first, count = node.first_edge, problem.states[node.state].action_count
    chosen, control.choice = first + control.choice, NONE  # before first if nothing was chosen
    untried = 0
    for e in range(first, first + count):
        untried += tree.edges[e].mark == LIVE and tree.edges[e].visits == 0
    if untried == 0:
        return NONE
    if chosen >= first and tree.edges[chosen].mark == LIVE and tree.edges[chosen].visits == 0:
        return chosen
    skip = np.int64(draw_uniform(control) * untried)
    for e in range(first, first + count):
        if tree.edges[e].mark == LIVE and tree.edges[e].visits == 0:
            if skip == 0:
                return e
            skip -= 1
    return NONE


@part
def choose_uct(problem, tree, node, scale, share):
    """Return the action that is short of its visits, else the one with the largest confidence.

    It is NONE if all are solved or deleted.
    """
    best, chosen = -np.inf, NONE
    fewest, rarest = np.inf, NONE
    bonus = scale * np.sqrt(np.log(max(1.0, np.float64(node.visits))))
    first = node.first_edge
    for e in range(first, first + problem.states[node.state].action_count):
        edge = tree.edges[e]
        if edge.mark == LIVE:
            score = edge.value + bonus / np.sqrt(np.float64(edge.visits))
            if score > best:
                best, chosen = score, e
            if edge.visits < fewest:
                fewest, rarest = np.float64(edge.visits), e
    even = np.float64(node.visits) / problem.states[node.state].action_count
    return rarest if fewest < share * even else chosen


@part
def widen(seen, collected):
    """Note what a sample collected from a level on."""
    seen.least, seen.most = min(seen.least, collected), max(seen.most, collected)


@part
def tally(seen, collected):
    """Add what a sample collected from a level on to their mean."""
    seen.total, seen.samples = seen.total + collected, seen.samples + 1


@part
def draw_uniform(control):
    """Return a number from [0, 1): SplitMix64."""
    control.random += np.uint64(0x9E3779B97F4A7C15)
    z = control.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@part
def expect(returns, level):
    """Return what samples have collected on average from the step after a level on."""
    if level + 1 >= len(returns) or returns[level + 1].samples == 0:
        return 0.0
    return returns[level + 1].total / returns[level + 1].samples
