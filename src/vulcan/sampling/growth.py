"""Plans that grow from the root, for models in which every history is a state of its own.

A plan over histories has to decide after every outcome until the mission ends, so a search that
looks far ahead has no plan before it has seen nearly everything. Here every plan is complete from
the start. Each history is *closed* by a default that is cheap to evaluate: an action that ends the
mission, or one that comes to the end within a few decisions. Then the plan grows: histories are
*opened* by an action, and what follows them is closed again. Reward, risk and size are exact all
along.

Where no action ends the mission soon, histories are not closed but bounded: by what the model
claims of its default action (`default_bounds`), or by the least reward of whatever may happen. The
plan then has a frontier, and is certified with these bounds.

A rule (`vulcan.sampling.groups`) guides which histories to open, and how. Likely histories, and all
of them where groups mislead, are opened by their own answers, looking one action ahead to the
values of groups. Then the best plan in the tree is chosen (`vulcan.kernels.growth`) for the least
price of failure that the risk bound accepts: histories that risk too much for what they earn are
closed again. So the bound is spent up to single histories. A price per decision makes a plan
smaller, where there is little time to certify it.

Rounds have twice as many evaluations each, a part of them for the rule. Nothing is random: the
same number of evaluations gives the same plan.
"""

from __future__ import annotations

import heapq
import math
import time
from array import array
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.certificate.certify import Certificate, certify
from vulcan.errors import ModelError
from vulcan.exact.acceptance import accepts
from vulcan.model.interface import FAILURE, Start
from vulcan.model.reader import ModelReader, label_outcomes
from vulcan.model.rules import Rule
from vulcan.numerics import ANY, DEFAULT, END, FAILED, NONE, UNPLANNED
from vulcan.policy.policy import About, Beyond, Policy
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import Monitor, Progress, StopReason, TimeUp, pause_collection
from vulcan.sampling.groups import BINS, ActionEvaluator, Closing, Groups, OpeningRule, Row
from vulcan.solvers.base import Options, Solver, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status, Worth

MOST_CLOSING: Final = 64  # decisions that a default may take until the mission ends
ROOMS: Final = (1, 8, MOST_CLOSING)  # decisions that are tried, one after the other
FIRST_ROUND: Final = 2_000  # evaluations; fewer where they take longer than this share of the time
SHARE_OF_FIRST_ROUND: Final = 0.1
FEWEST: Final = 32  # evaluations of a round
HOPELESS: Final = 8 * FIRST_ROUND  # evaluations of a round without any plan: give up
SHARE_OF_RULE: Final = 0.15  # of the evaluations of a round

# Less likely histories are in the group that the rule expects, which takes no evaluations, and not
# in that of their own answers, unless the actions of groups lose too much of what is gained.
LIKELY: Final = 1e-3
MISLEADING: Final = 0.05
# If a round has evaluations left, the price of a decision falls:
BETWEEN_PASSES: Final = 0.25  # by this many bins
MOST_PASSES: Final = 12  # this often
SMALLER: Final = 0.6  # decisions of a plan for each evaluation of a round
CERTIFYING: Final = 1.1  # time per decision, if not known, in evaluations of the search
MOST_HELD: Final = 8  # how often a plan is chosen with more histories opened at all prices
WORTHLESS: Final = 2e-4  # of the reward, what unused risk may be worth
TELLING: Final = 1_000  # decisions of a policy whose certificate tells how long others take
SHARE_OF_CERTIFYING: Final = 0.05  # of the time so far, for a certificate before the end
# The first certificates may take more, to have a plan soon: this share, or seconds.
SHARE_AT_FIRST: Final = 0.2
SOON: Final = 0.25
AT_ONCE: Final = 1.0  # seconds for the certificate after Ctrl-C
PROBES: Final = 64  # histories whose answers tell how long those of a plan take
EXTRAPOLATING: Final = 0.1  # exponent of a plan's size in the time per decision
SLOW: Final = 1e-3  # seconds per decision from which on they are not queried for that

Answers = MutableMapping[Any, Any]
"""Answers of a model by what it was called with; see `ActionEvaluator`."""

Default = Callable[[Any, dict[str, Any]], str] | str
"""Returns the label of the default action of a state, given its actions by their labels.

Or a claim (`ANY`, `DEFAULT`) that bounds all that follows."""


def find_default(evaluator: ActionEvaluator, bound: RiskBound) -> Default | None:
    """Return a default that ends the mission within a few decisions, or a claim; None without one.

    It is the model's own `default_action`, or else `Ending`. If that does not end the mission from
    the root, it is what the model claims of its default action, or of any outcome.
    """
    reader = evaluator.reader
    claim = None if reader.least_reward is None else ANY
    if hasattr(reader.model, "default_action"):

        def model_default(state: Any, actions: dict[str, Any]) -> str:
            return reader.default_label(state, actions)

        if _measure(evaluator, model_default, reader.root) is not None:
            return model_default
        return DEFAULT if hasattr(reader.model, "default_bounds") else claim
    ending = Ending(evaluator, bound)
    if isinstance(reader.root, Start):
        first = (o.state for action in reader.root.choices.values() for o in action if not o.fails)
        for state in islice(first, 1):
            ending.learn(state, evaluator.actions(state))
    return ending if ending.learn(reader.root, evaluator.actions(reader.root)) else claim


