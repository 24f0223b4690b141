"""The tree search in plain Python, for problems under constraint B.

States that end a history early and actions that are sure to fail are left to other tests. It sums
in the order of the kernel, so that ties fall alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.helpers.tables import Table
from vulcan import Outcome, RiskBound
from vulcan.kernels.selection import SHARE
from vulcan.kernels.tree import DELETED, LIVE, SOLVED


@dataclass
class PlainNode:
    """A history of the plain search."""

    level: int
    state: Any
    survival: float
    credit: float
    visits: int = 0
    value: float = -math.inf
    solved: bool = False
    edges: dict[str, PlainEdge] = field(default_factory=dict)

    def refresh(self) -> None:
        left = [edge for edge in self.edges.values() if edge.mark != DELETED]
        self.visits = sum(edge.visits for edge in left)
        self.value = max((edge.value for edge in left if edge.visits), default=-math.inf)
        self.solved = bool(left) and all(edge.mark == SOLVED for edge in left)


@dataclass
class PlainEdge:
    """An action of a history of the plain search."""

    safe: list[Outcome]
    mean: float
    risk: float
    visits: int = 0
    value: float = -math.inf
    mark: int = LIVE
    children: list[PlainNode | None] = field(default_factory=list)

    def renew(self, discount: float) -> None:
        pairs = list(zip(self.safe, self.children, strict=True))
        seen = [(o.probability, child) for o, child in pairs if child and child.visits]
        total, mass = sum(p * child.value for p, child in seen), sum(p for p, _ in seen)
        self.value = self.mean + discount * (1 - self.risk) * total / mass
        if len(seen) == len(pairs) and all(child.solved for _, child in seen):
            self.mark = SOLVED


@dataclass
class PlainSearch:
    """The search of `vulcan.kernels.tree_search`, from its description."""

    table: Table
    bound: RiskBound
    random: int
    samples: int = 0

    def __post_init__(self) -> None:
        self.root = PlainNode(0, self.table.start, 1.0, 0.0)
        self.least = [math.inf] * self.table.horizon
        self.most = [-math.inf] * self.table.horizon

    def uniform(self) -> float:
        """SplitMix64."""
        mask = (1 << 64) - 1
        self.random = (self.random + 0x9E3779B97F4A7C15) & mask
        z = self.random
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) / (1 << 53)

    def widen(self, level: int, collected: float) -> None:
        self.least[level] = min(self.least[level], collected)
        self.most[level] = max(self.most[level], collected)

    def take(self, target: int) -> None:
        """Sample until there are this many samples, or the root is solved."""
        while self.samples < target and not self.root.solved:
            path = self.descend()
            collected = self.last(path).value
            for node, edge, outcome in reversed(path):
                edge.visits += 1
                edge.renew(self.table.discount)
                node.refresh()
                collected = outcome.reward + self.table.discount * collected
                self.widen(node.level, collected)
            self.samples += 1

    def last(self, path: list[tuple[PlainNode, PlainEdge, Outcome]]) -> PlainNode:
        """Return the history that a walk ended in."""
        if not path:
            return self.root
        _, edge, outcome = path[-1]
        return next(c for o, c in zip(edge.safe, edge.children, strict=True) if o is outcome)

    def descend(self) -> list[tuple[PlainNode, PlainEdge, Outcome]]:
        """Walk from the root to a history of one step, round what must be deleted."""
        path: list[tuple[PlainNode, PlainEdge, Outcome]] = []
        node = self.root
        while True:
            if node.level + 1 == self.table.horizon:
                node.value = self.decide(node)
                if node.value > -math.inf:
                    node.visits, node.solved = node.visits + 1, True
                    return path
                chosen = None
            else:
                chosen = self.choose(node)
            if chosen is None:
                if node.solved:
                    return path
                if not path:
                    pytest.fail("this problem has a policy")
                node, edge, _ = path.pop()
                edge.mark = DELETED
                node.refresh()
                continue
            k = self.draw(chosen)
            outcome = chosen.safe[k]
            if chosen.children[k] is None:
                survival = node.survival * (1 - chosen.risk)
                credit = node.credit + self.weight(node) * node.survival * chosen.mean
                chosen.children[k] = PlainNode(node.level + 1, outcome.state, survival, credit)
            path.append((node, chosen, outcome))
            node = chosen.children[k]

    def weight(self, node: PlainNode) -> float:
        return self.table.discount**node.level

    def actions(self, node: PlainNode) -> dict[str, PlainEdge]:
        found = {}
        for label, outcomes in self.table.table[node.state].items():
            safe = [o for o in outcomes if not o.fails]
            risk = math.fsum(o.probability for o in outcomes if o.fails)
            mean = math.fsum(o.probability * o.reward for o in outcomes)
            found[label] = PlainEdge(safe, mean, risk, children=[None] * len(safe))
        return found

    def decide(self, node: PlainNode) -> float:
        """Return the most that a last step can earn; -inf if none passes."""
        best = -math.inf
        for label, edge in self.actions(node).items():
            survival = node.survival * (1 - edge.risk)
            credit = node.credit + self.weight(node) * node.survival * edge.mean
            if 1 - survival <= self.bound(credit) + 1e-12:
                best = max(best, edge.mean)
                for outcome in self.table.table[node.state][label]:
                    self.widen(node.level, outcome.reward)
        return best

    def choose(self, node: PlainNode) -> PlainEdge | None:
        node.edges = node.edges or self.actions(node)
        live = [edge for edge in node.edges.values() if edge.mark == LIVE]
        untried = [edge for edge in live if not edge.visits]
        if untried:
            return untried[int(self.uniform() * len(untried))]
        rarest = min(live, key=lambda e: e.visits, default=None)
        if rarest and rarest.visits < SHARE * node.visits / len(node.edges):
            return rarest
        scale = self.most[node.level] - self.least[node.level]
        bonus = scale * math.sqrt(math.log(max(1, node.visits)))
        return max(live, key=lambda e: e.value + bonus / math.sqrt(e.visits), default=None)

    def draw(self, edge: PlainEdge) -> int:
        open_ = [k for k, child in enumerate(edge.children) if not (child and child.solved)]
        left = self.uniform() * sum(edge.safe[k].probability for k in open_)
        for k in open_:
            left -= edge.safe[k].probability
            if left < 0:
                return k
        return open_[-1]
