"""Trees with several prices, sampled without a planner."""

from __future__ import annotations

import vulcan
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.solvers.tree.price_run import PriceRun

__all__ = ["sample_tree"]


def sample_tree(problem: vulcan.Problem, samples: int, seed: int = 0) -> PriceRun:
    """Return a tree after so many samples, or when it is solved."""
    run = PriceRun(problem, ModelReader(problem.model), None, None, seed=seed, exploration=0.1)
    run.prepare()
    run.sample(Monitor(Limits()), samples, 0.0, _describe, lambda: None)
    return run


def _describe() -> Progress:
    raise AssertionError("no progress is told so early")
