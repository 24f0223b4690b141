"""RAO*: heuristic forward search for the best policy within a risk bound.

The algorithm of Santana, Thiébaux and Williams (2016), where states are observed. Two heuristics of
the model guide it: `reward_to_go_bound`, an upper bound on the reward to go, and
`risk_to_go_bound`, a lower bound on the risk to go.

**As published** (`vulcan.kernels.rao_star`). It grows a tree of histories, as the authors' program
does over beliefs; what the model says of a state is evaluated once. A node has a value (an upper
bound), an execution risk er (a lower bound), a bound Δ on that risk, and a best action. The Δ of
the root is the chance constraint, and new nodes have the values of the heuristics. Then

    1. expand all open nodes of the best policy: each action gets a node for every safe outcome,
       unless it is *rejected* for good, because er = r + Σ p er(o) exceeds the Δ of its node;
    2. update the expanded nodes and their ancestors, deepest first: of the actions within Δ the
       one with the largest R̄ + γ Σ p V(o) is the best, the first of equal ones;
    3. hand bounds down the best policy: Δ_i = min(1, (Δ - r - Σ_{j≠i} p_j er_j) / p_i), which is
       what Δ leaves to outcome i if its siblings risk no more than they do now;
    4. repeat until the best policy has no open node.

A node without actions is a *dead end*: its value is -∞ and its er 1, for good. (The authors'
program gives it its heuristic value, and then returns policies that have no action there.) The
policy keeps to the bound. But it need not be the best one: siblings share the bound by what they
happen to risk when a node is expanded, and what is rejected then never returns.

**With an exact update** no bounds are handed down. The search grows an *explicit graph* of
state–step pairs from the initial state. Pairs that are not expanded yet, its tips, have the values
of the heuristics. Then

    1. find the best policy of the explicit graph within the risk bound, by the dual bound and by
       fronts (`vulcan.exact.fronts`);
    2. if it reaches no tip, it is optimal;
    3. otherwise expand all the tips that it reaches, and repeat.

Since the heuristics are optimistic, the best policy of the explicit graph has at least the reward
of the optimum: an upper bound that falls until it is attained. That holds for all risk bounds.

Without `reward_to_go_bound` both expand whatever the bound may permit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.forms import Constant
from vulcan.errors import ModelError, OptionError
from vulcan.exact.acceptance import ACCEPTED
from vulcan.exact.fronts import advance_fronts
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint, Sweeps, make_values
from vulcan.exact.thin_fronts import improve
from vulcan.graph.levels import build_levels
from vulcan.graph.states import StateGraph
from vulcan.kernels import codes
from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.numerics import END, NONE, UNEVALUATED, UNPLANNED
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.runtime.arrays import lengthen
from vulcan.runtime.limits import Monitor, Progress
from vulcan.solvers.base import EXACT, Coverage, Option, Options, Solver, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status

Mode = Literal["overall", "everywhere"]
Update = Literal["published", "exact"]
DeadEnds = Literal["closed", "heuristic"]

ROUNDING_OF_BOUNDS: Final = 1e-9  # rounding error allowed for heuristics, which are sums, too

BEYOND: Final = 1e300
"""The reward to go where the model has no bound; with the other sign, the loss at a tip."""

CHUNK: Final = 1 << 20
"""Nodes to look at between two checks of the clock; a few hundredths of a second."""


@dataclass(frozen=True)
class RAOStar(Solver):
    """Expand only what the best policy within the bound may need, by the model's heuristics (RAO*).

    The model offers `reward_to_go_bound(state, step)` and, optionally, `risk_to_go_bound(state,
    action, step)`. As published, it takes constant risk bounds, and its policy keeps to the bound
    without being the best one always. A search that a limit stops returns the policy so far, with
    its frontier.

    Parameters
    ----------
    mode
        "overall" bounds the risk of the mission, "everywhere" the risk ahead at every history, too.
    update
        "published", or "exact" for the best deterministic policy under risk bounds of any form. A
        search of that kind that a limit stops returns an upper bound only.
    dead_ends
        What a history is worth whose actions were all rejected: nothing ("closed"), or what its
        heuristic says ("heuristic"), as in the authors' program, whose policies have a frontier
        there.
    """

    finds: ClassVar[str] = "a policy within a constant bound, by RAO* as published"
    method: ClassVar[str] = "the model's reward_to_go_bound and risk_to_go_bound"
    limits: ClassVar[Sequence[str]] = EXACT
    constant_bounds: ClassVar[bool] = True
    options: ClassVar[Sequence[Option]] = (
        Option(
            "update",
            str,
            "How to choose the best policy: as published, for constant bounds, or exactly, for "
            "all.",
            default="published",
            choices=get_args(Update),
        ),
        Option(
            "mode",
            str,
            "Where the risk ahead is bounded: overall (at the start), or everywhere.",
            default="overall",
            choices=get_args(Mode),
        ),
    )

    mode: Mode = "overall"
    update: Update = "published"
    dead_ends: DeadEnds = "closed"

    def __post_init__(self) -> None:
        for name, kind in (("mode", Mode), ("update", Update), ("dead_ends", DeadEnds)):
            if getattr(self, name) not in get_args(kind):
                known = " or ".join(map(repr, get_args(kind)))
                raise OptionError(f"{name} must be {known}, not {getattr(self, name)!r}")
        if self.update == "exact":
            if (self.mode, self.dead_ends) != ("overall", "closed"):
                raise OptionError("mode and dead_ends belong to update='published'; omit them")
            object.__setattr__(self, "covers", Coverage.DETERMINISTIC)
            object.__setattr__(self, "constant_bounds", False)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        if self.update == "published":
            return PublishedRun(problem, reader, monitor, self, options.graph).run()
        run = ExactRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        while run.grow() and run.plan():
            pass
        run.conclude()
        return run.find()


def _estimate_to_go(reader: ModelReader, place: Any, level: int) -> tuple[float, float]:
    """Return the model's upper bound on the reward and lower bound on the risk to go."""
    step, reward = level - isinstance(reader.root, Start), BEYOND
    if hasattr(reader.model, "reward_to_go_bound"):
        # A model may return inf; the arithmetic needs a finite number.
        reward = min(reader.bound_reward(place, step), BEYOND)
    if reward == -math.inf:
        message = "reward_to_go_bound is -inf, which is no upper bound"
        raise ModelError(Violation(Rule.BOUNDS, message, place))
    if not hasattr(reader.model, "risk_to_go_bound"):
        return reward, 0.0
    actions = reader.actions(place).values()
    return reward, min(reader.bound_risk(place, action, step) for action in actions)


