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
from vulcan.model import Model, Outcome, Start
from vulcan.policy import Policy
from vulcan.problem import Problem
from vulcan.progress import Progress
from vulcan.result import Result, Statistics, Status
from vulcan.risk import Concave, Constant, Linear, PiecewiseLinear, RiskBound, Tangent
from vulcan.solve import solve
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.vulcan import UCT, Vulcan

__version__ = "0.1.0"

__all__ = [
    "UCT",
    "BoundError",
    "Certificate",
    "CheckpointError",
    "Concave",
    "Constant",
    "ConstraintError",
    "DisagreementError",
    "ForwardSearch",
    "Linear",
    "MismatchError",
    "Model",
    "ModelError",
    "OptionError",
    "Outcome",
    "PiecewiseLinear",
    "Policy",
    "PolicyError",
    "PolicyFileError",
    "Problem",
    "Progress",
    "Result",
    "RiskBound",
    "Run",
    "SequenceConstraint",
    "Start",
    "Statistics",
    "Status",
    "SurvivalConstraint",
    "Tangent",
    "Vulcan",
    "VulcanError",
    "certify",
    "parse",
    "solve",
]
