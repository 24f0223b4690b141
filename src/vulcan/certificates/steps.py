"""What a policy does at each place that its histories come to, in the model's own states.

Places and their probabilities come from `vulcan.policies.places`, what lies ahead of them from
`vulcan.policies.prospects`. With reach the probability of being at a place, an action there takes
reach · r of the risk and earns γ^t reach · R̄ of the reward.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.model.reader import ModelReader
from vulcan.policies.places import Places, find_places, find_values, number_labels
from vulcan.policies.policy import Policy
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place
from vulcan.sentinels import FAILED, NONE

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
    places = find_places(policy, reader)
    steps = _list_steps(places, reader)
    for source, outcome, target in places.ways.tolist():
        member = policy.members[steps[source].place.member]
        steps[source].ways.append((float(member.probability[outcome]), steps[target].place))
    levels: list[StepLevel] = []
    weight = 1.0
    for number in range(1 + int(places.rows["level"].max(initial=-1))):
        levels.append(StepLevel([], weight, float(reader.discounts[number])))
        weight *= levels[-1].discount
    for step in steps:
        levels[step.level].steps.append(step)
    return levels


def _list_steps(places: Places, reader: ModelReader) -> list[Step]:
    """Return a step for each place, without the ways from it."""
    values, rows, policy = find_values(places, reader), places.rows, places.policy
    earned = [_find_rewards(member) for member in policy.members]
    labels = list(number_labels(policy))
    names = ("member", "node", "level", "state", "reach", "likeliest", "before", "outcome")
    columns = [rows[name].tolist() for name in names]
    columns += [values[name].tolist() for name in ("action", "fails", "reward_ahead", "risk_ahead")]
    steps: list[Step] = []
    for member, node, level, state, reach, likeliest, before, outcome, action, fails, *ahead in zip(
        *columns, strict=True
    ):
        step = Step(Place(member, node, places.states[state]), level, labels[action], reach, fails)
        step.failing_reward, step.safe_reward = (float(part[node]) for part in earned[member])
        step.reward_ahead, step.risk_ahead = ahead
        step.tempting = _is_tempting(step)
        step.likeliest = likeliest
        if before != NONE:
            step.before = steps[before]
            step.outcome = policy.members[member].labels[policy.members[member].label[outcome]]
        steps.append(step)
    return steps


def _find_rewards(member: Policy) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the parts of each decision's R̄ that come with failure and without."""
    owner = np.repeat(np.arange(len(member)), np.diff(member.first_outcome))
    paid, fails = member.probability * member.reward, member.child == FAILED
    failing, safe = (np.bincount(owner, paid * part, len(member)) for part in (fails, ~fails))
    return failing, safe


def _is_tempting(step: Step) -> bool:
    """Whether failing pays more at a step than going on."""
    if not 0 < step.fails < 1:
        return False
    pays = step.failing_reward / step.fails
    brings = (step.reward_ahead - step.failing_reward) / (1 - step.fails)
    return pays > brings + WORTH_TELLING * max(abs(pays), abs(brings))
