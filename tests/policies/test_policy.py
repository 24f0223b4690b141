"""Policies compared."""

from __future__ import annotations

import vulcan
from vulcan import Policy
from vulcan.domains import Bandit


def test_equality_is_about_what_a_policy_does(policy: Policy) -> None:
    again = vulcan.solve(
        vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), vulcan.ForwardSearch()
    ).policy
    other = vulcan.solve(
        vulcan.Problem(Bandit(4), vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy
    assert policy == again
    assert policy != other
    assert policy != "policy"
