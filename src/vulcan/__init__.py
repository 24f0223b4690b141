"""Vulcan: risk-bounded planning.

Give a model, a horizon and a risk bound; get a policy for every outcome, and a certificate of its
exact reward and failure probability.

>>> import vulcan
>>> from vulcan.domains import Bandit
>>> problem = vulcan.Problem(Bandit(horizon=2), risk_bound=vulcan.Linear(0.002))
>>> result = vulcan.solve(problem)
>>> round(result.certificate.reward, 4)
0.9906
"""

from vulcan import domains as domains
from vulcan import testing as testing
from vulcan.certificate import Certificate, certify
from vulcan.compare import compare
from vulcan.comparison import Comparison, ComparisonRow
from vulcan.compiled import CompiledModel
from vulcan.constraint import SequenceConstraint, SurvivalConstraint
from vulcan.errors import (
    BoundError,
    CheckpointError,
    ConstraintError,
    DisagreementError,
    MismatchError,
    ModelError,
    OptionError,
    PolicyError,
    PolicyFileError,
    VulcanError,
)
from vulcan.execution import Run
from vulcan.expression import parse
from vulcan.frontier import Frontier, FrontierPoint, Span, trace_frontier
from vulcan.model import Model, Outcome, Start
from vulcan.policy import Policy
from vulcan.problem import Problem
from vulcan.progress import Progress
from vulcan.randomised import RandomisedPolicy
from vulcan.result import Result, Statistics, Status, Trial
from vulcan.risk import Concave, Constant, Linear, PiecewiseLinear, RiskBound, Tangent
from vulcan.solve import solve
from vulcan.solvers.automatic import Automatic
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.integer_program import IntegerProgram
from vulcan.solvers.lagrangian import Lagrangian
from vulcan.solvers.linear_program import LinearProgram
from vulcan.solvers.pareto import Pareto
from vulcan.solvers.penalty import Penalty
from vulcan.solvers.rao_star import RAOStar
from vulcan.solvers.vulcan import UCT, Vulcan

__version__ = "0.1.0"

__all__ = [
    "UCT",
    "Automatic",
    "BoundError",
    "Certificate",
    "CheckpointError",
    "Comparison",
    "ComparisonRow",
    "CompiledModel",
    "Concave",
    "Constant",
    "ConstraintError",
    "DisagreementError",
    "ForwardSearch",
    "Frontier",
    "FrontierPoint",
    "IntegerProgram",
    "Lagrangian",
    "Linear",
    "LinearProgram",
    "MismatchError",
    "Model",
    "ModelError",
    "OptionError",
    "Outcome",
    "Pareto",
    "Penalty",
    "PiecewiseLinear",
    "Policy",
    "PolicyError",
    "PolicyFileError",
    "Problem",
    "Progress",
    "RAOStar",
    "RandomisedPolicy",
    "Result",
    "RiskBound",
    "Run",
    "SequenceConstraint",
    "Span",
    "Start",
    "Statistics",
    "Status",
    "SurvivalConstraint",
    "Tangent",
    "Trial",
    "Vulcan",
    "VulcanError",
    "certify",
    "compare",
    "parse",
    "solve",
    "trace_frontier",
]
