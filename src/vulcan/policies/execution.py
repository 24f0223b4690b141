"""Following a policy step by step."""

from __future__ import annotations

from typing import Any

from vulcan.errors import MismatchError, PolicyError
from vulcan.model.observations import fit_labels, label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["Run"]


class Run:
    """One mission under a policy.

    Get one from `Policy.start`. Act on `action`, tell what happened with `observe`, and stop when
    `finished`. A model that begins with a `Start` has an action before the first step: after
    `Start.draw` it is called "start", nothing is to be done, and the first observation is the start
    state that was drawn; after `Start.choose` it is the choice.

    Attributes
    ----------
    policy
        The policy that is followed: of a randomised one, the member that was drawn.
    history
        Pairs (action label, outcome label) so far.
    """

    def __init__(self, policy: Policy, reader: ModelReader | None) -> None:
        self.policy = policy
        self._reader = reader
        self._place = 0 if len(policy) else END
        self._state: Any = None if reader is None else reader.root
        self.history: list[tuple[str, str]] = []

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do: the history ended, failed, or is unplanned."""
        return self._place < 0

    @property
    def failed(self) -> bool:
        """Whether the mission failed."""
        return self._place == FAILED

    @property
    def unplanned(self) -> bool:
        """Whether the run left what an incomplete policy had planned."""
        return self._place == UNPLANNED

    @property
    def action_label(self) -> str:
        """The label of the action to take now."""
        if self.finished:
            raise PolicyError("the run is finished: there is no action to take")
        return self.policy.labels[int(self.policy.action[self._place])]

    @property
    def action(self) -> Any:
        """The action to take now: the model's own when bound to a model, else its label."""
        label = self.action_label
        if self._reader is None:
            return label
        actions = self._reader.actions(self._state)
        if label not in actions:
            raise MismatchError(
                f"the policy takes {label!r} in state {self._state!r}, where the model has "
                f"{', '.join(map(repr, actions)) or 'no actions'}"
            )
        return actions[label]

    @property
    def expected(self) -> dict[str, float]:
        """The labels that can be observed now, with their probabilities."""
        rows = self.policy.outcomes(self._place) if not self.finished else range(0)
        labels = [self.policy.labels[self.policy.label[row]] for row in rows]
        if len(set(labels)) < len(labels):
            raise PolicyError(
                f"the policy can't be followed: outcomes of {self.action_label!r} have the same "
                f"label, {', '.join(map(repr, labels))}"
            )
        chances = (float(self.policy.probability[row]) for row in rows)
        return dict(zip(labels, chances, strict=True))

    def observe(self, outcome: str | int) -> None:
        """Tell which outcome the action had.

        Parameters
        ----------
        outcome
            Its label, or its position in `expected`. Outcomes to which the model gave no label are
            called by the state that they lead to, and by the reward as well where two lead to the
            same state with different rewards ("harbour, reward 2").

        Raises
        ------
        PolicyError
            If the action has no such outcome; the message lists those that it has.
        """
        labels = list(self.expected)
        action = self.action
        position = self._find(outcome, labels)
        if self._reader is not None:
            outcomes = self._reader.outcomes(self._state, action)
            now = label_outcomes(outcomes)
            if not fit_labels(outcomes, now, labels):
                raise MismatchError(
                    f"action {action!r} in state {self._state!r} has the outcomes {now}; the "
                    f"policy was made with {labels}"
                )
            self._state = outcomes[position].state
        self.history.append((self.action_label, labels[position]))
        row = self.policy.outcomes(self._place)[position]
        self._place = int(self.policy.child[row])

    def _find(self, outcome: str | int, labels: list[str]) -> int:
        """Return the position of an outcome."""
        if (
            isinstance(outcome, int)
            and not isinstance(outcome, bool)
            and 0 <= outcome < len(labels)
        ):
            if str(outcome) in labels and labels[outcome] != str(outcome):
                raise PolicyError(
                    f"{outcome!r} may be a position or the label {str(outcome)!r}; give a label"
                )
            return outcome
        if outcome in labels:
            return labels.index(str(outcome))
        listed = ", ".join(f"{k}: {label!r}" for k, label in enumerate(labels))
        raise PolicyError(
            f"{self.action_label!r} has no outcome {outcome!r}; its outcomes are {listed}"
        )
