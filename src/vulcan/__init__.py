"""Vulcan: risk-bounded planning.

Give a model, a horizon and a risk bound; get a policy for every outcome, and a certificate of its
exact reward and failure probability.

>>> import vulcan
>>> from vulcan.domains import Bandit
>>> problem = vulcan.Problem(Bandit(horizon=2), risk_bound=vulcan.Linear(0.002))
>>> result = vulcan.solve(problem)
>>> round(result.certificate.reward, 4)
0.9906

Everyday names are here, the others in submodules: `vulcan.baselines`, `vulcan.errors`,
`vulcan.execution`, `vulcan.model`, `vulcan.parallel`, `vulcan.planning`, `vulcan.policy`,
`vulcan.solvers` and so on. docs/architecture.md walks through them.

Names are imported when they are first used, so that `import vulcan` takes next to no time;
`__init__.pyi` lists them.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import lazy_loader

__version__ = "0.1.0"

_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name; for another one, raise an error with its place or a close name."""
    if name in __all__ or name.startswith("__"):
        return _import_name(name)
    from vulcan.parameters import suggest

    for place in filter(lambda place: find_spec(f"vulcan.{place}"), __all__):
        if name in getattr(module := import_module(f"vulcan.{place}"), "__all__", vars(module)):
            raise AttributeError(f"vulcan.{name} is vulcan.{place}.{name}")
    raise AttributeError(f"vulcan has no {name!r}{suggest(name, __all__)}")
