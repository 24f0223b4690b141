"""Models: the interface that users implement, and how Vulcan evaluates it.

`interface` has what a user writes (`Model`, `Outcome`, `Start`), `rules` the rules of every answer,
`reader` the only way to evaluate a model, `workers` the same in several processes, `check` the
model checker, `arrays` models given as arrays, `numbers` distributions as nodes or cells, and
`compiled` models in machine code. May import: the root, runtime.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
