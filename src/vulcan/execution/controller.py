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

from typing import Any

from vulcan.errors import OptionError, PolicyError
from vulcan.execution.replan import Replan, replan
from vulcan.planning.result import Result
from vulcan.planning.solve import solve
from vulcan.policy.run import Run
from vulcan.problem import Problem
from vulcan.sampling.growth import Growth
from vulcan.solvers.base import Solver

__all__ = ["Controller"]


class Controller:
    """Act on a problem, and plan anew at every step.

    Parameters
    ----------
    problem
        Model and risk bound.
    seconds_per_step
        Planning time before each action; the first plan gets as much.
    samples_per_step
        The same as a number of samples: then the same observations give the same actions.
    solver
        How to plan; by default `Automatic()`, or `Growth()` for a number of samples.

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
        if solver is None and samples_per_step is not None:
            solver = Growth()
        self._solver = solver
        self._limits: dict[str, Any] = {
            "time_limit": seconds_per_step,
            "samples": samples_per_step,
        }
        self.result: Result = solve(problem, solver, **self._limits)
        if not self.result.safe or self.result.policy is None:
            raise PolicyError(
                "a controller needs a certified plan within the bound to begin with: "
                f"{self.result.explanation}"
            )
        # A policy without a text of its bound can't be replanned otherwise.
        self._bound = problem.risk_bound if problem.risk_bound.text is None else None
        self.run: Run = self.result.policy.start()
        self.replans: list[Replan] = []

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

        Parameters
        ----------
        observed
            The outcome: its label or position.
        told
            The outcome by its state or reward: `state=`, `reward=`.
        """
        self.run.observe(observed, **told)
        if not self.run.finished:
            self.replans.append(
                replan(self.run, self._solver, risk_bound=self._bound, **self._limits)
            )
