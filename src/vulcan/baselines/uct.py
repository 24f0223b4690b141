"""UCT: Monte Carlo tree search without a constraint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from vulcan.model.reader import ModelReader
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor
from vulcan.sampling.local_vulcan import DEFAULT_POLICY, EXPLORATION, LocalVulcan, search_tree
from vulcan.solvers.base import Option, Options, Solver
from vulcan.solvers.constraints import LocalConstraint
from vulcan.solvers.finding import Finding


@dataclass(frozen=True)
class UCT(Solver):
    """Search as `LocalVulcan` does, without any constraint: the best reward, whatever the risk.

    Its certificate says whether the policy satisfies the bound all the same.

    Parameters
    ----------
    exploration, default_policy
        As in `LocalVulcan`.
    """

    finds: ClassVar[str] = "the best reward, whatever the risk; the certificate says if it passes"
    method: ClassVar[str] = "Monte Carlo tree search without a constraint"
    limits: ClassVar[Sequence[str]] = ("time_limit", "samples", "histories", "memory")
    sampling: ClassVar[bool] = True
    options: ClassVar[Sequence[Option]] = (EXPLORATION, DEFAULT_POLICY)

    exploration: float = 0.1
    default_policy: Literal["random", "greedy"] = "greedy"

    def __post_init__(self) -> None:
        self._unconstrained()

    def _unconstrained(self) -> LocalVulcan:
        return LocalVulcan(self.exploration, LocalConstraint(), self.default_policy)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        return search_tree(self._unconstrained(), problem, reader, monitor, options, name=self)
