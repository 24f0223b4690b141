"""Models unrolled, for tests that look at the graph itself."""

from __future__ import annotations

from typing import Any

from vulcan.graphs.layered_graph import Layers, write_layers
from vulcan.graphs.levels import Levels, build_levels
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader

__all__ = ["unroll_layers", "unroll_levels"]


def unroll_levels(model: Any, **options: Any) -> Levels:
    """Return the levels of a model."""
    levels = build_levels(StateGraph(ModelReader(model)), **options)
    assert levels is not None
    return levels


def unroll_layers(model: Any, **options: Any) -> Layers:
    """Return the layered graph of a model."""
    return write_layers(unroll_levels(model, **options))
