"""What the kernels of the tree search leave in the tree: golden trees, and facts about any tree."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.brute_force import admits, enumerate_plans
from tests.tables import Table, bounds, tables
from tests.test_forward_search import KINDS, constraint
from vulcan import Outcome, RiskBound, Status
from vulcan.constraint import LocalConstraint
from vulcan.kernels.tree import DELETED, LIVE, NONE, SOLVED
from vulcan.policy import UNPLANNED
from vulcan.progress import Limits, Monitor
from vulcan.reader import ModelReader
from vulcan.solvers.tree_run import TreeRun

GOLDEN = Path(__file__).parent / "golden"
MARKS = {LIVE: "live", SOLVED: "solved", DELETED: "deleted"}


def start(
    model: Any,
    bound: RiskBound,
    under: LocalConstraint | None = None,
    *,
    seed: int = 0,
    counted: bool = False,
    bounded: bool = False,
    exploration: float = 1.0,
) -> TreeRun:
    """Return a search that has not begun."""
    under = vulcan.SurvivalConstraint() if under is None else under
    run = TreeRun(vulcan.Problem(model, bound), ModelReader(model), under, None)
    run.prepare(
        seed=seed,
        exploration=exploration,
        default_policy="random",
        counted=counted,
        bounded=bounded,
    )
    return run


def sample(run: TreeRun, target: int) -> None:
    """Sample until there are so many samples in all."""
    run.sample(Monitor(Limits()), target, 0.0, lambda: pytest.fail("nobody asked"), lambda: None)


@dataclass(frozen=True)
class Edge:
    """An action of a history, as the tree has it."""

    label: str
    visits: int
    value: float
    mark: int
    probabilities: tuple[float, ...]
    rewards: tuple[float, ...]
    expected_reward: float
    risk: float
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
    survival: float
    credit: float
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
        float(row["survival"]),
        float(row["credit"]),
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
        tuple(outcomes["probability"].tolist()),
        tuple(outcomes["reward"].tolist()),
        mean,
        risk,
        tuple(children),
    )


def walk(node: Node) -> Iterator[Node]:
    """Yield every history of a tree."""
    yield node
    for edge in node.edges:
        for child in edge.children:
            if child is not None:
                yield from walk(child)


# --- Golden trees ------------------------------------------------------------------------------

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
            "risky": [Outcome(0.5, 1.0, 0), Outcome(0.3, 1.0, 0), Outcome.failure(0.2)],
        },
    },
    horizon=2,
)
TINY_BOUND = vulcan.Linear(0.05)
# One step more: with two, every history after the first step is solved when it is met.
SHORT = replace(TINY, horizon=3)


def as_document(node: Node | PlainNode | None) -> Any:
    """Return a tree for a file."""
    if node is None:
        return None
    document: dict[str, Any] = {
        "state": node.state,
        "visits": node.visits,
        "value": None if node.value == -math.inf else round(node.value, 12),
        "solved": node.solved,
        "survival": round(node.survival, 12),
        "credit": round(node.credit, 12),
    }
    edges = node.edges
    if edges:
        labelled = edges if isinstance(edges, dict) else {edge.label: edge for edge in edges}
        document["actions"] = {
            label: {
                "visits": edge.visits,
                "value": None if edge.value == -math.inf else round(edge.value, 12),
                "mark": MARKS[edge.mark],
                "outcomes": [as_document(child) for child in edge.children],
            }
            for label, edge in labelled.items()
        }
    return document


@pytest.mark.parametrize("counted", [False, True])
def test_golden_trees(counted: bool) -> None:
    path = GOLDEN / ("paper-tree.json" if counted else "tree.json")
    under = vulcan.SequenceConstraint() if counted else vulcan.SurvivalConstraint()
    model = TINY if counted else SHORT
    found = {}
    run = start(model, TINY_BOUND, under, seed=7, counted=counted)
    for samples in (1, 2, 5, 10):
        sample(run, samples)
        assert run.samples == samples
        found[str(samples)] = as_document(unfold(run))
        # Stopping in between makes no difference.
        unbroken = start(model, TINY_BOUND, under, seed=7, counted=counted)
        sample(unbroken, samples)
        assert as_document(unfold(unbroken)) == found[str(samples)]
    if not path.exists():
        path.write_text(json.dumps(found, indent=1) + "\n")
        pytest.fail(f"{path.name} was made anew; read it before you commit it")
    assert found == json.loads(path.read_text())


@pytest.mark.parametrize("poor", [False, True])
def test_golden_tree_by_hand(poor: bool) -> None:
    # Under B with Δ = 0.05 x. "safe" then anything risky: risk 0.2 against
    # Δ(1.5 + 2.8) = 0.215 in state 1, Δ(1.5 + 0.8) = 0.115 in state 2: only the first passes.
    # "risky" first (credit 3.0, survival 0.9): then "safe" has risk 0.1 against
    # Δ(3.0 + 0.9 * 0.75) = 0.18 and Δ(3.0 + 0.9 * 1.5) = 0.2175, both pass; then "risky" has risk
    # 0.28 against Δ(3.0 + 0.9 * 2.8) = 0.276 and Δ(3.0 + 0.9 * 0.8) = 0.186, both refused.
    #
    # "safe" earns 0.75 in state 1, so that "risky" with 2.8 is best wherever it passes. In state 2
    # it earns 1.5, more than "risky" with 0.8; if poor, 0.075, and "risky" is refused all the same:
    # Δ(3.0 + 0.9 * 0.075) = 0.153 still lets "safe" pass.
    table = {state: dict(actions) for state, actions in TINY.table.items()}
    if poor:
        table[2]["safe"] = [Outcome(0.25, 0.0, 0), Outcome(0.75, 0.1, 0)]
    rest = 0.075 if poor else 1.5
    run = start(replace(TINY, table=table), TINY_BOUND, seed=7)
    sample(run, 1000)
    assert run.solved
    assert run.samples == 4  # one for each history of one step
    root = unfold(run)
    safe, risky = root.edges
    for edge, values in ((safe, [2.8, rest]), (risky, [0.75, rest])):
        assert (edge.mark, edge.visits) == (SOLVED, 2)
        assert [child.value for child in edge.children] == pytest.approx(values)
        for child in edge.children:
            assert (child.solved, child.visits, child.edges) == (True, 1, ())
    assert safe.value == pytest.approx(1.5 + 0.5 * 2.8 + 0.5 * rest)
    assert risky.value == pytest.approx(3.0 + 0.6 * 0.75 + 0.3 * rest)
    assert root.value == risky.value
    assert root.solved

    # A policy gives the histories that it reaches their actions, and takes the best that passes.
    assert run._settle_tree(True, lambda: False)
    settled = unfold(run)
    safe, risky = settled.edges
    assert chosen_action(run, settled) is risky
    for child in risky.children:
        assert chosen_action(run, child).label == "safe"
        assert [edge.mark for edge in child.edges] == [LIVE, LIVE]
        assert (child.solved, child.visits) == (True, 1)
    assert all(not child.edges for child in safe.children)


def chosen_action(run: TreeRun, node: Node) -> Edge | None:
    """Return the action that a settled history takes; None if it takes none."""
    edge = int(run._choice[node.number])
    return None if edge == NONE else node.edges[edge - int(run._nodes[node.number]["first_edge"])]


# The search in plain Python, for problems like the one above: constraint B, no terminal states, no
# action that is sure to fail. It sums in the order of the kernel, so that ties fall alike.


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
        """Sample until there are so many samples, or the root is solved."""
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


@pytest.mark.parametrize("horizon", [2, 3, 4])
def test_plain_search_finds_the_same_trees(horizon: int) -> None:
    table = replace(TINY, horizon=horizon, discount=1.0 if horizon < 4 else 0.9)
    solved = deleted = running = 0
    for seed in range(40):
        run = start(table, TINY_BOUND, seed=seed)
        plain = PlainSearch(table, TINY_BOUND, seed)
        for samples in (1, 2, 3, 5, 10, 20, 40):
            sample(run, samples)
            plain.take(samples)
            root = unfold(run)
            assert as_document(root) == as_document(plain.root)
            assert run.samples == plain.samples
            solved += run.solved
            running += not run.solved
            deleted += any(e.mark == DELETED for node in walk(root) for e in node.edges)
    assert running
    assert (solved > 0) == (horizon < 4)
    assert (deleted > 0) == (horizon > 2)


# --- Facts about any tree ----------------------------------------------------------------------


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    samples=st.integers(1, 60),
    seed=st.integers(0, 1 << 40),
)
def test_every_tree_adds_up(
    kind: str,
    counted: bool,
    table: Table,
    bound: RiskBound,
    merges: bool,
    samples: int,
    seed: int,
) -> None:
    model = replace(table, merges=merges, calls={})
    under = constraint(kind, model)
    oracle = Oracle(table, bound, kind, getattr(constraint(kind, table), "own_credit", None))
    run = start(model, bound, under, seed=seed, counted=counted)
    sample(run, samples)
    root = unfold(run, kind)
    assert len(list(walk(root))) == run.histories
    if not run.exhausted and not run.solved:
        assert run.samples == samples
    for node in walk(root):
        if not counted and node.level + 1 == table.horizon:
            require_last_step(node, oracle, merges)
        else:
            require_sums(node)
        if node.state == "failed":
            continue
        survival, credit = node.expected
        assert node.survival == pytest.approx(survival, abs=1e-12)
        assert node.credit == pytest.approx(credit, abs=1e-12)
        for edge in node.edges:
            require_backup(edge, table, counted)


def require_last_step(node: Node, oracle: Oracle, merges: bool) -> None:
    """A history of one step is solved when it is met, without actions in the tree, or refused."""
    best = oracle.value(node.state if merges else node.state[-1], node.level, *node.expected)
    assert node.edges == ()
    assert node.solved == (best > -math.inf)
    assert node.visits == node.solved
    assert node.value == pytest.approx(best, abs=1e-12)


def require_sums(node: Node) -> None:
    """A history is the sum, the maximum and the conjunction of its remaining actions."""
    if not node.edges:
        assert node.value in (0.0, -math.inf)
        return
    left = [edge for edge in node.edges if edge.mark != DELETED]
    assert node.visits == sum(edge.visits for edge in left)
    tried = [edge.value for edge in left if edge.visits]
    assert node.value == max(tried, default=-math.inf)
    assert node.solved == (bool(left) and all(edge.mark == SOLVED for edge in left))


def require_backup(edge: Edge, table: Table, counted: bool) -> None:
    """The value of an action follows from the histories after it."""
    if edge.mark == DELETED or not edge.visits:
        return
    seen = [k for k, child in enumerate(edge.children) if child is not None and child.visits]
    if not seen:  # its histories end with it, and were tested at once
        assert edge.mark == (LIVE if counted else SOLVED)
        assert edge.value == edge.expected_reward
        return
    if counted:
        counts = [edge.children[k].visits for k in seen]
        assert edge.visits == sum(counts)
        total = math.fsum(
            count * (edge.rewards[k] + table.discount * edge.children[k].value)
            for k, count in zip(seen, counts, strict=True)
        )
        assert edge.value == pytest.approx(total / sum(counts), abs=1e-9)
        assert edge.mark == LIVE
        return
    mass = math.fsum(edge.probabilities[k] for k in seen)
    mean = math.fsum(edge.probabilities[k] * edge.children[k].value for k in seen) / mass
    expected = edge.expected_reward + table.discount * (1 - edge.risk) * mean
    assert edge.value == pytest.approx(expected, abs=1e-9)
    whole = len(seen) == len(edge.children) and all(edge.children[k].solved for k in seen)
    assert (edge.mark == SOLVED) == whole


@dataclass
class Oracle:
    """Forward search in plain recursion: the value of the best admissible way on."""

    table: Table
    bound: RiskBound
    kind: str
    own: Any = None

    def passes(self, survival: float, credit: float) -> bool:
        risk = 1 - survival
        if self.kind != "B":
            if survival <= 0:
                return False
            risk /= survival
        return risk <= self.bound(credit) + 1e-12

    def value(self, state: Any, level: int, survival: float, credit: float) -> float:
        actions = self.table.table.get(state, {})
        if level == self.table.horizon or not actions:
            return 0.0 if self.passes(survival, credit) else -math.inf
        return max(self.action_value(state, a, level, survival, credit) for a in actions)

    def action_value(
        self, state: Any, action: str, level: int, survival: float, credit: float
    ) -> float:
        outcomes = self.table.table[state][action]
        weight = self.table.discount**level
        safe = [o for o in outcomes if not o.fails]
        failing = [o for o in outcomes if o.fails]
        risk = math.fsum(o.probability for o in failing) if safe else 1.0
        mean = math.fsum(o.probability * o.reward for o in outcomes)
        after = survival * (1 - risk)

        def claim(outcome: Outcome | None) -> float:
            if self.kind == "B":
                return credit + weight * survival * mean
            if self.kind == "A":
                return credit + weight * mean
            if self.kind == "A own":
                return credit + weight * self.own(state, action)
            return credit + weight * outcome.reward

        if self.kind != "B":
            if not safe or any(self.bound(claim(o)) < -1e-12 for o in failing):
                return -math.inf
        elif not safe:
            return mean if self.passes(0.0, claim(None)) else -math.inf
        values = [self.value(o.state, level + 1, after, claim(o)) for o in safe]
        if -math.inf in values:
            return -math.inf
        return mean + self.table.discount * math.fsum(
            o.probability * value for o, value in zip(safe, values, strict=True)
        )


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("completed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(
    table=tables(),
    bound=bounds(),
    samples=st.integers(1, 60),
    seed=st.integers(0, 1 << 40),
)
def test_deletions_and_solved_values_are_true(
    kind: str,
    completed: bool,
    counted: bool,
    table: Table,
    bound: RiskBound,
    samples: int,
    seed: int,
) -> None:
    under = constraint(kind, table)
    run = start(table, bound, under, seed=seed, counted=counted)
    sample(run, samples)
    if completed and not run.exhausted:
        assert run._settle_tree(True, lambda: False)
    oracle = Oracle(table, bound, kind, getattr(under, "own_credit", None))
    root = unfold(run, kind)
    best = oracle.value(table.start, 0, 1.0, 0.0)
    assert run.exhausted <= (best == -math.inf)
    for node in walk(root):
        if node.state == "failed":
            continue
        place = (node.state, node.level, *node.expected)
        if node.solved and not counted:
            assert node.value == pytest.approx(oracle.value(*place), abs=1e-9)
        for edge in node.edges:
            value = oracle.action_value(node.state, edge.label, *place[1:])
            if edge.mark == DELETED:
                assert value == -math.inf
            elif edge.mark == SOLVED:
                assert edge.value == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200)
@given(table=tables(), bound=bounds(), seed=st.integers(0, 1 << 40))
def test_one_step_is_worth_the_best_action_that_passes(
    kind: str, table: Table, bound: RiskBound, seed: int
) -> None:
    table = replace(table, horizon=1, calls={})
    run = start(table, bound, constraint(kind, table), seed=seed)
    sample(run, 100)
    rewards = [plan.reward for plan in enumerate_plans(table) if admits(kind, bound, plan)]
    assert (run.solved, run.exhausted) == (bool(rewards), not rewards)
    assert (run.samples, run.histories) == (len(rewards) > 0, 1)
    root = unfold(run, kind)
    assert root.value == pytest.approx(max(rewards, default=-math.inf), abs=1e-12)
    assert root.edges == ()
    assert all(calls == 1 for calls in table.calls.values())
    draft = run.plan(True, lambda: False)
    assert (draft is None) == (not rewards)
    if draft is not None:
        assert draft.reward == pytest.approx(root.value, abs=1e-12)
        assert draft.judgement.complete
    assert all(edge.mark == LIVE for edge in unfold(run, kind).edges)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200)
@given(
    table=tables(),
    bound=bounds(),
    samples=st.integers(1, 20),
    seed=st.integers(0, 1 << 40),
)
def test_policies_end_with_the_best_action_that_passes(
    kind: str, table: Table, bound: RiskBound, samples: int, seed: int
) -> None:
    under = constraint(kind, table)
    oracle = Oracle(table, bound, kind, getattr(under, "own_credit", None))
    run = start(table, bound, under, seed=seed)
    sample(run, samples)
    if run.exhausted:
        return
    assert run._settle_tree(True, lambda: False)
    if run.exhausted:
        return
    reached = [unfold(run, kind)]
    for node in reached:
        place = (node.state, node.level, *node.expected)
        taken = chosen_action(run, node)
        if taken is None:  # it has ended
            assert not table.table[node.state]
            assert oracle.value(*place) == 0
        elif node.level + 1 < table.horizon:
            reached.extend(taken.children)
        else:
            value = oracle.action_value(node.state, taken.label, *place[1:])
            assert value == taken.expected_reward == pytest.approx(oracle.value(*place))
            assert all(edge.mark == LIVE for edge in node.edges)


# --- The paper's figure of Cleanup -------------------------------------------------------------
#
# Its states s0 to s14. Every second outcome of an action is rare, and was not sampled. "left" has
# the larger value, but s11, then s10, break the bound 0.1 x: nothing was earned there for the risk
# that was taken. So s2 runs out of actions, and "left" goes.


def figure(last: bool) -> tuple[Table, RiskBound, LocalConstraint, bool]:
    """Return the figure as a problem; `last` lets its third row be the end of all histories."""
    rich = {"earn": [Outcome(1.0, 0.0 if last else 10.0, "end")]}
    early = 10.0 if last else 0.0
    table: dict[Any, Any] = {
        "s0": {
            "left": [Outcome(0.5, 0.0, "s1"), Outcome(0.5, 0.0, "s2")],
            "right": [Outcome(0.99, 0.0, "s4"), Outcome(0.01, 0.0, "s3")],
        },
        "s1": {
            "go": [Outcome(0.5, 1.0, "s5"), Outcome(0.5, 1.0, "s6")],
            "rest": [Outcome(0.99, 0.5, "s8"), Outcome(0.01, 0.5, "s7")],
        },
        "s2": {
            "bold": [
                Outcome(0.94, early, "s12"),
                Outcome(0.01, 0.0, "s11"),
                Outcome.failure(0.05, early),
            ],
            "meek": [
                Outcome(0.97, early / 2, "s9"),
                Outcome(0.01, 0.0, "s10"),
                Outcome.failure(0.02, early / 2),
            ],
        },
        "s4": {
            "go": [
                Outcome(0.98, 0.3, "s14"),
                Outcome(0.01, 0.3, "s13"),
                Outcome.failure(0.01, 0.3),
            ]
        },
        "s12": rich,
        "s9": {"earn": [Outcome(1.0, 0.0 if last else 5.0, "end")]},
        "s10": {"waste": [Outcome(1.0, 0.0, "end")]},
        "s11": {"waste": [Outcome(1.0, 0.0, "end")]},
        "s3": {"wait": [Outcome(1.0, 0.0, "end")]},
    }
    if last:
        # Rewards as received tell the outcomes of one action apart; counts sample them one by one.
        return (
            Table(table, 2, start="s0"),
            vulcan.Linear(0.1),
            vulcan.SequenceConstraint("received"),
            True,
        )
    return Table(table, 3, start="s0"), vulcan.Linear(0.1), vulcan.SurvivalConstraint(), False


RARE = ("s3", "s7", "s10", "s11", "s13")
TRIED = ("s0", "s1", "s2", "s4")


def begin_figure(last: bool) -> tuple[TreeRun, int, int]:
    """Return panel (a), its samples and seed: every action tried, no rare outcome sampled."""
    table, bound, under, counted = figure(last)
    samples = 12 if last else 5
    for seed in range(300):
        run = start(table, bound, under, seed=seed, counted=counted, exploration=0.0)
        sample(run, samples)
        seen = look(run)
        tried = all(e.visits for state in TRIED for e in seen.get(state, {}).values())
        if (
            tried
            and set(TRIED) <= seen.keys()
            and not any(n.state in RARE for n in walk(unfold(run)))
        ):
            return run, samples, seed
    pytest.fail("no seed gives panel (a)")


def look(run: TreeRun) -> dict[str, dict[str, Edge]]:
    """Return the actions of each state of the figure."""
    return {n.state: {e.label: e for e in n.edges} for n in walk(unfold(run)) if n.edges}


@pytest.mark.parametrize("last", [False, True])
def test_figure_of_cleanup(last: bool) -> None:
    table, bound, under, counted = figure(last)
    run, samples, seed = begin_figure(last)

    # (a) Before: "left" is best, "bold" in s2, and nothing that was sampled is refused.
    before = look(run)
    assert run.samples == samples
    assert all(e.mark != DELETED for edges in before.values() for e in edges.values())
    assert before["s0"]["left"].value > before["s0"]["right"].value
    assert before["s1"]["go"].value > before["s1"]["rest"].value
    assert before["s2"]["bold"].value > before["s2"]["meek"].value

    # What cleanup deletes is not proved: the search gets it back.
    assert run.plan(False, lambda: False) is not None
    restored = look(run)
    for state, edges in before.items():
        for label, edge in edges.items():
            assert replace(restored[state][label], children=()) == replace(edge, children=())
    assert not run.exhausted

    assert run._settle_tree(False, lambda: False)
    after = look(run)
    assert not run.exhausted
    # (b) "bold" is deleted for s11, and (c) its next best, "meek", for s10.
    assert after["s2"]["bold"].mark == DELETED
    assert after["s2"]["meek"].mark == DELETED
    # s2 has run out of actions: (d) "left" is deleted with its counts, and "right" stays.
    assert after["s0"]["left"].mark == DELETED
    assert after["s0"]["right"].mark != DELETED
    root = unfold(run)
    assert root.visits == after["s0"]["right"].visits == before["s0"]["right"].visits
    assert root.value == after["s0"]["right"].value
    # What the policy no longer reaches, and what was never in doubt, is as it was.
    for state, action in (("s1", "go"), ("s1", "rest"), ("s4", "go")):
        assert after[state][action].mark != DELETED
        assert after[state][action].visits == before[state][action].visits

    # The same through the front door: a valid policy with the figure's two unexplored states.
    problem = vulcan.Problem(table, bound)
    solver = vulcan.Vulcan(0.0, under, counted=counted)
    result = vulcan.solve(problem, solver, samples=samples, seed=seed, complete=False)
    policy, certificate = result.policy, result.certificate
    assert result.status is Status.STOPPED
    assert [policy.labels[k] for k in policy.action] == ["right", "go"]
    assert certificate.passes
    assert not result.safe
    unplanned = [
        policy.labels[k] for k, c in zip(policy.label, policy.child, strict=True) if c == UNPLANNED
    ]
    assert unplanned[0] == "s3"
    # With horizon 2 what comes after s4 has ended; with horizon 3, s13 was not sampled.
    assert unplanned == (["s3"] if last else ["s3", "s13"])
    assert certificate.frontier == pytest.approx(0.01 + (0 if last else 0.99 * 0.01))
    assert certificate.risk == pytest.approx(0.99 * 0.01)
    assert certificate.reward == pytest.approx(0.99 * 0.3)

    # Completion comes to the same decisions, and plans what was left.
    whole = vulcan.solve(problem, solver, samples=samples, seed=seed)
    assert whole.safe
    assert whole.policy.start().action == "right"
    assert whole.certificate.frontier == 0
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    assert whole.certificate.reward == pytest.approx(exact.certificate.reward)
