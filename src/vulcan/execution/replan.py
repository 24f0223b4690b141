"""Planning again on the way, within what was promised at the start.

What is left of the mission is a problem of its own (`vulcan.planning.rest`), with a risk bound of
its own: what the old plan still risks, and what the run's account allows beyond it
(`vulcan.execution.account`). The new plan is followed if the account allows it and it is better;
else the run goes on as it was. So a replan never makes a run worse, and however often, wherever and
with whatever solver runs replan, the whole keeps the line of its certificate.

Before that the run takes what was measured as evidence (`vulcan.execution.evidence`), if the model
says what follows from it. What a search knew of what is ahead now is where the next one begins
(`vulcan.solvers.knowledge`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from vulcan.bounds.base import RiskBound
from vulcan.bounds.parsing import read_bound
from vulcan.bounds.straight import Constant
from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError, PolicyError
from vulcan.execution.account import Account, Prospect, open_account
from vulcan.execution.evidence import take_evidence
from vulcan.graphs.array_graph import open_graph
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.planning.rest import begin_at
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.policies.execution import Run
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.limits import Limits
from vulcan.runtime.progress import OnProgress
from vulcan.solvers.automatic import Automatic
from vulcan.solvers.base import Options, Solver
from vulcan.solvers.knowledge import Knowledge
from vulcan.tolerance import TOLERANCE

__all__ = ["Replan", "replan"]


@dataclass(frozen=True)
class Replan:
    """What came of planning again.

    Attributes
    ----------
    changed
        Whether the run follows a new plan now.
    before, after
        What the run's plan risks and earns from here on, discounted from the start of the mission.
        None where there was, or is, no plan.
    kept
        Whether what was promised at the start still holds: not for a run that left its plan.
    result
        What the solver found for the rest of the mission, with rewards discounted from here on.
    """

    changed: bool
    before: Prospect | None
    after: Prospect | None
    kept: bool
    result: Result

    def __str__(self) -> str:
        def describe(prospect: Prospect | None) -> str:
            if prospect is None:
                return "no plan"
            return f"reward {prospect.reward:.6f} at risk {prospect.risk:.6f}"

        promise = "the promise holds" if self.kept else "nothing is promised: it left its plan"
        if self.changed:
            ahead = f"a new plan: {describe(self.after)}, before {describe(self.before)}"
        else:
            ahead = f"no better plan: {describe(self.after)}"
        return f"{ahead}; {promise} ({self.result.explanation})"


@dataclass(frozen=True)
class _Search:
    """What is left of a mission, and how to plan it."""

    model: Any
    solver: Solver
    limits: Limits
    seed: int
    on_progress: OnProgress | None
    progress: bool

    def solve(self, run: Run, bound: RiskBound) -> Result:
        """Search with what is known of what is ahead of a run, and keep what is known then."""
        reader, known = ModelReader(self.model), None
        if run.knowledge is not None:
            known = run.knowledge.begin_at(reader, run.path)
        if known is None and reader.merges:
            known = Knowledge(open_graph(reader), level=run.level)
        graph = known.graph if known and isinstance(known.graph, StateGraph) else None
        tree = known if known and known.tree is not None else None
        result = plan_and_certify(
            Problem(self.model, bound),
            self.solver,
            self.limits,
            Options(self.seed, graph=graph, knowledge=tree, keep=True),
            on_progress=self.on_progress,
            progress=self.progress,
        )
        if result.knowledge is not None:
            known = replace(result.knowledge, level=run.level)
        run.knowledge = known
        return result


def replan(
    run: Run,
    solver: Solver | None = None,
    *,
    risk_bound: RiskBound | float | str | None = None,
    time_limit: float | None = None,
    samples: int | None = None,
    histories: int | None = None,
    memory: int | None = None,
    gap: float | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Replan:
    """Plan again from where a run is, and let it follow the new plan if that is better.

    The promise made at the start is kept: over all missions, the probability of failure is at most
    what the risk bound allows for the expected reward (if the plan was within its bound; else it
    is no further from it). That holds whatever was replanned, how often, and in which of the
    histories that could have happened; one mission alone may take more risk than the plan would
    have. A run that left its plan (`Run.leave`) has no such promise: the model called impossible
    what happened. Its new plan risks no more than the old one would have from the last history
    that it foresaw, with what was left in its account, or as little as can be found.

    What was measured (`Run.measure`) is evidence, if the model says what follows from it (`given`).
    Then the old plan and the new one are both seen in the model given the true values, `before` and
    `after` and the certificate of `result` speak of that model, and the run goes on in it. What
    this does to the promise is in docs/theory/proofs.md: it holds as it is if the models given
    evidence are, in the mean, the model that was planned with. In the exploration mission that is
    exactly so for the risk of any plan, and as good as the quadrature is for its reward.

    Runs of one policy share what is known of the model: replan them one after another, not in
    several threads.

    Parameters
    ----------
    run
        A run of a policy that is bound to its model, not finished. It is changed in place.
    solver
        How to search; by default `Automatic()`.
    risk_bound
        The bound that the policy was made for, where the policy does not know it: that of a
        function without a text. It must be the same for all runs of a policy, and is read when a
        run is replanned for the first time.
    time_limit
        Stop the search after this many seconds.
    samples
        Stop the search after this many samples.
    histories
        Stop the search after this many histories.
    memory
        Stop the search when its tree and the state graph take this many bytes.
    gap
        Stop the search when the plan is proved to be within this share of the best.
    seed
        Seed of the search's random numbers. Of a randomised plan a member is drawn afresh: if all
        missions drew the same one, their mean would not be what was promised.
    on_progress
        Called with a `Progress` about ten times a second.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Replan
        What changed.

    Raises
    ------
    PolicyError
        If the run is finished, or not bound to a model.
    MismatchError
        If the model does not say of the next action what the plan was made with.
    OptionError
        If the risk bound is not known.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=6), risk_bound="0.002*x")
    >>> run = vulcan.solve(problem, vulcan.LocalVulcan(), samples=10).policy.start()
    >>> run.observe(0)
    >>> replanned = vulcan.replan(run)
    >>> round(replanned.before.reward, 3), round(replanned.after.reward, 3), replanned.kept
    (1.701, 2.663, True)
    """
    # Where a plan has nothing to say the run is at an end, but not the mission.
    if run.finished and (run.left_plan or not run.unplanned):
        raise PolicyError("the run is finished: there is nothing left to plan")
    limits = Limits(time_limit, samples, histories, memory, gap)  # refused before anything changes
    run.compare()  # what the old plan still risks is known only in the model that it was made for
    if run.account is None:
        run.account = _open_account(run, risk_bound)
    take_evidence(run)
    search = _Search(
        begin_at(run.reader, run.state, run.level, run.step),
        Automatic() if solver is None else solver,
        limits,
        seed,
        on_progress,
        progress,
    )
    return _plan_anew(run, search) if run.left_plan and run.unplanned else _improve(run, search)


def _open_account(run: Run, given: RiskBound | float | str | None) -> Account:
    """Return the account of a run at its start."""
    whole = run.whole
    bound = whole.about.risk_bound if given is None else given
    if bound is None:
        raise OptionError(
            "the policy does not know its risk bound, a function without a text: "
            "replan(run, risk_bound=...)"
        )
    return open_account(read_bound(bound), _look_ahead(whole, run.reader, 0))


def _look_ahead(policy: AnyPolicy, reader: ModelReader, level: int) -> Prospect:
    """Return what a policy that begins at a level risks and earns."""
    risk = reward = 0.0
    for member, chance in zip(policy.members, policy.weights, strict=True):
        if len(member):
            ahead = member.prospects(float(reader.discounts[level]))[0]
            risk += chance * float(ahead["risk"])
            reward += chance * float(ahead["mean"])
    return Prospect(risk, float(reader.weights[level]) * reward)


def _improve(run: Run, search: _Search) -> Replan:
    """Follow a better plan, if one is found that the account allows."""
    old = Prospect(0.0, 0.0) if run.unplanned else Prospect(run.risk, run.reward_ahead)
    before = None if run.unplanned else old
    result = search.solve(run, run.account.allow(old, float(run.reader.weights[run.level])))
    if result.policy is not None and result.policy.complete:
        new = _look_ahead(result.policy, run.reader, run.level)
        account = run.account.replace(old, new)
        better = new.reward > old.reward or new.risk < old.risk or run.unplanned
        if account is not None and better:
            run.follow(result.policy.start().policy)
            run.account = account
            return Replan(True, before, new, not run.left_plan, result)
    return Replan(False, before, before, not run.left_plan, result)


def _plan_anew(run: Run, search: _Search) -> Replan:
    """Find a plan for a run that left its own: of no more risk than that, or of the least."""
    planned = 0.0 if math.isnan(run.risk_left) else run.risk_left
    result = search.solve(run, Constant(min(1.0, planned + run.account.slack)))
    if not result.safe and result.safest is not None:
        result = search.solve(run, Constant(min(1.0, result.safest.risk + TOLERANCE)))
    if not result.safe or result.policy is None:
        return Replan(False, None, None, False, result)
    new = _look_ahead(result.policy, run.reader, run.level)
    run.follow(result.policy.start().policy)
    run.account = Account(0.0, 0.0, 0.0)
    return Replan(True, None, new, False, result)
