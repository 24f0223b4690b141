"""RDDL problems as models of Vulcan.

`model` reads a problem and lists its exact outcomes; `grounding` turns expressions into Python
code. The entry point `rddl` of the group `vulcan.formats` makes them known to `vulcan solve`.
"""

from vulcan_rddl.model import RDDLModel, from_rddl

__all__ = ["RDDLModel", "from_rddl"]
