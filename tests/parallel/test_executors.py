"""Which executor is used, and how errors come back."""

from __future__ import annotations

import pickle

import pytest

from vulcan.errors import ModelError, OptionError
from vulcan.model.rules import Rule, Violation
from vulcan.parallel.executors import Threads, pack_fault, require_workers, unpack_fault
from vulcan.parallel.pool import choose_executor
from vulcan.parallel.processes import Processes


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True, None])
def test_numbers_of_workers_are_whole_and_positive(workers: object) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        require_workers(workers)


def test_nothing_said_means_here_and_several_means_what_suits() -> None:
    assert choose_executor(None) == choose_executor(1) == Threads(1)
    assert choose_executor(3) == Processes(3)
    assert choose_executor(3, "threads") == Threads(3)


def test_names_and_executors_are_taken_as_they_are() -> None:
    assert choose_executor("threads:4") == Threads(4)
    assert choose_executor("processes") == Processes()
    assert choose_executor("here") == Threads(1)
    executor = Processes(3)
    assert choose_executor(executor) is executor


def test_contradictions_are_refused() -> None:
    with pytest.raises(OptionError, match="one worker, not 2"):
        choose_executor("here:2")
    with pytest.raises(OptionError, match="parallel must be a number of workers"):
        choose_executor("slurm:2")


def carry(error: Exception) -> BaseException:
    """Raise an error, and return what arrives of it."""
    try:
        raise error
    except Exception as raised:
        return unpack_fault(*pickle.loads(pickle.dumps(pack_fault(raised, pickle))))


def test_errors_of_models_keep_what_they_say() -> None:
    violation = Violation(Rule.ANSWERS, "wrong", (1, 2), "go")
    arrived = carry(ModelError(violation))
    assert isinstance(arrived, ModelError)
    assert arrived.violation == violation
