"""Certificates: expected reward and risk of a policy, computed from the model alone.

`certify` follows a policy through the model (`walk`) and sums reward and risk with error bounds
(`sums`). `margin` computes by how much the model's risks may be wrong, and `verify` has Storm
recompute the numbers. `confidence` has the limits that episodes in a simulator give. No code of a
search is used here.
May import: the root, runtime, model, bounds, policy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
