"""What was measured as evidence: a run goes on in the model given the true values.

A plan knows outcomes, and what is measured most often lies between them. A plan that is followed
goes on as after the outcome that `locate` finds. For planning again more can be done: the model's
`given(state, measurements)` is the model given what was measured, and the plan that is followed is
carried over to it, decision by decision, so that both what it still risks and earns and what a new
plan may risk instead are seen in the same model. docs/theory/proofs.md says what is promised then.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vulcan.errors import MismatchError
from vulcan.model.interface import Outcome, describe_model
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.parameters import shorten
from vulcan.planning.rest import begin_at
from vulcan.policies.execution import Run
from vulcan.policies.policy import Policy, PolicyBuilder
from vulcan.sentinels import FAILED

__all__ = ["carry_over", "take_evidence"]


def take_evidence(run: Run) -> None:
    """Let a run go on in the model given what was measured, if the model says which that is.

    A run that left its plan is in a state that it was told, and not where measurements led it.
    """
    reader = run.reader
    unmeasured = all(measurement is None for measurement in run.measurements)
    if unmeasured or run.left_plan or not hasattr(reader.model, "given"):
        return
    measured = reader.given(run.state, run.measurements)
    if measured.model == reader.model:
        return
    if run.place >= 0:
        policy = carry_over(run, measured)
        run.follow(policy)
    run.learn(measured)


def carry_over(run: Run, reader: ModelReader) -> Policy:
    """Return the plan of a run from where it is, with the answers of another model.

    Parameters
    ----------
    run
        A run on its plan.
    reader
        A model with the same states and actions, and the same outcomes in the same order.
    """
    plan = run.policy
    rest = ModelReader(begin_at(reader, run.state, run.level, run.step))
    about = msgspec.structs.replace(
        plan.about,
        model=describe_model(rest.model),
        fingerprint=rest.fingerprint(),
        horizon=rest.horizon,
        initial_action=rest.levels > rest.horizon,
    )
    builder, count = PolicyBuilder(about), 1
    places: dict[tuple[int, Any], int] = {(run.place, run.state): 0}
    while places:  # those of one level, in the order of their numbers
        following: dict[tuple[int, Any], int] = {}
        for node, state in places:
            label = plan.labels[int(plan.action[node])]
            outcomes = reader.outcomes(state, reader.actions(state)[label])
            rows = plan.outcomes(node)
            children = plan.child[rows.start : rows.stop].tolist()
            _compare(outcomes, children, state, label)
            for k, (child, outcome) in enumerate(zip(children, outcomes, strict=True)):
                if child >= 0:
                    place = (child, outcome.state)
                    try:
                        children[k] = following.setdefault(place, count + len(following))
                    except Exception as error:
                        raise reader.refuse_comparison(outcome.state, error) from error
            builder.add(
                label,
                label_outcomes(outcomes),
                [float(outcome.probability) for outcome in outcomes],
                [float(outcome.reward) for outcome in outcomes],
                children,
            )
        places, count = following, count + len(following)
    return builder.build()


def _compare(outcomes: list[Outcome], children: list[int], state: Any, label: str) -> None:
    """Refuse outcomes that can't be those that a plan knows."""
    if [outcome.fails for outcome in outcomes] != [child == FAILED for child in children]:
        raise MismatchError(
            f"given what was measured, action {label!r} in state {shorten(state)} has other "
            "outcomes than before; a model's given(state, measurements) must leave them as they are"
        )
