from .arrays import ArrayModel as ArrayModel
from .compiled import CompiledModel as CompiledModel
from .interface import FAILURE as FAILURE
from .interface import Model as Model
from .interface import Outcome as Outcome
from .interface import Start as Start
from .numbers import Cells as Cells
from .numbers import quadrature as quadrature
