"""What is left of a mission, as a model of its own.

It begins in the state that the mission is in, has the steps that are left, and answers as the model
does. Rewards are discounted from there on. A model may have more to give: `compile_from(state)`,
its compiled form from a state on.
"""

from __future__ import annotations

from typing import Any

from vulcan.model.arrays import ArrayModel
from vulcan.model.interface import Outcome, describe_model
from vulcan.model.reader import ModelReader
from vulcan.model.text import stable_text

__all__ = ["Rest", "begin_at"]


class Rest:
    """What is left of a mission.

    Parameters
    ----------
    reader
        The model of the whole mission.
    state, step
        Where the mission is, and how many steps were taken.
    """

    def __init__(self, reader: ModelReader, state: Any, step: int) -> None:
        self._model, self._state, self._step = reader.model, state, step
        self.horizon = reader.horizon - step
        self.discount = reader.discount_after(level=1)
        self.merges = reader.merges
        self.fingerprint = f"{reader.fingerprint()} at {step} in {stable_text(state)}"
        self.compiled = None
        if hasattr(reader.model, "compile_from"):
            self.compiled = reader.model.compile_from(state)
        # What a model may have is asked for by name, so that it is here only if it is there.
        for name, shifted in (
            ("action_label", reader.model),
            ("reward_to_go_bound", self),
            ("value_to_go_bound", self),
            ("risk_to_go_bound", self),
        ):
            if hasattr(reader.model, name):
                own = "" if shifted is reader.model else "_"
                setattr(self, name, getattr(shifted, own + name))

    def __repr__(self) -> str:
        return f"{describe_model(self._model)} after {self._step} steps"

    def initial_state(self) -> Any:
        """Return the state that the mission is in."""
        return self._state

    def actions(self, state: Any) -> Any:
        """Return the model's actions."""
        return self._model.actions(state)

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the model's outcomes."""
        answer: list[Outcome] = self._model.outcomes(state, action)
        return answer

    def _reward_to_go_bound(self, state: Any, step: int) -> Any:
        return self._model.reward_to_go_bound(state, step + self._step)

    def _value_to_go_bound(self, state: Any, step: int, price: float) -> Any:
        return self._model.value_to_go_bound(state, step + self._step, price)

    def _risk_to_go_bound(self, state: Any, action: Any, step: int) -> Any:
        return self._model.risk_to_go_bound(state, action, step + self._step)


def begin_at(reader: ModelReader, state: Any, level: int, step: int) -> Any:
    """Return the model of what is left after some decisions: before the first, the model itself.

    Parameters
    ----------
    reader
        The model of the whole mission.
    state
        Where the mission is.
    level, step
        How many decisions and how many steps were taken.
    """
    if level == 0:
        return reader.model
    if isinstance(reader.model, ArrayModel):
        return reader.model.begin_at(state, reader.horizon - step)
    return Rest(reader, state, step)
