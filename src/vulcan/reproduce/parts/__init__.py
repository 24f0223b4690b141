"""The parts of the report, in its order: one module each."""

from collections.abc import Sequence
from typing import Final

from vulcan.reproduce.part import Part
from vulcan.reproduce.parts.alpha import Alpha
from vulcan.reproduce.parts.bandit_table import BanditTable
from vulcan.reproduce.parts.convergence import Convergence
from vulcan.reproduce.parts.exploration import ExplorationMission
from vulcan.reproduce.parts.heuristic_search import HeuristicSearch
from vulcan.reproduce.parts.penalty import PenaltyExample
from vulcan.reproduce.parts.planning_time import PlanningTime
from vulcan.reproduce.parts.policy_space import PolicySpace
from vulcan.reproduce.parts.slow_model import SlowModel

__all__ = ["PARTS"]

PARTS: Final[Sequence[Part]] = (
    PolicySpace(),
    PenaltyExample(),
    BanditTable(),
    Alpha(),
    PlanningTime(),
    Convergence(),
    HeuristicSearch(),
    ExplorationMission(),
    SlowModel(),
)
