"""Forward search by several workers: the same result as by one, bit for bit.

**What is split.** Let D be a level. What comes after a history h of D decisions depends on h
through its last state, its survival and its credit alone (`vulcan.kernels.forward_search`). So the
histories of level D are *pieces*: a worker is told these three, and answers with the value of h,
whether it is admissible, its plan, and its counts. D depends on the model, not on the workers.

**Why nothing changes.** The *reader* of the answers is a search like any other, except that it does
not go on from histories of level D. There it waits for the answer, and takes it as if it had been
there itself: value, verdict, plan, histories, and the smallest and largest credit tested. It tries
actions and outcomes in the one order, and all numbers, above level D and below, come from the same
kernel and the same operands. By induction over the histories up to level D, in the order in which
they end, all values, verdicts, plans and counts are those of one worker. Answers about pieces that
it never comes to, because an action was cut short, are never read.

Pieces are handed out in the order in which they will be read, as a *scout* finds them: a search
that takes every piece for admissible. It comes to all that the reader comes to, in the same order,
and to some that this one leaves out: that work is lost, except for pieces beside one that is known
to be inadmissible, which are not handed out.

**Limits and errors.** Where one worker would stop inside a piece, or meet an error, the reader goes
through that piece itself, and so stops at the same history, or raises the same error. When time is
up, what it has read is a search of one worker that was stopped there.

**What the model was asked.** Where states don't merge, each history is asked for by itself, and
numbers add up. Where they do, all workers are threads and share one graph. Then a worker also
answers which states it came to, in which order, and how often with one step left. The reader sees
no more of the graph than it, or an answer that it has read, came to, as if it had asked by itself
(`vulcan.solvers.tree.ledger`). So it counts the same evaluations and histories. A model is asked
for more only if answers are not read; and where states don't merge, once more by the scout, and for
the policy, which is written from labels.

One thing can differ: the places where a bound that is a function was evaluated, of which a few more
are checked for its shape. They are the same for any number of workers above one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import RLock
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.executors.base import Executor, WorkerLostError
from vulcan.executors.crew import Crew
from vulcan.executors.crew import Piece as Call
from vulcan.graphs.state_graph import StateGraph
from vulcan.graphs.view import GraphView, SharedGraph
from vulcan.kernels import codes
from vulcan.model.compiled import forget_compiled
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.sentinels import NONE
from vulcan.solvers.tree.forward_run import ForwardSearchRun
from vulcan.solvers.tree.forward_search import ForwardSearch
from vulcan.solvers.tree.kernel_run import choose_graph
from vulcan.solvers.tree.ledger import Ledger
from vulcan.solvers.tree.pieces import PieceWorker, Report
from vulcan.solvers.tree.scout import FoundPiece, Path, Scout, TopRun

__all__ = ["SplitRun"]

MOST_AHEAD: Final = 1000
"""How many pieces the scout may be ahead of the reader."""

MOST_NEW: Final = 32
"""How many pieces are passed over for one that begins in a state like another."""


class SplitRun(TopRun):
    """A forward search whose pieces are searched by workers: the one who reads their answers.

    Parameters
    ----------
    problem, reader, solver, known
        As in `ForwardSearchRun`.
    executor
        Where the workers are. If the states of the model merge, they must be near.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        solver: ForwardSearch,
        known: StateGraph | None,
        executor: Executor,
    ) -> None:
        graph = choose_graph(reader, solver.constraint, known)
        shared = SharedGraph(graph) if isinstance(graph, StateGraph) and graph.merges else None
        asking = RLock() if shared is None else shared.lock
        view = None if shared is None else GraphView(shared)
        super().__init__(problem, reader, solver, graph=view or graph, asking=asking)
        self._shared = shared
        self._ledger = None if view is None else Ledger(view)
        if self._ledger is not None:
            self._control["noted"] = True
            self.fit_visits()
            self._visits["ends"][: len(self._ledger.ends)] = self._ledger.ends
        scouted = choose_graph(reader, solver.constraint) if shared is None else GraphView(shared)
        self._scout: Scout | None = Scout(problem, reader, solver, graph=scouted, asking=asking)
        if executor.near:
            self._crew = Crew(executor, PieceWorker, problem, solver, shared, asking)
        else:
            sent = Problem(forget_compiled(problem.model), problem.risk_bound)
            self._crew = Crew(executor, PieceWorker, sent, solver)
        self._workers, self._near = executor.workers, executor.near
        self._pieces: deque[FoundPiece] = deque()
        self._under_way: dict[Call, FoundPiece] = {}
        self._searched: set[int] = set()  # the states that pieces began in
        self._refused: dict[tuple[Any, ...], Path] = {}
        self._plans: dict[int, list[str]] = {}
        self._written = 0
        self._places: list[float] = []
        self._asked_by_others = 0
        self._began = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crew.stop()
        if error is None and self._near:
            for _ in self._crew.run():  # nobody asks the model any more after this
                pass
        self._crew.close()

    def step(self, most: int | None = None) -> int:
        if not self._began:
            self._began = True
            self._begin()
        wants = super().step(most)
        if wants == codes.NEEDS_PIECE and most is not None and self.histories >= most:
            self._go_alone()  # one worker would ask for this state, and stop
            return super().step(most)
        if wants == codes.NEEDS_PIECE:
            self._read_piece(most)
        return wants

    def _begin(self) -> None:
        """Choose the level of the pieces."""
        assert self._scout is not None
        try:
            level = self._scout.choose_level()
        except Exception:  # met again, if one worker would meet it
            self._scout = None
        else:
            self.cut(level)

    def _read_piece(self, most: int | None) -> None:
        """Read the answer about the history that the search has come to, or wait a little."""
        piece = self._find_piece(self.find_path(), most)
        if piece is None:
            self._go_alone()
            return
        self._hand_out(piece, most)
        if not piece.ended:
            for call in self._crew.wait():
                self._file(call)
            return
        assert piece.call is not None
        error, report = piece.call.error, piece.call.answer
        if isinstance(error, OptionError | WorkerLostError):
            raise error
        if error is not None or not report.finished or not self._accept(report, most):
            self._go_alone()
        else:
            self._pieces.popleft()

    def _go_alone(self) -> None:
        """Go on without workers: one worker would stop soon, or raise."""
        self.cut(NONE)
        self._crew.stop()

    def _find_piece(self, path: Path, most: int | None) -> FoundPiece | None:
        """Return the piece of a path, and forget those before; None if the scout is at a loss."""
        while True:
            while self._pieces and self._pieces[0].path < path:
                self._pieces.popleft()
            if self._pieces:
                return self._pieces[0] if self._pieces[0].path == path else None
            if not self._scout_further(most):
                return None

    def _scout_further(self, most: int | None) -> bool:
        if self._scout is None or len(self._pieces) >= MOST_AHEAD:
            return False
        try:
            piece = self._scout.find_next(most)
        except Exception:  # met again, if one worker would meet it
            piece = None
        if piece is None:
            self._scout = None
            return False
        self._pieces.append(piece)
        return True

    def _hand_out(self, needed: FoundPiece, most: int | None) -> None:
        """Give work to all workers, first of all what is needed first."""
        if needed.call is None:
            self._submit(needed)
        while len(self._under_way) < self._workers:
            piece = self._choose_piece(most)
            if piece is None:
                return
            self._submit(piece)

    def _choose_piece(self, most: int | None) -> FoundPiece | None:
        """Return the next piece to hand out; None if there is none.

        Workers who share a graph wait for each other where they ask the model. So one of them asks,
        and others are given pieces that begin in a state from which one was searched, if possible.
        """
        asking = any(self._is_new(piece) for piece in self._under_way.values())
        first, seen = None, 0
        for piece in self._list_ahead(most):
            if piece.call is not None or self._is_idle(piece):
                continue
            if not (asking and self._is_new(piece)):
                return piece
            first, seen = first or piece, seen + 1
            if seen >= MOST_NEW:
                break
        return first

    def _is_new(self, piece: FoundPiece) -> bool:
        return self._shared is not None and piece.task.state not in self._searched

    def _list_ahead(self, most: int | None) -> Iterator[FoundPiece]:
        """Yield the pieces that will be needed, as far as anybody knows."""
        yield from tuple(self._pieces)
        while self._scout_further(most):
            yield self._pieces[-1]

    def _is_idle(self, piece: FoundPiece) -> bool:
        """Whether it is known that nobody will read the answer."""
        refused = self._refused.get(piece.action)
        return refused is not None and refused < piece.path

    def _submit(self, piece: FoundPiece) -> None:
        piece.call = self._crew.submit("search", piece.task)
        self._under_way[piece.call] = piece

    def _file(self, call: Call) -> None:
        """Take note of a call that ended."""
        piece = self._under_way.pop(call)
        piece.ended = True
        if self._shared is not None:
            self._searched.add(piece.task.state)
        if self._solver.cut_short and call.error is None and not call.answer.admissible:
            self._refused[piece.action] = piece.path

    def _accept(self, report: Report, most: int | None) -> bool:
        """Take an answer as if the search had been there; False if it had to stop there."""
        histories = report.histories
        if self._ledger is not None:
            self._enter(report.entered)
            histories += int(report.visits @ self._ledger.ends[report.entered])
        if most is not None and self.histories + histories >= most:
            if self._ledger is not None:
                self._ledger.undo()
            return False
        self._asked_by_others += report.evaluations
        self.test["least"] = np.minimum(self.test["least"], report.credits[0])
        self.test["largest"] = np.maximum(self.test["largest"], report.credits[1])
        self._places += report.places
        if len(report.plan):
            self._keep_plan([report.labels[k] for k in report.plan.tolist()])
        self.take(report.value, report.admissible, histories)
        return True

    def _ask(self, state: int) -> None:
        if self._shared is None:
            super()._ask(state)
        else:
            self._shared.ask([state])
            self._enter(np.array([state]))

    def _enter(self, states: NDArray[np.intp]) -> None:
        """Come to states of the shared graph, in this order."""
        assert self._ledger is not None
        fresh = self._ledger.enter(states)
        self.fit_visits()
        self._visits["ends"][fresh] = self._ledger.ends[fresh]

    @property
    def evaluations(self) -> int:
        if self._ledger is not None:
            return self._ledger.evaluations
        return self.graph.evaluations + self._asked_by_others

    @property
    def known_graph(self) -> StateGraph | None:
        return None if self._shared is None else self._shared.whole

    def credits(self) -> list[float]:
        own = super().credits()
        if not own:
            return []
        low, *between, high = own
        between += [place for place in self._places if low < place < high]
        return [low, *sorted(set(between)), high]

    def _keep_plan(self, labels: list[str]) -> None:
        """Write one entry for the plan of a piece, which says where to find it."""
        length = int(self._control["length"][0])
        if length >= len(self._plan):
            self._lengthen_plan()
        wanted = set(self._plan[:length].tolist())
        self._plans = {entry: plan for entry, plan in self._plans.items() if entry in wanted}
        self._written += 1
        entry = NONE - self._written
        self._plans[entry] = labels
        self._plan[length] = entry
        self._control["length"] += 1

    def build_policy(self, stopped: bool) -> Policy | None:
        length, found = self.find_plan(stopped)
        if not found:
            return None
        numbers, names = self.graph.actions.array["number"], self.graph.labels
        labels: list[str] = []
        for entry in self._plan[:length].tolist():
            labels += self._plans[entry] if entry < 0 else [names[numbers[entry]]]
        # Rows are those of workers, and many are dropped: they are made once more.
        graph = None if self._shared is None else self._shared.whole
        writer = ForwardSearchRun(self.problem, self.reader, self._solver, graph=graph)
        writer.follow(labels)
        policy = writer.build_policy(stopped=False)
        self.risk = writer.risk
        return policy
