"""Planning: from a problem and a solver to a certified result.

`solve` solves one problem and returns a `result`; `automatic` is the default solver. `compare` runs
several solvers on one problem, and `frontier` one solver on many bounds; `sweep` gives their
searches to workers. `explain` finds where a policy takes its risk, `explore` makes a page of it.
May import: solvers and pages, and everything below.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
