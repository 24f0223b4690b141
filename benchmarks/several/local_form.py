"""The survival form (constraint B) for several limits, beside plans that grow.

On every finished safe history h the survival form asks for Σ S_t c_kt <= Δ_k(f(h)) for each limit
k, with S_t the survival before step t, c_kt the expected charge of the step, and the credit
f(h) = Σ γ^t S_t R_t (`docs/theory/proofs.md`, "Constraint B for several costs"). Whether a history
passes does not depend on others, so the best policy that is admitted is one recursion over the
tree of histories.
"""

from __future__ import annotations

import math
from typing import Any

import vulcan
from tests.oracles.several import charge, draw_problem, list_summed
from vulcan import Outcome, Problem

__all__ = ["compare_forms"]


class Histories:
    """A model with the whole history as the state."""

    def __init__(self, model: Any) -> None:
        self.model, self.horizon, self.discount = model, model.horizon, model.discount

    def initial_state(self) -> Any:
        return (self.model.initial_state(),)

    def actions(self, history: Any) -> Any:
        return self.model.actions(history[-1])

    def outcomes(self, history: Any, action: Any) -> list[Outcome]:
        found = self.model.outcomes(history[-1], action)
        return [o if o.fails else _lead(o, (*history, action, o.label, o.state)) for o in found]


def _lead(outcome: Outcome, state: Any) -> Outcome:
    given = outcome.probability, outcome.reward, state, outcome.label
    return Outcome(*given, costs=outcome.costs, event=outcome.event)


def find_admitted(problem: Problem) -> float:
    """Return the most that a policy earns which the survival form admits; -inf without one."""
    model, summed = problem.model, list_summed(problem)
    bounds = [problem.risk_bound, *(c.bound for c in summed)]

    def follow(
        state: Any,
        step: int,
        survival: float,
        credit: float,
        sums: list[float],
        events: frozenset[str],
    ) -> float:
        actions = model.actions(state) if step < model.horizon and survival > 0 else []
        if not actions:
            passes = all(x <= bound(credit) + 1e-12 for x, bound in zip(sums, bounds, strict=True))
            return 0.0 if passes else -math.inf
        best, discount = -math.inf, float(model.discount)
        for action in actions:
            outcomes = model.outcomes(state, action)
            mean = sum(float(o.probability) * o.reward for o in outcomes)
            risk = sum(float(o.probability) for o in outcomes if o.fails)
            own = [risk] + [
                sum(float(o.probability * charge(c, o, events)) for o in outcomes) for c in summed
            ]
            after = [x + survival * y for x, y in zip(sums, own, strict=True)]
            given = (
                step + 1,
                survival * (1 - risk),
                credit + discount**step * survival * mean,
                after,
            )
            value = mean
            for o in outcomes:
                if not o.fails:
                    happened = events | ({o.event} if o.event else set())
                    value += float(o.probability) * discount * follow(o.state, *given, happened)
            if risk >= 1:  # the history ends here, with survival 0
                value += follow(state, model.horizon, *given[1:], events)
            best = max(best, value)
        return best

    return follow(model.initial_state(), 0, 1.0, 0.0, [0.0] * len(bounds), frozenset())


def compare_forms(seed: int) -> tuple[float, float, float] | None:
    """Return the best reward, and those of the survival form and of a growing plan; None without.

    A model gets an action that ends the mission, which plans that grow need.
    """
    drawn = draw_problem(seed)
    limits = list_summed(drawn)
    model = Histories(Stopping(drawn.model))
    problem = Problem(model, drawn.risk_bound, constraints=limits)
    best = vulcan.solve(problem, gap=0)
    if best.certificate is None or not best.safe or not limits:
        return None
    grown = vulcan.solve(problem, vulcan.Growth(), samples=4_000)
    reward = float(grown.certificate.reward) if grown.safe else -math.inf
    return float(best.certificate.reward), find_admitted(problem), reward


class Stopping:
    """A model that can stop at any time."""

    def __init__(self, model: Any) -> None:
        self._model, self.horizon, self.discount = model, model.horizon, model.discount

    def initial_state(self) -> Any:
        return self._model.initial_state()

    def actions(self, state: Any) -> list[str]:
        return [] if state == "stopped" else [*self._model.actions(state), "stop"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        return (
            [Outcome(1, 0, "stopped")] if action == "stop" else self._model.outcomes(state, action)
        )