class Ending:
    """The default that ends the mission soonest; of these the least risky, then the best paid.

    It is found for the first state that is closed, and used wherever it is available. Where it is
    not, it is found anew, once for each set of actions.
    """

    def __init__(self, evaluator: ActionEvaluator, bound: RiskBound) -> None:
        self._evaluator, self._bound = evaluator, bound
        self._labels: list[str] = []  # those that end the mission somewhere
        self._found: dict[tuple[str, ...], str | None] = {}

    def __call__(self, state: Any, actions: dict[str, Any]) -> str:
        for label in self._labels:
            if label in actions:
                return label
        key = tuple(actions)
        if key not in self._found:
            self._found[key] = self.learn(state, actions)
        return self._found[key] or key[0]

    def learn(self, state: Any, actions: dict[str, Any]) -> str | None:
        """Return the label that ends the mission soonest from a state, if any does.

        One whose risk the bound does not accept is taken only where no other ends the mission.
        """
        rows = [self._evaluator.row(state, *item) for item in actions.items()]
        rows.sort(key=lambda row: len(row.outcomes))  # fewer outcomes take fewer answers
        found: list[tuple[bool, float, float, float, str]] = []
        for room in ROOMS:
            for row in rows:

                def always(_: Any, actions: dict[str, Any], label: str = row.label) -> str:
                    known = (other for other in (label, *self._labels) if other in actions)
                    return next(known, next(iter(actions)))

                closing = _measure(self._evaluator, always, state, room)
                if closing is not None:
                    reward, risk, size = closing
                    refused = not accepts(self._bound, reward, risk)
                    found.append((refused, size, risk, -reward, row.label))
                    if room == 1 and risk == 0 and not refused:
                        break  # no action ends the mission sooner, or with less risk
            if found and not min(found)[0]:
                break
        if not found:
            return None
        label = min(found)[-1]
        self._labels.append(label)
        return label


def _measure(
    evaluator: ActionEvaluator, default: Default, state: Any, room: int = MOST_CLOSING
) -> Closing | None:
    """Return what a default earns, risks and takes from a state; None without enough room."""
    closing = PlanTree(evaluator, default).measure(state, 0, room)
    return None if closing[0] == -math.inf else closing


Following = Iterable[tuple[int, int]]
"""Histories, and the group of each or -1."""


