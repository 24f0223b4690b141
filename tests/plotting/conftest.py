"""Results to draw, and no windows to draw them in."""

import pytest

from tests.helpers.figures import PROBLEM, no_windows
from vulcan.domains import Bandit
from vulcan.planning.compare import compare
from vulcan.planning.frontier import trace_frontier

__all__ = ["comparison", "frontier", "no_windows"]


@pytest.fixture(scope="module")
def frontier():
    return trace_frontier(Bandit(horizon=4), levels=[-0.001, 0, 0.001, 0.002, 0.003, 0.0047])


@pytest.fixture(scope="module")
def comparison():
    return compare(PROBLEM, samples=20_000)
