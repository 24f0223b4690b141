"""Trees of tree search, compared with files."""

from __future__ import annotations

import pytest

from tests.golden import DOCUMENTS, read_golden


@pytest.mark.parametrize("name", ["tree.json", "paper-tree.json"])
def test_golden_trees(name: str) -> None:
    assert DOCUMENTS[name]() == read_golden(name)
