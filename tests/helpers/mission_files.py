"""A small mission in TOML, and where the example is."""

from __future__ import annotations

from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "mission.toml"

SMALL = """
bound = "0.001*x"
horizon = 2
degree = 2
first_sample = 1.3

[map]
columns = 5
rows = 4
start = [1, 2]

[[map.obstacles]]
rectangle = [2.2, 3.8, 1.2, 2.8]
"""
