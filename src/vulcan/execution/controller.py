"""Planning while acting: a certified plan first, and a better one at every step.

A controller solves its problem once, for a certificate to begin with. Then it plans anew before
each action, from the history that was observed, for a fixed time or number of samples. Where plans
grow, groups advise which action to take (`vulcan.sampling.adviser`), and a plan is certified to
show that it may be taken within the account of the run (`vulcan.execution.replan`). So the whole
keeps the guarantee of the first certificate, whatever happens on the way.

**Sharing slack.** What is certified earns less than what is foreseen, the more so the longer the
mission still lasts. The slack of the account may be moved among the outcomes of an action before it
is known which one happens, as long as it is the same in the mean. Let d be the account's rate, and
let (x, g) be what the certified plan risks and earns after an outcome, (x', g') what is foreseen
there. To follow the latter, the account lacks x' - d g' - (x - d g). Each outcome gets what lets
the certified plan begin with the action foreseen there; and else all of them lack the same.

This is the tool for missions that are too large to be planned to the end at once, where there is
time to think between two actions. A plan alone says what it is worth before it is executed; of a
controller only the guarantee is known.
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
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError, PolicyError
from vulcan.execution.replan import Replan, plan_on
from vulcan.graph.compiled import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule
from vulcan.numerics import DEFAULT
from vulcan.planning.result import Result
from vulcan.planning.solve import solve
from vulcan.policy.run import Run
from vulcan.problem import Problem
from vulcan.runtime.limits import Interruption, Limits, Monitor, StopReason, listen
from vulcan.sampling.adviser import Advice, Adviser
from vulcan.sampling.groups import ActionEvaluator
from vulcan.sampling.growth import Growth, GrowthRun, warm_up
from vulcan.sampling.plan_tree import Default, PlanTree, find_default
from vulcan.solvers.base import Options, Solver
from vulcan.solvers.finding import Finding

__all__ = ["Controller"]

FIRST_SECONDS: Final = 1.0  # least planning time of the first plan
EFFORTS: Final = (1, 16)  # that the first plan may take
TIMID: Final = 0.1  # share of the allowed risk: a plan that takes less has seen little yet
BEGINNING: Final = 5  # steps that the plan for the first action may take: it decides most
FORESEEING: Final = 0.4  # share of a step for the groups of the whole mission
LEAST_SHARE: Final = 0.3  # of the time of a step, that is always left for planning
HALVINGS: Final = 60  # of the interval in which the level of slack is
FORGETTING: Final = 0.8  # factor on the longest time by which a step was late, from step to step


class _Regrowth(Growth):
    """`Growth` from the current state, with what earlier steps have found.

    That is the model's answers in the last two steps, and the groups of the whole mission: what was
    known costs nearly nothing. Certificates ask the model itself.
    """

    def __init__(self, model: Any, default: Default) -> None:
        self.level, self.planned = 0, ""  # where the run is, and the action that it has planned
        self.advice: Advice | None = None
        self.gaps: list[float] = []
        self._answers: ChainMap[Any, Any] = ChainMap({}, {})
        self._reader = ModelReader(model)
        self._default = default
        self._groups: Adviser | None = None

    def __repr__(self) -> str:
        return "Growth()"

    def move_on(self, level: int, planned: str) -> None:
        """Prepare for the next step; forget answers that were not needed in the last one."""
        self.level, self.planned, self.advice = level, planned, None
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
        groups, self._groups, advice = self._groups, None, None
        try:
            if groups is None:
                measure = PlanTree(evaluator, self._default).measure
                groups = Adviser(evaluator, measure, isinstance(self._default, str))
            advice = groups.advise(evaluator, reader.root, self.level, problem.risk_bound, until)
            advice = self._shorten(advice, reader)
            self._groups = groups
        except ModelError as error:  # half of an answer's groups are worth nothing
            if error.violation.rule is not Rule.ANSWERS:
                raise
        run = GrowthRun(self, problem, reader, monitor, advice, answers)
        found = run.search()
        self.advice, self.gaps = advice, run.gaps
        return found

    def _shorten(self, advice: Advice, reader: ModelReader) -> Advice:
        """Return an advice with no action that is worse than the planned one.

        The default is called by its label.
        """
        actions = reader.actions(reader.root)
        if isinstance(self._default, str):
            default = reader.default_label(reader.root, actions) if self._default == DEFAULT else ""
        else:
            default = self._default(reader.root, actions)
        labels = list(dict.fromkeys(filter(None, (label or default for label in advice.labels))))
        if self.planned in labels:
            labels = labels[: labels.index(self.planned) + 1]
        return advice._replace(labels=labels)


class Controller:
    """Act on a problem, and plan anew at every step.

    Parameters
    ----------
    problem
        Model, risk bound and further constraints.
    seconds_per_step
        Planning time before each action, certificate included. The first plan gets at least a
        second, and 16 times as much if there is nothing safe by then, or only a plan that takes
        less than a tenth of the allowed risk, or ends the mission at once.
    samples_per_step
        The same as a number of samples: then the same observations give the same actions.
    solver
        How to plan; by default `Automatic()`, and for one risk bound `Growth()` where that grows
        plans or for a number of samples.

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
        if solver is None and seconds_per_step is None and not problem.constraints:
            self._solver = Growth()
        first = None
        if seconds_per_step is not None:
            first = max(FIRST_SECONDS, BEGINNING * seconds_per_step)
        self.result: Result = _plan_first(problem, self._solver, first, samples_per_step)
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
        self._shares: dict[str, float] = {}
        if solver is None and not (self.result.statistics.nodes or problem.constraints):
            reader, bound = ModelReader(problem.model), problem.risk_bound
            default = None
            if not find_compiled(reader):
                default = find_default(ActionEvaluator(reader), bound)
            if default is not None:
                self._regrowth = _Regrowth(problem.model, default)
                self._plan(first, samples_per_step and BEGINNING * samples_per_step)
        self._begun = copy(self.run), self._shares

    def __repr__(self) -> str:
        seconds, samples = self._seconds, self._samples
        limit = f"samples_per_step={samples}" if self.fixed else f"seconds_per_step={seconds}"
        return f"Controller({self.result.problem!r}, {limit})"

    def restart(self) -> Controller:
        """Return a controller of another mission, which begins with the same first plan."""
        other = copy(self)
        (run, other._shares), other.replans = self._begun, []
        other.run = copy(run)
        return other

    @property
    def fixed(self) -> bool:
        """Whether the same observations always give the same actions: it is limited by samples."""
        return self._seconds is None

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
        _, happened = self.run.history[-1]
        if happened in self._shares:
            self.run.account = replace(self.run.account, slack=self._shares[happened])
        self._shares = {}
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
        limits, growth = Limits.combine(None, time_limit=seconds, samples=samples), self._regrowth
        if growth is not None:
            growth.move_on(run.level, "" if run.left_plan and run.unplanned else run.action_label)
        with _interruptible():
            solver = growth or self._solver
            found = plan_on(run, solver, limits, self._bound, lossy=growth is not None)
        self._shares = {}
        if growth is not None and growth.advice is not None and found.changed:
            try:
                self._shares = _share_slack(run, growth.advice, growth.gaps)
            except ModelError as error:  # without shares, the slack is the same for all outcomes
                if error.violation.rule is not Rule.ANSWERS:
                    raise
        return found


