"""Tree searches and forward searches in small steps, of which diaries are kept."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import vulcan
from tests.helpers.charts import HONEST, Chart, draw_chart, look_ahead
from tests.helpers.diary_models import (
    ALIKE,
    DEAD_ENDS,
    FEW_WAYS,
    LONG,
    THREE_WAYS,
    Limited,
    begin_by_choice,
    change_settings,
)
from tests.helpers.recorded import CURVE, A, B, G
from tests.helpers.small_cases import HISTORIES, LONGER, MERGED, POOR, UNMERGED
from tests.helpers.trees import TINY_BOUND, sample, start
from vulcan.domains import Bandit, Exploration
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.kernels import codes
from vulcan.kernels.forward_search import CLOSE
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.constraints import NoConstraint
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.forward_run import ForwardSearchRun
from vulcan.solvers.tree.sampling import TreeRun

OFTEN = {
    "vulcan.solvers.tree.sampling.CHUNK": 7,
    "vulcan.solvers.tree.sampling.STEPS": 11,
    "vulcan.solvers.tree.sampling.FIRST_LENGTH": 1,
    "vulcan.solvers.tree.shared.FIRST_LENGTH": 1,
    "vulcan.solvers.tree.forward_run.CHUNK": 9,
}
"""How much is done between two looks at the clock, and how long arrays are at first."""


def shorten(run: TreeRun) -> None:
    """Let arrays begin as short as they can, so that there is never any room to spare."""
    for name in ("_nodes", "_edges", "_children", "_choice"):
        setattr(run, name, getattr(run, name)[:1].copy())
    if isinstance(run.graph, CompiledGraph):
        for rows in run.graph.kinds():
            rows.array = rows.array[: max(1, rows.count)].copy()


def grow_tree(
    model: Any,
    bound: vulcan.RiskBound,
    under: Any,
    samples: tuple[int, ...],
    complete: bool = True,
    **options: Any,
) -> None:
    """Sample, settle a policy and write it, and go on, several times."""
    with change_settings(OFTEN):
        run = start(model, bound, under, **options)
        shorten(run)
        for target in samples:
            with suppress(vulcan.ModelError):
                sample(run, target)
                run.bound_reward()
                run.plan(complete, lambda: False)
                if run.graph.merges and run.constraint.constrains:
                    run.plan_by_pairs(Allowance(math.inf, math.inf, math.inf))


def share_visits() -> None:
    """Sample where an action has been tried exactly as often as its share is."""
    run = start(UNMERGED, vulcan.Constant(1.0), exploration=0.0)
    sample(run, 9)
    first = int(run._nodes["first_edge"][0])
    for visits in ((39, 1), (38, 2), (19, 1), (79, 1)):
        run._nodes["visits"][0], run._edges["visits"][first : first + 2] = sum(visits), visits
        run._edges["value"][first : first + 2] = 9.0, 1.0
        sample(run, run.samples + 1)


def write_over() -> None:
    """Write a policy where others were written before."""
    from vulcan.kernels import extraction

    run = start(UNMERGED, vulcan.Constant(0.3))
    sample(run, 12)
    assert run._settle_tree(False, lambda: False)
    levels = np.zeros(run.reader.levels + 1, extraction.LEVEL)
    summary = np.ones(1, extraction.SUMMARY)
    for length in range(1, 12):
        below = np.full(length + 2, 7, np.int32)
        rows, firsts = np.full(length, 7, np.int32), np.full(length + 1, 7, np.int32)
        given = (run.arrays(), run.tree(), run._choice, levels, rows, firsts)
        extraction.write_outline(*given, below, summary)


def search_forward(
    model: Any, bound: vulcan.RiskBound, solver: vulcan.ForwardSearch, **changes: Any
) -> None:
    """Search with a plan that has no room, and pauses; then follow what was found."""
    with change_settings(OFTEN):
        problem = vulcan.Problem(model, bound)
        run = ForwardSearchRun(problem, ModelReader(model), solver)
        run._plan = run._plan[:1].copy()
        for name, value in changes.items():
            run._control[name] = value
        pieces = 0
        with suppress(vulcan.ModelError):
            while (wants := run.step()) != codes.DONE:
                if wants == codes.NEEDS_PIECE:  # somebody else has found out
                    pieces += 1
                    frame = run._frames[run._depth]
                    frame["value"], frame["admissible"] = pieces % 5, pieces % 3 > 0
                    run._control["phase"] = CLOSE
            policy = None if changes.get("cut") else run.build_policy(stopped=False)
            if policy is not None:
                run.follow([policy.labels[number] for number in policy.action])


def stop_forward(most: int) -> None:
    """Search forward for some histories and no more."""
    run = ForwardSearchRun(
        vulcan.Problem(LONGER, TINY_BOUND), ModelReader(LONGER), vulcan.ForwardSearch()
    )
    run.advance(Monitor(Limits(histories=most)))
    run.build_policy(stopped=True)


def pause_forward() -> None:
    """Search forward with a limit of histories that is raised one by one."""
    run = ForwardSearchRun(
        vulcan.Problem(LONGER, TINY_BOUND), ModelReader(LONGER), vulcan.ForwardSearch()
    )
    for most in range(1, 30):
        while run.step(most) not in (codes.PAUSED, codes.DONE):
            pass


def make_bounded_chart(bounds: float, horizon: int = 4, answers: Any = None) -> Chart:
    """Return a chart whose compiled form bounds what can still be earned."""
    chart = draw_chart(3, horizon) if answers is None else Chart(answers, horizon)
    chart.table["bounds"] = bounds * (horizon - np.arange(chart.table["bounds"].shape[-1]))
    chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
    return chart


def lie(place: tuple[int, int], field: str, value: float, horizon: int = 4) -> Chart:
    """Return a chart that breaks a rule in one answer, of the first outcome."""
    chart = make_bounded_chart(4.0, horizon, HONEST)
    chart.table[field][0, *place, *(() if field == "counts" else (0,))] = value
    return chart


LIES = {
    "probability": lie((1, 1), "probability", 0.5),
    "zero": lie((1, 1), "probability", 0.0),
    "nan": lie((2, 0), "reward", math.nan),
    "large": lie((2, 0), "reward", 1e200),
    "order": lie((0, 0), "fails", 1),
    "negative": lie((2, 0), "counts", -1),
    "many": lie((1, 1), "counts", 9),
    "late": lie((2, 0), "reward", math.nan, 2),
    "bound": make_bounded_chart(math.nan, 4, HONEST),
}


def ask_again(spoil: Callable[[Any], None] | None = None) -> None:
    """Have a compiled model asked again for all rows of a tree, of which one may be wrong."""
    chart = make_bounded_chart(8.0, 4, HONEST)
    run = start(chart, vulcan.Constant(0.5))
    sample(run, 6)
    packed = run.graph.pack()
    fresh = CompiledGraph(run.reader, chart.compiled)
    if spoil is not None:
        spoil(chart.table)
        fresh = CompiledGraph(ModelReader(chart), chart.compiled)
    with suppress(vulcan.CheckpointError):
        fresh.unpack(packed)


def _spoil(field: str, value: Any, place: Any) -> Callable[[Any], None]:
    def spoil(table: Any) -> None:
        table[field][place] = value

    return spoil


STEPS: dict[str, Callable[[], Any]] = {}
CURVED = vulcan.parse("0.25*(1 - exp(-0.4*x))")
for _letter, _under in (("A", A), ("B", B), ("G", G)):
    _grow = partial(grow_tree, under=_under)
    STEPS |= {
        f"tree-ends-{_letter}": partial(_grow, DEAD_ENDS, TINY_BOUND, samples=(3, 20)),
        f"tree-loose-{_letter}": partial(_grow, DEAD_ENDS, vulcan.Constant(1.0), samples=(30,)),
        f"tree-tight-{_letter}": partial(
            _grow, UNMERGED, vulcan.Constant(0.125), samples=(1, 2, 30), seed=4
        ),
        f"tree-curve-{_letter}": partial(_grow, UNMERGED, CURVED, samples=(0, 1, 15)),
        f"tree-chart-{_letter}": partial(
            _grow, make_bounded_chart(2.0), vulcan.parse("min(0.01*x, 0.05)"), samples=(2, 20)
        ),
        f"tree-poor-{_letter}": partial(_grow, POOR, vulcan.Linear(0.1, 0.05), samples=(1, 25)),
        f"forward-ends-{_letter}": partial(
            search_forward, DEAD_ENDS, TINY_BOUND, vulcan.ForwardSearch(_under), noted=1
        ),
        f"forward-chart-{_letter}": partial(
            search_forward,
            make_bounded_chart(2.0, 3),
            vulcan.Constant(0.05),
            vulcan.ForwardSearch(_under),
        ),
    }
_free = vulcan.SurvivalConstraint()
STEPS |= {
    "tree-alike": partial(grow_tree, ALIKE, vulcan.Constant(0.5), _free, (2, 30)),
    "tree-greedy": partial(
        grow_tree, MERGED, TINY_BOUND, _free, (1, 5, 30), default_policy="greedy"
    ),
    "tree-asked": partial(
        grow_tree,
        UNMERGED,
        vulcan.Constant(0.5),
        _free,
        (20,),
        default_policy=lambda history, state: "safe",
    ),
    "tree-bounded": partial(
        grow_tree, make_bounded_chart(2.0), vulcan.Constant(0.05), _free, (3, 30), bounded=True
    ),
    "tree-frontier": partial(grow_tree, UNMERGED, TINY_BOUND, _free, (1, 4, 12), complete=False),
    "tree-printed": partial(
        grow_tree, DEAD_ENDS, vulcan.Constant(1.0), A, (3, 30), as_printed=True
    ),
    "tree-printed-tight": partial(
        grow_tree, UNMERGED, vulcan.Constant(0.2), A, (3, 30), as_printed=True
    ),
    "tree-mission": partial(grow_tree, Exploration(horizon=3), CURVE, _free, (15,), bounded=True),
    "tree-bandit": partial(grow_tree, HISTORIES, vulcan.Linear(0.002), _free, (40,)),
    "tree-merged": partial(grow_tree, Bandit(3), vulcan.Linear(0.002), _free, (60,)),
    "tree-discount-0": partial(grow_tree, replace(LONGER, discount=0.0), TINY_BOUND, _free, (20,)),
    "forward-cut": partial(search_forward, LONGER, TINY_BOUND, vulcan.ForwardSearch(), cut=2),
    "forward-whole": partial(
        search_forward, LONGER, TINY_BOUND, vulcan.ForwardSearch(cut_short=False), noted=1
    ),
    "forward-alike": partial(
        search_forward, ALIKE, vulcan.Constant(0.5), vulcan.ForwardSearch(), noted=1
    ),
    "forward-curve": partial(search_forward, UNMERGED, CURVED, vulcan.ForwardSearch(G)),
    "again": ask_again,
    "again-sum": partial(ask_again, _spoil("probability", 0.9, (0, 1, 1, 0))),
    "again-reward": partial(ask_again, _spoil("reward", [1.75, 1.0], (0, 0, 0, slice(0, 2)))),
    "again-more": partial(ask_again, _spoil("counts", 1, (0, 2, 2))),
    "again-less": partial(ask_again, _spoil("counts", 0, (0, 0, 0))),
    "again-none": partial(ask_again, _spoil("counts", 0, (0, 0, 2))),
    "again-fails": partial(ask_again, _spoil("fails", 1, (0, 0, 0, 1))),
    "again-bound": partial(ask_again, _spoil("bounds", 17.0, (0, 2, 1))),
    "tree-begun": partial(
        grow_tree, begin_by_choice(UNMERGED), vulcan.Constant(0.4), _free, (0, 3, 25)
    ),
    "tree-begun-bounded": partial(
        grow_tree,
        begin_by_choice(UNMERGED, Limited),
        vulcan.Constant(0.6),
        _free,
        (3, 10, 20),
        bounded=True,
    ),
    "tree-begun-merged": partial(grow_tree, begin_by_choice(LONGER), TINY_BOUND, A, (3, 25)),
    "tree-negative": partial(grow_tree, LONGER, vulcan.Linear(0.1, -0.05), A, (0, 3, 25)),
    "tree-negative-G": partial(grow_tree, LONGER, vulcan.Linear(0.1, -0.05), G, (0, 3, 25)),
    "tree-three": partial(grow_tree, THREE_WAYS, vulcan.Linear(0.05), B, (3, 20)),
    "tree-chart-curve": partial(grow_tree, make_bounded_chart(2.0), CURVED, _free, (0, 20)),
    "tree-printed-B": partial(
        grow_tree, DEAD_ENDS, vulcan.Constant(1.0), B, (3, 30), as_printed=True
    ),
    "tree-long": partial(grow_tree, LONG, vulcan.Constant(0.1), _free, (3, 24)),
    "tree-alike-merged": partial(
        grow_tree, replace(ALIKE, merges=True), vulcan.Constant(0.5), _free, (2, 25)
    ),
    "tree-few-ways": partial(grow_tree, FEW_WAYS, vulcan.Constant(0.1), _free, (30,)),
    "tree-share": share_visits,
    "tree-over": write_over,
    "forward-paused": pause_forward,
    "tree-uct": partial(grow_tree, UNMERGED, TINY_BOUND, NoConstraint(), (3, 25)),
    "tree-nan-bound": partial(
        grow_tree, LIES["bound"], vulcan.Constant(0.5), _free, (3,), bounded=True
    ),
    "forward-negative": partial(
        search_forward, LONGER, vulcan.Linear(0.1, -0.05), vulcan.ForwardSearch(A)
    ),
    "forward-begun": partial(
        search_forward, begin_by_choice(LONGER), TINY_BOUND, vulcan.ForwardSearch(B)
    ),
}
STEPS |= {f"forward-stopped-{most}": partial(stop_forward, most) for most in (1, 8, 40)}
for _name, _chart in LIES.items():
    STEPS[f"lie-{_name}"] = partial(grow_tree, _chart, vulcan.Constant(0.5), _free, (6, 12))
    STEPS[f"forward-lie-{_name}"] = partial(
        search_forward, _chart, vulcan.Constant(0.5), vulcan.ForwardSearch()
    )
