"""Certificates of small policies, all their numbers bit for bit, beside the true ones."""

from __future__ import annotations

from fractions import Fraction

import pytest

import vulcan
from tests.golden import read_golden
from tests.helpers.certified import CERTIFIED, record_certificate

RECORDED = read_golden("certificates.json")


def test_every_case_is_recorded() -> None:
    assert list(RECORDED) == list(CERTIFIED)


@pytest.mark.parametrize("name", CERTIFIED)
def test_nothing_has_changed(name: str) -> None:
    found, recorded = record_certificate(CERTIFIED[name]), dict(RECORDED[name])
    margins = [float(numbers.pop("margin")) for numbers in (found, recorded)]
    assert margins[0] == pytest.approx(margins[1], rel=1e-6)
    assert found == recorded


@pytest.mark.parametrize("name", CERTIFIED)
def test_what_is_recorded_is_true(name: str) -> None:
    case, recorded = CERTIFIED[name], RECORDED[name]
    exact = vulcan.certify(case.problem, case.policy, exact=True)
    for number in ("reward", "risk", "allowed", "frontier"):
        off = abs(Fraction(float(recorded[number])) - Fraction(getattr(exact, number)))
        error = float(recorded[f"{number}_error"])
        assert off <= Fraction(error)
        # A thousand roundings of the largest number that was added up, at the most.
        largest = max(1.0, abs(float(recorded[number])))
        assert error < 1e-13 * largest or name.startswith(("cancelling", "steep", "buried"))
    assert recorded["decided"] in ("None", str(exact.passes))
    assert (float(recorded["margin"]) >= 1) == exact.passes
