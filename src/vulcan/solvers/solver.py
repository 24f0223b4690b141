"""What every solver offers to `vulcan.solve`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vulcan.certificate import Certificate
from vulcan.errors import ModelError, OptionError
from vulcan.graph import StateGraph
from vulcan.model import describe_model
from vulcan.policy import About
from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.randomised import AnyPolicy
from vulcan.reader import ModelReader
from vulcan.result import Statistics, Status, Trial

__all__ = ["Finding", "Options", "Solver", "describe_origin"]


@dataclass(frozen=True)
class Finding:
    """What a search found, before anybody has checked it.

    Attributes
    ----------
    status, explanation
        How it ended.
    policy
        The policy, or None.
    reward
        The expected reward that the search credits to it.
    credits
        Where the search evaluated the risk bound: every point, or the ends of an interval.
    statistics
        What the search took.
    certificate
        The certificate of the policy, if the search has made it already.
    error
        What the model raised, if that ended the search.
    upper_bound
        No policy of the same kind (deterministic or randomised) earns more within the risk bound;
        None if the search has no such bound.
    trials
        The policies that the search weighed against each other, if that is how it works.
    price
        What the upper bound gains per unit of allowed risk, if the search knows that.
    graph
        What the search knows of the model, if all of it is still there.
    estimate
        The value that a tree search gives the root, which is not that of its policy unless all of
        it was explored.
    """

    status: Status
    explanation: str
    policy: AnyPolicy | None
    reward: float
    credits: Sequence[float]
    statistics: Statistics
    certificate: Certificate | None = None
    error: ModelError | None = None
    upper_bound: float | None = None
    trials: tuple[Trial, ...] = ()
    price: float | None = None
    graph: StateGraph | None = None
    estimate: float | None = None


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
    graph
        What is known of the model already.
    """

    seed: int = 0
    complete: bool = True
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    resume: bool = False
    graph: StateGraph | None = None

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise OptionError("resume needs a checkpoint file to resume from")
        if not self.checkpoint_every >= 0:
            raise OptionError(f"checkpoint_every must be at least 0, not {self.checkpoint_every!r}")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 64:
            raise OptionError(f"seed must be a whole number from 0 to 2**64 - 1, not {self.seed!r}")


def describe_origin(problem: Problem, reader: ModelReader, solver: object) -> About:
    """Return where a policy comes from."""
    return About(
        model=describe_model(problem.model),
        fingerprint=reader.fingerprint(),
        horizon=reader.horizon,
        discount=reader.discount,
        risk_bound=problem.risk_bound.text,
        solver=repr(solver),
    )


class Solver(Protocol):
    """A small frozen dataclass of parameters that can search."""

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search for a policy until done or the monitor wants to stop."""
