from .pipeline import Lagrangian as Lagrangian
from .pipeline import Pareto as Pareto
from .pipeline import RewardBound as RewardBound
from .pipeline import bound_reward as bound_reward
