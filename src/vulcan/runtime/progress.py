"""What a search, or a simulation, tells while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vulcan.certificates.certificate import Judgement


class Phase(StrEnum):
    """What is being done; users see the text."""

    SEARCHING = "searching"
    CERTIFYING = "certifying"
    PLAYING = "playing"


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes
    ----------
    seconds
        Time since the search began.
    fraction
        Estimated share of the search that is done, from 0 to 1; None where nobody can know.
    histories, evaluations
        Histories visited, or episodes played, and (state, action) asked so far.
    reward
        Expected reward of the best policy so far, or mean reward of the episodes; None without one.
    samples
        Samples taken so far; 0 for a search that takes none.
    memory
        Bytes of the search tree and the state graph.
    judgement
        What the search says of its best policy so far; the result has a certificate of it.
    upper_bound, gap
        No policy within the risk bound earns more, and how far the reward is below that, as a share
        of it; None where nobody knows.
    pairs
        Pairs of state and step that an exact solver works on; 0 for others.
    phase
        What is being done. `fraction` is the share of that.
    """

    seconds: float
    fraction: float | None
    histories: int
    evaluations: int
    reward: float | None
    samples: int = 0
    memory: int = 0
    judgement: Judgement | None = None
    upper_bound: float | None = None
    gap: float | None = None
    pairs: int = 0
    phase: Phase = Phase.SEARCHING


OnProgress = Callable[[Progress], None]


@contextmanager
def watch_progress(on_progress: OnProgress | None, shown: bool) -> Iterator[OnProgress | None]:
    """Yield what to tell progress to: the user's function, the terminal if wanted, or both."""
    if not shown:
        yield on_progress
        return
    from vulcan.runtime.display import show_progress

    with show_progress() as show:

        def tell(progress: Progress) -> None:
            show(progress)
            if on_progress is not None:
                on_progress(progress)

        yield tell