def _plan_first(
    problem: Problem, solver: Solver | str | None, seconds: float | None, samples: int | None
) -> Result:
    """Return the first plan, with more effort if it takes hardly any of the allowed risk.

    Rewards that come late justify no risk until a plan reaches them.
    """
    for factor in EFFORTS:
        with _interruptible():
            result = solve(
                problem,
                solver,
                time_limit=None if seconds is None else factor * seconds,
                samples=None if samples is None else factor * samples,
            )
        found, several = result.certificate, bool(problem.constraints)
        dares = found is not None and (several or found.risk > TIMID * found.allowed)
        if result.stopped_by is None or (result.safe and dares and len(result.policy or ()) > 1):
            return result
    if result.safe or seconds is None:
        return result
    with _interruptible():
        return solve(problem, solver)


def _share_slack(run: Run, advice: Advice, gaps: list[float]) -> dict[str, float]:
    """Return the slack of a run's account after each outcome of its action, the same in the mean.

    It is what takes to continue as foreseen; and all continuations lack the same risk, if they are
    worth what is foreseen.
    """
    slack, rate = run.account.slack, run.account.rate
    foreseen, needed = iter(advice.foreseen.get(run.action_label, ())), iter(gaps)
    lacks, least, chances, labels = [], [], [], []
    for label, probability in run.expected.items():
        then = copy(run)
        then.observe(label)
        if then.failed:
            continue
        after = next(foreseen, None)
        if after is None or not math.isfinite(after.reward):
            return {}
        if not then.finished:
            lacks.append(after.risk - rate * after.reward - then.risk + rate * then.reward_ahead)
            least.append(next(needed, 0.0))
            chances.append(probability)
            labels.append(label)
    if not labels or slack <= 0:
        return {}
    shares = share_out(slack, np.array(chances), np.array(lacks), np.array(least))
    return dict(zip(labels, shares.tolist(), strict=True))


def share_out(
    slack: float,
    chances: NDArray[np.float64],
    lacks: NDArray[np.float64],
    least: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the shares of slack by outcome, max(least, lack - level), for one level.

    Their mean is at most the slack; if `least` is more than that, it is scaled down.
    """
    least = least * min(1.0, slack / max(1e-300, float(chances @ least)))
    low, high = float(lacks.min()) - slack / float(chances.sum()), float(lacks.max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = chances @ np.maximum(least, lacks - middle) <= slack
        low, high = (low, middle) if enough else (middle, high)
    shares: NDArray[np.float64] = np.maximum(least, lacks - high)
    return shares * min(1.0, slack / max(1e-300, float(chances @ shares)))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise what a signal that comes inside means to the process: it is for the whole mission."""
    with Interruption() as interruption, listen(lambda: interruption.requested):
        yield
    if interruption.requested:
        if interruption.reason is StopReason.TERMINATED:
            raise SystemExit(128 + signal.SIGTERM)  # as shells report it
        raise KeyboardInterrupt
