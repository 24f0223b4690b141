"""Several searches, one after the other or at once, watched as one."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
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
        Told how far the whole batch is: seconds and fraction are those of all searches. The rest is
        what the searches under way say: their counts are added up, and the best reward is shown.

    Attributes
    ----------
    total
        How many searches there are; None as long as nobody knows.
    """

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.total: int | None = None
        self._done = 0
        self._under_way: dict[Hashable, Progress] = {}
        self._fraction: float | None = None
        self._on_progress = on_progress
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the batch began."""
        return time.perf_counter() - self._began

    def tell(self, search: Hashable, progress: Progress) -> None:
        """Pass the progress of a search on as that of the batch."""
        if self._on_progress is not None and self._under_way.get(search) is not progress:
            self._under_way[search] = progress
            self._pass_on(_add_up(progress, list(self._under_way.values())))

    def finish(self, search: Hashable, result: Result | None) -> None:
        """Count one more search as done; None for one that ended in an error."""
        self._done += 1
        self._under_way.pop(search, None)
        if result is not None and self._on_progress is not None:
            statistics, certificate = result.statistics, result.certificate
            self._pass_on(
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

    def leave(self, search: Hashable) -> None:
        """Forget something that was under way and does not count."""
        self._under_way.pop(search, None)

    def _pass_on(self, progress: Progress) -> None:
        """Tell what is shown of the searches, with the seconds and the fraction of all."""
        assert self._on_progress is not None
        if self.total is not None:
            # What follows a search, such as its upper bound, does not know how far it is, and a
            # certificate only how far it is itself.
            shares = [
                other.fraction or 0.0
                for other in self._under_way.values()
                if other.phase is Phase.SEARCHING
            ]
            done = (self._done + sum(shares)) / self.total
            self._fraction = min(1.0, max(done, self._fraction or 0.0))
        self._on_progress(replace(progress, seconds=self.seconds, fraction=self._fraction))


def _add_up(last: Progress, under_way: list[Progress]) -> Progress:
    """Return what several searches say together; `last` is what one of them said just now."""
    if len(under_way) == 1:
        return last
    earning = [progress for progress in under_way if progress.reward is not None]
    best = max(earning, key=lambda progress: progress.reward or 0.0, default=last)
    counts = ("histories", "evaluations", "samples", "memory", "pairs")
    sums = {name: sum(getattr(progress, name) for progress in under_way) for name in counts}
    return replace(best, phase=last.phase, **sums)


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
        Its `tell` is given the progress of each search; `finish` is called after each.
    """
    with watch_progress(on_progress, progress) as tell:
        yield Batch(tell)
