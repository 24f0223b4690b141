"""All deterministic policies of a small problem with several constraints, in fractions.

A policy from a history on is worth (reward, charges, risk, largest risk ahead). The policies of an
action combine those of its outcomes in every way; nothing is dropped but exact duplicates.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

from vulcan import Outcome
from vulcan.constraints import Constraint, Cost, Risk, RiskAhead
from vulcan.problem import Problem

Worth = tuple[Fraction, tuple[Fraction, ...], Fraction, Fraction]


class RandomModel:
    """A random model whose states merge, with costs and events."""

    def __init__(self, seed: int, horizon: int = 3, actions: int = 2) -> None:
        stream = random.Random(seed)
        self.horizon, self.discount = horizon, stream.choice((1, Fraction(1, 2)))
        self._rows: dict[tuple[int, str], list[Outcome]] = {}
        self._actions = [f"a{k}" for k in range(actions)]
        for state in range(3):
            for action in self._actions:
                self._rows[state, action] = self._draw(stream)

    @staticmethod
    def _draw(stream: random.Random) -> list[Outcome]:
        weights = [stream.randint(1, 4) for _ in range(stream.randint(1, 3))]
        fails = stream.choice((0, 0, 1))
        total = sum(weights) + fails
        found = []
        for k, weight in enumerate(weights):
            costs = {"fuel": stream.randint(0, 3)} if stream.random() < 0.7 else {}
            if stream.random() < 0.3:
                costs["dose"] = stream.randint(-1, 2)
            event = stream.choice((None, None, "late", "wet"))
            chance = Fraction(weight, total)
            reward = stream.randint(-1, 4)
            found.append(
                Outcome(chance, reward, stream.randint(0, 2), f"o{k}", costs=costs, event=event)
            )
        if fails:
            event = stream.choice((None, "late", "crash"))
            found.append(Outcome.failure(Fraction(fails, total), 1, event=event))
        return found

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return self._actions if state < 2 else self._actions[:1]

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        return self._rows[state, action]


def draw_problem(seed: int, horizon: int = 3) -> Problem:
    """Return a random problem with one to three constraints beside the risk bound."""
    stream = random.Random(seed)
    model = RandomModel(seed, horizon)
    pool: list[Constraint] = [
        Cost("fuel", stream.choice(("1", "2.5", "0.5 + 0.2*x", "4"))),
        Cost("dose", stream.choice(("0.5", "1", "0.25*x"))),
        Risk(stream.choice((0.05, 0.25, "0.1*x")), event="late"),
        Risk(0.1, event="crash"),
        RiskAhead(stream.choice((0.2, 0.4))),
    ]
    chosen = stream.sample(pool, stream.randint(1, 3))
    return Problem(model, stream.choice(("0.1*x", 0.3, 1.0, "0.5*x")), constraints=chosen)


def list_worths(problem: Problem) -> set[Worth]:
    """Return what each deterministic policy is worth."""
    model, summed = problem.model, list_summed(problem)

    def follow(state: Any, step: int, happened: frozenset[str]) -> set[Worth]:
        actions = model.actions(state) if step < model.horizon else []
        nothing = (Fraction(0), (Fraction(0),) * len(summed), Fraction(0), Fraction(0))
        if not actions:
            return {nothing}
        found = set()
        for action in actions:
            options = []
            outcomes = model.outcomes(state, action)
            for outcome in outcomes:
                own = tuple(charge(c, outcome, happened) for c in summed)
                after = happened | ({outcome.event} if outcome.event else set())
                later = {nothing} if outcome.fails else follow(outcome.state, step + 1, after)
                options.append([(own, worth) for worth in later])
            for chosen in product(*options):
                found.add(_add_up(model, outcomes, chosen, len(summed)))
        return found

    return follow(model.initial_state(), 0, frozenset())


def _add_up(model: Any, outcomes: list[Outcome], chosen: Any, count: int) -> Worth:
    reward = risk = ahead = Fraction(0)
    charges = [Fraction(0)] * count
    for outcome, (own, (later, more, danger, worst)) in zip(outcomes, chosen, strict=True):
        p = Fraction(outcome.probability)
        reward += p * (outcome.reward + Fraction(model.discount) * later)
        risk += p * (1 if outcome.fails else danger)
        ahead = max(ahead, worst)
        for k in range(count):
            charges[k] += p * (own[k] + more[k])
    return reward, tuple(charges), risk, max(risk, ahead)


def charge(constraint: Constraint, outcome: Outcome, happened: frozenset[str]) -> Fraction:
    if isinstance(constraint, Cost):
        return Fraction(dict(outcome.costs).get(constraint.name, 0))
    assert isinstance(constraint, Risk)
    return Fraction(outcome.event == constraint.event and constraint.event not in happened)


def list_summed(problem: Problem) -> list[Constraint]:
    return [c for c in problem.constraints if not isinstance(c, RiskAhead)]


def is_within(problem: Problem, worth: Worth, slack: float = 1e-12) -> bool:
    """Return whether a policy keeps all limits."""
    reward, charges, risk, ahead = worth
    limits = [(problem.risk_bound, risk)]
    limits += zip((c.bound for c in list_summed(problem)), charges, strict=True)
    limits += [(c.bound, ahead) for c in problem.constraints if isinstance(c, RiskAhead)]
    return all(float(x) <= bound.exact(reward) + slack for bound, x in limits)
