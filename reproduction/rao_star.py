"""RAO* as Santana, Thiébaux and Williams published it (2016), in plain Python, and where it loses.

The oracle of `RAOStar()`, whose kernel works on arrays. See `vulcan.baselines.rao_star` for the
algorithm in words. Here states are observed, so that a belief is a history.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

import vulcan
from vulcan import Outcome
from vulcan.model.reader import ModelReader
from vulcan.numerics import TOLERANCE

__all__ = ["COIN", "COIN_BOUND", "TREE_BOUND", "Tree", "compare_on_trees", "grow_tree", "rao_star"]

TREE_BOUND = 0.03
"""The bound under which random trees are solved."""

History = tuple[tuple[str, int], ...]  # for each action its label, and the number of the outcome


@dataclass
class Node:
    """A history: value V, execution risk er, bound Δ, and the best action."""

    state: Any
    history: History
    parent: Node | None
    value: float
    risk: float
    ends: bool
    allowed: float = 0.0
    actions: dict[str, Action] | None = None  # None: it is open
    best: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it was never expanded and has actions."""
        return self.actions is None and not self.ends


@dataclass
class Action:
    """An action that was not rejected."""

    reward: float  # expected, failing outcomes included
    risk: float  # immediate
    discount: float
    after: list[tuple[float, Node]]  # by the probability of each safe outcome

    def expect_value(self) -> float:
        """Return Q = R̄ + γ Σ p V."""
        return self.reward + self.discount * sum(p * node.value for p, node in self.after)

    def expect_risk(self) -> float:
        """Return er = r + Σ p er."""
        return self.risk + sum(p * node.risk for p, node in self.after)


def rao_star(
    model: Any, bound: float, cap: float = 1.0, closes_with_heuristic: bool = False
) -> tuple[float, float, dict[History, str], int]:
    """Return value and risk of the root (-inf without a policy), the policy, and how many nodes.

    Parameters
    ----------
    model
        With `reward_to_go_bound` and `risk_to_go_bound`.
    bound
        The chance constraint.
    cap
        The bound on the risk ahead of every history: the same for mode "everywhere".
    closes_with_heuristic
        Whether dead ends keep the value of their heuristic.
    """
    search = Search(ModelReader(model), min(1.0, bound), cap, closes_with_heuristic)
    while opened := [node for node in search.list_policy() if node.is_open]:
        search.advance(opened)
    policy = {node.history: node.best for node in search.list_policy() if node.best is not None}
    return search.root.value, search.root.risk, policy, search.nodes


class Search:
    """The tree, and the three steps of a round."""

    def __init__(
        self, reader: ModelReader, bound: float, cap: float, closes_with_heuristic: bool
    ) -> None:
        self.reader, self.cap, self.closes_with_heuristic = reader, cap, closes_with_heuristic
        self.nodes = 1
        self.root = self.make_node(reader.root, (), None)
        self.root.allowed = bound

    def make_node(self, state: Any, history: History, parent: Node | None) -> Node:
        """Return a node with the values of the heuristics."""
        reader, step = self.reader, len(history)
        actions = reader.actions(state) if step < reader.levels else {}
        if not actions:
            return Node(state, history, parent, 0.0, 0.0, ends=True)
        risk = min(reader.bound_risk(state, action, step) for action in actions.values())
        return Node(state, history, parent, reader.bound_reward(state, step), risk, ends=False)

    def advance(self, opened: list[Node]) -> None:
        """Expand the open nodes of the best policy, and update them and their ancestors."""
        changed = {id(node) for node in opened}
        for node in reversed(self.list_policy()):
            if node.is_open:
                self.expand(node)
            if id(node) in changed:
                self.update(node)
                changed.add(id(node.parent))

    def expand(self, node: Node) -> None:
        """Give a node the actions that are not rejected."""
        step, node.actions = len(node.history), {}
        for label, action in self.reader.actions(node.state).items():
            outcomes = self.reader.outcomes(node.state, action)
            made = Action(
                sum(float(o.probability * o.reward) for o in outcomes),
                sum(float(o.probability) for o in outcomes if o.fails),
                float(self.reader.discounts[step]),
                [
                    (o.probability, self.make_node(o.state, (*node.history, (label, k)), node))
                    for k, o in enumerate(outcomes)
                    if not o.fails
                ],
            )
            if self.is_within(node, made):
                node.actions[label] = made
                self.nodes += len(made.after)

    def is_within(self, node: Node, action: Action) -> bool:
        """Whether an action keeps to the bound of its node."""
        capped = all(after.risk <= self.cap + TOLERANCE / 2 for _, after in action.after)
        return capped and action.expect_risk() <= node.allowed + TOLERANCE / 2

    def update(self, node: Node) -> None:
        """Choose the best action of a node within its bound, or close it."""
        assert node.actions is not None
        node.best, best = None, -inf
        for label, action in node.actions.items():
            if self.is_within(node, action) and action.expect_value() > best:
                node.best, best = label, action.expect_value()
        if node.best is not None:
            node.value, node.risk = best, node.actions[node.best].expect_risk()
        elif self.closes_with_heuristic:
            heuristic = self.make_node(node.state, node.history, None)
            node.value, node.risk, node.actions = heuristic.value, heuristic.risk, {}
        else:
            node.value, node.risk, node.actions = -inf, 1.0, {}

    def list_policy(self) -> list[Node]:
        """Return the nodes of the best policy, parents first, and hand its bounds down."""
        reached = [self.root]
        for node in reached:
            if node.actions is None or node.best is None:
                continue
            action = node.actions[node.best]
            for p, after in action.after:
                siblings = action.expect_risk() - p * after.risk
                bound = min(1.0, self.cap, (node.allowed - siblings) / p)
                after.allowed = max(after.risk, bound)
                reached.append(after)
        return reached


