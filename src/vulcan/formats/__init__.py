"""Formats: models from files, other libraries and names.

`registry` finds the format of a string, by its prefix or suffix, loads classes, and adds the place
to errors in a user's module or file. `missions` reads files of the built-in domains, `arrays`
transitions and rewards, `table` dictionaries, `prism` files of model checkers (through Storm), and
`gymnasium` environments. A new format is a file, and a line in the registry, or a distribution of
its own, as `vulcan-planner-rddl` is (`rddl/` in the repository). May import: planning and below,
domains.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
