"""A model and a risk bound: what a solver is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vulcan.bounds.base import RiskBound
from vulcan.bounds.parsing import read_bound
from vulcan.errors import ModelError, OptionError
from vulcan.model.rules import check_frame
from vulcan.parameters import shorten

__all__ = ["Problem", "require_problem"]


@dataclass(frozen=True, init=False)
class Problem:
    """The question: the best policy of a model whose risk is acceptable for its reward.

    Parameters
    ----------
    model
        Any object with `horizon`, `initial_state()`, `actions(state)` and
        `outcomes(state, action)`; see `vulcan.Model`.
    risk_bound
        How much probability of failure is acceptable for how much expected reward. A number is
        taken for `Constant`, and a string is read by `vulcan.parse`.

    Raises
    ------
    ModelError
        If the model lacks a method or its horizon or discount can't be used.
    BoundError
        If the bound is not a risk bound.

    Examples
    --------
    >>> from vulcan.domains import Bandit
    >>> Problem(Bandit(3), 0.01).risk_bound, Problem(Bandit(3), "0.002*x").risk_bound
    (Constant(0.01), Linear(slope=0.002, offset=0.0))
    """

    model: Any
    risk_bound: RiskBound

    def __init__(self, model: Any, risk_bound: RiskBound | float | str) -> None:
        for violation in check_frame(model):
            raise ModelError(violation.of(model))
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "risk_bound", read_bound(risk_bound))


def require_problem(
    problem: Any, beside: Any = None, call: str = "solve(Problem(model, {bound}))"
) -> None:
    """Refuse what is no problem, such as a model alone, and say how to write one.

    Parameters
    ----------
    problem
        What was given as the problem.
    beside
        What was given after it: a bound there shows what was meant.
    call
        What should have been written.
    """
    if isinstance(problem, Problem):
        return
    bound = shorten(beside) if isinstance(beside, RiskBound) else '"0.002*x"'
    raise OptionError(
        f"a Problem is missing: a model and its risk bound, as in {call.format(bound=bound)}; "
        f"this is {shorten(problem)}"
    )
