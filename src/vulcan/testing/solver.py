"""The solver checker: what every solver must keep, tried on small problems.

`check_solver` runs a solver through `vulcan.solve` on problems whose answers are known, and reports
every promise that it breaks:

    declarations     what it says of itself can be used: limits that exist, words for people
    certificates     a policy comes with a certificate, and one that is called solved is safe
    soundness        no safe policy earns more than the best one, and none is found where there is
                     none
    upper bounds     no policy of the kind that the bound covers earns more than it
    repetition       the same seed and limits give the same policy
    limits           no time at all gives a result, not an error
    known graphs     what is known of a model already changes nothing

That the search's own reward and risk are those of the certificate is checked by `vulcan.solve`
itself.

Examples
--------
>>> import vulcan
>>> report = check_solver(vulcan.ForwardSearch())
>>> assert report.ok, report
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.straight import Constant, Linear
from vulcan.certificates.problem import Problem
from vulcan.domains import Bandit, ThreeActions
from vulcan.errors import OptionError
from vulcan.graphs.array_graph import open_graph
from vulcan.model.reader import ModelReader
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.policies.randomised import RandomisedPolicy
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import Coverage, Options, Solver
from vulcan.solvers.finding import Status
from vulcan.solvers.layered.pareto import Pareto
from vulcan.tolerance import EXACT_GAP

__all__ = ["SolverReport", "check_solver"]

PROBLEMS: Final[tuple[tuple[Any, RiskBound], ...]] = (
    (ThreeActions(), Linear(0.004)),
    (ThreeActions(), Constant(-0.1)),
    (Bandit(1), Constant(0.0)),
    (Bandit(3), Linear(0.002)),
    (Bandit(4), Constant(0.003)),
    (Bandit(3, merges=False), Linear(0.002)),
)
"""Models and bounds; no policy is within the second."""

SAMPLES: Final = 3000
"""Samples of a solver that takes such a limit."""


@dataclass(frozen=True)
class SolverReport:
    """What `check_solver` found.

    Attributes
    ----------
    violations
        The broken promises, each with the problem on which it was broken.
    """

    violations: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether no promise was broken."""
        return not self.violations

    def __str__(self) -> str:
        return "\n".join(self.violations) or "ok"


def check_solver(solver: Solver) -> SolverReport:
    """Run a solver on small problems and report every promise that it breaks.

    Parameters
    ----------
    solver
        Any solver: an instance of a class derived from `vulcan.Solver`.

    Returns
    -------
    SolverReport
        Its `ok` says whether the solver may be used; printed, it says why not.

    Raises
    ------
    OptionError
        If it is no solver at all.
    """
    if not isinstance(solver, Solver):
        raise OptionError(
            f"a solver must be an instance derived from vulcan.Solver, not {solver!r}"
        )
    violations = list(_check_declarations(solver))
    for model, bound in PROBLEMS:
        problem = Problem(model, bound)
        try:
            violations += [f"{problem}: {text}" for text in _check_problem(solver, problem)]
        except Exception as error:  # whatever a user's own solver may raise
            violations.append(f"{problem}: {type(error).__name__}: {error}")
    return SolverReport(tuple(violations))


def _check_declarations(solver: Solver) -> Iterator[str]:
    kind = type(solver)
    known = [field.name for field in fields(Limits)]
    for name in solver.limits:
        if name not in known:
            yield f"limits: there is no limit {name!r}; there are {', '.join(known)}"
    for name in ("finds", "method"):
        if not isinstance(getattr(kind, name, None), str):
            yield f"declarations: {name} says in a few words what the solver finds, or how"
    try:
        hash(solver)
    except TypeError:
        yield "declarations: a solver is a frozen dataclass, whose parameters can be hashed"


def _check_problem(solver: Solver, problem: Problem) -> Iterator[str]:
    limits = Limits(samples=SAMPLES) if "samples" in solver.limits else Limits()
    result = plan_and_certify(problem, solver, limits, Options())
    best = plan_and_certify(problem, Pareto(), Limits(), Options()).certificate
    optimum = None if best is None else float(best.reward)
    yield from _check_certificate(result)
    yield from _check_soundness(solver, result, optimum)
    yield from _check_bound(solver, result, optimum)
    again = plan_and_certify(problem, solver, limits, Options())
    if again.policy != result.policy:
        yield "repetition: the same seed and limits gave another policy"
    reader = ModelReader(problem.model)
    if reader.merges:
        graph = open_graph(reader)
        known = plan_and_certify(problem, solver, limits, Options(graph=graph))
        if known.policy != result.policy:
            yield "known graphs: a graph that is shared between searches gave another policy"
    yield from _check_limits(solver, problem)


def _check_certificate(result: Result) -> Iterator[str]:
    if (result.policy is None) != (result.certificate is None):
        yield "certificates: there is a policy without a certificate, or the other way round"
    claimed = result.status is Status.SOLVED and result.upper_bound is not None
    if claimed and not result.safe:
        yield "certificates: a policy that is called solved is not safe"


def _check_soundness(solver: Solver, result: Result, optimum: float | None) -> Iterator[str]:
    exact = solver.covers is not Coverage.NOTHING
    if exact and result.status is Status.INFEASIBLE and optimum is not None:
        yield f"soundness: it says that there is no policy; one earns {optimum!r}"
    if not result.safe or isinstance(result.policy, RandomisedPolicy):
        return
    assert result.certificate is not None
    if optimum is None:
        yield "soundness: a safe policy was found where there is none"
    elif float(result.certificate.reward) > optimum + EXACT_GAP * abs(optimum):
        yield f"soundness: {float(result.certificate.reward)!r} is above the best, {optimum!r}"


def _check_bound(solver: Solver, result: Result, optimum: float | None) -> Iterator[str]:
    if result.upper_bound is None:
        return
    if solver.covers is Coverage.NOTHING:
        yield "upper bounds: there is one, but `covers` says that it covers nothing"
    if optimum is not None and result.upper_bound < optimum - EXACT_GAP * abs(optimum):
        yield f"upper bounds: {result.upper_bound!r} is below what a policy earns, {optimum!r}"


def _check_limits(solver: Solver, problem: Problem) -> Iterator[str]:
    if "time_limit" in solver.limits:
        stopped = plan_and_certify(problem, solver, Limits(time_limit=0.0), Options())
        if stopped.policy is not None and stopped.certificate is None:
            yield "limits: a search without any time has a policy without a certificate"
