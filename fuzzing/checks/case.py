"""What a check is given, and what becomes of what it finds or raises."""

from __future__ import annotations

import math
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import vulcan
from fuzzing.claims import Fault, Truth
from fuzzing.following import MisfitError, evaluate, read_tree
from fuzzing.models import has_values, make_problem
from fuzzing.oracle import Oracle, Point, TooLargeError, UnfollowableError
from fuzzing.planners import Planner
from fuzzing.problems import PlainProblem
from vulcan.errors import BoundError, DisagreementError, ModelError, VulcanError
from vulcan.sampling.tree import LARGEST, PrecisionError

__all__ = ["Case", "Check", "Means", "Trial", "find_faults"]


@dataclass(frozen=True)
class Case:
    """One check of one problem: all that is needed to do it again.

    Attributes
    ----------
    check
        The name of the check.
    problem
        The problem.
    planner
        Who solves it.
    seed
        Of what the check itself draws.
    """

    check: str
    problem: PlainProblem
    planner: Planner
    seed: int = 0


@dataclass
class Means:
    """How Vulcan is called, and for how many seconds of processor time.

    Tests put something defective in the place of Vulcan.
    """

    solve: Callable[..., vulcan.Result] = vulcan.solve
    certify: Callable[..., vulcan.Certificate] = vulcan.certify
    replan: Callable[..., vulcan.execution.Replan] = vulcan.replan
    simulate: Callable[..., vulcan.execution.Simulation] = vulcan.simulate
    load: Callable[..., Any] = vulcan.Policy.load
    verify: Callable[..., Any] = vulcan.verify
    answer_timeout: float = 10.0


@dataclass
class Trial:
    """A case under way.

    Attributes
    ----------
    case, truth, means
        What is tried, what is true, and how Vulcan is called.
    random
        What the check draws with.
    counts
        What happened, for the statistics.
    """

    case: Case
    truth: Truth
    means: Means
    random: Random
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def problem(self) -> PlainProblem:
        """The problem as plain data."""
        return self.case.problem

    def solve(self, problem: vulcan.Problem, **options: Any) -> vulcan.Result:
        """Let the planner solve a problem."""
        planner = self.case.planner
        return self.means.solve(problem, planner.make_solver(), **{**planner.options, **options})

    def make(self, merges: bool | None = None) -> vulcan.Problem:
        """Return the problem for Vulcan; without a word on it, states merge mostly."""
        if merges is None:
            merges = self.case.seed % 4 != 0
        return make_problem(self.problem, merges)

    def weigh(self, policy: Any) -> tuple[Point, Fraction]:
        """Return what a policy is worth, and how probably it leaves its plan."""
        trees = [read_tree(self.problem, member) for member in policy.members]
        return evaluate(self.truth.oracle, trees, policy.weights)


Check = Callable[[Trial], Iterator[Fault]]


class _Endless(BaseException):
    """A check takes too long; not an `Exception`, so that it is not mistaken for a model error."""


@contextmanager
def _stop_after(seconds: float) -> Iterator[None]:
    """Raise `_Endless` after some processor time, unless a kernel is busy all the time."""

    def stop(number: int, frame: object) -> None:
        raise _Endless

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds if seconds < math.inf else 0.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def find_faults(
    check: Check, case: Case, means: Means, oracle: Oracle | None = None
) -> tuple[list[Fault], Counter[str]]:
    """Return the faults that a check finds, and what happened.

    An exception that is not one of Vulcan's own is a fault, and so is one of those where nothing
    is wrong with model and bound.
    """
    truth = Truth(case.problem, oracle or Oracle(case.problem))
    trial = Trial(case, truth, means, Random(case.seed))  # noqa: S311 - no secrets
    faults: list[Fault] = []
    try:
        with _stop_after(means.answer_timeout):
            faults += check(trial)
    except _Endless:
        seconds = f"{means.answer_timeout:g} s of processor time"
        faults.append(Fault("no answer", f"none after {seconds}"))
    except TooLargeError:
        trial.counts["too large"] += 1
    except (MisfitError, UnfollowableError) as error:
        faults.append(Fault("followed", str(error)))
    except BoundError as error:
        trial.counts["bound refused"] += 1
        known = all(has_values(bound, case.problem.reach) for bound in case.problem.bounds)
        if not case.problem.is_out_of_range and known:
            faults.append(Fault("bound refused", str(error)))
    except DisagreementError as error:
        faults.append(Fault("disagreement", str(error)))
    except PrecisionError as error:
        trial.counts["rewards too large"] += 1
        if case.problem.reach <= LARGEST:
            faults.append(Fault("refused without cause", f"{type(error).__name__}: {error}"))
    except ModelError as error:
        trial.counts["model refused"] += 1
        if not case.problem.is_out_of_range:
            faults.append(Fault("refused without cause", f"{type(error).__name__}: {error}"))
    except VulcanError as error:
        faults.append(Fault("refused without cause", f"{type(error).__name__}: {error}"))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('/src/')[2]}, {where.name}"
        faults.append(Fault(f"raised {type(error).__name__}", f"{error} in {place}"))
    return faults, trial.counts
