"""The state of an exact search: levels, the enclosure of the optimum, and limits.

The *enclosure* is the best acceptable policy so far (`best`) and an upper bound on the optimum
(`upper`), both allowing for rounding errors; it is `closed` once the policy is as close to the
bound as was requested. Steps of the pipeline `offer` policies and lower `upper`.

Whether unrolling continues depends on how the graph has grown so far. Where outcomes lead to known
states, the number of state–step pairs grows with the states, and dynamic programs over all pairs
are better than samples: only time and memory end the unrolling. Where nearly every outcome leads to
a new state, pairs multiply from step to step, and the problem is left to sampling.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RewardLine, RiskBound
from vulcan.certificate.certify import Certificate, certify
from vulcan.exact.acceptance import BoundTest
from vulcan.exact.device import open_sweeps
from vulcan.exact.dual import Dual, find_multiple
from vulcan.exact.several import Several
from vulcan.exact.sweeps import PolicyPoint, load_kernels
from vulcan.exact.thin_fronts import MANY_PAIRS
from vulcan.graph.levels import Layers, Levels, build_levels, write_layers
from vulcan.graph.states import StateGraph, open_graph
from vulcan.model.keys import advise_to_merge
from vulcan.model.reader import ModelReader
from vulcan.numerics import EXACT_GAP
from vulcan.policy.policy import AnyPolicy, Policy, RandomisedPolicy
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor, Progress, StopReason, TimeUp, find_default_memory
from vulcan.solvers.base import describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status, Trial, Worth, find_gap, is_closed

# Evaluations allowed while unrolling pays.
FEW_EVALUATIONS: Final = 50_000  # always allowed: a second for a quick model
FEW_HISTORIES: Final = 20_000  # where states do not merge: a plan over histories should not wait
MOST_EVALUATIONS: Final = 3_000_000  # without a time limit: half a minute for a quick model
FIRST_EVALUATIONS: Final = 500  # enough to tell whether states merge at all
MANY_EVALUATIONS: Final = 5_000  # enough to tell whether states merge often enough

MERGED: Final = 0.5  # new states per outcome up to which a graph counts as merging
MULTIPLIED: Final = 2.5  # states per evaluated state, above which states multiply step by step

# Shares of a time limit for unrolling; the rest is for the search itself.
SHARE_OF_TIME: Final = 0.85  # where states merge
SHARE_OF_HISTORIES: Final = 0.05  # where states do not merge
SHARE_UNTIL_KNOWN: Final = 0.25  # where they did not so far, after few evaluations
SHARE_OF_CERTIFICATE: Final = 0.5  # at most; a policy that needs more is planned, not certified

SHARE_OF_UNROLLING: Final = 0.8  # of memory, for the state graph and its levels
GUESSED_SHARE: Final = 0.2  # decisions of a policy per state–step pair, before any policy is known
DECISION_SECONDS: Final = 1.5e-6  # to write out and certify a decision, approximately
LEVEL_SECONDS: Final = 1e-5  # the same for a level of decisions
MOST_CHECKS: Final = 32  # a safeguard, for bounds so steep that almost every policy is in doubt

UNSETTLED: Final = "a better policy cannot be excluded because of rounding"
UNDECIDED: Final = "rounding leaves open whether a policy is within the risk bound"


class ExactSearch:
    """One search over state–step pairs, and its enclosure of the optimum.

    Policies name `solver` as their origin. `graph` is the part of the model that was evaluated
    before. `threads` share the pairs of large levels, or the GPU of a `device` computes them.
    """

    levels: Levels
    dual: Dual
    several: Several

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        solver: object,
        graph: StateGraph | None = None,
        threads: int = 1,
        device: str = "cpu",
    ) -> None:
        load_kernels()
        self.problem, self.reader, self.monitor = problem, reader, monitor
        self.bound = problem.risk_bound
        self.bound_test = BoundTest(self.bound)
        constraints = problem.constraints
        self.graph = open_graph(reader, constraints=constraints) if graph is None else graph
        self._solver, self._where = solver, (threads, device)
        self.best: PolicyPoint | None = None  # the best acceptable deterministic policy
        self.mix: PolicyPoint | None = None  # the answer, if a randomised policy is requested
        self.upper = math.inf  # no policy within the risk bound earns more
        self.price: float | None = None  # gain of the upper bound per unit of allowed risk
        self.lines: tuple[RewardLine, ...] = ()  # hold for every policy, whatever the bound is
        self.most, self.least = math.inf, -math.inf  # rewards of all policies lie between these
        self.relaxations: tuple[tuple[str, float | None], ...] = ()
        self.mixture: PolicyPoint | None = None  # the best randomised policy for several limits
        self.relaxed: float | None = None  # reward of the best randomised policy
        self.proof = "proved"  # how the bound was proved, such as "proved by HiGHS"
        self.rewards: list[float] = []  # rewards at which the risk bound was evaluated
        self.trials: list[Trial] = []  # one for each dynamic program
        self.in_doubt = False  # whether rounding left it open if some policy is acceptable
        self._pairs = self._decisions = 0
        self._advice = ""
        self._worths: list[Worth] = []
        self._decided: list[tuple[PolicyPoint, Certificate]] = []
        memory = monitor.limits.memory
        self._memory = find_default_memory() if memory is None else memory

    def unroll(
        self,
        *,
        while_it_pays: bool = False,
        share: float = 1.0,
        most_pairs: float = math.inf,
        most_new: float = math.inf,
    ) -> bool:
        """Build the levels; False if a limit or Ctrl-C came first.

        `while_it_pays` also stops where sampling is better, and where states merge after this
        `share` of the usual work; for the other limits see `build_levels`.
        """

        def may_go_on(pairs: int, memory: int) -> bool:
            self._pairs = pairs
            self.report()
            # Later steps and the policy need memory as well.
            enough = (self.graph.memory + memory) / SHARE_OF_UNROLLING - self.graph.memory
            return (not while_it_pays or self.pays_to_unroll(share)) and self.may_go_on(int(enough))

        levels = build_levels(
            self.graph, may_go_on=may_go_on, most_pairs=most_pairs, most_new=most_new
        )
        if levels is not None:
            self.use(levels)
        return levels is not None

    def pays_to_unroll(self, part: float = 1.0) -> bool:
        """Return whether to continue unrolling.

        Where states merge, `part` of the usual work is allowed. Without a time limit the answer
        depends on counts alone, so that the same problem is always treated in the same way.
        """
        limit, evaluations = self.monitor.limits.time_limit, self.graph.evaluations
        merges = not self.finds_histories
        if limit is not None:
            share = part * SHARE_OF_TIME if merges else SHARE_OF_HISTORIES
            if not merges and evaluations <= FIRST_EVALUATIONS:
                share = SHARE_UNTIL_KNOWN
            if self.monitor.seconds + (self.reserve if merges else 0.0) > share * limit:
                return False
        if evaluations <= (FEW_EVALUATIONS if merges else min(FEW_EVALUATIONS, FEW_HISTORIES)):
            return True
        return merges and (limit is not None or evaluations <= part * MOST_EVALUATIONS)

    def fits(self, states: float) -> bool:
        """Return whether this many states can probably be unrolled within the limits."""
        graph, limit = self.graph, self.monitor.limits.time_limit
        evaluations = states * graph.evaluations / max(1, len(graph.expanded))
        each = graph.evaluation_seconds / max(1, graph.evaluations)
        in_time = limit is None or evaluations * each < 0.5 * SHARE_OF_TIME * limit
        return evaluations <= MOST_EVALUATIONS and in_time

    @property
    def finds_histories(self) -> bool:
        """Whether nearly every outcome leads to a new state, or new states multiply.

        Where they still multiply after a quarter of a time limit, the rest would not unroll in it.
        """
        graph = self.graph
        states, expanded = graph.states.count, len(graph.expanded)
        new = states > MERGED * max(1, graph.outcomes.count)
        limit = self.monitor.limits.time_limit
        late = limit is not None and self.monitor.seconds > SHARE_UNTIL_KNOWN * limit
        known = late or graph.evaluations > MANY_EVALUATIONS
        return not graph.merges or new or (known and states > MULTIPLIED * expanded)

    def forget_graph(self) -> None:
        """Begin again with an empty state graph."""
        self._advice = self.advise()
        self.graph = open_graph(self.reader, constraints=self.problem.constraints)

    def advise(self) -> str:
        """Return what merging histories would win, by the first states of the graph."""
        graph, some = self.graph, self.graph.expanded[:MANY_EVALUATIONS]
        if self._advice or self.reader.has_keys or not some:
            return self._advice
        answers = set()
        for first, count in graph.states.array[some].tolist():
            actions = graph.actions.array[first : first + max(0, count)]
            begin = int(actions["first_outcome"][0]) if len(actions) else 0
            outcomes = graph.outcomes.array[begin : begin + int(actions["outcome_count"].sum())]
            numbers = (actions["number"], actions["safe_count"], outcomes["probability"])
            parts = [np.ascontiguousarray(x).tobytes() for x in (*numbers, outcomes["reward"])]
            answers.add(b"".join(parts))
        safe = graph.actions.array["safe_count"][: graph.actions.count]
        counts = int(safe.sum()), graph.states.count
        return advise_to_merge(len(some), len(answers), *counts)

    def use(self, levels: Levels, tips: NDArray[np.void] | None = None) -> None:
        """Work on some levels, with the values of their tips."""
        self.levels, self.sweeps = levels, open_sweeps(levels, tips, *self._where)
        self.bound_test = BoundTest.of_levels(self.bound, levels, tips, *self._where)
        self.__dict__.pop("layers", None)
        if self.problem.constraints:
            self.several = Several(self)

    @cached_property
    def layers(self) -> Layers:
        """The levels with every action of every pair written out."""
        return write_layers(self.levels)

    @property
    def room(self) -> int:
        """Bytes available beside the state graph."""
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
        """Approximate seconds to write out and certify a policy.

        A certificate evaluates an action of each state that the policy reaches.
        """
        share = len(self.graph.expanded) / max(1, self.graph.evaluations)
        decisions = self._decisions or self._pairs * GUESSED_SHARE
        levels = min(self.reader.levels, self._pairs)
        own = DECISION_SECONDS * decisions + LEVEL_SECONDS * levels
        limit = self.monitor.limits.time_limit
        most = math.inf if limit is None else SHARE_OF_CERTIFICATE * limit
        return min(share * self.graph.evaluation_seconds + own, most)

    def expect(self, decisions: int) -> None:
        """Leave time to certify a policy of this many decisions."""
        self._decisions = max(self._decisions, decisions)

    def open_dual(self) -> Dual:
        """Return a search for the best randomised policy that has not begun."""
        return Dual(self.bound_test, self.sweep, self.may_go_on, self.accepts)

    def find_dual(self, dual: Dual | None = None) -> Dual:
        """Find the best randomised policy and the dual bound; continue `dual` if it is given."""
        if not len(self.levels):
            self.offer(PolicyPoint(0.0, 0.0))
        self.dual = dual = (self.open_dual() if dual is None else dual).search()
        self.rewards += [point.reward for point in dual.points]
        self._worths = [Worth(point.reward, point.risk) for point in dual.points]
        self.relaxed = None if dual.best is None else dual.best.reward
        self.upper, self.lines = dual.upper_bound, tuple(dual.lines)
        self.price = None if self.upper == -math.inf else dual.price
        hurried = self.monitor.limits.time_limit is not None
        if hurried and self.best is not None and len(self.levels) > MANY_PAIRS:
            self._decisions = 2 * len(self.best.decide().rows)
        return dual

    def sweep(self, reward_weight: float, risk_weight: float) -> PolicyPoint:
        """Return the best policy for some weights: one dynamic program."""
        point = self.sweeps.find_best(reward_weight, risk_weight)
        allowed = self.bound(point.reward)
        price = risk_weight / reward_weight if reward_weight else math.inf
        passes = self.offer(point) or self.bound_test.accepts(point)
        if not passes and self.best is not None:  # the same values as a certified policy
            passes = (point.reward, point.risk) == (self.best.reward, self.best.risk)
        self.trials.append(Trial(price, point.reward, point.risk, allowed, passes))
        self.report()
        return point

    def offer(self, point: PolicyPoint) -> bool:
        """Keep a policy if it is acceptable and the best so far."""
        better = self.best is None or point.reward > self.best.reward
        if better and self.accepts(point):
            self.best = point
            return True
        return False

    def accepts(self, point: PolicyPoint) -> bool:
        """Whether a policy is acceptable; where rounding leaves that open, certify it."""
        if self.problem.constraints:
            verdict = self.several.judge(point)
            if verdict is not None:
                return verdict
        elif self.bound_test.accepts(point):
            return True
        elif self.refuses(point):
            return False
        self.in_doubt = True
        certificate = self._find_certificate(point)
        if certificate is None and len(self._decided) < MOST_CHECKS and self.may_go_on():
            try:
                certificate = certify(self.problem, self.write_out(point))
            except TimeUp:
                return False
            self._decided.append((point, certificate))
        return certificate is not None and certificate.safe

    def refuses(self, point: PolicyPoint) -> bool:
        """Whether a policy is certainly not acceptable."""
        if self.problem.constraints:
            return self.several.judge(point) is False
        return self.bound_test.refuses(point)

    @property
    def bounds(self) -> list[RiskBound]:
        """The bounds of all sums that are limited, the risk bound first."""
        return self.several.bounds if self.problem.constraints else [self.bound]

    def _find_certificate(self, point: PolicyPoint | None) -> Certificate | None:
        """Return the certificate of a policy, if it was in doubt; else None."""
        for known, found in self._decided:
            if known is point or (point is not None and _are_same(known, point)):
                return found
        return None

    @property
    def gap(self) -> float:
        """Relative distance of the best policy from the upper bound; inf without one."""
        return math.inf if self.best is None else find_gap(self.best.reward, self.upper)

    @property
    def size(self) -> float:
        """The largest absolute reward of the best policies, with and without the risk bound."""
        most = max((trial.reward for trial in self.trials), default=0.0)
        if self.problem.constraints and math.isfinite(self.most):
            most = self.most
        return max(abs(most), 0.0 if self.best is None else abs(self.best.reward))

    @property
    def rounding(self) -> float:
        """Rounding error of the upper bound: a policy at a smaller distance attains it."""
        return self.bound_test.find_rounding(self.upper)

    @property
    def requested_gap(self) -> float:
        """The relative gap at which a policy is good enough."""
        gap = self.monitor.limits.gap
        return float(getattr(self._solver, "default_gap", 0.0)) if gap is None else gap

    @property
    def closed(self) -> bool:
        """Whether the best policy is good enough."""
        if self.best is None or self.upper == math.inf:
            return False
        return is_closed(self.best.reward, self.upper, self.requested_gap, self.rounding)

    def report(self) -> None:
        """Report the progress, if it is time to."""
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
            pairs=self._pairs,
        )

    def offer_mix(self, mix: PolicyPoint | None) -> None:
        """Make a randomised policy the best so far."""
        if mix is not None:
            self.mix = self.best = mix

    def build_policy(self) -> AnyPolicy | None:
        """Return the best policy so far; None without one."""
        return None if self.best is None else self.write_out(self.best)

    def write_out(self, point: PolicyPoint) -> AnyPolicy:
        """Return the policy of a point."""
        if point.members:
            members = [self._write_one(member) for member in point.members]
            return RandomisedPolicy(members, point.weights or (1 - point.weight, point.weight))
        return self._write_one(point)

    def _write_one(self, point: PolicyPoint) -> Policy:
        about = describe_origin(self.problem, self.reader, self._solver)
        decisions = point.decide()
        return self.graph.policy(decisions.rows, decisions.children, about)

    def find(self, otherwise: str = UNSETTLED) -> Finding:
        """Return what was found; `otherwise` explains an end without a proof or a limit."""
        self.monitor.grant_certificate()
        try:
            policy, planned = self.build_policy(), None
        except TimeUp:
            assert self.best is not None
            policy, planned = None, Worth(self.best.reward, self.best.risk)
            self.monitor.stopped_by = StopReason.TIME
        if self.best is not None:
            self.upper = max(self.upper, self.bound_test.raise_reward(self.best.reward))
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
            planned=planned,
            certificate=None if self.mix else self._find_certificate(self.best),
            reward=-math.inf if self.best is None else self.best.reward,
            risk=0.0 if self.best is None else self.best.risk,
            credits=sorted(set(self.rewards)),
            statistics=statistics,
            upper_bound=None if self.upper == math.inf else self.upper,
            rounding=0.0 if math.isinf(self.upper) else self.rounding,
            trials=tuple(self.trials),
            price=self.price,
            lines=self.lines,
            relaxed=self.relaxed,
            relaxations=self.relaxations,
        )
        if status is Status.INFEASIBLE and self._worths:
            safest = min(self._worths, key=lambda worth: (worth.risk, -worth.reward))
            given = (self.bound, self._worths, self.sweeps.find_best, self.may_go_on)
            return replace(finding, safest=safest, sufficient=find_multiple(*given))
        return finding

    def _explain(self, policy: AnyPolicy | None, otherwise: str) -> tuple[Status, str]:
        if policy is not None and self.closed:
            return Status.SOLVED, f"{self._describe_distance()}, {self.proof}"
        if self.best is None and self.upper == -math.inf:
            limit = "limits" if self.problem.constraints else "risk bound"
            return Status.INFEASIBLE, f"no policy is within the {limit}, {self.proof}"
        found = "no policy found yet" if policy is None else "best policy so far"
        if self.monitor.stopped_by is not None:
            return Status.STOPPED, f"stopped by {self.monitor.stopped_by}: {found}"
        return Status.DONE, UNDECIDED if policy is None and self.in_doubt else otherwise

    def _describe_distance(self) -> str:
        """Return a description of a closed gap."""
        assert self.best is not None
        kind = "policy" if self.mix is None else "randomised policy"
        if self.gap <= EXACT_GAP:
            limit = "limits" if self.problem.constraints else "risk bound"
            return f"best {kind} within the {limit}"
        distance = self.upper - self.best.reward
        if distance <= self.rounding:
            return f"best {kind} within the risk bound up to roundings of {distance:.2g}"
        return f"within {100 * self.gap:.2g} % of the best {kind}"


def _are_same(one: PolicyPoint, other: PolicyPoint) -> bool:
    """Return whether two deterministic policies make the same decisions."""
    worths = [(point.reward, point.charges, bool(point.members)) for point in (one, other)]
    if worths[0] != worths[1] or one.members:
        return False
    return all(map(np.array_equal, one.decide(), other.decide()))
