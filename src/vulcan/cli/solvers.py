"""From the options of the commands to a solver, with an error for options that don't fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vulcan.cli.choices import Constraint, Credit, SolverName, Structure
from vulcan.errors import OptionError

if TYPE_CHECKING:
    from vulcan.constraint import LocalConstraint
    from vulcan.solvers.solver import Solver

__all__ = ["fitting", "make_solver"]

AUTOMATIC, VULCAN, UCT = SolverName.AUTOMATIC, SolverName.VULCAN, SolverName.UCT
FORWARD_SEARCH, PARETO = SolverName.FORWARD_SEARCH, SolverName.PARETO
LINEAR_PROGRAM, INTEGER_PROGRAM = SolverName.LINEAR_PROGRAM, SolverName.INTEGER_PROGRAM
SAMPLING = (AUTOMATIC, VULCAN, UCT)

FITTING: Final[dict[str, tuple[SolverName, ...]]] = {
    "constraint": (FORWARD_SEARCH, VULCAN),
    "credit": (FORWARD_SEARCH, VULCAN),
    "cut_short": (FORWARD_SEARCH,),
    "paper": (VULCAN,),
    "exploration": (VULCAN, UCT),
    "on": (LINEAR_PROGRAM, INTEGER_PROGRAM),
    "samples": SAMPLING,
    "histories": (FORWARD_SEARCH, *SAMPLING),
    "memory": tuple(name for name in SolverName if name is not FORWARD_SEARCH),
    "gap": (AUTOMATIC, VULCAN, PARETO, INTEGER_PROGRAM),
    "seed": SAMPLING,
    "complete": SAMPLING,
    "checkpoint": SAMPLING,
    "checkpoint_every": SAMPLING,
    "resume": SAMPLING,
}
"""The solvers of each option that is not for all of them."""

PLAIN: Final = {
    SolverName.AUTOMATIC: "Automatic",
    SolverName.UCT: "UCT",
    SolverName.PARETO: "Pareto",
    SolverName.LAGRANGIAN: "Lagrangian",
    SolverName.LINEAR_PROGRAM: "LinearProgram",
    SolverName.INTEGER_PROGRAM: "IntegerProgram",
    SolverName.RAO_STAR: "RAOStar",
    SolverName.PENALTY: "Penalty",
}
"""The classes, by name in `vulcan`, of solvers that take their options as they are."""


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
        owners = FITTING.get(name, tuple(SolverName))
        if solver not in owners:
            *others, last = owners
            listed = f"{', '.join(others)} or {last}" if others else last
            option = name.replace("_", "-")
            raise OptionError(f"--{option} belongs to --solver {listed}; this is {solver}")
    return given


def make_solver(
    name: SolverName,
    constraint: Constraint | None = None,
    credit: Credit | None = None,
    cut_short: bool | None = None,
    exploration: float | None = None,
    paper: bool | None = None,
    gap: float | None = None,
    on: Structure | None = None,
) -> Solver:
    """Return the solver that options describe.

    Parameters
    ----------
    name, constraint, credit, cut_short, exploration, paper, gap, on
        The options; None for those that were not given. A target gap of vulcan needs upper bounds.

    Raises
    ------
    OptionError
        If one does not fit the solver, excludes another, or has an impossible value.
    """
    import vulcan

    fitting(name, constraint=constraint, credit=credit, cut_short=cut_short, paper=paper, gap=gap)
    tuning = fitting(name, exploration=exploration, on=on and on.value)
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
    solver: Solver = getattr(vulcan, PLAIN[name])(**tuning)
    return solver


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
