"""Certificates as people read them."""

from __future__ import annotations

import pytest

import vulcan
from tests.helpers.tables import one_action
from vulcan import Outcome
from vulcan.certificates import certificate as certificates
from vulcan.certificates.text import describe_certificate, judge_certificate

RISKY = one_action(Outcome(0.5, 1.0, 1), Outcome.failure(0.5))
SAFE = one_action(Outcome(1.0, 1.0, 1))


@pytest.mark.parametrize(
    ("model", "level", "margin"),
    [
        (RISKY, 0.75, "holds until all risks are 1.5 times as large"),
        (RISKY, 0.5, "no room for larger risks"),
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


def test_too_close_to_say_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "MOST_WAYS", 0)
    policy = vulcan.solve(vulcan.Problem(RISKY, 1.0)).policy
    problem = vulcan.Problem(RISKY, vulcan.Linear(1e9, 0.5 - 1e9 * 0.5))
    certificate = vulcan.certify(problem, policy)
    assert certificate.undecided
    assert judge_certificate(certificate)[0] == "✗ too close to say"
    rows = dict(describe_certificate(certificate, problem, len(policy)))
    assert rows["risk"].endswith("TOO CLOSE TO SAY")
    assert " ± " in rows["allowed risk"]
    assert rows["slack"].endswith("(roundings decide)")
    assert "too close to say" in certificate._repr_html_()


def test_errors_are_shown_where_they_matter() -> None:
    outcomes = [Outcome(0.5, 1e17 / 3, 1), Outcome(0.5, -1e17 / 3, 2)]
    model = one_action(*outcomes)
    result = vulcan.solve(vulcan.Problem(model, 0.0))
    rows = dict(describe_certificate(result.certificate, result.problem, 1))
    assert " ± " in rows["reward"]
    assert " ± " not in rows["risk"]
