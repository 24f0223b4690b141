"""Problems: a model and a risk bound, or an error."""

from __future__ import annotations

import pytest

import vulcan
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


def test_problem_refuses_what_is_none() -> None:
    with pytest.raises(vulcan.BoundError, match=r"vulcan\.Constant.*vulcan\.parse"):
        vulcan.Problem(Bandit(2), 0.01)
    with pytest.raises(vulcan.ModelError, match="has no method initial_state"):
        vulcan.Problem(object(), LINEAR)
