"""Numbers for people."""

from __future__ import annotations

import pytest

from vulcan.runtime.formatting import show_percent, show_probability, show_reward


@pytest.mark.parametrize(
    ("probability", "text", "percent"),
    [
        (0.0, "0.000000", "0 %"),
        (6.7e-50, "< 1e-12", "< 1e-10 %"),
        (9.9e-13, "< 1e-12", "< 1e-10 %"),
        (1e-12, "1.00e-12", "1e-10 %"),
        (1.267e-05, "1.27e-05", "0.0013 %"),
        (0.0005, "0.000500", "0.05 %"),
        (0.5, "0.500000", "50.0 %"),
        (1.0, "1.000000", "100.0 %"),
    ],
)
def test_tiny_probabilities_have_no_digits(probability, text, percent):
    assert show_probability(probability) == text
    assert show_percent(probability) == percent


def test_nothing_has_no_sign():
    assert [show_reward(reward) for reward in (-1e-10, -0.25)] == ["0.000000", "-0.250000"]
