"""What a solver is, and what it says of itself.

A solver is a small frozen dataclass of parameters with a method `search`. What it can do it
declares once, as class attributes; `vulcan.solve`, `vulcan.compare`, the command line, its help,
the table of the guide and `vulcan.testing.check_solver` all read these declarations and have no
list of their own. A new solver is a file with such a class, and a line in
`PLACES`, which names modules, so that nothing is imported before it is needed.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final

from vulcan.constraints import RiskAhead
from vulcan.errors import OptionError
from vulcan.graph.states import StateGraph
from vulcan.model.interface import describe_model
from vulcan.model.reader import ModelReader
from vulcan.parallel.executors import Executor, Threads
from vulcan.parallel.processes import Processes
from vulcan.parameters import suggest
from vulcan.policy.policy import About
from vulcan.problem import Problem
from vulcan.runtime.devices import open_arrays, require_device
from vulcan.runtime.files import Checkpoint
from vulcan.runtime.limits import Limits, Monitor
from vulcan.solvers.finding import Finding

SAMPLED: Final = ("time_limit", "samples", "histories", "memory", "gap")
"""The limits of a tree search."""

EXACT: Final = ("time_limit", "memory")  # the limits of a solver on state–step pairs


class Coverage(Enum):
    """Which policies the upper bound of a solver's result covers."""

    NOTHING = "none"
    """It has no upper bound of its own."""

    DETERMINISTIC = "deterministic policies"
    EVERY = "all policies, randomised or not"


@dataclass(frozen=True)
class Option:
    """A parameter of solvers, as the command line offers it."""

    name: str  # in Python; `cut_short` is `--cut-short` on the command line
    kind: type  # of its values: float or bool, or str if there are choices
    help: str  # in a sentence
    default: str | None = None  # as the help calls it
    choices: tuple[str, ...] = ()  # the values that it takes; empty for all of its kind
    negatable: bool = False  # whether a switch can be turned off, as in `--no-cut-short`


@dataclass(frozen=True)
class Options:
    """Options of a search other than problem and limits."""

    seed: int = 0
    executor: Executor = Threads(1)  # noqa: RUF009 - immutable
    checkpoint: Checkpoint | None = None  # a file to write to, and perhaps to resume
    graph: StateGraph | None = None  # what is known of the model already
    device: str = "cpu"  # where large dynamic programs are computed

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 64:
            raise OptionError(f"seed must be a whole number from 0 to 2**64 - 1, not {self.seed!r}")
        require_device(self.device)

    @property
    def threads(self) -> int:
        """Number of threads for large dynamic programs: one for each worker of this machine.

        Processes that answer for a model wait while the search computes, and the other way round.
        """
        executor = self.executor
        return executor.workers if isinstance(executor, Threads | Processes) else 1


RANDOMISED: Final = Option(
    "randomised", bool, "Return the best randomised policy: one of two, drawn at the start."
)


class Solver(ABC):
    """A small frozen dataclass of parameters that can search.

    Attributes
    ----------
    finds
        What it finds, in a few words.
    method
        How, in a few words.
    limits
        The limits of `vulcan.solve` that it keeps; others are refused.
    sampling
        Whether it samples: then it takes a seed and writes checkpoints.
    endless
        Whether it would go on for long without a limit: then it gets one by default.
    covers
        Which policies its upper bound covers.
    options
        Its parameters, as the command line offers them.
    threads
        Whether several workers mean threads where the model is compiled.
    devices
        Whether it computes on a GPU, if asked to.
    constant_bounds
        Whether it takes constant risk bounds only.
    several
        Whether it takes problems with several constraints.
    sums_only
        Whether it takes no cap on the risk ahead among them.
    default_gap
        How far from the upper bound its policy may be by default, as a share of it; 0 asks for
        proof.
    """

    finds: ClassVar[str]
    method: ClassVar[str]
    limits: ClassVar[Sequence[str]] = SAMPLED
    sampling: ClassVar[bool] = False
    endless: ClassVar[bool] = False
    covers: ClassVar[Coverage] = Coverage.NOTHING
    options: ClassVar[Sequence[Option]] = ()
    threads: ClassVar[bool] = False
    devices: ClassVar[bool] = False
    constant_bounds: ClassVar[bool] = False
    several: ClassVar[bool] = False
    sums_only: ClassVar[bool] = False
    default_gap: ClassVar[float] = 0.0

    @abstractmethod
    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search for a policy until done or the monitor wants to stop; used by `vulcan.solve`."""

    def spreads(self, reader: ModelReader) -> bool:
        """Whether it hands parts of the search itself to workers in other processes."""
        return False

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Solver:
        """Return the solver that options of the command line describe, by their names.

        `limits` say when it will have to stop.
        """
        return cls(**given)


def name_solver(kind: type) -> str:
    """Return the name of a solver's class on the command line: forward-search for ForwardSearch."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind.__name__).lower()


