"""Searches in small steps, of which diaries are kept in tests/golden/diaries.json.

Problems are so small that plain kernels take well under a second. Arrays begin as short, and looks
at the clock come as often, as in searches that are a million times as large.
"""

from __future__ import annotations

from tests.helpers import diary_layers, diary_prices, diary_trees

STEPS = diary_prices.STEPS | diary_trees.STEPS | diary_layers.STEPS
