"""The parts of the report, in its order: one module each."""

from collections.abc import Sequence
from typing import Final

from reproduction.part import Part
from reproduction.parts.alpha import Alpha
from reproduction.parts.bandit_table import BanditTable
from reproduction.parts.concave import ConcaveBounds
from reproduction.parts.convergence import Convergence
from reproduction.parts.exploration import ExplorationMission
from reproduction.parts.failure_goes_on import FailureGoesOn
from reproduction.parts.heuristic_search import HeuristicSearch
from reproduction.parts.penalty import PenaltyExample
from reproduction.parts.planning_time import PlanningTime
from reproduction.parts.policy_space import PolicySpace
from reproduction.parts.regret import Regret
from reproduction.parts.slow_model import SlowModel
from reproduction.parts.small_figures import SmallFigures

__all__ = ["PARTS"]

PARTS: Final[Sequence[Part]] = (
    PolicySpace(),
    PenaltyExample(),
    ConcaveBounds(),
    SmallFigures(),
    BanditTable(),
    Alpha(),
    PlanningTime(),
    Convergence(),
    Regret(),
    HeuristicSearch(),
    ExplorationMission(),
    FailureGoesOn(),
    SlowModel(),
)
