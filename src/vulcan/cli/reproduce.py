"""`vulcan reproduce`: the paper's experiments, in one report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from vulcan.cli.codes import ExitCode

__all__ = ["EXAMPLES", "reproduce"]

EXAMPLES = """
\b
Examples:
  vulcan reproduce --quick
  vulcan reproduce --output report --only bandit-table
  vulcan reproduce --redraw
"""

SILENCE: Final = 30.0
"""Seconds between two lines where there is no terminal to draw a bar in."""


def reproduce(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the report and its raw data: reproduction, or reproduction-quick.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller runs: minutes instead of hours.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Name of a part to run, or several with commas; repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; one per core by default.")
    ] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Run nothing; make the report of what is there.")
    ] = False,
) -> None:
    """Run the experiments of the paper again, and set its figures beside ours.

    What was run is kept in the output folder, so that a run that was broken off goes on where it
    was, and figures can be drawn again without running anything.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from vulcan.reproduce import reproduce as run
    from vulcan.reproduce.runner import Advance

    console = Console(stderr=True)
    spoken = time.monotonic()
    names = [name.strip() for name in ",".join(only or []).split(",") if name.strip()]
    with Progress(
        TextColumn("{task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=redraw,
    ) as progress:
        bar = progress.add_task("", total=None)

        def tell(advance: Advance) -> None:
            minutes = advance.seconds_left / 60
            left = f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
            text = f"{advance.part}  {left}" if advance.done < advance.total else ""
            progress.update(bar, completed=advance.done, total=advance.total, description=text)
            nonlocal spoken
            if not console.is_terminal and time.monotonic() - spoken >= SILENCE:
                # A bar in a file would show when all is over, and not before.
                spoken = time.monotonic()
                console.print(f"{advance.done}/{advance.total}  {text}")

        report = run(
            output or Path("reproduction-quick" if quick else "reproduction"),
            quick=quick,
            only=names,
            workers=workers,
            redraw=redraw,
            on_advance=tell,
        )
    typer.echo(f"the report is in {report.page}")
    if report.done < report.total and not redraw:
        typer.echo(f"stopped: {report.done:,} of {report.total:,} tasks were run; they are kept")
        raise typer.Exit(ExitCode.INTERRUPTED)
