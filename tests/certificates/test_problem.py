"""Problems: a model and a risk bound, or an error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import vulcan
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


def test_problem_understands_numbers_and_strings() -> None:
    assert vulcan.Problem(Bandit(2), 0.01).risk_bound == vulcan.Constant(0.01)
    assert vulcan.Problem(Bandit(2), Fraction(1, 4)).risk_bound == vulcan.Constant(0.25)
    assert vulcan.Problem(Bandit(2), np.float32(0.5)).risk_bound == vulcan.Constant(0.5)
    assert vulcan.Problem(Bandit(2), "0.002*x").risk_bound == LINEAR
    assert vulcan.Problem(Bandit(2), LINEAR) == vulcan.Problem(Bandit(2), risk_bound="0.002*x")


@pytest.mark.parametrize("given", [None, True, [0.01], vulcan.Constant, float("nan"), "x**2 +"])
def test_problem_refuses_what_is_no_bound(given: object) -> None:
    with pytest.raises(vulcan.BoundError):
        vulcan.Problem(Bandit(2), given)


def test_problem_says_what_a_bound_is() -> None:
    with pytest.raises(vulcan.BoundError, match=r"a number, a string .*vulcan\.Concave, not None"):
        vulcan.Problem(Bandit(2), None)


def test_problem_refuses_what_is_no_model() -> None:
    with pytest.raises(vulcan.ModelError, match="has no method initial_state"):
        vulcan.Problem(object(), LINEAR)


@pytest.mark.parametrize("search", [vulcan.solve, vulcan.compare])
def test_a_model_alone_is_no_problem(search: Callable[..., object]) -> None:
    missing = "a Problem is missing.*"
    with pytest.raises(
        vulcan.OptionError, match=missing + r"solve\(Problem\(model, \"0.002\*x\"\)\)"
    ):
        search(Bandit(2))
    with pytest.raises(vulcan.OptionError, match=missing + r"Problem\(model, Constant\(0.1\)\)"):
        search(Bandit(2), vulcan.Constant(0.1))


def test_a_certificate_of_a_model_alone_is_refused() -> None:
    problem = vulcan.Problem(Bandit(3), 0.01)
    policy = vulcan.solve(problem).policy
    wanted = r"a Problem is missing.*certify\(Problem\(model, .*\), policy\); this is Bandit"
    with pytest.raises(vulcan.OptionError, match=wanted):
        vulcan.certify(problem.model, policy)
