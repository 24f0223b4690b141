"""Models with hidden states, and their beliefs as the states of an ordinary model.

A hidden model has a `horizon`, and

    initial_belief()                   probabilities of hidden states, as a mapping
    actions(observation)               the actions after an observation, None before the first; an
                                       observation without actions ends the mission safely
    transitions(state, action)         a list of `Transition`
    observations(next_state, action)   probabilities of observations, as a mapping

and, if wanted, `discount`, `action_label(action)` and `fingerprint`, as other models have them.

With b the belief, the distribution of the hidden state given the observations and no failure, an
action a fails with probability r, and else observation o comes with probability p_o and leads to
b_o:

    r = Σ b(s) P(fails | s, a)
    p_o = Σ_s' w_o(s'),   b_o = w_o / p_o,   w_o(s') = Σ_s b(s) P(s' | s, a) P(o | s', a)

The reward of an outcome is E[R | b, a, o]: rewards are not observed. Failing ends the mission and
is noticed. An *event* (`Transition.event`) is not noticed, and the mission goes on: the hidden
state then includes which events have happened, and an outcome costs, under the event's name, the
probability that the event happens there for the first time.

**Merging.** Beliefs are equal if their actions are and their probabilities agree: exactly, if the
model gives integers and fractions; else in the first `BITS` binary digits, since rounding depends
on the path. Certificates don't use beliefs. Merging moves an upper bound by at most about
horizon · 2^-BITS · (the range of rewards + the price of failure), below the accuracy of searches.

**Bounds.** An agent that sees the hidden state earns no less, and need not fail more often. With
Q_t(s, a) the value of an action at step t if states are seen from then on, for a price λ of failure
and for its least risk,

    V_λ(b) <= max_a Σ b(s) Q_t(s, a)  (QMDP),    risk(b, a) >= Σ b(s) (least risk of a in s).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE, Outcome, describe_model, stable_text
from vulcan.model.reader import Happened, ModelCalls
from vulcan.model.rules import (
    Number,
    Rule,
    Violation,
    attempt,
    check_actions,
    describe_number,
    read_attribute,
    read_number,
    refuse_small,
)
from vulcan.numerics import LARGEST_REWARD, SMALLEST_PROBABILITY, SUM_TOLERANCE
from vulcan.parameters import shorten

BITS: Final = 37
"""Binary digits in which the probabilities of equal beliefs agree, unless they are fractions."""

TINY: Final = 1e-250  # a smaller probability of a hidden state is raised to this
MOST_SHOWN: Final = 4  # hidden states in the text of a belief
MOST_MOVES: Final = 1_000_000  # a larger hidden model has no bounds
MOST_TABLES: Final = 32  # prices whose values are kept
BARS: Final = "▁▂▃▄▅▆▇█"


class Transition(msgspec.Struct, frozen=True):
    """What an action may do to a hidden state.

    Parameters
    ----------
    probability
        Its probability, in [0, 1].
    next_state
        The hidden state that follows: anything hashable. It does not matter if the mission fails.
    reward
        Reward of the step. It counts, but is not observed.
    fails
        Whether the mission ends in failure, which is noticed.
    event
        The name of something that happens unnoticed, or the kind of failure. A problem may limit
        the probability that it ever happens (`vulcan.Risk`).

    Examples
    --------
    >>> Transition(0.9, "left", -1.0)
    Transition(probability=0.9, next_state='left', reward=-1.0, fails=False, event=None)
    """

    probability: Any
    next_state: Any
    reward: Any
    fails: bool = False
    event: str | None = None


Move = tuple[Number, int, Number, str | None]
"""A transition: probability, number of the next hidden state or `FAILS`, reward, and the event if
it happens for the first time."""

FAILS: Final = -1


class Menu(tuple[Any, ...]):
    """The actions after an observation, by their `labels`."""

    labels: Mapping[str, Any]


class HiddenReader(ModelCalls):
    """Evaluates a hidden model once for each question, and checks each answer.

    Hidden states are numbered as they are found. Where events happen, a state is a `Happened`.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if isinstance(model, type):
            message = f"{model.__name__} is a class, not a model; make one"
            raise self._refuse(Rule.INTERFACE, message)
        for name in ("initial_belief", "actions", "transitions", "observations"):
            if not callable(read_attribute(model, name)):
                kind = f"{type(model).__name__}, a model with hidden states,"
                raise self._refuse(Rule.INTERFACE, f"{kind} has no method {name}()")
        self.states: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._menus: dict[Any, Menu] = {}
        self._same: dict[tuple[str, ...], Menu] = {}
        self._moves: dict[tuple[int, Any], list[Move]] = {}
        self._observed: dict[tuple[Any, Any], list[tuple[Any, Number]]] = {}

    def start(self) -> list[tuple[int, Number]]:
        """Return the hidden states of the initial belief, with their probabilities."""
        what = "the initial belief"
        known = self._read_distribution(self._call("initial_belief"), what, "hidden state")
        return [(self.number(state), chance) for state, chance in known]

    def menu(self, observation: Any) -> Menu:
        """Return the actions after an observation; equal menus are the same object."""
        if observation not in self._menus:
            actions = self._call_list("actions", observation)
            labels = [self.label(observation, action) for action in actions]
            for violation in check_actions(observation, actions, labels):
                raise ModelError(violation.of(self.model))
            menu = self._same.setdefault(tuple(labels), Menu(actions))
            menu.labels = dict(zip(labels, menu, strict=True))
            self._menus[observation] = menu
        return self._menus[observation]

    def moves(self, number: int, action: Any) -> list[Move]:
        """Return what an action may do to a hidden state."""
        key = number, action
        if key not in self._moves:
            known = self.states[number]
            before = known.events if type(known) is Happened else frozenset()
            state = known.state if type(known) is Happened else known
            self._moves[key] = list(self._read_moves(state, action, before))
        return self._moves[key]

    def observe(self, number: int, action: Any) -> list[tuple[Any, Number]]:
        """Return the observations after an action that led to a hidden state."""
        known = self.states[number]
        state = known.state if type(known) is Happened else known
        key = state, action
        if key not in self._observed:
            answer = self._call("observations", (state, action), state, action)
            found = self._read_distribution(answer, "observations", "observation", state, action)
            texts = {stable_text(observation) for observation, _ in found}
            if len(texts) < len(found):
                message = "two observations have the same text, by which policies know them"
                raise self._refuse(Rule.OUTCOME_LABELS_DIFFER, message, state, action, answer)
            self._observed[key] = found
        return self._observed[key]

    def number(self, state: Any) -> int:
        """Return the number of a hidden state."""
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
        return number

    def _call(self, *arguments: Any) -> Any:
        try:
            return super()._call(*arguments)
        except ModelError as error:  # of the hidden model, not of that which has beliefs
            raise ModelError(error.violation.of(self.model)) from error.__cause__

    def _read_moves(self, state: Any, action: Any, before: frozenset[str]) -> Iterator[Move]:
        answer = self._call("transitions", (state, action), state, action)
        listed = attempt(list, answer)
        where = state, action
        if not listed or isinstance(answer, str | Mapping):
            message = f"transitions must be a list of vulcan.Transition, not {shorten(answer)}"
            raise self._refuse(Rule.OUTCOMES_LISTED, message, *where, answer)
        total = []
        for move in listed:
            if not isinstance(move, Transition):
                message = f"a transition must be a vulcan.Transition, not {shorten(move)}"
                raise self._refuse(Rule.OUTCOMES_TYPED, message, *where, move)
            after, event = move.next_state, move.event
            name = "failure" if move.fails else f"next state {shorten(after)}"
            chance = self._read_chance(move.probability, name, *where)
            reward = read_number(move.reward)
            if reward is None or not -LARGEST_REWARD <= reward <= LARGEST_REWARD:
                most = f"a number of at most {LARGEST_REWARD:g}"
                message = f"the reward of {name} must be {most}, not {describe_number(move.reward)}"
                raise self._refuse(Rule.REWARDS, message, *where, move.reward)
            if event is not None and type(event) is not str:
                message = f"the event of {name} must be a string or None, not {shorten(event)}"
                raise self._refuse(Rule.EVENTS, message, *where, event)
            if type(move.fails) is not bool:
                message = f"fails must be True or False, not {shorten(move.fails)}"
                raise self._refuse(Rule.OUTCOMES_TYPED, message, *where, move)
            total.append(chance)
            first = None if event is None or event in before else event
            number = FAILS
            if not move.fails:
                self._require_state(after, "a next state", *where)
                events = before if first is None else before | {first}
                number = self.number(Happened(after, events) if events else after)
            if chance:
                yield chance, number, reward, first
        self._require_sum(total, "the probabilities of transitions", *where)

    def _read_distribution(
        self, answer: Any, what: str, of: str, *where: Any
    ) -> list[tuple[Any, Number]]:
        """Return the possible values with their probabilities."""
        where = (*where, None, None)[:2]
        pairs = attempt(lambda: list(answer.items())) if isinstance(answer, Mapping) else None
        if not pairs:
            kinds = f"a mapping from each {of} to its probability"
            message = f"{what} must be {kinds}, not {shorten(answer)}"
            raise self._refuse(Rule.OUTCOMES_LISTED, message, *where, answer)
        found = []
        for value, given in pairs:
            self._require_state(value, f"{of} of {what}", *where)
            found.append((value, self._read_chance(given, f"{of} {shorten(value)}", *where)))
        self._require_sum([chance for _, chance in found], f"the probabilities of {what}", *where)
        return [(value, chance) for value, chance in found if chance]

    def _require_state(self, value: Any, what: str, *where: Any) -> None:
        if value is None or value is FAILURE:
            raise self._refuse(Rule.STATES, f"{what} can't be {value!r}", *where)
        if attempt(hash, value) is None:
            message = f"{what}, {shorten(value)}, can't be hashed; use a tuple"
            raise self._refuse(Rule.STATES_HASHABLE, message, *where, value)

    def _read_chance(self, given: Any, name: str, *where: Any) -> Number:
        chance = read_number(given)
        if chance is None or not 0 <= chance <= 1:
            allowed = f"a number from 0 to 1, not {describe_number(given)}"
            message = f"the probability of {name} must be {allowed}"
            raise self._refuse(Rule.PROBABILITIES, message, *where, given)
        if chance and float(chance) < SMALLEST_PROBABILITY:
            message = refuse_small(name, shorten(given))
            raise self._refuse(Rule.PROBABILITIES, message, *where, given)
        return chance

    def _require_sum(self, chances: Sequence[Number], what: str, *where: Any) -> None:
        total = math.fsum(chances)
        if abs(total - 1) > SUM_TOLERANCE:
            message = f"{what} sum to {total!r}, not to 1"
            raise self._refuse(Rule.PROBABILITIES_SUM, message, *where, total)

    def _refuse(self, rule: Rule, message: str, *where: Any) -> ModelError:
        return ModelError(Violation(rule, message, *where).of(self.model))


