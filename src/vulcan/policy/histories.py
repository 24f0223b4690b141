"""The paper's numbers of a history h, under the paper's names.

    g(h)      = Σ γ^t R(s_t, a_t, s_t+1)                  lifetime reward
    f1(h)     = Σ γ^t E[R(s_t, a_t, S_t+1)]               what h may claim against the bound
    ser(h)    = (1 - Π (1 - r_t)) / Π (1 - r_t)           sequence execution risk; 0 after failure
    er(h, π)  = P(failure after h | h, π)                 execution risk of a policy

A history is a list of pairs, the label of each action and that of its outcome, as `Run.history`
has it. It need not come to its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from vulcan.errors import OptionError, PolicyError
from vulcan.model.answers import label_outcomes
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.reader import ModelReader
from vulcan.policy.policy import Policy

History = Sequence[tuple[str, str]]


def g(model: Any, history: History) -> float:
    """Return the lifetime reward of a history.

    Examples
    --------
    >>> from vulcan.domains import Bandit
    >>> g(Bandit(3), [("play 1", "pays 1"), ("play 3", "pays 0.4")])
    1.4
    """
    return math.fsum(weight * float(taken.reward) for weight, taken, _ in _walk(model, history))


def f1(model: Any, history: History) -> float:
    """Return f₁, the paper's choice of f: the sum of the expected rewards of its actions."""
    return math.fsum(
        weight * float(outcome.probability * outcome.reward)
        for weight, _, outcomes in _walk(model, history)
        for outcome in outcomes
    )


def ser(model: Any, history: History) -> float:
    """Return the sequence execution risk of a history; 0 for one that ends in failure."""
    survival = 1.0
    for _, taken, outcomes in _walk(model, history):
        if taken.fails:
            return 0.0
        survival *= 1 - math.fsum(float(o.probability) for o in outcomes if o.fails)
    return (1 - survival) / survival


def er(policy: Policy, history: History = ()) -> float:
    """Return the execution risk of a policy after a history: the probability that it fails later.

    Raises
    ------
    PolicyError
        If the policy takes another action somewhere.
    """
    run = policy.start()
    for action, outcome in history:
        if run.finished or action != run.action_label:
            takes = "has ended" if run.finished else f"takes {run.action_label!r}"
            raise PolicyError(f"after {run.history} the policy {takes}, not {action!r}")
        run.observe(outcome)
    return run.risk


def _walk(model: Any, history: History) -> Iterator[tuple[float, Outcome, list[Outcome]]]:
    """Yield the discount γ^t, the outcome and all outcomes of each decision of a history."""
    reader = ModelReader(model)
    state = reader.root
    for level, (action, outcome) in enumerate(history):
        over = level == reader.levels or state is FAILURE
        actions = {} if over else reader.actions(state)
        if action not in actions:
            known = ", ".join(map(repr, actions)) or "none: the history has ended"
            raise OptionError(f"step {level + 1}: no action {action!r}; there is {known}")
        outcomes = reader.outcomes(state, actions[action])
        labels = label_outcomes(outcomes)
        if outcome not in labels:
            known = ", ".join(map(repr, labels))
            raise OptionError(
                f"step {level + 1}: {action!r} has no outcome {outcome!r}, but {known}"
            )
        taken = outcomes[labels.index(outcome)]
        yield float(reader.weights[level]), taken, outcomes
        state = taken.state
