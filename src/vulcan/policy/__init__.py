"""Policies: an action for every history that can occur.

`policy` is the form that all solvers return, or a weighted set of such policies. `file` saves and
loads both, `run` follows one step by step, `views` shows one to people, and `walk` finds all its
decisions and compares them with a model. May import: the root, runtime, model.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
