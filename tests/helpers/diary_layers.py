"""Fronts, dynamic programs and simulations in small steps, of which diaries are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import vulcan
from tests.helpers.diary_models import (
    ALIKE,
    DEAD_ENDS,
    ONE_WAY,
    THREE_WAYS,
    begin_by_choice,
    change_settings,
)
from tests.helpers.recorded import LINE
from tests.helpers.small_cases import HISTORIES, LONGER, MERGED, POOR, UNMERGED
from tests.helpers.trees import TINY_BOUND
from tests.helpers.unrolled import unroll_levels
from vulcan.domains import Bandit, Grid
from vulcan.execution.played import PlayedPolicy, start_histogram
from vulcan.graphs.layered_graph import EDGE, NODE, TARGET, LayerArrays, write_layers
from vulcan.kernels.unrolling import DECIDED
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.team import Team
from vulcan.sentinels import END, NONE
from vulcan.solvers.fronts import FrontArrays, Pruning
from vulcan.solvers.layered.coins import Coins
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.layered.run import LayeredRun
from vulcan.solvers.layered.sweeps import Sweeps

FEW = {
    "vulcan.solvers.layered.coins.CHUNK": 100,
    "vulcan.solvers.layered.coins.PLACES": 8,
    "vulcan.solvers.layered.coins.FIRST_DECISIONS": 1,
    "vulcan.solvers.layered.coins.LEAST_NODES": 1,
    "vulcan.solvers.fronts.CHUNK": 60,
    "vulcan.solvers.fronts.LEAST_NODES": 1,
}


class InTurn(Team):
    """A team whose members work one after the other, so that diaries are the same each time."""

    def share(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Do something for each of some parts."""
        return [work(part) for part in parts]


def unroll(model: Any, bound: vulcan.RiskBound) -> LayeredRun:
    """Return a run whose levels are there."""
    problem = vulcan.Problem(model, bound)
    run = LayeredRun(problem, ModelReader(model), Monitor(Limits()), vulcan.Lagrangian())
    assert run.unroll()
    return run


def toss_coins(
    model: Any,
    bound: vulcan.RiskBound,
    price: float,
    slacks: tuple[float, ...],
    points: int,
    count: int = 1,
    span: tuple[float, float] | None = None,
) -> None:
    """Search with thin fronts."""
    with change_settings(FEW):
        run = unroll(model, bound)
        ways = run.sweeps.follow_weights(1.0, price)
        values = ways.rewards - price * ways.risks
        coins = Coins(
            run.levels.arrays,
            Referee(bound),
            price,
            values,
            span or (0.0, float(ways.rewards[0]) + 1.0),
            team=InTurn(count),
        )
        for slack in slacks:
            coins.search(slack, points)


def compute_fronts(
    layers: LayerArrays,
    price: float,
    slack: float,
    points: int,
    rare: int | None,
    count: int = 1,
    room: int = 16,
) -> None:
    """Compute exact fronts in arrays without any room to spare."""
    from vulcan.kernels.pareto_fronts import find_least_reach
    from vulcan.kernels.plan_top import value_layers

    values, reach = np.zeros(len(layers.nodes)), np.zeros(len(layers.nodes))
    value_layers(layers, price, values)
    tips = layers.nodes["edge_count"] == 0
    values[tips] = 0.5
    find_least_reach(layers, values, price, slack, reach)
    first = np.flatnonzero(np.diff(layers.nodes["level"], prepend=-1, append=-1))
    with change_settings(FEW):
        fronts = FrontArrays(layers, first, InTurn(count))
        first_hand = fronts._hands[0]
        shared = {"points": first_hand.points[:2], "parts": first_hand.parts[:1]}
        fronts._hands = [
            hand._replace(**shared, kept=hand.kept[:room].copy(), chosen=hand.chosen[:room].copy())
            for hand in fronts._hands
        ]
        pruning = Pruning(price, values, slack, reach, 8.0, points, rare)
        assert fronts.compute(pruning, (values, np.full(len(values), 0.25)), lambda: True)
        for place in range(len(fronts.points(0))):
            fronts.follow(0, place)


