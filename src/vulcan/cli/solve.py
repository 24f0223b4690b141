"""`vulcan solve`: plan, certify the plan, and show it."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import (
    AsJson,
    BoundText,
    CheckpointFile,
    CheckpointInterval,
    Complete,
    ConstraintLetter,
    CreditName,
    CutShort,
    Depth,
    Exploration,
    HistoryLimit,
    MemoryLimit,
    ModelText,
    Output,
    Paper,
    Resume,
    SampleLimit,
    Seed,
    Settings,
    ShowProgress,
    SolverChoice,
    SolverName,
    TargetGap,
    TimeLimit,
    Workers,
)

if TYPE_CHECKING:
    from vulcan.result import Result

__all__ = ["EXAMPLES", "solve"]

EXAMPLES = """
\b
Examples:
  vulcan solve bandit --bound "0.002*x"
  vulcan solve bandit --set horizon=10 --bound 0.0125 --constraint A
  vulcan solve bandit --bound "0.02 * (1 - exp(-0.4*x))" --time-limit 10
  vulcan solve bandit --bound "0.002*x" --solver vulcan --samples 50000
  vulcan solve rover.py:Rover --bound 0.01 --output plan.vulcan --json
"""


def solve(
    model: ModelText,
    bound: BoundText,
    settings: Settings = None,
    solver: SolverChoice = SolverName.FORWARD_SEARCH,
    constraint: ConstraintLetter = None,
    credit: CreditName = None,
    cut_short: CutShort = None,
    paper: Paper = None,
    exploration: Exploration = None,
    complete: Complete = None,
    seed: Seed = None,
    time_limit: TimeLimit = None,
    samples: SampleLimit = None,
    histories: HistoryLimit = None,
    memory: MemoryLimit = None,
    gap: TargetGap = None,
    checkpoint: CheckpointFile = None,
    checkpoint_every: CheckpointInterval = None,
    resume: Resume = None,
    workers: Workers = None,
    output: Output = None,
    depth: Depth = None,
    as_json: AsJson = False,
    progress: ShowProgress = None,
) -> None:
    """Find the best policy within a risk bound, and certify it.

    Ctrl-C ends the search and shows the best policy so far. The solvers vulcan and uct go on until
    they have proved theirs the best or memory is full, which can take very long: a limit is usually
    wanted, such as --time-limit or --samples.
    """
    import vulcan
    from vulcan.cli.models import find_model, keep_off_stdout
    from vulcan.cli.solvers import fitting, make_solver

    chosen = make_solver(solver, constraint, credit, cut_short, exploration, paper, gap)
    given = fitting(
        solver,
        samples=samples,
        memory=memory,
        gap=gap,
        seed=seed,
        complete=complete,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        workers=workers,
    )
    with keep_off_stdout():
        problem = vulcan.Problem(find_model(model, settings or ()), vulcan.parse(bound))
        if output is not None:
            _check_output(output)
        result = vulcan.solve(
            problem,
            chosen,
            time_limit=time_limit,
            histories=histories,
            progress=sys.stderr.isatty() if progress is None else progress,
            **given,
        )
    # Whoever reads the answer may leave before its end, and the disk may be full: neither the file
    # nor the answer is lost to the other.
    try:
        saved = output is not None and _save(result, output)
    finally:
        _show(result, depth, as_json)
    if output is not None:
        _tell_saved(result, output, saved, as_json)
    if result.stopped_by == "Ctrl-C":
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.YES if result.safe else ExitCode.NO)


def _check_output(path: Path) -> None:
    """Refuse a file that can't be written before the search, not after it."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))


def _show(result: Result, depth: int | None, as_json: bool) -> None:
    from vulcan.cli import screen
    from vulcan.cli.documents import describe_result, print_document
    from vulcan.model import describe_model

    if as_json:
        print_document(describe_result(result, screen.DEPTH if depth is None else depth))
        return
    console = screen.open_console()
    verdict, style = _judge(result)
    screen.show_heading(console, verdict, style, result.explanation)
    console.print()
    rows = [row for row in result.rows() if row[0] != "status"]
    rows.insert(0, ("model", screen.clip(describe_model(result.problem.model))))
    screen.show_rows(console, rows, screen.style_certificate(result.certificate))
    if result.policy is not None:
        screen.show_policy(console, result.policy, depth)


def _judge(result: Result) -> tuple[str, str]:
    """Return the answer in a word or two, and its colour."""
    from vulcan.cli import screen
    from vulcan.result import Status

    if result.safe:
        return "✓ safe", screen.GOOD
    if result.policy is not None:
        return "✗ not safe", screen.BAD
    if result.status is Status.STOPPED:
        return "? no policy yet", screen.UNSURE
    return "✗ no policy", screen.BAD


def _save(result: Result, path: Path) -> bool:
    """Write a safe policy to a file; False if there is none."""
    if result.policy is None or not result.safe:
        return False
    result.policy.save(path)
    return True


def _tell_saved(result: Result, path: Path, saved: bool, as_json: bool) -> None:
    from vulcan.cli import screen

    if not saved:
        reason = "there is no policy" if result.policy is None else "the policy is not safe"
        screen.show_note(f"{path} was not written: {reason}")
    elif not as_json:
        console = screen.open_console()
        console.print()
        screen.show_rows(console, [("saved", f"{path}  {path.stat().st_size:,} bytes")])