def require_solver(solver: Any, limits: Limits, options: Options) -> None:
    """Reject non-solvers, and limits or options that the solver does not support."""
    if not isinstance(solver, Solver):
        written = f"; write {solver.__name__}()" if isinstance(solver, type) else ""
        raise OptionError(f"solver must be a Solver such as Vulcan(), not {solver!r}{written}")
    name = type(solver).__name__
    limits.require_only(name, tuple(solver.limits))
    if options.checkpoint is not None and not solver.sampling:
        raise OptionError(f"{name} writes no checkpoints; Vulcan and UCT do")
    if options.device != "cpu":
        if not solver.devices:
            able = [kind.__name__ for kind in load_solvers().values() if kind.devices]
            raise OptionError(f"{name} computes on no GPU; {', '.join(able)} do: device='cpu'")
        open_arrays()


def require_fit(problem: Problem, solver: Solver) -> None:
    """Reject a problem with constraints that the solver does not take."""
    name, able = type(solver).__name__, [kind for kind in load_solvers().values() if kind.several]
    if problem.constraints and not solver.several:
        limits = ", ".join(map(str, problem.constraints))
        raise OptionError(
            f"{name} takes one risk bound and no further constraints ({limits}); "
            f"{', '.join(kind.__name__ for kind in able)} take several"
        )
    for constraint in problem.constraints:
        if solver.sums_only and isinstance(constraint, RiskAhead):
            raise OptionError(
                f"{name} takes limits on expected totals only, not {constraint}; "
                f"{', '.join(kind.__name__ for kind in able if not kind.sums_only)} take it"
            )


def describe_origin(problem: Problem, reader: ModelReader, solver: object) -> About:
    """Return where a policy comes from."""
    return About(
        model=describe_model(problem.model),
        fingerprint=reader.fingerprint(),
        horizon=reader.horizon,
        discount=reader.discount,
        risk_bound=problem.risk_bound.text,
        solver=repr(solver),
        initial_action=reader.levels > reader.horizon,
        constraints=tuple(c.text or f"{c.quantity} <= ?" for c in problem.constraints),
    )


PLACES: Final[Sequence[str]] = (
    "vulcan.planning.automatic:Automatic",
    "vulcan.baselines.forward_search:ForwardSearch",
    "vulcan.sampling.vulcan:Vulcan",
    "vulcan.sampling.growth:Growth",
    "vulcan.sampling.local_vulcan:LocalVulcan",
    "vulcan.baselines.paper:VulcanFS",
    "vulcan.baselines.paper:PaperVulcan",
    "vulcan.baselines.paper:UCT",
    "vulcan.exact.pipeline:Pareto",
    "vulcan.exact.pipeline:Lagrangian",
    "vulcan.exact.subgoals:Subgoals",
    "vulcan.baselines.programs:LinearProgram",
    "vulcan.baselines.integer_program:IntegerProgram",
    "vulcan.baselines.rao_star:RAOStar",
    "vulcan.baselines.penalty:Penalty",
)


@cache
def load_solvers() -> dict[str, type[Solver]]:
    """Return all solvers by their names on the command line, the default first."""
    places = (place.split(":") for place in PLACES)
    kinds = (getattr(import_module(module), name) for module, name in places)
    return {name_solver(kind): kind for kind in kinds}


def find_solver(name: str) -> type[Solver]:
    """Return the solver of a name, as on the command line; an `OptionError` without one."""
    known = load_solvers()
    if name not in known:
        raise OptionError(
            f"no solver {name!r}{suggest(name, known)}\nsolvers are {', '.join(known)}"
        )
    return known[name]


def require_exploration(exploration: float) -> None:
    """Reject an invalid UCT constant."""
    if not 0 <= exploration < math.inf:
        raise OptionError(f"exploration must be a number from 0 on, not {exploration!r}")
