"""A problem: a model, a risk bound, and perhaps further constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Constant
from vulcan.bounds.parse import read_bound
from vulcan.constraints import Constraint, Cost, Risk, read_constraints
from vulcan.errors import BoundError, ModelError, OptionError
from vulcan.model.belief import BeliefModel
from vulcan.model.rules import read_frame
from vulcan.parameters import knows_parameters, shorten


@knows_parameters
@dataclass(frozen=True, init=False)
class Problem:
    """Find the best policy of a model among those whose risk is acceptable for their reward.

    Parameters
    ----------
    model
        Any object with `horizon`, `initial_state()`, `actions(state)` and
        `outcomes(state, action)`; see `vulcan.model.Model`.
    risk_bound
        The acceptable probability of failure, as a function of expected reward. A number becomes
        a `Constant`, which must be at least 0; a string is parsed by `vulcan.parse`.
    constraints
        Further limits: a list of `vulcan.Risk`, `vulcan.Cost` and `vulcan.RiskAhead`, or of texts
        such as "fuel <= 5". `Risk(bound)` without an event is the risk bound; with constraints and
        no risk bound, failing is not limited.

    Raises
    ------
    ModelError
        If the model lacks a method, or its horizon or discount is invalid.
    BoundError
        If the bound is not a risk bound.

    Examples
    --------
    >>> from vulcan.domains import Bandit
    >>> Problem(Bandit(3), 0.01).risk_bound, Problem(Bandit(3), "0.002*x").risk_bound
    (Constant(0.01), Linear(slope=0.002, offset=0.0))
    >>> Problem(Bandit(3), constraints=["risk <= 0.002*x", "fuel <= 5"]).constraints[0].name
    'fuel'
    """

    model: Any
    risk_bound: RiskBound
    constraints: tuple[Constraint, ...]  # beside the risk bound

    def __init__(
        self,
        model: Any,
        risk_bound: RiskBound | float | str | None = None,
        *,
        constraints: Sequence[Constraint | str] = (),
    ) -> None:
        for violation in read_frame(model)[1]:
            raise ModelError(violation.of(model))
        others = read_constraints(constraints)
        if isinstance(model, BeliefModel):  # whose outcomes cost what an event adds to its risk
            named = [(c, c.event if isinstance(c, Risk) else None) for c in others]
            others = tuple(c if event is None else Cost(event, c.bound) for c, event in named)
        failing = [c for c in others if c.quantity == "risk"]
        others = tuple(c for c in others if c.quantity != "risk")
        if failing and risk_bound is not None:
            raise BoundError("the risk bound is given twice: as risk_bound and as a constraint")
        if failing:
            risk_bound = failing[0].bound
        elif risk_bound is None:
            if not others:
                raise BoundError('a risk bound is missing, as in Problem(model, "0.002*x")')
            risk_bound = 1.0
        bound = read_bound(risk_bound)
        if bound is not risk_bound and isinstance(bound, Constant) and bound.level < 0:
            raise BoundError(
                f"a constant risk bound of {bound} accepts no policy; it must be at least 0. A "
                'bound that depends on the reward, such as "0.01*x - 0.1", may go below 0'
            )
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "risk_bound", bound)
        object.__setattr__(self, "constraints", others)


def require_problem(problem: Any) -> None:
    """Raise an error that shows what is needed if an argument is not a `Problem`."""
    if not isinstance(problem, Problem):
        raise OptionError(
            "a Problem is missing: a model and its risk bound, as in "
            f'solve(Problem(model, "0.002*x")); this is {shorten(problem)}'
        )