def draw_layers(seed: int, width: int, edges: int, levels: int = 3) -> LayerArrays:
    """Return a layered graph with nodes of many edges, tips and ends; numbers are dyadic."""
    rng = np.random.default_rng(seed)
    sizes = [1, *[width] * (levels - 1)]
    nodes = np.zeros(sum(sizes), NODE)
    written, targets, at = list[Any](), list[Any](), 0
    for level, size in enumerate(sizes):
        after = at + size
        for n in range(at, after):
            count = 0 if n and rng.random() < 0.1 else edges
            nodes[n] = (n, level, len(written), count)
            for action in range(count):
                known = [END, *range(after, after + width)] if level + 1 < levels else [END]
                some = rng.choice(known, min(len(known), 2), replace=False).tolist()
                risk, reward = int(rng.integers(16)) / 128, int(rng.integers(64)) / 16
                written.append((reward, risk, len(targets), len(some), action))
                targets += [((1 - risk) / len(some), node) for node in some]
        at = after
    return LayerArrays(nodes, np.array(written, EDGE), np.array(targets, TARGET))


def fan(edges: int) -> LayerArrays:
    """Return a graph whose first node leads to two of so many different policies each."""
    nodes = np.array([(0, 0, 0, 1), (1, 1, 1, edges), (2, 1, 1 + edges, edges)], NODE)
    rows = [(0.0, 0.0, 0, 2, 0)]
    for n in range(2):
        rows += [(math.sqrt(k + n), (k + n) / 1024, 2, 0, k) for k in range(edges)]
    targets = np.array([(0.5, 1), (0.5, 2)], TARGET)
    return LayerArrays(nodes, np.array(rows, EDGE), targets)


def merge_tops(most: int, longest: int = 99) -> None:
    """Merge the tops of two parts with that of a search, in arrays of some lengths."""
    from vulcan.kernels.plan_top import PartLayers, merge_tops
    from vulcan.solvers.tree.tops import make_top

    own, *parts = (draw_layers(seed, 3, 2) for seed in (1, 2, 3))
    starts = np.cumsum([len(layers.nodes) for layers in (own, *parts)])
    links = np.arange(starts[-1])
    links[5], links[6] = starts[0], starts[1]
    own.nodes["edge_count"][5:] = 0
    whole = [own, *parts]
    arrays = [np.concatenate([layers[k] for layers in whole]) for k in range(3)]
    counts = [[len(layers[k]) for layers in whole] for k in range(3)]
    shifts = [np.repeat(np.cumsum([0, *some[:-1]]), some) for some in counts]
    arrays[0]["first_edge"] += np.repeat(np.cumsum([0, *counts[1][:-1]]), counts[0])
    arrays[1]["first_target"] += np.repeat(np.cumsum([0, *counts[2][:-1]]), counts[1])
    later = np.repeat(np.cumsum([0, *counts[0][:-1]]), counts[2])
    inside = arrays[2]["node"] >= 0
    arrays[2]["node"][inside] += later[inside]
    assert len(shifts[0]) == starts[-1]
    layers = PartLayers(*arrays, np.arange(starts[-1]) < 4)
    for name in ("nodes", "edges", "targets"):
        for room in range(1 if longest < 99 else 98, longest):
            top = make_top(most)
            top = top._replace(**{name: getattr(top, name)[:room].copy()})
            for kept in ("reach", "haste", "heap", "nodes", "edges", "targets"):
                top = top._replace(**{kept: getattr(top, kept)[:99].copy()})
            merge_tops(layers, links, top)


