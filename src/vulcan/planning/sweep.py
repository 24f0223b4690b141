"""Many searches on one model, done by whoever is free.

A worker (`vulcan.executors`) holds the problem, which is sent to it once; a search is a `Job`, a
few words long, and its answer a result without the problem. Jobs don't depend on each other, and
are told by whoever sweeps in an order of his own, so that what is found does not depend on who
found it, or when: as long as limits of time and memory, which are the machine's, don't end the
searches.

A job that raises ends with its error, one whose worker is lost is done by another, and the first
Ctrl-C lets those under way end with what they have, and no other begin. What was found may be kept
in a file (`vulcan.planning.records`), and is not searched for again when the sweep is resumed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from vulcan.certificates.problem import Problem
from vulcan.errors import ModelError, VulcanError
from vulcan.executors.base import Executor, Line, Maker
from vulcan.executors.crew import Crew, Piece
from vulcan.graphs.array_graph import open_graph
from vulcan.model.reader import ModelReader
from vulcan.planning.batch import Batch
from vulcan.planning.jobs import Answer, Job
from vulcan.planning.records import Records
from vulcan.planning.solve import plan_and_certify
from vulcan.runtime.interruption import Interruption, listen
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import EXACT
from vulcan.solvers.layered.upper_bound import RewardBound, bound_any_policy

__all__ = ["Searcher", "Sweep", "describe_error"]

logger = logging.getLogger("vulcan")


class Searcher:
    """What a worker holds: a problem, and what it knows of the model if jobs are to share that.

    Parameters
    ----------
    line
        To tell how far it is.
    problem
        The problem.
    shares
        Whether its searches share a state graph.
    """

    def __init__(self, line: Line, problem: Problem, shares: bool = False) -> None:
        self._line, self._problem = line, problem
        self._graph = open_graph(ModelReader(problem.model)) if shares else None

    def search(self, job: Job) -> Answer:
        """Do a job."""
        before = self._count()
        self._prepare(job.limits)
        result = plan_and_certify(
            job.pose(self._problem),
            job.solver,
            job.limits,
            replace(job.options, graph=self._graph),
            bound=job.bound,
            on_progress=self._line.tell,
        )
        asked = result.statistics.evaluations if self._graph is None else self._count() - before
        policy = None if result.policy is None else result.policy.detach()
        return Answer(replace(result, problem=None, policy=policy), asked)  # type: ignore[arg-type]

    def bound(self, limits: Limits) -> RewardBound:
        """Return an upper bound on the reward of any policy, if one can be found."""
        with Monitor(limits.keep(EXACT), self._line.tell) as monitor:
            try:
                reader = ModelReader(self._problem.model)
                return bound_any_policy(self._problem, reader, monitor, self._graph)
            except ModelError:
                return RewardBound()

    def _prepare(self, limits: Limits) -> None:
        """Learn what all searches are to know, before the first of them."""

    def _count(self) -> int:
        return 0 if self._graph is None else self._graph.evaluations


class Sweep:
    """Workers, their jobs, and Ctrl-C; used in a `with` statement.

    Parameters
    ----------
    executor
        Who does the work.
    batch
        Told how far it is.
    maker, arguments
        What a worker holds: a `Searcher`, or a kind of it.
    most
        How many jobs there are at most.
    early
        Whether all workers are wanted from the first job on.
    records
        What is known already, and is kept; nothing by default.
    """

    def __init__(
        self,
        executor: Executor,
        batch: Batch,
        maker: Maker,
        *arguments: Any,
        most: int | None = None,
        early: bool = False,
        records: Records | None = None,
    ) -> None:
        self._crew = Crew(executor, maker, *arguments, most=most, early=early)
        self._batch, self._records = batch, records
        self._known: deque[Piece] = deque()
        self._interruption = Interruption()
        self._inside = ExitStack()
        self.stopped = False

    def __enter__(self) -> Self:
        interruption = self._inside.enter_context(self._interruption)
        self._inside.enter_context(listen(lambda: interruption.requested))
        self._inside.enter_context(self._crew)
        if self._records is not None:
            self._inside.callback(self._records.write)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inside.close()

    @property
    def lost(self) -> int:
        """How many workers were lost."""
        return self._crew.lost

    @property
    def reason(self) -> StopReason:
        """Who stopped it, if somebody did."""
        return self._interruption.reason

    def submit(self, name: str, *arguments: Any) -> Piece:
        """Add something to do: a method of what the workers hold, and what it is given."""
        return self._crew.submit(name, *arguments)

    def search(self, job: Job) -> Piece:
        """Add a job, which has ended already if its answer is known."""
        answer = None if self._records is None else self._records.find(job)
        if answer is None:
            return self.submit("search", job)
        self._known.append(Piece("search", (job,), ended=True, answer=answer))
        return self._known[-1]

    def wait(self) -> list[Piece]:
        """Return what ended, after a while; none as long as nothing did."""
        if self._interruption.requested and not self.stopped:
            self.stop()
        if self._known:
            return [self._known.popleft()]
        pieces = self._crew.wait(self._batch.tell)
        for piece in pieces:
            if self._records is not None and isinstance(piece.answer, Answer):
                self._records.add(piece.arguments[0], piece.answer)
        return pieces

    def run(self) -> Iterator[Piece]:
        """Yield what ends, until nothing is left to do; more may be added meanwhile."""
        while self._known or self._crew.busy:
            for piece in self.wait():
                yield piece
                answer = piece.answer
                stopped_by = answer.result.stopped_by if isinstance(answer, Answer) else None
                if stopped_by is not None and stopped_by.is_request:
                    self.stop()  # whoever asked it to stop means all

    def ask(self, name: str, *arguments: Any) -> Any:
        """Return the answer of one worker; None if Ctrl-C came first."""
        if self.stopped:
            return None
        piece = self.submit(name, *arguments)
        for _ in self.run():
            pass
        self._batch.leave(piece)
        return piece.result() if piece.ended else None

    def require_whole(self) -> None:
        """Raise what Ctrl-C raises, if it came."""
        if self.stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Let what is under way end with what it has, and nothing else begin."""
        self.stopped = True
        self._crew.stop()


def describe_error(name: str, error: BaseException) -> str:
    """Return what a piece raised, as text; what nobody expected is logged as well."""
    if isinstance(error, VulcanError):
        return str(error)
    logger.error("%s failed", name, exc_info=error)
    return f"{type(error).__name__}: {error}"
