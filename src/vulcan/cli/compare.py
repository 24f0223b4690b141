"""`vulcan compare`: several solvers on one problem, side by side."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli.codes import ExitCode, find_code
from vulcan.cli.options import (
    AsJson,
    BoundText,
    Cluster,
    ExecutorName,
    ModelText,
    Plot,
    Settings,
    ShowProgress,
    SweepCheckpoint,
    SweepOverwrite,
    SweepResume,
    SweepWorkers,
    UpperBound,
)
from vulcan.cli.output import check_plot, save_plot, tell_saved
from vulcan.cli.search_options import SolverList, takes_search_options
from vulcan.cli.workers import read_executor
from vulcan.errors import OptionError
from vulcan.parameters import suggest
from vulcan.solvers.base import Solver
from vulcan.solvers.registry import load_solvers

if TYPE_CHECKING:
    from vulcan.planning.comparison import Comparison

__all__ = ["EXAMPLES", "compare"]

EXAMPLES = """
\b
Examples:
  vulcan compare bandit --set horizon=5 --bound "0.002*x"
  vulcan compare bandit --bound 0.01 --solvers vulcan,pareto --time-limit 30
  vulcan compare three-actions --bound "0.004*x" --plot policies.svg
  vulcan compare bandit --bound 0.01 --workers 4
  vulcan compare mission.toml --set horizon=3
"""

WIDE = 110
"""Columns of a terminal from which on the table says more."""


@takes_search_options(
    ("time_limit", "samples", "histories", "memory", "seed"), tuning=False, seconds=10.0
)
def compare(
    model: ModelText,
    bound: BoundText = None,
    settings: Settings = None,
    solvers: SolverList = None,
    upper_bound: UpperBound = True,
    workers: SweepWorkers = None,
    executor: ExecutorName = None,
    cluster: Cluster = None,
    checkpoint: SweepCheckpoint = None,
    resume: SweepResume = False,
    overwrite: SweepOverwrite = False,
    plot: Plot = None,
    as_json: AsJson = False,
    progress: ShowProgress = None,
    **search: Any,
) -> None:
    """Solve a problem with several solvers, one after the other or --workers of them at once.

    Each gets the limits that it knows, and all are measured against the least upper bound that any
    of them proved. A solver that refuses the problem says why. Ctrl-C ends it and shows the solvers
    so far.
    """
    import vulcan
    from vulcan.cli.models import find_problem, keep_off_stdout
    from vulcan.plotting import plot_comparison

    named = _choose(solvers)
    with keep_off_stdout():
        problem = find_problem(model, settings or (), bound)
        check_plot(plot)
        compared = vulcan.compare(
            problem,
            named,
            bound=upper_bound,
            workers=workers,
            executor=read_executor(workers, executor, cluster),
            checkpoint=checkpoint,
            resume=resume,
            overwrite=overwrite,
            progress=sys.stderr.isatty() if progress is None else progress,
            **search,
        )
    drawn = any(row.certificate is not None for row in compared)
    try:
        if plot is not None and drawn:
            save_plot(lambda: plot_comparison(compared), plot)
    finally:
        _show(compared, as_json)
    if plot is not None:
        tell_saved(plot, as_json, None if drawn else "there is no policy")
    if compared.stopped_by is not None:
        raise typer.Exit(find_code(compared.stopped_by, ExitCode.INTERRUPTED))
    if all(row.error is not None for row in compared):
        raise typer.Exit(ExitCode.BAD_INPUT)
    raise typer.Exit(ExitCode.YES if any(row.safe for row in compared) else ExitCode.NO)


def _choose(names: str | None) -> dict[str, Solver]:
    """Return the solvers of a string such as vulcan,pareto, each once; all but the default."""
    known = load_solvers()
    _, *every = known
    chosen = every if names is None else [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in known:
            raise OptionError(
                f"--solvers has no {name!r}{suggest(name, known)}\nsolvers are {', '.join(known)}"
            )
    return {name: known[name]() for name in chosen}


def _show(compared: Comparison, as_json: bool) -> None:
    from vulcan.cli import screen
    from vulcan.cli.documents import describe_comparison, print_document
    from vulcan.model.interface import describe_model
    from vulcan.planning.spread import describe_lost
    from vulcan.runtime.formatting import show_reward

    if as_json:
        print_document(describe_comparison(compared))
        return
    console = screen.open_console()
    solved = sum(row.safe for row in compared)
    verdict, style = ("✓ safe", screen.GOOD) if solved else ("✗ no policy", screen.BAD)
    text = f"policies of {solved} of {len(compared)} solvers"
    if compared.stopped_by is not None:
        text += f", stopped by {compared.stopped_by}"
    screen.show_heading(console, verdict, style, text)
    console.print()
    uppers = (compared.upper_bound, compared.randomised_upper_bound)
    at_most = show_reward(uppers[0])
    if uppers[0] != uppers[1] and uppers[1] is not None:
        at_most += f" of deterministic policies, {show_reward(uppers[1])} of all"
    rows = [
        ("model", screen.clip(describe_model(compared.problem.model))),
        ("risk bound", f"Δ(x) = {compared.problem.risk_bound}"),
        ("upper bound", at_most),
    ]
    if compared.lost_workers:
        rows.append(describe_lost(compared.lost_workers))
    screen.show_rows(console, rows)
    console.print()
    styles = [screen.QUIET if row.safe else screen.UNSURE for row in compared]
    table = compared.tabulate(wide=console.width >= WIDE)
    screen.show_table(console, table, styles)
