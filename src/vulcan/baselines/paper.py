"""The paper's planners as printed: VulcanFS, and Vulcan with Cleanup; and UCT without a constraint.

Line by line in docs/theory/algorithms.md. The library's own `Vulcan` is another planner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from vulcan.baselines.forward_search import ForwardSearch
from vulcan.model.reader import ModelReader
from vulcan.parameters import knows_parameters
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor
from vulcan.sampling.local_vulcan import DEFAULT_POLICY, EXPLORATION, LocalVulcan, search_tree
from vulcan.solvers.base import Option, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.local_tests import (
    CREDIT,
    LocalConstraint,
    SequenceConstraint,
    make_local_test,
)


@knows_parameters
@dataclass(frozen=True)
class VulcanFS(ForwardSearch):
    """VulcanFS as the paper prints it: every history, under the paper's constraint.

    Parameters
    ----------
    local_test
        `SequenceConstraint()` with f₁, or with f = g (`credit="received"`) or an f of your own.
    cut_short
        As in `ForwardSearch`.
    """

    finds: ClassVar[str] = "the best policy that the paper's constraint admits, as printed"
    options: ClassVar[Sequence[Option]] = (CREDIT,)

    local_test: LocalConstraint = field(default_factory=SequenceConstraint)
    cut_short: bool = False

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        return cls(make_local_test({"local_test": "A", **given}))


@knows_parameters
@dataclass(frozen=True)
class PaperVulcan(LocalVulcan):
    """Vulcan as the paper prints it: algorithms 2 to 4, the same as `Vulcan.paper`.

    Its last policy is returned, incomplete wherever nothing was sampled, and nothing is proved.

    Parameters
    ----------
    exploration
        The constant c of UCT, in units of reward. The paper does not give its own; √2 is the
        theoretical value that it mentions.
    local_test, default_policy, bounded, as_printed, complete
        As in `LocalVulcan`. The paper leaves the default policy open; here it is random.
    """

    finds: ClassVar[str] = "the paper's planner as printed: its last policy, often incomplete"
    limits: ClassVar[Sequence[str]] = ("time_limit", "samples", "histories", "memory")
    options: ClassVar[Sequence[Option]] = (EXPLORATION, DEFAULT_POLICY)

    exploration: float = math.sqrt(2)
    local_test: LocalConstraint = field(default_factory=SequenceConstraint)
    default_policy: Literal["random", "greedy"] = "random"
    as_printed: bool = True

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        return cls(**given)


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
    endless: ClassVar[bool] = True
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