class PlanTree:
    """Histories, each closed by a default and perhaps opened by actions, in flat arrays."""

    def __init__(self, evaluator: ActionEvaluator, default: Default) -> None:
        self._evaluator, self._reader, self.default = evaluator, evaluator.reader, default
        self._weights = self._reader.weights.tolist()
        # Of each history; rewards and risks are multiplied by its probability.
        self.states: list[Any] = []
        self.level, self.reach = array("i"), array("d")
        self.close_row, self.close_child, self.close_size = array("i"), array("i"), array("d")
        self.close_reward, self.close_risk = array("d"), array("d")
        self._claims: dict[int, tuple[float, float]] = {}  # of histories that are only bounded
        self.first_opening = array("i")
        # Of each opening.
        self.next_opening, self._row = array("i"), array("i")
        self.first_child, self.child_count = array("i"), array("i")
        self.reward, self.risk = array("d"), array("d")
        # Of each row, an action that was taken, and of its outcomes.
        self._action, self._first_outcome = array("i"), array("q", [0])
        self._label, self._probability = array("i"), array("d")
        self._outcome_reward, self._child = array("d"), array("i")
        self._labels: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of histories."""
        return len(self.states)

    def measure(self, state: Any, level: int, room: float = MOST_CLOSING) -> Closing:
        """Return reward, risk and decisions of the default from a state on."""
        tree = PlanTree(self._evaluator, self.default)
        tree.add(level, [state], [1.0])
        if not tree.close(0, self._evaluator.actions(state), room):
            return -math.inf, 0.0, 1.0
        return tree.close_reward[0], tree.close_risk[0], float(tree.close_size[0])

    def add(self, level: int, states: Sequence[Any], reaches: Sequence[float]) -> int:
        """Add histories that are neither closed nor opened; return the first of them."""
        first, count = len(self.states), len(states)
        self.states += states
        self.reach.extend(reaches)
        self.level.extend([level] * count)
        for column in (self.close_row, self.close_child, self.first_opening):
            column.extend([NONE] * count)
        self.close_size.extend([0] * count)
        self.close_reward.extend([-math.inf] * count)
        self.close_risk.extend([0.0] * count)
        return first

    def close(self, n: int, actions: dict[str, Any], room: float = MOST_CLOSING) -> bool:
        """Close a history by the default; False if that takes more decisions than there is room."""
        if isinstance(self.default, str):
            risk, reward = self._evaluator.bound(self.default, self.states[n], self.level[n])
            self._claims[n] = risk, reward
            self.close_reward[n] = self.reach[n] * self._weights[self.level[n]] * reward
            self.close_risk[n] = self.reach[n] * risk
            self.close_size[n] = 1  # a claim takes an answer of the model, like a decision
            return True
        if not actions or room < 1:
            return False
        label = self.default(self.states[n], actions)
        row = self._evaluator.row(self.states[n], label, actions[label])
        number, first, following = self._store(n, row)
        reward = self.reach[n] * self._weights[self.level[n]] * row.reward
        risk, size = self.reach[n] * row.risk, 1.0
        self.close_child[n] = first
        for child, later in enumerate(following, first):
            if not self.close(child, later, room - size):
                return False
            reward += self.close_reward[child]
            risk += self.close_risk[child]
            size += self.close_size[child]
        self.close_row[n], self.close_size[n] = number, size
        self.close_reward[n], self.close_risk[n] = reward, risk
        return True

    def open(self, n: int, row: Row) -> int:
        """Open a history by an action, close what follows, and return the opening."""
        number, first, following = self._store(n, row)
        opening = len(self._row)
        for child, later in enumerate(following, first):
            self.close(child, later)
        self.next_opening.append(self.first_opening[n])
        self.first_opening[n] = opening
        self._row.append(number)
        self.first_child.append(first)
        self.child_count.append(len(following))
        self.reward.append(self.reach[n] * self._weights[self.level[n]] * row.reward)
        self.risk.append(self.reach[n] * row.risk)
        return opening

    def open_root(self, actions: dict[str, Any]) -> None:
        """Open the root by the model's default action, or by the first action of least risk."""
        rows = [self._evaluator.row(self._reader.root, *item) for item in actions.items()]
        if self.default == DEFAULT and not isinstance(self._reader.root, Start):
            label = self._reader.default_label(self._reader.root, actions)
            rows = [row for row in rows if row.label == label]
        self.open(0, min(rows, key=lambda row: row.risk))

    def find_opening(self, n: int, label: str) -> int:
        """Return the opening of a history by an action; NONE if there is none."""
        opening, action = self.first_opening[n], self._labels.get(label)
        while opening != NONE and self._action[self._row[opening]] != action:
            opening = self.next_opening[opening]
        return opening

    def _store(self, n: int, row: Row) -> tuple[int, int, list[dict[str, Any]]]:
        """Store an action that a history takes, and add the histories after it.

        Returns the number of the row, the first of these histories, and the actions of each.
        """
        level, reach, read = self.level[n] + 1, self.reach[n], self._evaluator.actions
        labels, last = self._labels, level == self._reader.levels
        following: list[dict[str, Any]] = []
        states, reaches = [], []
        for outcome, label in zip(row.outcomes, label_outcomes(row.outcomes), strict=True):
            state, child = outcome.state, END
            if state is FAILURE:
                child = FAILED
            elif not last and (actions := read(state)):
                child = len(following)
                following.append(actions)
                states.append(state)
                reaches.append(reach * outcome.probability)
            self._label.append(labels.setdefault(label, len(labels)))
            self._probability.append(outcome.probability)
            self._outcome_reward.append(outcome.reward)
            self._child.append(child)
        number = len(self._action)
        self._action.append(labels.setdefault(row.label, len(labels)))
        self._first_outcome.append(len(self._label))
        return number, self.add(level, states, reaches) if states else NONE, following

    def arrays(self) -> Any:
        """Return the arrays for kernels."""
        from vulcan.kernels.growth import PlanArrays

        return PlanArrays(**{name: np.array(getattr(self, name)) for name in PlanArrays._fields})

    def write(self, openings: NDArray[np.int32], about: About) -> Policy:
        """Return the plan with these openings as a policy, decisions level by level."""
        names = ("close_row", "close_child", "_row", "first_child", "_first_outcome", "_child")
        close_row, close_child, row, first_child, first_outcome, child = (
            np.array(getattr(self, name)) for name in names
        )
        claimed = np.zeros(len(self), np.bool_)
        claimed[list(self._claims)] = True
        rows, children, frontier, after = [], [], [], 0
        here = np.zeros(1, np.int64)  # histories of a level
        while len(here):
            opening = openings[here]
            opened = opening >= 0
            taken, first = close_row[here], close_child[here]
            taken[opened] = row[opening[opened]]
            first[opened] = first_child[opening[opened]]
            counts = first_outcome[taken + 1] - first_outcome[taken]
            then = child[ranges(first_outcome[taken], counts)]
            onward = np.flatnonzero(then >= 0)
            here = np.repeat(first, counts)[onward] + then[onward]
            left = claimed[here] & (openings[here] < 0)
            then[onward[left]] = UNPLANNED
            frontier += here[left].tolist()
            onward, here = onward[~left], here[~left]
            after += len(taken)
            then[onward] = np.arange(after, after + len(here))
            rows.append(taken)
            children.append(then)
        taken = np.concatenate(rows)
        counts = first_outcome[taken + 1] - first_outcome[taken]
        outcomes = ranges(first_outcome[taken], counts)
        claims = np.array([self._claims[n] for n in frontier])
        return Policy(
            about,
            tuple(self._labels),
            np.array(self._action)[taken],
            np.append(starts(counts), len(outcomes)),
            np.array(self._label)[outcomes],
            np.array(self._probability)[outcomes],
            np.array(self._outcome_reward)[outcomes],
            np.concatenate(children),
            beyond=Beyond(str(self.default), *claims.T) if frontier else None,
        )