@dataclass
class Tree:
    """A model from a dictionary: state -> action -> outcomes, with heuristics like the bandit's.

    The reward to go is at most the largest expected reward of any action times the steps that are
    left, and the risk to go at least that of the action itself.
    """

    table: dict[Any, dict[str, list[Outcome]]]
    horizon: int

    def initial_state(self) -> Any:
        return ""

    def actions(self, state: Any) -> list[str]:
        return list(self.table.get(state, {}))

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        return self.table[state][action]

    def reward_to_go_bound(self, state: Any, step: int) -> float:
        most = max(
            sum(float(o.probability * o.reward) for o in outcomes)
            for actions in self.table.values()
            for outcomes in actions.values()
        )
        return max(0.0, most) * (self.horizon - step)

    def risk_to_go_bound(self, state: Any, action: str, step: int) -> float:
        return sum(float(o.probability) for o in self.table[state][action] if o.fails)


CHOICE = {
    "careful": [Outcome(1.0, 9.0, "end")],
    "bold": [Outcome(0.98, 10.0, "end"), Outcome.failure(0.02, 10.0)],
}
COIN = Tree(
    {
        "": {
            "flip": [Outcome(0.5, 0.0, "heads"), Outcome(0.5, 0.0, "tails")],
            "stay": [Outcome(1.0, 1.0, "end")],
        },
        "heads": CHOICE,
        "tails": CHOICE,
    },
    2,
)
COIN_BOUND = 0.01
"""A model, and a bound under which RAO* loses a factor of 9.5 with it.

Flipping a coin and being bold on one side of it is allowed, and earns 9.5. But "heads" and "tails"
are expanded together. Each may risk 0.02 as long as the other seems to risk nothing, and each
decides to be bold. Together they risk too much, so that "flip" is left for "stay", which earns 1,
and what comes after "flip" is never looked at again.
"""


def grow_tree(random: Random, horizon: int, actions: int) -> Tree:
    """Return a random tree: two safe outcomes of every action, risks up to 0.05."""
    table: dict[Any, dict[str, list[Outcome]]] = {}

    def grow(state: str, step: int) -> None:
        if step == horizon:
            return
        table[state] = {}
        for name in "abcdefgh"[:actions]:
            risk, p = random.choice([0.0, 0.05 * random.random()]), random.uniform(0.2, 0.8)
            # Who dares more may win more.
            rewards = [random.random() + 20 * risk * random.random() for _ in range(2)]
            table[state][name] = [
                Outcome((1 - risk) * q, reward, f"{state}{name}{k}")
                for k, (q, reward) in enumerate(zip((p, 1 - p), rewards, strict=True))
            ] + [Outcome.failure(risk)] * (risk > 0)
            for k in range(2):
                grow(f"{state}{name}{k}", step + 1)

    grow("", 0)
    return Tree(table, horizon)


def compare_on_trees(horizon: int, actions: int, trees: int) -> dict[str, Any]:
    """Return what RAO* and the best policy earn on random trees, under the bound 0.03.

    For each tree with a policy within the bound: the reward of RAO* (None where it finds no policy)
    and that of the best one. Seeds are 0, 1, ...
    """
    rewards, largest_risk = [], 0.0
    for seed in range(trees):
        model = grow_tree(Random(f"{horizon} {actions} {seed}"), horizon, actions)  # noqa: S311
        problem = vulcan.Problem(model, vulcan.Constant(TREE_BOUND))
        best = vulcan.solve(problem, vulcan.Pareto()).certificate
        found = vulcan.solve(problem, vulcan.baselines.RAOStar()).certificate
        if found is not None:
            largest_risk = max(largest_risk, float(found.risk))
        if best is not None:
            reward = None if found is None else round(float(found.reward), 12)
            rewards.append([reward, round(float(best.reward), 12)])
    return {"rewards": rewards, "largest risk": largest_risk}
