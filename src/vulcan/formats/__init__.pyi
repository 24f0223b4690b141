from .arrays import from_arrays as from_arrays
from .gymnasium import from_gymnasium as from_gymnasium
from .gymnasium import to_gymnasium as to_gymnasium
from .registry import OpenedModel as OpenedModel
from .registry import open_model as open_model
from .table import from_table as from_table
