"""Who does the work, as the options of a command say it."""

from __future__ import annotations

from vulcan.errors import OptionError
from vulcan.executors.base import Executor

__all__ = ["read_executor"]


def read_executor(
    workers: int | None, executor: str | None, cluster: str | None
) -> Executor | str | None:
    """Return the executor of `--workers`, `--executor` and `--cluster`; None for the usual one."""
    if cluster is None:
        return executor
    if executor not in (None, "ray"):
        raise OptionError(f"--cluster is for Ray, and contradicts --executor {executor}")
    from vulcan.executors.cluster import Ray

    return Ray(cluster) if workers is None else Ray(cluster, workers)
