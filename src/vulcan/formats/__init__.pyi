from .export import Export as Export
from .export import export_model as export_model
from .prism import PrismModel as PrismModel
from .prism import from_prism as from_prism
from .registry import OpenedModel as OpenedModel
from .registry import open_model as open_model
