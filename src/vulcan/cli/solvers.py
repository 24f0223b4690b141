"""From the options of `vulcan solve` to a solver, with an error for options that don't fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vulcan.cli.options import Constraint, Credit, SolverName
from vulcan.errors import OptionError

if TYPE_CHECKING:
    from vulcan.constraint import LocalConstraint
    from vulcan.solvers.solver import Solver

__all__ = ["fitting", "make_solver"]

FORWARD_SEARCH, VULCAN, UCT = SolverName.FORWARD_SEARCH, SolverName.VULCAN, SolverName.UCT

FITTING = {
    "constraint": (FORWARD_SEARCH, VULCAN),
    "credit": (FORWARD_SEARCH, VULCAN),
    "cut_short": (FORWARD_SEARCH,),
    "paper": (VULCAN,),
    "exploration": (VULCAN, UCT),
    "samples": (VULCAN, UCT),
    "memory": (VULCAN, UCT),
    "gap": (VULCAN,),
    "seed": (VULCAN, UCT),
    "complete": (VULCAN, UCT),
    "checkpoint": (VULCAN, UCT),
    "checkpoint_every": (VULCAN, UCT),
    "resume": (VULCAN, UCT),
    "workers": (FORWARD_SEARCH, VULCAN, UCT),
}
"""The solvers of each option that is not for all of them."""


def fitting(solver: SolverName, **options: Any) -> dict[str, Any]:
    """Return the options that were given, if all of them mean something to the solver.

    Parameters
    ----------
    solver
        The solver that was chosen.
    **options
        Options by name; None for those that were not given.

    Raises
    ------
    OptionError
        At the first option that does not fit.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if solver not in FITTING[name]:
            option, owners = name.replace("_", "-"), " or ".join(FITTING[name])
            raise OptionError(f"--{option} belongs to --solver {owners}; this is {solver}")
    return given


def make_solver(
    name: SolverName,
    constraint: Constraint | None = None,
    credit: Credit | None = None,
    cut_short: bool | None = None,
    exploration: float | None = None,
    paper: bool | None = None,
    gap: float | None = None,
) -> Solver:
    """Return the solver that options describe.

    Parameters
    ----------
    name, constraint, credit, cut_short, exploration, paper, gap
        The options; None for those that were not given. A target gap needs upper bounds.

    Raises
    ------
    OptionError
        If one does not fit the solver, excludes another, or has an impossible value.
    """
    import vulcan

    fitting(name, constraint=constraint, credit=credit, cut_short=cut_short, paper=paper, gap=gap)
    tuning = fitting(name, exploration=exploration)
    if paper and (constraint or credit):
        raise OptionError(
            "--paper has a constraint of its own; leave --constraint and --credit away"
        )
    match name:
        case SolverName.FORWARD_SEARCH:
            return vulcan.ForwardSearch(
                _make_constraint(constraint, credit), cut_short is not False
            )
        case SolverName.VULCAN if paper:
            return vulcan.Vulcan.paper(**tuning)
        case SolverName.VULCAN:
            local = _make_constraint(constraint, credit)
            return vulcan.Vulcan(constraint=local, bounded=gap is not None, **tuning)
        case SolverName.UCT:
            return vulcan.UCT(**tuning)


def _make_constraint(constraint: Constraint | None, credit: Credit | None) -> LocalConstraint:
    import vulcan

    if constraint is Constraint.A:
        # The type checker knows the values of an enum only one by one.
        received = credit is Credit.RECEIVED
        return vulcan.SequenceConstraint("received" if received else "expected")
    if credit is not None:
        raise OptionError(
            "--credit belongs to --constraint A; constraint B has a credit of its own"
        )
    return vulcan.SurvivalConstraint()
