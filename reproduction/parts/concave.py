"""Concave bounds with dynamic programming and programs, which the paper rules out.

It says that general concave risk bounds "cannot directly be used with dynamic programming", and
that programs need approximations with ever more binary variables. But {er <= Δ(E g)} is convex:
a price of failure and a slope of Δ make an unconstrained problem for one dynamic program, backward
sweeps may carry (risk, reward) fronts against which Δ is held at the root, and tangents of Δ are
linear cuts. Here all of them solve the bandit with a bound of the exploration mission's shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reproduction.part import Claim, Record, Section, Table, Task, Verdict, weigh
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.integer_program import IntegerProgram
from vulcan.baselines.programs import LinearProgram
from vulcan.bounds.parse import parse
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Lagrangian, Pareto
from vulcan.planning.solve import solve
from vulcan.problem import Problem
from vulcan.solvers.base import Solver
from vulcan.solvers.finding import Status
from vulcan.solvers.local_tests import SequenceConstraint

__all__ = ["ConcaveBounds"]

BOUND: Final = "(1 - exp(-0.4*x)) * (0.005 + 0.0005*x)"
HORIZONS, QUICK_HORIZONS = (4, 6, 8, 10), (4, 6)

SOLVERS: Final[Mapping[str, Solver]] = {
    "VulcanFS, A": ForwardSearch(SequenceConstraint()),
    "dynamic programming, prices": Lagrangian(),
    "dynamic programming, fronts": Pareto(),
    "integer program, tangents": IntegerProgram(),
    "linear program, tangents": LinearProgram(),
}
SWEEPS: Final = "dynamic programming, fronts"
PROGRAM: Final = "integer program, tangents"

SAME: Final = 1e-7
"""Rewards that are closer are the same: a program has tolerances."""


class ConcaveBounds:
    """One concave bound, and everything that solves it."""

    name = "concave"
    title = "A concave bound with dynamic programming"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each solver at each horizon."""
        return [
            {"solver": solver, "horizon": horizon}
            for horizon in (QUICK_HORIZONS if quick else HORIZONS)
            for solver in SOLVERS
        ]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return float(0.5 + 0.5 * 3.0 ** (task["horizon"] - 8))

    def run(self, task: Task) -> dict[str, Any]:
        """Solve one problem."""
        result = solve(Problem(Bandit(task["horizon"]), parse(BOUND)), SOLVERS[task["solver"]])
        assert result.certificate is not None  # stopping at once is always acceptable
        upper = result.upper_bound
        return {
            "reward": float(result.certificate.reward),
            "risk": float(result.certificate.risk),
            "allowed": float(result.certificate.allowed),
            "passes": result.certificate.passes,
            "proved": result.status is Status.SOLVED,
            "upper_bound": None if upper is None else float(upper),
        }

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = {(r.task["horizon"], r.task["solver"]): r.found for r in records}
        horizons = sorted({horizon for horizon, _ in found})
        rows: list[list[str | float | None]] = [
            [solver, *(found.get((h, solver), {}).get("reward") for h in horizons)]
            for solver in SOLVERS
            if any((h, solver) in found for h in horizons)
        ]
        caption = f"Certified expected rewards on the bandit with Δ(x) = {BOUND}"
        header = ["solver", *(f"horizon {h}" for h in horizons)]
        return Section(
            paper=(
                "For linear programming, general concave bounds “will require linear "
                "approximations” with increasing numbers of binary variables; they “cannot "
                "directly be used with dynamic programming”."
            ),
            measured=_describe(found),
            meaning=_judge(found),
            claims=_list_claims(found),
            tables=[Table("concave", caption, header, rows, brief=True, rewards=header[1:])],
            numbers={f"{solver}, {h}": run["reward"] for (h, solver), run in found.items()},
        )


def _compare(found: Mapping[tuple[int, str], Mapping[str, Any]]) -> dict[int, float]:
    """Return how far fronts and the integer program are apart, by horizon."""
    return {
        h: abs(run["reward"] - found[h, PROGRAM]["reward"])
        for (h, solver), run in sorted(found.items())
        if solver == SWEEPS and run["proved"] and run["passes"] and (h, PROGRAM) in found
    }


def _describe(found: Mapping[tuple[int, str], Mapping[str, Any]]) -> str:
    losses = [
        100 * (1 - run["reward"] / found[h, SWEEPS]["reward"])
        for (h, solver), run in found.items()
        if solver == "dynamic programming, prices" and (h, SWEEPS) in found
    ]
    if not losses:
        return ""
    return (
        "Fronts and tangent cuts prove the best deterministic policy; prices alone, one dynamic "
        f"program each, lose up to {max(losses):.2g} % of it, with an upper bound on what is lost."
    )


def _judge(found: Mapping[tuple[int, str], Mapping[str, Any]]) -> str:
    apart = _compare(found)
    if not apart:
        return ""
    return (
        "The set of what a concave bound allows is convex, so that no approximation is needed: "
        f"the two exact answers agree to {max(apart.values()):.1g}."
    )


def _list_claims(found: Mapping[tuple[int, str], Mapping[str, Any]]) -> list[Claim]:
    apart = _compare(found)
    if not apart:
        return []
    same = [h for h, difference in apart.items() if difference < SAME]
    return [
        Claim(
            "A concave Δ can't directly be used with dynamic programming: horizons at which fronts "
            f"prove the optimum, of {len(apart)}",
            f"one dynamic program with fronts proves the optimum at {len(same)} of {len(apart)} "
            "horizons, the same as the integer program with tangent cuts",
            # Not one sweep with one price, as the paper means it, but with fronts.
            weigh(not same, Verdict.PARTLY),
            "0",
            f"{len(same)}",
        )
    ]
