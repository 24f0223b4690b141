"""Methods for comparison: UCT, forward search, linear and integer programs, RAO*, penalties.

May import: sampling, exact, solvers, graph, certificate, policy, kernels, model, bounds, parallel,
runtime, the root.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