def evaluate(layers: LayerArrays) -> None:
    """Evaluate policies that take the first edge of each node, the last one, or one between."""
    from vulcan.kernels.layer_arrays import evaluate_edges

    nodes = layers.nodes
    for share in (0.0, 0.5, 0.99):
        choice = (nodes["first_edge"] + share * nodes["edge_count"]).astype(np.int32)
        rewards, risks = np.full(len(nodes), 0.25), np.full(len(nodes), 0.125)
        evaluate_edges(layers, choice, rewards, risks)


def simulate(model: Any, bound: vulcan.RiskBound, episodes: int, **options: Any) -> None:
    """Play episodes of a policy, and count some rewards."""
    from vulcan.kernels.episodes import count_all

    policy = vulcan.solve(vulcan.Problem(model, bound), **options).policy
    played = PlayedPolicy(policy, 0.75)
    for seed in (1, 2):
        played.play(episodes, seed, 1)
    count_all(start_histogram(-1.0, 3.0), np.array([-2.0, -1.0, 0.0, 0.03, 2.999, 3.0, 9.0]))


def sweep_levels(model: Any, count: int) -> None:
    """Sweep levels for some weights, by several who share them, and with tips."""
    run = unroll(model, TINY_BOUND)
    for weights in ((1.0, 0.0), (1.0, 4.0), (0.0, 1.0)):
        run.sweeps.follow_weights(*weights)
    if len(run.levels.arrays.first_child) == 0:
        layers = write_layers(run.levels)
        compute_fronts(layers.arrays, 2.0, 0.5, 6, 2, count)
        evaluate(layers.arrays)


def decide(model: Any, tree: bool) -> None:
    """Number decisions over levels, or over histories: of one choice, and of several."""
    with change_settings({"vulcan.solvers.layered.sweeps.LEAST_OUTCOMES": 2}):
        levels = unroll_levels(model, tree=tree)
        sweeps = Sweeps(levels, team=InTurn(2))
        choices = np.stack([sweeps.choose(weight, 1.0 - weight) for weight in (1.0, 0.0)])
        sweeps.find_best(1.0, 2.0).plan.decide()
        sweeps.follow_weights(0.0, 1.0)
        for rows in (choices[:1], choices[1:]):
            levels.decide(rows)
        if tree:  # where no decisions are taken one by one
            return
        arrays, decided = levels.arrays, list[Any]()
        for node in (0, int(arrays.first[1])):
            row = int(choices[1, node])
            ways = [(k % 2, NONE) for k in range(int(arrays.safe_count[row]))]
            decided.append((node, row, ways))
        if arrays.action_count[arrays.target[arrays.first_outcome[decided[0][1]]]] > 0:
            decided[0][2][0] = (DECIDED, 1)
        levels.decide(choices, decided)


def solve(model: Any, bound: vulcan.RiskBound, solver: vulcan.Solver, **options: Any) -> None:
    """Solve a problem as anybody would."""
    vulcan.solve(vulcan.Problem(model, bound), solver, **options)


