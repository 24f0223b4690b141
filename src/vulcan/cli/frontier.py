"""`vulcan frontier`: what could be earned for every risk that may be allowed."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli.choices import read_numbers
from vulcan.cli.codes import ExitCode, find_code
from vulcan.cli.options import (
    AsJson,
    Cluster,
    ExecutorName,
    From,
    Levels,
    ModelText,
    Plot,
    Points,
    ScaledBoundText,
    Scales,
    Settings,
    ShowProgress,
    SweepCheckpoint,
    SweepOverwrite,
    SweepResume,
    SweepWorkers,
    To,
)
from vulcan.cli.output import check_plot, save_plot, tell_saved
from vulcan.cli.search_options import LIMITS, SolverChoice, read_search, takes_search_options
from vulcan.cli.workers import read_executor

if TYPE_CHECKING:
    from vulcan.planning.frontier import Frontier

__all__ = ["EXAMPLES", "frontier"]

EXAMPLES = """
\b
Examples:
  vulcan frontier bandit --set horizon=6
  vulcan frontier bandit --levels 0,0.005,0.01 --gap 0.001 --json
  vulcan frontier bandit --from 0 --to 0.01 --points 11 --plot frontier.pdf
  vulcan frontier bandit --set horizon=5 --bound "0.002*x" --scales 0.5,1,2
  vulcan frontier bandit --points 41 --workers 4
  vulcan frontier mission.toml --set horizon=3 --scales 0.5,1,2
"""

LEGEND = ("price", "reward gained per unit of allowed risk; ≈ estimated from neighbours")


@takes_search_options((*LIMITS, "seed"))
def frontier(
    model: ModelText,
    settings: Settings = None,
    bound: ScaledBoundText = None,
    levels: Levels = None,
    scales: Scales = None,
    low: From = None,
    high: To = None,
    points: Points = None,
    solver: SolverChoice = "automatic",
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
    """Find the best reward, and the price of risk, over a range of risk bounds.

    The bounds are constant, or multiples of --bound; without --levels or --scales they are placed
    where most is unknown between what is earned and what is proved to be the limit. Limits are
    those of each search. The price of risk is what the best reward gains per unit of allowed risk.
    Ctrl-C ends it and shows the points so far.
    """
    import vulcan
    from vulcan.cli.models import keep_off_stdout
    from vulcan.formats.registry import open_model
    from vulcan.plotting import plot_frontier

    chosen = read_search(solver, search)
    with keep_off_stdout():
        planned, own_bound = open_model(model, settings or ())
        if bound is None and levels is None:
            bound = own_bound
        where = _choose_range(bound, levels, scales, low, high, points)
        problem = planned if bound is None else vulcan.Problem(planned, bound)
        check_plot(plot)
        traced = vulcan.trace_frontier(
            problem,
            solver=chosen.solver,
            seed=chosen.options.seed,
            workers=workers,
            executor=read_executor(workers, executor, cluster),
            checkpoint=checkpoint,
            resume=resume,
            overwrite=overwrite,
            progress=sys.stderr.isatty() if progress is None else progress,
            **asdict(chosen.limits),
            **where,
        )
    solved = any(point.safe for point in traced)
    try:
        if plot is not None and solved:
            save_plot(lambda: plot_frontier(traced), plot)
    finally:
        _show(traced, as_json)
    if plot is not None:
        tell_saved(plot, as_json, None if solved else "there is no policy")
    answer = ExitCode.YES if solved else ExitCode.NO
    raise typer.Exit(find_code(traced.stopped_by, answer))


def _choose_range(
    bound: str | None,
    levels: str | None,
    scales: str | None,
    low: float | None,
    high: float | None,
    points: int | None,
) -> dict[str, Any]:
    """Return the levels or scales that options ask for, and how many."""
    from vulcan.errors import OptionError
    from vulcan.planning.frontier import Span

    if bound is not None and levels is not None:
        raise OptionError(
            "--levels are constant bounds; multiples of --bound are given by --scales"
        )
    if bound is None and scales is not None:
        raise OptionError(
            "--scales are multiples of a bound: give it with --bound, or in a mission file"
        )
    kind = "levels" if bound is None else "scales"
    given = levels if bound is None else scales
    if given is None:
        return {kind: Span(low, high), **({} if points is None else {"points": points})}
    for name, value in (("--from", low), ("--to", high), ("--points", points)):
        if value is not None:
            raise OptionError(f"--{kind} says it all; omit {name}")
    return {kind: read_numbers(f"--{kind}", given)}


def _show(traced: Frontier, as_json: bool) -> None:
    from vulcan.cli import screen
    from vulcan.cli.documents import describe_frontier, print_document
    from vulcan.planning.spread import describe_lost

    if as_json:
        print_document(describe_frontier(traced))
        return
    console = screen.open_console()
    count = sum(point.safe for point in traced)
    verdict, style = ("✓ policies", screen.GOOD) if count else ("✗ no policy", screen.BAD)
    text = f"for {count} of {len(traced)} risk bounds"
    if traced.stopped_by is not None:
        text += f", stopped by {traced.stopped_by}"
        verdict, style = ("? stopped", screen.UNSURE) if not count else (verdict, screen.UNSURE)
    screen.show_heading(console, verdict, style, text)
    console.print()
    rows = [
        ("model", screen.clip(traced.model)),
        ("bounds", "constant" if traced.bound is None else f"multiples of Δ(x) = {traced.bound}"),
        ("solver", screen.clip(traced.solver)),
        ("evaluations", f"{traced.evaluations:,} of the model, by all searches"),
        ("time", f"{traced.seconds:.3g} s"),
    ]
    rows += [(f"{failure.at:g}", f"failed: {failure.error}") for failure in traced.failures]
    if traced.lost_workers:
        rows.append(describe_lost(traced.lost_workers))
    screen.show_rows(console, rows)
    if len(traced):
        console.print()
        styles = ["" if point.safe else screen.UNSURE for point in traced]
        screen.show_table(console, traced.tabulate(), styles)
        console.print()
        screen.show_rows(console, [LEGEND], {"price": screen.QUIET})
