"""Several searches one after the other, watched as one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from vulcan.planning.result import Result
from vulcan.runtime.progress import OnProgress, Phase, Progress, watch_progress

__all__ = ["Batch", "watch_batch"]


class Batch:
    """How far a batch of searches is.

    Parameters
    ----------
    on_progress
        Told how far the whole batch is: seconds and fraction are those of all searches, the rest
        is what the present search says.

    Attributes
    ----------
    total
        How many searches there are; None as long as nobody knows.
    """

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.total: int | None = None
        self._done = 0
        self._fraction: float | None = None
        self._on_progress = on_progress
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the batch began."""
        return time.perf_counter() - self._began

    def tell(self, progress: Progress) -> None:
        """Pass the progress of the present search on as that of the batch."""
        if self._on_progress is not None:
            if self.total is not None:
                # What follows a search, such as its upper bound, does not know how far it is, and a
                # certificate only how far it is itself.
                searching = progress.phase is Phase.SEARCHING
                done = (self._done + (progress.fraction or 0.0) * searching) / self.total
                self._fraction = max(done, self._fraction or 0.0)
            self._on_progress(replace(progress, seconds=self.seconds, fraction=self._fraction))

    def finish(self, result: Result | None) -> None:
        """Count one more search as done; None for one that ended in an error."""
        self._done += 1
        if result is not None:
            statistics, certificate = result.statistics, result.certificate
            self.tell(
                Progress(
                    seconds=self.seconds,
                    fraction=0.0,
                    histories=statistics.histories,
                    pairs=statistics.nodes,
                    evaluations=statistics.evaluations,
                    reward=None if certificate is None else float(certificate.reward),
                    samples=statistics.samples,
                    memory=statistics.memory,
                    judgement=certificate,
                )
            )


@contextmanager
def watch_batch(on_progress: OnProgress | None, progress: bool) -> Iterator[Batch]:
    """Watch a batch of searches while inside.

    Parameters
    ----------
    on_progress
        Told how far the batch is.
    progress
        Show it in the terminal as well.

    Yields
    ------
    Batch
        Its `tell` is the `on_progress` of each search; `finish` is called after each.
    """
    with watch_progress(on_progress, progress) as tell:
        yield Batch(tell)
