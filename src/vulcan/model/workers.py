"""Several processes that answer for one model.

A search asks for all actions of a state at once, an exact solver for those of many states, and
their outcomes don't depend on each other. So they are asked in parallel, and come back in the order
of the actions: a search gives the same result with any number of workers, and asks nothing that it
would not have asked alone. It pays where an answer takes a millisecond or more; passing a question
to another process and back takes about a tenth of that.

Workers hold the model (`vulcan.executors`): they are processes of this machine, or actors of a Ray
cluster. A question whose worker is lost is asked again, of another one. Workers that don't answer
are killed once the time limit is over, and some patience (`vulcan.runtime.patience`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Self

from vulcan.errors import ModelError, OptionError
from vulcan.executors.base import Executor, LateError, Line
from vulcan.executors.crew import Crew
from vulcan.model.compiled import forget_compiled
from vulcan.model.interface import Outcome, Start
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.runtime.monitor import is_late, note_answer

__all__ = ["WorkerReader"]

PORTIONS: Final = 4
"""Into how many parts the questions of a worker are divided, since some take longer than others."""


class WorkerReader(ModelReader):
    """A reader that asks for the outcomes of a state in several processes.

    Parameters
    ----------
    model
        The model; it must be possible to pickle it, its states and its actions.
    executor
        Where they are.
    """

    def __init__(self, model: Any, executor: Executor) -> None:
        super().__init__(model)
        self._workers = executor.workers
        self._crew = Crew(executor, Answerer, forget_compiled(model))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crew.close()

    def answers(self, state: Any) -> list[tuple[str, Any, list[Outcome]]]:
        """Return each action of a state with its label and its outcomes, asked in parallel."""
        return next(self.answer_all([state]))

    def answer_all(self, states: Sequence[Any]) -> Iterator[list[tuple[str, Any, list[Outcome]]]]:
        """Yield the answers about each of some states, all of them asked in parallel."""
        if any(isinstance(state, Start) for state in states):
            yield from map(super().answers, states)
            return
        actions = [self.actions(state) for state in states]
        questions = [
            (state, action)
            for state, some in zip(states, actions, strict=True)
            for action in some.values()
        ]
        answers = iter(self._ask(questions))
        for some in actions:
            yield [(label, action, next(answers)) for label, action in some.items()]

    def _ask(self, questions: Sequence[tuple[Any, Any]]) -> list[list[Outcome]]:
        """Return the outcomes of actions in states."""
        portion = max(1, len(questions) // (PORTIONS * self._workers))
        portions = [questions[k : k + portion] for k in range(0, len(questions), portion)]
        began = perf_counter()
        try:
            answers = self._crew.map("answer", portions, lambda: is_late(began))
        except (ModelError, OptionError):
            raise
        except LateError as error:
            raise self._give_up("outcomes", began, *error.thing[0]) from None
        except Exception as error:  # workers that died, or an answer that can't be sent
            message = f"the workers gave no answer: {error!r}"
            raise ModelError(Violation(Rule.ANSWERS, message, questions[0][0])) from error
        note_answer(perf_counter() - began)
        return [outcomes for some in answers for outcomes in some]


class Answerer:
    """What a worker holds: a model, asked with care."""

    def __init__(self, line: Line, model: Any) -> None:
        self._reader = ModelReader(model)

    def answer(self, questions: Sequence[tuple[Any, Any]]) -> list[list[Outcome]]:
        """Return the outcomes of actions in states."""
        return [self._reader.outcomes(*question) for question in questions]