class Chosen(NamedTuple):
    """A plan in the tree: reward, risk and decisions, and the opening of each history."""

    reward: float
    risk: float
    size: int
    openings: NDArray[np.int32]
    price: float


def _choose(arrays: Any, price: float, decision_price: float, held: NDArray[np.int32]) -> Chosen:
    """Return the best plan in a tree for a price of failure and a price per decision."""
    from vulcan.kernels.growth import choose_plan

    openings, found = np.zeros(len(held), np.int32), np.zeros(3)
    choose_plan(arrays, price, decision_price, held, np.zeros(len(held)), openings, found)
    reward, risk, size = found.tolist()
    return Chosen(reward, risk, int(size), openings, price)


class GrowingPlan:
    """A plan that grows.

    `kept` are the plans that were the best so far, each within the bound. `exhausted` says whether
    the last round found nothing more to evaluate. If `first` is given, the plan begins with that
    action after the first round, as long as it is then within the bound and earns at least `floor`.
    """

    def __init__(
        self,
        problem: Problem,
        evaluator: ActionEvaluator,
        default: Default,
        first: str | None = None,
        floor: float = -math.inf,
    ) -> None:
        self._first, self._floor = first, floor
        self._bound, self._evaluator, self._reader = problem.risk_bound, evaluator, evaluator.reader
        self.tree = PlanTree(evaluator, default)
        self.tree.add(0, [self._reader.root], [1.0])
        actions = self._evaluator.actions(self._reader.root)
        if isinstance(default, str):  # a plan has at least one decision
            self.tree.open_root(actions)
        else:
            self.tree.close(0, actions)
        self._groups = Groups(evaluator, self.tree.measure)
        self._described: dict[int, Any] = {}  # the answers of likely histories
        # In this round: the groups of these histories, and those after an action of a group.
        self._located: dict[int, int] = {}
        self._below: dict[tuple[int, int], list[int]] = {}
        # Whether groups mislead: how much of what likely histories gain is lost by their actions.
        self._distrusts, self._regret, self._gained = False, 0.0, 0.0
        self._decided: dict[int, tuple[int, int]] = {}  # groups and actions of unlikely histories
        self._weights = self._reader.weights.tolist()
        self._price = 0.0
        self.kept: list[Chosen] = []
        self.exhausted = False
        self._keep(self.choose())

    def grow(self, budget: int) -> None:
        """Run one more round, with this budget of evaluations."""
        begin = self._evaluator.count
        until = begin + budget
        size = len(self.tree) + SMALLER * budget
        rule_until = begin + math.ceil(SHARE_OF_RULE * budget)
        rule = self._groups.find_rule(self._bound, size, rule_until, self._price)
        labels = [row.label for row in self._groups.rows[0]]
        if self._first in labels:
            rule.actions[0] = labels.index(self._first)
        self._price = rule.price
        self._located, self._below = {}, {}
        self._regret = self._gained = 0.0
        waiting: Following = [(0, 0)]
        for number in range(MOST_PASSES):
            start = max(0.0, rule.start - BETWEEN_PASSES * number)
            waiting = self._follow(rule, start, until, waiting)
            if start == 0 or not self._evaluator.may_go_on(until):
                break
        self._distrusts = self._regret > MISLEADING * self._gained
        self.exhausted = self._evaluator.count == begin
        self._keep(self.choose())
        opening = NONE if self._first is None else self.tree.find_opening(0, self._first)
        if opening != NONE:
            chosen = self.choose(first=opening)
            if chosen is not None and chosen.reward >= self._floor:
                self.kept.append(chosen)

    @property
    def best(self) -> Chosen | None:
        """The best plan so far that the bound accepts; None if it accepts none."""
        return self.kept[-1] if self.kept else None

    def choose(self, decision_price: float = 0.0, first: int = NONE) -> Chosen | None:
        """Return the best plan found that the bound accepts, if any, perhaps of a first opening.

        For one price of failure the bound may accept hardly anything, and for a little less the
        plan risks too much, because a likely history is worth opening at one price only. It is then
        opened at all prices, as the plan that risks too much does, and the others pay for it.
        """
        from vulcan.kernels.growth import UNREACHED

        arrays, held = self.tree.arrays(), np.full(len(self.tree), UNREACHED, np.int32)
        if first != NONE:
            arrays.first_opening[0], arrays.next_opening[first] = first, NONE
            arrays.close_reward[0] = -math.inf
        best, price = None, 0.0
        for _ in range(MOST_HELD):
            below, chosen = self._bracket(arrays, price, decision_price, held)
            if chosen is None:
                break
            if best is None or chosen.reward > best.reward:
                best = chosen
            unused = self._bound(chosen.reward) - chosen.risk
            if below is None or chosen.price * unused <= WORTHLESS * max(1e-9, abs(chosen.reward)):
                break  # what the bound leaves unused is worth next to nothing
            alike = below.openings == chosen.openings
            reached = (below.openings != UNREACHED) & (chosen.openings != UNREACHED)
            held = np.where(reached & ~alike, below.openings, held)
            price = chosen.price
        return best

    def _bracket(
        self, arrays: Any, price: float, decision_price: float, held: NDArray[np.int32]
    ) -> tuple[Chosen | None, Chosen | None]:
        """Return the plans for two close prices: the bound accepts only the second one."""
        below, chosen = None, _choose(arrays, price, decision_price, held)
        while not self._accepts(chosen):
            below, price = chosen, max(1e-3, abs(chosen.reward), 4 * price)
            if price > 1e30 * max(1.0, abs(chosen.reward)):
                return below, None
            chosen = _choose(arrays, price, decision_price, held)
        while below is not None and chosen.price - below.price > 1e-6 * chosen.price:
            if chosen.price <= 1e-9 * max(1e-9, abs(chosen.reward)):
                break  # no risk is worth anything: only ties make a difference
            if np.array_equal(below.openings, chosen.openings):
                break
            price = math.sqrt(max(below.price, chosen.price / 16) * chosen.price)
            middle = _choose(arrays, price, decision_price, held)
            below, chosen = (below, middle) if self._accepts(middle) else (middle, chosen)
        return below, chosen

    def choose_small(self, most: float) -> Chosen | None:
        """Return a plan of at most this many decisions, if the bound accepts one."""
        if self.best is None or self.best.size <= most:
            return self.best
        from vulcan.kernels.growth import UNREACHED

        arrays, held = self.tree.arrays(), np.full(len(self.tree), UNREACHED, np.int32)
        low, high = 1e-15 * max(1e-9, abs(self.best.reward)), max(1e-9, abs(self.best.reward))
        for _ in range(24):
            middle = math.sqrt(low * high)
            small = _choose(arrays, self.best.price, middle, held).size <= most
            low, high = (low, middle) if small else (middle, high)
        for price in (high, 4 * high, 16 * high):
            chosen = self.choose(price)
            if chosen is not None and chosen.size <= most:
                return chosen
        return next((chosen for chosen in reversed(self.kept) if chosen.size <= most), None)

    def _accepts(self, chosen: Chosen) -> bool:
        return accepts(self._bound, chosen.reward, chosen.risk)

    def _keep(self, chosen: Chosen | None) -> None:
        if chosen is not None and (self.best is None or chosen.reward > self.best.reward):
            self.kept.append(chosen)

    def _follow(
        self, rule: OpeningRule, start: float, until: int, arriving: Following
    ) -> Following:
        """Open histories by a rule, the likeliest first; return those that it leaves closed."""
        reach, may_go_on = self.tree.reach, self._evaluator.may_go_on
        closed: list[tuple[int, int]] = []
        waiting: list[tuple[float, int, int]] = []
        while True:
            for n, expected in arriving:
                heapq.heappush(waiting, (-reach[n], n, expected))
            if not waiting or not may_go_on(until):
                return closed + [item[1:] for item in waiting]
            _, n, expected = heapq.heappop(waiting)
            group, action = self._decide(rule, start, n, expected)
            if action >= 0:
                arriving = self._open(n, group, action)
            else:
                closed.append((n, group))
                arriving = ()

    def _decide(self, rule: OpeningRule, start: float, n: int, expected: int) -> tuple[int, int]:
        """Return the group of a history, and the action to open it by or a negative number.

        A likely history is opened by its own answers and the values of the groups after them. Where
        these often lead to another action than that of the group, all histories are.
        """
        likely = self.tree.reach[n]
        position = int(start - math.log2(likely) + 0.5) if likely else BINS
        if position >= BINS:
            return expected, NONE
        if likely < LIKELY and n in self._decided:
            return self._decided[n]
        if expected >= 0 and likely < LIKELY and not self._distrusts:
            return expected, int(rule.actions[expected, position])
        group = self._find_group(n, likely >= LIKELY)
        action = self._weigh(rule, n, group, position)
        if likely < LIKELY:
            del self._described[n]
            self._decided[n] = group, action
        return group, action

    def _weigh(self, rule: OpeningRule, n: int, group: int, position: int) -> int:
        """Return the best action of a history by its own answers; CLOSED if none is worth it."""
        from vulcan.kernels.growth import CLOSED

        tree, reach = self.tree, self.tree.reach[n]
        # A group may be newer than the rule.
        usual = int(rule.actions[group, position]) if group < len(rule.actions) else NONE
        weight, decision = self._weights[tree.level[n]], float(rule.bins[position])
        best = (tree.close_reward[n] - rule.price * tree.close_risk[n]) / reach
        best -= decision * tree.close_size[n]
        chosen, gains = CLOSED, list[float]()
        later: list[float | None] = []
        answers = self._groups.read_numbers(group, self._described[n][1])
        for action, (reward, risk, probabilities) in enumerate(answers):
            gains.append(weight * reward - rule.price * risk)
            children = self._groups.find_children(group, action)
            if children is None:
                later.append(None)
            else:
                later.append(_look_ahead(rule, position, children, probabilities))
        # What follows an action that was not expanded is worth as much as what follows the others.
        known = [value for value in later if value is not None]
        other = later[usual] if usual >= 0 else None
        unknown = other if other is not None else max(known, default=0.0)
        worth = [
            gain - decision + (unknown if value is None else value)
            for gain, value in zip(gains, later, strict=True)
        ]
        for action, value in enumerate(worth):
            if value > best:
                best, chosen = value, action
        if reach >= LIKELY and chosen >= 0 <= usual:
            self._regret += reach * (best - worth[usual])
            self._gained += reach * abs(worth[chosen])
        return chosen

    def _open(self, n: int, group: int, action: int) -> Following:
        """Open a history as its group is opened; return what follows, with the groups expected."""
        tree = self.tree
        label = self._groups.rows[group][action].label
        opening = tree.find_opening(n, label)
        if opening == NONE:
            available = self._evaluator.actions(tree.states[n])
            if label not in available:
                return ()
            opening = tree.open(n, self._evaluator.row(tree.states[n], label, available[label]))
        first, count = tree.first_child[opening], tree.child_count[opening]
        below = self._below.get((group, action))
        if below is None:
            found = self._groups.find_children(group, action) or ()
            below = self._below[group, action] = [child for child in found if child >= 0]
        if len(below) != count:  # what is like the others otherwise has ended here
            below = count * [NONE]
        return zip(range(first, first + count), below, strict=True)

    def _find_group(self, n: int, keeps: bool) -> int:
        """Return the group that is closest to the answers of a history, which are `_described`."""
        group = self._located.get(n)
        if group is None:
            if n not in self._described:
                state, level = self.tree.states[n], self.tree.level[n]
                rows = self._evaluator.rows(state)
                self._described[n] = self._groups.describe(level, rows)
                if self._groups.find(self._described[n])[0] < 0:  # other actions than any group
                    self._groups.place(state, level, self.tree.reach[n], rows)
            group, _ = self._groups.find(self._described[n])
            if keeps:
                self._located[n] = group
        return group


