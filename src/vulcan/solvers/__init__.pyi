from .base import Coverage as Coverage
from .base import Option as Option
from .base import Solver as Solver
from .constraints import SequenceConstraint as SequenceConstraint
from .constraints import SurvivalConstraint as SurvivalConstraint
