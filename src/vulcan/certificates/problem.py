"""A model and a risk bound: what a solver is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vulcan.bounds.base import RiskBound
from vulcan.errors import BoundError, ModelError
from vulcan.model.rules import check_frame

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """The question: the best policy of a model whose risk is acceptable for its reward.

    Parameters
    ----------
    model
        Any object with `horizon`, `initial_state()`, `actions(state)` and
        `outcomes(state, action)`; see `vulcan.Model`.
    risk_bound
        How much probability of failure is acceptable for how much expected reward.

    Raises
    ------
    ModelError
        If the model lacks a method or its horizon or discount can't be used.
    BoundError
        If the bound is not a risk bound.
    """

    model: Any
    risk_bound: RiskBound

    def __post_init__(self) -> None:
        for violation in check_frame(self.model):
            raise ModelError(violation)
        if not isinstance(self.risk_bound, RiskBound):
            raise BoundError(
                f"risk_bound must be a risk bound, not {self.risk_bound!r}: use vulcan.Constant, "
                "vulcan.Linear, vulcan.PiecewiseLinear, vulcan.Concave or vulcan.parse"
            )
