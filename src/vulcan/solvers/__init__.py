"""The interface of solvers.

`base` says what a solver is and lists them all, `finding` what a search returns, and `local_tests`
are the local tests of the paper. May import: graph, certificate, policy, kernels, model,
bounds, parallel, runtime, the root.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
