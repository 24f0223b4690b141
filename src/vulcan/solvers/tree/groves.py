"""The workers of a forest: who has which part, and what becomes of those of lost ones.

A worker that is lost takes its parts with it. They are had again by doing again what was done with
them (`vulcan.solvers.tree.events`), by a worker that takes its place or by those that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from time import perf_counter
from typing import Any, Final

from vulcan.certificates.problem import Problem
from vulcan.errors import ModelError, OptionError
from vulcan.executors.base import Executor, Worker, WorkerLostError
from vulcan.executors.losses import current_losses
from vulcan.model.compiled import forget_compiled
from vulcan.model.rules import Rule, Violation
from vulcan.runtime.monitor import is_late
from vulcan.solvers.tree.events import Events
from vulcan.solvers.tree.grove import Grove, Standing
from vulcan.solvers.tree.part_tree import Parcel, Seedling

__all__ = ["Groves"]

UNEVEN: Final = 1.2
"""A worker gives parts away that has more than this many times an even share of samples."""

BETWEEN_LOOKS: Final = 1.0
"""Seconds until it is looked again whether an answer takes too long."""

MOST_TRIES: Final = 3
"""When this many times all workers were lost, and nothing was done meanwhile, there is a cause."""


class Groves:
    """All workers of a search.

    Parameters
    ----------
    executor
        Where they are.
    problem, seed, exploration
        As in `PriceRun`.

    Attributes
    ----------
    events
        What was done with parts so far.
    loads
        The samples of each part so far.
    """

    def __init__(self, executor: Executor, problem: Problem, seed: int, exploration: float) -> None:
        self._executor = executor
        sent = Problem(forget_compiled(problem.model), problem.risk_bound)
        self._made = (Grove, sent, seed, exploration)
        self._workers: list[Worker] = []
        self._limits: dict[Worker, float] = {}
        self._standings: dict[Worker, Standing] = {}
        self._gone_evaluations = self._losses_in_a_row = 0
        self._owners: dict[int, Worker] = {}  # of parts, by their numbers
        self.events = Events()
        self.loads: Counter[int] = Counter()

    def __len__(self) -> int:
        """Return how many workers there are."""
        return len(self._workers)

    def __contains__(self, number: int) -> bool:
        """Whether some worker has a part."""
        return number in self._owners

    @property
    def parts(self) -> list[int]:
        """The numbers of all parts that workers have."""
        return sorted(self._owners)

    @property
    def histories(self) -> int:
        """Nodes of all parts."""
        return sum(standing.histories for standing in self._standings.values())

    @property
    def memory(self) -> int:
        """Bytes that they take."""
        return sum(standing.memory for standing in self._standings.values())

    @property
    def evaluations(self) -> int:
        """How often the model was asked."""
        asked = sum(standing.evaluations for standing in self._standings.values())
        return self._gone_evaluations + asked

    def close(self) -> None:
        """Let all workers go."""
        for worker in self._workers:
            worker.close()

    def prepare(self, memory: int | None, share: float) -> None:
        """Hire workers, let them load the kernels, and say how many bytes they may take.

        Parameters
        ----------
        memory
            For all of them together; by default what searches may take on their machines.
        share
            Of this, for samples.
        """
        for _ in range(self._executor.workers):
            self._workers.append(self._executor.hire(*self._made))
        machines: dict[Worker, tuple[str, int]] = {}
        while fresh := [worker for worker in self._workers if worker not in machines]:
            for worker, future in [(worker, worker.call("prepare")) for worker in fresh]:
                try:
                    machines[worker] = self._wait(future)
                except WorkerLostError as error:
                    self._lose(worker, error)
        names = Counter(machines[worker][0] for worker in self._workers)
        for worker in self._workers:
            name, usual = machines[worker]
            own = usual / names[name] if memory is None else memory / len(self._workers)
            self._limits[worker] = share * own
            worker.call("limit", share * own)

    def ask(self, numbers: Iterable[int], call: Callable[[Worker, list[int]], Any]) -> list[Any]:
        """Return the answers of the workers that have some parts.

        Where one is lost, its parts are had again, and whoever has them now is asked.

        Parameters
        ----------
        numbers
            The parts.
        call
            Calls a worker about those that it has.
        """
        waiting, answers = set(numbers), list[tuple[Worker, list[int], Any]]()
        while waiting:
            shares: dict[Worker, list[int]] = {}
            for number in sorted(waiting):
                shares.setdefault(self._owners[number], []).append(number)
            lost = {}
            for worker, some, future in [(w, some, call(w, some)) for w, some in shares.items()]:
                try:
                    answers.append((worker, some, self._wait(future)))
                    waiting.difference_update(some)
                except WorkerLostError as error:
                    lost[worker] = error
            for worker, loss in lost.items():
                self._lose(worker, loss)
            # One who took over may be lost as well, with what it had just done.
            for worker, some, _ in answers:
                if worker not in self._workers:
                    waiting.update(some)
            answers = [answer for answer in answers if answer[0] in self._workers]
        for worker, _, answer in answers:
            if isinstance(answer, Standing):
                self._standings[worker] = answer
        self._losses_in_a_row = 0
        return [answer for *_, answer in answers]

    def plant(self, prices: Any, seedlings: Mapping[int, Seedling]) -> None:
        """Let parts that were never sampled begin, each with the worker that has least to do."""
        loads = self._add_loads()
        for number in seedlings:
            worker = min(self._workers, key=loads.__getitem__)
            self._owners[number] = worker
            loads[worker] += 1

        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("plant", prices, [seedlings[number] for number in some])

        self.ask(seedlings, call)
        self.events.plant(prices, seedlings)

    def take(self, parcels: Mapping[int, Parcel]) -> None:
        """Let workers have parts that were sent."""
        for k, number in enumerate(parcels):
            self._owners[number] = self._workers[k % len(self._workers)]
        self.ask(parcels, lambda worker, some: worker.call("take", {n: parcels[n] for n in some}))
        self.events.add("take", parcels)

    def divide(self, number: int, first: int, grown: Mapping[int, int]) -> None:
        """Note that the worker who has a part has divided it, and has these, with samples, now."""
        self._owners |= dict.fromkeys(grown, self._owners.pop(number))
        self.loads.pop(number, None)
        self.loads.update(grown)
        self.events.divide(number, first, grown)

    def balance(self) -> None:
        """Let workers with much to do give parts to those with little, by their samples."""
        loads = self._add_loads()
        even = sum(loads.values()) / len(self._workers)
        known = [pair for pair in self.loads.items() if pair[0] in self._owners]
        for number, load in sorted(known, key=lambda pair: (-pair[1], pair[0])):
            owner, least = self._owners[number], min(self._workers, key=loads.__getitem__)
            if loads[owner] > UNEVEN * even and loads[least] + load < loads[owner]:
                self._send(number, least)
                loads[owner] -= load
                loads[least] += load

    def _add_loads(self) -> Counter[Worker]:
        loads: Counter[Worker] = Counter(dict.fromkeys(self._workers, 0))
        for number, owner in self._owners.items():
            loads[owner] += self.loads[number]
        return loads

    def _send(self, number: int, worker: Worker) -> None:
        """Let another worker have a part."""
        [parcels] = self.ask([number], lambda owner, some: owner.call("give", some))
        if worker in self._workers:  # else the one who gave it takes it back
            self._owners[number] = worker
        owner = self._owners[number]
        try:
            self._wait(owner.call("take", parcels))
        except WorkerLostError as error:
            self._lose(owner, error)

    def _wait(self, future: Future[Any]) -> Any:
        """Return an answer, unless it does not come in time: then all workers are let go."""
        began = perf_counter()
        while not wait([future], BETWEEN_LOOKS).done:
            if is_late(began):
                self.close()
                seconds = perf_counter() - began
                message = f"a worker gave no answer in {seconds:.1f} s: is it in the model?"
                raise ModelError(Violation(Rule.ANSWERS, message))
        return future.result()

    def _lose(self, worker: Worker, error: WorkerLostError) -> None:
        """Let others have the parts of a worker that is gone."""
        if worker not in self._workers:
            return
        self._losses_in_a_row += 1
        if self._losses_in_a_row > MOST_TRIES * self._executor.workers:
            raise WorkerLostError(f"workers are lost again and again: {error}")
        current_losses().count += 1
        self._workers.remove(worker)
        standing = self._standings.pop(worker, None)
        self._gone_evaluations += standing.evaluations if standing else 0
        orphans = [number for number, owner in self._owners.items() if owner is worker]
        heirs = list(self._workers)
        if self._executor.has_room():
            heir = self._executor.hire(*self._made)
            heir.call("limit", self._limits.setdefault(heir, self._limits.get(worker, 0.0)))
            self._workers.append(heir)
            heirs = [heir]
        if not heirs:
            raise OptionError("all workers were lost, and there is no place for new ones")
        futures = []
        for k, heir in enumerate(heirs):
            some = orphans[k :: len(heirs)]
            self._owners |= dict.fromkeys(some, heir)
            futures.append((heir, heir.call("adopt", some, self.events.repeat(some))))
        for heir, future in futures:
            try:
                self._wait(future)
            except WorkerLostError as another:
                self._lose(heir, another)
