"""A report of the reproduction."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduction import reproduce


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the parts that take no time."""
    made = tmp_path_factory.mktemp("report")
    reproduce(made, quick=True, only=["penalty", "policy-space"], parallel=1)
    return made
