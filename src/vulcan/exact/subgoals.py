"""Plans that reach one subgoal after another, where states merge but are too many to be listed.

Gold that is taken once, samples to collect, sites to inspect: with K of them there are 2^K times
more states than places. Such a problem is planned for in three steps.

**Places.** A state has a *place*: what moves depend on. The model says so (`subgoals(state)`), or
else states are tuples (or dataclasses, or tuples of tuples), and the place is those of their parts
that change in steps without a reward. States at one place count as alike. Its actions and outcomes
are those of the first state that was evaluated there; what reaching a subgoal pays is the largest
reward of an outcome that leads there.

**Orders.** Subgoals are reached in a fixed order, and may be given up on the way. What an order is
worth follows at first from mean legs between subgoals, and simulated annealing improves it. Then
one dynamic program over (step, subgoals done with, place) finds the best plan along the order for a
price of failure, and the price is moved until the risk is what the bound allows
(`vulcan.kernels.subgoals`).

**Policies.** None of this need be true of the model. So the plan is followed through the model's
own states: a decision is a state, a step and the number of subgoals done with. A subgoal that was
reached by chance, out of turn, is passed over. Where the plan's action does not exist, the one of
least immediate risk is taken. The reward and the risk of that policy are exact, and decide; only
states that a plan reaches are evaluated. The price is corrected by what this risk was.

There is no upper bound, and an order that is fixed beforehand is not the best policy, which would
choose the next subgoal by where it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.acceptance import BoundTest, find_extremes
from vulcan.exact.search import DECISION_SECONDS, ExactSearch
from vulcan.exact.sweeps import PolicyPoint, find_least_risk_policy
from vulcan.graph.levels import Decisions
from vulcan.graph.states import Rows, StateGraph
from vulcan.model.interface import Start
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILURE_STATE, NONE, UNEVALUATED
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import Monitor
from vulcan.solvers.base import EXACT, Options, Solver
from vulcan.solvers.finding import Finding

PROBED: Final = 1_000  # states that are evaluated to see what changes without a reward
SHARE_OF_PROBING: Final = 0.1  # of a time limit: models may be slow
MOST_PLACES: Final = 50_000
MOST_LEGS: Final = 2_000_000  # from places to subgoals
SHARE_OF_MEMORY: Final = 0.25  # of what is free, for a plan along an order

GUESSES: Final = 10  # of the price, by mean legs
IDLE_ROUNDS: Final = 4  # without a better order, after which the search ends
ORDERS: Final = 8  # that are found in a round
PLANNED: Final = 3  # of them, that are planned for
TURNS: Final = 4_000  # of annealing for an order, for each subgoal
HEAT: Final = 0.5  # of the largest worth of a subgoal, at the start of annealing
NEAR: Final = 1.003  # ratio of prices that are not told apart
HALVINGS: Final = 12  # of the interval of prices
STRIDE: Final = 1.2  # factor between the first prices
ENOUGH: Final = 0.01  # share of the risk that may be left over
CORRECTIONS: Final = 3  # of the price, by the risk of the policy itself
CHUNK: Final = 1 << 26  # outcomes in a dynamic program between two looks at the limits
CHUNK_OF_LEGS: Final = 1 << 17  # the same for legs, which go over all outcomes again and again
CHUNK_OF_TURNS: Final = 1 << 24
MOST_PAIRS: Final = 400_000  # of a policy; less probable branches end earlier then
REST: Final = 1e-7  # of the largest worth of a subgoal, for a step without moving
PAIR_SECONDS: Final = 6e-6  # to write out and certify a pair, approximately
TIMES_OF_A_WALK: Final = 8  # that a certificate takes, evaluations aside
SHARE_OF_CERTIFICATE: Final = 0.2  # of a time limit
LEAST_REACH: Final = 1e-6  # probability of a branch that is worth its decisions
LARGEST_REACH: Final = 1e-3  # the same for the first policy

Integers = NDArray[np.int32]


@dataclass(frozen=True)
class Subgoals(Solver):
    """Reach subgoals in the best order that is found, as far as the bound allows."""

    finds: ClassVar[str] = "a good plan, where rewards are paid once and states are too many"
    method: ClassVar[str] = "orders of subgoals, and a dynamic program along each"
    limits: ClassVar[Sequence[str]] = EXACT

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        run = ExactSearch(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        places = PlaceMap.find(run)
        if places is not None:
            SubgoalSearch(run, places).search()
        if run.best is not None:
            return run.find(FOUND)
        point = find_least_risk_policy(run.graph, run.may_go_on)
        if point is not None:
            run.offer(point)
        found = "no subgoals found" if places is None else "no acceptable plan along subgoals"
        return run.find(found if run.best is None else f"{found}: a policy of least risk")


FOUND: Final = "best policy found along orders of subgoals"


class PlaceMap:
    """The places of a model's states, moves between them, and the subgoals among them."""

    def __init__(self, run: ExactSearch, parts: NDArray[np.intp] | None) -> None:
        self._run, self._graph, self._parts = run, run.graph, parts
        self._names: dict[Any, int] = {}
        self._first: list[int] = []  # the first state of each place
        self._place = Rows(np.dtype([("place", "i4")]))  # of each state
        self.goals = np.zeros(0, np.int32)

    @classmethod
    def find(cls, run: ExactSearch) -> PlaceMap | None:
        """Return the places of a problem, all of them evaluated; None if it has no subgoals."""
        if not run.graph.merges:
            return None
        parts = None
        if not hasattr(run.reader.model, "subgoals"):
            run.unroll(while_it_pays=True, share=SHARE_OF_PROBING, most_new=PROBED)
            parts = find_moving_parts(run.graph)
            if parts is None:
                return None
        places = cls(run, parts)
        return places if places._explore() and places._find_goals() else None

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self._first)

    def count_states(self) -> float:
        """Return the largest number of states that there may be."""
        return len(self) * 2.0 ** min(len(self.goals), 1000)

    def locate(self, states: int) -> Integers:
        """Return the places of the first states of the graph."""
        for state in range(self._place.count, states):
            name = self._name(self._graph.state_object(state))
            number = self._names.setdefault(name, len(self._first))
            if number == len(self._first):
                self._first.append(state)
            self._place.append([(number,)])
        return self._place.array["place"][:states]

    def list_left(self, state: int) -> list[int]:
        """Return the numbers of the subgoals that the model says are left in a state."""
        known = self._run.reader.subgoals(self._graph.state_object(state))[1]
        numbers = (self._numbers.get(self._names.get(name, NONE)) for name in known)
        return [number for number in numbers if number is not None]

    @property
    def asks(self) -> bool:
        """Whether the model says which subgoals are left in a state."""
        return self._parts is None

    def _name(self, state: Any) -> Any:
        if isinstance(state, Start):
            return state
        if self._parts is None:
            return self._run.reader.subgoals(state)[0]
        parts = flatten(state)
        return tuple([parts[k] for k in self._parts if k < len(parts)])

    def _explore(self) -> bool:
        """Evaluate a state of every place; False if there are too many, or a limit was reached."""
        graph, done = self._graph, 0
        while True:
            self.locate(graph.states.count)
            new = self._first[done:]
            if not new:
                return True
            if len(self) > MOST_PLACES:
                return False
            done = len(self._first)
            counts = graph.states.array["action_count"]
            new = [state for state in new if counts[state] == UNEVALUATED]
            if not graph.expand_while(new, self._run.may_go_on):
                return False

    def _find_goals(self) -> bool:
        """Find the subgoals and write the moves; return whether there are at least two."""
        from vulcan.kernels.subgoals import Places

        graph, place = self._graph, self.locate(self._graph.states.count)
        rows = graph.states.array[np.array(self._first, np.intp)]
        counts = np.maximum(0, rows["action_count"])
        taken = ranges(rows["first_action"], counts)
        actions = graph.actions.array[taken]
        mine = ranges(actions["first_outcome"], actions["safe_count"])
        outcomes = graph.outcomes.array[: graph.outcomes.count]
        paid = np.zeros(len(self))
        safe = outcomes[outcomes["state"] != FAILURE_STATE]
        np.maximum.at(paid, place[safe["state"]], safe["reward"])
        goals = np.flatnonzero(paid > 0)
        if self.asks:
            root = graph.state_object(graph.ROOT)
            names = () if isinstance(root, Start) else self._run.reader.subgoals(root)[1]
            told = {self._names.get(name, NONE) for name in names}
            goals = np.array([k for k in goals.tolist() if k in told or not names], np.intp)
        self.goals, self.worth = goals.astype(np.int32), paid[goals]
        self._numbers = {place: number for number, place in enumerate(goals.tolist())}
        own = outcomes[mine]
        pays = np.isin(place[own["state"]], goals) & (own["reward"] > 0)
        owner = np.repeat(np.arange(len(taken)), actions["safe_count"])
        bonus = np.bincount(owner, own["probability"] * own["reward"] * pays, len(taken))
        self.moves = Places(
            first_action=np.append(starts(counts), len(taken)).astype(np.int32),
            number=np.ascontiguousarray(actions["number"]),
            reward=actions["expected_reward"] - bonus,
            risk=np.ascontiguousarray(actions["immediate_risk"]),
            first_outcome=np.append(starts(actions["safe_count"]), len(mine)).astype(np.int32),
            probability=np.ascontiguousarray(own["probability"]),
            target=place[own["state"]].astype(np.int32),
        )
        return len(goals) > 1 and len(goals) * len(self) <= MOST_LEGS


