"""Problems so small that kernels solve them in an instant even as plain Python.

Their answers are recorded in tests/golden/small.json. Each case is there for a few kernels, and
goes through as much of them as it can.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import vulcan
from tests.helpers.constraints import KINDS, constraint
from tests.helpers.recorded import CURVE, LINE, A, B, Case, G
from tests.helpers.tables import Table
from tests.helpers.trees import TINY, TINY_BOUND
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration, Grid

LONGER = replace(TINY, horizon=4, discount=0.9)
UNMERGED = Table(
    {
        0: {
            "safe": [Outcome(0.5, 1.0, 1), Outcome(0.5, 2.0, 2)],
            "risky": [Outcome(0.6, 3.0, 1), Outcome(0.3, 4.0, 2), Outcome.failure(0.1)],
        },
        1: {
            "safe": [Outcome(0.25, 0.0, 0), Outcome(0.75, 1.0, 2)],
            "risky": [Outcome(0.5, 2.0, 0), Outcome(0.3, 6.0, 1), Outcome.failure(0.2)],
            "stop": [Outcome(1.0, 1.5, 3)],
        },
        2: {
            "safe": [Outcome(0.25, 0.0, 0), Outcome(0.75, 2.0, 1)],
            "lost": [Outcome.failure(0.7, 5.0), Outcome.failure(0.3, 1.0)],
        },
        3: {},
    },
    horizon=4,
    discount=0.9,
    merges=False,
)
MERGED = replace(UNMERGED, merges=True)
POOR = replace(
    MERGED,
    table={
        state: {
            action: [Outcome(o.probability, o.reward - 1.5, o.state) for o in outcomes]
            for action, outcomes in actions.items()
        }
        for state, actions in MERGED.table.items()
    },
)
POOR_BOUND = vulcan.Linear(0.1, 0.05)
HISTORIES = Bandit(4, merges=False)
MISSION = Exploration(horizon=2)


def _list_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}

    def add(name: str, model: Any, bound: Any, solver: Any, **options: Any) -> None:
        cases[name] = Case(model, bound, solver, options)

    for letter, under in (("A", A), ("B", B), ("G", G)):
        add(f"fs-{letter}", LONGER, TINY_BOUND, vulcan.ForwardSearch(under))
        local = vulcan.LocalVulcan(constraint=under)
        add(f"local-{letter}", LONGER, TINY_BOUND, local, samples=40, seed=1)
        add(f"ends-{letter}", MERGED, TINY_BOUND, local, samples=15, seed=1)
    for kind in KINDS:  # where rewards are so low that nothing is allowed
        own = constraint(kind, POOR)
        add(f"fs-poor-{kind}", POOR, POOR_BOUND, vulcan.ForwardSearch(own))
        tree = vulcan.LocalVulcan(constraint=own)
        add(f"local-poor-{kind}", POOR, POOR_BOUND, tree, samples=30, seed=1)
    # The bound's table must be made finer; of two that are close, one allows one plan more.
    for scale in (0.2, 0.25, 0.3, 0.3666166, 0.3666169, 0.4):
        curve = vulcan.parse(f"{scale}*(1 - exp(-0.4*x))")
        add(f"fs-curve-{scale}", LONGER, curve, vulcan.ForwardSearch())
        add(f"local-curve-{scale}", MERGED, curve, vulcan.LocalVulcan(), samples=30, seed=1)
    add("fs-compiled", HISTORIES, LINE, vulcan.ForwardSearch())
    add("local-compiled", HISTORIES, LINE, vulcan.LocalVulcan(), samples=60, seed=1)
    random = vulcan.LocalVulcan(default_policy="random")
    add("local-random", UNMERGED, TINY_BOUND, random, samples=40, seed=2)
    add("printed", UNMERGED, TINY_BOUND, vulcan.LocalVulcan.paper(1.0), samples=60, seed=3)
    add("incomplete", HISTORIES, LINE, vulcan.LocalVulcan(complete=False), samples=9, seed=1)
    add("uct", LONGER, TINY_BOUND, vulcan.baselines.UCT(), samples=40, seed=3)
    for samples in (10, 60):
        add(f"vulcan-{samples}", UNMERGED, TINY_BOUND, vulcan.Vulcan(), samples=samples, seed=1)
        add(f"vulcan-bandit-{samples}", HISTORIES, LINE, vulcan.Vulcan(), samples=samples, seed=1)
    add("vulcan-mission", MISSION, CURVE, vulcan.Vulcan(), samples=20, seed=1)
    add("local-mission", MISSION, CURVE, vulcan.LocalVulcan(), samples=60, seed=1)
    rao_star = vulcan.baselines.RAOStar(update="exact")
    for solver in (vulcan.Pareto(), vulcan.Lagrangian(), rao_star):
        name = type(solver).__name__
        add(f"{name}-tiny", LONGER, TINY_BOUND, solver)
        add(f"{name}-ends", MERGED, TINY_BOUND, solver)
        add(f"{name}-bandit", Bandit(3), LINE, solver)
        add(f"{name}-grid", Grid(6), vulcan.Constant(0.01), solver)
    return cases


SMALL = _list_cases()
