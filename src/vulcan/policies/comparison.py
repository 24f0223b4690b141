"""What a policy was made with, beside what its model answers now.

A policy carries the model's answer about each action that it takes: of each outcome a label, a
probability, a reward, and whether it fails. Whoever follows a policy through a model compares each
answer that he meets with that, to the last digit: certificates, runs, explanations and drawings
alike. A model that answers otherwise is not the one that the policy was made for, and what was
certified says nothing about it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vulcan.errors import MismatchError
from vulcan.model.interface import FAILURE, Outcome, describe_model
from vulcan.model.observations import fit_labels, label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.parameters import shorten
from vulcan.policies.policy import About

__all__ = ["Answer", "Comparison", "Record", "describe_mismatch"]


class Record(NamedTuple):
    """What a policy was made with at one decision.

    Attributes
    ----------
    action
        The label of its action.
    labels
        The labels of that action's outcomes.
    said
        Of each outcome its probability, its reward, and whether it fails.
    """

    action: str
    labels: list[str]
    said: list[tuple[float, float, bool]]


class Answer(NamedTuple):
    """What the model says now: its own action, the outcomes of that, and their labels."""

    action: Any
    outcomes: list[Outcome]
    labels: list[str]


class Comparison:
    """Asks a model what a policy was made with, and refuses other answers.

    Parameters
    ----------
    about
        Where the policy comes from.
    reader
        The model, asked with care.
    """

    def __init__(self, about: About, reader: ModelReader) -> None:
        self._about, self._reader = about, reader

    def ask(self, state: Any, label: str, level: int) -> Answer:
        """Return what the model says of an action, or refuse a state that has none such.

        Parameters
        ----------
        state
            Where the policy takes it.
        label
            What the policy calls it.
        level
            How many decisions came before.
        """
        actions = self._reader.actions(state)
        if label not in actions:
            has = ", ".join(map(repr, actions)) or "no actions"
            raise self.refuse(
                f"step {level + 1}: the policy takes {label!r} in state {shorten(state)}, where "
                f"the model has {has}"
            )
        outcomes = self._reader.outcomes(state, actions[label])
        return Answer(actions[label], outcomes, label_outcomes(outcomes))

    def compare(self, answer: Answer, record: Record, state: Any, level: int) -> None:
        """Refuse an answer that differs from what the policy was made with.

        Parameters
        ----------
        answer, record
            What is compared.
        state, level
            Where the model was asked, and how many decisions came before.
        """
        _, outcomes, labels = answer
        if labels != record.labels and not fit_labels(outcomes, labels, record.labels):
            raise self.refuse(
                f"{_describe_place(record, state, level)} has the outcomes {labels}; the policy "
                f"was made with {record.labels}"
            )
        said = [(float(o.probability), float(o.reward), o.state is FAILURE) for o in outcomes]
        if said == record.said:
            return
        for now, label, before in zip(said, record.labels, record.said, strict=True):
            if now != before:
                raise self.refuse(
                    f"{_describe_place(record, state, level)} has another outcome {label!r}: "
                    f"(probability, reward, fails) was {before}, is {now}"
                )

    def require_end(self, state: Any, level: int) -> None:
        """Refuse a state that has actions, where the policy ends.

        Parameters
        ----------
        state, level
            Where that is, and after how many decisions.
        """
        if level < self._reader.levels and self._reader.actions(state):
            raise self.refuse(
                f"after {level} steps the policy ends in state {shorten(state)}, which has actions"
            )

    def require_step(self, state: Any, level: int) -> None:
        """Refuse a decision beyond the horizon; parameters as for `require_end`."""
        if level >= self._reader.levels:
            raise self.refuse(f"the policy acts beyond the horizon, in {shorten(state)}")

    def refuse(self, detail: str) -> MismatchError:
        """Return the error that says how policy and model differ."""
        return describe_mismatch(self._about, self._reader.model, f": {detail}")


def _describe_place(record: Record, state: Any, level: int) -> str:
    return f"step {level + 1}: action {record.action!r} in state {shorten(state)}"


def describe_mismatch(about: About, model: Any, detail: str = "") -> MismatchError:
    """Return the error of a policy and a model that don't belong together."""
    return MismatchError(
        f"this policy was made for {about.model} (horizon {about.horizon}); "
        f"{describe_model(model)} is another, or no longer answers the same{detail}"
    )
