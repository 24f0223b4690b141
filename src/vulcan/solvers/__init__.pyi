from .base import Coverage as Coverage
from .base import Option as Option
from .base import Solver as Solver
from .local_tests import SequenceConstraint as SequenceConstraint
from .local_tests import SurvivalConstraint as SurvivalConstraint
