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
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.certificate.certify import Certificate, certify
from vulcan.errors import ModelError
from vulcan.exact.acceptance import accepts
from vulcan.graph.states import Rows
from vulcan.model.answers import Answers, label_answers
from vulcan.model.interface import FAILURE, Start
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule
from vulcan.numerics import ANY, DEFAULT, END, FAILED, NONE, UNPLANNED
from vulcan.policy.policy import About, Beyond, Policy
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import Monitor, Progress, StopReason, TimeUp, pause_collection
from vulcan.sampling.adviser import Advice
from vulcan.sampling.groups import BINS, ActionEvaluator, Closing, Groups, OpeningRule
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
REFUSALS: Final = 2  # rounds for an action that is not accepted, before the next one
WORTHLESS: Final = 2e-4  # of the reward, what unused risk may be worth
TELLING: Final = 1_000  # decisions of a policy whose certificate tells how long others take
SHARE_OF_CERTIFYING: Final = 0.05  # of the time so far, for a certificate before the end
# The first certificates may take more, to have a plan soon: this share, or seconds.
SHARE_AT_FIRST: Final = 0.2
SOON: Final = 0.25
AT_ONCE: Final = 1.0  # seconds for the certificate after Ctrl-C
PROBES: Final = 64  # histories whose answers tell how long those of a plan take
SPARE: Final = 1.06  # certificates may take this much longer than expected
SLOW: Final = 1e-3  # seconds per decision from which on they are not queried for that

NO_GROUPS: Final = np.zeros(0, np.intp)
MOST_OPENED: Final = 2_000  # histories that are opened or left closed at once
LEAST_PARTS: Final = 16  # fewer, so that no more than about half of what is left is used
MOST_ACTIONS: Final = 1 << 20  # of a group

Known = MutableMapping[Any, Any]
"""Answers of a model by what it was called with; see `ActionEvaluator`."""

Indices = NDArray[np.intp]

Following = tuple[Indices, Indices]
"""Histories, and the group of each or -1."""

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


HISTORY: Final = np.dtype(
    [  # rewards and risks are multiplied by the probability of the history
        ("reach", "f8"),
        ("close_reward", "f8"),  # -inf where nothing closes it
        ("close_risk", "f8"),
        ("close_size", "f8"),
        ("close_row", "i4"),
        ("close_child", "i4"),
        ("first_opening", "i4"),
        ("level", "i4"),
    ]
)
OPENING: Final = np.dtype(
    [
        ("reward", "f8"),
        ("risk", "f8"),
        ("next_opening", "i4"),
        ("row", "i4"),
        ("first_child", "i4"),
        ("child_count", "i4"),
    ]
)
ROW: Final = np.dtype([("first_outcome", "i8"), ("outcome_count", "i4"), ("action", "i4")])
"""An action that a history takes."""

OUTCOME: Final = np.dtype(
    [
        ("probability", "f8"),
        ("reward", "f8"),
        ("label", "i4"),
        ("child", "i4"),  # counted from the first history after the row; END or FAILED
    ]
)


