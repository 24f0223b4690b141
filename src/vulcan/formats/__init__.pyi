from .arrays import from_arrays as from_arrays
from .gymnasium import from_gymnasium as from_gymnasium
from .pomdp import from_pomdp as from_pomdp
from .prism import from_prism as from_prism
from .registry import OpenedModel as OpenedModel
from .registry import open_model as open_model
from .table import from_table as from_table
