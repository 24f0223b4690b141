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

import math
import time
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.certify import Certificate, Certifier
from vulcan.errors import ModelError
from vulcan.exact.acceptance import accepts
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule
from vulcan.numerics import NONE
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import Monitor, Progress, StopReason, TimeUp, pause_collection
from vulcan.sampling.adviser import Advice
from vulcan.sampling.groups import BINS, ActionEvaluator, Groups, OpeningRule
from vulcan.sampling.plan_tree import Default, Indices, PlanTree, find_default
from vulcan.solvers.base import Options, Solver, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status, Worth

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
REFUSALS: Final = 2  # rounds for an action that is not accepted, before the next one
WORTHLESS: Final = 2e-4  # of the reward, what unused risk may be worth
TELLING: Final = 500  # new decisions of a policy whose certificate tells how long others take
# Certificates that take less than this share of the time so far, or these seconds, don't wait.
# Where later plans keep few of these decisions, the share is smaller.
SHARE_OF_CERTIFYING: Final = 0.5
LEAST_KEPT: Final = 0.1
SOON: Final = 0.25
AT_ONCE: Final = 1.0  # seconds for the certificate after Ctrl-C
SPARE: Final = 1.2  # certificates may take this much longer than expected
ENOUGH: Final = 0.97  # of the time: after it no further round begins

NO_GROUPS: Final = np.zeros(0, np.intp)
MOST_OPENED: Final = 2_000  # histories that are opened or left closed at once
LEAST_PARTS: Final = 16  # fewer, so that no more than about half of what is left is used
MOST_ACTIONS: Final = 1 << 20  # of a group

Known = MutableMapping[Any, Any]
"""Answers of a model by what it was called with; see `ActionEvaluator`."""

