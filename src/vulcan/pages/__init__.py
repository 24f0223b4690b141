"""Pages: a plan as one HTML file that people explore, without a server and without a network.

`arrays` puts the decisions of a plan (found by `vulcan.policy.walk`) into flat arrays, and
packs these. `page` finds where two plans differ, answers the first questions about a plan, and
writes the file, together with the program of the page, `assets`, which is built from `explorer/`.
`maps` is what a model may show beside its plan. May import: the root, runtime, bounds, model,
policies, certificates.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
