"""Live progress of a search, on standard error.

On a terminal, a few lines are updated in place and removed at the end:

    searching ━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━━━ 41 % 3 s, about 5 s left
    320,768 samples   95,700/s   1,917,574 histories   321.0 MB   Ctrl-C stops
    reward 6.015297   risk 0.010350 of 0.012031 allowed   planned 100 %

An exact solver shows pairs, reward, upper bound and gap instead, a simulation its episodes. A
notebook shows the same lines in its cell, by IPython without widgets. Elsewhere a line is written
whenever the time has doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.filesize import decimal
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vulcan.runtime.formatting import show_count, show_gap, show_probability, show_reward
from vulcan.runtime.limits import DELAY, OnProgress, Progress, is_notebook

Draw = Callable[[Progress, str], None]


@contextmanager
def show_progress(delay: float = DELAY) -> Iterator[OnProgress]:
    """Yield a function that shows a `Progress`, once a delay in seconds is over."""
    console = Console(stderr=True, highlight=False)
    lasting = not console.is_terminal or console.is_dumb_terminal
    drawer = _update_cell if is_notebook() else _write_lines if lasting else _update_terminal
    first: Progress | None = None
    with drawer(console) as draw:

        def show(progress: Progress) -> None:
            nonlocal first
            if progress.seconds < delay or not (progress.histories or progress.pairs):
                return
            # The time left is extrapolated from the first report on: before it, whole branches
            # may be pruned at once, which says nothing about the others.
            if first is None or first.phase != progress.phase:
                first = progress
            time, begun, done = _duration(progress.seconds), first.fraction, progress.fraction
            if begun is not None and done is not None and begun < done < 1:
                left = (progress.seconds - first.seconds) * (1 - done) / (done - begun)
                time += f", about {_duration(left)} left"
            draw(progress, time)

        yield show


@contextmanager
def _write_lines(console: Console) -> Iterator[Draw]:
    """Write a line whenever the time has doubled, for a file."""
    due = DELAY

    def draw(progress: Progress, time: str) -> None:
        nonlocal due
        if progress.seconds >= due:
            due = 2 * progress.seconds
            words = [progress.phase, _percent(progress), time, *_describe(progress)]
            console.print("   ".join(filter(None, words)), soft_wrap=True)

    yield draw


@contextmanager
def _update_terminal(console: Console) -> Iterator[Draw]:
    """Update a few lines in place, and remove them at the end."""
    # The terminal writes ^C after the last line; without room for it, the first line would remain.
    room = len("^C^C")
    # Refreshed by reports, not by a thread: the search holds the interpreter most of the time.
    live = Live(console=console, transient=True, auto_refresh=False)

    def draw(progress: Progress, time: str) -> None:
        if not live.is_started:
            live.start()
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column()
        head.add_column(ratio=1)
        unknown = progress.fraction is None
        bar = ProgressBar(total=1.0, completed=progress.fraction or 0.0, pulse=unknown)
        head.add_row(progress.phase, bar, _percent(progress), time)
        counts, *judgement = _describe(progress)
        lines = [f"{counts}   Ctrl-C stops", *judgement]
        text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        live.update(Constrain(Group(head, text), max(1, console.width - room)), refresh=True)

    try:
        yield draw
    finally:
        live.stop()


@contextmanager
def _update_cell(_: Console) -> Iterator[Draw]:
    """Update a part of a notebook's cell, and empty it at the end."""
    from IPython.display import display

    shown: Any = None

    def draw(progress: Progress, time: str) -> None:
        nonlocal shown
        head = "   ".join(filter(None, [progress.phase, _percent(progress), time]))
        content = {"text/plain": "\n".join([head, *_describe(progress)])}
        if shown is None:
            shown = display(content, raw=True, display_id=True)
        else:
            shown.update(content, raw=True)

    try:
        yield draw
    finally:
        if shown is not None:
            shown.update({"text/plain": ""}, raw=True)


def _percent(progress: Progress) -> str:
    if progress.fraction is None:
        return ""
    percent = 100 * progress.fraction
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _describe(progress: Progress) -> list[str]:
    """Return a line of counts, and for a tree search one about its best policy."""
    earned = progress.reward
    reward = "no policy yet" if earned is None else f"reward so far {show_reward(earned)}"
    if progress.samples:
        speed = show_count(round(progress.samples / progress.seconds))
        counts = f"{progress.samples:,} samples   {speed}/s   {progress.histories:,} histories"
        if (best := progress.judgement) is not None:
            # Rounded down, so that only a complete policy has 100 %.
            percent = 100.0 if best.complete else math.floor(1e4 * (1 - best.frontier)) / 100
            risk, allowed = (show_probability(float(x)) for x in (best.risk, best.allowed))
            reward = f"reward {show_reward(float(best.reward))}   risk {risk} of {allowed} allowed"
            reward += f"   planned {percent:g} %"
        return [f"{counts}   {decimal(progress.memory)}", reward]
    if progress.pairs:
        counts = f"{progress.pairs:,} pairs   {progress.evaluations:,} evaluations"
        bound, gap = progress.upper_bound, progress.gap
        most = "" if bound is None else f"   at most {show_reward(bound)}"
        return [f"{counts}   {reward}{most}{'' if gap is None else f'   gap {show_gap(gap)}'}"]
    unit = "episodes" if progress.phase == "playing" else "histories"
    speed = show_count(round(progress.histories / progress.seconds))
    note = f"   {progress.note}" if progress.note else ""
    return [f"{progress.histories:,} {unit}   {speed}/s   {reward}{note}"]


def _duration(seconds: float) -> str:
    """Return a time in the largest unit that fits, and the one below."""
    if seconds >= 100 * 3600:
        return "more than four days"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
