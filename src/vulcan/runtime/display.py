"""Live progress of a search, on standard error.

On a terminal some lines are kept up to date and removed at the end. A forward search has two:

    searching ━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━━ 41 % 12 s, about 17 s left
    432,505,856 histories   36 M/s   reward so far 5.361217             Ctrl-C stops

and a tree search, which certifies its policies as it goes, three. The curve is their reward over
time, from the lowest seen to the highest:

    searching ━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━━━ 41 % 3 s, about 5 s left
    320,768 samples   95.7 k/s   1,917,574 histories   321 MB           Ctrl-C stops
    reward 6.015297   risk 0.010350 of 0.012031 allowed   planned 100 %   ▁▁▃▃▅▅▅▅██

An exact solver says how far its reward is below the upper bound, so that one knows when to stop:

    searching ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 2 s
    67,301 pairs   336,505 questions   reward so far 2.839731   at most 2.873470   gap 1.2 %

A simulation that is played in Python has two as well:

    playing ━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━━━ 43 % 4 s, about 5 s left
    43,111 episodes   10.8 k/s   reward so far 0.722485                 Ctrl-C stops

A notebook has the same in its cell, kept up to date and removed at the end, by IPython alone: no
widgets are needed. Elsewhere a line is written now and then, at times that double.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vulcan.runtime.formatting import show_gap, show_probability
from vulcan.runtime.markup import BLUE
from vulcan.runtime.progress import OnProgress, Phase, Progress

__all__ = ["show_progress"]

Steps = Sequence[tuple[float, float]]
"""When the reward of the best policy changed, in seconds, and to what."""

Draw = Callable[[Progress, str, Steps], None]

BLOCKS: Final = "▁▂▃▄▅▆▇█"
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
    drawer = _update_cell if _is_notebook() else _write_lines if lasting else _keep_picture
    first: Progress | None = None
    steps: list[tuple[float, float]] = []
    with drawer(console) as draw:

        def show(progress: Progress) -> None:
            nonlocal first
            reward = progress.reward
            if reward is not None and (not steps or steps[-1][1] != reward):
                steps.append((progress.seconds, reward))
            if progress.seconds < PATIENCE or not (progress.histories or progress.pairs):
                return
            # The time left follows from what was seen happening since this first report. Whole
            # branches may be gone in an instant, which says nothing about the others.
            if first is None or first.phase is not progress.phase:
                first = progress
            draw(progress, _times(first, progress), steps)

        yield show


@contextmanager
def _write_lines(console: Console) -> Iterator[Draw]:
    """Write a line whenever the time has doubled: for a file."""
    due = PATIENCE

    def draw(progress: Progress, times: str, _: Steps) -> None:
        nonlocal due
        if progress.seconds >= due:
            due = 2 * progress.seconds
            words = [progress.phase, _percent(progress), times, _counts(progress)]
            if progress.samples:
                words.append(_judgement(progress).plain)
            console.print("   ".join(filter(None, words)), soft_wrap=True)

    yield draw


@contextmanager
def _keep_picture(console: Console) -> Iterator[Draw]:
    """Keep a few lines up to date, and remove them at the end: for a terminal."""
    # The terminal writes ^C behind the last line. Without room for it that would begin a new line,
    # and the first one would be left over.
    room = len("^C^C")
    # Each report refreshes it, not a thread: the search has the interpreter most of the time.
    live = Live(console=console, transient=True, auto_refresh=False)

    def draw(progress: Progress, times: str, steps: Steps) -> None:
        if not live.is_started:
            live.start()
        picture = Constrain(_picture(progress, times, steps), max(1, console.width - room))
        live.update(picture, refresh=True)

    try:
        yield draw
    finally:
        live.stop()


def _is_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython in a terminal is none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _update_cell(_: Console) -> Iterator[Draw]:
    """Keep a part of a cell up to date, and empty it at the end: for a notebook."""
    from IPython.display import HTML, display

    shown: Any = None

    def draw(progress: Progress, times: str, steps: Steps) -> None:
        nonlocal shown
        picture = HTML(_write_html(progress, times, steps))
        if shown is None:
            shown = display(picture, display_id=True)
        else:
            shown.update(picture)

    try:
        yield draw
    finally:
        if shown is not None:
            shown.update(HTML(""))


def _write_html(progress: Progress, times: str, steps: Steps) -> str:
    """Return the lines of a terminal as HTML."""
    share = 100 * (progress.fraction or 0.0)
    bar = (
        '<div style="height: 5px; border-radius: 3px; max-width: 40em; '
        'background: color-mix(in srgb, currentColor 15%, transparent)">'
        f'<div style="height: 5px; border-radius: 3px; width: {share:.1f}%; background: {BLUE}">'
        "</div></div>"
    )
    lines = ["   ".join(filter(None, [progress.phase, _percent(progress), times]))]
    lines.append(f"{_counts(progress)}   interrupt stops")
    if progress.samples:
        lines.append(f"{_judgement(progress).plain}   {_draw_curve(steps, progress.seconds, 30)}")
    text = escape("\n".join(lines))
    return f'{bar}<pre style="margin: .3em 0; background: none; color: inherit">{text}</pre>'


def _picture(progress: Progress, times: str, steps: Steps) -> Group:
    first = Table.grid(padding=(0, 1), expand=True)
    first.add_column()
    first.add_column(ratio=1)
    first.add_column(justify="right", no_wrap=True, style="bold")
    first.add_column(no_wrap=True)
    if progress.fraction is None:
        bar = ProgressBar(pulse=True)  # nobody knows how far it is, only that it goes on
    else:
        bar = ProgressBar(total=1.0, completed=progress.fraction)
    first.add_row(progress.phase, bar, _percent(progress), times)
    second = Table.grid(padding=(0, 1), expand=True)
    second.add_column(ratio=1, no_wrap=True, style="dim")
    second.add_column(justify="right", no_wrap=True, style="dim")
    second.add_row(_counts(progress), "Ctrl-C stops")
    if not progress.samples:
        return Group(first, second)
    third = Table.grid(padding=(0, 3), expand=True)
    third.add_column(no_wrap=True)
    third.add_column(ratio=1)
    third.add_row(_judgement(progress), _Curve(steps, progress.seconds))
    return Group(first, second, third)


@dataclass(frozen=True)
class _Curve:
    """Reward over time in one line, as wide as there is room."""

    steps: Steps
    seconds: float

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        # A terminal that lacks the blocks would show a row of question marks.
        if not options.ascii_only:
            yield Text(_draw_curve(self.steps, self.seconds, options.max_width), style="cyan")


def _draw_curve(steps: Steps, seconds: float, width: int) -> str:
    """Return one block for each equal part of the time; none before there was a reward."""
    times = [time for time, _ in steps]
    rewards = [reward for _, reward in steps]
    low, high = min(rewards, default=0.0), max(rewards, default=0.0)
    curve = ""
    for column in range(width):
        position = bisect(times, seconds * (column + 1) / width)
        if position == 0:
            curve += " "
            continue
        height = (rewards[position - 1] - low) / (high - low) if high > low else 1.0
        curve += BLOCKS[round(height * (len(BLOCKS) - 1))]
    return curve


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
    seconds = max(progress.seconds, 1e-9)
    if progress.samples:
        return (
            f"{progress.samples:,} samples   {_short(progress.samples / seconds)}/s   "
            f"{progress.histories:,} histories   {_short(progress.memory)}B"
        )
    reward = "no policy yet" if progress.reward is None else f"reward so far {progress.reward:.6f}"
    if progress.pairs:
        counts = f"{progress.pairs:,} pairs   {progress.evaluations:,} questions"
        return f"{counts}   {reward}{_bound(progress)}"
    speed = progress.histories / seconds
    unit = "episodes" if progress.phase is Phase.PLAYING else "histories"
    return f"{progress.histories:,} {unit}   {_short(speed)}/s   {reward}"


def _bound(progress: Progress) -> str:
    """Return the upper bound and how far the reward is below it, as far as they are known."""
    if progress.upper_bound is None:
        return ""
    text = f"   at most {progress.upper_bound:.6f}"
    return text if progress.gap is None else f"{text}   gap {show_gap(progress.gap)}"


def _judgement(progress: Progress) -> Text:
    """Return what the best policy of a tree search earns and risks, and how much it has planned."""
    judgement = progress.judgement
    if judgement is None:
        known = progress.reward is not None
        return Text(f"reward {progress.reward:.6f}" if known else "no policy yet")
    # Rounded down, so that only a complete policy has 100 %.
    percent = 100.0 if judgement.complete else math.floor(1e4 * (1 - judgement.frontier)) / 100
    risk = show_probability(float(judgement.risk))
    allowed = show_probability(float(judgement.allowed))
    return Text.assemble(
        (f"reward {float(judgement.reward):.6f}", "bold"),
        "   ",
        (f"risk {risk}", "green" if judgement.passes else "red"),
        f" of {allowed} allowed   ",
        (f"planned {percent:g} %", "" if judgement.complete else "yellow"),
    )


def _short(number: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= 0.9995 * size:  # where three digits would round to 1000 of the smaller unit
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
