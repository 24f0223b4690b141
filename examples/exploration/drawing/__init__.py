"""Exploration missions, drawn on their map.

`follow_policy` finds all histories of a policy (`journeys`), `choose_outcomes` the most telling
ones (`outcomes`), and `figures` draws one of them, several side by side, or all.
"""

from .figures import (
    animate_mission,
    check_animation_file,
    plot_mission,
    plot_outcomes,
    plot_risk_reward,
    plot_visits,
)
from .journeys import follow_policy
from .outcomes import choose_outcomes, describe_outcome

__all__ = [
    "animate_mission",
    "check_animation_file",
    "choose_outcomes",
    "describe_outcome",
    "follow_policy",
    "plot_mission",
    "plot_outcomes",
    "plot_risk_reward",
    "plot_visits",
]
