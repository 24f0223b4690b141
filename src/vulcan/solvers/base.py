"""What a solver is, and what it says of itself.

A solver is a small frozen dataclass of parameters with a method `search`. What it can do it
declares once, as class attributes; `vulcan.solve`, `vulcan.compare`, the command line, its help,
the table of the guide and `vulcan.testing.check_solver` all read these declarations and have no
list of their own. A new solver is a file with such a class, and a line in
`vulcan.solvers.registry`.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Final

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.executors.base import Executor, require_workers
from vulcan.executors.here import Threads
from vulcan.executors.processes import Processes
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.interface import describe_model
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.finding import Finding
from vulcan.solvers.knowledge import Knowledge

__all__ = [
    "RANDOMISED",
    "Coverage",
    "Option",
    "Options",
    "Solver",
    "ask_for_randomised",
    "describe_origin",
    "name_solver",
    "refuse_unknown",
    "require_solver",
]

SAMPLED: Final = ("time_limit", "samples", "histories", "memory", "gap")
"""The limits of a tree search."""

EXACT: Final = ("time_limit", "memory")
"""The limits of a solver on pairs of state and step."""


class Coverage(Enum):
    """Which policies the upper bound of a solver's result covers."""

    NOTHING = "none"
    """It has no upper bound of its own."""

    DETERMINISTIC = "deterministic policies"
    EVERY = "all policies, randomised or not"


@dataclass(frozen=True)
class Option:
    """A parameter of solvers, as the command line offers it.

    Attributes
    ----------
    name
        Its name in Python; `cut_short` is `--cut-short` on the command line.
    kind
        The type of its values: float or bool, or str if there are choices.
    help
        What it does, in a sentence.
    default
        What the help calls the default.
    choices
        The values that it takes; empty for all of its kind.
    negatable
        Whether a switch can also be turned off, as in `--no-cut-short`.
    """

    name: str
    kind: type
    help: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    negatable: bool = False


@dataclass(frozen=True)
class Options:
    """What else a search is told.

    Attributes
    ----------
    seed
        Seed of its random numbers.
    complete
        Whether to plan to the end what the search left unexplored.
    checkpoint, checkpoint_every
        A file to write checkpoints to, and the seconds between two of them.
    resume
        Go on from the checkpoint file, if it exists.
    overwrite
        Replace the checkpoint file, if it exists.
    graph
        What is known of the model already.
    knowledge
        What another search of the same problem found, where states don't merge.
    keep
        Whether what the search knows is kept beyond its end.
    workers
        How many work at once.
    executor
        Who they are: as the user says it, and for solvers always an `Executor`.
    """

    seed: int = 0
    complete: bool = True
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    resume: bool = False
    overwrite: bool = False
    graph: StateGraph | None = None
    knowledge: Knowledge | None = None
    keep: bool = False
    workers: int | None = None
    executor: Executor | str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            require_workers(self.workers)
        if self.resume and self.checkpoint is None:
            raise OptionError("resume needs a checkpoint file to resume from")
        if self.overwrite and self.checkpoint is None:
            raise OptionError("overwrite needs a checkpoint file to overwrite")
        if self.resume and self.overwrite:
            raise OptionError("resume or overwrite, not both: a checkpoint goes on or is replaced")
        if not self.checkpoint_every >= 0:
            raise OptionError(f"checkpoint_every must be at least 0, not {self.checkpoint_every!r}")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 64:
            raise OptionError(f"seed must be a whole number from 0 to 2**64 - 1, not {self.seed!r}")

    @property
    def resumes(self) -> bool:
        """Whether there is a search to go on with."""
        return self.resume and self.checkpoint is not None and Path(self.checkpoint).exists()

    @property
    def threads(self) -> int:
        """How many threads share large dynamic programs: one for each worker of this machine.

        Processes that answer for a model wait while the search computes, and the other way round.
        """
        if self.executor is None:
            return self.workers or 1
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
        Whether it samples: then it takes a seed, completes policies, and writes checkpoints.
    covers
        Which policies its upper bound covers.
    options
        Its parameters, as the command line offers them.
    threads
        Whether several workers mean threads where the model is compiled.
    shows_trials
        Whether its trials are worth showing beside its result.
    default_gap
        How far from the upper bound its policy may be by default, as a share of it; 0 asks for
        proof.
    """

    finds: ClassVar[str]
    method: ClassVar[str]
    limits: ClassVar[Sequence[str]] = SAMPLED
    sampling: ClassVar[bool] = False
    covers: ClassVar[Coverage] = Coverage.NOTHING
    options: ClassVar[Sequence[Option]] = ()
    threads: ClassVar[bool] = False
    shows_trials: ClassVar[bool] = False
    default_gap: ClassVar[float] = 0.0

    @abstractmethod
    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search for a policy until done or the monitor wants to stop; used by `vulcan.solve`."""

    def spreads(self, reader: ModelReader) -> bool:
        """Whether it hands parts of the search itself to workers in other processes."""
        return False

    def suits_threads(self, reader: ModelReader) -> bool:
        """Whether several workers are best threads, if the user does not say what they are."""
        return self.threads and getattr(reader.model, "compiled", None) is not None

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Solver:
        """Return the solver that options of the command line describe.

        Parameters
        ----------
        given
            Values by the names of `options`, as far as they were given.
        limits
            When it will have to stop.
        """
        return cls(**given)


def name_solver(kind: type) -> str:
    """Return the name of a solver's class on the command line: forward-search for ForwardSearch."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind.__name__).lower()


def require_solver(solver: Any) -> None:
    """Refuse what can't search, such as a class instead of an instance."""
    if isinstance(solver, type) or not hasattr(solver, "search"):
        raise OptionError(f"solver must be an instance such as Vulcan(), not {solver!r}")


def refuse_unknown(solver: Any, limits: Limits, options: Options) -> None:
    """Refuse limits and options that mean nothing to a solver that declares its own."""
    if isinstance(solver, Solver):
        limits.require_only(type(solver).__name__, tuple(solver.limits))
        if options.checkpoint is not None and not solver.sampling:
            raise OptionError(f"{type(solver).__name__} writes no checkpoints; Vulcan and UCT do")


def ask_for_randomised(solver: Solver) -> Solver:
    """Return the same solver, asked for randomised policies."""
    if not any(option is RANDOMISED for option in getattr(solver, "options", ())):
        name = type(solver).__name__
        raise OptionError(f"{name} has no randomised policies; use Automatic() or Lagrangian()")
    return replace(solver, randomised=True)  # type: ignore[type-var]


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
    )
