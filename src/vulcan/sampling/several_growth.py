"""Growing plans under several constraints: prices instead of one price of failure.

With charges x_1 ... x_D, the risk of failing first, and limits E x_k <= Δ_k(E g), a plan that grows
(`vulcan.sampling.growth`) is guided by the priced sum Σ λ_k x_k in place of the risk, and by
Σ λ_k Δ_k in place of its bound: what is within all limits is within their priced sum.

In the tree of opened histories every plan has exact totals. For given prices the best plan of all
is one sweep over the tree, with the priced sum as the risk and 1 as its price. The prices are those
of a linear program over the plans found so far (`vulcan.exact.several.MixtureProgram`): cutting
planes. Where no plan at the best prices is within all limits, the program's limits are lowered
little by little. A plan is accepted only if it is within every limit by its own totals. Histories
that hold up the best plan because they are worth opening at some prices only are then opened at all
prices, as for one constraint.

Each round begins with the prices of the last plan, and with new groups for them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.constraints import RiskAhead
from vulcan.exact.acceptance import ACCEPTED, accepts
from vulcan.exact.several import CLOSE, MixtureProgram, PricedPoints, WeightedBound
from vulcan.exact.several import load_kernels as load_programs
from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.states import Rows, charge_outcomes
from vulcan.model.answers import Answers
from vulcan.numerics import NONE
from vulcan.problem import Problem
from vulcan.sampling.groups import ActionEvaluator, Groups, Row
from vulcan.sampling.growth import LEAST_PARTS, MOST_HELD, WORTHLESS, Chosen, GrowingPlan
from vulcan.sampling.plan_tree import Default, Indices, PlanTree, Stored

Floats = NDArray[np.float64]

MARGINS: Final = (0.0, *np.geomspace(1e-6, 0.3, 12).tolist())  # shares by which limits are lowered
SMALL: Final = 10_000  # histories of a tree in which more plans are compared
MOST_BRANCHED: Final = 24  # how often histories are held there
MOST_PLANS: Final = 200  # sweeps for all of them
FEWEST_PLANS: Final = 24  # of a large tree
MOST_SWEPT: Final = 30_000_000  # histories of all sweeps for a plan, about a second
MOST_GENEROUS: Final = 16.0  # factor of the limits by which histories are opened
MOST_CAPPED: Final = 9  # plans of a history that keep a cap, the last one by risking the least
LEAST_ALLOWED: Final = 1e-100  # of which there is a price
FIRMEST: Final = 1e9  # price of a usual charge, in units of a usual reward, at the most


class ChargedRow(Row, frozen=True, gc=False):
    """An action whose risk is the priced sum; its charges, and those of each outcome alone."""

    charges: Sequence[float] = ()
    own: Sequence[Sequence[float]] = ()


class ChargedEvaluator(ActionEvaluator):
    """Evaluates actions of a model under several constraints, for some prices."""

    def __init__(self, problem: Problem, *given: Any) -> None:
        super().__init__(*given)
        self.constraints = problem.constraints
        caps = [c.level for c in problem.constraints if isinstance(c, RiskAhead)]
        self.cap = min(caps, default=math.inf)
        self.bounds = [problem.risk_bound, *(c.bound for c in problem.constraints)]
        self.quantities = [c.quantity for c in problem.constraints]
        self.prices = [1.0] * len(self.bounds)

    def find_prices(self) -> None:
        """Find prices to begin with: what is allowed where rewards are large costs 1."""
        rewards = [abs(row.reward) for row in self.rows(self.reader.root)]
        most = self.reader.levels * max(rewards, default=0.0) or 1.0
        allowed = [abs(bound(most)) for bound in self.bounds]
        self.prices = [1 / x if LEAST_ALLOWED < x < math.inf else 1.0 for x in allowed]

    def add_limits(self, factor: float = 1.0) -> Any:
        """Return the priced sum of the limits, times a factor."""
        return WeightedBound(self.bounds, factor * np.array(self.prices))

    def row(self, state: Any, label: str, action: Any) -> ChargedRow:
        """Return an evaluated action."""
        row = super().row(state, label, action)
        own, means = charge_outcomes(self.constraints, state, row.outcomes)
        charges = (row.risk, *means)
        priced = sum(map(mul, self.prices, charges))
        return ChargedRow(label, row.reward, priced, row.outcomes, charges, own)

    def has_time(self) -> bool:
        """Return whether the search may go on, by the limits as they are now."""
        self._count(0)
        return not self._stopped

    def rows(self, state: Any) -> list[Row]:
        """Return all actions of a state, evaluated, without those that are beyond the cap alone."""
        rows = super().rows(state)
        return [row for row in rows if row.charges[0] <= self.cap] or rows  # type: ignore[attr-defined]


class ChargedTree(PlanTree):
    """Histories with all that their openings and closings are charged."""

    def __init__(self, evaluator: ChargedEvaluator, default: Default) -> None:
        super().__init__(evaluator, default)
        self._several = evaluator
        # Rows of D numbers: of each action taken, opening and closing; of outcomes D - 1.
        width = len(evaluator.bounds)
        kinds = [np.dtype([("of", "f8", (count,))]) for count in (width, width - 1)]
        self._taken, self._opened, self._closed = Rows(kinds[0]), Rows(kinds[0]), Rows(kinds[0])
        self._own = Rows(kinds[1])
        self._ahead = Rows(np.dtype("f8"))  # the largest risk ahead that a closing leads to

    def add(self, levels: Any, states: Sequence[Any], reaches: Any) -> int:
        self._closed.extend(len(states))
        self._ahead.extend(len(states))
        return super().add(levels, states, reaches)

    def open(self, ns: Indices, labels: list[str]) -> Indices:
        first, found = self.openings.count, super().open(ns, labels)
        rows = self.openings.array["row"][first : self.openings.count]
        reach = self.histories.array["reach"][ns[: len(found)][found != NONE]]
        self._opened.extend(len(rows))["of"] = reach[:, None] * self._taken.array["of"][rows]
        return found

    def _settle(self, ns: Indices, stored: Stored) -> None:
        super()._settle(ns, stored)
        reach, closed = self.histories.array["reach"][ns], self._closed.array["of"]
        own = reach[:, None] * self._taken.array["of"][stored.row]
        closed[ns] = own + np.transpose([stored.add_up(column) for column in closed.T])
        ahead = np.divide(closed[ns, 0], reach, out=np.zeros(len(ns)), where=reach > 0)
        source = np.repeat(np.arange(len(ns)), stored.child_count)
        np.maximum.at(ahead, source, self._ahead.array[stored.children])
        self._ahead.array[ns] = ahead

    def _price(self, states: Sequence[Any], answers: Answers, risk: Floats) -> Floats:
        constraints, taken = self._several.constraints, self._taken.extend(len(risk))["of"]
        for k, outcomes in enumerate(answers.take(range(len(risk))).split()):
            own, means = charge_outcomes(constraints, states[k], outcomes)
            taken[k] = risk[k], *means
            self._own.extend(len(own))["of"] = own
        return np.asarray(taken @ np.array(self._several.prices))

    def read_charges(self, outcomes: Indices) -> dict[str, Floats]:
        own = self._own.array["of"][outcomes]
        names = enumerate(self._several.quantities)
        return {name: own[:, k] for k, name in names if name != "risk ahead"}

    def list_charges(self) -> tuple[Floats, Floats]:
        """Return what each closing is charged, and each opening."""
        closed, opened = (rows.array["of"][: rows.count] for rows in (self._closed, self._opened))
        return closed, opened

    def make_cap(self, unit: float) -> Any:
        """Return the arrays of the cap, given a usual reward; None without a cap."""
        from vulcan.kernels.growth import CapArrays

        cap, count = self._several.cap, len(self)
        if cap == math.inf:
            return None
        closed, opened = self.list_charges()
        prices = np.geomspace(unit / 16, 16 * unit / max(cap, 1e-6), MOST_CAPPED - 2)
        shape = count, MOST_CAPPED
        allowed = (cap + ACCEPTED) * self.histories.array["reach"][:count]
        allowed[:1] = math.inf  # that of the root has a price of its own
        return CapArrays(
            np.asarray(self._ahead.array[:count] <= np.float64(cap + ACCEPTED)),
            closed[:, 0].copy(),
            opened[:, 0].copy(),
            allowed,
            np.array([0.0, *prices, FIRMEST * unit]),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int32),
        )

    def set_prices(self, prices: Floats) -> None:
        """Price all charges anew."""
        self._several.prices = prices.tolist()
        closed, opened = self.list_charges()
        self.histories.array["close_risk"][: len(closed)] = closed @ prices
        self.openings.array["risk"][: len(opened)] = opened @ prices


def warm_up() -> None:
    """Compile the kernels, or load them."""
    from vulcan.kernels.growth import CapArrays, PlanArrays, choose_capped

    one, real, none = np.zeros(1), np.zeros((1, 1)), np.full(1, NONE, np.int32)
    empty, places = np.zeros(0, np.int32), np.zeros((1, 1), np.int32)
    tree = PlanArrays(one, one, one, none, empty, one[:0], one[:0], empty, empty)
    keeps = np.ones(1, np.bool_)
    cap = CapArrays(keeps, one, one[:0], one, one, real, real.copy(), places, places.copy())
    choose_capped(tree, cap, 0.0, none, none.copy(), np.zeros(3))
    load_programs()


class SeveralPlan(GrowingPlan):
    """A plan that grows under several constraints; see the head of this module."""

    make_tree = ChargedTree
    tree: ChargedTree

    def __init__(self, problem: Problem, evaluator: ChargedEvaluator, *given: Any) -> None:
        self._several, self._prices = evaluator, np.array(evaluator.prices)
        self._whole = set[int]()  # histories that were opened by all their actions
        self._generosity = 1.0  # by which the limits of the rule are multiplied
        super().__init__(problem, evaluator, *given)

    def grow(self, budget: int) -> None:
        if self._prices.tolist() != self._several.prices:
            self.tree.set_prices(self._prices)
            self._groups, self._price = Groups(self._evaluator, self.tree.measure), 1.0
            self._described, self._decided = {}, {}
        self._bound = self._several.add_limits(self._generosity)
        super().grow(budget)
        if self.exhausted and self._generosity < MOST_GENEROUS:
            # The best plan at other prices may need histories that were not worth opening at these.
            self._generosity *= 2
            self.exhausted = False
        elif self.exhausted:
            self._open_rest(self._evaluator.count + budget)

    def _open_rest(self, until: int) -> None:
        """Open histories by all their actions, likely ones first, whatever the rule says."""
        tree, evaluator, before = self.tree, self._evaluator, self._evaluator.count
        while evaluator.may_go_on(until) and len(self._whole) < len(tree):
            reach = tree.histories.array["reach"][: len(tree)].copy()
            reach[list(self._whole)] = -1.0
            left = min(
                len(tree) - len(self._whole), max(1, (until - evaluator.count) // LEAST_PARTS)
            )
            ns = np.argsort(-reach, kind="stable")[:left]
            states = [tree.states[n] for n in ns.tolist()]
            labels = list(map(list, evaluator.list_actions(states)))
            for rank in range(max(map(len, labels), default=0)):
                has = [k for k, own in enumerate(labels) if len(own) > rank]
                self._find_or_open(ns[has], [labels[k][rank] for k in has])
            self._whole.update(ns[: len(labels)].tolist())
        self.exhausted = evaluator.count == before
        self._keep(self.choose())

    def choose(self, decision_price: float = 0.0) -> Chosen | None:
        """Return the best plan found within all limits, if any."""
        from vulcan.kernels.growth import UNREACHED

        arrays, held = self.tree.arrays(), np.full(len(self.tree), UNREACHED, np.int32)
        if decision_price:
            sweep = TreeSweep(self._several.bounds, arrays, self.tree, held, decision_price)
            plans = (sweep.run(np.array([1.0, *(scale * self._prices)])) for scale in (1, 2, 8, 64))
            return next((chosen for chosen in plans if sweep.accepts(chosen)), None)
        best, left = None, max(FEWEST_PLANS, MOST_SWEPT // len(self.tree))
        waiting = [(-math.inf, 0, 0, held)]  # by their upper bounds, the last of these first
        for number in range(MOST_HELD if len(self.tree) > SMALL else MOST_BRANCHED):
            if left <= 0 or not waiting or (number and not self._several.has_time()):
                break
            bound, *_, held = heapq.heappop(waiting)
            worthwhile = best is None or -bound - best.reward > WORTHLESS * max(
                1e-9, abs(best.reward)
            )
            if not worthwhile:
                break
            sweep = TreeSweep(self._several.bounds, arrays, self.tree, held)
            chosen, mixed, upper = sweep.search(min(left, MOST_PLANS))
            left -= len(sweep.points)
            if chosen is not None and (best is None or chosen.reward > best.reward):
                best = chosen
                if sweep.prices.any():
                    self._prices = sweep.prices
            for k, other in enumerate(self._branch(held, chosen, mixed)):
                heapq.heappush(waiting, (-upper, -number, -k, other))
        return best

    def _branch(
        self, held: NDArray[np.int32], chosen: Chosen | None, mixed: list[Chosen]
    ) -> Iterator[NDArray[np.int32]]:
        """Yield what histories may be held to, the most promising last.

        That is each opening of the likeliest history in which the plans of the best mixture differ;
        and all of one that exceeds a limit in place of those of the best plan.
        """
        from vulcan.kernels.growth import CLOSED, UNREACHED

        plans = [plan.openings for plan in (*mixed, *([] if chosen is None else [chosen]))]
        if len(plans) < 2:
            return
        first, *others = plans
        reach = self.tree.histories.array["reach"][: len(held)]
        differ = [
            (first != other) & (first != UNREACHED) & (other != UNREACHED) for other in others
        ]
        places = np.flatnonzero(np.any(differ, axis=0) & (held == UNREACHED))
        if len(places):
            n = int(places[reach[places].argmax()])
            options, opening = [CLOSED], int(self.tree.histories.array["first_opening"][n])
            while opening != NONE:
                options.append(opening)
                opening = int(self.tree.openings.array["next_opening"][opening])
            for option in sorted(options, key=[plan[n] for plan in plans].count):
                yield np.where(np.arange(len(held)) == n, option, held).astype(np.int32)
            yield np.where(differ[-1], first, held)


class TreeSweep(PricedPoints):
    """The best plans in a tree for some prices, as the points of a program over them."""

    def __init__(
        self,
        bounds: list[RiskBound],
        arrays: Any,
        tree: ChargedTree,
        held: NDArray[np.int32],
        decision_price: float = 0.0,
    ) -> None:
        charged = tree.list_charges()
        sizes = [np.abs(x).max(axis=0, initial=0.0) for x in charged]
        super().__init__(bounds, np.maximum(np.maximum(*sizes), 1e-12))
        self._arrays, self._held, self._decision_price = arrays, held, decision_price
        self._closed, self._opened = charged
        rewards = arrays.close_reward[np.isfinite(arrays.close_reward)]
        self._unit = max(1e-9, float(np.abs(rewards).max(initial=0.0)))
        self._unit = max(self._unit, float(np.abs(arrays.reward).max(initial=0.0)))
        self.prices = np.zeros(len(bounds))
        self._cap = tree.make_cap(self._unit)

    def run(self, weights: Floats) -> Chosen:
        """Return the best plan for some weights of reward and charges."""
        from vulcan.kernels.growth import CLOSED, choose_capped, choose_plan

        prices = weights[1:] / max(float(weights[0]), self._find_least_weight(weights))
        priced = self._arrays._replace(close_risk=self._closed @ prices, risk=self._opened @ prices)
        size = len(self._held)
        openings, found = np.zeros(size, np.int32), np.zeros(3)
        given = self._decision_price, self._held
        if self._cap is None:
            choose_plan(priced, 1.0, *given, np.zeros(size), openings, found)
        else:
            choose_capped(priced, self._cap, *given, openings, found)
        self.charges = self._closed[openings == CLOSED].sum(axis=0)
        self.charges = self.charges + self._opened[openings[openings >= 0]].sum(axis=0)
        self.prices = prices
        return Chosen(float(found[0]), float(self.charges[0]), int(found[2]), openings, 1.0)

    def _find_least_weight(self, weights: Floats) -> float:
        return max(1e-300, float((weights[1:] * self.scales).max()) / (FIRMEST * self._unit))

    def accepts(self, chosen: Chosen) -> bool:
        """Return whether the plan of the last run is within all limits."""
        charged = zip(self.bounds, self.charges.tolist(), strict=True)
        return chosen.reward > -math.inf and all(
            accepts(bound, chosen.reward, x) for bound, x in charged
        )

    def search(self, most_plans: int) -> tuple[Chosen | None, list[Chosen], float]:
        """Return the best plan within all limits, and plans of the best mixture.

        The last is the reward of that mixture; its prices are kept. At most `most_plans` are
        compared.
        """
        best: Chosen | None = None
        most, mixed, accepted = -math.inf, list[Floats](), list[bool]()
        program, first = MixtureProgram(self), np.eye(1 + len(self.bounds))[0]
        for margin in MARGINS:
            found: tuple[Floats, float] | None = (first, -math.inf)
            while found is not None and len(self.points) < most_plans:
                weights, value = found
                chosen = self.run(weights)
                if chosen.reward == -math.inf:  # nothing keeps the cap
                    return None, [], -math.inf
                point = PolicyPoint(chosen.reward, 0.0, charges=tuple(self.charges.tolist()))
                worth = float(weights @ [chosen.reward, *(-self.charges)])
                new = not self.knows(point)
                self.points.append(point)
                self.directions.append(weights)
                accepted.append(self.accepts(chosen))
                if accepted[-1] and (best is None or chosen.reward > best.reward):
                    best = chosen
                if not new or worth <= value + CLOSE * (1 + abs(value)):
                    break
                found = program.solve(margin=margin)
            if not program.feasible:
                break
            if not margin:
                most, first = program.reward, weights
                order = np.argsort(-program.shares).tolist()
                used = [k for k in order if program.shares[k] > CLOSE]
                mixed = [self.directions[k] for k in sorted(used, key=accepted.__getitem__)]
            if best is not None and best.reward >= program.reward:
                break
        plans = [self.run(direction) for direction in mixed]
        self.run(first)  # for its prices
        return best, plans, most
