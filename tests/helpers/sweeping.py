"""Solvers that fail, die or wait, where worker processes can import them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vulcan import LocalVulcan, Pareto
from vulcan.model.reader import ModelReader
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor
from vulcan.solvers.base import Options, Solver
from vulcan.solvers.finding import Finding


@dataclass(frozen=True)
class Moody(Solver):
    """A solver that can't stand one seed, or one constant bound."""

    sampling: ClassVar[bool] = True

    seed: int | None = None
    level: float | None = None

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        if options.seed == self.seed or problem.risk_bound(0.0) == self.level:
            raise RuntimeError("not in the mood")
        return LocalVulcan().search(problem, reader, monitor, options)


@dataclass(frozen=True)
class Mortal(Solver):
    """A solver that is killed with its process: once, or always.

    Parameters
    ----------
    folder
        Where it leaves word that it was killed.
    seed
        The seed with which it is.
    again
        Whether it is killed each time.
    """

    sampling: ClassVar[bool] = True

    folder: str
    seed: int = 1
    again: bool = False

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        word = Path(self.folder) / "killed"
        if options.seed == self.seed and (self.again or not word.exists()):
            word.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return LocalVulcan().search(problem, reader, monitor, options)


@dataclass(frozen=True)
class Patient(Solver):
    """A solver that has a policy at once, and goes on until it is told to stop."""

    sampling: ClassVar[bool] = True

    folder: str = ""

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        finding = Pareto().search(problem, reader, monitor, Options())
        if self.folder:
            (Path(self.folder) / f"begun-{options.seed}").touch()
        while not monitor.wants_stop(0):
            time.sleep(0.01)
        return finding


class Refusing(Solver):
    """What can't be sent to another process."""

    def __reduce__(self) -> Any:
        raise TypeError("stays here")

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        return Pareto().search(problem, reader, monitor, options)
