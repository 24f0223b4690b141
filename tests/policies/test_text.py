"""Policies drawn as text."""

from __future__ import annotations

import vulcan
from tests.helpers.tables import Table
from vulcan import Policy


def test_drawing(policy: Policy) -> None:
    lines = str(policy).splitlines()
    assert lines[0] == "play 1  (fails 0.1 %)"
    assert lines[1].startswith("├─ 50.0 %  pays 0 → play")
    assert lines[-1].startswith("      └─ 63.7 %  pays 1 → play 1  (fails 0.1 %) …")
    assert policy.draw(depth=1).splitlines() == [
        "play 1  (fails 0.1 %)",
        "├─ 50.0 %  pays 0 → play 2  (fails 0.05 %) …",
        "└─ 50.0 %  pays 1 → play 1  (fails 0.1 %) …",
    ]
    short = policy.draw(depth=4, most_lines=5).splitlines()
    assert len(short) == 6
    assert "15 decision nodes" in short[-1]
    assert "nothing to decide" in str(
        vulcan.solve(
            vulcan.Problem(Table({}, 1), vulcan.Constant(0)), vulcan.ForwardSearch()
        ).policy
    )
