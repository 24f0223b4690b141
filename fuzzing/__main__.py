"""`python -m fuzzing`: random problems, an oracle, and what Vulcan says of them."""

from __future__ import annotations

import os
import secrets
import sys
import time
from pathlib import Path
from typing import Annotated

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer

from fuzzing.checks.registry import CHECKS
from fuzzing.log import Log, find_last_log
from fuzzing.runner import Progress, run_campaign
from fuzzing.summary import write_summary

FOLDER = Path("build/fuzz")
FAULTY, INTERRUPTED = 1, 130
ANSWER_TIMEOUT = 120.0
"""Seconds of processor time for one problem alone: kernels may have to be compiled first."""


def main(
    minutes: Annotated[float, typer.Option(help="How long to go on.")] = 10.0,
    problems: Annotated[
        int | None, typer.Option(help="How many problems at the most, resumed ones included.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many processes; one per core by default.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the campaign; a new one by default.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a campaign: that seed's, or the last.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="Do one problem again, SEED:NUMBER, and make it small.")
    ] = None,
    check: Annotated[
        str | None, typer.Option(help='Make one check of each problem alone, such as "several".')
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where logs and reproducers are kept.")] = FOLDER,
    summary: Annotated[
        Path | None, typer.Option(help="File for the summary; beside the log by default.")
    ] = None,
) -> None:
    """Draw problems, solve them, and hold every answer against exact arithmetic.

    What is wrong is made small, and written as a test into the folder's `findings`. Exit code 1
    says that there was something.
    """
    if check is not None and check not in CHECKS:
        raise typer.BadParameter(f"--check is one of {', '.join(CHECKS)}")
    if only is not None:
        raise typer.Exit(_run_one(only, folder, check))
    if check is not None:
        folder = folder / check
    path = _choose_log(folder, seed, resume)
    log = Log(path, int(path.stem), check)
    same = f" --check {check}" * (check is not None)
    print(f"seed {log.seed}; python -m fuzzing --resume --seed {log.seed}{same} goes on with it")
    finished = run_campaign(
        log,
        folder / "findings",
        workers=workers or os.cpu_count() or 1,
        seconds=60 * minutes,
        most_problems=problems,
        on_progress=_Display(log.statistics.problems),
    )
    page = write_summary(log.statistics, log.header)
    target = summary or path.with_suffix(".md")
    target.write_text(page)
    print(page)
    print(f"log {path}, summary {target}")
    if not finished:
        raise typer.Exit(INTERRUPTED)
    if log.statistics.found:
        print(f"tests that fail are in {folder / 'findings'}")
        raise typer.Exit(FAULTY)


def _choose_log(folder: Path, seed: int | None, resume: bool) -> Path:
    if resume and seed is None:
        path = find_last_log(folder)
        if path is None:
            raise typer.BadParameter(f"there is no campaign in {folder} to go on with")
        return path
    path = folder / f"{secrets.randbelow(10**9) if seed is None else seed}.jsonl"
    if path.exists() and not resume:
        raise typer.BadParameter(f"{path} exists: --resume goes on with that campaign")
    return path


def _run_one(only: str, folder: Path, check: str | None) -> int:
    """Do one problem again, and say what is wrong."""
    from fuzzing.campaign import run_problem
    from fuzzing.checks.case import Means
    from fuzzing.reproducers import shrink, write_reproducer
    from fuzzing.statistics import Statistics
    from fuzzing.worker import be_strict

    seed, _, number = only.partition(":")
    be_strict()
    means = Means(answer_timeout=ANSWER_TIMEOUT)
    findings = list(run_problem(int(seed), int(number), means, Statistics(), check))
    for finding in findings:
        for fault in finding.faults:
            print(f"{fault.check} ({finding.case.planner}): {fault.message}")
        print(write_reproducer(shrink(finding, Means()), folder / "findings"))
    if not findings:
        print("nothing is wrong")
    return FAULTY if findings else 0


class _Display:
    """A line now and then.

    Parameters
    ----------
    before
        The problems of the campaign that is resumed.
    every
        Seconds between two lines.
    """

    def __init__(self, before: int, every: float = 30.0) -> None:
        self._before, self._every, self._spoken = before, every, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._spoken >= self._every:
            self._spoken = time.monotonic()
            speed = (progress.problems - self._before) / max(progress.seconds, 1e-9)
            print(
                f"{progress.seconds:6.0f} s  {progress.problems:,} problems, "
                f"{speed:,.0f} a second, {progress.found:,} with faults",
                file=sys.stderr,
                flush=True,
            )


if __name__ == "__main__":
    typer.run(main)
