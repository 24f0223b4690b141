"""`vulcan compare` and `vulcan frontier`: several searches, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli import ExitCode, documents, find_code, options, output
from vulcan.cli.search import make_solver, read_keywords
from vulcan.errors import OptionError
from vulcan.runtime.formatting import clip, show_reward
from vulcan.solvers.base import load_solvers

if TYPE_CHECKING:
    from vulcan.constraints import Constraint
    from vulcan.planning.compare import Comparison
    from vulcan.planning.frontier import Frontier


def compare(
    model: str,
    bound: str | None = None,
    constraints: list[str] | None = None,
    settings: list[str] | None = None,
    solvers: str | None = None,
    time_limit: float = 10.0,
    plot: Path | None = None,
    as_json: bool = False,
    *,
    search: Mapping[str, Any],
) -> None:
    """Solve a problem with several solvers, one after the other or --parallel N of them at once.

    Each gets the limits that it takes, and all are measured against the smallest upper bound that
    any of them proved. A solver that refuses the problem says why. Ctrl-C ends it and shows the
    solvers so far.

    Examples
    --------
    vulcan compare bandit --set horizon=5 --bound "0.002*x"
    vulcan compare bandit --bound 0.01 --solvers vulcan,paper-vulcan:2
    vulcan compare three-actions --bound "0.004*x" --plot policies.svg
    """
    import vulcan
    from vulcan.plotting import plot_comparison, save

    _, *every = load_solvers()
    names = every if solvers is None else [name.strip() for name in solvers.split(",")]
    with options.keep_off_stdout():
        problem = options.find_problem(model, settings, bound, constraints)
        output.check_output(plot, figure=True)
        keywords = read_keywords({**search, "time_limit": time_limit})
        compared = vulcan.compare(problem, list(dict.fromkeys(names)), **keywords)
    output.write_and_show(
        lambda path: save(plot_comparison(compared), path),
        plot,
        lambda: _show_comparison(compared, as_json),
        as_json=as_json,
        obstacle=None if any(row.certificate for row in compared) else "there is no policy",
    )
    if compared.stopped_by is not None:
        raise typer.Exit(find_code(compared.stopped_by, ExitCode.INTERRUPTED))
    if all(row.error is not None for row in compared):
        raise typer.Exit(ExitCode.BAD_INPUT)
    raise typer.Exit(ExitCode.YES if any(row.safe for row in compared) else ExitCode.NO)


def _show_comparison(compared: Comparison, as_json: bool) -> None:
    if as_json:
        documents.print_document(documents.describe_comparison(compared))
        return
    solved = sum(row.safe for row in compared)
    verdict, style = ("✓ safe", output.GOOD) if solved else ("✗ no policy", output.BAD)
    text = f"policies of {solved} of {len(compared)} solvers"
    if compared.stopped_by is not None:
        text += f", stopped by {compared.stopped_by}"
    at_most, randomised = show_reward(compared.upper_bound), compared.randomised_upper_bound
    if randomised not in (None, compared.upper_bound):
        at_most += f" of deterministic policies, {show_reward(randomised)} of all"
    rows = [
        output.name_model(compared.problem.model),
        ("risk bound", f"Δ(x) = {compared.problem.risk_bound}"),
        *((limit.quantity, f"at most {limit.bound}") for limit in compared.problem.constraints),
        ("upper bound", at_most),
    ]
    if compared.lost_workers:
        rows.append(output.describe_lost(compared.lost_workers))
    console = output.show_answer(verdict, style, text, rows)
    console.print()
    output.show_table(console, compared.tabulate())


def frontier(
    model: str,
    settings: list[str] | None = None,
    bound: str | None = None,
    constraints: list[str] | None = None,
    levels: str | None = None,
    scales: str | None = None,
    points: int | None = None,
    curves: str | None = None,
    solver: str = "automatic",
    plot: Path | None = None,
    as_json: bool = False,
    *,
    search: Mapping[str, Any],
) -> None:
    """Find the best reward, and the price of risk, over a range of risk bounds.

    The bounds are constant, or multiples of --bound; without --levels or --scales they are placed
    where the difference between the reward found and its upper bound is largest. Limits are those
    of each search. The price of risk is the reward gained per unit of allowed risk. Ctrl-C ends it
    and shows the points so far. Every --constraint holds at all points; with --curves there is a
    frontier for each value of one.

    Examples
    --------
    vulcan frontier bandit --set horizon=6
    vulcan frontier bandit --levels 0,0.005,0.01 --gap 0.001
    vulcan frontier bandit --points 11 --plot frontier.pdf
    vulcan frontier bandit --set horizon=5 --bound "0.002*x" --scales 0.5,1,2
    vulcan frontier rover.py:Rover --curves "energy <= 8, 10" --plot f.png
    """
    import vulcan
    from vulcan.formats.registry import open_model
    from vulcan.plotting import plot_frontier, save

    chosen = make_solver(solver, search)
    with options.keep_off_stdout():
        opened = open_model(model, settings or ())
        own_bound, limits, _ = options.choose_limits(opened, model, bound, constraints)
        if bound is None and levels is None:
            bound = own_bound
        where = _choose_range(bound, levels, scales, points)
        output.check_output(plot, figure=True)
        traced = []
        for own in _read_curves(curves):
            problem = opened.model
            if bound is not None or limits or own:
                others = [
                    limit for limit in limits if limit.quantity not in [c.quantity for c in own]
                ]
                problem = vulcan.Problem(opened.model, bound, constraints=[*others, *own])
            keywords = {**read_keywords(search), **where}
            traced.append(vulcan.trace_frontier(problem, solver=chosen, **keywords))
            if traced[-1].stopped_by is not None:
                break
    solved = any(point.safe for one in traced for point in one)
    output.write_and_show(
        lambda path: save(plot_frontier(traced if curves else traced[0]), path),
        plot,
        lambda: _show_frontiers(traced, curves is not None, as_json),
        as_json=as_json,
        obstacle=None if solved else "there is no policy",
    )
    raise typer.Exit(find_code(traced[-1].stopped_by, ExitCode.YES if solved else ExitCode.NO))


def _read_curves(given: str | None) -> list[list[Constraint]]:
    """Return the further constraint of each frontier; one frontier without any by default."""
    from vulcan.constraints import read_constraint

    if given is None:
        return [[]]
    quantity, _, values = given.partition("<=")
    return [[read_constraint(f"{quantity} <= {value}")] for value in values.split(",")]


def _choose_range(
    bound: str | None, levels: str | None, scales: str | None, points: int | None
) -> dict[str, Any]:
    """Return the levels or scales, and the number of points, as `trace_frontier` takes them."""
    from vulcan.planning.frontier import Span

    if bound is not None and levels is not None:
        raise OptionError(
            "--levels are constant bounds; multiples of --bound are given by --scales"
        )
    if bound is None and scales is not None:
        raise OptionError(
            "--scales are multiples of a bound: give it with --bound, or in a mission file"
        )
    kind, given = ("levels", levels) if bound is None else ("scales", scales)
    if given is None:
        return {kind: Span(), **({} if points is None else {"points": points})}
    if points is not None:
        raise OptionError(f"--{kind} and --points exclude each other: give one of them")
    try:
        return {kind: [float(part) for part in given.split(",")]}
    except ValueError:
        form = "numbers with commas between them, such as 0,0.005,0.01"
        raise OptionError(f"--{kind} takes {form}; not {given!r}") from None


def _show_frontiers(traced: list[Frontier], curves: bool, as_json: bool) -> None:
    if as_json:
        described = [documents.describe_frontier(one) for one in traced]
        documents.print_document({"curves": described} if curves else described[0])
        return
    for one in traced:
        _show_frontier(one)


def _show_frontier(traced: Frontier) -> None:
    count = sum(point.safe for point in traced)
    verdict, style = ("✓ policies", output.GOOD) if count else ("✗ no policy", output.BAD)
    text = f"for {count} of {len(traced)} risk bounds"
    if traced.stopped_by is not None:
        text += f", stopped by {traced.stopped_by}"
        verdict, style = verdict if count else "? stopped", output.UNSURE
    rows = [
        ("model", clip(traced.model)),
        ("bounds", "constant" if traced.bound is None else f"multiples of Δ(x) = {traced.bound}"),
        *[("constraint", str(constraint)) for constraint in traced.constraints],
        ("solver", clip(traced.solver)),
        ("time", f"{traced.seconds:.3g} s"),
    ]
    rows += [(f"{at:g}", f"failed: {error}") for at, error in traced.failures.items()]
    if traced.lost_workers:
        rows.append(output.describe_lost(traced.lost_workers))
    console = output.show_answer(verdict, style, text, rows)
    if len(traced):
        console.print()
        output.show_table(console, traced.tabulate())
        console.print("\n  price  reward gained per unit of allowed risk", style=output.QUIET)
