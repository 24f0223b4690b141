"""The numbers that the paper prints, each with where it prints it."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALPHA_HIGH_LOSS",
    "ALPHA_MEAN_LOSS",
    "ALPHA_RANGE",
    "BANDIT_TABLE",
    "COMPLETE_LOSS",
    "COMPLETE_SECONDS",
    "CONVERGENCE_ERROR",
    "CONVERGENCE_SAME",
    "CONVERGENCE_SECONDS",
    "CONVERGENCE_SHARE",
    "DETERMINISTIC_TREE_SPEEDUP",
    "EXPLORATION_HISTORIES",
    "EXPLORATION_SECONDS",
    "FORWARD_SEARCH_SECONDS",
    "PENALTY_TIE",
    "RAO_STAR_SECONDS",
    "RAO_STAR_SPEEDUP",
    "SPEEDUP_HORIZON",
    "STOCHASTIC_GRAPH_SPEEDUP",
    "UNSOLVED_HORIZON",
]

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

ALPHA_HIGH_LOSS: Final = 6
"""Section "VulcanFS Suboptimality": percent that are exceeded in relatively small regions only."""

ALPHA_MEAN_LOSS: Final = 4.45
"""The same: average loss in percent over problems with any, horizon 4, Δ(x) = α x."""

ALPHA_RANGE: Final = (0.0005, 0.003)
"""The same: the range of α; beyond it there is no loss."""

SPEEDUP_HORIZON: Final = 6
"""Section "VulcanFS Run Time": the horizon of the speedup over the deterministic tree."""

DETERMINISTIC_TREE_SPEEDUP: Final = 600
"""The same: how many times as long the integer program over histories takes."""

STOCHASTIC_GRAPH_SPEEDUP: Final = 50
"""The same: how many times as long, or longer, the linear program over merged states takes."""

UNSOLVED_HORIZON: Final = 9
"""Section "Vulcan Convergence": no linear or integer program was solved here in two hours."""

FORWARD_SEARCH_SECONDS: Final = {9: 1080}
"""Figure "Mean absolute error in Vulcan solution": horizon to about the seconds of VulcanFS."""

PENALTY_TIE: Final = 125.0
"""Section "Risk Bounds as Penalties": below this penalty a3 is best, above it a1."""

CONVERGENCE_SECONDS: Final = 60
"""Section "Vulcan Convergence": the longest run time, horizon 9."""

CONVERGENCE_SHARE: Final = 0.06
"""The same: less than this share of the time of VulcanFS."""

CONVERGENCE_ERROR: Final = 0.08
"""The same: mean error in percent from VulcanFS after that time."""

CONVERGENCE_SAME: Final = 90
"""The same: percent of runs that return the very policy of VulcanFS after that time."""

RAO_STAR_SECONDS: Final = 3515.9
"""Section "Vulcan Performance Against Heuristic Search": time of RAO*, horizon 10."""

RAO_STAR_SPEEDUP: Final = 11.3
"""The same: how many times as long RAO* takes as Vulcan until its policies are complete."""

COMPLETE_SECONDS: Final = 310
"""The same: from this run time on Vulcan's policies were always complete."""

COMPLETE_LOSS: Final = 1.2
"""The same: mean suboptimality of those in percent."""

EXPLORATION_SECONDS: Final = 180
"""Section "Exploration of a Gaussian Process": run time."""

EXPLORATION_HISTORIES: Final = 3.5e13
"""The same: about the number of unique state histories, 8 actions and 4 outcomes in 9 steps."""
