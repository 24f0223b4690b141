"""A person who follows a policy, and knows nothing but what can be seen.

Of an action's outcome one sees the label that the model gave it, or else the state that it leads
to, and the reward. All outcomes of the raw model are followed, in rational numbers, with nothing of
the library but a policy's labels: what comes out is what the policy is worth in execution.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import vulcan
from vulcan import Outcome, Start


def follow(policy: Any, model: Any) -> tuple[Fraction, Fraction]:
    """Return the expected reward and the risk of a policy, each member as often as its weight."""
    weights = [Fraction(weight) for weight in policy.weights]
    weights[weights.index(max(weights))] += 1 - sum(weights)
    parts = [_follow_from(member, model, (), model.initial_state(), 0) for member in policy.members]
    reward, risk = (
        sum(w * part[k] for w, part in zip(weights, parts, strict=True)) for k in (0, 1)
    )
    return reward, risk


def _follow_from(
    policy: vulcan.Policy, model: Any, seen: tuple[str, ...], state: Any, step: int
) -> tuple[Fraction, Fraction]:
    run = policy.start()
    for label in seen:
        run.observe(label)
    if run.finished:
        assert not isinstance(state, Start)
        assert step == model.horizon or not model.actions(state)
        return Fraction(0), Fraction(0)
    started = isinstance(state, Start)
    action = run.action_label
    outcomes = state.choices[action] if started else model.outcomes(state, action)
    reward = risk = Fraction(0)
    for outcome in outcomes:
        chance = Fraction(outcome.probability)
        later_reward = later_risk = Fraction(0)
        label = name(outcome, run.expected)
        if outcome.fails:
            later_risk = Fraction(1)
        else:
            later_reward, later_risk = _follow_from(
                policy, model, (*seen, label), outcome.state, step + (not started)
            )
        discount = 1 if started else Fraction(model.discount)
        reward += chance * (Fraction(outcome.reward) + discount * later_reward)
        risk += chance * later_risk
    return reward, risk


def name(outcome: Outcome, expected: dict[str, float]) -> str:
    """Return what somebody who saw this outcome would tell."""
    if outcome.label is not None:
        return outcome.label
    place = "failure" if outcome.fails else str(outcome.state)
    if place in expected:
        return place
    told = f"{place}, reward {outcome.reward:g}"
    assert told in expected, (told, expected)
    return told
