"""Hidden-state models by enumeration: all observation policies, in fractions, without beliefs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from vulcan import Transition

Worth = tuple[Fraction, Fraction, Fraction]
"""Expected reward, probability of failing, and probability that the event ever happens."""


@dataclass
class RandomHidden:
    """A small random model with hidden states, in fractions or floats."""

    seed: int
    horizon: int = 2
    events: bool = False
    exact: bool = True
    states: int = 2
    discount: Any = 1
    _rng: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rng = rng = random.Random(self.seed)
        names = [f"s{k}" for k in range(self.states)]
        self.belief = self._draw(names)
        self.menus = {None: ["a", "b"], "o0": ["a", "b"], "o1": rng.choice([["a"], ["a", "b"], []])}
        self.moves = {(s, a): list(self._draw_moves(names)) for s, a in product(names, "ab")}
        seen = {(s, a): self._draw(["o0", "o1"]) for s, a in product(names, "ab")}
        self.seen = seen

    def _draw(self, values: list[Any]) -> dict[Any, Any]:
        parts = [self._rng.randint(0, 3) for _ in values]
        parts[self._rng.randrange(len(parts))] += 1
        chances = [Fraction(part, sum(parts)) for part in parts]
        given = [chance if self.exact else float(chance) for chance in chances]
        return dict(zip(values, given, strict=True))

    def _draw_moves(self, names: list[str]) -> Any:
        rng = self._rng
        kinds = [(name, False, None) for name in names]
        kinds += [(name, False, "late") for name in names[:1] if self.events]
        kinds += [("gone", True, "late" if self.events and rng.random() < 0.3 else None)]
        for (name, fails, event), chance in self._draw(kinds).items():
            reward = Fraction(rng.randint(-2, 6), 2)
            yield Transition(chance, name, reward if self.exact else float(reward), fails, event)

    def initial_belief(self) -> dict[str, Any]:
        """Return the initial belief."""
        return self.belief

    def actions(self, observation: str | None) -> list[str]:
        """Return the actions; an observation may end the mission."""
        return self.menus[observation]

    def transitions(self, state: str, action: str) -> list[Transition]:
        """Return the transitions."""
        return self.moves[state, action]

    def observations(self, state: str, action: str) -> dict[str, Any]:
        """Return the observations."""
        return self.seen[state, action]


Ways = dict[tuple[str, bool], Fraction]
"""Probabilities of (hidden state, whether the event has happened), not normalised."""


def start(model: Any) -> Ways:
    """Return the hidden states before the first action."""
    return {(s, False): Fraction(p) for s, p in model.initial_belief().items() if p}


def go(model: Any, ways: Ways, action: str) -> tuple[Worth, dict[str, Ways]]:
    """Return what an action earns and risks, and the hidden states after each observation."""
    reward = risk = event = Fraction(0)
    after: dict[str, Ways] = {}
    for (state, happened), mass in ways.items():
        for move in model.transitions(state, action):
            seen: dict[Any, Any] = {None: 1}
            if not move.fails:
                seen = model.observations(move.next_state, action)
            first = move.event is not None and not happened
            for observation, chance in seen.items():
                flow = mass * Fraction(move.probability) * Fraction(chance)
                # As given: their sum over observations may differ from 1 by a rounding.
                reward += flow * Fraction(move.reward)
                event += flow * first
                risk += flow * move.fails
                if flow and not move.fails:
                    key = move.next_state, happened or first
                    into = after.setdefault(observation, {})
                    into[key] = into.get(key, Fraction(0)) + flow
    return (reward, risk, event), after


def enumerate_policies(model: Any, ways: Ways, observation: Any, steps: int) -> set[Worth]:
    """Return what each observation policy is worth from here on."""
    actions = model.actions(observation) if steps else []
    if not actions:
        return {(Fraction(0),) * 3}
    discount, found = Fraction(getattr(model, "discount", 1)), set()
    for action in actions:
        own, after = go(model, ways, action)
        options = [enumerate_policies(model, w, o, steps - 1) for o, w in after.items()]
        for chosen in product(*options):
            later = [sum((worth[k] for worth in chosen), Fraction(0)) for k in range(3)]
            found.add((own[0] + discount * later[0], own[1] + later[1], own[2] + later[2]))
    return found


def enumerate_ahead(model: Any, ways: Ways, observation: Any, steps: int) -> set[Worth]:
    """Return reward, risk and the largest risk ahead at any history, of each observation policy.

    Reward and risk are not divided by the probability of the history; the risk ahead is.
    """
    actions = model.actions(observation) if steps else []
    if not actions:
        return {(Fraction(0),) * 3}
    discount, found = Fraction(getattr(model, "discount", 1)), set()
    for action in actions:
        own, after = go(model, ways, action)
        options = [enumerate_ahead(model, w, o, steps - 1) for o, w in after.items()]
        for chosen in product(*options):
            reward = own[0] + discount * sum((worth[0] for worth in chosen), Fraction(0))
            risk = own[1] + sum((worth[1] for worth in chosen), Fraction(0))
            ahead = risk / sum(ways.values())
            found.add((reward, risk, max([ahead, *(worth[2] for worth in chosen)])))
    return found


def find_ahead(model: Any, policy: Any, node: int, ways: Ways) -> tuple[Fraction, Fraction]:
    """Return the failing mass from a node on, and the largest risk ahead at any history."""
    if node < 0:
        return Fraction(0), Fraction(0)
    own, after = go(model, ways, policy.labels[policy.action[node]])
    rows = policy.outcomes(node)
    child = {policy.labels[policy.label[k]]: int(policy.child[k]) for k in rows}
    later = [find_ahead(model, policy, child[seen], into) for seen, into in after.items()]
    mass = own[1] + sum((fails for fails, _ in later), Fraction(0))
    return mass, max([mass / sum(ways.values()), *(worst for _, worst in later)])


def follow(model: Any, policy: Any, node: int, ways: Ways) -> Worth:
    """Return what a policy is worth from a node on, by its labels alone."""
    if node < 0:
        return (Fraction(0),) * 3
    own, after = go(model, ways, policy.labels[policy.action[node]])
    rows = policy.outcomes(node)
    child = {policy.labels[policy.label[k]]: int(policy.child[k]) for k in rows}
    later = [follow(model, policy, child[seen], into) for seen, into in after.items()]
    sums = [sum((worth[k] for worth in later), Fraction(0)) for k in range(3)]
    return (
        own[0] + Fraction(getattr(model, "discount", 1)) * sums[0],
        own[1] + sums[1],
        own[2] + sums[2],
    )
