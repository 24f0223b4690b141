"""Any model as a Gymnasium environment.

An observation is a dictionary: `state`, and the `step` at which it is seen, because a history ends
after the horizon and the best thing to do depends on how much of it is left. States are numbered in
the order in which a walk through the model meets them, and a failure is one more; of a model with
too many states, or where every history is one, `state` is the text of the state instead.

An action is the number of a label (`ModelEnvironment.action_labels`). Not every state has all of
them: `info["action_mask"]` says which ones it has, and to do anything else fails, so that nobody
gains by it what the model does not offer. Rewards are not discounted. Every end terminates, the
horizon too, which belongs to the problem; `info["failed"]` tells failures from good ends.
"""

from __future__ import annotations

import string
from itertools import islice
from typing import Any, Final, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.model.interface import FAILURE, START, Outcome, Start
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.model.text import stable_text

__all__ = ["ModelEnvironment"]

LONGEST_TEXT: Final = 4096
"""Longer texts of states are cut."""

WALKS: Final = 100
"""So many random histories find the actions of a model that can't be enumerated."""

Observation = dict[str, Any]


class ModelEnvironment(gymnasium.Env[Observation, Any]):
    """A model as an environment; see the head of this module.

    Parameters
    ----------
    model
        Any model.
    most_states
        A model with more states is not enumerated.

    Attributes
    ----------
    model
        The model.
    states
        The states by their numbers; None if they were not enumerated.
    action_labels
        What each action is called.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (Gymnasium declares it so)

    def __init__(self, model: Any, most_states: int = 10_000) -> None:
        self.model = model
        self._reader = ModelReader(model)
        root = self._reader.root
        self._drawn = isinstance(root, Start) and _is_drawn_only(root)
        self._steps = self._reader.levels - self._drawn
        self.states = self._enumerate(most_states) if self._reader.merges else None
        self._numbers = {state: number for number, state in enumerate(self.states or ())}
        self.action_labels = self._list_actions()
        state_space: spaces.Space[Any]
        if self.states is None:
            state_space = spaces.Text(LONGEST_TEXT, min_length=0, charset=string.printable)
        else:
            state_space = spaces.Discrete(len(self.states) + 1)
        steps = spaces.Discrete(self._steps + 1)
        self.observation_space = spaces.Dict({"state": state_space, "step": steps})
        self.action_space = spaces.Discrete(len(self.action_labels))
        self.spec = EnvSpec(
            f"vulcan/{type(model).__name__}-v0",
            entry_point=f"{__name__}:ModelEnvironment",
            kwargs={"model": model, "most_states": most_states},
        )
        self._state: Any = root
        self._step = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a history; a start that is drawn is drawn here."""
        super().reset(seed=seed)
        self._state, self._step = self._reader.root, -self._drawn
        label = None
        if self._drawn:
            label = self._advance(next(iter(self._state.choices)))[1]
        return self._observe(), self._describe(label)

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do what a label says, and draw what comes of it."""
        if not self.action_space.contains(action):
            raise OptionError(f"{action!r} is not an action; they are {self.action_space}")
        offered = self._offer()
        chosen = self.action_labels[int(action)]
        reward, label = 0.0, None
        if chosen in offered:
            reward, label = self._advance(offered[chosen])
        else:
            self._state, self._step = FAILURE, self._step + 1
        return self._observe(), reward, not self._offer(), False, self._describe(label)

    def _advance(self, action: Any) -> tuple[float, str]:
        """Draw an outcome; return its reward and its label."""
        outcomes = self._reader.outcomes(self._state, action)
        number = self._draw(outcomes)
        self._state, self._step = outcomes[number].state, self._step + 1
        return float(outcomes[number].reward), label_outcomes(outcomes)[number]

    def _draw(self, outcomes: list[Outcome]) -> int:
        chances = np.cumsum([float(outcome.probability) for outcome in outcomes])
        return int(np.searchsorted(chances, self.np_random.random() * chances[-1], side="right"))

    def _offer(self) -> dict[str, Any]:
        """Return the actions that there are now, by their labels; none where a history ended."""
        if self._state is FAILURE or self._step == self._steps:
            return {}
        offered = self._reader.actions(self._state)
        if unknown := offered.keys() - set(self.action_labels):
            raise OptionError(
                f"action {min(unknown)!r} was met for the first time; a model with so many states "
                "needs most_states to be larger"
            )
        return offered

    def _observe(self) -> Observation:
        if self.states is None:
            text = "failure" if self._state is FAILURE else stable_text(self._state)
            shown = (mark if mark in string.printable else "?" for mark in text)
            return {"state": "".join(islice(shown, LONGEST_TEXT)), "step": self._step}
        number = len(self.states) if self._state is FAILURE else self._numbers[self._state]
        return {"state": number, "step": self._step}

    def _describe(self, label: str | None) -> dict[str, Any]:
        offered = self._offer()
        mask: NDArray[np.int8] = np.array([name in offered for name in self.action_labels], np.int8)
        return {"action_mask": mask, "label": label, "failed": self._state is FAILURE}

    def _enumerate(self, most: int) -> list[Any] | None:
        """Return all states that can be reached within the horizon; None if there are more."""
        found = {self._reader.root: None}
        fringe = [self._reader.root]
        for _ in range(self._reader.levels):
            reached = {
                outcome.state: None
                for state in fringe
                for _, _, outcomes in self._reader.answers(state)
                for outcome in outcomes
                if not outcome.fails
            }
            fringe = [state for state in reached if state not in found]
            found.update(dict.fromkeys(fringe))
            if not fringe or len(found) > most:
                break
        return None if len(found) > most else list(found)[self._drawn :]

    def _list_actions(self) -> list[str]:
        """Return the labels of all actions: of every state, or of those on some random walks."""
        labels: dict[str, None] = {}
        if self.states is not None:
            for state in self.states:
                labels.update(dict.fromkeys(self._reader.actions(state)))
        else:
            random = np.random.default_rng(0)
            for _ in range(WALKS):
                self._walk(labels, random)
        if not labels:
            raise OptionError("the initial state has no actions: there is nothing to do")
        return list(labels)

    def _walk(self, labels: dict[str, None], random: np.random.Generator) -> None:
        state = self._reader.root
        for _ in range(self._reader.levels):
            actions = self._reader.actions(state)
            if state is not self._reader.root or not self._drawn:
                labels.update(dict.fromkeys(actions))
            safe = []
            if actions:
                action = list(actions.values())[random.integers(len(actions))]
                safe = [o.state for o in self._reader.outcomes(state, action) if not o.fails]
            if not safe:
                return
            state = safe[random.integers(len(safe))]


def _is_drawn_only(start: Start) -> bool:
    """Whether a start is all that an initial action comes to: `reset` can neither pay nor fail."""
    outcomes = start.choices.get(START, ())
    free = all(not outcome.fails and outcome.reward == 0 for outcome in outcomes)
    return len(start.choices) == 1 and len(outcomes) > 0 and free
