"""`python -m reproduction`: the paper's experiments, in one report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from reproduction.reproduction import reproduce
from reproduction.runner import Advance
from vulcan.cli import ExitCode
from vulcan.cli.options import OPTIONS, read_parallel
from vulcan.cli.output import show_error
from vulcan.errors import VulcanError

SILENCE: Final = 30.0
"""Seconds between two lines where there is no terminal to draw a bar in."""


def main(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the report and its raw data: report, or report-quick."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller runs: minutes instead of hours.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Name of a part to run, or several with commas; repeatable."),
    ] = None,
    parallel: Annotated[str | None, OPTIONS["parallel"]] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Run nothing; make the report of what is there.")
    ] = False,
) -> None:
    """Run the experiments of the paper again, and set its figures beside ours.

    What was run is kept in the output folder, so that an interrupted run is resumed where it was,
    and figures can be drawn again without running anything.
    """
    names = [name.strip() for name in ",".join(only or []).split(",") if name.strip()]
    try:
        with _Display(shown=not redraw) as display:
            report = reproduce(
                output or Path("report-quick" if quick else "report"),
                quick=quick,
                only=names,
                parallel=read_parallel(parallel),
                redraw=redraw,
                on_advance=display.tell,
            )
    except (VulcanError, OSError) as error:
        show_error(error)
        raise typer.Exit(ExitCode.BAD_INPUT) from None
    typer.echo(f"the report is in {report.page}")
    if report.done < report.total and not redraw:
        typer.echo(f"interrupted: {report.done:,} of {report.total:,} tasks were run and are kept")
        raise typer.Exit(ExitCode.INTERRUPTED)


class _Display(Progress):
    """A bar, or a line now and then where there is no terminal."""

    def __init__(self, shown: bool) -> None:
        columns = (TextColumn("{task.completed}/{task.total}"), BarColumn())
        text = TextColumn("{task.description}")
        super().__init__(*columns, text, console=Console(stderr=True), disable=not shown)
        self._bar = self.add_task("", total=None)
        self._spoken = time.monotonic()

    def tell(self, advance: Advance) -> None:
        """Show how far the reproduction is."""
        minutes = advance.seconds_left / 60
        left = f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
        text = f"{advance.part}  {left}" if advance.done < advance.total else ""
        self.update(self._bar, completed=advance.done, total=advance.total, description=text)
        if not self.console.is_terminal and time.monotonic() - self._spoken >= SILENCE:
            # A bar in a file would show when all is over, and not before.
            self._spoken = time.monotonic()
            self.console.print(f"{advance.done}/{advance.total}  {text}")


if __name__ == "__main__":
    typer.run(main)
