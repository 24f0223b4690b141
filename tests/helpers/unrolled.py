"""Models unrolled, for tests that look at the graph itself."""

from __future__ import annotations

from typing import Any

import pytest

from vulcan.exact import search
from vulcan.graph.levels import Layers, Levels, build_levels, write_layers
from vulcan.graph.states import StateGraph
from vulcan.model.reader import ModelReader

__all__ = ["allow_evaluations", "unroll_layers", "unroll_levels"]


def unroll_levels(model: Any, **options: Any) -> Levels:
    """Return the levels of a model."""
    levels = build_levels(StateGraph(ModelReader(model)), **options)
    assert levels is not None
    return levels


def unroll_layers(model: Any, **options: Any) -> Layers:
    """Return the layered graph of a model."""
    return write_layers(unroll_levels(model, **options))


def allow_evaluations(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the default unroll no more than this many evaluations allow."""
    monkeypatch.setattr(search, "FEW_EVALUATIONS", count)
    monkeypatch.setattr(search, "MOST_EVALUATIONS", count)
    monkeypatch.setattr(search, "MERGED", -1.0)
