"""Kernels that are there before anything is timed."""

from __future__ import annotations

import pytest

import vulcan
from vulcan.domains import Bandit


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile or load all kernels, so that what is timed is the search."""
    problem = vulcan.Problem(Bandit(2), vulcan.Linear(0.002))
    for complete in (True, False):
        vulcan.solve(problem, vulcan.LocalVulcan(complete=complete))
