"""Vulcan's search, for problems in which histories do not merge: one tree for several prices.

May import: exact, solvers, graph, certificate, policy, kernels, model, bounds, parallel, runtime,
the root.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
