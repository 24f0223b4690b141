"""Options of tree searches that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

import vulcan
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"samples": -1}, "samples"),
        ({"samples": float("nan")}, "samples"),
        ({"histories": -1}, "histories"),
        ({"memory": -1}, "memory"),
        ({"time_limit": -1}, "time_limit"),
        ({"time_limit": float("nan")}, "time_limit"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], named: str) -> None:
    with pytest.raises(vulcan.OptionError, match=named):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.LocalVulcan(), **options)


@pytest.mark.parametrize("exploration", [-1, -1e-9, float("nan")])
def test_exploration_that_makes_no_sense(exploration: float) -> None:
    with pytest.raises(vulcan.OptionError, match="exploration"):
        vulcan.LocalVulcan(exploration)
    with pytest.raises(vulcan.OptionError, match="exploration"):
        vulcan.LocalVulcan.paper(exploration)
    with pytest.raises(vulcan.OptionError, match="exploration"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.UCT(exploration), samples=1)


@pytest.mark.parametrize("limit", ["samples", "memory"])
def test_forward_search_refuses_limits_of_others(limit: str) -> None:
    with pytest.raises(vulcan.OptionError, match=f"ForwardSearch has no limit '{limit}'"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.ForwardSearch(), **{limit: 10})
