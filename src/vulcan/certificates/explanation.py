"""Where a policy earns its reward and takes its risk, and whether it fails on purpose.

A policy is followed through its model as a certificate follows it (`vulcan.policies.walk`): with
reach(place) the probability of being at a place, an action there takes reach · r of the risk and
earns γ^t reach · R̄ of the reward. Both are added up over all places of the same state and action.

An action that surely fails where another would not is a failure on purpose. So is, less plainly, a
risk that is taken where failing pays more than going on: with F the mean reward of the failing
outcomes and G that of the safe ones, what follows them included, F > G. Both are nearly always
mistakes of the model: failing costs less there than going on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.certificates.problem import Problem, require_problem
from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.parameters import shorten
from vulcan.policies.policy import open_own_model
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.runtime.garbage import pause_collection
from vulcan.sentinels import FAILED
from vulcan.tolerance import TOLERANCE

__all__ = ["Choice", "Explanation", "SureFailure", "describe_sure_failures", "explain"]

LONGEST_STATE: Final = 80
"""Characters of a state's text."""

WORTH_TELLING: Final = 1e-9
"""A difference of rewards, as a share of them, that is no rounding."""


@dataclass(frozen=True)
class Choice:
    """What an action does, over all histories in which it is taken.

    Attributes
    ----------
    action, state
        The action and the state in which it is taken; "" for all states together.
    times
        How often it is taken: the expected number of times.
    reward
        What it earns in expectation, discounted.
    risk
        Probability that the mission fails by it.
    tempting
        The part of this risk that is taken where failing pays more than going on.
    """

    action: str
    state: str
    times: float = 0.0
    reward: float = 0.0
    risk: float = 0.0
    tempting: float = 0.0


@dataclass(frozen=True)
class SureFailure:
    """An action that surely fails.

    Attributes
    ----------
    action, state
        The action and the state in which it is taken.
    probability
        How likely it is that the policy comes there.
    instead, instead_risk
        The action there that is the least likely to fail at once, and how likely it is to; None if
        all others surely fail, too.
    """

    action: str
    state: str
    probability: float
    instead: str | None
    instead_risk: float | None


@dataclass(frozen=True)
class Explanation:
    """Where a policy earns its reward and takes its risk.

    Attributes
    ----------
    reward, risk
        What it earns and risks in all.
    failures
        Actions that surely fail, the most likely first.
    choices
        All pairs of an action and a state, those that take the most risk first.
    actions
        The same for all states together.
    """

    reward: float
    risk: float
    failures: tuple[SureFailure, ...]
    choices: tuple[Choice, ...]
    actions: tuple[Choice, ...]

    @property
    def deliberate(self) -> float:
        """Probability of failing on purpose: surely, where something else could be done."""
        found = (failure for failure in self.failures if failure.instead is not None)
        return math.fsum(failure.probability for failure in found)

    @property
    def tempting(self) -> float:
        """The part of the risk that is taken where failing pays more than going on."""
        return math.fsum(choice.tempting for choice in self.actions)


@dataclass(slots=True)
class _Step:
    """What the action at one place does."""

    place: Place
    action: str
    reach: float
    fails: float = 0.0
    failing_reward: float = 0.0
    safe_reward: float = 0.0
    ways: list[tuple[float, Place]] = field(default_factory=list)
    tempting: bool = False


class _Level(NamedTuple):
    """All that is done after the same number of decisions."""

    steps: list[_Step]
    weight: float
    discount: float


def explain(problem: Problem, policy: AnyPolicy) -> Explanation:
    """Say where a policy earns its reward and takes its risk, and whether it fails on purpose.

    Parameters
    ----------
    problem
        The model that the policy was made for, with any risk bound.
    policy
        Any policy, deterministic or randomised.

    Returns
    -------
    Explanation
        What each action does in each state. `deliberate` is how likely a failure on purpose is,
        and `failures` says where.

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
    """
    require_problem(problem)
    reader = open_own_model(policy.about, problem.model)
    with pause_collection():
        levels = _follow(PolicyWalk(policy, reader), reader, policy.weights)
        _mark_tempting(levels)
        by_state: dict[tuple[str, Any], list[Choice]] = {}
        by_action: dict[str, list[Choice]] = {}
        for level in levels:
            for step in level.steps:
                choice = _describe(step, level.weight)
                by_state.setdefault((step.action, step.place.state), []).append(choice)
                by_action.setdefault(step.action, []).append(choice)
    actions = _sort(_join(action, "", found) for action, found in by_action.items())
    return Explanation(
        reward=math.fsum(choice.reward for choice in actions),
        risk=math.fsum(choice.risk for choice in actions),
        failures=_find_sure_failures(levels, reader),
        choices=_sort(
            _join(action, shorten(state, LONGEST_STATE), found)
            for (action, state), found in by_state.items()
        ),
        actions=actions,
    )


