"""What a policy does at each place that its histories come to.

A policy is followed through its model as a certificate follows it (`vulcan.policies.walk`). With
reach the probability of being at a place, an action there takes reach · r of the risk and earns
γ^t reach · R̄ of the reward; from the last place back to the first, what is still to be earned and
risked from a place on is

    ahead = R̄ + γ Σ p ahead',    risk ahead = r + Σ p risk ahead'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from vulcan.model.reader import ModelReader
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.sentinels import FAILED

__all__ = ["Step", "StepLevel", "follow_steps"]

WORTH_TELLING: Final = 1e-9
"""A difference of rewards, as a share of them, that is no rounding."""


@dataclass(slots=True)
class Step:
    """What the action at one place does.

    Attributes
    ----------
    place, level, action
        Where, after how many decisions, and the label of the action.
    reach
        Probability of being there.
    fails, failing_reward, safe_reward
        Immediate risk, and the parts of R̄ that come with failure and without.
    ways
        Probability and place of each safe outcome after which the policy goes on.
    reward_ahead, risk_ahead
        What is still to be earned and risked, this action included.
    tempting
        Whether failing pays more than going on.
    likeliest, before, outcome
        Probability of the likeliest history that leads there; its last step and outcome.
    """

    place: Place
    level: int
    action: str
    reach: float = 0.0
    fails: float = 0.0
    failing_reward: float = 0.0
    safe_reward: float = 0.0
    ways: list[tuple[float, Place]] = field(default_factory=list)
    reward_ahead: float = 0.0
    risk_ahead: float = 0.0
    tempting: bool = False
    likeliest: float = 0.0
    before: Step | None = None
    outcome: str = ""

    @property
    def risk(self) -> float:
        """Probability that the mission fails by this action."""
        return self.reach * self.fails

    @property
    def history(self) -> list[tuple[str, str]]:
        """Action and outcome of each step of the likeliest history that leads there."""
        found: list[tuple[str, str]] = []
        step = self
        while step.before is not None:
            found.append((step.before.action, step.outcome))
            step = step.before
        return found[::-1]


class StepLevel(NamedTuple):
    """All that is done after the same number of decisions."""

    steps: list[Step]
    weight: float
    discount: float


def follow_steps(policy: AnyPolicy, reader: ModelReader) -> list[StepLevel]:
    """Return what a policy does at all places, level by level."""
    walk = PolicyWalk(policy, reader)
    here: dict[Place, Step] = {}
    for place in walk.begin():
        share = policy.weights[place.member]
        here[place] = Step(place, 0, walk.describe_action(place), share, likeliest=share)
    levels: list[StepLevel] = []
    weight = 1.0
    for number in range(reader.levels):
        if not here:
            break
        arrived: dict[Place, Step] = {}
        for step in here.values():
            _follow(step, walk, policy, arrived)
        levels.append(StepLevel(list(here.values()), weight, reader.discount_after(number)))
        weight *= levels[-1].discount
        here = arrived
    _look_ahead(levels)
    return levels


def _follow(step: Step, walk: PolicyWalk, policy: AnyPolicy, arrived: dict[Place, Step]) -> None:
    """Add up what an action does, and where it leads."""
    member = policy.members[step.place.member]
    rows = member.outcomes(step.place.node)
    for row, (outcome, child) in zip(rows, walk.follow(step.place, step.level), strict=True):
        probability, reward = float(outcome.probability), float(outcome.reward)
        if child == FAILED:
            step.fails += probability
            step.failing_reward += probability * reward
            continue
        step.safe_reward += probability * reward
        if child >= 0:
            target = Place(step.place.member, child, outcome.state)
            step.ways.append((probability, target))
            after = arrived.get(target)
            if after is None:
                after = Step(target, step.level + 1, walk.describe_action(target))
                arrived[target] = after
            after.reach += step.reach * probability
            if step.likeliest * probability > after.likeliest:
                after.likeliest, after.before = step.likeliest * probability, step
                after.outcome = member.labels[member.label[row]]


def _look_ahead(levels: Sequence[StepLevel]) -> None:
    """Find what is still to come from each place, and mark where failing pays more than that."""
    later: dict[Place, Step] = {}
    for level in reversed(levels):
        for step in level.steps:
            going_on = step.safe_reward + level.discount * math.fsum(
                probability * later[target].reward_ahead for probability, target in step.ways
            )
            step.reward_ahead = step.failing_reward + going_on
            step.risk_ahead = step.fails + math.fsum(
                probability * later[target].risk_ahead for probability, target in step.ways
            )
            if 0 < step.fails < 1:
                pays, brings = step.failing_reward / step.fails, going_on / (1 - step.fails)
                step.tempting = pays > brings + WORTH_TELLING * max(abs(pays), abs(brings))
        later = {step.place: step for step in level.steps}
