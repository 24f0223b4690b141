"""Verdicts of certificates: safe, not safe, not complete or too close to say, and who decides."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import vulcan
from tests.helpers.certified import TRIP
from tests.helpers.plans import build_merged
from tests.helpers.tables import one_action
from vulcan import Outcome
from vulcan.certificate import certify as certificates
from vulcan.certificate.certify import Certificate, Judgement, certify, decide
from vulcan.certificate.sums import Sum
from vulcan.numerics import TOLERANCE

EDGE = Fraction(TOLERANCE)
FAIR = one_action(Outcome(0.5, 1.0, 1), Outcome.failure(0.5))


def make(**given: Any) -> Certificate:
    """Return a certificate that is safe, but for what is given."""
    numbers = {"reward": 1.25, "risk": 0.25, "allowed": 0.5, "frontier": 0.0}
    errors = {f"{name}_error": 0.0 for name in numbers}
    others = {"margin": 1.0, "complete": True, "exact": False, "refined": False}
    return Certificate(
        **{**numbers, **errors, **others, "decided": None, "evaluations": 1, **given}
    )


@pytest.mark.parametrize(
    ("allowed", "risk", "verdict"),
    [
        ((0, 0), (EDGE, 0), True),
        ((0, 0), (EDGE * 1001 / 1000, 0), False),
        # What may be off counts on both sides.
        ((Fraction(1, 8), Fraction(1, 8)), (EDGE, 0), True),
        ((Fraction(1, 8), Fraction(1, 8)), (EDGE + Fraction(1, 10**9), 0), None),
        ((Fraction(1, 8), Fraction(1, 8)), (Fraction(1, 4) + EDGE, 0), None),
        ((Fraction(1, 8), Fraction(1, 8)), (Fraction(1, 4) + 2 * EDGE, 0), False),
        ((0.5, 0), (Fraction(3, 8), Fraction(1, 8)), True),
        ((0.5, 0), (Fraction(7, 16), Fraction(1, 8)), None),
        ((0.5, 0), (Fraction(5, 8) + EDGE, Fraction(1, 8)), None),
        ((0.5, 0), (Fraction(3, 4), Fraction(1, 8)), False),
        ((0.5, math.inf), (0.1, 0), None),
        ((-math.inf, 0), (0.0, 0), False),
    ],
)
def test_who_passes(allowed: Any, risk: Any, verdict: bool | None) -> None:
    assert decide(Sum(*allowed), Sum(*risk)) is verdict
    errors = {"allowed_error": allowed[1], "risk_error": risk[1]}
    certificate = make(allowed=allowed[0], risk=risk[0], **errors)
    assert certificate.passes is (verdict is True)
    assert certificate.undecided is (verdict is None)
    assert certificate.safe is (verdict is True)


def test_what_fractions_decided_stands() -> None:
    assert make(decided=True, allowed=0.1).passes
    assert not make(decided=False).passes
    assert not make(decided=False).undecided


def test_a_judgement_has_no_errors() -> None:
    def judge(slack: float, complete: bool = True) -> Judgement:
        return Judgement(reward=1.0, risk=-slack, allowed=0.0, complete=complete, frontier=0.0)

    assert judge(-TOLERANCE).passes
    assert judge(-TOLERANCE).slack == -TOLERANCE
    assert not judge(-1.001 * TOLERANCE).passes
    assert judge(0.0).safe
    assert not judge(-1.0).safe
    assert judge(0.0, complete=False).passes
    assert not judge(0.0, complete=False).safe


def test_fractions_decide_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two ways, at the edge.
    problem = vulcan.Problem(FAIR, vulcan.Constant(0.5 - TOLERANCE))
    for most, refined in ((2, True), (1, False)):
        monkeypatch.setattr(certificates, "MOST_WAYS", most)
        certificate = certify(problem, build_merged(FAIR))
        assert certificate.refined is refined
        assert certificate.decided is (True if refined else None)
        assert certificate.undecided is not refined
        exact = certify(problem, build_merged(FAIR), exact=True)
        assert exact.passes
        assert not exact.refined
        assert exact.decided is None


def test_a_policy_of_another_model_is_refused() -> None:
    other = replace(TRIP, table={**TRIP.table, 0: {"go": TRIP.table[1]["go"]}})
    with pytest.raises(vulcan.errors.MismatchError):
        certify(vulcan.Problem(other, 1.0), build_merged(TRIP))
    # The same answers along the policy do not suffice: the start has one more action.
    more = replace(TRIP, table={**TRIP.table, 0: {**TRIP.table[0], "on": TRIP.table[1]["go"]}})
    with pytest.raises(vulcan.errors.MismatchError):
        certify(vulcan.Problem(more, 1.0), build_merged(TRIP))