class Support(tuple[Any, ...]):
    """Hidden states in a fixed order, whose hash is computed once."""

    def __hash__(self) -> int:
        known = self.__dict__
        if "hash" not in known:
            known["hash"] = super().__hash__()
        number: int = known["hash"]
        return number

    def __reduce__(self) -> Any:
        return Support, (tuple(self),)  # texts have other hashes in another process


class Belief:
    """A distribution of hidden states: the state of a belief model.

    Attributes
    ----------
    menu
        The actions that are available.
    support
        The possible hidden states.
    weights
        Their probabilities.
    """

    __slots__ = ("__weakref__", "_hash", "key", "menu", "support", "weights")

    def __init__(self, menu: Menu, support: Support, weights: NDArray[Any], key: Any) -> None:
        self.menu, self.support, self.weights = menu, support, weights
        self.key = (tuple(menu), support, key) if menu else ()  # all ends are equal
        self._hash = hash(self.key)

    @property
    def probabilities(self) -> dict[Any, Number]:
        """The probability of each possible hidden state, the likeliest first."""
        pairs = zip(self.support, self.weights.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Belief) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return Belief, (self.menu, self.support, self.weights, self.key[-1] if self.key else None)

    def __repr__(self) -> str:
        """Return the likeliest hidden states, each with a bar and its probability."""
        shown = [
            f"{_write_hidden(state)} {BARS[min(7, int(8 * chance))]} {float(chance):.3g}"
            for state, chance in list(self.probabilities.items())[:MOST_SHOWN]
        ]
        more = len(self.support) - len(shown)
        return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _write_hidden(state: Any) -> str:
    return repr(state) if type(state) is Happened else stable_text(state)


