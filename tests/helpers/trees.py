"""The tree of a tree search, as nested objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import vulcan
from vulcan import RiskBound
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.sampling.paper_tree import TreeRun
from vulcan.solvers.constraints import LocalConstraint


def start(model: Any, bound: RiskBound, under: LocalConstraint, seed: int) -> TreeRun:
    """Return a search that has not begun."""
    run = TreeRun(vulcan.Problem(model, bound), ModelReader(model), under, None)
    run.prepare(vulcan.LocalVulcan(1.0, default_policy="random"), seed)
    return run


def sample(run: TreeRun, target: int) -> None:
    """Sample until there are this many samples in all."""
    while run.can_sample(target):
        run.advance(target)


@dataclass(frozen=True)
class Edge:
    """An action of a history, as the tree has it."""

    label: str
    mark: int
    children: tuple[Node | None, ...]


@dataclass(frozen=True)
class Node:
    """A history, as the tree has it."""

    value: float
    edges: tuple[Edge, ...]


def unfold(run: TreeRun, number: int = 0) -> Node:
    """Return a history and all that follow as nested objects."""
    row = run.nodes[number]
    count = 0
    if row["first_edge"] != NONE:
        count = int(run.graph.states.array[row["state"]]["action_count"])
    return Node(float(row["value"]), tuple(_unfold_edge(run, row, k) for k in range(count)))


def _unfold_edge(run: TreeRun, row: Any, k: int) -> Edge:
    state = int(row["state"])
    action = run.graph.actions.array[run.graph.states.array[state]["first_action"] + k]
    kept = action["outcome_count" if run.sizes["counted"][0] else "safe_count"]
    edge = run.edges[row["first_edge"] + k]
    children: list[Node | None] = [None] * int(kept)
    if edge["first_child"] != NONE:
        numbers = run.children[edge["first_child"] : edge["first_child"] + kept].tolist()
        children = [None if number == NONE else unfold(run, number) for number in numbers]
    return Edge(run.graph.action_labels(state)[k], int(edge["mark"]), tuple(children))