def _require_bounds(
    reader: ModelReader,
    place: Any,
    level: int,
    claimed: tuple[float, float],
    found: tuple[float, float],
) -> None:
    """Refuse bounds that the reward and risk of a policy from a level on prove wrong."""
    allowed = ROUNDING_OF_BOUNDS * max(1.0, abs(claimed[0]))
    for name, claim, attained, wrong in (
        ("reward_to_go_bound", claimed[0], found[0], found[0] > claimed[0] + allowed),
        ("risk_to_go_bound", claimed[1], found[1], found[1] < claimed[1] - ROUNDING_OF_BOUNDS),
    ):
        if wrong:
            step = level - isinstance(reader.root, Start)
            message = f"{name} is {claim!r} at step {step}, but a policy attains {attained:.17g}"
            raise ModelError(Violation(Rule.BOUNDS, message, place))


class PublishedRun(ExactSearch):
    """One search as published: the tree, and what its kernel needs from Python."""

    def __init__(self, *given: Any) -> None:
        from vulcan.kernels import rao_star

        super().__init__(*given)
        bound, reader, solver = self.bound, self.reader, self._solver
        assert isinstance(solver, RAOStar)
        if not isinstance(bound, Constant):
            raise OptionError(
                f"RAO* as published takes a constant risk bound, not {bound}; "
                "RAOStar(update='exact') takes any"
            )
        self._kernel = rao_star
        self._tree, self._edges = np.zeros(1024, rao_star.NODE), np.zeros(1024, rao_star.EDGE)
        # Where states do not merge, each occurs at one level.
        self._outlook = np.zeros((reader.levels + 1 if reader.merges else 1, 0), rao_star.OUTLOOK)
        self._control = np.zeros(1, rao_star.CONTROL)
        allowed = min(1.0, bound(0.0))
        self._control["slack"] = ACCEPTED
        self._control["cap"] = allowed if solver.mode == "everywhere" else 1.0
        self._control["closes_with_heuristic"] = solver.dead_ends == "heuristic"
        self._advance()  # compile it now; there is nothing to do yet
        self.monitor.start_clock()
        outlook, root = self._look_at(StateGraph.ROOT, 0), self._tree[0]
        root["value"], root["risk"], root["allowed"] = outlook["value"], outlook["risk"], allowed
        root["parent"] = root["best"] = NONE
        root["status"] = rao_star.ENDED if outlook["ends"] else rao_star.OPEN
        self._control["nodes"] = self._control["length"] = 1

    def run(self) -> Finding:
        """Expand and update until the best policy has no open node, or a limit comes."""
        while self.may_go_on(self._tree_memory):
            self._control["pause"] = self._control["work"] + CHUNK
            wants = self._advance()
            if wants == codes.DONE:
                break
            if wants == codes.NEEDS_STATE:
                self._explore()
            elif wants == codes.NEEDS_ROOM and self.may_go_on(2 * self._tree_memory):
                count = len(self._tree)
                self._tree = lengthen(self._tree, count, 2 * count)
                self._edges = lengthen(self._edges, count, 2 * count)
            self.report()
        self.monitor.grant_certificate()
        policy, now = self._write_policy(), self._describe_progress()
        status, found = Status.DONE, "policy of RAO* as published, which need not be the best"
        if policy is None:
            found = "RAO* as published rejected every action; there may be a policy"
        if self.monitor.stopped_by is not None:
            best = "no policy yet" if policy is None else "best policy so far"
            status, found = Status.STOPPED, f"stopped by {self.monitor.stopped_by}: {best}"
        values = None if policy is None else policy.node_values(float(self.reader.discounts[0]))
        reward = -math.inf if values is None else float(values["mean"][0])
        return Finding(
            status=status,
            explanation=found,
            policy=policy,
            reward=reward,
            risk=0.0 if values is None else float(values["risk"][0]),
            credits=[] if policy is None else [reward],
            statistics=Statistics(now.seconds, now.histories, now.evaluations, memory=now.memory),
            estimate=float(self._tree["value"][0]),
        )

    def _advance(self) -> int:
        rows = (rows.array for rows in self.graph.kinds())
        tree = (*rows, self.reader.discounts, self._outlook, self._tree, self._edges)
        return int(self._kernel.search(tree, self._control))

    @property
    def _tree_memory(self) -> int:
        return self._tree.nbytes + self._edges.nbytes + self._outlook.nbytes

    def _list_policy(self) -> NDArray[np.int32]:
        """Return the numbers of the nodes of the best policy, parents first."""
        numbers: NDArray[np.int32] = self._tree["order"][: int(self._control["length"][0])]
        return numbers

    def _explore(self) -> None:
        """Evaluate the open nodes of the best policy, and the heuristics of what comes after."""
        graph, policy = self.graph, self._tree[self._list_policy()]
        opened = np.unique(policy[policy["status"] == self._kernel.OPEN][["state", "level"]])
        states = np.unique(opened["state"])
        new = states[graph.states.array["action_count"][states] == UNEVALUATED]
        if not graph.expand_while(new.tolist(), lambda: self.may_go_on(self._tree_memory)):
            return
        for state, level in opened.tolist():
            first, count = graph.states.array[state].item()
            actions = graph.actions.array[first : first + count]
            for begin, safe in actions[["first_outcome", "safe_count"]].tolist():
                for target in graph.outcomes.array["state"][begin : begin + safe].tolist():
                    self._look_at(target, level + 1)
            most = max(count, int(actions["safe_count"].sum()))
            self._control["most"] = max(most, self._control["most"][0])
            self._look_at(state, level)["explored"] = 1

    def _look_at(self, state: int, level: int) -> np.void:
        """Return the heuristics of a state at a level."""
        width, states = self._outlook.shape[1], self.graph.states.count
        if width < states:
            wider = np.zeros((len(self._outlook), 2 * states), self._outlook.dtype)
            wider[:, :width] = self._outlook
            self._outlook = wider
        entry: np.void = self._outlook[min(level, len(self._outlook) - 1), state]
        if not entry["known"]:
            place = self.graph.state_object(state)
            ends = level == self.reader.levels or not self.reader.actions(place)
            if not ends:
                entry["value"], entry["risk"] = _estimate_to_go(self.reader, place, level)
            entry["ends"], entry["known"] = ends, 1
        return entry

    def _describe_progress(self) -> Progress:
        nodes, memory = int(self._control["nodes"][0]), self.graph.memory + self._tree_memory
        evaluations = self.graph.evaluations
        return Progress(self.monitor.seconds, None, nodes, evaluations, None, memory=memory)

    def _write_policy(self) -> Policy | None:
        """Return the best policy; open nodes and dead ends are its frontier."""
        decided = [n for n in self._list_policy().tolist() if self._tree["best"][n] != NONE]
        places = {number: place for place, number in enumerate(decided)}
        rows, children = [], []
        for number in decided:
            row, first = self._edges[self._tree["best"][number]].item()
            rows.append(row)
            for child in range(first, first + int(self.graph.actions.array["safe_count"][row])):
                ends = self._tree["status"][child] == self._kernel.ENDED
                children.append(places.get(child, END if ends else UNPLANNED))
        if not decided:
            return None
        about = describe_origin(self.problem, self.reader, self._solver)
        policy = self.graph.policy(rows, children, about)
        for node in self._tree[decided] if policy.complete else ():
            state, level = int(node["state"]), int(node["level"])
            outlook, place = self._look_at(state, level), self.graph.state_object(state)
            claimed = float(outlook["value"]), float(outlook["risk"])
            found = float(node["value"]), float(node["risk"])
            _require_bounds(self.reader, place, level, claimed, found)
        return policy


