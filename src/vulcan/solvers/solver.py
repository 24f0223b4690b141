"""What every solver offers to `vulcan.solve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vulcan.policy import Policy
from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.reader import ModelReader
from vulcan.result import Statistics, Status

__all__ = ["Finding", "Solver"]


@dataclass(frozen=True)
class Finding:
    """What a search found, before anybody has checked it.

    Attributes
    ----------
    status, explanation
        How it ended.
    policy
        The policy, or None.
    reward
        The expected reward that the search credits to it.
    credits
        Where the search evaluated the risk bound: every point, or the ends of an interval.
    statistics
        What the search took.
    """

    status: Status
    explanation: str
    policy: Policy | None
    reward: float
    credits: Sequence[float]
    statistics: Statistics


class Solver(Protocol):
    """A small frozen dataclass of parameters that can search."""

    def search(self, problem: Problem, reader: ModelReader, monitor: Monitor) -> Finding:
        """Search for a policy until done or the monitor wants to stop."""
