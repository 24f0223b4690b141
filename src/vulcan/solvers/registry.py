"""The solvers, each with where it is: the one list that everything else is derived from.

Places rather than classes: who lists the names need not import the solvers, and all that they load.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Final

from vulcan.solvers.base import Solver, name_solver

__all__ = ["load_solvers"]

PLACES: Final[Sequence[str]] = (
    "vulcan.solvers.automatic:Automatic",
    "vulcan.solvers.tree.forward_search:ForwardSearch",
    "vulcan.solvers.tree.vulcan:Vulcan",
    "vulcan.solvers.tree.local:LocalVulcan",
    "vulcan.solvers.tree.local:UCT",
    "vulcan.solvers.layered.pareto:Pareto",
    "vulcan.solvers.layered.lagrangian:Lagrangian",
    "vulcan.solvers.baselines.linear_program:LinearProgram",
    "vulcan.solvers.baselines.integer_program:IntegerProgram",
    "vulcan.solvers.baselines.rao_star:RAOStar",
    "vulcan.solvers.baselines.penalty:Penalty",
)


@cache
def load_solvers() -> dict[str, type[Solver]]:
    """Return all solvers by their names on the command line, the default first."""
    kinds: list[type[Solver]] = []
    for place in PLACES:
        module, _, name = place.partition(":")
        kinds.append(getattr(import_module(module), name))
    return {name_solver(kind): kind for kind in kinds}
