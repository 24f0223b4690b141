"""`vulcan simulate`: play episodes of a policy, beside its exact values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import (
    ANSWER,
    SEARCH,
    AsJson,
    PlanFile,
    Plot,
    Settings,
    ShowProgress,
)
from vulcan.cli.output import check_plot, save_plot, tell_saved

if TYPE_CHECKING:
    from vulcan.execution.estimates import Simulation

__all__ = ["EXAMPLES", "simulate"]

EXAMPLES = """
\b
Examples:
  vulcan simulate plan.vulcan bandit --set horizon=9 --episodes 1000000
  vulcan simulate plan.vulcan
  vulcan simulate plan.vulcan mission.toml --plot episodes.png
  vulcan simulate plan.vulcan rover.py:Rover --seed 7 --json
  vulcan simulate plan.vulcan gymnasium:FrozenLake-v1 --environment
"""

JSON_BINS = 60

OptionalModel = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="Where to play: the model of the policy, or another one, as in `vulcan solve`. "
        "Without one, as the policy has its model in mind.",
        show_default=False,
    ),
]
InEnvironment = Annotated[
    bool,
    typer.Option(
        "--environment",
        help="Play in Gymnasium's own environment (MODEL is gymnasium:NAME), step by step.",
        rich_help_panel=SEARCH,
    ),
]
Episodes = Annotated[
    int,
    typer.Option("--episodes", min=1, metavar="N", help="How many.", rich_help_panel=SEARCH),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="Of the random numbers: the same seed gives the same answer on any number of cores.",
        rich_help_panel=SEARCH,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Threads that play compiled episodes.",
        show_default="one for each core",
        rich_help_panel=SEARCH,
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        "--confidence",
        metavar="P",
        help="Of the intervals around the estimates.",
        rich_help_panel=ANSWER,
    ),
]


def simulate(
    plan: PlanFile,
    model: OptionalModel = None,
    settings: Settings = None,
    environment: InEnvironment = False,
    episodes: Episodes = 100_000,
    seed: Seed = 0,
    workers: Threads = None,
    confidence: Confidence = 0.95,
    plot: Plot = None,
    as_json: AsJson = False,
    progress: ShowProgress = None,
) -> None:
    """Play episodes of a policy, and compare them with its exact values.

    In the model that the policy was made for, episodes are compiled. Another model, and an
    environment, is played step by step, and the policy follows what is observed. Ctrl-C ends it,
    and shows what was played so far. The answer is no (exit code 1) if the episodes
    are not what the exact values say; if they are, that happens at most once in a million times.
    """
    import sys
    import warnings

    import vulcan
    from vulcan.cli.models import keep_off_stdout
    from vulcan.formats.registry import open_model

    check_plot(plot)
    if model is None and settings:
        raise vulcan.OptionError("--set is for the model, which is not given")
    policy = vulcan.Policy.load(plan)
    with keep_off_stdout(), warnings.catch_warnings():
        warnings.simplefilter("ignore", vulcan.SimulationWarning)  # the heading says it
        world = None if model is None else open_model(model, settings or ()).model
        if environment:
            found = _find_environment(world)
            policy, world = policy.bind(world), found
        simulation = vulcan.simulate(
            policy,
            world,
            episodes=episodes,
            seed=seed,
            workers=workers,
            confidence=confidence,
            progress=sys.stderr.isatty() if progress is None else progress,
        )
    _show(simulation, as_json)
    if plot is not None:
        _save(simulation, plot, as_json)
    if simulation.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.YES if simulation.agrees else ExitCode.NO)


def _find_environment(model: Any) -> Any:
    """Return the environment that a model was read from."""
    from vulcan.errors import OptionError

    found = getattr(model, "environment", None)
    if found is None:
        raise OptionError("--environment is for a model that has one: gymnasium:FrozenLake-v1")
    return found


def _save(simulation: Simulation, path: Path, as_json: bool) -> None:
    from vulcan.plotting import plot_simulation

    save_plot(lambda: plot_simulation(simulation), path)
    tell_saved(path, as_json, None)


def _show(simulation: Simulation, as_json: bool) -> None:
    from vulcan.cli import documents, screen

    if as_json:
        documents.print_document(documents.describe_simulation(simulation, JSON_BINS))
        return
    console = screen.open_console()
    verdict, style = ("✓ agrees", screen.GOOD) if simulation.agrees else ("✗ disagrees", screen.BAD)
    count = f"{simulation.episodes:,} episodes{' until Ctrl-C' if simulation.interrupted else ''}"
    sentence = f"{count} are what the exact values say, as far as they can tell"
    screen.show_heading(console, verdict, style, "; ".join(simulation.disagreements) or sentence)
    console.print()
    rows = [("model", screen.clip(simulation.model)), ("episodes", f"{simulation.episodes:,}")]
    screen.show_rows(console, rows + simulation.rows(), {"strays": screen.BAD})
    titles = ("Survival over the steps", "Reward of an episode")
    for title, table in zip(titles, simulation.tables(), strict=True):
        screen.show_title(console, title)
        screen.show_table(console, table, [screen.QUIET] * len(table.rows))
