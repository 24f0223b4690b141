"""The numbers that the paper prints, each with where it prints it."""

from __future__ import annotations

from typing import Final

__all__ = ["BANDIT_TABLE"]

BANDIT_TABLE: Final = {
    2: (0.9906, 0.9906, 0.0),
    3: (1.5280, 1.4892, 2.54),
    4: (2.0627, 2.0167, 2.23),
    5: (2.6068, 2.5201, 3.32),
    6: (3.1518, 3.0686, 2.64),
    7: (3.7006, 3.5959, 2.83),
    8: (4.2526, 4.1334, 2.80),
}
"""Table "Cumulative reward, and suboptimality": horizon to optimum, VulcanFS, loss in percent."""
