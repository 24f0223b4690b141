"""Searches with prices and their proofs in small steps, of which diaries are kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import vulcan
from tests.helpers.charts import Chart, draw_chart
from tests.helpers.diary_models import (
    ALIKE,
    DEAD_ENDS,
    DEEP,
    THREE_WAYS,
    begin_by_choice,
    change_settings,
)
from tests.helpers.diary_trees import LIES, make_bounded_chart
from tests.helpers.recorded import CURVE, LINE
from tests.helpers.small_cases import HISTORIES, LONGER, MISSION, POOR, UNMERGED
from tests.helpers.trees import TINY_BOUND
from vulcan.domains import Exploration
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.tree.plans import Planning
from vulcan.solvers.tree.price_run import PriceRun
from vulcan.solvers.tree.proof import Proof
from vulcan.solvers.tree.tops import Detail, make_top

LATE = {"vulcan.solvers.tree.price_run.FEWEST_TO_DIVIDE": 24}
HASTY = {
    "vulcan.solvers.tree.completion.CHUNK": 3,
    "vulcan.solvers.tree.completion.FIRST_LENGTH": 2,
    "vulcan.solvers.tree.price_run.FIRST_SAMPLES": 12,
    "vulcan.solvers.tree.tops.FEWEST_VISITS": 3,
    "vulcan.solvers.fronts.CHUNK": 40,
}
"""What makes searches of a few samples go through all that long ones do."""


DETAIL = Detail(12, 8)


def _no_progress() -> Any:
    raise AssertionError("no progress is told so early")


def _go_on(run: PriceRun, target: int) -> None:
    run.sample(Monitor(Limits()), target, 0.0, _no_progress, lambda: None)


def begin(model: Any, bound: vulcan.RiskBound, seed: int) -> PriceRun:
    """Return a search in arrays without any room to spare."""
    run = PriceRun(
        vulcan.Problem(model, bound), ModelReader(model), None, None, seed=seed, exploration=0.1
    )
    for name in ("nodes", "edges", "node_values", "edge_values"):
        setattr(run, name, getattr(run, name)[:1].copy())
    if isinstance(run.graph, CompiledGraph):
        for rows in run.graph.kinds():
            rows.array = rows.array[: max(1, rows.count)].copy()
    run.prepare()
    return run


def search_with_prices(
    model: Any,
    bound: vulcan.RiskBound,
    samples: tuple[int, ...],
    seed: int = 1,
) -> None:
    """Sample, plan, be guided by the plan, and write policies, several times."""
    with change_settings(HASTY | LATE), suppress(vulcan.ModelError):
        run = begin(model, bound, seed)
        _go_on(run, samples[0])
        for target in samples[1:]:
            planning = Planning(run, run.complete(), lambda: True, DETAIL)
            planning.guide()
            _go_on(run, target)
        planning = Planning(run, run.complete(), lambda: True, DETAIL)
        plan = planning.settle()
        if plan is not None:
            planning.write(plan)
        for lane in (0, len(run.prices[0]) - 1):
            run.follow([], [])
            run.complete().write(lane)


def write_at_once(model: Any, samples: int) -> None:
    """Write the policies of some prices where little is known of what they come to."""
    with change_settings(HASTY), suppress(vulcan.ModelError):
        run = begin(model, TINY_BOUND, 3)
        _go_on(run, samples)
        for lane in (0, len(run.prices[0]) // 2):
            run.complete().write(lane)


def solve_in_batches(model: Any, bound: vulcan.RiskBound) -> None:
    """Sample until all is solved, in batches that are as large as all before."""
    with change_settings({"vulcan.solvers.tree.price_run.BATCHES": 1}):
        run = begin(model, bound, 5)
        run.edges, run.edge_values = run.edges.repeat(64), run.edge_values.repeat(64, axis=0)
        _go_on(run, 200)


def grow_top(model: Any, samples: int) -> None:
    """Grow the top of a tree in arrays of all lengths."""
    from vulcan.kernels import plan_top

    with change_settings(HASTY):
        run = begin(model, TINY_BOUND, 2)
        _go_on(run, samples)
        for name in ("nodes", "edges", "targets"):
            for room in range(1, 14):
                top = make_top(14)
                top = top._replace(**{name: getattr(top, name)[:room].copy()})
                for kept in ("reach", "haste", "heap", "nodes", "edges", "targets"):
                    top = top._replace(**{kept: getattr(top, kept)[:64].copy()})
                top.growth["closeness"] = 0.25
                plan_top.grow_top(run.arrays(), run.tree(), run.tops, run.judged, top)


def tighten(
    model: Any, bound: vulcan.RiskBound, prices: tuple[float, ...], steps: int, reach: int = 3
) -> None:
    """Prove upper bounds for some prices, with as much work for each in turn."""
    settings = {
        "vulcan.solvers.tree.proof.HISTORIES_AT_ONCE": 3,
        "vulcan.solvers.tree.proof.REACH": reach,
    }
    with change_settings(settings), suppress(vulcan.ModelError):
        proof = Proof(vulcan.Problem(model, bound), ModelReader(model))
        for price in prices:
            tree = proof._tree_of(price)
            tree.nodes, tree._edges = tree.nodes[:1].copy(), tree._edges[:1].copy()
        for histories in (1, steps, steps):
            for price in prices:
                proof.advance(price, histories)
        proof.bound_reward()


def make_worthless_chart() -> Chart:
    """Return a chart of which only the first step is worth anything."""
    chart = make_bounded_chart(2.0)
    vars(chart)["discount"] = 0.0
    return chart


STEPS: dict[str, Callable[[], Any]] = {}
for _name, _model, _bound, _samples in (
    ("python", UNMERGED, TINY_BOUND, (1, 13, 20)),
    ("ends", DEAD_ENDS, TINY_BOUND, (5, 25, 40)),
    ("loose", DEAD_ENDS, vulcan.Constant(1.0), (5, 25)),
    ("alike", ALIKE, vulcan.Constant(0.25), (2, 15, 30)),
    ("merged", LONGER, TINY_BOUND, (3, 14, 30)),
    ("poor", POOR, vulcan.Linear(0.1, 0.05), (13, 20)),
    ("bandit", HISTORIES, LINE, (1, 13, 30)),
    ("curve", MISSION, CURVE, (2, 20)),
    ("mission", Exploration(horizon=3), CURVE, (13, 20)),
    ("chart", make_bounded_chart(2.0), vulcan.Constant(0.05), (13, 26)),
    ("chart-5", draw_chart(4, 5), vulcan.Linear(0.01), (13, 20)),
    ("short", replace(UNMERGED, horizon=1), TINY_BOUND, (5,)),
    ("two", replace(UNMERGED, horizon=2), TINY_BOUND, (5, 30)),
    ("over", replace(UNMERGED, start=3), TINY_BOUND, (5,)),
):
    STEPS[f"prices-{_name}"] = partial(search_with_prices, _model, _bound, _samples)
for _name, _model in (("python", UNMERGED), ("bandit", HISTORIES), ("ends", DEAD_ENDS)):
    STEPS[f"proof-{_name}"] = partial(tighten, _model, TINY_BOUND, (0.0, 2.0, 40.0), 6)
for _reach in (0, 1, 3):
    STEPS |= {
        f"proof-chart-{_reach}": partial(
            tighten, make_bounded_chart(2.0), TINY_BOUND, (0.0, 2.0), 5, _reach
        ),
        f"proof-free-{_reach}": partial(tighten, draw_chart(3, 4), TINY_BOUND, (2.0,), 5, _reach),
    }
STEPS |= {
    "prices-begun": partial(
        search_with_prices, begin_by_choice(UNMERGED), vulcan.Constant(0.4), (2, 14, 26)
    ),
    "prices-three": partial(
        search_with_prices, replace(THREE_WAYS, merges=False), TINY_BOUND, (2, 14, 26)
    ),
    "batches-two": partial(solve_in_batches, replace(UNMERGED, horizon=2), TINY_BOUND),
    "batches-ends": partial(solve_in_batches, replace(DEAD_ENDS, horizon=3), TINY_BOUND),
    "batches-chart": partial(solve_in_batches, draw_chart(4, 3), vulcan.Linear(0.01)),
    "write-python": partial(write_at_once, UNMERGED, 2),
    "write-ends": partial(write_at_once, DEAD_ENDS, 9),
    "write-bandit": partial(write_at_once, HISTORIES, 2),
    "write-chart": partial(write_at_once, draw_chart(4, 4), 3),
    "proof-begun": partial(tighten, begin_by_choice(UNMERGED), TINY_BOUND, (0.0, 2.0), 5),
    "proof-chart-discount-0": partial(tighten, make_worthless_chart(), TINY_BOUND, (1.0,), 5, 1),
    "proof-mission": partial(tighten, Exploration(horizon=3), CURVE, (0.0, 30.0), 3),
    "proof-mission-1": partial(tighten, Exploration(horizon=3), CURVE, (3.0,), 3, 1),
    "proof-discount-0": partial(
        tighten, replace(UNMERGED, discount=0.0), TINY_BOUND, (0.0, 1.0), 5
    ),
}
STEPS |= {
    "top": partial(grow_top, UNMERGED, 40),
    "top-ends": partial(grow_top, DEAD_ENDS, 30),
    "prices-deep": partial(search_with_prices, DEEP, vulcan.Constant(0.25), (45,)),
    "prices-hopeless": partial(search_with_prices, UNMERGED, vulcan.parse("-1"), (30,)),
    "prices-hopeless-alike": partial(search_with_prices, THREE_WAYS, vulcan.parse("-1"), (40,)),
}
for _name, _chart in LIES.items():
    STEPS[f"prices-lie-{_name}"] = partial(
        search_with_prices, _chart, vulcan.Constant(0.5), (6, 12)
    )
    STEPS[f"plan-lie-{_name}"] = partial(search_with_prices, _chart, vulcan.Constant(0.5), (1,))
    STEPS[f"proof-lie-{_name}"] = partial(tighten, _chart, TINY_BOUND, (1.0,), 4)
