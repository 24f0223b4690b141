from . import domains as domains
from . import formats as formats
from . import plotting as plotting
from . import testing as testing
from .bounds.base import RiskBound as RiskBound
from .bounds.base import Tangent as Tangent
from .bounds.concave import Concave as Concave
from .bounds.parsing import parse as parse
from .bounds.straight import (
    Constant as Constant,
)
from .bounds.straight import (
    Linear as Linear,
)
from .bounds.straight import (
    PiecewiseLinear as PiecewiseLinear,
)
from .certificates.certificate import Certificate as Certificate
from .certificates.certificate import certify as certify
from .certificates.explanation import Explanation as Explanation
from .certificates.problem import Problem as Problem
from .certificates.verification import Verification as Verification
from .certificates.verification import verify as verify
from .errors import (
    BoundError as BoundError,
)
from .errors import (
    BoundWarning as BoundWarning,
)
from .errors import (
    CheckpointError as CheckpointError,
)
from .errors import (
    ConstraintError as ConstraintError,
)
from .errors import (
    DisagreementError as DisagreementError,
)
from .errors import (
    MismatchError as MismatchError,
)
from .errors import (
    ModelError as ModelError,
)
from .errors import (
    OptionError as OptionError,
)
from .errors import (
    PolicyError as PolicyError,
)
from .errors import (
    PolicyFileError as PolicyFileError,
)
from .errors import (
    SimulationWarning as SimulationWarning,
)
from .errors import (
    VulcanError as VulcanError,
)
from .execution.estimates import Estimate as Estimate
from .execution.estimates import Simulation as Simulation
from .execution.replan import Replan as Replan
from .execution.replan import replan as replan
from .execution.simulation import simulate as simulate
from .executors.base import Executor as Executor
from .executors.cluster import Ray as Ray
from .executors.here import Threads as Threads
from .executors.processes import Processes as Processes
from .model.arrays import ArrayModel as ArrayModel
from .model.compiled import CompiledModel as CompiledModel
from .model.interface import FAILURE as FAILURE
from .model.interface import Model as Model
from .model.interface import Outcome as Outcome
from .model.interface import Start as Start
from .pages.maps import PageMap as PageMap
from .pages.page import Page as Page
from .planning.compare import compare as compare
from .planning.comparison import Comparison as Comparison
from .planning.comparison import ComparisonRow as ComparisonRow
from .planning.explain import explain as explain
from .planning.explore import explore as explore
from .planning.frontier.point import Frontier as Frontier
from .planning.frontier.point import FrontierFailure as FrontierFailure
from .planning.frontier.point import FrontierPoint as FrontierPoint
from .planning.frontier.span import Span as Span
from .planning.frontier.trace import trace_frontier as trace_frontier
from .planning.rejections import find_alternatives as find_alternatives
from .planning.result import Result as Result
from .planning.solve import solve as solve
from .planning.spread import SeedRun as SeedRun
from .planning.spread import Spread as Spread
from .policies.execution import Run as Run
from .policies.matrix import ActionMatrix as ActionMatrix
from .policies.policy import Policy as Policy
from .policies.randomised import RandomisedPolicy as RandomisedPolicy
from .policies.table import PolicyTable as PolicyTable
from .runtime.limits import StopReason as StopReason
from .runtime.progress import Progress as Progress
from .solvers.automatic import Automatic as Automatic
from .solvers.base import Solver as Solver
from .solvers.baselines.integer_program import IntegerProgram as IntegerProgram
from .solvers.baselines.linear_program import LinearProgram as LinearProgram
from .solvers.baselines.penalty import Penalty as Penalty
from .solvers.baselines.rao_star import RAOStar as RAOStar
from .solvers.constraints import (
    SequenceConstraint as SequenceConstraint,
)
from .solvers.constraints import (
    SurvivalConstraint as SurvivalConstraint,
)
from .solvers.finding import Statistics as Statistics
from .solvers.finding import Status as Status
from .solvers.finding import Trial as Trial
from .solvers.layered.lagrangian import Lagrangian as Lagrangian
from .solvers.layered.pareto import Pareto as Pareto
from .solvers.tree.forward_search import ForwardSearch as ForwardSearch
from .solvers.tree.local import UCT as UCT
from .solvers.tree.local import LocalVulcan as LocalVulcan
from .solvers.tree.vulcan import Vulcan as Vulcan

__version__: str
