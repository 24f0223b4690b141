"""Searches that are stopped."""

from __future__ import annotations

import vulcan
from vulcan import Result, Status
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)
NINE = vulcan.Problem(Bandit(9), LINEAR)
LARGE = vulcan.Problem(Bandit(14), LINEAR)
SOLVERS = [vulcan.LocalVulcan(), vulcan.LocalVulcan.paper(), vulcan.UCT()]


def require_stopped(result: Result, by: str) -> None:
    """Require that a search was stopped by something, and says so."""
    assert result.status is Status.STOPPED
    assert result.stopped_by == by
    assert f"stopped by {by} after {result.statistics.samples:,} samples" in result.explanation
