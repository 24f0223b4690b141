"""What an observer can tell apart, and what that is called.

A policy may act on what can be observed, and on nothing else. Of the outcomes of one action, an
observer can tell apart

    those with different labels, where the model gave labels,
    or else those with different next states (failure is like one more state),
    or else those with different rewards.

Outcomes that can't be told apart are one outcome, whose probability is the sum of theirs: in
searches and certificates alike, or else a certificate would speak of a policy that nobody can
follow. They are merged here, where all answers of a model pass (`observe_outcomes`). Where two
outcomes without labels differ in nothing but their rewards, the reward is part of what is observed,
and of the label.

Whether states are equal is for the states to say, also where `merges` is False. States are compared
only if they are of one action, without labels, and have the same hash.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from vulcan.errors import ModelError
from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.model.numbers import read_number
from vulcan.model.rules import Rule, Violation, check_outcomes
from vulcan.model.text import stable_text
from vulcan.parameters import shorten
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = [
    "add_up",
    "fit_labels",
    "group_outcomes",
    "label_outcomes",
    "make_plain",
    "merge_outcomes",
    "observe_outcomes",
]

PLAIN_NUMBERS: Final = frozenset((float, int, np.float64))
"""Types whose values can all be compared with floats. True and False are of another."""


def observe_outcomes(state: Any, action: Any, outcomes: Sequence[Any]) -> list[Outcome]:
    """Return what can be observed after an action: the safe outcomes, then the failures.

    Parameters
    ----------
    state, action
        Where the model was asked.
    outcomes
        What it answered.

    Raises
    ------
    ModelError
        If the answer breaks a rule, or states can't be compared.
    """
    accepted = _accept(outcomes)
    if accepted is not None:
        return accepted
    plain = [make_plain(outcome) for outcome in outcomes]
    for violation in check_outcomes(state, action, plain):
        raise ModelError(violation)
    possible = (outcome for outcome in plain if float(outcome.probability))
    try:
        return merge_outcomes(sorted(possible, key=_fails))
    except Exception as error:
        message = f"comparing the next states with each other raised {shorten(error)}"
        raise ModelError(Violation(Rule.STATES_COMPARE, message, state, action)) from error


def make_plain(outcome: Any) -> Any:
    """Return an outcome that says the same whenever it is read.

    Its numbers are Python's own, and it is no `Outcome` of a class that is derived from that. What
    is no outcome, or no number, is left as it is: `check_outcomes` says what that is.
    """
    if not isinstance(outcome, Outcome):
        return outcome
    try:
        probability, reward = outcome.probability, outcome.reward
        chance, paid = read_number(probability), read_number(reward)
        return Outcome(
            probability if chance is None else chance,
            reward if paid is None else paid,
            outcome.state,
            outcome.label,
        )
    except Exception:
        return outcome


def _accept(outcomes: Sequence[Any]) -> list[Outcome] | None:
    """Return what can be observed if plain numbers and a quick look are enough to be sure.

    Every answer of a model comes through here. It accepts nothing that `check_outcomes` would
    refuse, and leaves all that is unusual to it.
    """
    safe: list[Outcome] = []
    failing: list[Outcome] = []
    probabilities, labels, states, nameless = [], [], [], 0
    try:
        for outcome in outcomes:
            if type(outcome) is not Outcome:
                return None
            probability, reward, state = outcome.probability, outcome.reward, outcome.state
            label = outcome.label
            if not (
                type(probability) in PLAIN_NUMBERS
                and type(reward) in PLAIN_NUMBERS
                and 0 <= probability <= 1
                and -LARGEST_REWARD <= reward <= LARGEST_REWARD
                and state is not None
                and not isinstance(state, Start)
            ):
                return None
            probabilities.append(probability)
            (failing if state is FAILURE else safe).append(outcome)
            if label is not None:
                labels.append(label if type(label) is str else str(label))
                hash(state)
            elif state is FAILURE:
                nameless += 1
            else:
                states.append(state)
        if abs(math.fsum(probabilities) - 1) > SUM_TOLERANCE or len(set(labels)) < len(labels):
            return None
        observed = safe + failing
        if 0 in probabilities:
            observed = [outcome for outcome in observed if outcome.probability]
        alike = nameless > 1 or len(set(states)) < len(states)
        return merge_outcomes(observed) if alike else observed
    except Exception:
        return None  # `check_outcomes` says what it was


def merge_outcomes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes of an action with those made one that can't be told apart."""
    return [add_up(parts) for parts in group_outcomes(outcomes)]


def group_outcomes(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Return lists of outcomes that can't be told apart, in the order of their first ones."""
    together: dict[Any, list[Outcome]] = {}
    for outcome in outcomes:
        seen = (outcome.state, outcome.reward) if outcome.label is None else str(outcome.label)
        together.setdefault(seen, []).append(outcome)
    return list(together.values())


def add_up(parts: Sequence[Outcome]) -> Outcome:
    """Return the one outcome that outcomes are together; rational probabilities stay exact."""
    if len(parts) == 1:
        return parts[0]
    probabilities = [outcome.probability for outcome in parts]
    rounded = any(isinstance(probability, float) for probability in probabilities)
    total = math.fsum(probabilities) if rounded else sum(probabilities)
    # Probabilities may sum to a little more than 1.
    return Outcome(min(total, 1), parts[0].reward, parts[0].state)


def _fails(outcome: Outcome) -> bool:
    return outcome.fails


def label_outcomes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the label of each outcome of one action, all of them different.

    Labels that the model gave stand as they are. Others are the text of the state, with the reward
    where the state does not say enough. Different states whose texts are the same, or that of a
    label, are numbered.

    Raises
    ------
    ModelError
        If a state that needs one has no text.
    """
    if all(outcome.label is not None for outcome in outcomes):
        return [str(outcome.label) for outcome in outcomes]
    used = {str(outcome.label) for outcome in outcomes if outcome.label is not None}
    reached = Counter(outcome.state for outcome in outcomes if outcome.label is None)
    labels = []
    for outcome in outcomes:
        if outcome.label is not None:
            labels.append(str(outcome.label))
            continue
        text = "failure" if outcome.fails else _write(outcome.state)
        if reached[outcome.state] > 1:
            text += f", reward {repr(float(outcome.reward)).removesuffix('.0')}"
        base, number = text, 2
        while text in used:
            text = f"{base} ({number})"
            number += 1
        used.add(text)
        labels.append(text)
    return labels


def _write(state: Any) -> str:
    try:
        return stable_text(state)
    except Exception as error:
        message = f"the text of a state, which is its label, raised {shorten(error)}"
        raise ModelError(Violation(Rule.ANSWERS, message, state)) from error


def fit_labels(outcomes: Sequence[Outcome], labels: Sequence[str], recorded: Sequence[str]) -> bool:
    """Whether outcomes can be those that a policy was made with.

    There are as many, and labels that the model gives are as they were. The text of a state need
    not be the same for equal states, but where it is that of another outcome, the order has
    changed.

    Parameters
    ----------
    outcomes, labels
        What the model says now, and the labels of that.
    recorded
        The labels then.
    """
    return len(labels) == len(recorded) and all(
        now == before or (outcome.label is None and now not in recorded)
        for outcome, now, before in zip(outcomes, labels, recorded, strict=True)
    )
