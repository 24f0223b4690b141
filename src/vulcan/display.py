"""Live progress of a search, on standard error.

On a terminal two lines are kept up to date and removed at the end:

    searching ━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━━ 41 % 12 s, about 17 s left
    432,505,856 histories   36 M/s   reward so far 5.361217             Ctrl-C stops

Elsewhere a line is written now and then, at times that double.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from vulcan.progress import OnProgress, Progress

__all__ = ["show_progress"]

Draw = Callable[[Progress, str], None]

UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

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
    lasting = not console.is_terminal or console.is_dumb_terminal
    first: Progress | None = None
    with (_write_lines if lasting else _keep_picture)(console) as draw:

        def show(progress: Progress) -> None:
            nonlocal first
            if progress.seconds < PATIENCE or not progress.histories:
                return
            # The time left follows from what was seen happening since this first report. Whole
            # branches may be gone in an instant, which says nothing about the others.
            first = first or progress
            draw(progress, _times(first, progress))

        yield show


@contextmanager
def _write_lines(console: Console) -> Iterator[Draw]:
    """Write a line whenever the time has doubled: for a file."""
    due = PATIENCE

    def draw(progress: Progress, times: str) -> None:
        nonlocal due
        if progress.seconds >= due:
            due = 2 * progress.seconds
            words = ("searching", _percent(progress), times, _counts(progress))
            console.print("   ".join(words), soft_wrap=True)

    yield draw


@contextmanager
def _keep_picture(console: Console) -> Iterator[Draw]:
    """Keep two lines up to date, and remove them at the end: for a terminal."""
    # Each report refreshes it, not a thread: the search has the interpreter most of the time.
    live = Live(console=console, transient=True, auto_refresh=False)

    def draw(progress: Progress, times: str) -> None:
        if not live.is_started:
            live.start()
        live.update(_picture(progress, times), refresh=True)

    try:
        yield draw
    finally:
        live.stop()


def _picture(progress: Progress, times: str) -> Group:
    first = Table.grid(padding=(0, 1), expand=True)
    first.add_column()
    first.add_column(ratio=1)
    first.add_column(justify="right", no_wrap=True, style="bold")
    first.add_column(no_wrap=True)
    bar = ProgressBar(total=1.0, completed=progress.fraction or 0.0)
    first.add_row("searching", bar, _percent(progress), times)
    second = Table.grid(padding=(0, 1), expand=True)
    second.add_column(ratio=1, no_wrap=True, style="dim")
    second.add_column(justify="right", no_wrap=True, style="dim")
    second.add_row(_counts(progress), "Ctrl-C stops")
    return Group(first, second)


def _percent(progress: Progress) -> str:
    if progress.fraction is None:
        return ""
    percent = 100 * progress.fraction
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _times(first: Progress, now: Progress) -> str:
    text = _duration(now.seconds)
    if (
        first.fraction is not None
        and now.fraction is not None
        and first.fraction < now.fraction < 1
    ):
        passed = now.seconds - first.seconds
        left = passed * (1 - now.fraction) / (now.fraction - first.fraction)
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


def _duration(seconds: float) -> str:
    """Return a time as people say it: the largest unit that fits, and the one below."""
    whole = round(min(seconds, 1e12))
    if whole > 365 * 86400:
        return "a year or more"
    for (unit, size), (lower, part) in pairwise(UNITS):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {lower}"
    return f"{whole} s"
