from .rddl.opening import from_rddl as from_rddl
from .registry import OpenedModel as OpenedModel
from .registry import open_model as open_model