def _look_ahead(
    rule: OpeningRule, position: int, children: list[int], probabilities: list[float]
) -> float:
    """Return the value of the groups after an action, for a price of a decision."""
    value = 0.0
    for child, probability in zip(children, probabilities, strict=False):
        if child >= 0 < probability:
            halvings = int(0.5 - math.log2(probability))
            value += probability * float(rule.values[child, min(BINS - 1, position + halvings)])
    return value


@dataclass(frozen=True)
class Growth(Solver):
    """Grow a plan from the root: complete and exact at every size, for histories that never merge.

    The model needs an action that ends the mission, or that comes to its end within a few decisions
    (`default_action` says which). A sample is one evaluation of the model.
    """

    finds: ClassVar[str] = "a complete policy that grows, where every history is its own state"
    method: ClassVar[str] = "opens histories by a rule, closes the others by a default"
    limits: ClassVar[Sequence[str]] = ("time_limit", "samples", "memory")
    endless: ClassVar[bool] = True

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        monitor.start_clock()
        return GrowthRun(self, problem, reader, monitor).search()


class GrowthRun:
    """One search: rounds, limits, and the best plan certified so far.

    `first` and `floor` are those of `GrowingPlan`, `answers` those of `ActionEvaluator`.
    """

    def __init__(
        self,
        solver: object,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        first: str | None = None,
        floor: float = -math.inf,
        answers: Answers | None = None,
    ) -> None:
        self._solver, self._problem, self._reader, self._monitor = solver, problem, reader, monitor
        self._first, self._floor, self._answers = first, floor, answers
        self._evaluator = ActionEvaluator(reader, self._wants_stop, answers)
        self._plan: GrowingPlan | None = None
        self._certified: tuple[Chosen, Policy, Certificate] | None = None
        self._seconds_per_decision: float | None = None
        self._told_size = 0  # decisions of the policy whose certificate told that
        self._answer_seconds = 0.0  # and of its answers, each
        self._slower = 1.0  # how much longer the answers of the best plan take
        self._error: ModelError | None = None
        self._began = 0.0  # seconds of the search before this one

    def search(self) -> Finding:
        """Grow until there is a reason to stop, and certify the plan."""
        with self._monitor.clock_stopped():
            warm_up()
        self._began, planned = self._monitor.seconds, None
        try:
            self._grow()
            search_seconds = self._monitor.seconds
            planned = self._certify_last()
        except ModelError as error:
            # A model that raised may have done so for a passing reason; one that lies gets nothing.
            if error.violation.rule is not Rule.ANSWERS:
                raise
            self._error, self._monitor.stopped_by = error, StopReason.MODEL
            search_seconds = self._monitor.seconds
        except TimeUp:
            self._monitor.stopped_by, search_seconds = StopReason.TIME, self._monitor.seconds
            planned = None if self._plan is None else self._plan.best
        return self._conclude(search_seconds, planned)

    def _grow(self) -> None:
        default = find_default(self._evaluator, self._problem.risk_bound)
        if default is None:
            return
        begun = self._problem, self._evaluator, default, self._first, self._floor
        self._plan = plan = GrowingPlan(*begun)
        self._certify_early()
        budget = self._find_first_budget()
        while not self._monitor.wants_stop(0, self._evaluator.count, self._reserve):
            samples = self._monitor.limits.samples
            left = budget if samples is None else samples - self._evaluator.count
            with pause_collection():
                plan.grow(min(budget, left))
            self._certify_early()
            self._compare_answers()
            if plan.exhausted or (plan.best is None and budget >= HOPELESS):
                break
            budget *= 2

    def _find_first_budget(self) -> int:
        """Return the evaluations of the first round: fewer where each takes long."""
        limit, seconds = self._monitor.limits.time_limit, self._monitor.seconds
        if limit is None:
            return FIRST_ROUND
        each = max(1e-9, seconds - self._began) / max(1, self._evaluator.count)
        return max(FEWEST, min(FIRST_ROUND, int(SHARE_OF_FIRST_ROUND * (limit - seconds) / each)))

    def _wants_stop(self) -> bool:
        self._monitor.report(self._describe)
        return self._monitor.wants_stop(0, self._evaluator.count, self._reserve)

    @property
    def _reserve(self) -> float:
        """Seconds to leave for the certificate: of the best plan, and of what was opened since."""
        plan = self._plan
        if plan is None or plan.best is None:
            return 0.0
        size = plan.best.size + len(plan.tree) - len(plan.best.openings)
        return 1.1 * self._expect_size(size)

    def _expect_size(self, size: int) -> float:
        """Return the seconds that the certificate of a plan takes."""
        seconds = self._seconds_per_decision
        if seconds is None:
            spent = self._monitor.seconds - self._began
            seconds = CERTIFYING * spent / max(1, self._evaluator.count)
        # Nothing is exactly proportional: what is far from the last plan is less certain.
        more = max(1.0, size / self._told_size) if self._told_size else 1.0
        return float(size * seconds * self._slower * more**EXTRAPOLATING)

    def _compare_answers(self) -> None:
        """Find out how much longer the answers of the best plan take than those of the last one.

        A model may read the whole history for each answer, and most decisions of a larger plan are
        deeper.
        """
        known, best = self._seconds_per_decision, self._plan.best if self._plan else None
        if known is not None and best is not None and known < SLOW:
            seconds = self._measure_answers(best)
            self._slower = max(1.0, seconds / max(1e-9, self._answer_seconds))

    def _measure_answers(self, chosen: Chosen) -> float:
        """Return the mean seconds of the model's answers for some histories of a plan."""
        from vulcan.kernels.growth import UNREACHED

        assert self._plan is not None
        tree, reader = self._plan.tree, self._reader
        reached = np.flatnonzero(chosen.openings != UNREACHED)
        some = reached[np.linspace(0, len(reached) - 1, PROBES).astype(int)].tolist()
        began = time.perf_counter()
        for n in some:
            state, claim = tree.states[n], tree.default
            if isinstance(claim, str) and chosen.openings[n] < 0:
                reader.bound_continuation(claim, state, tree.level[n])
                continue
            for action in islice(reader.actions(state).values(), 1):
                reader.outcomes(state, action)
        return (time.perf_counter() - began) / PROBES

    def _certify_early(self) -> None:
        """Certify the largest plan that takes little time, in case there is none for a larger one.

        Its certificate also tells how long that of a larger one takes.
        """
        seconds = self._monitor.seconds
        spare = SHARE_OF_CERTIFYING * seconds
        if self._seconds_per_decision is None:
            spare = max(SHARE_AT_FIRST * seconds, SOON)
        known = None if self._certified is None else self._certified[0]
        for chosen in reversed(self._plan.kept if self._plan else ()):
            if chosen is known:
                break
            if self._expect_size(chosen.size) < spare:
                self._certify(chosen)
                break

    def _certify_last(self) -> Chosen | None:
        """Certify the best plan, or one that there is time for; return a plan that could not be."""
        plan, monitor = self._plan, self._monitor
        if plan is None or plan.best is None:
            return None
        limit, best = monitor.limits.time_limit, plan.best
        left = math.inf if limit is None else max(0.05 * limit, limit - monitor.seconds)
        if monitor.requested:
            left = AT_ONCE
        if self._expect_size(best.size) > left:
            small = plan.choose_small(left / max(1e-9, self._expect_size(1)))
            if small is None and self._certified is not None:
                return None
            best = small or best
        known = -math.inf if self._certified is None else self._certified[0].reward
        if best is not plan.best and best.reward <= known:
            return None
        monitor.grant_certificate()
        try:
            with monitor.ended_by_request():
                self._certify(best)
        except TimeUp:
            if not monitor.requested:
                raise
            monitor.stopped_by = monitor.reason
            return self._certify_last()
        return None

    def _certify(self, chosen: Chosen) -> None:
        """Write a plan out and certify it, unless that was done."""
        if self._certified is not None and self._certified[0] is chosen:
            return
        assert self._plan is not None
        began = time.perf_counter()
        about = describe_origin(self._problem, self._reader, self._solver)
        with pause_collection():
            policy = self._plan.tree.write(chosen.openings, about)
        self._certified = chosen, policy, certify(self._problem, policy)
        if chosen.size >= TELLING:
            self._seconds_per_decision = (time.perf_counter() - began) / chosen.size
            self._told_size = chosen.size
            if self._seconds_per_decision < SLOW:
                self._answer_seconds = self._measure_answers(chosen)

    def _conclude(self, search_seconds: float, planned: Chosen | None) -> Finding:
        plan, monitor, count = self._plan, self._monitor, self._evaluator.count
        chosen, policy, certificate = self._certified or (planned, None, None)
        if plan is None:
            explanation = "no action ends the mission within a few decisions: nothing can grow"
            if monitor.stopped_by is not None:
                explanation = "no plan yet"
        elif chosen is None:
            explanation = "no plan within the bound was found"
        else:
            histories = f"{len(plan.tree):,} histories"
            explanation = f"best plan grown so far, in a tree of {histories}"
        if monitor.stopped_by is not None:
            cause = f" ({self._error})" if self._error else ""
            explanation = f"stopped by {monitor.stopped_by}: {explanation}{cause}"
        missing = None if policy is not None or planned is None else Worth(*planned[:2])
        return Finding(
            status=Status.DONE if monitor.stopped_by is None else Status.STOPPED,
            explanation=explanation,
            policy=policy,
            planned=missing,
            reward=-math.inf if chosen is None else chosen.reward,
            risk=0.0 if chosen is None else chosen.risk,
            credits=[] if plan is None else [chosen.reward for chosen in plan.kept],
            statistics=Statistics(
                search_seconds,
                0 if plan is None else len(plan.tree),
                count,
                count,
                monitor.grown,
                certificate_seconds=monitor.seconds - search_seconds,
            ),
            certificate=certificate,
            error=self._error,
        )

    def _describe(self) -> Progress:
        plan, monitor = self._plan, self._monitor
        limits, count = monitor.limits, self._evaluator.count
        shares = [0.0 if not limits.samples else count / limits.samples]
        if limits.time_limit:
            shares.append(monitor.seconds / limits.time_limit)
        return Progress(
            seconds=monitor.seconds,
            fraction=min(1.0, max(shares)) or None,
            histories=0 if plan is None else len(plan.tree),
            evaluations=count,
            reward=None if plan is None or plan.best is None else plan.best.reward,
            samples=count,
            memory=monitor.grown,
        )


def warm_up() -> None:
    """Compile the kernels, or load them."""
    from vulcan.kernels import growth

    one, real = np.zeros(1, np.int64), np.zeros(1)
    groups = growth.GroupArrays(
        one, np.zeros(2, np.int64), real, real, real, real, real, np.zeros(2, np.int64), real, one
    )
    table, places = np.zeros((1, 1)), np.full((1, 1), growth.CLOSED)
    growth.value_groups(groups, 0.0, real, table, places)
    growth.forecast(groups, places, 0, table, table.copy(), np.zeros(3))
    none, empty = np.full(1, NONE, np.int32), np.zeros(0, np.int32)
    tree = growth.PlanArrays(real, real, real, none, empty, real[:0], real[:0], empty, empty)
    growth.choose_plan(tree, 0.0, 0.0, none, real.copy(), none.copy(), np.zeros(3))