Following = tuple[Indices, Indices]
"""Histories, and the group of each or -1."""


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
    the last round found nothing more to evaluate.

    With `advice`, the plan only shows that an action may be taken: it begins with the first of the
    actions for which that can be shown, and is the one that leaves the most risk unused.
    """

    make_tree: ClassVar[Any] = PlanTree

    def __init__(
        self,
        problem: Problem,
        evaluator: ActionEvaluator,
        default: Default,
        advice: Advice | None = None,
    ) -> None:
        # The advised action that histories are opened for, and how often none so good was accepted.
        self._advice, self._aim, self._refusals = advice, 0, 0
        self._taken: str | None = None
        self._bound, self._evaluator, self._reader = problem.risk_bound, evaluator, evaluator.reader
        self.tree = self.make_tree(evaluator, default)
        self.tree.add(0, [self._reader.root], 1.0)
        actions = self._evaluator.actions(self._reader.root)
        if isinstance(default, str):  # a plan has at least one decision
            self.tree.open_root(actions)
        else:
            self.tree.close(np.zeros(1, np.intp), [actions])
        if advice is None:
            self._groups = Groups(evaluator, self.tree.measure)
        self._described: dict[int, Any] = {}  # the answers of likely histories
        # In this round: the groups of these histories, and those after an action of a group.
        self._located: dict[int, int] = {}
        self._below: dict[tuple[int, int], Indices] = {}
        # Whether groups mislead: how much of what likely histories gain is lost by their actions.
        self._distrusts, self._regret, self._gained = False, 0.0, 0.0
        self._decided: dict[int, tuple[int, int]] = {}  # groups and actions of unlikely histories
        self._weights = self._reader.weights.tolist()
        self._price = 0.0
        self.kept: list[Chosen] = []
        self.exhausted = False
        if advice is None:
            self._keep(self.choose())

    def grow(self, budget: int) -> None:
        """Run one more round, with this budget of evaluations."""
        begin = self._evaluator.count
        until, size = begin + budget, len(self.tree) + SMALLER * budget
        waiting: Following = np.zeros(1, np.intp), np.zeros(1, np.intp)
        if self._advice is not None:
            rule, waiting = self._advice.find_rule(size), self._open_advised(self._advice)
        else:
            rule_until = begin + math.ceil(SHARE_OF_RULE * budget)
            rule = self._groups.find_rule(self._bound, size, rule_until, self._price)
        self._price = rule.price
        self._located, self._below = {}, {}
        self._regret = self._gained = 0.0
        for number in range(MOST_PASSES):
            start = max(0.0, rule.start - BETWEEN_PASSES * number)
            waiting = self._follow(rule, start, until, waiting)
            if start == 0 or not self._evaluator.may_go_on(until):
                break
        self._distrusts = self._regret > MISLEADING * self._gained
        self.exhausted = self._evaluator.count == begin and self._evaluator.may_go_on(until)
        if self._advice is None:
            self._keep(self.choose())
        else:
            self._choose_advised(self._advice.labels)

    def _open_advised(self, advice: Advice) -> Following:
        """Open the root by all actions; return what follows the one that is aimed at."""
        for label in advice.labels:
            self._open_by(0, label)
        aim = advice.labels[self._aim]
        following, below = self._open_by(0, aim), np.array(advice.follow(0, aim), np.intp)
        later = [after.label for after in advice.foreseen[aim] if after.label]
        known = min(len(following), len(below))
        if len(later) == known:
            self._find_or_open(following[:known], later)
        return following[:known], below[:known]

    def _choose_advised(self, labels: list[str]) -> None:
        """Keep the plan that begins with the best action for which the bound accepts one."""
        self._taken = None
        for label in labels:
            chosen = self._choose_cautious(label)
            if chosen is not None:
                self.kept.append(chosen)
                self._taken = label
                break
        if self._taken not in labels[: self._aim + 1] and self._aim + 1 < len(labels):
            self._refusals += 1
            if self.exhausted or self._refusals % REFUSALS == 0:
                self._aim, self.exhausted = self._aim + 1, False

    def find_gaps(self) -> list[float]:
        """Return what it takes to continue as foreseen after each outcome of the action taken.

        That is risk which the plan leaves unused, for each outcome that does not end the mission.
        """
        from vulcan.kernels.growth import UNREACHED, choose_plan

        advice, taken, tree = self._advice, self._taken, self.tree
        if advice is None or taken is None:
            return []
        arrays, price = tree.arrays(), advice.price
        held, values = np.full(len(tree), UNREACHED, np.int32), np.zeros(len(tree))
        choose_plan(arrays, price, 0.0, held, values, held.copy(), np.zeros(3))
        later = [after.label for after in advice.foreseen[taken] if after.label]
        ns = self._open_by(0, taken)[: len(later)]
        opening = tree.find_openings(ns, later[: len(ns)])
        gaps = np.zeros(len(ns))
        for k in np.flatnonzero(opening != NONE).tolist():
            here, n = tree.openings.array[opening[k]], ns[k]
            after = values[ranges(here["first_child"][None], here["child_count"][None])]
            value = here["reward"] - price * here["risk"] + after.sum()
            gaps[k] = (values[n] - value) / (price * tree.histories.array["reach"][n])
        known: list[float] = np.where(np.isfinite(gaps), np.maximum(gaps, 0.0), 0.0).tolist()
        return known

    def _choose_cautious(self, label: str, decision_price: float = 0.0) -> Chosen | None:
        """Return the plan with a first action that leaves the most risk unused, if within bounds.

        For a straight bound of slope d these are the plans of largest d g - er.
        """
        from vulcan.kernels.growth import UNREACHED

        opening = int(self.tree.find_openings(np.zeros(1, np.intp), [label])[0])
        if opening == NONE or self._advice is None:
            return None
        arrays, held = self._begin_with(opening), np.full(len(self.tree), UNREACHED, np.int32)
        chosen = _choose(arrays, self._advice.price, decision_price, held)
        return chosen if self._accepts(chosen) else None

    def _begin_with(self, opening: int) -> Any:
        """Return the arrays of the tree with one opening of the root."""
        arrays = self.tree.arrays()
        arrays.first_opening[0], arrays.next_opening[opening] = opening, NONE
        arrays.close_reward[0] = -math.inf
        return arrays

    @property
    def best(self) -> Chosen | None:
        """The best plan so far that the bound accepts; None if it accepts none."""
        return self.kept[-1] if self.kept else None

    def choose(self, decision_price: float = 0.0) -> Chosen | None:
        """Return the best plan found that the bound accepts, if any.

        For one price of failure the bound may accept hardly anything, and for a little less the
        plan risks too much, because a likely history is worth opening at one price only. It is then
        opened at all prices, as the plan that risks too much does, and the others pay for it.
        """
        from vulcan.kernels.growth import UNREACHED

        arrays, held = self.tree.arrays(), np.full(len(self.tree), UNREACHED, np.int32)
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
            if price == math.inf or price > 1e30 * max(1.0, abs(chosen.reward)):
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
        choose = self.choose
        if self._taken is not None:
            choose = partial(self._choose_cautious, self._taken)
            root = np.zeros(1, np.intp)
            arrays = self._begin_with(int(self.tree.find_openings(root, [self._taken])[0]))
        low, high = 1e-15 * max(1e-9, abs(self.best.reward)), max(1e-9, abs(self.best.reward))
        for _ in range(24):
            middle = math.sqrt(low * high)
            small = _choose(arrays, self.best.price, middle, held).size <= most
            low, high = (low, middle) if small else (middle, high)
        for price in (high, 4 * high, 16 * high):
            chosen = choose(price)
            if chosen is not None and chosen.size <= most:
                return chosen
        return next((chosen for chosen in reversed(self.kept) if chosen.size <= most), None)

    def count_new(self, chosen: Chosen, known: NDArray[np.int32]) -> float:
        """Return the number of decisions of a plan beyond those with `known` openings."""
        from vulcan.kernels.growth import UNREACHED

        openings = chosen.openings
        new = openings != UNREACHED
        both = min(len(known), len(openings))
        new[:both] &= openings[:both] != known[:both]
        sizes = self.tree.histories.array["close_size"][: len(openings)]
        return float(np.where(openings >= 0, 1.0, sizes)[new].sum())

    def note_known(self, chosen: Chosen, known: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return `known` openings with those of a plan."""
        from vulcan.kernels.growth import UNREACHED

        found = np.full(max(len(known), len(chosen.openings)), UNREACHED, np.int32)
        found[: len(known)] = known
        reached = chosen.openings != UNREACHED
        found[: len(reached)][reached] = chosen.openings[reached]
        return found

    def _accepts(self, chosen: Chosen) -> bool:
        return accepts(self._bound, chosen.reward, chosen.risk)

    def _keep(self, chosen: Chosen | None) -> None:
        if chosen is not None and (self.best is None or chosen.reward > self.best.reward):
            self.kept.append(chosen)

    def _follow(
        self, rule: OpeningRule, start: float, until: int, arriving: Following
    ) -> Following:
        """Open histories by a rule, likely ones first; return those that it leaves closed.

        Histories that are half as likely as others are opened after them.
        """
        left: list[Following] = [(NO_GROUPS, NO_GROUPS)]
        waiting: dict[int, list[Following]] = {}
        while True:
            ns, groups = arriving
            rarity = -np.frexp(self.tree.histories.array["reach"][ns])[1]
            for key in np.unique(rarity).tolist():
                mine = rarity == key
                waiting.setdefault(key, []).append((ns[mine], groups[mine]))
            if not waiting or not self._evaluator.may_go_on(until):
                found: Following = _join([*left, *chain.from_iterable(waiting.values())])
                return found
            likeliest = min(waiting)
            ns, groups = _join(waiting.pop(likeliest))
            order = np.lexsort((ns, -self.tree.histories.array["reach"][ns]))
            ns, groups = ns[order], groups[order]
            placed, actions = self._decide(rule, start, ns, groups, until)
            now = len(placed)
            if now < len(ns):
                waiting[likeliest] = [(ns[now:], groups[now:])]
            ns, opens = ns[:now], actions >= 0
            left.append((ns[~opens], placed[~opens]))
            arriving = self._open(ns[opens], placed[opens], actions[opens])

    def _decide(
        self, rule: OpeningRule, start: float, ns: Indices, expected: Indices, until: int
    ) -> tuple[Indices, Indices]:
        """Return the groups of histories, and the actions to open them by or negative numbers.

        A likely history is opened by its own answers and the values of the groups after them. Where
        these often lead to another action than that of the group, all histories are.

        Returned are those of the first histories, which take a share of the evaluations that are
        left: histories that were opened before take none.
        """
        histories, ns = self.tree.histories.array, ns[:MOST_OPENED]
        likely, group = histories["reach"][ns], expected[:MOST_OPENED].copy()
        halvings = np.log2(likely, out=np.full(len(ns), -math.inf), where=likely > 0)
        position = np.minimum(start - halvings + 0.5, BINS).astype(np.intp)
        affordable, action = position < BINS, np.full(len(ns), NONE)
        alone = affordable & ((likely >= LIKELY) | (group < 0) | self._distrusts)
        if self._advice is not None:
            alone[:] = False
        easy = affordable & ~alone
        action[easy] = rule.actions[group[easy], position[easy]]
        for k in np.flatnonzero(affordable).tolist() if self._decided else ():
            if ns[k] in self._decided:
                group[k], action[k] = self._decided[ns[k]]
                alone[k] = False
        new = histories["first_opening"][ns] == NONE
        takes = new & (action >= 0)
        for k in np.flatnonzero(alone).tolist():
            takes[k] = new[k] or ns[k] not in self._described
        most = max(1, (until - self._evaluator.count) // LEAST_PARTS)
        now = int(np.searchsorted(np.cumsum(takes), most, side="right"))
        for k in np.flatnonzero(alone[:now]).tolist():
            if self._evaluator.may_go_on(until):
                group[k], action[k] = self._decide_alone(rule, int(ns[k]), int(position[k]))
        return group[:now], action[:now]

    def _decide_alone(self, rule: OpeningRule, n: int, position: int) -> tuple[int, int]:
        """Return the group of a history by its own answers, and what to open it by."""
        keeps = bool(self.tree.histories.array["reach"][n] >= LIKELY)
        group = self._find_group(n, keeps)
        action = self._weigh(rule, n, group, position)
        if not keeps:
            del self._described[n]
            self._decided[n] = group, action
        return group, action

    def _weigh(self, rule: OpeningRule, n: int, group: int, position: int) -> int:
        """Return the best action of a history by its own answers; CLOSED if none is worth it."""
        from vulcan.kernels.growth import CLOSED

        here = self.tree.histories.array[n]
        reach = float(here["reach"])
        # A group may be newer than the rule.
        usual = int(rule.actions[group, position]) if group < len(rule.actions) else NONE
        weight, decision = self._weights[here["level"]], float(rule.bins[position])
        best = float(here["close_reward"]) - rule.price * float(here["close_risk"])
        best /= reach
        best -= decision * float(here["close_size"])
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

    def _open(self, ns: Indices, groups: Indices, actions: Indices) -> Following:
        """Open histories as their groups are; return what follows, with the groups expected."""
        kinds, kind = np.unique(groups * MOST_ACTIONS + actions, return_inverse=True)
        pairs = [divmod(k, MOST_ACTIONS) for k in kinds.tolist()]
        names = [self._name(*pair) for pair in pairs]
        opening = self._find_or_open(ns, [names[k] for k in kind.tolist()])
        kind, opening = kind[opening != NONE], opening[opening != NONE]
        openings = self.tree.openings.array
        first, counts = openings["first_child"][opening], openings["child_count"][opening]
        below = [self._find_below(*pair) for pair in pairs]
        sizes = np.array([len(groups) for groups in below], np.intp)
        # What is like the others otherwise may have ended here.
        alike = counts == sizes[kind]
        if self._advice is not None:  # followed as far as it is foreseen
            counts, alike = np.minimum(counts, sizes[kind]), np.ones(len(kind), np.bool_)
        children = ranges(first, counts)
        expected = np.full(len(children), NONE)
        places = ranges(starts(sizes)[kind[alike]], counts[alike])
        expected[np.repeat(alike, counts)] = np.concatenate([*below, NO_GROUPS])[places]
        return children, expected

    def _find_or_open(self, ns: Indices, labels: list[str]) -> Indices:
        """Return the opening of each history by an action; NONE where it is not available."""
        opening: Indices = self.tree.find_openings(ns, labels)
        new = np.flatnonzero(opening == NONE)
        if len(new):
            found = self.tree.open(ns[new], [labels[k] for k in new.tolist()])
            opening[new[: len(found)]] = found
        return opening

    def _open_by(self, n: int, label: str) -> Indices:
        """Open a history by an action, if it is available; return what follows."""
        opening = self._find_or_open(np.array([n]), [label])
        openings = self.tree.openings.array[opening[opening != NONE]]
        following: Indices = ranges(openings["first_child"], openings["child_count"])
        return following

    def _name(self, group: int, action: int) -> str:
        """Return the label of an action of a group."""
        if self._advice is not None:
            return self._advice.names[group][action]
        return self._groups.rows[group][action].label

    def _find_below(self, group: int, action: int) -> Indices:
        """Return the groups after an action of a group, without outcomes that end there."""
        below = self._below.get((group, action))
        if below is None:
            if self._advice is not None:
                found = self._advice.follow(group, self._name(group, action))
            else:
                found = self._groups.find_children(group, action) or []
            below = np.array([child for child in found if child >= 0], np.intp)
            self._below[group, action] = below
        return below

    def _find_group(self, n: int, keeps: bool) -> int:
        """Return the group that is closest to the answers of a history, which are `_described`."""
        group = self._located.get(n)
        if group is None:
            if n not in self._described:
                here = self.tree.histories.array[n]
                state, level, reach = self.tree.states[n], int(here["level"]), float(here["reach"])
                rows = self._evaluator.rows(state)
                self._described[n] = self._groups.describe(level, rows)
                if self._groups.find(self._described[n])[0] < 0:  # other actions than any group
                    self._groups.place(state, level, reach, rows)
            group, _ = self._groups.find(self._described[n])
            if keeps:
                self._located[n] = group
        return group


def _join(parts: Sequence[tuple[Indices, ...]]) -> Any:
    """Return parts of the same columns as whole columns."""
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


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
    several: ClassVar[bool] = True

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        monitor.start_clock()
        return GrowthRun(self, problem, reader, monitor).search()


class GrowthRun:
    """One search: rounds, limits, and the best plan certified so far.

    `advice` is that of `GrowingPlan`, `answers` those of `ActionEvaluator`.
    """

    def __init__(
        self,
        solver: object,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        advice: Advice | None = None,
        answers: Known | None = None,
    ) -> None:
        self._solver, self._problem, self._reader, self._monitor = solver, problem, reader, monitor
        self._advice, self._answers = advice, answers
        self._evaluator = self._open_evaluator()
        self._plan: GrowingPlan | None = None
        self._certified: tuple[Chosen, Policy, Certificate] | None = None
        self._certifier: Certifier | None = None
        self._known = np.zeros(0, np.int32)  # of histories, the openings that were certified
        self._kept = 1.0  # share of the decisions certified before the last time that it kept
        self._certifying = 0.0  # seconds for certificates
        self._seconds_per_decision: float | None = None
        self._error: ModelError | None = None
        self._began = 0.0  # seconds of the search before this one
        self._budget = FIRST_ROUND  # evaluations of the next round
        self.gaps: list[float] = []  # see `GrowingPlan`

    def _open_evaluator(self) -> ActionEvaluator:
        given = self._reader, self._wants_stop, self._answers
        if not self._problem.constraints:
            return ActionEvaluator(*given)
        from vulcan.sampling.several_growth import ChargedEvaluator

        return ChargedEvaluator(self._problem, *given)

    def _begin(self) -> GrowingPlan | None:
        """Return a plan that may grow; None where nothing closes histories."""
        bound: Any = self._problem.risk_bound
        if not self._problem.constraints:
            default = find_default(self._evaluator, bound)
            if default is None:
                return None
            return GrowingPlan(self._problem, self._evaluator, default, self._advice)
        from vulcan.sampling.several_growth import ChargedEvaluator, SeveralPlan

        assert isinstance(self._evaluator, ChargedEvaluator)
        self._evaluator.find_prices()
        default = find_default(self._evaluator, self._evaluator.add_limits())
        if default is None or isinstance(default, str):  # no claim says what is charged
            return None
        return SeveralPlan(self._problem, self._evaluator, default)

    def search(self) -> Finding:
        """Grow until there is a reason to stop, and certify the plan."""
        with self._monitor.clock_stopped():
            warm_up()
            if self._problem.constraints:
                from vulcan.sampling.several_growth import warm_up as warm_up_several

                warm_up_several()
        self._began, planned = self._monitor.seconds, None
        try:
            self._begin_plan()
            while True:
                self._grow()
                planned = self._certify_last()
                if not self._has_time_left():
                    break
                self._monitor.stopped_by = None
                self._evaluator.resume()
        except ModelError as error:
            # A model that raised may have done so for a passing reason; one that lies gets nothing.
            if error.violation.rule is not Rule.ANSWERS:
                raise
            self._error, self._monitor.stopped_by = error, StopReason.MODEL
        except TimeUp:
            self._monitor.stopped_by = StopReason.TIME
            planned = None if self._plan is None else self._plan.best
        self.gaps = self._plan.find_gaps() if self._plan else []
        return self._conclude(planned)

    def _begin_plan(self) -> None:
        with self._evaluator.finishing():  # without a closed root there is no plan at all
            self._plan = self._begin()
        if self._plan is not None:
            self._certify_early()
            self._budget = self._find_first_budget()

    def _has_time_left(self) -> bool:
        """Return whether certificates took less time than was left for them."""
        monitor, plan = self._monitor, self._plan
        if monitor.stopped_by is not StopReason.TIME or monitor.limits.time_limit is None:
            return False
        if plan is None or plan.exhausted or plan.best is None or self._advice is not None:
            return False
        done = self._certified is not None and self._certified[0] is plan.best
        return done and monitor.seconds + self._reserve < ENOUGH * monitor.limits.time_limit

    def _grow(self) -> None:
        plan = self._plan
        if plan is None:
            return
        while not self._monitor.wants_stop(0, self._evaluator.count, self._reserve):
            samples = self._monitor.limits.samples
            left = self._budget if samples is None else samples - self._evaluator.count
            with pause_collection():
                plan.grow(min(self._budget, left))
            self._certify_early()
            if plan.exhausted or (plan.best is None and self._budget >= HOPELESS):
                break
            self._budget *= 2

    def _find_first_budget(self) -> int:
        """Return the evaluations of the first round: fewer where each takes long."""
        limit, seconds = self._monitor.limits.time_limit, self._monitor.seconds
        samples = self._monitor.limits.samples
        if self._advice is not None and samples is not None:  # time for another action
            return max(FEWEST, (samples - self._evaluator.count) // 3)
        if limit is None:
            return FIRST_ROUND
        each = max(1e-9, seconds - self._began) / max(1, self._evaluator.count)
        return max(FEWEST, min(FIRST_ROUND, int(SHARE_OF_FIRST_ROUND * (limit - seconds) / each)))

    def _wants_stop(self) -> bool:
        self._monitor.report(self._describe)
        return self._monitor.wants_stop(0, self._evaluator.count, self._reserve)

    @property
    def _reserve(self) -> float:
        """Seconds to leave for the certificate, if the best plan grows as the tree does."""
        plan = self._plan
        if plan is None or (plan.best is None and self._advice is None):
            return 0.0
        size, best = float(len(plan.tree)), plan.best
        if best is not None:
            size *= best.size / len(best.openings)
        if self._certified is not None:
            size -= self._kept * self._certified[0].size
        return SPARE * self._expect(size)

    def _expect(self, decisions: float) -> float:
        """Return the seconds that the certificate of new decisions takes."""
        seconds = self._seconds_per_decision
        if seconds is None:
            spent = self._monitor.seconds - self._began
            seconds = CERTIFYING * spent / max(1, self._evaluator.count)
        return max(0.0, decisions) * seconds

    def _count_new(self, chosen: Chosen) -> float:
        """Return the number of decisions of a plan that no certificate has evaluated yet."""
        return self._plan.count_new(chosen, self._known) if self._plan else 0.0

    def _certify_early(self) -> None:
        """Certify the largest plan that takes little time, in case there is none for a larger one.

        Its decisions need not be evaluated again for that one.
        """
        seconds, limit = self._monitor.seconds, self._monitor.limits.time_limit
        known, spare = None, SHARE_OF_CERTIFYING * max(LEAST_KEPT, self._kept) * seconds
        if self._certified is None:
            spare = max(spare, SOON)
        else:
            known = self._certified[0]
        spare = min(spare, math.inf if limit is None else limit - seconds)
        for chosen in reversed(self._plan.kept if self._plan else ()):
            if chosen is known:
                break
            if self._expect(self._count_new(chosen)) < spare:
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
        new = self._count_new(best)
        if self._expect(new) > left:
            small = plan.choose_small(best.size - new + left / max(1e-9, self._expect(1)))
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
        began, new = time.perf_counter(), self._count_new(chosen)
        if self._certified is not None and self._certified[0].size >= TELLING:
            self._kept = min(1.0, (chosen.size - new) / self._certified[0].size)
        about = describe_origin(self._problem, self._reader, self._solver)
        with pause_collection():
            policy = self._plan.tree.write(chosen.openings, about)
            self._certifier = self._certifier or Certifier(self._problem)
            self._certified = chosen, policy, self._certifier.certify_next(policy)
        self._known = self._plan.note_known(chosen, self._known)
        seconds = time.perf_counter() - began
        self._certifying += seconds
        if new >= TELLING:
            self._seconds_per_decision = seconds / new

    def _conclude(self, planned: Chosen | None) -> Finding:
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
                monitor.seconds - self._certifying,
                0 if plan is None else len(plan.tree),
                count,
                count,
                monitor.grown,
                certificate_seconds=self._certifying,
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
