"""Where a policy earns its reward and takes its risk, and whether it fails on purpose.

What is done at each place (`vulcan.certificates.steps`) is added up over all places of the same
state and action, and the places that take the most risk are listed one by one.

An action that surely fails where another would not is a failure on purpose. So is, less plainly, a
risk that is taken where failing pays more than going on: with F the mean reward of the failing
outcomes and G that of the safe ones, what follows them included, F > G. Both are nearly always
mistakes of the model: failing costs less there than going on.

What else could be done there, and what another bound would change, is for
`vulcan.planning.explain` to add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vulcan.certificates.steps import Step, StepLevel
from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.model.text import stable_text
from vulcan.policies.randomised import AnyPolicy
from vulcan.sentinels import FAILED
from vulcan.tolerance import TOLERANCE

__all__ = [
    "Alternative",
    "Choice",
    "Explanation",
    "RiskyPlace",
    "SureFailure",
    "WhatIf",
    "add_up_steps",
    "describe_places",
    "describe_sure_failures",
]

LONGEST_STATE: Final = 80
"""Characters of a state's text."""


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
class Alternative:
    """What could be done at a place instead, the rest of the plan kept.

    Attributes
    ----------
    action
        The other action.
    reward_change, risk_change
        What the whole plan would earn and risk more by it.
    allowed
        The risk that the bound would accept for the whole plan then.
    verdict
        "worth less", or "as good" to the last digits; or else "too risky" for the bound; or else
        "better": the plan is not the best one. Where only the step itself could be compared, "not
        known" instead of "better".
    careful
        For what is too risky: how much more the whole plan would earn (nearly always less) if it
        went on as safely as possible there. None if that is too risky as well, or not known.
    """

    action: str
    reward_change: float
    risk_change: float
    allowed: float
    verdict: str
    careful: float | None = None


@dataclass(frozen=True)
class RiskyPlace:
    """A place of the plan that takes risk.

    Attributes
    ----------
    action, state
        What is done there, and in which state.
    step
        How many decisions came before.
    history
        Action and outcome of each of these, in the likeliest history that leads there.
    reach
        How likely it is that the policy comes there.
    fails
        How likely the action is to fail at once.
    risk
        The product of both: what the place adds to the plan's risk.
    alike, alike_risk
        At how many places the same is done in the same state, and what they add together.
    alternative
        The best of the other actions; None if there is none, or nobody looked.
    """

    action: str
    state: str
    step: int
    history: tuple[tuple[str, str], ...]
    reach: float
    fails: float
    risk: float
    alike: int
    alike_risk: float
    alternative: Alternative | None = None


@dataclass(frozen=True)
class WhatIf:
    """What another bound would change.

    Attributes
    ----------
    scale
        Times the allowed risk.
    reward, risk
        What a plan for it earns and risks; None if none was found.
    upper_bound
        No policy earns more under it; None if that is not known.
    source
        "solved": such a plan was made and certified. "kept": the plan is within that bound, too,
        and nothing would change. "price": the reward is estimated, to first order, as
        reward + price · (scale - 1) · allowed, and the rest is not known.
    """

    scale: float
    reward: float | None
    risk: float | None
    upper_bound: float | None
    source: str


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
    places
        Of each action in each state the place that takes the most risk, those that take the most
        together first.
    steps
        The risk that each step takes.
    compared
        What alternatives were compared by, in a sentence; None if none were looked for.
    price
        What the best reward gains per unit of allowed risk; None if that is not known.
    what_if
        What other bounds would change.
    """

    reward: float
    risk: float
    failures: tuple[SureFailure, ...]
    choices: tuple[Choice, ...]
    actions: tuple[Choice, ...]
    places: tuple[RiskyPlace, ...] = ()
    steps: tuple[float, ...] = ()
    compared: str | None = None
    price: float | None = None
    what_if: tuple[WhatIf, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Explanation: reward {self.reward:.6g}, risk {self.risk:.4g}, "
            f"{len(self.choices):,} choices, {len(self.places):,} places>"
        )

    @property
    def deliberate(self) -> float:
        """Probability of failing on purpose: surely, where something else could be done."""
        found = (failure for failure in self.failures if failure.instead is not None)
        return math.fsum(failure.probability for failure in found)

    @property
    def tempting(self) -> float:
        """The part of the risk that is taken where failing pays more than going on."""
        return math.fsum(choice.tempting for choice in self.actions)


def add_up_steps(levels: Sequence[StepLevel], reader: ModelReader) -> Explanation:
    """Return what each action does in each state, without places and alternatives."""
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
            _join(action, _describe_state(state), found)
            for (action, state), found in by_state.items()
        ),
        actions=actions,
        steps=tuple(math.fsum(step.risk for step in level.steps) for level in levels),
    )


def describe_places(alike: Sequence[Step], alternative: Alternative | None) -> RiskyPlace:
    """Return places at which the same is done in the same state, the riskiest first, as one."""
    step = alike[0]
    return RiskyPlace(
        action=step.action,
        state=_describe_state(step.place.state),
        step=step.level,
        history=tuple(step.history),
        reach=step.reach,
        fails=step.fails,
        risk=step.risk,
        alike=len(alike),
        alike_risk=math.fsum(other.risk for other in alike),
        alternative=alternative,
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


def _describe_state(state: Any) -> str:
    """Return the text of a state; of a long one begin and end, where histories differ."""
    text = stable_text(state)
    if len(text) <= LONGEST_STATE:
        return text
    half = (LONGEST_STATE - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


def _describe(step: Step, weight: float) -> Choice:
    risk = step.risk
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


def _find_sure_failures(
    levels: Iterable[StepLevel], reader: ModelReader
) -> tuple[SureFailure, ...]:
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
                _describe_state(state),
                probability,
                safest,
                None if safest is None else others[safest],
            )
        )
    return tuple(sorted(failures, key=lambda failure: -failure.probability))


def _find_risk(outcomes: Iterable[Outcome]) -> float:
    return math.fsum(float(outcome.probability) for outcome in outcomes if outcome.fails)
