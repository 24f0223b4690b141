from .animation import (
    animate_mission as animate_mission,
)
from .animation import (
    check_animation_file as check_animation_file,
)
from .choice import choose_outcomes as choose_outcomes
from .choice import describe_outcome as describe_outcome
from .journey_walk import follow_policy as follow_policy
from .mission import plot_mission as plot_mission
from .outcomes import plot_outcomes as plot_outcomes
from .risk_reward import plot_risk_reward as plot_risk_reward
from .visits import plot_visits as plot_visits
