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

from typing import Any

import lazy_loader

__version__ = "0.1.0"

_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

MOVED = {
    "baselines": "IntegerProgram LinearProgram Penalty RAOStar UCT",
    "bounds": "Tangent",
    "certificate": "Verification",
    "errors": "BoundError BoundWarning CheckpointError ConstraintError DisagreementError "
    "MismatchError ModelError OptionError PolicyError PolicyFileError SimulationWarning",
    "execution": "Estimate Replan Simulation",
    "model": "ArrayModel CompiledModel FAILURE Model",
    "pages": "Page PageMap",
    "parallel": "Executor Processes Ray Threads",
    "planning": "Comparison ComparisonRow Explanation Frontier FrontierPoint "
    "Progress Span Statistics Status StopReason Trial",
    "policy": "PolicyTable RandomisedPolicy Run",
    "solvers": "SequenceConstraint Solver SurvivalConstraint",
}
"""Names that were here once, by the submodule where they are now."""


def __getattr__(name: str) -> Any:
    for place, names in MOVED.items():
        if name in names.split():
            raise AttributeError(f"vulcan.{name} is vulcan.{place}.{name} now")
    return _import_name(name)
