"""Exact solvers: dynamic programs over state–step pairs, with a proved gap.

May import: solvers, graph, certificate, policy, kernels, model, bounds, parallel, runtime, the
root.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
