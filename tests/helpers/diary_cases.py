"""Searches in small steps, of which diaries are kept in tests/golden/diaries.json.

Problems are so small that plain kernels take well under a second. Arrays begin as short, and looks
at the clock come as often, as in searches that are a million times as large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import vulcan
from tests.helpers.price_runs import sample_tree
from tests.helpers.recorded import CURVE, LINE
from tests.helpers.small_cases import HISTORIES, LONGER, MERGED, MISSION, POOR, UNMERGED
from tests.helpers.tables import Table
from tests.helpers.trees import SHORT, TINY_BOUND, start
from tests.helpers.trees import sample as sample_plain
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration, Grid
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.sentinels import NONE
from vulcan.solvers.tree.plans import Planning
from vulcan.solvers.tree.price_run import PriceRun
from vulcan.solvers.tree.proof import Proof
from vulcan.solvers.tree.tops import Detail

DEAD_ENDS = Table(
    {
        0: {
            "end": [Outcome(0.5, 1.0, 9, "early"), Outcome(0.25, 4.0, 9), Outcome.failure(0.25)],
            "on": [Outcome(0.5, -1.0, 1), Outcome(0.5, 0.5, 2)],
            "fail": [Outcome.failure(0.75, 8.0), Outcome.failure(0.25, -2.0)],
        },
        1: {
            "fail": [Outcome.failure(1.0, 3.0)],
            "stay": [Outcome(0.875, 0.25, 1), Outcome.failure(0.125, 2.0)],
        },
        2: {"back": [Outcome(0.5, 0.0, 0), Outcome(0.25, 1.0, 1), Outcome(0.25, -0.5, 9)]},
        9: {},
    },
    horizon=5,
    discount=0.5,
    merges=False,
)
"""Missions that end early, and actions after which they always do."""

ALIKE = Table(
    {
        0: {
            "a": [Outcome(0.5, 1.0, 1), Outcome(0.5, 1.0, 2)],
            "b": [Outcome(0.5, 1.0, 1), Outcome(0.5, 1.0, 2)],
        },
        1: {"c": [Outcome(0.75, 2.0, 0), Outcome.failure(0.25)], "d": [Outcome(1.0, 0.5, 0)]},
        2: {"d": [Outcome(1.0, 0.5, 0)], "c": [Outcome(0.75, 2.0, 0), Outcome.failure(0.25)]},
    },
    horizon=4,
    merges=False,
)
"""Actions that are worth the same: which of them is taken must not change."""

LATE = {"vulcan.solvers.tree.price_run.FEWEST_TO_DIVIDE": 24}
HASTY = {
    "vulcan.solvers.tree.completion.CHUNK": 3,
    "vulcan.solvers.tree.completion.FIRST_LENGTH": 2,
    "vulcan.solvers.tree.price_run.FIRST_SAMPLES": 12,
    "vulcan.solvers.tree.tops.FEWEST_VISITS": 3,
    "vulcan.solvers.fronts.CHUNK": 40,
}
"""What makes searches of a few samples go through all that long ones do."""


@contextmanager
def change_settings(settings: dict[str, Any]) -> Iterator[None]:
    """Let constants of modules be others meanwhile."""
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(patch(name, value))
        yield


def _no_progress() -> Any:
    raise AssertionError("no progress is told so early")


def _go_on(run: PriceRun, target: int) -> None:
    run.sample(Monitor(Limits()), target, 0.0, _no_progress, lambda: None)


def search_with_prices(
    model: Any, bound: vulcan.RiskBound, samples: tuple[int, ...], detail: Detail, seed: int = 1
) -> None:
    """Sample, plan, be guided by the plan, and write policies, several times."""
    with change_settings(HASTY | LATE):
        problem = vulcan.Problem(model, bound)
        run = sample_tree(problem, samples[0], seed)
        for target in samples[1:]:
            planning = Planning(run, run.complete(), lambda: True, detail)
            planning.guide()
            _go_on(run, target)
        planning = Planning(run, run.complete(), lambda: True, detail)
        plan = planning.settle()
        if plan is not None:
            planning.write(plan)
        for lane in (0, len(run.prices[0]) - 1):
            run.follow([], [])
            run.complete().write(lane)


def tighten(model: Any, bound: vulcan.RiskBound, prices: tuple[float, ...], steps: int) -> None:
    """Prove upper bounds for some prices, with as much work for each in turn."""
    with change_settings({"vulcan.solvers.tree.proof.HISTORIES_AT_ONCE": 3}):
        proof = Proof(vulcan.Problem(model, bound), ModelReader(model))
        for histories in (1, steps, steps):
            for price in prices:
                proof.advance(price, histories)
        proof.bound_reward()


STEPS: dict[str, Callable[[], Any]] = {}
for _name, _model, _bound, _samples in (
    ("python", UNMERGED, TINY_BOUND, (1, 13, 20)),
    ("ends", DEAD_ENDS, TINY_BOUND, (5, 25, 40)),
    ("alike", ALIKE, vulcan.Constant(0.25), (2, 15, 30)),
    ("merged", LONGER, TINY_BOUND, (3, 14, 30)),
    ("poor", POOR, vulcan.Linear(0.1, 0.05), (13, 20)),
    ("bandit", HISTORIES, LINE, (1, 13, 30)),
    ("curve", MISSION, CURVE, (2, 20)),
    ("mission", Exploration(horizon=3), CURVE, (13, 20)),
):
    STEPS[f"prices-{_name}"] = partial(
        search_with_prices, _model, _bound, _samples, Detail(12, 8)
    )
for _name, _model in (("python", UNMERGED), ("bandit", HISTORIES), ("ends", DEAD_ENDS)):
    STEPS[f"proof-{_name}"] = partial(tighten, _model, TINY_BOUND, (0.0, 2.0, 40.0), 6)
STEPS["proof-mission"] = partial(tighten, Exploration(horizon=3), CURVE, (0.0, 30.0), 3)
