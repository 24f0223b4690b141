"""What `Vulcan()` earns beside the planner of local tests, with the same samples."""

from __future__ import annotations

import math
from typing import Final

import vulcan

__all__ = ["TOLERATED_LOSS", "compare_with_local", "find_loss"]

TOLERATED_LOSS: Final = 1e-3
"""Share of its reward that may be missing: both draw samples, and each may have met by chance what
the other did not. It is the share of the optimum that may be lost on average anyway."""


def compare_with_local(
    problem: vulcan.Problem, samples: int, seed: int, time_limit: float | None = None
) -> tuple[float, float, vulcan.Result]:
    """Return the rewards of both, and the result of `Vulcan()`; -inf without a safe policy."""
    local, result = (
        vulcan.solve(problem, solver, samples=samples, seed=seed, time_limit=time_limit)
        for solver in (vulcan.LocalVulcan(), vulcan.Vulcan())
    )
    return _earn(result), _earn(local), result


def find_loss(reward: float, local: float) -> float:
    """Return the loss relative to the local planner's reward; negative for a gain."""
    if local == -math.inf:
        return 0.0 if reward == -math.inf else -math.inf
    return (local - reward) / max(abs(local), 1e-9)


def _earn(result: vulcan.Result) -> float:
    if not result.safe:
        return -math.inf
    assert result.certificate is not None
    return float(result.certificate.reward)
