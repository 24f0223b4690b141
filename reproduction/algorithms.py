"""The paper's four algorithms as they are printed, in plain Python: begin here.

`forward_search` is VulcanFS (algorithm 1); `vulcan`, `Tree.sample` and `Tree.clean_up` are Vulcan,
Sample and Cleanup (2 to 4). A comment such as `# 2.3` names an algorithm and its line; every
printed line of a body counts, "else" and "loop" too, input and output do not. They are the oracle
of the library: `LocalVulcan.paper` takes the very same samples. See docs/theory/algorithms.md.

With r_i and R̄_i the immediate risk and the expected reward (over all outcomes, failing ones too) of
action i of a history h, and survival = Π (1 - r_i), the local constraint is

    ser(h) = (1 - survival) / survival  <=  Δ(f₁(h)),        f₁(h) = Σ γ^i R̄_i,

with ser(h) = 0 where h ends in failure. What the paper leaves open is settled as in the library:

- A failing outcome ends the sample with value 0 and counts as a visit. A safe state without actions
  ends a history as the horizon does. Where γ = 0, 0 · (-∞) is -∞.
- The default policy draws an untried action, all alike. So does UCT while there are any.
- Of equal actions the first is the argmax. One without visits comes after all others, and is worth
  its expected reward: with the printed 0 it might win, and Cleanup would divide by 0.
- What Cleanup leaves without visits keeps its value; a root without actions has no policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf, log, sqrt

from vulcan import Outcome, Problem, RiskBound
from vulcan.model.reader import ModelReader
from vulcan.numerics import TOLERANCE

History = tuple[tuple[str, int], ...]  # for each action its label, and the number of the outcome


@dataclass
class Node:
    """A history h, the outcome that it ends with, and N(h)."""

    reader: ModelReader
    risk_bound: RiskBound
    outcome: Outcome
    history: History = ()
    survival: float = 1.0
    credit: float = 0.0  # f₁(h)
    visits: int = 0  # 2.1

    @cached_property
    def actions(self) -> dict[str, Action]:
        """The actions that remain, by their labels."""
        reader, state = self.reader, self.outcome.state
        if self.outcome.fails or len(self.history) == reader.levels:
            return {}
        actions = reader.actions(state).items()
        return {label: Action(self, label, reader.outcomes(state, a)) for label, a in actions}

    @cached_property
    def ends(self) -> bool:
        """Whether there was no action before any was deleted."""
        return not self.actions

    def passes(self) -> bool:
        """Whether ser(h) <= Δ(f₁(h))."""
        sequence_risk = 0.0 if self.outcome.fails else (1 - self.survival) / self.survival
        return bool(sequence_risk <= self.risk_bound(self.credit) + TOLERANCE)

    def best(self) -> Action:
        """Return the action with the largest Q(h, a)."""
        return max(self.actions.values(), key=lambda action: (action.visits > 0, action.value))


class Action:
    """An action a after a history h, what may come after it, N(h, a) and Q(h, a)."""

    def __init__(self, node: Node, label: str, outcomes: list[Outcome]) -> None:
        step, expected_reward = len(node.history), fsum(o.probability * o.reward for o in outcomes)
        survival = node.survival * (1 - fsum(o.probability for o in outcomes if o.fails))
        credit = node.credit + float(node.reader.weights[step]) * expected_reward
        self.nodes = [
            Node(node.reader, node.risk_bound, o, (*node.history, (label, k)), survival, credit)
            for k, o in enumerate(outcomes)
        ]
        self.discount = float(node.reader.discounts[step])  # γ; 1 for an initial action
        self.label, self.visits, self.value = label, 0, expected_reward  # 2.1

    def average(self) -> float:
        """Return what the samples of this action are worth on average."""
        total = 0.0
        for node in self.nodes:
            to_go = node.best().value if node.visits and node.actions else 0.0
            total += node.visits * (node.outcome.reward + self.discount * to_go)
        return total / self.visits if self.visits else self.value


def forward_search(problem: Problem) -> tuple[float, dict[History, str]]:
    """Run VulcanFS; return the value of the best admissible policy (or -inf), and the policy."""
    policy: dict[History, str] = {}

    def search(node: Node) -> float:
        if node.outcome.fails:  # 1.1
            return 0.0  # 1.2
        if node.ends:  # 1.3
            return 0.0 if node.passes() else -inf  # 1.4 to 1.7
        for action in node.actions.values():  # 1.8
            ends = [(after.outcome, search(after)) for after in action.nodes]
            value = sum(o.probability * (o.reward + action.discount * v) for o, v in ends)  # 1.9
            action.value = value if all(v > -inf for _, v in ends) else -inf
        policy[node.history] = node.best().label  # 1.10
        return node.best().value  # 1.11

    return search(Tree(problem).root), policy


def vulcan(
    problem: Problem, exploration: float, samples: int, seed: int = 0
) -> tuple[float, dict[History, str], Tree]:
    """Run Vulcan; return the value of the root (-inf: no solution), the policy, and the tree."""
    tree = Tree(problem, exploration, seed)  # 2.1
    for _ in range(samples):  # 2.2
        if not tree.sample(tree.root):  # 2.3
            return -inf, {}, tree  # 2.4
    if not tree.clean_up(tree.root):  # 2.5
        return -inf, {}, tree
    value = 0.0 if tree.root.ends else tree.root.actions[tree.policy[()]].value
    return value, tree.policy, tree  # 2.6


class Tree:
    """The histories of a problem, and what Sample and Cleanup share."""

    def __init__(self, problem: Problem, exploration: float = 0.0, seed: int = 0) -> None:
        reader = ModelReader(problem.model)
        self.root = Node(reader, problem.risk_bound, Outcome(1.0, 0.0, reader.root))
        self.exploration, self.numbers = exploration, draw_numbers(seed)
        self.policy: dict[History, str] = {}

    def sample(self, node: Node) -> bool:
        """Take a sample from a history on; False if none passes."""
        if node.ends:  # 3.1
            if node.passes():  # 3.2
                node.visits += 1  # 3.3
                return True  # 3.4
            return False  # 3.5, 3.6
        while node.actions:  # 3.7, 3.8
            action = self.choose_action(node)  # 3.10 to 3.13
            if self.sample(self.draw_outcome(action)):  # 3.14, 3.15
                action.visits = sum(after.visits for after in action.nodes)  # 3.16
                node.visits = sum(each.visits for each in node.actions.values())  # 3.17
                action.value = action.average()  # 3.18
                self.policy[node.history] = node.best().label  # 3.19, 3.20
                return True  # 3.21
            del node.actions[action.label]  # 3.22, 3.23
            node.visits = sum(each.visits for each in node.actions.values())  # 3.24
        return False  # 3.9

    def clean_up(self, node: Node) -> bool:
        """Test what the policy may lead to from a history on; False if no action passes."""
        if node.visits == 0:  # 4.1
            return node.passes()  # 4.2 to 4.5
        if node.ends:  # 4.6
            return True  # 4.7
        while node.actions:  # 4.8, 4.9
            action = node.actions[self.policy[node.history]]
            passed = [self.clean_up(n) for n in action.nodes if not n.outcome.fails]  # 4.11, 4.12
            if all(passed):  # 4.13
                action.visits = sum(after.visits for after in action.nodes)  # 4.14
                node.visits = sum(each.visits for each in node.actions.values())  # 4.15
                action.value = action.average()  # 4.16
                return True  # 4.17
            del node.actions[action.label]  # 4.18, 4.19
            if node.actions:
                self.policy[node.history] = node.best().label  # 4.20
        return False  # 4.10

    def choose_action(self, node: Node) -> Action:
        """Choose an untried action (after a history without visits, all are), else by UCT."""
        if untried := [action for action in node.actions.values() if action.visits == 0]:
            return untried[int(next(self.numbers) * len(untried))]  # 3.11
        bonus = self.exploration * sqrt(log(node.visits))
        return max(node.actions.values(), key=lambda a: a.value + bonus / sqrt(a.visits))  # 3.13

    def draw_outcome(self, action: Action) -> Node:
        """Draw an outcome by its probability."""
        left = next(self.numbers) * sum(node.outcome.probability for node in action.nodes)
        for node in action.nodes:
            left -= node.outcome.probability
            if left < 0:
                break
        return node


def draw_numbers(seed: int) -> Iterator[float]:
    """Yield random numbers from [0, 1): SplitMix64."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        bits = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
        yield ((bits ^ bits >> 31) >> 11) / 2**53
