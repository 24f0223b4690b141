"""One search of a sweep, as a worker is told about it, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vulcan.bounds.straight import Constant
from vulcan.certificates.problem import Problem
from vulcan.model.reader import ModelReader
from vulcan.planning.result import Result
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import Options, Solver

__all__ = ["Answer", "Job"]


@dataclass(frozen=True)
class Job:
    """One search, as a worker is told about it.

    Attributes
    ----------
    solver, limits, options
        How to search.
    bound
        Whether to add an upper bound, if the solver has none.
    level, scale
        Another bound than that of the problem: a constant, or a multiple of it.
    """

    solver: Solver
    limits: Limits
    options: Options
    bound: bool = False
    level: float | None = None
    scale: float | None = None

    def pose(self, problem: Problem) -> Problem:
        """Return the problem that is meant."""
        if self.level is not None:
            return Problem(problem.model, Constant(self.level))
        if self.scale is not None:
            return Problem(problem.model, problem.risk_bound.scale(self.scale))
        return problem


@dataclass(frozen=True)
class Answer:
    """What came of a job.

    Attributes
    ----------
    result
        The result, without the problem and what it holds of the model: those who asked have it.
    evaluations
        How often the model was asked by searches: less than the result says where the worker knew
        some answers from an earlier job.
    """

    result: Result
    evaluations: int

    def unpack(self, problem: Problem) -> Result:
        """Return the result of a problem."""
        policy = self.result.policy
        return replace(
            self.result,
            problem=problem,
            policy=None if policy is None else policy.attach(ModelReader(problem.model)),
        )
