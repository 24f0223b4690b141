"""Levels: a state graph unrolled over the levels of decisions, and policies over it.

Exact solvers work on *state–step pairs*: pairs (state, level) that some policy can reach and that
have a decision to take. The actions of a pair and their outcomes do not depend on the level, so the
rows of the state graph are stored once, and a pair is only the number of its state:

    first  [L + 1]  the pairs of level t are first[t] to first[t + 1] - 1
    state  [N]      the state of each pair, ascending within a level

Pairs are numbered level by level. Rewards are discounted from the start of the mission: with reach
the probability of being in a pair and γ^t the weight of its level, a policy has

    E g = Σ reach(n) γ^t R̄(row),    er = Σ reach(n) r(row).

In heuristic search, a pair that is not `expanded` is a *tip*: it is not evaluated.

Layers are a graph with every action written out. Its nodes are the pairs of levels, with the same
numbers, or the histories of a tree (`vulcan.baselines.programs.unfold`):

    nodes    [N]  state, level, first_edge, edge_count
    edges    [E]  reward γ^t R̄, risk r, first_target, target_count, action (row of the state graph)
    targets  [T]  probability, node: one for each safe outcome, END where the history ends there

The nodes after a node always have larger numbers. A tip has no edges.

Decisions are a policy over a graph, before it is written out:

    rows      [D]  the action row of each decision, NONE in a tip
    children  [C]  the next decision after each safe outcome of it, or END
    pairs     [D]  the state–step pair of each decision

They are numbered level by level, so that a child always has a larger number than its parent, and a
decision has as many children as its row has safe outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.graph.states import StateGraph
from vulcan.numerics import END, NONE, UNEVALUATED
from vulcan.runtime.arrays import ranges, starts

if TYPE_CHECKING:
    from vulcan.kernels.dp import LevelArrays

Integers = NDArray[np.int32]
Choice = NDArray[np.int32]
"""An action row for each pair, NONE in tips: a policy that is a function of state and step."""

Given = tuple[int, int, Sequence[int]]
"""Pair, row, and the given decision after each safe outcome; see `Levels.decide`."""

Key = TypeVar("Key", bound=Hashable)

BETWEEN_CHECKS: Final = 512  # number of pairs between two checks of the limits

NODE: Final = np.dtype(
    [("state", "i4"), ("level", "i4"), ("first_edge", "i4"), ("edge_count", "i4")], align=True
)
EDGE: Final = np.dtype(
    [
        ("reward", "f8"),
        ("risk", "f8"),
        ("first_target", "i4"),
        ("target_count", "i4"),
        ("action", "i4"),
    ],
    align=True,
)
TARGET: Final = np.dtype([("probability", "f8"), ("node", "i4")], align=True)


def build_levels(
    graph: StateGraph,
    *,
    may_go_on: Callable[[int, int], bool] = lambda pairs, memory: True,
    opens: Callable[[Integers, int], NDArray[np.bool_]] | None = None,
    most_pairs: float = math.inf,
    most_new: float = math.inf,
) -> Levels | None:
    """Unroll a state graph, evaluating the model where it is missing; None at a limit.

    `may_go_on` is called with the numbers of pairs and bytes so far, again and again during
    evaluations. `opens` says which states are expanded at a level, all by default. `most_pairs`
    and `most_new` limit the state–step pairs, and the states that were not evaluated before.
    """
    found: list[Integers] = []  # the states of each level
    expanded: list[NDArray[np.bool_]] = []
    pairs = next_check = 0
    reached, last_seen = np.zeros(1, np.int32), np.zeros(0, np.int32)

    def go_on() -> bool:
        return may_go_on(pairs, np.dtype(np.int32).itemsize * pairs)

    for level in range(graph.reader.levels):
        states = _find_repeated(found) if opens is None else None
        if states is None:
            if found:
                here = found[-1] if opens is None else found[-1][expanded[-1]]
                reached, last_seen = _find_targets(graph, here, level, last_seen)
            new = reached[graph.states.array["action_count"][reached] == UNEVALUATED]
            if opens is not None and len(new):
                new = new[opens(new, level)]
            # Before any of them is evaluated: the end must not depend on the clock.
            most_new -= len(new)
            if most_new < 0 or (len(new) and not graph.expand_while(np.sort(new).tolist(), go_on)):
                return None
            states = np.sort(reached[graph.states.array["action_count"][reached] != 0])
        if not len(states):
            break
        pairs += len(states)
        found.append(states)
        if opens is not None:
            expanded.append(opens(states, level))
        if pairs > most_pairs:
            return None
        # Levels of a long horizon may have one pair each, which takes less time than a check.
        if pairs >= next_check:
            next_check = pairs + BETWEEN_CHECKS
            if not go_on():
                return None
    return join_levels(graph, found, expanded)


def _find_repeated(found: Sequence[Integers]) -> Integers | None:
    """Return the states of the next level if an earlier level had the same states as the last one.

    Next states do not depend on the level. Where moves alternate between two sets of states, as
    between the colours of a chessboard, every other level is the same.
    """
    for period in (1, 2):
        if len(found) > period:
            last, before = found[-1], found[-1 - period]
            if last is before or np.array_equal(last, before):
                return found[-period]
    return None


def _find_targets(
    graph: StateGraph, here: Integers, level: int, last_seen: Integers
) -> tuple[Integers, Integers]:
    """Return the next states of some states, each once, and the last level that led to each."""
    from vulcan.kernels.dp import find_following

    more = len(graph.states.array) - len(last_seen)
    last_seen = np.append(last_seen, np.full(more, NONE, np.int32)) if more else last_seen
    following = np.zeros(graph.states.count, np.int32)
    rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
    count = find_following(*rows, here, level, last_seen, following)
    return following[:count].copy(), last_seen


@dataclass(frozen=True)
class Levels:
    """A state graph unrolled over the levels, with the arrays for kernels."""

    graph: StateGraph
    arrays: LevelArrays

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.arrays.state)

    @property
    def levels(self) -> NDArray[np.intp]:
        """The level of each pair."""
        sizes = np.diff(self.arrays.first)
        return np.repeat(np.arange(len(sizes)), sizes)

    def find_level(self, pair: int) -> int:
        """Return the level of a pair."""
        return int(np.searchsorted(self.arrays.first, pair, side="right")) - 1

    def list_targets(self, pair: int, row: int) -> list[tuple[float, int]]:
        """Return probability and next pair of each safe outcome of an action, END at ends."""
        arrays, level = self.arrays, self.find_level(pair) + 1
        outcomes = slice(
            arrays.first_outcome[row], arrays.first_outcome[row] + arrays.safe_count[row]
        )
        targets = arrays.target[outcomes]
        pairs = np.full(len(targets), END)
        if level + 1 < len(arrays.first):
            first, end = arrays.first[level : level + 2].tolist()
            places = first + np.searchsorted(arrays.state[first:end], targets)
            pairs = np.where(arrays.action_count[targets] == 0, END, places)
        return list(zip(arrays.probability[outcomes].tolist(), pairs.tolist(), strict=True))

    def decide(self, choice: Choice, given: Sequence[Given] = ()) -> Decisions:
        """Return the decisions of a policy that takes the chosen row in each pair.

        Given decisions come first, beginning with the root: the pair, the row, and for each safe
        outcome the number of the given decision that follows, or NONE where `choice` does; where
        there are several choices, in rows, NONE - k for the k-th.
        """
        from vulcan.kernels.dp import DECISION, number_decisions

        if not len(self):
            return Decisions(*np.zeros((3, 0), np.int32))
        choice = np.atleast_2d(choice)
        arrays, size = self.arrays, choice.size + len(given)
        ways = np.array([way for _, _, after in given for way in after], np.int32)
        firsts = starts(np.array([len(after) for _, _, after in given], np.intp)).tolist()
        records = [(pair, row, first) for (pair, row, _), first in zip(given, firsts, strict=True)]
        outcomes = int(arrays.safe_count[choice[choice != NONE]].sum(dtype=np.int64))
        rows, pairs, own = np.zeros((3, size), np.int32)
        children = np.zeros(outcomes + len(ways), np.int32)
        numbers = np.full((len(choice), len(arrays.action_count)), NONE, np.int32)
        found = (rows, pairs, own, children, numbers)
        count, written = number_decisions(arrays, choice, np.array(records, DECISION), ways, found)
        return Decisions(rows[:count].copy(), children[:written].copy(), pairs[:count].copy())


def join_levels(
    graph: StateGraph,
    states: Sequence[Integers],
    expanded: Sequence[NDArray[np.bool_]] = (),
) -> Levels:
    """Return levels, given the ascending states of each and which of them are expanded."""
    from vulcan.kernels.dp import LevelArrays

    rows = graph.states.array[: graph.states.count]
    actions = graph.actions.array[: graph.actions.count]
    outcomes = graph.outcomes.array[: graph.outcomes.count]
    sizes = [len(level) for level in states]
    of_states = ("first_action", "action_count")
    of_actions = ("expected_reward", "immediate_risk", "first_outcome", "safe_count")
    arrays = LevelArrays(
        first=np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64),
        state=np.concatenate([np.zeros(0, np.int32), *states]),
        expanded=np.concatenate([np.zeros(0, np.bool_), *expanded]),
        weights=np.ascontiguousarray(graph.reader.weights),
        **{name: np.ascontiguousarray(rows[name]) for name in of_states},
        **{name: np.ascontiguousarray(actions[name]) for name in of_actions},
        probability=np.ascontiguousarray(outcomes["probability"]),
        target=np.ascontiguousarray(outcomes["state"]),
        place=np.full(len(rows), NONE, np.int32),
    )
    return Levels(graph, arrays)


class Decisions(NamedTuple):
    """A policy over a graph; see the head of this module."""

    rows: NDArray[np.int32]
    children: NDArray[np.int32]
    pairs: NDArray[np.int32]

    def find_tips(self) -> list[int]:
        """Return the tips that the policy reaches."""
        return sorted(set(self.pairs[self.rows == NONE].tolist()))


def collect_decisions(
    root: Key, choose: Callable[[Key], tuple[int, int, Sequence[Key | None]]]
) -> Decisions:
    """Return the decisions of a policy that depends on a key of the history, `root` at the start.

    `choose` leads from a key to the pair, the row, and the key after each safe outcome: None for an
    end.
    """
    rows: list[int] = []
    children: list[int] = []
    pairs: list[int] = []
    level: list[Key] = [root]
    count = 1
    while level:
        following: dict[Key, int] = {}
        for key in level:
            pair, row, after = choose(key)
            pairs.append(pair)
            rows.append(row)
            for next_ in after:
                number = count + len(following)
                children.append(END if next_ is None else following.setdefault(next_, number))
        count += len(following)
        level = list(following)
    return Decisions(*(np.array(numbers, np.int32) for numbers in (rows, children, pairs)))


class Layers(NamedTuple):
    """Levels with all actions written out; see the head of this module."""

    nodes: Any
    edges: Any
    targets: Any

    def follow(self, edge: int) -> list[int]:
        """Return the nodes after an edge, END where the history ends."""
        first, count = self.edges[["first_target", "target_count"]][edge].tolist()
        nodes: list[int] = self.targets["node"][first : first + count].tolist()
        return nodes


def count_bytes(levels: Levels) -> int:
    """Return the number of bytes of the layers of some levels."""
    arrays = levels.arrays
    counts = np.maximum(0, arrays.action_count)
    ends = np.concatenate(([0], np.cumsum(arrays.safe_count, dtype=np.int64)))
    outcomes = ends[arrays.first_action + counts] - ends[arrays.first_action]
    per_state = EDGE.itemsize * counts + TARGET.itemsize * outcomes
    return int(per_state[arrays.state].sum()) + NODE.itemsize * len(levels)


def write_layers(levels: Levels) -> Layers:
    """Return the layers of some levels."""
    arrays = levels.arrays
    nodes = np.zeros(len(levels), NODE)
    nodes["state"], nodes["level"] = arrays.state, levels.levels
    nodes["edge_count"] = np.maximum(0, arrays.action_count[arrays.state])
    if len(arrays.expanded):
        nodes["edge_count"][~arrays.expanded] = 0
    nodes["first_edge"] = starts(nodes["edge_count"])
    rows = ranges(arrays.first_action[arrays.state], nodes["edge_count"])
    edges = np.zeros(len(rows), EDGE)
    edges["action"], edges["risk"] = rows, arrays.immediate_risk[rows]
    level = np.repeat(nodes["level"], nodes["edge_count"])
    edges["reward"] = arrays.weights[level] * arrays.expected_reward[rows]
    edges["target_count"] = arrays.safe_count[rows]
    edges["first_target"] = starts(edges["target_count"])
    outcomes = ranges(arrays.first_outcome[rows], edges["target_count"])
    targets = np.zeros(len(outcomes), TARGET)
    targets["probability"] = arrays.probability[outcomes]
    # The pair of each next state, from its level and its number; END where a history ends.
    after = np.repeat(level, edges["target_count"]).astype(np.int64) + 1
    states, count = arrays.target[outcomes], len(arrays.action_count)
    pairs = np.searchsorted(levels.levels * count + arrays.state, after * count + states)
    goes_on = (after + 1 < len(arrays.first)) & (arrays.action_count[states] != 0)
    targets["node"] = np.where(goes_on, pairs, END)
    return Layers(nodes, edges, targets)
