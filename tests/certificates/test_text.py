"""Certificates as people read them."""

from __future__ import annotations

import pytest

import vulcan
from tests.helpers.tables import one_action
from vulcan import Outcome
from vulcan.certificates.text import describe_certificate

RISKY = one_action(Outcome(0.5, 1.0, 1), Outcome.failure(0.5))
SAFE = one_action(Outcome(1.0, 1.0, 1))


@pytest.mark.parametrize(
    ("model", "level", "margin"),
    [
        (RISKY, 0.75, "holds until all risks are 1.5 times as large"),
        (RISKY, 0.5, "no room: would not hold if the risks were any larger"),
        (RISKY, 0.5002, "holds until all risks are 0.04 % larger"),
        (RISKY, 0.25, "would hold if all risks were at most 0.5 times as large"),
        (RISKY, -0.1, "would hold, if at all, only without any risk"),
        (RISKY, 1.0, "holds however large the risks are"),
        (SAFE, 0.0, "no risk at all"),
    ],
)
def test_the_margin_in_words(model: object, level: float, margin: str) -> None:
    policy = vulcan.solve(vulcan.Problem(model, 1.0)).policy
    problem = vulcan.Problem(model, level)
    rows = dict(describe_certificate(vulcan.certify(problem, policy), problem, len(policy)))
    assert rows["slack"].endswith(f"({margin})")
