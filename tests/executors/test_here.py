"""Work in this process."""

from __future__ import annotations

import threading

import pytest

from tests.helpers.workers import Held
from vulcan.errors import OptionError
from vulcan.executors.crew import Crew
from vulcan.executors.here import Here, Threads


def test_one_thread_is_one_worker() -> None:
    with pytest.raises(OptionError, match="one worker"):
        Here(2)
    with pytest.raises(OptionError, match="at least 1"):
        Threads(0)


def test_notes_are_passed_on_at_once_by_who_shares_the_thread() -> None:
    notes: list[float] = []
    with Crew(Here(), Held) as crew:
        crew.submit("search", 0.05)
        list(crew.run(lambda piece, note: notes.append(note)))
    assert len(notes) > 3


def test_threads_work_at_the_same_time_and_end_with_their_crew() -> None:
    before = threading.active_count()
    with Crew(Threads(2), Held) as crew:
        meeting = threading.Barrier(2, timeout=10)
        pieces = [crew.submit("add", Meeting(meeting)) for _ in range(2)]
        list(crew.run())
        assert [piece.result() for piece in pieces] == [True, True]
        kept = [*crew._free]
    for worker in kept:
        worker._pool.shutdown(wait=True)
    assert threading.active_count() == before


class Meeting:
    """A number that is added only when somebody else does so too."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def __radd__(self, other: int) -> bool:
        self._barrier.wait()
        return True
