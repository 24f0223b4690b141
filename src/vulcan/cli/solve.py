"""`vulcan solve`: plan, certify the plan, and show it."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli.codes import ExitCode, find_code
from vulcan.cli.options import (
    AsJson,
    BoundText,
    Cluster,
    Depth,
    ExecutorName,
    ModelText,
    Output,
    Settings,
    ShowProgress,
    UpperBound,
    Workers,
)
from vulcan.cli.output import check_output, tell_saved
from vulcan.cli.search_options import SolverChoice, read_search, takes_search_options
from vulcan.cli.workers import read_executor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from vulcan.planning.result import Result
    from vulcan.solvers.finding import Trial

__all__ = ["EXAMPLES", "solve"]

EXAMPLES = """
\b
Examples:
  vulcan solve bandit --bound "0.002*x"
  vulcan solve bandit --bound "0.02 * (1 - exp(-0.4*x))" --gap 0.001
  vulcan solve bandit --set horizon=10 --bound 0.0125 --solver forward-search
  vulcan solve bandit --bound "0.002*x" --solver vulcan --samples 50000
  vulcan solve bandit --bound "0.002*x" --solver penalty --upper-bound
  vulcan solve rover.py:Rover --bound 0.01 --output plan.vulcan --json
  vulcan solve mission.toml --set horizon=5 --time-limit 10
  vulcan solve mission.toml --samples 50000 --seeds 20 --workers 4
  vulcan solve gymnasium:FrozenLake-v1 --horizon 50 --bound 0.1
"""


@takes_search_options()
def solve(
    model: ModelText,
    bound: BoundText = None,
    settings: Settings = None,
    solver: SolverChoice = "automatic",
    upper_bound: UpperBound = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    cluster: Cluster = None,
    output: Output = None,
    depth: Depth = None,
    as_json: AsJson = False,
    progress: ShowProgress = None,
    **search: Any,
) -> None:
    """Find the best policy within a risk bound, and certify it.

    The model and the bound may also come from a mission file, written in TOML.

    Without --solver the model is unrolled as long as that pays and solved within a small proved
    gap, or else sampled; both end by themselves.
    With --seeds there are several searches, and the best is shown, beside the spread of all.
    Ctrl-C ends the search and shows the best policy so far. The solvers vulcan and uct go on until
    they have proved theirs the best or memory is full, which can take very long: a limit is usually
    wanted, such as --time-limit or --samples.
    """
    from vulcan.cli.models import find_problem, keep_off_stdout
    from vulcan.planning.solve import choose_search

    chosen = read_search(solver, search)
    with keep_off_stdout():
        problem = find_problem(model, settings or (), bound)
        if output is not None:
            check_output(output)
        who = read_executor(workers, executor, cluster)
        result = choose_search(chosen.seeds)(
            problem,
            chosen.solver,
            chosen.limits,
            replace(chosen.options, workers=workers, executor=who),
            bound=upper_bound,
            progress=sys.stderr.isatty() if progress is None else progress,
        )
    # Whoever reads the answer may leave before its end, and the disk may be full: neither the file
    # nor the answer is lost to the other.
    try:
        saved = output is not None and _save(result, output)
    finally:
        _show(result, chosen.solver.shows_trials, depth, as_json)
    if output is not None:
        reason = "there is no policy" if result.policy is None else "the policy is not safe"
        tell_saved(output, as_json, None if saved else reason)
    answer = ExitCode.YES if result.safe else ExitCode.NO
    raise typer.Exit(find_code(result.stopped_by, answer))


def _show(result: Result, with_trials: bool, depth: int | None, as_json: bool) -> None:
    from vulcan.cli import screen
    from vulcan.cli.documents import describe_result, print_document
    from vulcan.model.interface import describe_model

    if as_json:
        print_document(describe_result(result, screen.DEPTH if depth is None else depth))
        return
    console = screen.open_console()
    verdict, style = _judge(result)
    screen.show_heading(console, verdict, style, result.explanation)
    console.print()
    rows = [row for row in result.rows() if row[0] != "status"]
    rows.insert(0, ("model", screen.clip(describe_model(result.problem.model))))
    styles = {**screen.style_certificate(result.certificate), "surely fails": screen.UNSURE}
    screen.show_rows(console, rows, styles)
    if with_trials:
        _show_trials(console, result.trials)
    if result.policy is not None:
        screen.show_policy(console, result.policy, depth)


def _judge(result: Result) -> tuple[str, str]:
    """Return the answer in a word or two, and its colour."""
    from vulcan.cli import screen
    from vulcan.solvers.finding import Status

    if result.safe:
        return "✓ safe", screen.GOOD
    if result.policy is not None:
        close = result.certificate is not None and result.certificate.undecided
        return "✗ too close to say" if close else "✗ not safe", screen.BAD
    if result.status is Status.STOPPED:
        return "? no policy yet", screen.UNSURE
    return "✗ no policy", screen.BAD


def _save(result: Result, path: Path) -> bool:
    """Write a safe policy to a file; False if there is none."""
    if result.policy is None or not result.safe:
        return False
    result.policy.save(path)
    return True


def _show_trials(console: Console, trials: Sequence[Trial]) -> None:
    """Show what each penalty led to; neighbours that led to the same are one row."""
    from vulcan.cli import screen
    from vulcan.runtime.formatting import TextTable, show_probability, show_reward

    rows, styles = [], []
    for _, same in groupby(trials, key=lambda trial: (trial.reward, trial.risk)):
        first, *others = same
        last = others[-1] if others else first
        span = f"{first.multiplier:.4g}" + (f" to {last.multiplier:.4g}" if others else "")
        numbers = (show_probability(first.risk), show_probability(first.allowed))
        verdict = "acceptable" if first.passes else "too risky"
        rows.append([span, show_reward(first.reward), *numbers, verdict])
        styles.append(screen.GOOD if first.passes else screen.BAD)
    console.print()
    table = TextTable(["penalty", "reward", "risk", "allowed", ""], rows)
    screen.show_table(console, table, styles)
