"""The exact solvers: a list of steps that improve the best policy, or lower the upper bound.

    for step in steps:
        step(search)
        if search.closed:
            break

An `ExactSearch` (`vulcan.exact.search`) holds the problem, its state–step pairs (levels), the
enclosure (the best acceptable policy so far, and an upper bound), and the limits.

| step | finds | file |
|---|---|---|
| `find_dual` | upper bound for all policies, best randomised policy, price of failure | dual |
| `improve` | deterministic policies near that price, by fronts of a few points | thin_fronts |
| `advance_few_fronts` | both, on small problems, by the fronts of a moment | fronts |
| `branch` | a lower upper bound for deterministic policies, by the first decisions | branch |
| `advance_fronts` | both, by exact fronts; a proof if there is time for it | fronts |
|  | the same for several constraints, if all but one are caps on the risk ahead | fronts |
| `find_prices` | for several constraints: dual bound, best mixture, prices | several |
| `round_mixture` | for several constraints: a policy close to the mixture | rounding |
| `join_fronts` | for several constraints: deterministic policies, proofs on small ones | several |

A solver runs a list of steps: `Pareto` runs `PARETO`, `Lagrangian` `LAGRANGIAN` or `RANDOMISED`,
and the default solver (`vulcan.planning.automatic`) `AUTOMATIC`. `bound_reward` finds the dual
bound alone, for results of solvers that have no upper bound of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from vulcan.bounds.base import RewardLine
from vulcan.constraints import list_events
from vulcan.exact.branch import branch
from vulcan.exact.fronts import advance_fronts
from vulcan.exact.rounding import round_mixture
from vulcan.exact.search import ExactSearch
from vulcan.exact.several import find_prices, join_fronts, offer_mixture
from vulcan.exact.thin_fronts import improve
from vulcan.graph.states import StateGraph
from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor, OnProgress, TimeUp
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver
from vulcan.solvers.base import RANDOMISED as RANDOMISED_OPTION
from vulcan.solvers.finding import Finding

Step = Callable[[ExactSearch], object]
Steps = tuple[Step, ...]

FEW_FRONTS: Final = 1_000_000  # pairs of points that are combined before branching
# Pairs of points that `AUTOMATIC` combines without a time limit: in all, and for each pair.
SMALL_FRONTS: Final = 20_000_000, 4_000
CAPPED_FRONTS: Final = 500_000_000  # the same under a cap on the risk ahead, in all


def narrow(search: ExactSearch, steps: Steps) -> None:
    """Run steps until the gap is closed; those of several constraints where a problem has them.

    Steps watch the limits themselves: once a limit is reached, the remaining steps return at once.
    """
    if search.problem.constraints:
        steps = {RANDOMISED: SEVERAL_RANDOMISED, LAGRANGIAN: SEVERAL_NEAR}.get(steps, SEVERAL)
    for step in steps:
        step(search)
        if search.closed:
            break


def randomise(search: ExactSearch) -> None:
    """Take the best mixture of two policies, which `find_dual` found, as the answer."""
    search.offer_mix(search.dual.best)


def advance_few_fronts(search: ExactSearch) -> None:
    """Combine `FEW_FRONTS` pairs at most: on small problems fronts are done before branching."""
    advance_fronts(search, most_combined=FEW_FRONTS)


def advance_limited_fronts(search: ExactSearch) -> None:
    """Compute fronts until the time limit; without one, combine a limited number of points."""
    limited = search.monitor.limits.time_limit is not None
    most = min(SMALL_FRONTS[0], max(FEW_FRONTS, SMALL_FRONTS[1] * len(search.levels)))
    if search.problem.constraints:
        most = CAPPED_FRONTS
    advance_fronts(search, most_combined=None if limited else most)


find_dual: Final = ExactSearch.find_dual
RANDOMISED: Final[Steps] = (find_dual, randomise)
LAGRANGIAN: Final[Steps] = (find_dual, improve)
PARETO: Final[Steps] = (find_dual, improve, advance_few_fronts, branch, advance_fronts)
AUTOMATIC: Final[Steps] = (find_dual, improve, advance_few_fronts, branch, advance_limited_fronts)
SEVERAL: Final[Steps] = (find_prices, round_mixture, advance_limited_fronts, join_fronts)
SEVERAL_NEAR: Final[Steps] = (find_prices, round_mixture, partial(join_fronts, proves=False))
SEVERAL_RANDOMISED: Final[Steps] = (find_prices, offer_mixture)


@dataclass(frozen=True)
class Pareto(Solver):
    """Find the best deterministic policy, history-dependent, by fronts of risk and reward.

    With a target gap (`solve(..., gap=0.001)`) the search ends as soon as it is proved. Without one
    it ends when its policy is proved to be the best, up to rounding, or a limit is reached.
    """

    finds: ClassVar[str] = "the best deterministic policy, history-dependent, proved"
    method: ClassVar[str] = "fronts of risk and reward over state–step pairs"
    limits: ClassVar[Sequence[str]] = (*EXACT, "gap")
    devices: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC
    several: ClassVar[bool] = True

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        where = options.threads, options.device
        search = ExactSearch(problem, reader, monitor, self, options.graph, *where)
        monitor.start_clock()
        if search.unroll():
            narrow(search, PARETO)
        return search.find()


@dataclass(frozen=True)
class Lagrangian(Solver):
    """Find the price of failure at which the allowed risk is just used up, and policies there.

    Its upper bound holds for every policy, randomised or not. The policy that it returns is the
    best deterministic one that was found on the way: rarely the very best, often close to it.

    Parameters
    ----------
    randomised
        Return the best randomised policy instead, whose reward is the upper bound.
    """

    finds: ClassVar[str] = "an upper bound on all policies, and a deterministic policy close to it"
    method: ClassVar[str] = "dynamic programs for a price of failure, and fronts of a few points"
    limits: ClassVar[Sequence[str]] = EXACT
    devices: ClassVar[bool] = True
    covers: ClassVar[Coverage] = Coverage.EVERY
    options: ClassVar[Sequence[Option]] = (RANDOMISED_OPTION,)
    several: ClassVar[bool] = True

    randomised: bool = False

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        where = options.threads, options.device
        search = ExactSearch(problem, reader, monitor, self, options.graph, *where)
        monitor.start_clock()
        if search.unroll():
            narrow(search, RANDOMISED if self.randomised else LAGRANGIAN)
        if self.randomised:
            return search.find("best randomised policy found")
        return search.find(
            "best deterministic policy found near the price of failure"
            if search.best is not None
            else "found no deterministic policy within the bound; one may exist: try Pareto"
        )


@dataclass(frozen=True)
class RewardBound:
    """An upper bound on the reward of every policy; fields as in `Finding`."""

    upper: float | None = None
    price: float | None = None
    lines: tuple[RewardLine, ...] = ()


def bound_reward(
    problem: Problem,
    limits: Limits | None = None,
    *,
    graph: StateGraph | None = None,
    on_progress: OnProgress | None = None,
) -> RewardBound:
    """Return an upper bound on the reward of any policy within the risk bound, randomised or not.

    Parameters
    ----------
    problem, limits
        Model and risk bound, and limits of time and memory.
    graph
        A state graph of the model that is partly evaluated already.
    on_progress
        Called with the progress.

    Returns
    -------
    RewardBound
        Its `upper` is None if the model could not be unrolled within the limits and has no
        `reward_to_go_bound`.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> round(bound_reward(problem).upper, 4)
    1.5374
    """
    events = list_events(problem.constraints)
    reader = ModelReader(problem.model, events) if graph is None else graph.reader
    limits = Limits() if limits is None else limits.keep(EXACT)
    with suppress(TimeUp), Monitor(limits, on_progress) as monitor:
        search = ExactSearch(problem, reader, monitor, None, graph)
        monitor.start_clock()
        if search.unroll(while_it_pays=True):
            (find_prices if problem.constraints else find_dual)(search)
            problem.risk_bound.verify(search.rewards)
            return RewardBound(search.upper, search.price, search.lines)
        if hasattr(problem.model, "reward_to_go_bound") and not isinstance(reader.root, Start):
            bound = reader.bound_reward(reader.root, 0)
            return RewardBound(None if bound == math.inf else bound)
    return RewardBound()
