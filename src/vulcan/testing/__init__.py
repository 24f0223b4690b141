"""Checks that users run their own models and solvers through, in tests of their own.

`check_model` walks a model and reports every rule that it breaks (`vulcan.model.checker`);
`check_compiled` compares the compiled form of a model with the plain one (`compiled`);
`check_solver` runs a solver on small problems and reports every promise that it breaks (`solver`).
May import: everything but the command line.
"""

from vulcan.model.checker import check_model
from vulcan.model.report import ModelReport
from vulcan.testing.compiled import CompiledReport, check_compiled
from vulcan.testing.solver import SolverReport, check_solver

__all__ = [
    "CompiledReport",
    "ModelReport",
    "SolverReport",
    "check_compiled",
    "check_model",
    "check_solver",
]