def find_moving_parts(graph: StateGraph) -> NDArray[np.intp] | None:
    """Return the parts of states that change in steps without a reward; None if all or none do."""
    states = [graph.state_object(k) for k in range(graph.states.count)]
    flat = [flatten(state) for state in states if not isinstance(state, Start)]
    if not flat or len(flat[0]) < 2 or len({len(parts) for parts in flat}) > 1:
        return None
    codes: dict[Any, int] = {}
    first = len(states) - len(flat)
    try:
        numbers = np.array([[codes.setdefault(x, len(codes)) for x in parts] for parts in flat])
    except Exception:  # parts of a state need not be hashable
        return None
    expanded = np.array([k for k in graph.expanded if k >= first], np.intp)
    rows = graph.states.array[expanded]
    taken = ranges(rows["first_action"], rows["action_count"])
    source = np.repeat(expanded, rows["action_count"])
    actions = graph.actions.array[taken]
    mine = ranges(actions["first_outcome"], actions["safe_count"])
    source = np.repeat(source, actions["safe_count"])
    outcomes = graph.outcomes.array[mine]
    still = outcomes["reward"] <= 0
    moved = numbers[source[still] - first] != numbers[outcomes["state"][still] - first]
    parts = np.flatnonzero(moved.any(axis=0))
    return parts if 0 < len(parts) < len(flat[0]) else None


