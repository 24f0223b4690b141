"""The executor that was asked for."""

from __future__ import annotations

import pytest

from vulcan.errors import OptionError
from vulcan.executors.choice import choose_executor
from vulcan.executors.here import Here, Threads
from vulcan.executors.processes import Processes


def test_nothing_said_means_here_and_several_means_what_suits() -> None:
    assert choose_executor(None, None) == choose_executor(None, 1) == Here()
    assert choose_executor(None, 3) == Processes(3)
    assert choose_executor(None, 3, "threads") == Threads(3)


def test_names_and_executors_are_taken_as_they_are() -> None:
    assert choose_executor("threads", 4) == Threads(4)
    assert choose_executor("processes", None) == Processes()
    assert choose_executor("here", None) == Here()
    executor = Processes(3)
    assert choose_executor(executor, None) is choose_executor(executor, 3) is executor


def test_contradictions_are_refused() -> None:
    with pytest.raises(OptionError, match="contradicts"):
        choose_executor(Processes(3), 2)
    with pytest.raises(OptionError, match="one worker, not 2"):
        choose_executor("here", 2)
    with pytest.raises(OptionError, match="here, threads, processes, ray"):
        choose_executor("slurm", 2)
