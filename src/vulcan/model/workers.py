"""Several processes that answer for one model.

A search asks for all actions of a state at once, an exact solver for those of many states, and
their outcomes don't depend on each other. So they are asked in parallel, and come back in the order
of the actions: a search gives the same result with any number of workers, and asks nothing that it
would not have asked alone. It pays where an answer takes a millisecond or more; passing a question
to another process and back takes about a tenth of that.

Workers are started afresh and get the model by pickling it, as `multiprocessing` does. They load
the Python files that were loaded here (`vulcan.runtime.modules`), and print where the search
prints. Ctrl-C is left to the search.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from vulcan.errors import ModelError, OptionError
from vulcan.model.interface import Outcome, Start
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.runtime.modules import list_loaded, load_file

__all__ = ["WorkerReader"]

PORTIONS: Final = 4
"""Into how many parts the questions of a worker are divided, since some take longer than others."""


class WorkerReader(ModelReader):
    """A reader that asks for the outcomes of a state in several processes.

    Parameters
    ----------
    model
        The model; it must be possible to pickle it, its states and its actions.
    workers
        How many processes.
    """

    def __init__(self, model: Any, workers: int) -> None:
        super().__init__(model)
        if not isinstance(workers, int) or workers < 1:
            raise OptionError(f"workers must be a whole number of at least 1, not {workers!r}")
        try:
            pickled = bytes(ForkingPickler.dumps(model))
        except Exception as error:
            raise OptionError(f"workers need a model that can be pickled: {error}") from error
        self._workers = workers
        told = (pickled, list_loaded(), sys.stdout is sys.stderr)
        self._pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _begin, told
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

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
        try:
            return list(self._pool.map(_answer, questions, chunksize=portion))
        except ModelError:
            raise
        except Exception as error:  # a worker that died, or an answer that can't be sent
            message = f"the workers gave no answer: {error!r}"
            raise ModelError(Violation(Rule.ANSWERS, message, questions[0][0])) from error


_reader: ModelReader | None = None
_fault = ""


def _begin(pickled: bytes, files: Sequence[Path], quiet: bool) -> None:
    """Get ready in a worker."""
    global _reader, _fault  # noqa: PLW0603 - the one thing that a worker process is there for
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    if quiet:
        sys.stdout = sys.stderr
    try:
        for path in files:
            load_file(path)
        _reader = ModelReader(ForkingPickler.loads(pickled))
    except Exception as error:  # told with the first answer: here it would only break the pool
        _fault = f"the model can't be loaded in another process: {error!r}"


def _answer(question: tuple[Any, Any]) -> list[Outcome]:
    if _reader is None:
        raise RuntimeError(_fault)
    return _reader.outcomes(*question)
