from .base import RiskBound as RiskBound
from .base import Tangent as Tangent
from .forms import Concave as Concave
from .forms import Constant as Constant
from .forms import Linear as Linear
from .forms import PiecewiseLinear as PiecewiseLinear
