"""What all exact solvers share: the levels, their dual bound, and the best policy so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.reward_limit import RewardLine
from vulcan.certificates.problem import Problem
from vulcan.graphs.array_graph import open_graph
from vulcan.graphs.layered_graph import Layers, count_bytes, write_layers
from vulcan.graphs.levels import ChoicePlan, Levels, build_levels
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.policies.randomised import AnyPolicy, RandomisedPolicy
from vulcan.runtime.limits import StopReason
from vulcan.runtime.memory import find_default_memory
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.runtime.team import Team
from vulcan.solvers.base import describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status, Trial, Worth, find_gap
from vulcan.solvers.knowledge import Knowledge
from vulcan.solvers.layered.accuracy import find_accuracy
from vulcan.solvers.layered.arbiter import Arbiter
from vulcan.solvers.layered.coins import MANY_NODES
from vulcan.solvers.layered.corners import Corner, Mix
from vulcan.solvers.layered.dual import Dual, DualSearch
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.layered.refusal import explain_refusal
from vulcan.solvers.layered.sweeps import Sweeps, load_kernels
from vulcan.tolerance import ABSOLUTE_GAP, EXACT_GAP

__all__ = ["LayeredRun"]


UNSETTLED: Final = "roundings leave it open whether there is a better policy"
UNDECIDED: Final = "roundings leave it open whether a policy is within the risk bound"

SHARE_OF_UNROLLING: Final = 0.8
"""Of memory, for the state graph and its levels."""

ROOM_FOR_FRONTS: Final = 4
"""Times the memory of the layered graph that is needed to do something with it."""

GUESSED_SHARE: Final = 0.2
"""Decisions of a policy per node, before that is known."""

DECISION_SECONDS: Final = 1.5e-6
"""What a decision takes to be written out and certified, about."""


class LayeredRun:
    """One search on a layered graph.

    Parameters
    ----------
    problem, reader, monitor
        As `Solver.search` gets them.
    solver
        Whose search it is.
    graph
        What is known of the model already.
    threads
        How many threads share the nodes of large levels.

    Attributes
    ----------
    best
        The best acceptable deterministic policy so far: a corner whose plan makes a `Policy`.
    mix
        The randomised policy that counts as the best one, if that is what is looked for.
    upper
        No policy within the risk bound earns more.
    price
        What the upper bound gains per unit of allowed risk; None before there is one.
    lines
        What every policy keeps to, whatever the bound is.
    referee
        What says whether policies are acceptable.
    relaxed
        What the best randomised policy earns; None before that is known.
    trials
        One for each dynamic program.
    proof
        What a proof is called: who made it, if it was not made here.
    """

    levels: Levels

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        solver: object,
        graph: StateGraph | None = None,
        threads: int = 1,
    ) -> None:
        load_kernels()
        self.problem, self.reader, self.monitor = problem, reader, monitor
        self.bound = problem.risk_bound
        self.referee = Referee(self.bound)
        self.graph = open_graph(reader) if graph is None else graph
        self.team = Team(threads)
        self._solver = solver
        self.best: Corner | None = None
        self.mix: Mix | None = None
        self.upper = math.inf
        self.price: float | None = None
        self.lines: tuple[RewardLine, ...] = ()
        self.relaxed: float | None = None
        self.proof = "proved"
        self.rewards: list[float] = []
        self.trials: list[Trial] = []
        self._nodes = self._decisions = 0
        self._worths: list[Worth] = []
        self._arbiter = Arbiter(problem, self.write_out, self.may_go_on)
        memory = monitor.limits.memory
        self._memory = find_default_memory() if memory is None else memory

    def unroll(self, *, tree: bool = False, within: Callable[[float], bool] | None = None) -> bool:
        """Build the levels; False if a limit or Ctrl-C came first.

        Parameters
        ----------
        tree
            One node for each history.
        within
            Asked whether to go on, with the seconds that the answer needs; see `reserve`.
        """

        def may_go_on(nodes: int, memory: int) -> bool:
            self._nodes = nodes
            self.report()
            # What is done with the levels, and the policy, take memory as well.
            enough = (self.graph.memory + memory) / SHARE_OF_UNROLLING - self.graph.memory
            return (within is None or within(self.reserve)) and self.may_go_on(int(enough))

        levels = build_levels(self.graph, tree=tree, may_go_on=may_go_on)
        if levels is not None:
            self.use(levels)
        return levels is not None

    def forget_graph(self) -> None:
        """Begin with a state graph of which nothing is known."""
        self.graph = open_graph(self.reader)

    def use(self, levels: Levels, tips: NDArray[np.void] | None = None) -> None:
        """Work on some levels, with what is known of their tips."""
        self.levels, self.sweeps = levels, Sweeps(levels, tips, self.team)
        self.referee = Referee(self.bound, find_accuracy(levels, tips, self.team))
        self.__dict__.pop("layers", None)

    @cached_property
    def layers(self) -> Layers:
        """The levels with every action of every node written out."""
        return write_layers(self.levels)

    def has_room_for_layers(self) -> bool:
        """Whether the limit of memory allows to write the levels out, and to work on them."""
        return self.may_go_on(ROOM_FOR_FRONTS * count_bytes(self.levels))

    @property
    def room(self) -> int:
        """How many bytes there is room for beside the state graph."""
        return max(0, self._memory - self.graph.memory)

    def has_room(self, memory: int = 0) -> bool:
        """Whether there is room for this many bytes beside the state graph."""
        return self.graph.memory + memory <= self._memory

    def may_go_on(self, memory: int = 0) -> bool:
        """Whether no limit is reached yet, with this many bytes in use beside the state graph."""
        if not self.has_room(memory):
            self.monitor.stopped_by = StopReason.MEMORY
        stopped = self.monitor.stopped_by is not None
        return not stopped and not self.monitor.wants_stop(0, reserve=self.reserve)

    @property
    def reserve(self) -> float:
        """Seconds that it takes to write out and certify a policy, about.

        A certificate asks the model for an action of each state that the policy comes to.
        """
        asked = max(1, self.graph.evaluations)
        share = len(self.graph.expanded) / asked
        decisions = self._decisions or self._nodes * GUESSED_SHARE
        return share * self.graph.asking_seconds + DECISION_SECONDS * decisions

    def find_relaxed(self) -> Dual:
        """Find the best randomised policy, and with it the dual bound."""
        if not len(self.levels):
            self.offer(Corner(0.0, 0.0, ChoicePlan(self.levels, np.zeros(0, np.int32))))
        search = DualSearch(self.referee, self.sweep, self.may_go_on, self.accepts)
        dual = search.run()
        self.rewards += search.rewards
        self._worths = [Worth(corner.reward, corner.risk) for corner in dual.corners]
        self.relaxed = None if dual.best is None else dual.best.reward
        self.upper, self.lines = dual.upper_bound, dual.lines
        self.price = None if self.upper == -math.inf else dual.price
        hurried = self.monitor.limits.time_limit is not None
        if hurried and self.best is not None and len(self.levels) > MANY_NODES:
            self._decisions = 2 * len(self.best.plan.decide().rows)
        return dual

    def sweep(self, reward_weight: float, risk_weight: float) -> Corner:
        """Return the best policy for some weights: one dynamic program."""
        corner = self.sweeps.find_best(reward_weight, risk_weight)
        allowed = self.bound(corner.reward)
        price = risk_weight / reward_weight if reward_weight else math.inf
        passes = self.offer(corner) or self.referee.accepts(corner) or self._is_worth_best(corner)
        self.trials.append(Trial(price, corner.reward, corner.risk, allowed, passes))
        self.report()
        return corner

    def offer(self, corner: Corner) -> bool:
        """Keep a policy if it is acceptable and the best so far."""
        better = self.best is None or corner.reward > self.best.reward
        if better and self.accepts(corner):
            self.best = corner
            return True
        return False

    def _is_worth_best(self, corner: Corner) -> bool:
        """Whether a policy earns and risks what the best does, which may have been in doubt."""
        best = self.best
        return best is not None and (corner.reward, corner.risk) == (best.reward, best.risk)

    def accepts(self, corner: Corner) -> bool:
        """Whether a policy is acceptable; where roundings can't tell, its certificate decides."""
        return self._arbiter.accepts(self.referee, corner)

    @property
    def in_doubt(self) -> bool:
        """Whether roundings left it open of a policy whether it is acceptable."""
        return self._arbiter.doubtful

    @property
    def gap(self) -> float:
        """How far the best policy may be from the best possible; inf without one."""
        return math.inf if self.best is None else find_gap(self.best.reward, self.upper)

    @property
    def size(self) -> float:
        """How large the rewards are that matter: of the best policies, with a bound or not."""
        most = max((trial.reward for trial in self.trials), default=0.0)
        return max(abs(most), 0.0 if self.best is None else abs(self.best.reward))

    @property
    def rounding(self) -> float:
        """What rounding may do to a bound; one that is no farther away is attained."""
        return self.referee.find_rounding(self.upper)

    @property
    def tolerance(self) -> float:
        """The distance from the upper bound at which a policy is good enough."""
        gap = self.monitor.limits.gap
        gap = getattr(self._solver, "default_gap", 0.0) if gap is None else gap
        return max(self.rounding, gap * abs(self.upper), ABSOLUTE_GAP if gap else 0.0)

    @property
    def closed(self) -> bool:
        """Whether the best policy is good enough."""
        if self.best is None or self.upper == math.inf:
            return False
        return self.upper - self.best.reward <= self.tolerance

    def report(self) -> None:
        """Tell how far the search is, if it is time to."""
        self.monitor.report(self._describe_progress)

    def _describe_progress(self) -> Progress:
        reward = None if self.best is None else self.best.reward
        upper = None if math.isinf(self.upper) else self.upper
        return Progress(
            self.monitor.seconds,
            None,
            0,
            self.graph.evaluations,
            reward,
            upper_bound=upper,
            gap=None if upper is None or reward is None else self.gap,
            pairs=self._nodes,
        )

    def offer_mix(self, mix: Mix | None) -> None:
        """Take a randomised policy for the best so far."""
        if mix is not None:
            self.mix, self.best = mix, Corner(mix.reward, mix.risk, mix.safe.plan)

    def build_policy(self) -> AnyPolicy | None:
        """Return the best policy so far; None without one."""
        if self.best is None:
            return None
        if self.mix is None or self.mix.daring is self.mix.safe:
            return self.write_out(self.best)
        members = [self.write_out(corner) for corner in (self.mix.safe, self.mix.daring)]
        return RandomisedPolicy(members, (1 - self.mix.weight, self.mix.weight))

    def write_out(self, corner: Corner) -> Policy:
        """Return the policy of a corner."""
        about = describe_origin(self.problem, self.reader, self._solver)
        decisions = corner.plan.decide()
        return self.graph.policy(decisions.rows, decisions.children, about)

    def find(self, otherwise: str = UNSETTLED) -> Finding:
        """Return what was found.

        Parameters
        ----------
        otherwise
            The explanation where nothing is proved and nothing stopped the search.
        """
        policy = self.build_policy()
        if self.best is not None:
            self.upper = max(self.upper, self.referee.raise_reward(self.best.reward))
        status, explanation = self._explain(policy, otherwise)
        statistics = Statistics(
            self.monitor.seconds,
            0,
            self.graph.evaluations,
            nodes=len(self.levels) if hasattr(self, "levels") else 0,
            memory=self.graph.memory,
        )
        finding = Finding(
            status=status,
            explanation=explanation,
            policy=policy,
            certificate=None if self.mix else self._arbiter.find_certificate(self.best),
            reward=-math.inf if self.best is None else self.best.reward,
            risk=0.0 if self.best is None else self.best.risk,
            credits=sorted(set(self.rewards)),
            statistics=statistics,
            upper_bound=None if self.upper == math.inf else self.upper,
            rounding=0.0 if math.isinf(self.upper) else self.rounding,
            trials=tuple(self.trials),
            price=self.price,
            lines=self.lines,
            graph=self.graph,
            knowledge=Knowledge(self.graph),
            relaxed=self.relaxed,
        )
        if status is Status.INFEASIBLE and self._worths:
            given = (self.bound, self._worths, self.sweeps, self.may_go_on)
            return explain_refusal(finding, *given)
        return finding

    def _explain(self, policy: AnyPolicy | None, otherwise: str) -> tuple[Status, str]:
        if policy is not None and self.closed:
            return Status.SOLVED, f"{self._describe_distance()}, {self.proof}"
        if policy is None and self.upper == -math.inf:
            return Status.INFEASIBLE, f"no policy is within the risk bound, {self.proof}"
        found = "no policy found yet" if policy is None else "best policy so far"
        if self.monitor.stopped_by is not None:
            return Status.STOPPED, f"stopped by {self.monitor.stopped_by}: {found}"
        return Status.DONE, UNDECIDED if policy is None and self.in_doubt else otherwise

    def _describe_distance(self) -> str:
        """Return how good the best policy is, if it is good enough."""
        assert self.best is not None
        kind = "policy" if self.mix is None else "randomised policy"
        if self.gap <= EXACT_GAP:
            return f"best {kind} within the risk bound"
        distance = self.upper - self.best.reward
        if distance <= self.rounding:
            return f"best {kind} within the risk bound up to roundings of {distance:.2g}"
        return f"within {100 * self.gap:.2g} % of the best {kind}"
