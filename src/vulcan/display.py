"""Live progress of a search, on standard error.

On a terminal two lines are kept up to date and removed at the end:

    searching ━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━  41 %  12 s, about 17 s left
    32,505,856 histories   2.7 M/s   reward so far 5.3612

Elsewhere a line is written now and then, at times that double.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vulcan.progress import OnProgress, Progress

__all__ = ["show_progress"]

PATIENCE: Final = 0.5
"""Seconds before anything is shown: what is done by then needs no progress."""


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Show the progress of a search while inside.

    Yields
    ------
    OnProgress
        Call it with each `Progress`.

    Examples
    --------
    >>> with show_progress() as show:
    ...     show(Progress(seconds=0.1, fraction=0.5, histories=1000, evaluations=10, reward=None))
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(console).show
        return
    # Refreshed by each report instead of by a thread: the search holds the interpreter anyway.
    live = Live(console=console, transient=True, auto_refresh=False)

    def show(progress: Progress) -> None:
        if progress.seconds < PATIENCE:
            return
        if not live.is_started:
            live.start()
        live.update(_draw(progress), refresh=True)

    try:
        yield show
    finally:
        live.stop()


class _Lines:
    """Progress for a file: a line whenever the time has doubled."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = PATIENCE

    def show(self, progress: Progress) -> None:
        if progress.seconds >= self._next:
            self._next = 2 * progress.seconds
            words = ["searching", _percent(progress), _times(progress), _counts(progress)]
            self._console.print("  ".join(words), soft_wrap=True)


def _draw(progress: Progress) -> Group:
    first = Table.grid(padding=(0, 1), expand=True)
    first.add_column()
    first.add_column(ratio=1)
    first.add_column(justify="right")
    first.add_column()
    first.add_row(
        "searching",
        ProgressBar(total=1.0, completed=progress.fraction),
        Text(_percent(progress), style="bold"),
        _times(progress),
    )
    return Group(first, Text(_counts(progress), style="dim", no_wrap=True, overflow="ellipsis"))


def _percent(progress: Progress) -> str:
    percent = 100 * progress.fraction
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _times(progress: Progress) -> str:
    text = _duration(progress.seconds)
    if 0 < progress.fraction < 1:
        left = progress.seconds * (1 - progress.fraction) / progress.fraction
        text += f", about {_duration(left)} left"
    return text


def _counts(progress: Progress) -> str:
    speed = progress.histories / max(progress.seconds, 1e-9)
    reward = "no policy yet" if progress.reward is None else f"reward so far {progress.reward:.6f}"
    return f"{progress.histories:,} histories   {_short(speed)}/s   {reward}"


def _short(number: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def _duration(seconds: float) -> str:
    """Return a time as people say it: the largest unit that fits, and the one below."""
    whole = round(min(seconds, 1e12))
    if whole > 365 * 86400:
        return "more than a year"
    for (unit, size), (lower, part) in pairwise(UNITS):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {lower}"
    return f"{whole} s"
