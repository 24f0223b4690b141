"""Crews: pieces for whoever is free, whoever dies, on every executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.helpers.workers import Held, OddError, Raising, Slow, Unreadable
from vulcan.errors import OptionError, VulcanError
from vulcan.executors import crew as crew_module
from vulcan.executors.base import Executor, LateError, Maker, Worker, WorkerLostError
from vulcan.executors.crew import Crew, Piece
from vulcan.executors.here import Here, Threads
from vulcan.executors.losses import count_losses
from vulcan.executors.processes import Processes


@pytest.fixture(scope="module", params=["here", "threads", "processes", "ray"])
def executor(request: pytest.FixtureRequest) -> Executor:
    kinds = {"here": Here, "threads": Threads, "processes": Processes}
    if request.param == "ray":
        return request.getfixturevalue("ray_executor")
    return kinds[request.param]()


@pytest.fixture(scope="module")
def crew(executor: Executor) -> Iterator[Crew]:
    """Return a crew that all tests share, as one that goes on after whatever happened."""
    with Crew(executor, Held, 10) as crew:
        yield crew


def do(crew: Crew, name: str, *arguments: Any) -> Piece:
    piece = crew.submit(name, *arguments)
    assert list(crew.run()) == [piece]
    return piece


def test_answers_come_in_the_order_of_the_questions(crew: Crew) -> None:
    assert crew.map("add", range(20)) == list(range(10, 30))
    assert crew.map("add", []) == []


def test_pieces_may_be_added_while_others_end(crew: Crew) -> None:
    left, answers = [3, 2, 1], []
    crew.submit("add", 4)
    for piece in crew.run():
        answers.append(piece.answer)
        if left:
            crew.submit("add", left.pop(0))
    assert answers == [14, 13, 12, 11]


def test_workers_may_be_hired_before_there_are_pieces_for_all() -> None:
    hired: list[Worker] = []

    class Starting(Processes):
        def hire(self, maker: Maker, *arguments: Any) -> Worker:
            hired.append(super().hire(maker, *arguments))
            return hired[-1]

    for early, count in ((False, 1), (True, 2)):
        hired.clear()
        with Crew(Starting(2), Held, 10, early=early) as crew:
            assert do(crew, "add", 1).answer == 11
        assert len(hired) == count


def test_an_error_ends_its_own_piece_and_arrives_as_what_it_was(crew: Crew) -> None:
    pieces = [crew.submit("say", "word"), crew.submit("add", 1), crew.submit("absent")]
    assert {id(piece) for piece in crew.run()} == {id(piece) for piece in pieces}
    assert isinstance(pieces[0].error, KeyError)
    assert pieces[0].error.args == ("word",)
    assert pieces[1].result() == 11
    assert isinstance(pieces[2].error, AttributeError)
    with pytest.raises(KeyError):
        crew.map("say", ["first", "second"])


def test_errors_that_cannot_be_pickled_keep_their_words(crew: Crew, executor: Executor) -> None:
    odd, locked = do(crew, "say", "odd").error, do(crew, "say", "lock").error
    assert "odd here 1" in str(odd)
    assert "with a lock" in str(locked)
    if executor.near:
        assert isinstance(odd, OddError)
    else:
        assert isinstance(odd, VulcanError)
        assert "OddError" in str(odd)
        assert any("in say" in note for note in odd.__notes__)  # where it was raised


def test_what_cannot_be_sent_is_said_and_harms_nobody(crew: Crew, executor: Executor) -> None:
    if executor.near:
        pytest.skip("nothing is sent")
    for name, arguments in (
        ("add", (threading.Lock(),)),  # can't be pickled here
        ("add", (Unreadable(),)),  # can't be read there
        ("lock", ()),  # can't be pickled there
    ):
        error = do(crew, name, *arguments).error
        assert isinstance(error, OptionError)
        assert "can be pickled" in str(error)
    assert crew.map("add", [1, 2]) == [11, 12]


def test_a_call_of_exit_is_an_error(crew: Crew, executor: Executor) -> None:
    if executor.name == "here":
        with pytest.raises(SystemExit):
            do(crew, "say", "exit")
        crew.stop()
    else:
        assert isinstance(do(crew, "say", "exit").error, SystemExit)
    assert crew.map("add", [1]) == [11]


def test_arrays_may_be_written_to_and_be_large(crew: Crew) -> None:
    (answer,) = crew.map("double", [np.ones(300_000)])
    answer += 1
    assert answer.sum() == 900_000


def test_stopped_pieces_end_and_a_crew_goes_on_afterwards(crew: Crew) -> None:
    """A request to stop is for what was begun, not for what comes later."""
    for _ in range(2):
        pieces = [crew.submit("search", 30.0) for _ in range(5)]
        notes: list[float] = []

        def note(piece: Piece, told: float, notes: list[float] = notes) -> None:
            notes.append(told)
            crew.stop()

        ended = list(crew.run(note))
        assert notes
        assert ended
        assert all(piece.result() is True for piece in ended)
        for piece in set(pieces) - set(ended):
            with pytest.raises(VulcanError, match="stopped before it began"):
                piece.result()
    assert do(crew, "search", 0.05).answer is False


def test_who_cannot_be_made_says_why(executor: Executor) -> None:
    with Crew(executor, Raising) as crew:
        if executor.near:
            with pytest.raises(ValueError, match="not to be made"):
                crew.map("add", [1])
        else:
            assert isinstance(do(crew, "add", 1).error, ValueError)
        assert crew.lost == 0


def test_a_crew_can_be_closed_while_it_works_and_used_again(executor: Executor) -> None:
    crew = Crew(executor, Slow, 1)
    if executor.name != "here":
        pieces = [crew.submit("search", 30.0) for _ in range(3)]
        crew.wait()
        crew.close()
        assert not any(piece.ended for piece in pieces)
        assert list(crew.run()) == []
    assert crew.map("add", [1, 2, 3]) == [2, 3, 4]
    crew.close()


def test_a_lost_worker_is_replaced_and_its_piece_done_again(
    crew: Crew, executor: Executor, tmp_path: Any
) -> None:
    if executor.near:
        pytest.skip("it would take this process with it")
    before, file = crew.lost, str(tmp_path / "died")
    pieces = [crew.submit("die_once", file), *(crew.submit("add", k) for k in range(4))]
    assert len(list(crew.run())) == 5
    assert [piece.result() for piece in pieces] == ["alive", 10, 11, 12, 13]
    assert crew.lost == before + 1


def test_a_piece_that_kills_its_workers_ends_with_that_error() -> None:
    with count_losses() as losses, Crew(Processes(1), Held) as crew:
        piece = do(crew, "die")
        assert isinstance(piece.error, WorkerLostError)
        assert "exit code -9" in str(piece.error)
        assert crew.lost == losses.count == crew_module.MOST_TRIES


class Hollow(Worker):
    """Never finds a place to work, or is lost at once, or answers."""

    def __init__(self, fate: str) -> None:
        self._fate, self.closed = fate, False
        self._future: Future[Any] = Future()

    @property
    def started(self) -> bool:
        return self._fate != "waits"

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        if self._fate == "answers":
            self._future = Future()
            self._future.set_result(arguments[0])
        if self._fate == "dies":
            self._future.set_exception(WorkerLostError("gone"))
        return self._future

    def stop(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self.closed = True
        if not self._future.done():
            self._future.set_exception(WorkerLostError("never there"))


@dataclass
class Fates(Executor):
    """Hires workers of given fates."""

    fates: list[str]
    workers: int = 2
    most: int = 100

    def __post_init__(self) -> None:
        self.hired: list[Hollow] = []

    def hire(self, maker: Any, *arguments: Any) -> Worker:
        self.hired.append(Hollow(self.fates.pop(0)))
        return self.hired[-1]

    def has_room(self) -> bool:
        return sum(not worker.closed for worker in self.hired) < self.most


def test_no_piece_waits_with_a_worker_that_never_begins() -> None:
    executor = Fates(["waits", "answers"])
    with Crew(executor, Held) as crew:
        assert crew.map("add", range(10)) == list(range(10))
        assert (crew.lost, len(executor.hired)) == (0, 2)
    assert all(worker.closed for worker in executor.hired)


def test_others_go_on_where_there_is_no_room_for_another() -> None:
    executor = Fates(["dies", "answers"], workers=5, most=1)
    began = time.monotonic()
    with Crew(executor, Held) as crew:
        assert crew.map("add", range(50)) == list(range(50))
        assert (crew.lost, len(executor.hired)) == (1, 2)
    assert time.monotonic() - began < 1.0


@pytest.mark.parametrize("most", [0, 1])
def test_nobody_at_all_is_said(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """There is no room for anybody, or who is hired never begins."""
    monkeypatch.setattr(crew_module, "LONGEST_VACANCY", 0.2)
    executor = Fates(["waits", "answers", "answers"], most=most)
    with Crew(executor, Held) as crew:
        pieces = [crew.submit("add", 1), crew.submit("add", 2)]
        assert list(crew.run()) == pieces
        assert all("nobody found a place" in str(piece.error) for piece in pieces)
        executor.most = 2
        executor.fates = ["answers", "answers"]
        assert crew.map("add", [1, 2]) == [1, 2]  # somebody came


def test_the_first_error_is_that_of_the_first_thing() -> None:
    """Whoever is faster, and whoever is lost on the way."""
    with Crew(Threads(2), Held) as crew:
        for _ in range(5):
            with pytest.raises(TypeError, match="'int' and 'list'"):
                crew.map("add", [1, [], "text", 2])


def test_a_map_that_is_given_up_kills_its_workers() -> None:
    with Crew(Processes(2), Held) as crew:
        assert crew.map("add", [1, 2]) == [1, 2]  # now they are there
        began = time.monotonic()
        with pytest.raises(LateError) as caught:
            crew.map("nap", [0.0, 600.0], lambda: time.monotonic() - began > 1.0)
        assert caught.value.thing == 600.0
        assert crew.map("add", [1, 2]) == [1, 2]
