"""Whether two answers of a model agree."""

from __future__ import annotations

from typing import Any

from vulcan.model.interface import Outcome
from vulcan.model.likeness import attempt, is_equal, resembles
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import Questions

__all__ = ["Agreement"]


class Agreement:
    """Compares what a model said with what it says now, or of an equal state.

    Policies know actions and outcomes by their labels, so those have to agree as well.

    Parameters
    ----------
    questions
        The model.
    merges
        Whether its states merge; only then they need an equality.
    """

    def __init__(self, questions: Questions, merges: bool) -> None:
        self._questions, self._merges = questions, merges

    def on_states(self, one: Any, other: Any) -> bool:
        """Whether two states are the same."""
        return is_equal(one, other) if self._merges else resembles(one, other)

    def on_actions(self, one: Any, other: Any) -> bool:
        """Whether two actions are the same."""
        labels = (attempt(self._questions.label, None, action) for action in (one, other))
        return resembles(one, other) and is_equal(*labels)

    def on_outcomes(self, one: Any, other: Any) -> bool:
        """Whether two outcomes are the same."""
        labels = (attempt(label_outcomes, [outcome]) for outcome in (one, other))
        return self.on_outcomes_but_texts(one, other) and is_equal(*labels)

    def on_outcomes_but_texts(self, one: Any, other: Any) -> bool:
        """Whether two outcomes are the same but for the texts of their states.

        Equal states may have different texts.
        """
        if not isinstance(one, Outcome) or not isinstance(other, Outcome):
            return type(one) is type(other)
        return (
            is_equal(one.probability, other.probability)
            and is_equal(one.reward, other.reward)
            and is_equal(one.label, other.label)
            and self.on_states(one.state, other.state)
        )