class BeliefModel:
    """A model with hidden states as an ordinary model, whose states are beliefs.

    Every solver, policy, run and page takes it. Certificates are computed from the hidden model.

    Parameters
    ----------
    model
        The hidden model; see the head of `vulcan.model.belief`.

    Examples
    --------
    >>> from vulcan.domains import Tiger
    >>> model = BeliefModel(Tiger(horizon=3))
    >>> model.initial_state()
    left ▅ 0.5, right ▅ 0.5
    >>> model.outcomes(model.initial_state(), "listen")[0].state
    left ▇ 0.85, right ▂ 0.15
    """

    merges: Final = True

    def __init__(self, model: Any) -> None:
        self.model = model
        self.horizon = read_attribute(model, "horizon")
        self.discount = read_attribute(model, "discount", 1)
        if hasattr(model, "action_label"):
            self.action_label = model.action_label
        self._reader = HiddenReader(model)
        self._beliefs: WeakValueDictionary[Any, Belief] = WeakValueDictionary()
        self._steps: dict[tuple[Support, Any], _Step] = {}

    def __repr__(self) -> str:
        return f"BeliefModel({describe_model(self.model)})"

    def __reduce__(self) -> Any:
        return BeliefModel, (self.model,)

    @property
    def fingerprint(self) -> str:
        """A string that identifies the hidden model."""
        own = read_attribute(self.model, "fingerprint")
        return f"beliefs of {type(self.model).__name__ if own is None else own}"

    def initial_state(self) -> Belief:
        """Return the initial belief."""
        start = sorted(self._reader.start(), key=lambda pair: self._order(pair[0]))
        chances = [chance for _, chance in start]
        exact = all(isinstance(chance, int | Fraction) for chance in chances)
        weights = np.array(chances, object if exact else float)
        support = Support(self._reader.states[number] for number, _ in start)
        if not exact:
            weights /= weights.sum()
        return self._intern(self._reader.menu(None), support, weights, _round(weights))

    def actions(self, state: Belief) -> Sequence[Any]:
        """Return the actions after the last observation."""
        return state.menu

    def outcomes(self, state: Belief, action: Any) -> list[Outcome]:
        """Return the observations with the beliefs that they lead to, and failing."""
        step = self._step(state.support, action)
        exact = step.exact and state.weights.dtype == object
        kind = object if exact else float
        weight, paid = step.weight.astype(kind, copy=False), step.reward.astype(kind, copy=False)
        terms = state.weights.astype(kind, copy=False)[step.source] * weight
        joint = _gather(step.slot, terms, step.size)
        if not exact:
            np.maximum(joint, TINY, out=joint)
        chance = np.add.reduceat(joint, step.starts)
        after = joint / chance[step.column_of_slot]
        rounded = _round(after)
        rewards = _gather(step.column, terms * paid, len(chance)) / chance
        costs: list[list[tuple[str, Number]]] = [[] for _ in chance]
        for event, rows in step.events.items():
            first = _gather(step.column[rows], terms[rows], len(chance)) / chance
            for named, cost in zip(costs, first.tolist(), strict=True):
                if cost:
                    named.append((event, cost))
        if not exact:
            chance = chance / chance.sum()
        outcomes = []
        columns = zip(step.columns, chance.tolist(), rewards.tolist(), costs, strict=True)
        for (label, menu, support, span), likely, reward, named in columns:
            costly = tuple(named)
            if menu is None or support is None:
                outcomes.append(Outcome.failure(likely, reward, costs=costly, event=label))
                continue
            belief = self._intern(menu, support, after[span], rounded[span])
            outcomes.append(Outcome(likely, reward, belief, label, costs=costly))
        return outcomes

    def value_to_go_bound(self, state: Belief, step: int, price: float) -> float:
        """Return the QMDP bound: the best action's value if the hidden state were seen after it."""
        weight = float(self.discount) ** step
        if not state.menu:
            return 0.0
        if weight < TINY:
            return math.inf
        return self._bounds.value(state, step, float(price) * weight) / weight

    def reward_to_go_bound(self, state: Belief, step: int) -> float:
        """Return the same bound without a price of failure."""
        return self.value_to_go_bound(state, step, 0.0)

    def risk_to_go_bound(self, state: Belief, action: Any, step: int) -> float:
        """Return the least risk of an action if the hidden state were seen after it."""
        return self._bounds.risk(state, action, step)

    def _intern(self, menu: Menu, support: Support, weights: Any, rounded: Any) -> Belief:
        """Return the known belief that is equal to a new one, or the new one."""
        key = tuple(rounded.tolist()) if rounded.dtype == object else rounded.tobytes()
        belief = Belief(menu, support, weights, key)
        return self._beliefs.setdefault(belief.key, belief) if menu else belief

    def _order(self, number: int) -> tuple[str, int]:
        """Return by what hidden states are sorted: their texts, which all processes share."""
        return _write_hidden(self._reader.states[number]), number

    def _step(self, support: Support, action: Any) -> _Step:
        key = support, action
        if key not in self._steps:
            numbers = [self._reader.number(state) for state in support]
            self._steps[key] = _Step(self._reader, numbers, action, self._order)
        return self._steps[key]

    @cached_property
    def _bounds(self) -> _SeenValues:
        return _SeenValues(self._reader, int(self.horizon), float(self.discount))


