"""The paper's algorithms 2 to 4 (Vulcan, Sample and Cleanup) as kernels that can stop and continue.

**The tree** has a node for each history that was sampled:

    nodes     [N]  a history: state, first_edge (NONE until opened), visits, solved,
                   survival, credit, value
    edges     [E]  an action of an opened history: visits, mark, value, first_child
    children  [C]  a node for each safe outcome of a tried action, NONE until sampled
                   (if counted, for each outcome; the failing ones come last)

The actions of an opened history are consecutive edges, in the order of its state's action rows.

**Values** are backed up with the probabilities, which are known, renormalised over the outcomes S'
that were sampled so far:

    Q(h, a) = R̄(s, a) + γ (1 - r) Σ_{S'} p(s') V(h') / Σ_{S'} p(s'),        V(h) = max_a Q(h, a).

Where a compiled model bounds the reward to go by U(s'), the bounds are a baseline: an outcome that
was not sampled yet counts as its own bound, less the mean distance of the sampled ones from theirs.
So a lucky sample in a state with a large bound says little about its neighbours. With
q = p / (1 - r),

    Q(h, a) = R̄(s, a) + γ (1 - r) [Σ q(s') U(s') + Σ_{S'} p(s') (V(h') - U(s')) / Σ_{S'} p(s')].

Once all outcomes were sampled both are the same, and U plays no part. The algorithm as printed in
the paper (`counted`) weighs by counts instead, failures included:

    Q(h, a) = Σ_{s'} N(h') / N(h, a) · (R(s, a, s') + γ V(h')).

A history is *solved* when all its remaining actions are, and an action when all its outcomes are.

**A sample** walks from the root to the end of a history. At an opened history it chooses an action,
and then one of its outcomes by their probabilities. A finished history that fails the local
constraint has its last action deleted, and so has one all of whose actions are deleted; the sample
continues from the parent. Solved subtrees are not sampled again, and a solved root ends the search.
A history with one step left is solved when it is first reached: its best action is the one of
largest expected reward among those that pass. The state of a sample is in the arrays, so that the
kernel can return when it needs a state, a finer table of the bound or room, and continue the same
sample; no random number is drawn twice.

**Selection.** Untried actions come first, and then the choice of UCT,

    a_uct = argmax_a  Q(h, a) + c · range(t) · sqrt(log N(h) / N(h, a)).

The exploration constant c is in units of range(t), the largest less the smallest sum of rewards
that a sample has collected from step t on, so that one constant serves all problems. The value of
an action is biased by the untried actions below it, and this bias may outlive the bonus. So an
action with less than a twentieth of an even share of N(h) comes before a_uct. The algorithm as
printed has the constant alone, and no shares.

A default policy orders untried actions. "Greedy" begins with the largest expected reward. But an
action that ends the mission, like *stop* in the bandit, may look better than all others in every
new history, since it gives up what they would lead to. So it comes first only if its reward exceeds
that of the best other action plus the mean reward of samples from the next step on. An action
counts as ending the mission if each history of that level in which its number was sampled led to a
safe terminal. States after it that are known from other histories are not used, so that merging
states changes no sample.

**Cleanup and completion** walk the policy of the tree from the root, one action per history: the
best that was sampled, else the one with the largest expected reward. They differ at an outcome that
was never sampled. Cleanup tests the local test on the history up to it, as if it ended there,
and leaves it at the frontier of an incomplete policy. Completion plans it to its end. Where a
history fails, its last action is deleted and the next best action of the same history takes its
place; actions further up stay, and the change in value is backed up, as in the paper. When a
history has no action left, the action that led to it is deleted in turn. With completion every
deletion is proved, so that a search may continue in the same tree.

    choice  [N]  the edge that a finalised history takes; NONE at the frontier
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, find_bin, kernel, part
from vulcan.kernels.expand import have_actions, have_outcomes, peek
from vulcan.kernels.local_tests import (
    add_credit,
    add_outcome_credit,
    choose_last_action,
    could_pass,
    finish,
    try_action,
)
from vulcan.numerics import FAILURE_STATE, NONE

# Marks of an edge.
LIVE: Final = 0
SOLVED: Final = 1
DELETED: Final = 2

NODE: Final = np.dtype(
    [
        ("state", "i4"),
        ("first_edge", "i4"),
        ("visits", "i4"),
        ("solved", "i4"),
        ("survival", "f8"),
        ("credit", "f8"),
        ("value", "f8"),
    ],
    align=True,
)
EDGE: Final = np.dtype(
    [("visits", "i4"), ("mark", "i4"), ("value", "f8"), ("first_child", "i4")],
    align=True,
)
SIZE: Final = np.dtype(
    [("nodes", "i8"), ("edges", "i8"), ("children", "i8"), ("counted", "i8")], align=True
)

SHARE: Final = 0.05  # least fraction of an even share of visits that each action of a history gets

# Whether actions of one number on one level ended the mission, as bits.
ENDED: Final = 1
WENT_ON: Final = 2
NUMBERS: Final = 256  # larger ones are not recorded

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
"""Rewards of samples from a level on, and whether its actions ended the mission, by number."""

# The next phase at the deepest history of the path.
OPEN: Final = 0
SELECT: Final = 1
TRY: Final = 2

# Default policies.
RANDOM: Final = 0
GREEDY: Final = 1

STEP: Final = np.dtype([("node", "i4"), ("edge", "i4"), ("outcome", "i4")], align=True)
CONTROL: Final = np.dtype(
    [
        ("depth", "i8"),
        ("phase", "i8"),
        ("samples", "i8"),
        ("budget", "i8"),  # stop after this many samples
        ("most_histories", "i8"),  # or with this many histories in the tree
        ("work", "i8"),  # steps so far; a sample takes many where many actions are refused
        ("pause", "i8"),  # return after this many
        ("exhausted", "i8"),  # whether the root has no action left
        ("default_policy", "i8"),
        ("random", "u8"),  # state of the random numbers
        ("exploration", "f8"),
        ("literal", "i8"),  # whether `exploration` is used as it is, not in units of the range
    ],
    align=True,
)

OPEN_PLACE: Final = 0
NEXT_EDGE: Final = 1
NEXT_CHILD: Final = 2

PLACE: Final = np.dtype([("node", "i4"), ("outcome", "i4")], align=True)
WALK: Final = np.dtype(
    [
        ("depth", "i8"),
        ("phase", "i8"),
        ("complete", "i8"),  # whether to plan outcomes that were not sampled
        ("visited", "i8"),  # histories walked so far
        ("budget", "i8"),  # pause after this many
        ("exhausted", "i8"),  # whether the root has no action left
    ],
    align=True,
)


class Tree(NamedTuple):
    """The arrays of a search tree, and a record of their filled sizes."""

    nodes: Any
    edges: Any
    children: Any
    sizes: Any


# Sampling.


@kernel
def sample(problem, tree, returns, path, tests, controls):
    """Take samples until the budget is used up, the root is solved, or something is needed."""
    problem, tree = borrow(problem), borrow(tree)
    returns, path = borrow(returns), borrow(path)
    test, control = tests[0], controls[0]
    while (
        not tree.nodes[0].solved
        and control.samples < control.budget
        and tree.sizes[0].nodes < control.most_histories
    ):
        if control.work >= control.pause:
            return codes.PAUSED
        control.work += 1
        if control.phase == TRY:
            status = try_edge(problem, tree, returns, path, test, control)
        elif control.phase == OPEN:
            status = open_history(problem, tree, returns, path, test, control)
        else:
            status = select_edge(problem, tree, returns, path, control)
        if status == codes.END_SAMPLE:
            back_up(problem, tree, returns, path, control)
        elif status == codes.REJECT:
            if control.depth == 0:
                control.exhausted = 1
                break
            control.depth -= 1
            step = path[control.depth]
            delete_edge(problem, tree, tree.nodes[step.node], step.edge)
            control.phase = SELECT
        elif status != codes.GO_ON:
            return status
    return codes.DONE


@part
def open_history(problem, tree, returns, path, test, control):
    """Enter a history: test it if it is finished, else add its actions."""
    node = tree.nodes[path[control.depth].node]
    verdict = codes.ADMITTED
    if node.state != FAILURE_STATE:
        ends = control.depth == len(problem.discounts)
        if control.depth + 1 == len(problem.discounts) and not tree.sizes[0].counted:
            return decide_last_step(problem, tree, returns, path, test, control.depth)
        status = codes.KNOWN if ends else have_actions(problem, node.state)
        if status != codes.KNOWN:
            return status
        if not ends and node.first_edge == NONE:
            ended = problem.states[node.state].action_count == 0
            note_ending(problem, tree, returns, path, control.depth, ended)
        if not ends and problem.states[node.state].action_count > 0:
            if not open_node(problem, tree, node):
                return codes.NEEDS_ROOM
            control.phase = SELECT
            return codes.GO_ON
        verdict = finish(test, problem.pieces, node.survival, node.credit)
        if verdict == codes.UNDECIDED:
            return codes.NEEDS_BOUND
    if verdict == codes.REFUSED:
        return codes.REJECT
    node.visits += 1
    node.value = 0.0
    node.solved = not tree.sizes[0].counted
    return codes.END_SAMPLE


@part
def note_ending(problem, tree, returns, path, depth, ended):
    """Record whether the action before a new history, if there is one, ended the mission."""
    if depth > 0:
        step = path[depth - 1]
        number = problem.actions[action_row(problem, tree.nodes[step.node], step.edge)].number
        if number < NUMBERS:
            returns[depth - 1].endings[number] |= ENDED if ended else WENT_ON


@part
def decide_last_step(problem, tree, returns, path, test, depth):
    """Solve a history with one step left from the expected rewards of its actions."""
    node = tree.nodes[path[depth].node]
    source, s = problem.source[0], node.state
    compiled = source.outcomes != 0
    if not compiled and problem.states[s].action_count < 0:
        return codes.NEEDS_STATE
    count = source.numbers if compiled else problem.states[s].action_count
    best, actions = -np.inf, 0
    for k in range(count):
        a = source.actions if compiled else problem.states[s].first_action + k
        status = peek(problem, s, k) if compiled else codes.KNOWN
        if status == codes.NO_ACTION:
            continue
        if status != codes.KNOWN:
            return status
        actions += 1
        action = problem.actions[a]
        weight = problem.weights[depth]
        verdict = try_action(problem, test, action, weight, True, node.survival, node.credit)
        if verdict == codes.UNDECIDED:
            return codes.NEEDS_BOUND
        if verdict == codes.ADMITTED:
            best = max(best, action.expected_reward)
            for j in range(action.first_outcome, action.first_outcome + action.outcome_count):
                widen(returns[depth], problem.outcomes[j].reward)
    if actions == 0:
        verdict = finish(test, problem.pieces, node.survival, node.credit)
        if verdict == codes.UNDECIDED:
            return codes.NEEDS_BOUND
        best = 0.0 if verdict == codes.ADMITTED else -np.inf
    if compiled:
        source.evaluations += actions
    note_ending(problem, tree, returns, path, depth, actions == 0)
    if best == -np.inf:
        return codes.REJECT
    if actions > 0:
        tally(returns[depth], best)
    node.visits, node.value, node.solved = node.visits + 1, best, 1
    return codes.END_SAMPLE


@part
def select_edge(problem, tree, returns, path, control):
    """Choose an action: an untried one first, else the choice of UCT."""
    step = path[control.depth]
    node = tree.nodes[step.node]
    if control.default_policy == GREEDY:
        step.edge = choose_greedy(problem, tree, returns, node, control.depth)
    else:
        step.edge = choose_untried(problem, tree, node, control)
    if step.edge == NONE:
        seen = returns[control.depth]
        scale = control.exploration * (1.0 if control.literal else seen.most - seen.least)
        share = 0.0 if control.literal else SHARE
        step.edge = choose_uct(problem, tree, node, scale, share)
    if step.edge != NONE:
        control.phase = TRY
        return codes.GO_ON
    return codes.END_SAMPLE if node.solved else codes.REJECT


@part
def try_edge(problem, tree, returns, path, test, control):
    """Test the chosen action, and continue with one of its outcomes if there is a safe one."""
    depth = control.depth
    step = path[depth]
    node, edge = tree.nodes[step.node], tree.edges[step.edge]
    row = action_row(problem, node, step.edge)
    action = problem.actions[row]
    verdict = test_edge(problem, test, depth, False, node, row, edge)
    if verdict == codes.UNDECIDED:
        return codes.NEEDS_BOUND
    if verdict == codes.REFUSED:
        delete_edge(problem, tree, node, step.edge)
        control.phase = SELECT
        return codes.GO_ON
    if verdict != codes.ADMITTED:
        return verdict
    if action.safe_count == 0:
        edge.visits += 1
        edge.value, edge.mark = action.expected_reward, SOLVED
        if tree.sizes[0].counted:
            edge.mark = LIVE
        refresh(problem, tree, node)
        for k in range(action.first_outcome, action.first_outcome + action.outcome_count):
            widen(returns[depth], problem.outcomes[k].reward)
        return codes.END_SAMPLE
    if tree.sizes[0].nodes >= len(tree.nodes) or not open_edge(tree, action, edge):
        return codes.NEEDS_ROOM
    k = draw_outcome(problem, tree, action, edge, control)
    if k == NONE:  # completion solved them all
        renew_edge(problem, tree, problem.discounts[depth], node, step.edge)
        refresh(problem, tree, node)
        control.phase = SELECT
        return codes.GO_ON
    child = tree.children[edge.first_child + k]
    if child == NONE:
        child = add_child(problem, tree, test, action, problem.weights[depth], node, edge, k)
    step.outcome = action.first_outcome + k
    path[depth + 1].node = child
    control.depth = depth + 1
    control.phase = OPEN
    return codes.GO_ON


@part
def draw_outcome(problem, tree, action, edge, control):
    """Draw an outcome whose history is not solved."""
    count = count_outcomes(tree, action)
    mass = 0.0
    for k in range(count):
        child = tree.children[edge.first_child + k]
        if child == NONE or not tree.nodes[child].solved:
            mass += problem.outcomes[action.first_outcome + k].probability
    left = draw_uniform(control) * mass
    chosen = NONE
    for k in range(count):
        child = tree.children[edge.first_child + k]
        if child == NONE or not tree.nodes[child].solved:
            chosen = k
            left -= problem.outcomes[action.first_outcome + k].probability
            if left < 0.0:
                break
    return chosen


@part
def back_up(problem, tree, returns, path, control):
    """Back up a sample from its end to the root."""
    # A solved last step has its expected reward instead of a sampled one.
    collected = tree.nodes[path[control.depth].node].value
    for depth in range(control.depth - 1, -1, -1):
        step = path[depth]
        node = tree.nodes[step.node]
        tree.edges[step.edge].visits += 1
        renew_edge(problem, tree, problem.discounts[depth], node, step.edge)
        refresh(problem, tree, node)
        collected = problem.outcomes[step.outcome].reward + problem.discounts[depth] * collected
        widen(returns[depth], collected)
        tally(returns[depth], collected)
    control.samples += 1
    control.depth = 0
    control.phase = OPEN


@part
def widen(seen, collected):
    """Include the reward of a sample from a level on in their range."""
    seen.least, seen.most = min(seen.least, collected), max(seen.most, collected)


@part
def tally(seen, collected):
    """Include the reward of a sample from a level on in their mean."""
    seen.total, seen.samples = seen.total + collected, seen.samples + 1


@part
def expect(returns, level):
    """Return the mean reward of samples from the step after a level on."""
    if level + 1 >= len(returns) or returns[level + 1].samples == 0:
        return 0.0
    return returns[level + 1].total / returns[level + 1].samples


@part
def choose_greedy(problem, tree, returns, node, depth):
    """Choose the untried action with the largest expected reward, allowing for the reward to go.

    The best action that ends the mission is compared with the best of the others plus the mean
    reward of samples from the next step on.
    """
    ending, going_on = NONE, NONE
    last, more = -np.inf, -np.inf
    for e in edges_of(problem, node):
        if is_untried(tree.edges[e]):
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
        if after.samples == 0:
            return going_on
        to_go = problem.discounts[depth] * after.total / after.samples
    return ending if last > more + to_go else going_on


@part
def ends_mission(seen, action):
    """Whether an action ends the mission: it is sure to fail, or always led to an end."""
    if action.safe_count == 0:
        return True
    return action.number < NUMBERS and seen.endings[action.number] == ENDED


@part
def choose_untried(problem, tree, node, control):
    """Choose an action that was never sampled, at random; NONE if there is none."""
    untried = 0
    for e in edges_of(problem, node):
        untried += is_untried(tree.edges[e])
    if untried == 0:
        return NONE
    skip = find_bin(draw_uniform(control) * untried, untried - 1)
    for e in edges_of(problem, node):
        if is_untried(tree.edges[e]):
            if skip == 0:
                return e
            skip -= 1
    return NONE


@part
def is_untried(edge):
    """Whether an action was never sampled."""
    return edge.mark == LIVE and edge.visits == 0


@part
def choose_uct(problem, tree, node, scale, share):
    """Return the action with too few visits, else the action of largest confidence bound.

    It is NONE if all actions are solved or deleted.
    """
    best, chosen = -np.inf, NONE
    fewest, rarest = np.inf, NONE
    bonus = scale * np.sqrt(np.log(max(1.0, np.float64(node.visits))))
    for e in edges_of(problem, node):
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
def draw_uniform(control):
    """Return a number from [0, 1): SplitMix64."""
    control.random += np.uint64(0x9E3779B97F4A7C15)
    z = control.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


# Tests of an action, for samples and policies.


@part
def test_edge(problem, test, depth, last, node, row, edge):
    """Whether an action may be taken, and store its outcomes if so; or a need.

    After the last action, finished histories are tested, not followed.
    """
    if test.by_outcome:
        status = have_outcomes(problem, node.state, row, not last, depth)
        if status != codes.KNOWN:
            return status
    action = problem.actions[row]
    ends = last or action.safe_count == 0
    weight = problem.weights[depth]
    verdict = try_action(problem, test, action, weight, ends, node.survival, node.credit)
    if verdict != codes.ADMITTED:
        return verdict
    status = have_outcomes(problem, node.state, row, not last, depth)
    if status != codes.KNOWN:
        return status
    return codes.ADMITTED if ends else could_be_admitted(problem, test, depth, node, action, edge)


@part
def could_be_admitted(problem, test, depth, node, action, edge):
    """Whether upper bounds on the reward leave it possible that an action is admitted.

    This is tested when the action is first tried. A risk above every value of Δ is refused whatever
    the reward. Beyond that, a compiled model may have a bound for each outcome, used only while the
    risk of the history exceeds what its credit allows.
    """
    survival = node.survival * (1.0 - action.immediate_risk)
    if not test.foresight or edge.visits > 0 or survival <= 0.0:
        return codes.ADMITTED
    if not could_pass(test, problem.pieces, survival, 0.0, np.inf):
        return codes.REFUSED
    weight = problem.weights[depth]
    credit = add_credit(test, action, node.survival, node.credit, weight)
    if problem.source[0].bound:
        for k in range(action.first_outcome, action.first_outcome + action.safe_count):
            outcome = problem.outcomes[k]
            so_far = add_outcome_credit(test, outcome, node.credit, credit, weight)
            more = weight * problem.discounts[depth] * outcome.outlook
            if (
                abs(outcome.outlook) < np.inf
                and not could_pass(test, problem.pieces, survival, so_far, 0.0)
                and not could_pass(test, problem.pieces, survival, so_far, more)
            ):
                return codes.REFUSED
    return codes.ADMITTED


# Cleanup and completion.


@kernel
def finalise(problem, tree, choice, places, tests, walks):
    """Finalise an action for every history that the policy reaches."""
    problem, tree = borrow(problem), borrow(tree)
    choice, places = borrow(choice), borrow(places)
    test, walk = tests[0], walks[0]
    while True:
        if walk.phase == NEXT_CHILD:
            status = enter_child(problem, tree, choice, places, test, walk)
        elif walk.phase == OPEN_PLACE:
            status = open_place(problem, tree, choice, places, test, walk)
        else:
            status = choose_edge(problem, tree, choice, places, test, walk)
        if status in (codes.FINALISED, codes.REJECT):
            if walk.depth == 0:
                walk.exhausted = status == codes.REJECT
                return codes.DONE
            walk.depth -= 1
            leave(problem, tree, choice, places, walk, status)
        elif status != codes.GO_ON:
            return status


@part
def open_place(problem, tree, choice, places, test, walk):
    """Enter a history of the policy."""
    place = places[walk.depth]
    node = tree.nodes[place.node]
    choice[place.node] = NONE
    frontier = not walk.complete and node.visits == 0
    status = codes.KNOWN if frontier else have_actions(problem, node.state)
    if status != codes.KNOWN:
        return status
    if frontier or problem.states[node.state].action_count == 0:
        verdict = finish(test, problem.pieces, node.survival, node.credit)
        if verdict == codes.UNDECIDED:
            return codes.NEEDS_BOUND
        return codes.FINALISED if verdict == codes.ADMITTED else codes.REJECT
    if walk.visited >= walk.budget:
        return codes.PAUSED
    if not open_node(problem, tree, node):
        return codes.NEEDS_ROOM
    walk.visited += 1
    if walk.depth + 1 == len(problem.discounts) and not tree.sizes[0].counted:
        # Nothing is deleted here.
        status, chosen, _ = choose_last_action(
            problem, test, node.state, node.survival, node.credit, problem.weights[walk.depth]
        )
        if status == codes.KNOWN and chosen == NONE:
            return codes.REJECT
        if status == codes.KNOWN:
            choice[place.node] = node.first_edge + chosen - problem.states[node.state].first_action
        return codes.FINALISED if status == codes.KNOWN else status
    walk.phase = NEXT_EDGE
    return codes.GO_ON


@part
def choose_edge(problem, tree, choice, places, test, walk):
    """Take the best remaining action, if it passes."""
    depth = walk.depth
    place = places[depth]
    node = tree.nodes[place.node]
    e = prefer(problem, tree, node)
    if e == NONE:
        return codes.REJECT
    row = action_row(problem, node, e)
    last = depth + 1 == len(problem.discounts)
    verdict = test_edge(problem, test, depth, last, node, row, tree.edges[e])
    if verdict == codes.UNDECIDED:
        return codes.NEEDS_BOUND
    if verdict == codes.REFUSED:
        delete_edge(problem, tree, node, e)
        return codes.GO_ON
    if verdict != codes.ADMITTED:
        return verdict
    action = problem.actions[row]
    choice[place.node] = e
    if last or action.safe_count == 0:
        return codes.FINALISED
    if not open_edge(tree, action, tree.edges[e]):
        return codes.NEEDS_ROOM
    place.outcome = 0
    walk.phase = NEXT_CHILD
    return codes.GO_ON


@part
def prefer(problem, tree, node):
    """Return the best remaining action: by value if sampled, else by expected reward."""
    sampled, untried = NONE, NONE
    best, most = -np.inf, -np.inf
    for e in edges_of(problem, node):
        edge = tree.edges[e]
        if edge.mark == DELETED:
            continue
        if edge.visits > 0:
            if sampled == NONE or edge.value > best:
                best, sampled = edge.value, e
        else:
            reward = problem.actions[action_row(problem, node, e)].expected_reward
            if untried == NONE or reward > most:
                most, untried = reward, e
    return sampled if sampled != NONE else untried


@part
def enter_child(problem, tree, choice, places, test, walk):
    """Go to the next outcome of the chosen action."""
    depth = walk.depth
    place = places[depth]
    node = tree.nodes[place.node]
    e = choice[place.node]
    edge, action = tree.edges[e], problem.actions[action_row(problem, node, e)]
    if place.outcome == action.safe_count:
        return codes.FINALISED
    child = tree.children[edge.first_child + place.outcome]
    if child == NONE:
        if tree.sizes[0].nodes >= min(len(tree.nodes), len(choice)):
            return codes.NEEDS_ROOM
        child = add_child(
            problem, tree, test, action, problem.weights[depth], node, edge, place.outcome
        )
    places[depth + 1].node = child
    walk.depth = depth + 1
    walk.phase = OPEN_PLACE
    return codes.GO_ON


@part
def leave(problem, tree, choice, places, walk, status):
    """Return to the parent: to its next outcome, or to its next best action."""
    place = places[walk.depth]
    node = tree.nodes[place.node]
    e = choice[place.node]
    if status == codes.REJECT:
        delete_edge(problem, tree, node, e)
        walk.phase = NEXT_EDGE
        return
    place.outcome += 1
    walk.phase = NEXT_CHILD
    if tree.edges[e].visits > 0:
        renew_edge(problem, tree, problem.discounts[walk.depth], node, e)
        refresh(problem, tree, node)


# The tree.


@part
def open_node(problem, tree, node):
    """Add the actions of a history, unless they are there; False if there is no room."""
    if node.first_edge != NONE:
        return True
    size = tree.sizes[0]
    count = problem.states[node.state].action_count
    if size.edges + count > len(tree.edges):
        return False
    node.first_edge = size.edges
    for e in range(node.first_edge, node.first_edge + count):
        edge = tree.edges[e]
        edge.visits, edge.mark = 0, LIVE
        edge.value, edge.first_child = -np.inf, NONE
    size.edges += count
    return True


@part
def open_edge(tree, action, edge):
    """Add a place for each outcome of an action, unless they are there; False without room."""
    if edge.first_child != NONE:
        return True
    size = tree.sizes[0]
    count = count_outcomes(tree, action)
    if size.children + count > len(tree.children):
        return False
    edge.first_child = size.children
    for k in range(edge.first_child, edge.first_child + count):
        tree.children[k] = NONE
    size.children += count
    return True


@part
def add_child(problem, tree, test, action, weight, node, edge, k):
    """Add the history after an outcome to the tree, and return its number."""
    size = tree.sizes[0]
    outcome = problem.outcomes[action.first_outcome + k]
    number = size.nodes
    size.nodes += 1
    tree.children[edge.first_child + k] = number
    child = tree.nodes[number]
    child.state, child.first_edge = outcome.state, NONE
    child.visits, child.solved, child.value = 0, 0, -np.inf
    child.survival = node.survival * (1.0 - action.immediate_risk)
    credit = add_credit(test, action, node.survival, node.credit, weight)
    child.credit = add_outcome_credit(test, outcome, node.credit, credit, weight)
    return number


@part
def edges_of(problem, node):
    """Return the edges of an opened history."""
    return range(node.first_edge, node.first_edge + problem.states[node.state].action_count)


@part
def action_row(problem, node, e):
    """Return the action row of an edge of a history."""
    return problem.states[node.state].first_action + e - node.first_edge


@part
def count_outcomes(tree, action):
    """Return the number of outcomes of an action in the tree."""
    return action.outcome_count if tree.sizes[0].counted else action.safe_count


@part
def delete_edge(problem, tree, node, e):
    """Delete an action with its counts."""
    tree.edges[e].mark = DELETED
    refresh(problem, tree, node)


@part
def refresh(problem, tree, node):
    """Update visits, value and solved of a history from its actions."""
    visits, value, solved, left = 0, -np.inf, True, False
    for e in edges_of(problem, node):
        edge = tree.edges[e]
        if edge.mark != DELETED:
            left = True
            solved = solved and edge.mark == SOLVED
            if edge.visits > 0:
                visits += edge.visits
                value = max(value, edge.value)
    node.visits, node.value = visits, value
    node.solved = left and solved


@part
def renew_edge(problem, tree, discount, node, e):
    """Update the value and the mark of an action from its sampled outcomes."""
    edge = tree.edges[e]
    counted = tree.sizes[0].counted
    if edge.first_child == NONE:
        return
    action = problem.actions[action_row(problem, node, e)]
    total, mass, solved = 0.0, 0.0, not counted
    baseline, own, sampled = 0.0, 0.0, True
    for k in range(count_outcomes(tree, action)):
        number = tree.children[edge.first_child + k]
        outcome = problem.outcomes[action.first_outcome + k]
        baseline += outcome.probability * outcome.outlook
        if number == NONE or tree.nodes[number].visits == 0:
            solved = sampled = False
            continue
        child = tree.nodes[number]
        if counted:
            total += child.visits * (outcome.reward + discount * child.value)
            mass += child.visits
        else:
            total += outcome.probability * child.value
            mass += outcome.probability
            own += outcome.probability * outcome.outlook
            solved = solved and child.solved != 0
    if counted:
        edge.visits = mass
        if mass > 0.0:
            edge.value = total / mass
    elif mass > 0.0:
        survival = 1.0 - action.immediate_risk
        to_go = survival * total / mass
        if not sampled and abs(baseline) < np.inf:
            to_go += baseline - survival * own / mass
        edge.value = action.expected_reward + discount * to_go
    if solved:
        edge.mark = SOLVED
