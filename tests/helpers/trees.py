"""The tree of a tree search, as nested objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, RiskBound
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.sampling.paper_tree import TreeRun
from vulcan.solvers.constraints import LocalConstraint


def start(
    model: Any,
    bound: RiskBound,
    under: LocalConstraint | None = None,
    *,
    seed: int = 0,
    as_printed: bool = False,
    exploration: float = 1.0,
    default_policy: Literal["random", "greedy"] = "random",
) -> TreeRun:
    """Return a search that has not begun."""
    under = vulcan.solvers.SurvivalConstraint() if under is None else under
    run = TreeRun(vulcan.Problem(model, bound), ModelReader(model), under, None)
    run.prepare(
        seed=seed,
        exploration=exploration,
        default_policy=default_policy,
        as_printed=as_printed,
    )
    return run


def sample(run: TreeRun, target: int) -> None:
    """Sample until there are this many samples in all."""
    while run.can_sample(target):
        run.advance(target)


@dataclass(frozen=True)
class Edge:
    """An action of a history, as the tree has it."""

    label: str
    visits: int
    value: float
    mark: int
    children: tuple[Node | None, ...]


@dataclass(frozen=True)
class Node:
    """A history, as the tree has it, and the same from its definition."""

    number: int
    level: int
    state: Any
    visits: int
    value: float
    solved: bool
    edges: tuple[Edge, ...]
    expected: tuple[float, float]  # survival and credit recomputed along the path


def unfold(run: TreeRun, kind: str = "B") -> Node:
    """Return the tree as nested objects."""
    return _unfold(run, kind, 0, 0, (1.0, 0.0))


def _unfold(run: TreeRun, kind: str, number: int, level: int, expected: Any) -> Node:
    graph, row = run.graph, run._nodes[number]
    state = int(row["state"])
    edges = []
    if row["first_edge"] != NONE:
        place = graph.states.array[state]
        for k in range(place["action_count"]):
            edges.append(
                _unfold_edge(run, kind, row, int(place["first_action"]), k, level, expected)
            )
    return Node(
        number,
        level,
        graph.state_object(state) if state >= 0 else "failed",
        int(row["visits"]),
        float(row["value"]),
        bool(row["solved"]),
        tuple(edges),
        expected,
    )


def _unfold_edge(
    run: TreeRun, kind: str, row: Any, first: int, k: int, level: int, expected: Any
) -> Edge:
    graph = run.graph
    edge, action = run._edges[row["first_edge"] + k], graph.actions.array[first + k]
    span = slice(action["first_outcome"], action["first_outcome"] + action["outcome_count"])
    outcomes = graph.outcomes.array[span]
    kept = len(outcomes) if run._sizes["counted"][0] else int(action["safe_count"])
    risk, mean = float(action["immediate_risk"]), float(action["expected_reward"])
    survival, credit = expected
    weight = run.reader.weights[level]
    children = []
    for j in range(kept):
        claim = {
            "B": survival * mean,
            "A": mean,
            "A own": float(action["credit"]),
            "A received": float(outcomes["reward"][j]),
        }[kind]
        after = (survival * (1 - risk), credit + weight * claim)
        number = NONE if edge["first_child"] == NONE else run._children[edge["first_child"] + j]
        if number == NONE:
            children.append(None)
        else:
            children.append(_unfold(run, kind, int(number), level + 1, after))
    return Edge(
        graph.action_labels(int(row["state"]))[k],
        int(edge["visits"]),
        float(edge["value"]),
        int(edge["mark"]),
        tuple(children),
    )


def walk(node: Node) -> Iterator[Node]:
    """Yield every history of a tree."""
    yield node
    for edge in node.edges:
        for child in edge.children:
            if child is not None:
                yield from walk(child)


TINY = Table(
    {
        0: {
            "safe": [Outcome(0.5, 1.0, 1), Outcome(0.5, 2.0, 2)],
            "risky": [Outcome(0.6, 3.0, 1), Outcome(0.3, 4.0, 2), Outcome.failure(0.1)],
        },
        1: {
            "safe": [Outcome(0.25, 0.0, 0), Outcome(0.75, 1.0, 0)],
            "risky": [Outcome(0.5, 2.0, 0), Outcome(0.3, 6.0, 0), Outcome.failure(0.2)],
        },
        2: {
            "safe": [Outcome(0.25, 0.0, 0), Outcome(0.75, 2.0, 0)],
            "risky": [
                Outcome(0.5, 1.0, 0, "often"),
                Outcome(0.3, 1.0, 0, "seldom"),
                Outcome.failure(0.2),
            ],
        },
    },
    horizon=2,
)


TINY_BOUND = vulcan.Linear(0.05)