def flatten(state: Any) -> list[Any]:
    """Return the parts of a state: the elements of tuples and the fields of dataclasses."""
    if isinstance(state, tuple):
        return [part for element in state for part in flatten(element)]
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        fields = dataclasses.fields(state)
        return [part for field in fields for part in flatten(getattr(state, field.name))]
    return [state]


class Plan(NamedTuple):
    """The best plan along an order for a price of failure, with its values by the places."""

    order: Integers
    choice: Integers  # [T, K + 1, P]
    price: float
    reward: float
    risk: float
    pace: float  # what the first step is worth

    @property
    def value(self) -> float:
        """The reward, less the price of the risk."""
        return self.reward - self.price * self.risk


class SubgoalSearch:
    """The search for an order of subgoals, and for a price of failure."""

    def __init__(self, run: ExactSearch, places: PlaceMap) -> None:
        with run.monitor.clock_stopped():
            load_kernels()
        self._run, self._places = run, places
        self._weights = run.reader.weights
        self._left = Rows(np.dtype([("known", "?"), ("left", "?", (len(places.goals),))]))
        self._least = LARGEST_REACH  # reach of a pair below which its subgoals are given up
        limit = run.monitor.limits.time_limit
        seconds = math.inf if limit is None else SHARE_OF_CERTIFICATE * limit
        self._most = min(MOST_PAIRS, seconds / PAIR_SECONDS)
        self._seed = 0  # of the last order that was found
        self._scale = 1.0  # risk of a policy, as a multiple of what the places say

    def search(self) -> None:
        """Offer policies until a limit is reached, or a number of orders was tried."""
        worth, horizon = float(self._places.worth.sum()), len(self._weights)
        pace = worth / horizon
        price = self._guess_price(worth, pace)
        best: Plan | None = None
        idle = 0
        while idle < IDLE_ROUNDS:
            plan = self._find_plan(price, pace, best)
            if plan is None:
                return
            idle += 1
            if best is None or not np.array_equal(plan.order, best.order):
                best = self._find_price(plan)[0] or plan
                if not self._try(best):
                    return
                price = math.sqrt(price * max(best.price, 0.25 * price))
                pace = math.sqrt(pace * max(plan.pace, 0.25 * pace))
                idle = 0

    def _guess_price(self, worth: float, pace: float) -> float:
        """Return a price at which an order takes about the allowed risk, by its mean legs."""
        price = worth
        low, high = 0.0, math.inf
        for _ in range(GUESSES):
            chain = self._measure(price, pace)
            if chain is None:
                break
            order, _ = self._anneal(chain, price, None)
            legs = list(zip([0, *(order + 1)], order, strict=False))
            time = np.cumsum([chain.time[leg] for leg in legs])
            reached = [
                leg for leg, steps in zip(legs, time, strict=True) if steps <= len(self._weights)
            ]
            risk = -math.expm1(sum(math.log1p(-min(chain.risk[leg], 0.999)) for leg in reached))
            reward = sum(self._places.worth[goal] for _, goal in reached)
            if risk > self._run.bound(reward):
                low = price
            else:
                high = price
            price = 2 * price if high == math.inf else math.sqrt(max(low, 1e-3 * high) * high)
        return price

    def _measure(self, price: float, pace: float) -> Any:
        """Return the mean legs between subgoals at some prices of failure and of a step.

        None at a limit.
        """
        from vulcan.kernels import subgoals as kernels

        places = self._places
        portion = max(1, CHUNK_OF_LEGS // len(places.moves.target))
        found = []
        for begin in range(0, len(places.goals), portion):
            if not self._run.may_go_on():
                return None
            some = places.goals[begin : begin + portion]
            found.append(np.zeros((2, len(some), len(places))))
            kernels.measure_legs(places.moves, some, price, pace, found[-1])
        legs = np.concatenate(found, 1)
        start = places.locate(1)
        time, risk = (
            np.ascontiguousarray(np.concatenate((leg[:, start], leg[:, places.goals]), 1).T)
            for leg in legs
        )
        return kernels.Chain(time, risk, places.worth)

    def _anneal(self, chain: Any, price: float, best: Plan | None) -> tuple[Integers, float]:
        """Return a good order and its value by mean legs; from the best one, if it is given."""
        from vulcan.kernels import subgoals as kernels

        number, horizon = len(self._places.goals), float(len(self._weights))
        self._seed += 1
        order = np.random.default_rng(self._seed).permutation(number).astype(np.int32)
        count, heat = 0, HEAT * float(self._places.worth.max())
        if best is not None:
            order = np.concatenate((best.order, np.setdiff1d(order, best.order)))
            count, heat = len(best.order), 0.2 * heat
        given = (horizon, price)
        turns = min(TURNS * number, CHUNK_OF_TURNS // number)
        count, value = kernels.anneal(chain, order, count, *given, heat, turns, self._seed)
        return order[:count], value

    def _find_plan(self, price: float, pace: float, best: Plan | None) -> Plan | None:
        """Return the best plan of some new orders and the best one at a price; None at a limit."""
        chain = self._measure(price, pace)
        if chain is None:
            return None
        found: list[tuple[float, Integers]] = []
        for k in range(ORDERS):
            if not self._run.may_go_on():
                return None
            order, value = self._anneal(chain, price, best if k % 2 else None)
            found.append((value, order))
        found.sort(key=lambda pair: -pair[0])
        orders = [order for _, order in found[:PLANNED]]
        plans = [self._plan(order, price) for order in [*orders, *([best.order] if best else [])]]
        known = [plan for plan in plans if plan is not None]
        return max(known, key=lambda plan: plan.value, default=None)

    def _plan(self, order: Integers, price: float) -> Plan | None:
        """Return the best plan along an order; None if there is no room for it."""
        from vulcan.kernels import subgoals as kernels

        places, steps, size = self._places, len(self._weights), len(order) + 1
        if 4 * steps * size * len(places) > SHARE_OF_MEMORY * self._run.room:
            return None
        choice = np.zeros((steps, size, len(places)), np.int32)
        values, risks = np.zeros((2, 2, size, len(places)))
        goals, worth = places.goals[order], places.worth[order]
        rest = REST * float(places.worth.max())
        given = (goals, worth, self._weights, price, rest, values, risks, choice)
        portion = max(1, CHUNK // (size * len(places.moves.target)))
        for end in range(steps, 0, -portion):
            if not self._run.may_go_on():
                return None
            kernels.plan_order(places.moves, *given, max(0, end - portion), end)
        start = int(places.locate(1)[0])
        value, risk = float(values[0, 0, start]), float(risks[0, 0, start])
        pace = value - float(values[1 % steps, 0, start])
        return Plan(order, choice, price, value + price * risk, risk, pace)

    def _find_price(self, plan: Plan) -> tuple[Plan | None, Plan | None]:
        """Return two plans along the same order: the risk of the first is just allowed.

        That of the second is too large. Either may be None, also at a limit.
        """
        safe: Plan | None = None
        risky: Plan | None = None
        tried: Plan | None = plan
        for step in range(HALVINGS):
            if tried is None:
                break
            left = self._run.bound(tried.reward) - self._scale * tried.risk
            if left >= 0:
                safe = tried
            else:
                risky = tried
            if 0 <= left <= ENOUGH * self._scale * tried.risk:
                break
            if safe is not None and risky is not None:
                if safe.price <= NEAR * risky.price:
                    break
                price = math.sqrt(safe.price * risky.price)
            else:
                price = tried.price * STRIDE ** ((1 if left < 0 else -1) * (step + 1))
            tried = self._plan(plan.order, price)
        return safe, risky

    def _try(self, plan: Plan) -> bool:
        """Offer policies along the order of a plan; False at a limit.

        The price is corrected by the risk of the policies themselves. Then the first steps of the
        best one are followed by those of a plan that risks too much.
        """
        safe: Plan | None = None
        risky: Plan | None = None
        for _ in range(CORRECTIONS):
            left = self._offer(plan)
            if left is None:
                return False
            if left >= 0:
                safe = plan
            else:
                risky = plan
            again, more = self._find_price(plan)
            tried = (safe and safe.price, risky and risky.price)
            if again is None or again.price in tried:
                if risky is None:
                    risky = more
                break
            plan = again
        begin, end = 0, len(self._weights)
        while safe is not None and risky is not None and end - begin > 1:
            step = (begin + end) // 2
            choice = np.concatenate((safe.choice[:step], risky.choice[step:]))
            left = self._offer(safe._replace(choice=choice))
            if left is None:
                return False
            begin, end = (begin, step) if left >= 0 else (step, end)
        return True

    def _offer(self, plan: Plan) -> float | None:
        """Offer the policy of a plan, and return how much risk it leaves; None at a limit."""
        run, first = self._run, self._run.best is None
        while True:
            point = self._follow(plan)
            if point is None:
                return None
            run.bound_test = BoundTest.of_graphs(run.bound, find_extremes(run.graph), self._weights)
            run.rewards.append(point.reward)
            run.offer(point)
            run.report()
            if not first:
                break
            first, self._least = False, LEAST_REACH  # now that there is a policy
        if plan.risk > 0:
            self._scale = point.risk / plan.risk
        return run.bound_test.slack(point)

    def _follow(self, plan: Plan) -> PolicyPoint | None:
        """Return the policy that follows a plan through the model's states; None at a limit."""
        run, graph, size = self._run, self._run.graph, len(plan.order) + 1
        began, evaluating = run.monitor.seconds, graph.evaluation_seconds
        rows: list[NDArray[Any]] = []
        children: list[NDArray[Any]] = []
        states, index, reach = np.zeros(1, np.intp), np.zeros(1, np.int32), np.ones(1)
        reward = risk = 0.0
        count = 1
        self._mark(states, states, first=True)
        if not self._evaluate(states):
            return None
        if graph.states.array["action_count"][graph.ROOT] == 0:
            return PolicyPoint(0.0, 0.0)
        for level, weight in enumerate(self._weights.tolist()):
            taken = self._choose(plan, level, states, index)
            actions = graph.actions.array[taken]
            reward += weight * float(reach @ actions["expected_reward"])
            risk += float(reach @ actions["immediate_risk"])
            safe = actions["safe_count"]
            outcomes = graph.outcomes.array[ranges(actions["first_outcome"], safe)]
            arrivals = outcomes["state"].astype(np.intp)
            arriving = np.repeat(reach, safe) * outcomes["probability"]
            rows.append(taken)
            if level + 1 == len(self._weights):
                children.append(np.full(len(arrivals), END))
                break
            self._mark(arrivals, np.repeat(states, safe))
            if not self._evaluate(arrivals):
                return None
            following = np.repeat(index, safe)
            self._advance(plan, level + 1, arrivals, following)
            self._drop(arrivals, following, arriving, size - 1)
            goes_on = graph.states.array["action_count"][arrivals] != 0
            keys, places = np.unique(
                arrivals[goes_on] * size + following[goes_on], return_inverse=True
            )
            below = np.full(len(arrivals), END)
            below[goes_on] = count + places
            children.append(below)
            if not len(keys):
                break
            count += len(keys)
            if count > self._most and self._least < LARGEST_REACH:
                self._least *= 3
                return self._follow(plan)
            reach = np.bincount(places, arriving[goes_on], len(keys)).astype(float, copy=False)
            states, index = keys // size, (keys % size).astype(np.int32)
        found = np.concatenate(rows).astype(np.int32), np.concatenate(children).astype(np.int32)
        seconds = run.monitor.seconds - began - graph.evaluation_seconds + evaluating
        expected = max(PAIR_SECONDS * len(found[0]), TIMES_OF_A_WALK * seconds)
        run.expect(int(expected / DECISION_SECONDS))
        return PolicyPoint.made(reward, risk, Decisions(*found, np.zeros(len(found[0]), np.int32)))

    def _drop(
        self, states: NDArray[np.intp], index: Integers, arriving: NDArray[Any], last: int
    ) -> None:
        """Give up all subgoals in pairs that are less probable than is worth their decisions."""
        _, places = np.unique(states * (last + 1) + index, return_inverse=True)
        index[np.bincount(places, arriving)[places] < self._least] = last

    def _evaluate(self, states: NDArray[np.intp]) -> bool:
        """Evaluate states that are not evaluated yet; False at a limit."""
        graph = self._run.graph
        new = states[graph.states.array["action_count"][states] == UNEVALUATED]
        return graph.expand_while(np.unique(new).tolist(), self._run.may_go_on)

    def _mark(
        self, states: NDArray[np.intp], before: NDArray[np.intp], *, first: bool = False
    ) -> None:
        """Note which subgoals are left in some states, each reached from another."""
        places, rows = self._places, self._left
        count = self._run.graph.states.count
        if count > rows.count:
            rows.extend(count - rows.count)
        place = places.locate(count)
        left = rows.array
        unknown = ~left["known"][states]
        new, origin = np.unique(states[unknown], return_index=True)
        if not len(new):
            return
        left["known"][new] = True
        if places.asks:
            for state in new.tolist():
                left["left"][state, places.list_left(state)] = True
            return
        left["left"][new] = True if first else left["left"][before[unknown][origin]]
        number = np.full(len(places), NONE)
        number[places.goals] = np.arange(len(places.goals))
        own = number[place[new]]
        left["left"][new[own != NONE], own[own != NONE]] = False

    def _advance(self, plan: Plan, level: int, states: NDArray[np.intp], index: Integers) -> None:
        """Move indices on to the subgoal that each state heads for."""
        from vulcan.kernels.subgoals import advance

        place = self._find_places(states)
        left = np.ascontiguousarray(self._left.array["left"][states])
        advance(plan.choice[level], left, plan.order, place, index)

    def _find_places(self, states: NDArray[np.intp]) -> Integers:
        """Return the places of states, NONE for those that no plan knows."""
        known = len(self._places.moves.first_action) - 1
        place = self._places.locate(self._run.graph.states.count)[states]
        return np.where(place < known, place, NONE).astype(np.int32)

    def _choose(
        self, plan: Plan, level: int, states: NDArray[np.intp], index: Integers
    ) -> NDArray[np.intp]:
        """Return the row of the plan's action in each state, or else of least immediate risk."""
        graph, place = self._run.graph, self._find_places(states)
        wanted = np.where(place == NONE, NONE, plan.choice[level, index, place])
        here = graph.states.array[states]
        rows = ranges(here["first_action"], here["action_count"])
        owner = np.repeat(np.arange(len(states)), here["action_count"])
        actions = graph.actions.array[rows]
        other = actions["number"] != wanted[owner]
        keys = (rows, -actions["expected_reward"], actions["immediate_risk"], other, owner)
        return rows[np.lexsort(keys)[starts(here["action_count"])]]


@cache
def load_kernels() -> None:
    """Load or compile the kernels."""
    from vulcan.kernels import subgoals as kernels

    whole, pair = np.zeros(2, np.int32), np.ones(2)
    moves = kernels.Places(np.arange(2, dtype=np.int32), whole, pair, pair, whole, pair, whole)
    goals, choice = np.zeros(1, np.int32), np.zeros((1, 2, 1), np.int32)
    legs, values, risks = np.zeros((2, 1, 1)), np.zeros((2, 2, 1)), np.zeros((2, 2, 1))
    kernels.measure_legs(moves, goals, 1.0, 1.0, legs)
    chain = kernels.Chain(np.ones((2, 1)), np.ones((2, 1)), pair)
    kernels.anneal(chain, goals, 0, 1.0, 1.0, 1.0, 1, 0)
    given = (goals, pair[:1], pair[:1], 1.0, 0.0, values, risks, choice, 0, 1)
    kernels.plan_order(moves, *given)
    kernels.advance(choice[0], np.ones((1, 1), np.bool_), goals, goals, goals.copy())
