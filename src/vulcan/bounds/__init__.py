"""Risk bounds: how much probability of failure is acceptable for how much expected reward.

`base` is what every bound offers, and checks its shape; `forms` has the kinds of bounds; `parse`
reads them from strings; `table` is a bound as kernels see it. May import: the root.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
