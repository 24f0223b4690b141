"""Problems with fixed seeds and budgets, whose answers are recorded in tests/golden/recorded.json.

The answers were recorded once, so that whatever is not meant to change them does not: the same
seeds give the same policies, bit for bit.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

import vulcan
from vulcan.domains import Bandit, Exploration, Grid, ThreeActions

A, B, G = (
    vulcan.solvers.SequenceConstraint(),
    vulcan.solvers.SurvivalConstraint(),
    vulcan.solvers.SequenceConstraint("received"),
)
LINE = vulcan.Linear(0.002)
CURVE = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")


class Case(NamedTuple):
    """What is solved, how, and within which limits."""

    model: Any
    bound: vulcan.RiskBound
    solver: vulcan.solvers.Solver | None
    options: dict[str, Any]


def _list_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}

    def add(name: str, model: Any, bound: Any, solver: Any, **options: Any) -> None:
        cases[name] = Case(model, bound, solver, options)

    for n in (3, 5, 7):
        for letter, constraint in (("A", A), ("B", B), ("G", G)):
            add(f"fs-{n}-{letter}", Bandit(n), LINE, vulcan.ForwardSearch(constraint))
            tree = vulcan.LocalVulcan(local_test=constraint)
            add(f"vulcan-{n}-{letter}", Bandit(n), LINE, tree, samples=3000, seed=n)
        for kind in (
            vulcan.Pareto,
            vulcan.Lagrangian,
            vulcan.baselines.LinearProgram,
            vulcan.baselines.IntegerProgram,
            vulcan.baselines.Penalty,
            vulcan.Automatic,
        ):
            add(f"{kind.__name__}-{n}", Bandit(n), LINE, kind())
        add(f"RAOStar-{n}", Bandit(n), LINE, vulcan.baselines.RAOStar(update="exact"))
    long, loose = Bandit(9, merges=False), Bandit(8)
    add("fs-unmerged", Bandit(6, merges=False), LINE, vulcan.ForwardSearch(A))
    add("vulcan-unmerged", long, LINE, vulcan.LocalVulcan(), samples=20000, seed=1)
    curved = vulcan.LocalVulcan(local_test=A)
    add("vulcan-unmerged-concave", long, CURVE, curved, samples=20000, seed=2)
    add("vulcan-incomplete", loose, LINE, vulcan.LocalVulcan(complete=False), samples=2000, seed=1)
    random = vulcan.LocalVulcan(default_policy="random")
    add("vulcan-random", loose, LINE, random, samples=5000, seed=4)
    add("vulcan-as-printed", loose, LINE, vulcan.LocalVulcan.paper(1.0), samples=5000, seed=4)
    add("uct", Bandit(9), vulcan.Constant(0.0125), vulcan.baselines.UCT(), samples=20000, seed=3)
    mission = Exploration(horizon=6)
    wide = Exploration(map="wide", horizon=6)
    add("uct-exploration", wide, CURVE, vulcan.baselines.UCT(0.1), samples=200, seed=3)
    add("vulcan-exploration", mission, CURVE, vulcan.LocalVulcan(0.1), samples=20000, seed=3)
    add("vulcan-exploration-A", mission, CURVE, vulcan.LocalVulcan(0.1, A), samples=20000, seed=3)
    add("fs-exploration", Exploration(horizon=4), CURVE, vulcan.ForwardSearch())
    add("auto-exploration", Exploration(horizon=5), CURVE, None, samples=5000)
    add("auto-grid", Grid(30), vulcan.Constant(0.002), None)
    add("grid-lagrangian", Grid(100), vulcan.Linear(0.001), vulcan.Lagrangian())
    add("grid-pareto", Grid(60), CURVE, vulcan.Pareto(), gap=0.001)
    add("three", ThreeActions(), vulcan.Linear(0.004), None)
    add("concave-9", Bandit(9), CURVE, None)
    add("infeasible", Grid(20), vulcan.parse("-1"), vulcan.Pareto())
    return cases


CASES = _list_cases()


def record(case: Case) -> dict[str, Any]:
    """Solve a case, and return what came out of it, the policy as a digest."""
    problem = vulcan.Problem(case.model, case.bound)
    result = vulcan.solve(problem, case.solver, **case.options)
    certificate, statistics = result.certificate, result.statistics
    return {
        "status": result.status.value,
        "reward": certificate and repr(float(certificate.reward)),
        "risk": certificate and repr(float(certificate.risk)),
        "complete": certificate and certificate.complete,
        "policy": None if result.policy is None else digest(result.policy),
        "samples": statistics.samples,
        "histories": statistics.histories,
        "evaluations": statistics.evaluations,
        "upper": repr(result.upper_bound),
        "estimate": repr(result.estimate),
    }


def digest(policy: Any) -> str:
    """Return a string that differs between policies that differ in anything."""
    found = hashlib.sha256()
    for member in policy.members:
        for name in member.ARRAYS:
            found.update(np.ascontiguousarray(getattr(member, name)).tobytes())
        found.update("|".join(member.labels).encode())
    return found.hexdigest()[:16]
