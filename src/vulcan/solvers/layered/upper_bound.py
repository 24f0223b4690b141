"""An upper bound on the reward of any policy, for results of solvers that have none of their own.

Where the state graph is small enough to be unrolled, it is the dual bound (see
`vulcan.solvers.layered.dual`): no policy within the risk bound, randomised or not, earns more.
Elsewhere it is what the model itself offers, `reward_to_go_bound` of its initial state, or nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vulcan.bounds.reward_limit import RewardLine
from vulcan.certificates.problem import Problem
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.layered.growth import Growth
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["RewardBound", "bound_any_policy"]


@dataclass(frozen=True)
class RewardBound:
    """What is known of the reward of any policy: as in `Finding`."""

    upper: float | None = None
    price: float | None = None
    lines: tuple[RewardLine, ...] = ()


def bound_any_policy(
    problem: Problem,
    reader: ModelReader,
    monitor: Monitor,
    graph: StateGraph | None,
    threads: int = 1,
) -> RewardBound:
    """Return the bound and the price of risk, each None if it can't be known, and what proves it.

    Parameters
    ----------
    problem, reader
        What was solved.
    monitor
        Its limits hold for the bound as well, and so does Ctrl-C.
    graph
        What is known of the model already.
    threads
        How many threads share the nodes of large levels.
    """
    run = LayeredRun(problem, reader, monitor, None, graph, threads)
    monitor.start_clock()
    if run.unroll(within=Growth(run.graph, monitor)):
        run.find_relaxed()
        problem.risk_bound.verify(run.rewards)
        return RewardBound(run.upper, run.price, run.lines)
    if hasattr(problem.model, "reward_to_go_bound") and not isinstance(reader.root, Start):
        bound = reader.bound_reward(reader.root, 0)
        return RewardBound(None if bound == math.inf else bound)
    return RewardBound()