LAYERS = draw_layers(5, 3, 2, 4)
STEPS: dict[str, Callable[[], Any]] = {
    "coins-tiny": partial(toss_coins, MERGED, TINY_BOUND, 2.0, (0.5, math.inf), 4),
    "coins-many": partial(toss_coins, MERGED, vulcan.Constant(0.2), 8.0, (math.inf,), 24),
    "coins-hands": partial(toss_coins, Grid(4), vulcan.Constant(0.02), 2.0, (0.25, 9.0), 4, 3),
    "coins-poor": partial(toss_coins, POOR, TINY_BOUND, 1.0, (9.0,), 3),
    "coins-late": partial(
        toss_coins, LONGER, vulcan.Constant(0.4), 8.0, (9.0,), 5, span=(3.0, 6.0)
    ),
    "coins-alike": partial(
        toss_coins, replace(ALIKE, merges=True), vulcan.Constant(0.5), 0.0, (0.0, 9.0), 2
    ),
    "coins-bandit": partial(toss_coins, Bandit(3), LINE, 300.0, (0.05, 1.0), 3, 2),
    "fronts-exact": partial(compute_fronts, LAYERS, 4.0, 1e299, 999, None),
    "fronts-slack": partial(compute_fronts, LAYERS, 4.0, 0.5, 999, None),
    "fronts-thin": partial(compute_fronts, LAYERS, 4.0, 1e299, 5, 2),
    "fronts-hands": partial(compute_fronts, LAYERS, 4.0, 2.0, 9, 3, 3),
    "fronts-many": partial(compute_fronts, fan(24), 16.0, 1e299, 400, None, room=200),
    "fronts-close": partial(compute_fronts, fan(23), 16.0, 0.75, 20, 4, room=100),
    "simulate-ends": partial(
        simulate,
        replace(DEAD_ENDS, horizon=3),
        vulcan.Constant(0.5),
        40,
        solver=vulcan.LocalVulcan(),
        samples=9,
    ),
    "simulate-bandit": partial(
        simulate, HISTORIES, vulcan.Linear(0.05), 60, solver=vulcan.ForwardSearch()
    ),
    "simulate-frontier": partial(
        simulate,
        UNMERGED,
        vulcan.Constant(0.3),
        60,
        solver=vulcan.LocalVulcan(),
        samples=4,
        complete=False,
    ),
    "simulate-mixture": partial(
        simulate, MERGED, TINY_BOUND, 60, solver=vulcan.Lagrangian(randomised=True)
    ),
    "sweep-tree": partial(sweep_levels, UNMERGED, 1),
    "sweep-ends": partial(sweep_levels, DEAD_ENDS, 1),
    "sweep-merged": partial(sweep_levels, replace(DEAD_ENDS, merges=True), 1),
    "sweep-hands": partial(sweep_levels, MERGED, 2),
    "evaluate": partial(evaluate, LAYERS),
    "lagrangian-tree": partial(solve, DEAD_ENDS, TINY_BOUND, vulcan.Lagrangian()),
    "pareto-tree": partial(solve, ALIKE, vulcan.Constant(0.25), vulcan.Pareto()),
}
STEPS |= {
    "coins-three": partial(toss_coins, THREE_WAYS, vulcan.Constant(0.5), 4.0, (0.5, 9.0), 3),
    "coins-fine": partial(toss_coins, THREE_WAYS, vulcan.Linear(0.05), 4.0, (9.0,), 12),
    "coins-none": partial(
        toss_coins, THREE_WAYS, vulcan.Constant(0.5), 4.0, (9.0,), 3, span=(50.0, 60.0)
    ),
    "coins-begun": partial(
        toss_coins, begin_by_choice(LONGER), vulcan.Constant(0.5), 4.0, (9.0,), 3
    ),
    "fronts-tight": partial(compute_fronts, LAYERS, 4.0, 0.05, 9, None),
    "fronts-none": partial(compute_fronts, LAYERS, 4.0, 0.0, 9, None),
    "fronts-cramped": partial(compute_fronts, draw_layers(8, 2, 2), 2.0, 1e299, 9, None, room=2),
    "sweep-begun": partial(sweep_levels, begin_by_choice(LONGER), 1),
}
for _tree in (False, True):
    STEPS |= {
        f"decide-ends-{_tree}": partial(decide, replace(DEAD_ENDS, merges=True), _tree),
        f"decide-three-{_tree}": partial(decide, THREE_WAYS, _tree),
        f"decide-begun-{_tree}": partial(decide, begin_by_choice(LONGER), _tree),
        f"decide-one-{_tree}": partial(decide, ONE_WAY, _tree),
        f"decide-alike-{_tree}": partial(decide, replace(ALIKE, merges=True), _tree),
    }
STEPS |= {f"merge-{most}": partial(merge_tops, most) for most in (3, 9, 99)}
STEPS["merge-short"] = partial(merge_tops, 99, 20)
