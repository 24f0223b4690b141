"""Policies of forward search, compared with files."""

from __future__ import annotations

import pytest

from tests.golden import HORIZONS, find_policy, read_golden


@pytest.mark.parametrize("letter", ["A", "B"])
@pytest.mark.parametrize("horizon", HORIZONS)
def test_golden_policies(letter: str, horizon: int) -> None:
    found, golden = find_policy(horizon, letter), read_golden(f"bandit-{horizon}-{letter}.json")
    assert found["policy"] == golden["policy"]
    assert found["reward"] == pytest.approx(golden["reward"], abs=1e-12)
    assert found["risk"] == pytest.approx(golden["risk"], abs=1e-12)
