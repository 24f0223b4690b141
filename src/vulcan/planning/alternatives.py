"""What could be done at a place of a plan instead, and how the mission would go on then.

How the mission would go on after another action is not in the plan. It is found in one of three
ways:

    exactly    where states merge and are few, dynamic programs over all of them
               (`vulcan.solvers.layered`) give what is best at the price at which the bound binds,
               and what is safest
    searched   for each outcome k of the other action a plan is made and certified, in the seconds
               that are given for it
    assumed    else only the step itself is compared, as if what follows were worth what follows the
               action that is taken

A search may give each outcome the same bound. With d the slope of Δ at E g, S the probability that
the other action does not fail and r that it does, R its mean reward, γ the discount of what follows
it, and (x, g) what the plan risks and earns from the place on, reached with probability p:

    D(y) = (x + (Δ(E g) - er) / p + d γ^t (R + γ S y - g) - r) / S

If all plans for the outcomes keep x_k <= D(y_k), the whole keeps the tangent of Δ at E g.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from vulcan.bounds.base import RiskBound
from vulcan.bounds.straight import Constant, Linear
from vulcan.certificates.explanation import Alternative, Explanation
from vulcan.certificates.problem import Problem
from vulcan.certificates.steps import Step, StepLevel
from vulcan.errors import BoundError
from vulcan.graphs.array_graph import open_graph
from vulcan.graphs.levels import build_levels
from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.planning.rest import begin_at
from vulcan.planning.solve import solve
from vulcan.sentinels import END
from vulcan.solvers.layered.dual import DualSearch
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.layered.sweeps import Sweeps, Ways
from vulcan.tolerance import TOLERANCE

__all__ = ["Judge", "World"]

MOST_QUESTIONS: Final = 50_000
"""(state, action) that the model is asked beside those of the plan."""


class Continued(NamedTuple):
    """Reward and risk from a place on: an action, and what follows it."""

    reward: float
    risk: float


class World:
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
        dual = DualSearch(Referee(problem.risk_bound), sweeps.find_best).run()
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


class Judge:
    """Judges what the whole plan would be with another action at one place.

    Parameters
    ----------
    bound, plan, levels
        The risk bound, what the plan earns and risks, and what it does where.
    reader
        The model.
    world
        What would follow any action; None where nobody knows.
    seconds
        How long to search for that at each place instead; None to assume it.
    """

    def __init__(
        self,
        bound: RiskBound,
        plan: Explanation,
        levels: Sequence[StepLevel],
        reader: ModelReader,
        world: World | None,
        seconds: float | None,
    ) -> None:
        self._bound, self._plan, self._levels, self._reader = bound, plan, levels, reader
        self._world, self._seconds = world, seconds

    def find_best(self, step: Step) -> Alternative | None:
        """Return the best of the other actions at a place."""
        if self._world is not None:
            return self._find_exactly(step, self._world)
        others = {
            label: self._reader.outcomes(step.place.state, action)
            for label, action in self._reader.actions(step.place.state).items()
            if label != step.action
        }
        if self._seconds is not None:
            return self._search(step, others, self._seconds)
        found = [
            self._judge(step, label, self._assume(step, outcomes))
            for label, outcomes in others.items()
        ]
        # There is no price to weigh risk by: what earns most is what had to be rejected.
        most = max(found, key=lambda other: other.reward_change, default=None)
        if most is not None and most.verdict == "better":
            return replace(most, verdict="not known")
        return most

    def _find_exactly(self, step: Step, world: World) -> Alternative | None:
        options = world.look(step)
        options.pop(step.action, None)
        if not options:
            return None
        label = max(
            options,
            key=lambda name: options[name][0].reward - world.multiplier * options[name][0].risk,
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

    def _assume(self, step: Step, outcomes: Sequence[Outcome]) -> Continued:
        """Return an action that is followed by what follows the one that is taken."""
        survives = 1 - step.fails
        reward = step.reward_ahead - step.failing_reward - step.safe_reward
        risk = step.risk_ahead - step.fails
        after = (reward / survives, risk / survives) if survives > 0 else (0.0, 0.0)
        mean, fails = _add_up(outcomes)
        weight = self._levels[step.level].weight
        return Continued(weight * (mean + (1 - fails) * after[0]), fails + (1 - fails) * after[1])

    def _search(
        self, step: Step, others: dict[str, list[Outcome]], seconds: float
    ) -> Alternative | None:
        """Return the best other action: a short look at each, and a longer one at the best."""
        if not others:
            return None

        def look(label: str, seconds: float) -> Alternative:
            return self._judge(step, label, self._continue(step, others[label], seconds))

        looks = [look(label, seconds / 2 / len(others)) for label in others]
        first = max(looks, key=_rank)
        return max((look(first.action, seconds / 2), first), key=_rank)

    def _continue(self, step: Step, outcomes: Sequence[Outcome], seconds: float) -> Continued:
        """Return an action that is followed by the best plans that searches find."""
        weight, discount = self._levels[step.level].weight, self._levels[step.level].discount
        bound, level = self._share_bound(step, outcomes), step.level + 1
        reward, risk = _add_up(outcomes)
        going_on = [] if level >= self._reader.levels else [o for o in outcomes if not o.fails]
        for outcome in going_on:
            if not self._reader.actions(outcome.state):
                continue
            drawn = self._reader.levels - self._reader.horizon
            model = begin_at(self._reader, outcome.state, level, level - drawn)
            found = solve(Problem(model, bound), time_limit=seconds / len(going_on))
            if not found.safe:  # how it would go on without regard to risk is what is too risky
                found = solve(Problem(model, Constant(1.0)), time_limit=seconds / len(going_on))
            if found.certificate is not None:
                chance = float(outcome.probability)
                reward += discount * chance * float(found.certificate.reward)
                risk += chance * float(found.certificate.risk)
        return Continued(weight * reward, risk)

    def _share_bound(self, step: Step, outcomes: Sequence[Outcome]) -> RiskBound:
        """Return the bound of a search after each outcome; see the head of this module."""
        plan, level = self._plan, self._levels[step.level]
        try:
            tangent = self._bound.tangent(plan.reward)
        except BoundError:
            return Constant(0.0)
        mean, fails = _add_up(outcomes)
        if fails >= 1:
            return Constant(0.0)
        slope = tangent.slope * level.weight
        spare = (tangent.value - plan.risk) / step.reach
        here = step.risk_ahead + spare + slope * (mean - step.reward_ahead) - fails
        return Linear(slope * level.discount, here / (1 - fails))

    def _judge(self, step: Step, action: str, instead: Continued) -> Alternative:
        weight = self._levels[step.level].weight
        more_reward = step.reach * (instead.reward - weight * step.reward_ahead)
        more_risk = step.reach * (instead.risk - step.risk_ahead)
        reward, risk = self._plan.reward + more_reward, self._plan.risk + more_risk
        try:
            allowed = self._bound(reward)
        except BoundError:
            allowed = -math.inf
        least = TOLERANCE * max(1.0, abs(self._plan.reward))
        if more_reward <= least:
            verdict = "worth less" if more_reward < -least else "as good"
        else:
            verdict = "too risky" if risk > allowed + TOLERANCE else "better"
        return Alternative(action, more_reward, more_risk, allowed, verdict)


def _rank(other: Alternative) -> tuple[bool, float]:
    """Return what makes an alternative better: to be within the bound, and its reward."""
    return other.verdict != "too risky", other.reward_change


def _add_up(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return the mean reward of outcomes, and the probability of failure."""
    return (
        math.fsum(float(o.probability) * float(o.reward) for o in outcomes),
        math.fsum(float(o.probability) for o in outcomes if o.fails),
    )
