"""Vulcan: the anytime Monte Carlo planner, and UCT, the same without a constraint.

How a run goes is in `vulcan.solvers.planner`, how it samples in `vulcan.kernels.tree_search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from vulcan.constraint import (
    LocalConstraint,
    NoConstraint,
    SequenceConstraint,
    SurvivalConstraint,
)
from vulcan.errors import OptionError
from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.reader import ModelReader
from vulcan.solvers.kernel_run import require_constraint
from vulcan.solvers.planner import Planner
from vulcan.solvers.solver import Finding, Options
from vulcan.solvers.tree_run import DefaultPolicy

__all__ = ["UCT", "Vulcan"]


@dataclass(frozen=True)
class Vulcan:
    """Sample histories, delete what a local constraint refuses, and return the best policy found.

    Parameters
    ----------
    exploration
        The constant of UCT, in units of the range of reward that samples have collected.
    constraint
        The local constraint: `SurvivalConstraint()` or `SequenceConstraint(...)`.
    default_policy
        Which untried action of a history to try first: the "greedy" one with the largest expected
        reward, a "random" one, or what a function `default_policy(history, state)` says. It gets
        pairs (action label, outcome label) and the last state, and returns the label of an action.
    bounded
        Ask the model's `reward_to_go_bound` for every history, and close actions that cannot win.
        It costs time, and saves answers of the model: for models that are slow to answer.
    counted
        Sample failures and weigh values by counts, as the paper prints it, instead of using the
        probabilities; then nothing is ever proved.
    """

    exploration: float = 1.0
    constraint: LocalConstraint = field(default_factory=SurvivalConstraint)
    default_policy: Literal["random", "greedy"] | DefaultPolicy = "greedy"
    bounded: bool = False
    counted: bool = False

    def __post_init__(self) -> None:
        require_constraint(self.constraint)
        if not 0 <= self.exploration < math.inf:
            raise OptionError(f"exploration must be a number from 0 on, not {self.exploration!r}")
        if self.bounded and self.counted:
            raise OptionError("bounded needs solved values, which counted does not have")
        if self.default_policy not in ("random", "greedy") and not callable(self.default_policy):
            raise OptionError(
                "default_policy must be 'random', 'greedy' or a function, "
                f"not {self.default_policy!r}"
            )

    @classmethod
    def paper(cls, exploration: float = 1.0) -> Vulcan:
        """Return the algorithm as printed: constraint A with f₁, failures sampled, counts.

        Parameters
        ----------
        exploration
            The constant of UCT, which the paper does not give.
        """
        return cls(exploration, SequenceConstraint(), "random", counted=True)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search; used by `vulcan.solve`."""
        return Planner(self, problem, reader, monitor, options).search()


@dataclass(frozen=True)
class UCT:
    """The same search without any constraint: the best reward, whatever the risk.

    Its certificate says whether the policy satisfies the bound all the same.

    Parameters
    ----------
    exploration, default_policy
        As in `Vulcan`.
    """

    exploration: float = 1.0
    default_policy: Literal["random", "greedy"] | DefaultPolicy = "greedy"

    def __post_init__(self) -> None:
        self._unconstrained()

    def _unconstrained(self) -> Vulcan:
        return Vulcan(self.exploration, NoConstraint(), self.default_policy)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search; used by `vulcan.solve`."""
        return Planner(self._unconstrained(), problem, reader, monitor, options, name=self).search()
