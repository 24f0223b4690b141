"""Policies of a user's own, by risk and reward."""

from __future__ import annotations

import vulcan
from reproduction.figures.policy_space import plot_policy_space


def test_policies_of_ones_own() -> None:
    bound = vulcan.parse("0.01 * (1 - exp(-x))")
    ax = plot_policy_space({"some": [(1.0, 0.001)], "none": []}, bound, {"best": (2.0, 0.002)})
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[0] == "some"
    assert texts[-1] == "best"
    plot_policy_space({}, bound)
