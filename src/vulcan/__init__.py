"""Vulcan: risk-bounded planning.

Give a model, a horizon and a risk bound; get a policy for every outcome, and a certificate of its
exact reward and failure probability.

>>> import vulcan
>>> from vulcan.domains import Bandit
>>> problem = vulcan.Problem(Bandit(horizon=2), risk_bound=vulcan.Linear(0.002))
>>> result = vulcan.solve(problem)
>>> round(result.certificate.reward, 4)
0.9906

The rooms, in the order in which data flows: `model`, `bounds`, `policies`, `certificates`,
`graphs`, `kernels`, `solvers`, `pages`, `planning`, `execution`; beside them `runtime`, `domains`,
`formats`, `plotting`, `testing` and `cli`. The root itself has what all of them use: `errors`,
`tolerance`, `parameters` and `sentinels`, which import nothing of Vulcan but each other.
docs/architecture.md walks through them.

Names are imported when they are first used, so that `import vulcan` takes next to no time;
`__init__.pyi` lists them.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
