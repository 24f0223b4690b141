"""The paper's planners as printed, under the paper's names: VulcanFS, and Vulcan with Cleanup.

Line by line in docs/theory/algorithms.md. The library's own `Vulcan` is another planner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from vulcan.baselines.forward_search import ForwardSearch
from vulcan.runtime.limits import Limits
from vulcan.sampling.local_vulcan import DEFAULT_POLICY, EXPLORATION, LocalVulcan
from vulcan.solvers.base import Option
from vulcan.solvers.constraints import (
    CREDIT,
    LocalConstraint,
    SequenceConstraint,
    make_constraint,
)


@dataclass(frozen=True)
class VulcanFS(ForwardSearch):
    """VulcanFS as the paper prints it: every history, under the paper's constraint.

    Parameters
    ----------
    constraint
        `SequenceConstraint()` with f₁, or with f = g (`credit="received"`) or an f of your own.
    cut_short
        As in `ForwardSearch`.
    """

    finds: ClassVar[str] = "the best policy that the paper's constraint admits, as printed"
    options: ClassVar[Sequence[Option]] = (CREDIT,)

    constraint: LocalConstraint = field(default_factory=SequenceConstraint)
    cut_short: bool = False

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        return cls(make_constraint({"constraint": "A", **given}))


@dataclass(frozen=True)
class PaperVulcan(LocalVulcan):
    """Vulcan as the paper prints it: algorithms 2 to 4, the same as `Vulcan.paper`.

    Its last policy is returned, incomplete wherever nothing was sampled, and nothing is proved.

    Parameters
    ----------
    exploration
        The constant c of UCT, in units of reward. The paper does not give its own; √2 is the
        theoretical value that it mentions.
    constraint, default_policy, bounded, as_printed, complete
        As in `LocalVulcan`. The paper leaves the default policy open; here it is random.
    """

    finds: ClassVar[str] = "the paper's planner as printed: its last policy, often incomplete"
    limits: ClassVar[Sequence[str]] = ("time_limit", "samples", "histories", "memory")
    options: ClassVar[Sequence[Option]] = (EXPLORATION, DEFAULT_POLICY)

    exploration: float = math.sqrt(2)
    constraint: LocalConstraint = field(default_factory=SequenceConstraint)
    default_policy: Literal["random", "greedy"] = "random"
    as_printed: bool = True

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        return cls(**given)
