"""Formats: models that are not Python objects yet.

`registry` knows which format a string means, by its suffix or its prefix. `python_module` and
`python_file` find a class, `mission` reads exploration missions, `rddl` problems of the planning
competitions; what goes wrong in a user's own module is told with the line where it happened
(`faults`). A new format is a file, and a line in the registry. May
import: planning and everything below it, domains.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
