"""LocalVulcan: the paper's anytime planner with a local constraint, and UCT, without one.

How a run goes is in `vulcan.solvers.tree.local_planner`, how it samples in
`vulcan.kernels.tree_search`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Option, Options, Solver
from vulcan.solvers.constraints import (
    CONSTRAINT,
    CREDIT,
    LocalConstraint,
    NoConstraint,
    SequenceConstraint,
    SurvivalConstraint,
    make_constraint,
    require_constraint,
)
from vulcan.solvers.finding import Finding
from vulcan.solvers.tree.local_planner import LocalPlanner
from vulcan.solvers.tree.sampling import DefaultPolicy

__all__ = ["EXPLORATION", "PAPER", "UCT", "LocalVulcan"]


EXPLORATION: Final = Option(
    "exploration",
    float,
    "How much to try what looks worse, in units of the range of reward; with --paper, in units of "
    "reward, and √2 by default.",
    default="0.1",
)
PAPER: Final = Option(
    "paper",
    bool,
    "The algorithm as it was printed, with constraint A, counts instead of probabilities, and a "
    "literal constant.",
)


def require_exploration(exploration: float) -> None:
    """Refuse what is no constant of UCT."""
    if not 0 <= exploration < math.inf:
        raise OptionError(f"exploration must be a number from 0 on, not {exploration!r}")


@dataclass(frozen=True)
class LocalVulcan(Solver):
    """Sample histories, delete what a local constraint refuses, and return the best policy found.

    Parameters
    ----------
    exploration
        The constant of UCT, in units of the range of reward that samples have collected. Whatever
        it is, every action gets a twentieth of an even share of samples, unless as_printed.
    constraint
        The local constraint: `SurvivalConstraint()` or `SequenceConstraint(...)`.
    default_policy
        Which untried action of a history to try first: the "greedy" one with the largest expected
        reward (one that ends the mission only if it earns more than going on did so far), a
        "random" one, or what a function `default_policy(history, state)` says. It gets
        pairs (action label, outcome label) and the last state, and returns the label of an action.
    bounded
        Ask the model's `reward_to_go_bound` for every history, and close actions that cannot win.
        It costs time, and saves answers of the model: for models that are slow to answer.
    as_printed
        Run algorithms 2 to 4 as the paper prints them (docs/theory/algorithms.md): a literal
        constant of UCT, failures sampled, values weighed by counts instead of probabilities,
        cleanup instead of completion, and the last policy instead of the best. Then nothing
        is ever proved.
    """

    finds: ClassVar[str] = "the best policy found so far, within a local constraint"
    method: ClassVar[str] = "Monte Carlo tree search"
    sampling: ClassVar[bool] = True
    options: ClassVar[Sequence[Option]] = (CONSTRAINT, CREDIT, PAPER, EXPLORATION)

    exploration: float = 0.1
    constraint: LocalConstraint = field(default_factory=SurvivalConstraint)
    default_policy: Literal["random", "greedy"] | DefaultPolicy = "greedy"
    bounded: bool = False
    as_printed: bool = False

    def __post_init__(self) -> None:
        require_constraint(self.constraint)
        require_exploration(self.exploration)
        if self.bounded and self.as_printed:
            raise OptionError(
                "bounded needs solved values, which the algorithm as printed does not have"
            )
        if self.default_policy not in ("random", "greedy") and not callable(self.default_policy):
            raise OptionError(
                "default_policy must be 'random', 'greedy' or a function, "
                f"not {self.default_policy!r}"
            )

    @classmethod
    def paper(cls, exploration: float = math.sqrt(2)) -> LocalVulcan:
        """Return the algorithm as printed, with constraint A and f₁.

        Parameters
        ----------
        exploration
            The constant of UCT, in units of reward. The paper does not give its own; √2 is the
            theoretical value that it mentions.
        """
        return cls(exploration, SequenceConstraint(), "random", as_printed=True)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> LocalVulcan:
        tuning = dict(given)
        if tuning.pop("paper", False):
            if "constraint" in tuning or "credit" in tuning:
                raise OptionError(
                    "--paper has a constraint of its own; omit --constraint and --credit"
                )
            return cls.paper(**tuning)
        # A target gap needs upper bounds.
        bounded = limits.gap is not None
        return cls(constraint=make_constraint(tuning), bounded=bounded, **tuning)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        return LocalPlanner(self, problem, reader, monitor, options).search()


@dataclass(frozen=True)
class UCT(Solver):
    """The same search without any constraint: the best reward, whatever the risk.

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
    options: ClassVar[Sequence[Option]] = (EXPLORATION,)

    exploration: float = 0.1
    default_policy: Literal["random", "greedy"] | DefaultPolicy = "greedy"

    def __post_init__(self) -> None:
        self._unconstrained()

    def _unconstrained(self) -> LocalVulcan:
        return LocalVulcan(self.exploration, NoConstraint(), self.default_policy)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        return LocalPlanner(
            self._unconstrained(), problem, reader, monitor, options, name=self
        ).search()