def describe_sure_failures(policy: AnyPolicy) -> str | None:
    """Return which actions of a policy surely fail, in a line; None if none does."""
    found: dict[str, int] = {}
    for member in policy.members:
        if not len(member):
            continue
        fails = np.logical_and.reduceat(member.child == FAILED, member.first_outcome[:-1])
        for number, count in zip(*np.unique(member.action[fails], return_counts=True), strict=True):
            label = member.labels[number]
            found[label] = found.get(label, 0) + int(count)
    if not found:
        return None
    listed = ", ".join(f"{label!r} in {count:,}" for label, count in found.items())
    return (
        f"{listed} of {len(policy):,} decisions; does failing cost less than going on? "
        "See vulcan explain"
    )


def _follow(walk: PolicyWalk, reader: ModelReader, weights: Sequence[float]) -> list[_Level]:
    """Return what happens at all places, level by level."""
    reach = {place: weights[place.member] for place in walk.begin()}
    levels: list[_Level] = []
    weight = 1.0
    for number in range(reader.levels):
        if not reach:
            break
        steps: list[_Step] = []
        arrived: dict[Place, float] = {}
        for place, here in reach.items():
            step = _Step(place, walk.describe_action(place), here)
            for outcome, child in walk.follow(place, number):
                probability, reward = float(outcome.probability), float(outcome.reward)
                if child == FAILED:
                    step.fails += probability
                    step.failing_reward += probability * reward
                    continue
                step.safe_reward += probability * reward
                if child >= 0:
                    target = Place(place.member, child, outcome.state)
                    arrived[target] = arrived.get(target, 0.0) + here * probability
                    step.ways.append((probability, target))
            steps.append(step)
        levels.append(_Level(steps, weight, reader.discount_after(number)))
        weight *= levels[-1].discount
        reach = arrived
    return levels


def _mark_tempting(levels: Sequence[_Level]) -> None:
    """Mark where failing pays more than going on."""
    values: dict[Place, float] = {}
    for level in reversed(levels):
        later, values = values, {}
        for step in level.steps:
            going_on = step.safe_reward + level.discount * math.fsum(
                probability * later[target] for probability, target in step.ways
            )
            values[step.place] = step.failing_reward + going_on
            if 0 < step.fails < 1:
                pays, brings = step.failing_reward / step.fails, going_on / (1 - step.fails)
                step.tempting = pays > brings + WORTH_TELLING * max(abs(pays), abs(brings))


def _describe(step: _Step, weight: float) -> Choice:
    risk = step.reach * step.fails
    earned = weight * step.reach * (step.failing_reward + step.safe_reward)
    return Choice(step.action, "", step.reach, earned, risk, risk if step.tempting else 0.0)


def _join(action: str, state: str, choices: Iterable[Choice]) -> Choice:
    """Return several choices as one."""
    found = list(choices)
    return Choice(
        action,
        state,
        times=math.fsum(choice.times for choice in found),
        reward=math.fsum(choice.reward for choice in found),
        risk=math.fsum(choice.risk for choice in found),
        tempting=math.fsum(choice.tempting for choice in found),
    )


def _sort(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    return tuple(sorted(choices, key=lambda choice: (-choice.risk, -abs(choice.reward))))


def _find_sure_failures(levels: Iterable[_Level], reader: ModelReader) -> tuple[SureFailure, ...]:
    """Return the actions that surely fail, and what the model offers instead."""
    found: dict[tuple[str, Any], float] = {}
    for level in levels:
        for step in level.steps:
            if step.fails > 0 and step.fails >= 1 - TOLERANCE:
                key = (step.action, step.place.state)
                found[key] = found.get(key, 0.0) + step.reach
    failures = []
    for (action, state), probability in found.items():
        others = {
            label: _find_risk(reader.outcomes(state, other))
            for label, other in reader.actions(state).items()
            if label != action
        }
        safest = min(others, key=others.__getitem__, default=None)
        if safest is not None and others[safest] >= 1 - TOLERANCE:
            safest = None
        failures.append(
            SureFailure(
                action,
                shorten(state, LONGEST_STATE),
                probability,
                safest,
                None if safest is None else others[safest],
            )
        )
    return tuple(sorted(failures, key=lambda failure: -failure.probability))


def _find_risk(outcomes: Iterable[Outcome]) -> float:
    return math.fsum(float(outcome.probability) for outcome in outcomes if outcome.fails)
