"""Counts of lost workers."""

from __future__ import annotations

from vulcan.executors.losses import count_losses, current_losses


def test_the_innermost_count_counts() -> None:
    current_losses().count += 1  # nobody counts
    with count_losses() as outer:
        current_losses().count += 1
        with count_losses() as inner:
            current_losses().count += 2
        assert (outer.count, inner.count) == (1, 2)
