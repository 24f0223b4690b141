"""Explaining a policy: where its risk is spent, what was rejected there, and what a bound costs.

At the places that take the most risk the other actions are looked at, each put in the place of the
one that is taken, the rest of the plan kept. With reach(h) the probability of the place, and
(ΔR, Δx) what is gained in reward and in risk from there on, the whole plan would have

    E g' = E g + γ^t reach(h) ΔR,    er' = er + reach(h) Δx,

and is worth less if E g' <= E g, or else too risky if er' > Δ(E g'); if it is neither, the plan is
not the best one.

How the mission would go on after another action is not in the plan. Where states merge and are few,
dynamic programs over all of them (`vulcan.solvers.layered`) give what is best at the price at which
the bound binds, and what is safest; both are exact. Elsewhere only the step itself is compared, as
if what follows were worth what follows the action that is taken. An action that would then seem
better is "not known" to be: a plan may well take the other for what it leads to. `compared` says
which of the two it was.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from vulcan.bounds.base import RiskBound
from vulcan.certificates.explanation import (
    Alternative,
    Explanation,
    WhatIf,
    add_up_steps,
    describe_place,
)
from vulcan.certificates.problem import Problem, require_problem
from vulcan.certificates.steps import Step, StepLevel, follow_steps
from vulcan.errors import BoundError, OptionError
from vulcan.graphs.array_graph import open_graph
from vulcan.graphs.levels import build_levels
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import open_own_model
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.garbage import pause_collection
from vulcan.sentinels import END
from vulcan.solvers.layered.dual import DualSearch
from vulcan.solvers.layered.sweeps import Sweeps, Ways
from vulcan.tolerance import TOLERANCE

__all__ = ["explain"]

MOST_QUESTIONS: Final = 50_000
"""(state, action) that the model is asked beside those of the plan."""

SCALES: Final = (0.9, 1.1)

EXACTLY: Final = (
    "the other action there, then what is best at the price of risk, found exactly over all "
    "states; elsewhere the plan as it is"
)
ASSUMED: Final = (
    "the step alone, as if what follows were worth what follows the action taken: states do not "
    "merge, or are too many to look at all that could follow"
)


def explain(
    problem: Problem,
    policy: AnyPolicy,
    *,
    places: int = 10,
    what_if: float | None = None,
) -> Explanation:
    """Say where a policy takes its risk, what was rejected there, and whether it fails on purpose.

    Parameters
    ----------
    problem
        The model that the policy was made for, and the bound that it is judged by.
    policy
        Any policy, deterministic or randomised.
    places
        At how many places, those that take the most risk, other actions are looked at. Where states
        merge, the model is asked for up to 50,000 more (state, action) for that.
    what_if
        Solve again for 0.9 and 1.1 times the allowed risk, each with a limit of this many seconds.
        Without it, and where states merge, the price of risk says about as much.

    Returns
    -------
    Explanation
        What each action does in each state, and the riskiest places with the best alternative at
        each. `deliberate` is how likely a failure on purpose is, and `failures` says where.

    Raises
    ------
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that the policy was made for, or no longer answers the same.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> explanation = vulcan.explain(problem, vulcan.solve(problem).policy)
    >>> [(choice.action, round(choice.risk, 5)) for choice in explanation.actions][:1]
    [('play 1', 0.002)]
    >>> explanation.deliberate
    0.0
    >>> explanation.places[0].alternative.verdict
    'worth less'
    """
    require_problem(problem, call="explain(Problem(model, {bound}), policy)")
    if what_if is not None and not what_if > 0:
        raise OptionError(f"what_if is a number of seconds, not {what_if!r}")
    reader = open_own_model(policy.about, problem.model)
    with pause_collection():
        levels = follow_steps(policy, reader)
        found = add_up_steps(levels, reader)
    risky = _find_riskiest(levels, places)
    world = _World(problem, reader) if places else None
    judge = _Judge(problem.risk_bound, found, levels, reader, world)
    price = None if world is None else world.price
    return replace(
        found,
        places=tuple(describe_place(step, judge.find_best(step)) for step in risky),
        compared=None if not risky else EXACTLY if price is not None else ASSUMED,
        price=price,
        what_if=_scale_bound(problem, found, price, what_if),
    )


def _find_riskiest(levels: Sequence[StepLevel], most: int) -> list[Step]:
    steps = (step for level in levels for step in level.steps if step.risk > 0)
    return heapq.nlargest(most, steps, key=lambda step: step.risk)


class Continued(NamedTuple):
    """Reward and risk from a place on: an action, and what follows it."""

    reward: float
    risk: float


class _World:
    """What is best at the price of risk, and what is safest, from every state and step on.

    `price` is None if the model is too large for that, or no policy is within the bound.
    """

    def __init__(self, problem: Problem, reader: ModelReader) -> None:
        self.price: float | None = None
        if not reader.merges:
            return
        self._graph = graph = open_graph(reader)
        levels = build_levels(graph, may_go_on=lambda *_: graph.evaluations <= MOST_QUESTIONS)
        if levels is None or not len(levels):
            return
        self._levels, sweeps = levels, Sweeps(levels)
        dual = DualSearch(problem.risk_bound, sweeps.find_best, lambda: True).run()
        if math.isinf(dual.upper_bound) or not math.isfinite(dual.multiplier):
            return
        self.price, self.multiplier = dual.price, dual.multiplier
        self._best = sweeps.follow_weights(1.0, dual.multiplier)
        self._safest = sweeps.follow_weights(0.0, 1.0)
        states = range(graph.states.count)
        self._numbers = {graph.state_object(number): number for number in states}

    def look(self, step: Step) -> dict[str, tuple[Continued, Continued]]:
        """Return each action at a place, followed by what is best, and by what is safest."""
        arrays = self._levels.arrays
        state = self._numbers[step.place.state]
        first, end = (int(n) for n in arrays.first[step.level : step.level + 2])
        node = first + int(arrays.state[first:end].searchsorted(state))
        labels = self._graph.action_labels(state)
        row = int(arrays.first_action[state])
        return {
            label: (
                self._continue(node, row + k, step.level, self._best),
                self._continue(node, row + k, step.level, self._safest),
            )
            for k, label in enumerate(labels)
        }

    def _continue(self, node: int, row: int, level: int, ways: Ways) -> Continued:
        arrays = self._levels.arrays
        reward = float(arrays.weights[level] * arrays.expected_reward[row])
        risk = float(arrays.immediate_risk[row])
        for probability, target in self._levels.list_targets(node, row):
            if target != END:
                reward += probability * float(ways.rewards[target])
                risk += probability * float(ways.risks[target])
        return Continued(reward, risk)


class _Judge:
    """Judges what the whole plan would be with another action at one place."""

    def __init__(
        self,
        bound: RiskBound,
        plan: Explanation,
        levels: Sequence[StepLevel],
        reader: ModelReader,
        world: _World | None,
    ) -> None:
        self._bound, self._plan, self._reader = bound, plan, reader
        self._weights = [level.weight for level in levels]
        self._world = world if world is not None and world.price is not None else None

    def find_best(self, step: Step) -> Alternative | None:
        """Return the best of the other actions at a place."""
        if self._world is None:
            found = [self._judge(step, *option) for option in self._assume(step)]
            # There is no price to weigh risk by: what earns most is what had to be rejected.
            most = max(found, key=lambda other: other.reward_change, default=None)
            if most is not None and most.verdict == "better":
                return replace(most, verdict="not known")
            return most
        price = self._world.multiplier
        options = self._world.look(step)
        options.pop(step.action, None)
        if not options:
            return None
        label = max(
            options, key=lambda name: options[name][0].reward - price * options[name][0].risk
        )
        best, safest = options[label]
        judged = self._judge(step, label, best)
        if judged.verdict != "too risky":
            return judged
        careful = self._judge(step, label, safest)
        if careful.verdict == "better":
            return careful
        acceptable = self._plan.risk + careful.risk_change <= careful.allowed + TOLERANCE
        return replace(judged, careful=careful.reward_change if acceptable else None)

    def _assume(self, step: Step) -> list[tuple[str, Continued]]:
        """Return the other actions, each followed by what follows the one that is taken."""
        reader, weight = self._reader, self._weights[step.level]
        survives = 1 - step.fails
        reward = step.reward_ahead - step.failing_reward - step.safe_reward
        risk = step.risk_ahead - step.fails
        after = (reward / survives, risk / survives) if survives > 0 else (0.0, 0.0)
        options = []
        for label, action in reader.actions(step.place.state).items():
            if label == step.action:
                continue
            outcomes = reader.outcomes(step.place.state, action)
            mean = math.fsum(float(o.probability) * float(o.reward) for o in outcomes)
            fails = math.fsum(float(o.probability) for o in outcomes if o.fails)
            continued = Continued(
                weight * (mean + (1 - fails) * after[0]), fails + (1 - fails) * after[1]
            )
            options.append((label, continued))
        return options

    def _judge(self, step: Step, action: str, instead: Continued) -> Alternative:
        weight = self._weights[step.level]
        more_reward = step.reach * (instead.reward - weight * step.reward_ahead)
        more_risk = step.reach * (instead.risk - step.risk_ahead)
        reward, risk = self._plan.reward + more_reward, self._plan.risk + more_risk
        try:
            allowed = self._bound(reward)
        except BoundError:
            allowed = -math.inf
        if more_reward <= TOLERANCE * max(1.0, abs(self._plan.reward)):
            verdict = "worth less"
        else:
            verdict = "too risky" if risk > allowed + TOLERANCE else "better"
        return Alternative(action, more_reward, more_risk, allowed, verdict)


def _scale_bound(
    problem: Problem, plan: Explanation, price: float | None, seconds: float | None
) -> tuple[WhatIf, ...]:
    """Return what more or less allowed risk would change."""
    if seconds is not None:
        from vulcan.planning.solve import solve

        found = []
        for scale in SCALES:
            scaled = Problem(problem.model, problem.risk_bound.scale(scale))
            result = solve(scaled, time_limit=seconds)
            certificate = result.certificate if result.safe else None
            found.append(
                WhatIf(
                    scale,
                    None if certificate is None else float(certificate.reward),
                    None if certificate is None else float(certificate.risk),
                    result.upper_bound,
                    "solved",
                )
            )
        return tuple(found)
    if price is None:
        return ()
    allowed = problem.risk_bound(plan.reward)
    return tuple(
        WhatIf(scale, plan.reward + price * (scale - 1) * allowed, None, None, "price")
        for scale in SCALES
    )
