"""Histories in a tree: each closed by a default, and perhaps opened by actions.

A default ends the mission within a few decisions: the model's own, or the action that ends it
soonest (`Ending`). Where nothing does, histories are bounded by a claim of the model
(`vulcan.policy.policy.Beyond`). Rewards and risks of histories are multiplied by their probability,
so that those of a plan are sums over its decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.exact.acceptance import accepts
from vulcan.graph.states import Rows
from vulcan.model.answers import Answers, label_answers
from vulcan.model.interface import FAILURE, Start
from vulcan.numerics import ANY, DEFAULT, END, FAILED, NONE, UNPLANNED
from vulcan.policy.policy import About, Beyond, Policy
from vulcan.runtime.arrays import ranges, starts
from vulcan.sampling.groups import ActionEvaluator, Closing

MOST_CLOSING: Final = 64  # decisions that a default may take until the mission ends
ROOMS: Final = (1, 8, MOST_CLOSING)  # decisions that are tried, one after the other

Indices = NDArray[np.intp]

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
