"""Figures of results: one file each, what is drawn found apart from the drawing.

A figure is drawn into given `Axes`, or into a new figure of its own that no window shows; `save`
writes it to a file. Markers and lines differ in shape, not only in colour, so that a figure can be
read when it is printed in grey. Only this package needs matplotlib, and only when something is
drawn.

Exploration missions are drawn on their map. `follow_policy` finds all histories of a policy
(`journeys`, `journey_walk`), `choose_outcomes` the most telling ones (`routes`, `telling`), and
then there is a figure for one of them (`mission`, `animation`), for several side by side
(`outcomes`) and for all (`visits`, `risk_reward`). `curves`, `convergence` and `policy_space` are
what `vulcan reproduce` draws of the paper's experiments; they take plain numbers.
"""

from vulcan.plotting.animation import animate_mission, check_animation_file
from vulcan.plotting.comparison import plot_comparison
from vulcan.plotting.convergence import Curve, Panel, plot_convergence
from vulcan.plotting.curves import find_envelope, plot_curves, plot_penalties
from vulcan.plotting.frontier import plot_frontier
from vulcan.plotting.journey_walk import follow_policy
from vulcan.plotting.mission import plot_mission
from vulcan.plotting.outcomes import plot_outcomes
from vulcan.plotting.policy_space import plot_policy_space
from vulcan.plotting.risk_reward import plot_risk_reward
from vulcan.plotting.style import check_figure_file, save
from vulcan.plotting.telling import choose_outcomes, describe_outcome
from vulcan.plotting.visits import plot_visits

__all__ = [
    "Curve",
    "Panel",
    "animate_mission",
    "check_animation_file",
    "check_figure_file",
    "choose_outcomes",
    "describe_outcome",
    "find_envelope",
    "follow_policy",
    "plot_comparison",
    "plot_convergence",
    "plot_curves",
    "plot_frontier",
    "plot_mission",
    "plot_outcomes",
    "plot_penalties",
    "plot_policy_space",
    "plot_risk_reward",
    "plot_visits",
    "save",
]
