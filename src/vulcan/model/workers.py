"""Evaluation of a model in several processes.

A search evaluates all actions of a state at once, an exact solver those of many states, and these
evaluations are independent. So they run in parallel and return in the order of the actions: a
search gives the same result with any number of workers, and evaluates nothing more than it would
alone. That pays where an evaluation takes a millisecond or more; sending it to another process and
back takes about a tenth of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, Self

from vulcan.errors import ModelError, OptionError
from vulcan.model.answers import Answers
from vulcan.model.compiled import forget_compiled
from vulcan.model.interface import Outcome, Start
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.parallel.executors import Channel, Executor
from vulcan.parallel.pool import WorkerPool
from vulcan.runtime.limits import is_late, note_answer

PORTIONS: Final = 4  # portions per worker: evaluations differ in duration


class WorkerReader(ModelReader):
    """A reader that evaluates the outcomes of a state, or of many, in the workers of an executor.

    The model, its states and its actions must be picklable.
    """

    def __init__(
        self, model: Any, executor: Executor, events: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(model, events)
        self._workers = executor.workers
        self._pool = WorkerPool(executor, _open_reader, forget_compiled(model), events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.close()

    def read_arrays(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        if any(isinstance(state, Start) for state in states):
            return super().read_arrays(states, actions)
        return Answers.gather(self.evaluate_pairs(list(zip(states, actions, strict=True))))

    def evaluate_pairs(self, pairs: Sequence[tuple[Any, Any]]) -> list[list[Outcome]]:
        """Return the outcomes of (state, action) pairs, evaluated in parallel."""
        portion = max(1, len(pairs) // (PORTIONS * self._workers))
        portions = [pairs[k : k + portion] for k in range(0, len(pairs), portion)]
        began = perf_counter()
        try:
            answers = self._pool.map("evaluate_pairs", portions, lambda: is_late(began))
        except (ModelError, OptionError):
            raise
        except TimeoutError as error:
            raise self._give_up("outcomes", began, *error.args[0][0]) from None
        except Exception as error:  # workers that died, or an answer that can't be sent
            message = f"the workers gave no answer: {error!r}"
            raise ModelError(Violation(Rule.ANSWERS, message, pairs[0][0])) from error
        note_answer(perf_counter() - began)
        found = (outcomes for some in answers for outcomes in some)
        return [list(self.represent_all(some)) if self.has_keys else some for some in found]


def _open_reader(channel: Channel, model: Any, events: frozenset[str]) -> ModelReader:
    """Return the object in a worker."""
    return ModelReader(model, events)
