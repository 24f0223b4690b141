"""Planning while acting: a certified plan first, and a better one at every step.

A controller solves its problem once, for a certificate to begin with. Then it plans anew before
each action, from the history that was observed, for a fixed time or number of samples. Each new
plan goes through `vulcan.replan`, which follows it only if it is better and the account allows it.
So the whole keeps the guarantee of the first certificate, whatever happens on the way.

This is the tool for missions that are too large to be planned to the end at once, where there is
time to think between two actions. A plan alone says what it is worth before it is executed; of a
controller only the guarantee is known, and its reward is at least that of the first plan.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Final

from vulcan.errors import ModelError, OptionError, PolicyError
from vulcan.execution.replan import Replan, replan
from vulcan.graph.compiled import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule
from vulcan.planning.result import Result
from vulcan.planning.solve import solve
from vulcan.policy.run import Run
from vulcan.problem import Problem
from vulcan.runtime.limits import Interruption, Monitor, StopReason, listen
from vulcan.sampling.groups import ActionEvaluator, Groups
from vulcan.sampling.growth import Default, Growth, GrowthRun, PlanTree, find_default, warm_up
from vulcan.solvers.base import Options, Solver
from vulcan.solvers.finding import Finding

__all__ = ["Controller"]

FIRST_SECONDS: Final = 1.0  # least planning time of the first plan
BEGINNING: Final = 5  # steps that the plan for the first action may take: it decides most
FORESEEING: Final = 0.4  # share of a step for the groups of the whole mission
LEAST_SHARE: Final = 0.3  # of the time of a step, that is always left for planning
FORGETTING: Final = 0.8  # factor on the longest time by which a step was late, from step to step


class _Regrowth(Growth):
    """`Growth` from the current state, with what earlier steps have found.

    That is the model's answers in the last two steps, and the groups of the whole mission: what was
    known costs nearly nothing. Certificates ask the model itself.
    """

    def __init__(self, model: Any, default: Default) -> None:
        self.level, self.floor = 0, -math.inf  # the plan that is replaced: its level, its reward
        self._answers: ChainMap[Any, Any] = ChainMap({}, {})
        self._reader = ModelReader(model)
        self._default = default
        self._groups: Groups | None = None

    def __repr__(self) -> str:
        return "Growth()"

    def move_on(self, level: int, floor: float) -> None:
        """Prepare for the next step; forget answers that were not needed in the last one."""
        self.level, self.floor = level, floor
        self._answers.maps[:] = [{}, self._answers.maps[0]]

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        monitor.start_clock()
        with monitor.clock_stopped():
            warm_up()
        limits = monitor.limits
        ends = FORESEEING * (math.inf if limits.time_limit is None else limits.time_limit)
        until = sys.maxsize if limits.samples is None else int(FORESEEING * limits.samples)
        answers = self._answers if reader.merges else None  # states that can be compared
        evaluator = ActionEvaluator(
            self._reader, lambda: monitor.requested or monitor.seconds > ends, answers
        )
        groups, self._groups, first = self._groups, None, None
        try:
            if groups is None:
                groups = Groups(evaluator, PlanTree(evaluator, self._default).measure)
            bound = problem.risk_bound
            first = groups.advise(evaluator, reader.root, self.level, bound, until)
            self._groups = groups
        except ModelError as error:  # half of an answer's groups are worth nothing
            if error.violation.rule is not Rule.ANSWERS:
                raise
        return GrowthRun(self, problem, reader, monitor, first, self.floor, answers).search()


class Controller:
    """Act on a problem, and plan anew at every step.

    Parameters
    ----------
    problem
        Model and risk bound.
    seconds_per_step
        Planning time before each action, certificate included. The first plan gets at least a
        second, and more if there is nothing safe by then.
    samples_per_step
        The same as a number of samples: then the same observations give the same actions.
    solver
        How to plan; by default `Automatic()`, and `Growth()` where that grows plans or for a number
        of samples.

    Attributes
    ----------
    result
        The first plan, with the certificate whose guarantee is kept.
    run
        The mission so far.
    replans
        What each planning on the way did.

    Raises
    ------
    PolicyError
        If no certified plan within the bound is found to begin with.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> controller = vulcan.Controller(problem, samples_per_step=2000)
    >>> while not controller.finished:
    ...     controller.observe(0)
    >>> len(controller.replans), controller.kept
    (2, True)
    """

    def __init__(
        self,
        problem: Problem,
        *,
        seconds_per_step: float | None = None,
        samples_per_step: int | None = None,
        solver: Solver | str | None = None,
    ) -> None:
        if (seconds_per_step is None) == (samples_per_step is None):
            raise OptionError("give a controller either seconds_per_step or samples_per_step")
        self._seconds, self._samples, self._late = seconds_per_step, samples_per_step, 0.0
        self._solver = solver
        if solver is None and seconds_per_step is None:
            self._solver = Growth()
        first = None
        if seconds_per_step is not None:
            first = max(FIRST_SECONDS, BEGINNING * seconds_per_step)
        with _interruptible():
            self.result: Result = solve(
                problem, self._solver, time_limit=first, samples=samples_per_step
            )
        if first is not None and not self.result.safe:
            with _interruptible():
                self.result = solve(problem, solver)
        if not self.result.safe or self.result.policy is None:
            raise PolicyError(
                "a controller needs a certified plan within the bound to begin with: "
                f"{self.result.explanation}"
            )
        # A policy without a text of its bound can't be replanned otherwise.
        self._bound = problem.risk_bound if problem.risk_bound.text is None else None
        self.run: Run = self.result.policy.start()
        self.replans: list[Replan] = []
        self._regrowth: _Regrowth | None = None
        if solver is None and not self.result.statistics.nodes:
            reader, bound = ModelReader(problem.model), problem.risk_bound
            default = None
            if not find_compiled(reader):
                default = find_default(ActionEvaluator(reader), bound)
            if default is not None:
                self._regrowth = _Regrowth(problem.model, default)
                self._plan(first, samples_per_step and BEGINNING * samples_per_step)
        self._begun = copy(self.run)

    def restart(self) -> Controller:
        """Return a controller of another mission, which begins with the same first plan."""
        other = copy(self)
        other.run, other.replans = copy(self._begun), []
        return other

    @property
    def action(self) -> Any:
        """The action to take now."""
        return self.run.action

    @property
    def finished(self) -> bool:
        """Whether the mission is over."""
        return self.run.finished

    @property
    def kept(self) -> bool:
        """Whether the guarantee of the first certificate still holds."""
        return not self.run.left_plan

    def observe(self, observed: Any = None, **told: Any) -> None:
        """Tell what happened, as in `Run.observe`, and plan anew.

        Ctrl-C ends the planning and raises `KeyboardInterrupt`, SIGTERM `SystemExit`; the mission
        may go on all the same.

        Parameters
        ----------
        observed
            The outcome: its label or position.
        told
            The outcome by its state or reward: `state=`, `reward=`.
        """
        began = time.perf_counter()
        self.run.observe(observed, **told)
        if self.run.finished:
            return
        limit = None
        if self._seconds is not None:
            limit = max(LEAST_SHARE * self._seconds, self._seconds - self._late)
        self.replans.append(self._plan(limit, self._samples))
        if limit is not None:
            late = time.perf_counter() - began - limit
            self._late = max(late, FORGETTING * self._late)

    def _plan(self, seconds: float | None, samples: int | None) -> Replan:
        """Plan anew from where the run is."""
        run = self.run
        if self._regrowth is not None:
            weight = float(run.reader.weights[run.level])
            self._regrowth.move_on(run.level, run.reward_ahead / weight if weight else math.inf)
        solver = self._regrowth or self._solver
        with _interruptible():
            return replan(run, solver, risk_bound=self._bound, time_limit=seconds, samples=samples)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise what a signal that comes inside means to the process: it is for the whole mission."""
    with Interruption() as interruption, listen(lambda: interruption.requested):
        yield
    if interruption.requested:
        if interruption.reason is StopReason.TERMINATED:
            raise SystemExit(128 + signal.SIGTERM)  # as shells report it
        raise KeyboardInterrupt