class ExactRun(ExactSearch):
    """One search: the explicit graph, and the heuristic values of its tips."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._opened = {(StateGraph.ROOT, 0)}
        self._ends: dict[int, bool] = {}
        self._heuristics: dict[tuple[int, int], tuple[float, float]] = {}
        self._least_upper = math.inf
        self._finished = False

    def grow(self) -> bool:
        """Build the explicit graph from the opened nodes; False if a limit came first."""
        levels = build_levels(
            self.graph,
            may_go_on=lambda nodes, memory: self.may_go_on(memory),
            opens=self._opens if hasattr(self.reader.model, "reward_to_go_bound") else None,
        )
        if levels is None:
            return False
        expanded = levels.arrays.expanded
        self._tips = np.flatnonzero(~expanded) if len(expanded) else np.zeros(0, np.intp)
        self._keys = list(zip(levels.arrays.state.tolist(), levels.levels.tolist(), strict=True))
        values = make_values(len(levels))
        for tip in self._tips.tolist():
            values[tip] = self._estimate(*self._keys[tip])
        self.use(levels, values)
        return True

    def plan(self) -> bool:
        """Find the best policy of the explicit graph and open its tips; False if it has none.

        The best randomised policy takes milliseconds, so that its tips are opened first.
        """
        self.best, self.trials = None, []
        dual = self.find_dual()
        if dual.best is not None:
            points = dual.best.members or (dual.best,)
            tips = {tip for point in points for tip in point.decide().find_tips()}
            if tips:
                return self._open(sorted(tips))
        improve(self)
        advance_fronts(self)
        if self.monitor.stopped_by is not None:
            return False
        if self.best is None:
            self._finished = self.upper == -math.inf
            self._least_upper = min(self._least_upper, self.upper)
            return False
        tips_of_best = self.best.decide().find_tips()
        self._finished = not tips_of_best
        return not self._finished and self._open(tips_of_best)

    def accepts(self, point: PolicyPoint) -> bool:
        """Whether a policy may be acceptable; one that ends in tips has no certificate yet."""
        known = self.bound_test.accepts(point) or self.bound_test.refuses(point)
        if not known and point.decide().find_tips():
            return True
        return super().accepts(point)

    def conclude(self) -> None:
        """Keep a policy that reaches no tip, else the upper bound only."""
        if not self._finished:
            self.best, self.upper = None, self._least_upper
            return
        # Refuse heuristics that a policy of the explicit graph proves wrong.
        worst = make_values(len(self.levels))
        worst["reward"], worst["risk"] = -BEYOND, BEYOND
        sweeps = Sweeps(self.levels, worst)
        earned, risked = sweeps.follow(1.0, 0.0)[0], sweeps.follow(0.0, 1.0)[1]
        for node, (state, level) in enumerate(self._keys):
            if (state, level) in self._heuristics:
                found = (float(earned[node]), float(risked[node]))
                place, claimed = self.graph.state_object(state), self._heuristics[state, level]
                _require_bounds(self.reader, place, level, claimed, found)

    def _open(self, tips: list[int]) -> bool:
        self._least_upper = min(self._least_upper, self.upper)
        self._opened.update(self._keys[tip] for tip in tips)
        return self.may_go_on()

    def _opens(self, states: NDArray[np.int32], level: int) -> NDArray[np.bool_]:
        opened = [
            (state, level) in self._opened or self._is_end(state) for state in states.tolist()
        ]
        return np.array(opened, bool)

    def _is_end(self, state: int) -> bool:
        """Whether a state is a safe terminal; evaluates the model's actions, not its outcomes."""
        count = int(self.graph.states.array["action_count"][state])
        if count != UNEVALUATED:
            return count == 0
        if state not in self._ends:
            self._ends[state] = not self.reader.actions(self.graph.state_object(state))
        return self._ends[state]

    def _estimate(self, state: int, level: int) -> tuple[float, float]:
        """Return the heuristic values of a tip: reward from the start of the mission, and risk."""
        key = (state, level)
        if key not in self._heuristics:
            reward, risk = _estimate_to_go(self.reader, self.graph.state_object(state), level)
            self._heuristics[key] = (float(self.reader.weights[level]) * reward, risk)
        return self._heuristics[key]
