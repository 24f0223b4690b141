"""Codes that kernels return: no number has two meanings."""

from __future__ import annotations

from vulcan.kernels import codes


def test_all_codes_differ() -> None:
    numbers = [value for name, value in vars(codes).items() if name.isupper()]
    assert len(numbers) > 20
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0  # none is false, and none is a sentinel
