"""Vulcan: the algorithm of the paper by its name, gaps, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

import vulcan
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


def test_the_algorithm_of_the_paper_has_both_names() -> None:
    assert vulcan.Vulcan.paper() == vulcan.LocalVulcan.paper()
    assert vulcan.Vulcan.paper(0.5) == vulcan.LocalVulcan.paper(0.5) != vulcan.Vulcan.paper()


def test_a_policy_says_who_found_it() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(4), LINEAR), vulcan.Vulcan(), samples=100)
    assert result.policy.about.solver == repr(vulcan.Vulcan())


def test_a_target_gap_is_kept() -> None:
    problem = vulcan.Problem(Bandit(7), LINEAR)
    best = vulcan.solve(problem, vulcan.LocalVulcan()).certificate.reward
    result = vulcan.solve(problem, vulcan.Vulcan(), gap=0.2, samples=10**6)
    assert result.certificate.reward >= 0.8 * best
    assert result.statistics.samples < 10**6


@pytest.mark.parametrize("parameters", [{"exploration": -1.0}, {"exploration": math.nan}])
def test_impossible_parameters_are_refused(parameters: Any) -> None:
    with pytest.raises(vulcan.OptionError, match=next(iter(parameters))):
        vulcan.Vulcan(**parameters)