class Stored(NamedTuple):
    """Rows that were stored, for the first of some histories, and the histories after them."""

    row: Indices
    reward: NDArray[np.float64]  # as in `OPENING`
    risk: NDArray[np.float64]
    first_child: Indices
    child_count: Indices
    following: list[dict[str, Any]]  # the actions of each history after them

    @property
    def children(self) -> Indices:
        return ranges(self.first_child, self.child_count)

    def add_up(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over the histories after each row."""
        source = np.repeat(np.arange(len(self.row)), self.child_count)
        return np.bincount(source, values[self.children], len(self.row)).astype(float, copy=False)


class PlanTree:
    """Histories, each closed by a default and perhaps opened by actions, in flat arrays.

    Many histories are closed or opened at once. If the search has to stop meanwhile, the first
    ones are.
    """

    def __init__(self, evaluator: ActionEvaluator, default: Default) -> None:
        self._evaluator, self._reader, self.default = evaluator, evaluator.reader, default
        self.states: list[Any] = []
        self.histories, self.openings = Rows(HISTORY), Rows(OPENING)
        self._rows, self._outcomes = Rows(ROW), Rows(OUTCOME)
        self._claims: dict[int, tuple[float, float]] = {}  # of histories that are only bounded
        self._labels: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of histories."""
        return len(self.states)

    def measure(
        self,
        state: Any,
        level: int,
        room: float = MOST_CLOSING,
        reach: float = 1.0,
        actions: dict[str, Any] | None = None,
    ) -> Closing:
        """Return reward, risk and decisions of the default from a state on.

        The reward is -inf if that takes more decisions than there is room.
        """
        weight = reach * float(self._reader.weights[level])
        if isinstance(self.default, str):
            risk, reward = self._evaluator.bound(self.default, state, level)
            return weight * reward, reach * risk, 1.0
        actions = self._evaluator.actions(state) if actions is None else actions
        if not actions or room < 1:
            return -math.inf, 0.0, 1.0
        label = self.default(state, actions)
        row = self._evaluator.row(state, label, actions[label])
        reward, risk, size = weight * row.reward, reach * row.risk, 1.0
        for outcome in row.outcomes if level + 1 < self._reader.levels else ():
            later = {} if outcome.state is FAILURE else self._evaluator.actions(outcome.state)
            if later:
                likely = reach * float(outcome.probability)
                closing = self.measure(outcome.state, level + 1, room - size, likely, later)
                reward, risk, size = reward + closing[0], risk + closing[1], size + closing[2]
                if reward == -math.inf:
                    break
        return reward, risk, size

    def add(self, levels: Any, states: Sequence[Any], reaches: Any) -> int:
        """Add histories that are neither closed nor opened; return the first of them."""
        first = len(self.states)
        self.states += states
        rows = self.histories.extend(len(states))
        rows["level"], rows["reach"], rows["close_reward"] = levels, reaches, -math.inf
        for name in ("close_row", "close_child", "first_opening"):
            rows[name] = NONE
        return first

    def close(self, ns: Indices, actions: list[dict[str, Any]]) -> None:
        """Close histories by the default, as far as that takes at most `MOST_CLOSING` decisions."""
        if isinstance(self.default, str):
            self._claim(ns)
            return
        size, owner, here = np.zeros(len(ns)), np.arange(len(ns)), ns
        waves: list[tuple[Indices, Stored]] = []
        while len(here):
            size += np.bincount(owner, minlength=len(ns))
            size[owner[[not own for own in actions]]] = math.inf
            fits = size[owner] <= MOST_CLOSING
            here, owner = here[fits], owner[fits]
            places = [self.states[n] for n in here.tolist()]
            available = [own for own, fit in zip(actions, fits.tolist(), strict=True) if fit]
            labels = list(map(self.default, places, available))
            stored = self._take(here, places, labels, available)
            size[owner[len(stored.row) :]] = math.inf
            waves.append((here[: len(stored.row)], stored))
            owner = np.repeat(owner[: len(stored.row)], stored.child_count)
            here, actions = stored.children, stored.following
        for here, stored in reversed(waves):
            self._settle(here, stored)
        self.histories.array["close_reward"][ns[size == math.inf]] = -math.inf

    def _settle(self, ns: Indices, stored: Stored) -> None:
        """Close histories by rows; what follows them is closed."""
        histories = self.histories.array
        one = np.ones(len(ns))
        own = {"close_reward": stored.reward, "close_risk": stored.risk, "close_size": one}
        for name, part in own.items():
            histories[name][ns] = part + stored.add_up(histories[name])
        histories["close_row"][ns] = stored.row
        histories["close_child"][ns] = stored.first_child

    def _claim(self, ns: Indices) -> None:
        """Close histories by what the model claims."""
        histories = self.histories.array
        for n in ns.tolist():
            reach, level = float(histories["reach"][n]), int(histories["level"][n])
            risk, reward = self._evaluator.bound(str(self.default), self.states[n], level)
            self._claims[n] = risk, reward
            histories["close_reward"][n] = reach * self._reader.weights[level] * reward
            histories["close_risk"][n] = reach * risk
            histories["close_size"][n] = 1  # a claim takes an answer of the model, like a decision

    def open(self, ns: Indices, labels: list[str]) -> Indices:
        """Open histories by actions, close what follows, and return the openings.

        They are those of the first histories, and NONE where the action is not available.
        """
        states = [self.states[n] for n in ns.tolist()]
        available = self._evaluator.list_actions(states)
        pairs = enumerate(zip(labels, available, strict=False))
        has = np.array([k for k, (label, actions) in pairs if label in actions], np.intp)
        taken = [(states[k], labels[k], available[k]) for k in has.tolist()]
        stored = self._take(ns[has], *(map(list, zip(*taken, strict=True)) if taken else 3 * [[]]))
        has, first = has[: len(stored.row)], self.openings.count
        openings = self.openings.extend(len(has))
        openings["next_opening"] = self.histories.array["first_opening"][ns[has]]
        for name in ("reward", "risk", "row", "first_child", "child_count"):
            openings[name] = getattr(stored, name)
        self.close(stored.children, stored.following)
        found = np.full(len(available) if len(has) == len(taken) else len(has), NONE, np.intp)
        found[has] = np.arange(first, first + len(has))
        self.histories.array["first_opening"][ns[has]] = found[has]
        return found

    def open_root(self, actions: dict[str, Any]) -> None:
        """Open the root by the model's default action, or by the first action of least risk."""
        rows = [self._evaluator.row(self._reader.root, *item) for item in actions.items()]
        if self.default == DEFAULT and not isinstance(self._reader.root, Start):
            label = self._reader.default_label(self._reader.root, actions)
            rows = [row for row in rows if row.label == label]
        self.open(np.zeros(1, np.intp), [min(rows, key=lambda row: row.risk).label])

    def find_openings(self, ns: Indices, labels: Sequence[str]) -> Indices:
        """Return the opening of each history by an action; NONE if there is none."""
        numbers = np.array([self._labels.get(label, NONE) for label in labels], np.intp)
        found = self.histories.array["first_opening"][ns].astype(np.intp)
        openings, action = self.openings.array, self._rows.array["action"]
        other = np.flatnonzero(found != NONE)
        while len(other):
            other = other[action[openings["row"][found[other]]] != numbers[other]]
            found[other] = openings["next_opening"][found[other]]
            other = other[found[other] != NONE]
        return found

    def _take(
        self, ns: Indices, states: list[Any], labels: list[str], available: list[dict[str, Any]]
    ) -> Stored:
        """Evaluate the actions that histories take, and add the histories after them."""
        taken = [actions[label] for label, actions in zip(labels, available, strict=True)]
        answers = self._evaluator.read(states, taken)
        counts = np.array(answers.counts, np.intp)
        source, state = np.repeat(np.arange(len(counts)), counts), answers.state
        level, reach = (self.histories.array[name][ns] for name in ("level", "reach"))
        fails = np.array([after is FAILURE for after in state], np.bool_)
        safe = np.flatnonzero(~fails & (level[source] + 1 < self._reader.levels))
        following = self._evaluator.list_actions([state[k] for k in safe.tolist()])
        known = len(counts)
        if len(following) < len(safe):  # the search has to stop
            known = int(source[safe[len(following)]])
            counts, source = counts[:known], source[: counts[:known].sum()]
            safe = safe[: np.searchsorted(safe, len(source))]
            following = following[: len(safe)]
            fails = fails[: len(source)]
        onward = safe[[bool(actions) for actions in following]]
        child_count = np.bincount(source[onward], minlength=known)
        begin = starts(child_count)
        rows, outcomes = self._rows.extend(known), self._outcomes.extend(len(source))
        probability, reward = outcomes["probability"], outcomes["reward"]
        probability[:], reward[:] = (
            answers.probability[: len(source)],
            answers.reward[: len(source)],
        )
        outcomes["label"] = self._number(label_answers(answers)[: len(source)])
        outcomes["child"] = np.where(fails, FAILED, END)
        outcomes["child"][onward] = np.arange(len(onward)) - begin[source[onward]]
        rows["first_outcome"] = self._outcomes.count - len(source) + starts(counts)
        rows["outcome_count"], rows["action"] = counts, self._number(labels[:known])
        after = source[onward]
        first = self.add(
            level[after] + 1,
            [state[k] for k in onward.tolist()],
            reach[after] * probability[onward],
        )
        level, reach = level[:known], reach[:known]
        risk = np.bincount(source, probability * fails, known).astype(float, copy=False)
        return Stored(
            np.arange(self._rows.count - known, self._rows.count),
            reach * self._reader.weights[level] * np.bincount(source, probability * reward, known),
            reach * self._price(states, answers, risk),
            np.where(child_count > 0, first + begin, NONE),
            child_count,
            [actions for actions in following if actions],
        )

    def _price(
        self, states: Sequence[Any], answers: Answers, risk: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what counts as the risk of the first answers, given their risks of failing."""
        return risk

    def _number(self, labels: Sequence[str]) -> list[int]:
        """Return the numbers of labels."""
        numbers = self._labels
        return [numbers.setdefault(label, len(numbers)) for label in labels]

    def arrays(self) -> Any:
        """Return the arrays for kernels."""
        from vulcan.kernels.growth import PlanArrays

        tables = (self.histories, self.openings)
        filled = [table.array[: table.count] for table in tables]
        columns = {name: rows[name].copy() for rows in filled for name in rows.dtype.names or ()}
        return PlanArrays(**{name: columns[name] for name in PlanArrays._fields})

    def write(self, openings: NDArray[np.int32], about: About) -> Policy:
        """Return the plan with these openings as a policy, decisions level by level."""
        histories, all_openings = self.histories.array, self.openings.array
        all_rows, all_outcomes = self._rows.array, self._outcomes.array
        claimed = np.zeros(len(self), np.bool_)
        claimed[list(self._claims)] = True
        rows, children, frontier, after = [], [], [], 0
        here = np.zeros(1, np.int64)  # histories of a level
        while len(here):
            opening = openings[here]
            opened = opening >= 0
            taken, first = histories["close_row"][here], histories["close_child"][here]
            taken[opened] = all_openings["row"][opening[opened]]
            first[opened] = all_openings["first_child"][opening[opened]]
            counts = all_rows["outcome_count"][taken]
            then = all_outcomes["child"][ranges(all_rows["first_outcome"][taken], counts)]
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
        counts = all_rows["outcome_count"][taken]
        places = ranges(all_rows["first_outcome"][taken], counts)
        outcomes = all_outcomes[places]
        claims = np.array([self._claims[n] for n in frontier])
        return Policy(
            about,
            tuple(self._labels),
            all_rows["action"][taken],
            np.append(starts(counts), len(outcomes)),
            outcomes["label"].copy(),
            outcomes["probability"].copy(),
            outcomes["reward"].copy(),
            np.concatenate(children),
            beyond=Beyond(str(self.default), *claims.T) if frontier else None,
            charges=self.read_charges(places),
        )

    def read_charges(self, outcomes: Indices) -> dict[str, NDArray[np.float64]]:
        """Return what outcomes are charged, by quantities that are limited beside the risk."""
        return {}


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
        self.exhausted = self._evaluator.count == begin
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
        self._seconds_per_decision: float | None = None
        self._answer_seconds = 0.0  # and of its answers, each
        self._slower = 1.0  # how much longer the answers of the best plan take
        self._error: ModelError | None = None
        self._began = 0.0  # seconds of the search before this one
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
        self.gaps = self._plan.find_gaps() if self._plan else []
        return self._conclude(search_seconds, planned)

    def _grow(self) -> None:
        with self._evaluator.finishing():  # without a closed root there is no plan at all
            self._plan = plan = self._begin()
        if plan is None:
            return
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
        size = float(len(plan.tree))
        if plan.best is not None:
            size *= plan.best.size / len(plan.best.openings)
        return SPARE * self._expect_size(size)

    def _expect_size(self, size: float) -> float:
        """Return the seconds that the certificate of a plan takes."""
        seconds = self._seconds_per_decision
        if seconds is None:
            spent = self._monitor.seconds - self._began
            seconds = CERTIFYING * spent / max(1, self._evaluator.count)
        return float(size * seconds * self._slower)

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
                level = int(tree.histories.array["level"][n])
                reader.bound_continuation(claim, state, level)
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
