"""A reader that looks twice: for certificates, which must not believe what only seems so.

Equal states are one state to everybody, and a model is asked about the first of them that was met.
Two things can make that wrong, and neither shows in the answers themselves:

    a *double*, a state that equals another and differs in something that is not compared, so that
    the model could answer differently. Doubles are asked what the state was asked that they equal,
    and must answer the same.

    a state that the model changes when it is asked. It must equal afterwards what it was before.

Both are looked for in samples: all is looked at up to a stated number, then every second one, every
fourth and so on, so that long walks are sampled from their beginning to their end. States that are
alike in everything (`vulcan.model.likeness`) are never asked twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from vulcan.errors import ModelError
from vulcan.model.agreement import Agreement
from vulcan.model.interface import FAILURE, Outcome, Start
from vulcan.model.likeness import copy_value, find_difference, is_equal
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation, refuse_double

__all__ = ["CarefulReader"]

SAMPLED_STATES: Final = 1_000
"""So many states are all remembered, and so many arrivals in them looked at; then ever fewer."""

SAMPLED_QUESTIONS: Final = 100
"""In so many questions it is looked for changes of the state; then in ever fewer."""

MOST_DOUBLES: Final = 1_000
"""So many questions are asked of doubles."""

Said = Sequence[Any]
"""What a model answered: the labels of actions, or outcomes."""


class CarefulReader(ModelReader):
    """Asks a model, checks each answer, and looks twice at a sample of states.

    Parameters
    ----------
    model
        The model to ask.

    Raises
    ------
    ModelError
        Also where equal states answer differently, or a question changes a state.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._states, self._arrivals = _Sample(SAMPLED_STATES), _Sample(SAMPLED_STATES)
        self._questions = _Sample(SAMPLED_QUESTIONS)
        self._known: dict[Any, _Known] = {self.root: _Known(self.root)}
        self._waiting: deque[tuple[_Known, Any, str | None]] = deque()
        self._asked = 0
        self._agreement = Agreement(self, self.merges)

    def _read_actions(self, state: Any) -> dict[str, Any]:
        actions = super()._read_actions(state)
        self._note(state, list(actions))
        return actions

    def _ask_outcomes(self, state: Any, action: Any) -> list[Outcome]:
        outcomes = super()._ask_outcomes(state, action)
        self._note(state, outcomes, action)
        return outcomes

    def _ask_model(self, kind: str, state: Any, *action: Any) -> tuple[Any, ...]:
        if not self._questions.take():
            return super()._ask_model(kind, state, *action)
        before, number = copy_value(state), hash(state)
        comparable = is_equal(before, state)
        answer = super()._ask_model(kind, state, *action)
        if (comparable and not is_equal(before, state)) or hash(state) != number:
            message = f"the model changed the state itself when it was asked for its {kind}"
            where = (before, action[0] if action else None)
            raise ModelError(Violation(Rule.STATES_STAY, message, *where, state))
        return answer

    def _examine(self, state: Any, action: Any, given: tuple[Any, ...]) -> list[Outcome]:
        observed = super()._examine(state, action, given)
        # Where nothing merges, those states still do that one action leads to.
        if self.merges or len(observed) < len(given):
            for outcome in given:
                if outcome.state is not FAILURE and outcome.probability:
                    self._meet(outcome.state)
        return observed

    def _meet(self, state: Any) -> None:
        """Remember a state, or the double that it is of another."""
        try:
            known = self._known.get(state)
        except Exception as error:
            raise self.refuse_comparison(state, error) from error
        if known is None:
            if self._states.take():
                self._known[state] = _Known(state)
        elif known.state is not state and self._arrivals.take() and known.add(state):
            self._waiting += ((known, state, question) for question in known.answers)

    def _note(self, state: Any, said: Said, *action: Any) -> None:
        """Remember an answer, and ask the doubles of the state as well."""
        known = self._known.get(state)
        if known is None or isinstance(state, Start):
            return
        known.begin(state)
        question = self.label(state, *action) if action else None
        known.answers[question] = said
        self._waiting += ((known, double, question) for double in known.doubles)
        while self._waiting:
            self._ask_double(*self._waiting.popleft())

    def _ask_double(self, known: _Known, double: Any, question: str | None) -> None:
        """Refuse a double that answers differently."""
        if self._asked == MOST_DOUBLES:
            return
        self._asked += 1
        before = known.answers[question]
        actions = super()._read_actions(double)
        said: Said = list(actions)
        agrees = said == before
        if question is not None and question in actions:
            said = super()._ask_outcomes(double, actions[question])
            agree = self._agreement.on_outcomes_but_texts
            agrees = len(said) == len(before) and all(map(agree, before, said))
        if not agrees:
            raise ModelError(refuse_double(known.state, double, question, (before, said)))


class _Sample:
    """Takes all of the first, and then ever fewer."""

    def __init__(self, size: int) -> None:
        self._size, self._stride = size, 1
        self._met = self._taken = 0

    def take(self) -> bool:
        """Whether the next one is looked at."""
        self._met += 1
        if self._met % self._stride:
            return False
        self._taken += 1
        if self._taken % self._size == 0:
            self._stride *= 2
        return True


class _Known:
    """A state, what it was asked and answered, and its doubles.

    Attributes
    ----------
    state
        The one that is asked, or the first that was met.
    answers
        By the labels of the actions that were asked about; that to which actions there are, by
        None.
    doubles
        States that equal it, and are not alike.
    """

    __slots__ = ("answers", "doubles", "state")

    def __init__(self, state: Any) -> None:
        self.state = state
        self.answers: dict[str | None, Said] = {}
        self.doubles: list[Any] = []

    def add(self, state: Any) -> bool:
        """Add a double, and return whether it is one that was not met before."""
        new = all(find_difference(met, state) for met in (self.state, *self.doubles))
        if new:
            self.doubles.append(state)
        return new

    def begin(self, state: Any) -> None:
        """Let the state be the one that is asked."""
        if state is not self.state and not self.answers:
            met, self.state, self.doubles = (self.state, *self.doubles), state, []
            for other in met:
                self.add(other)