def _round(weights: NDArray[Any]) -> NDArray[Any]:
    """Return floats rounded to `BITS` binary digits; fractions as they are."""
    if weights.dtype == object:
        return weights
    split = weights * (2.0 ** (53 - BITS) + 1)
    rounded: NDArray[Any] = split - (split - weights)
    return rounded


def _gather(places: NDArray[np.intp], terms: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the sums of the terms at each place."""
    if terms.dtype != object:
        return np.bincount(places, terms, size)
    sums = np.zeros(size, object)
    np.add.at(sums, places, terms)
    return sums


class _Step:
    """An action from all hidden states of a support, as arrays.

    A *column* is an observation or a kind of failure, and has a slot for each hidden state that
    may follow; rows are the ways from a hidden state to a slot.
    """

    def __init__(self, reader: HiddenReader, numbers: list[int], action: Any, order: Any) -> None:
        rows: list[tuple[int, Any, Any, str | None, Any, int]] = []
        for place, number in enumerate(numbers):
            for chance, after, reward, event in reader.moves(number, action):
                if after == FAILS:
                    rows.append((place, chance, reward, event, (1, str(event)), FAILS))
                    continue
                for seen, likely in reader.observe(after, action):
                    rows.append((place, chance * likely, reward, event, (0, seen), after))
        found: dict[Any, list[int]] = {}
        for *_, seen, after in rows:
            found.setdefault(seen, []).append(after)
        labels = {column: stable_text(column[1]) for column in found}
        names = sorted(found, key=lambda column: (column[0], labels[column]))
        if len(set(labels.items())) > len({(k[0], text) for k, text in labels.items()}):
            message = "two observations have the same text, by which policies know them"
            state = reader.states[numbers[0]]
            raise ModelError(Violation(Rule.OUTCOME_LABELS_DIFFER, message, state, action))
        slots: dict[tuple[Any, int], int] = {}
        self.columns: list[tuple[str | None, Menu | None, Support | None, slice]] = []
        self.starts = np.zeros(len(names), np.intp)
        kinds = {column[1]: row[3] for row in rows for column in (row[4],) if column[0]}
        for number, column in enumerate(names):
            begin = self.starts[number] = len(slots)
            for after in sorted(set(found[column]), key=order if column[0] == 0 else None):
                slots[column, after] = len(slots)
            span = slice(int(begin), len(slots))
            if column[0]:
                self.columns.append((kinds[column[1]], None, None, span))
                continue
            after_states = [reader.states[after] for _, after in list(slots)[span]]
            menu = reader.menu(column[1])
            self.columns.append((labels[column], menu, Support(after_states), span))
        self.size = len(slots)
        numbered = {column: number for number, column in enumerate(names)}
        self.source = np.array([row[0] for row in rows], np.intp)
        self.slot = np.array([slots[row[4], row[5]] for row in rows], np.intp)
        self.column = np.array([numbered[row[4]] for row in rows], np.intp)
        self.column_of_slot = np.array([numbered[column] for column, _ in slots], np.intp)
        self.exact = all(isinstance(row[1], int | Fraction) for row in rows)
        self.weight = np.array([row[1] for row in rows], object if self.exact else float)
        paid = [row[2] for row in rows]
        whole = self.exact and all(isinstance(reward, int | Fraction) for reward in paid)
        self.reward = np.array(paid, object if whole else float)
        names_of_events = sorted({row[3] for row in rows if row[3] is not None})
        self.events = {
            event: np.array([k for k, row in enumerate(rows) if row[3] == event], np.intp)
            for event in names_of_events
        }


class _SeenValues:
    """Values of the hidden model if its states were seen, for prices of failure."""

    def __init__(self, reader: HiddenReader, horizon: int, discount: float) -> None:
        self._reader, self._horizon, self._discount = reader, horizon, discount
        self._tables: dict[tuple[float, float], list[NDArray[np.float64]]] = {}
        self._rows: dict[tuple[Support, Menu], NDArray[np.intp]] = {}
        self._nodes: dict[tuple[int, Menu], int] = {}  # a hidden state and the actions there
        self.known = self._explore()

    def value(self, state: Belief, step: int, price: float) -> float:
        """Return the bound on (reward from a step on, discounted from the start) - price · risk."""
        if not self.known:
            return math.inf
        table = self._table(1.0, price)[step]
        return float((state.weights.astype(float) @ table[self._find(state)]).max())

    def risk(self, state: Belief, action: Any, step: int) -> float:
        """Return the bound on the risk of an action."""
        if not self.known or not state.menu:
            return 0.0
        table = self._table(0.0, 1.0)[step][self._find(state)[:, state.menu.index(action)]]
        return min(1.0, max(0.0, -float(state.weights.astype(float) @ table)))

    def _find(self, state: Belief) -> NDArray[np.intp]:
        """Return the row of each hidden state and action."""
        key = state.support, state.menu
        if key not in self._rows:
            numbers = map(self._reader.number, state.support)
            nodes = [self._nodes[number, state.menu] for number in numbers]
            self._rows[key] = self._first[nodes][:, None] + np.arange(len(state.menu))
        return self._rows[key]

    def _explore(self) -> bool:
        """Find the hidden states before the horizon, and return whether they are few enough."""
        reader, menu = self._reader, self._reader.menu(None)
        waiting = [(number, menu) for number, _ in reader.start()]
        depth = [0] * len(waiting)
        self._nodes = {node: k for k, node in enumerate(waiting)}
        first, row, target = [0], list[int](), list[int]()
        rewards, risks, chances = list[float](), list[float](), list[float]()
        for place, (number, menu) in enumerate(waiting):
            onward = depth[place] + 1 < self._horizon
            for action in menu:
                reward = risk = 0.0
                for chance, after, paid, _ in reader.moves(number, action):
                    reward += float(chance) * float(paid)
                    if after == FAILS:
                        risk += float(chance)
                        continue
                    ways: dict[Menu, float] = {}
                    for seen, likely in reader.observe(after, action):
                        following = reader.menu(seen)
                        ways[following] = ways.get(following, 0.0) + float(chance * likely)
                    for following, likely in ways.items():
                        if following and onward:
                            node = self._nodes.setdefault((after, following), len(waiting))
                            if node == len(waiting):
                                waiting.append((after, following))
                                depth.append(depth[place] + 1)
                            row.append(len(rewards))
                            target.append(node)
                            chances.append(likely)
                rewards.append(reward)
                risks.append(risk)
            first.append(len(rewards))
            if len(row) > MOST_MOVES:
                return False
        self._first = np.array(first[:-1], np.intp)
        self._reward, self._risk = np.array(rewards), np.array(risks)
        self._row, self._target = np.array(row, np.intp), np.array(target, np.intp)
        self._chance = np.array(chances, float)
        return True

    def _table(self, weight: float, price: float) -> list[NDArray[np.float64]]:
        """Return the value of each row at each step, for rewards times a weight."""
        key = weight, price
        if key not in self._tables:
            if len(self._tables) >= MOST_TABLES:
                del self._tables[next(iter(self._tables))]
            values, tables = np.zeros(len(self._first)), []
            for step in range(self._horizon - 1, -1, -1):
                # An action that fails surely has no safe outcome; sums of parts are at most 1.
                rows = weight * self._discount**step * self._reward - price * self._risk
                ways = self._chance * values[self._target]
                rows += np.bincount(self._row, ways, len(rows))
                values = np.maximum.reduceat(rows, self._first)
                tables.append(rows)
            self._tables[key] = tables[::-1]
        return self._tables[key]
