"""Vulcan: the anytime planner for problems in which every history is a state of its own.

One tree is searched for several prices of failure, and a plan follows one price here and another
there, so that the allowed risk is spent (`vulcan.solvers.tree.price_planner`,
docs/theory/beyond.md). The algorithm of the paper is `Vulcan.paper()`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from vulcan.certificates.problem import Problem
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.tree.local import EXPLORATION, PAPER, LocalVulcan, require_exploration
from vulcan.solvers.tree.local_planner import LocalPlanner
from vulcan.solvers.tree.price_planner import PricePlanner

__all__ = ["Vulcan"]

FEWEST_LEVELS: Final = 4
"""A tree of fewer has no parts that are worth another process."""


@dataclass(frozen=True)
class Vulcan(Solver):
    """Sample histories for several prices of failure, and return the best policy found.

    Of a compiled model several threads sample at once (`solve(..., workers=2)`). A model that has
    `value_to_go_bound` or `reward_to_go_bound` lets it prove sooner what no policy can earn more
    than. It returns complete policies; asked for others (`complete=False`), it is `LocalVulcan`.

    Parameters
    ----------
    exploration
        The constant of UCT, in units of the range of reward that samples have collected; a little
        more near the start, and less further on.
    """

    finds: ClassVar[str] = "the best policy found so far, and what no policy can earn more than"
    method: ClassVar[str] = "Monte Carlo tree search for several prices of failure, and fronts"
    sampling: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC
    threads: ClassVar[bool] = True
    options: ClassVar[Sequence[Option]] = (PAPER, EXPLORATION)

    exploration: float = 0.1

    def __post_init__(self) -> None:
        require_exploration(self.exploration)

    def spreads(self, reader: ModelReader) -> bool:
        return find_compiled(reader) is not None and reader.levels >= FEWEST_LEVELS

    @classmethod
    def paper(cls, exploration: float = math.sqrt(2)) -> LocalVulcan:
        """Return the algorithm as the paper prints it; see `LocalVulcan.paper`."""
        return LocalVulcan.paper(exploration)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Solver:
        tuning = dict(given)
        return cls.paper(**tuning) if tuning.pop("paper", False) else cls(**tuning)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        if not options.complete:
            # What a policy with a frontier may do there, only a local constraint says.
            monitor.limits = replace(monitor.limits, gap=None)
            local = LocalVulcan(self.exploration)
            return LocalPlanner(local, problem, reader, monitor, options, name=self).search()
        return PricePlanner(self, problem, reader, monitor, options).search()
