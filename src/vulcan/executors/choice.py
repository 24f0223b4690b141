"""Which executor was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vulcan.errors import OptionError
from vulcan.executors.base import Executor, require_workers
from vulcan.executors.here import Here, Threads
from vulcan.executors.processes import Processes

__all__ = ["NAMES", "choose_executor"]

NAMES: Final = ("here", "threads", "processes", "ray")


def choose_executor(
    executor: Executor | str | None, workers: int | None, several: str = "processes"
) -> Executor:
    """Return the executor for what a user said.

    Parameters
    ----------
    executor
        An executor, or its name; None for the one that suits the number of workers.
    workers
        How many workers; None for as many as the executor has by default.
    several
        The name of the executor for more than one worker.
    """
    if workers is not None:
        require_workers(workers)
    if isinstance(executor, Executor):
        if workers is not None and workers != executor.workers:
            raise OptionError(f"workers={workers} contradicts {executor!r}")
        return executor
    name = executor
    if name is None:
        name = "here" if workers is None or workers == 1 else several
    if name == "ray":
        from vulcan.executors.cluster import Ray

        return Ray() if workers is None else Ray(workers=workers)
    kinds: dict[str, Callable[..., Executor]] = {
        "here": Here,
        "threads": Threads,
        "processes": Processes,
    }
    if name not in kinds:
        raise OptionError(f"executor must be one of {', '.join(NAMES)}, not {name!r}")
    return kinds[name]() if workers is None else kinds[name](workers)
