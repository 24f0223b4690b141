"""`vulcan simulate`: play episodes of a policy, and compare them with its exact values."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.errors import OptionError, SimulationWarning

if TYPE_CHECKING:
    from vulcan.execution.simulation import Simulation


def simulate(
    plan: Path,
    model: str | None = None,
    settings: list[str] | None = None,
    environment: bool = False,
    episodes: int = 100_000,
    seed: int = 0,
    plot: Path | None = None,
    as_json: bool = False,
    progress: bool | None = None,
) -> None:
    """Play episodes of a policy, and compare them with its exact values.

    In the model that the policy was made for, episodes are compiled. Another model, and an
    environment, is played step by step, and the policy follows what is observed. Ctrl-C ends it,
    and shows the episodes so far. The answer is no (exit code 1) if the episodes contradict the
    exact values; a correct policy is contradicted at most once in a million times.

    Examples
    --------
    vulcan simulate plan.vulcan bandit --set horizon=9 --episodes 1000000
    vulcan simulate plan.vulcan mission.toml --plot episodes.png
    vulcan simulate plan.vulcan gymnasium:FrozenLake-v1 --environment
    """
    import vulcan
    from vulcan.formats.registry import open_model
    from vulcan.plotting import plot_simulation, save

    output.check_plot(plot)
    if model is None and settings:
        raise OptionError("--set is for the model, which is not given")
    policy = vulcan.Policy.load(plan)
    with options.keep_off_stdout(), warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # the heading says it
        world = None if model is None else open_model(model, settings or ()).model
        if environment:
            played = getattr(world, "environment", None)
            if played is None:
                raise OptionError(
                    "--environment is for a model that has one: gymnasium:FrozenLake-v1"
                )
            policy, world = policy.bind(world), played
        shown = options.read_progress(progress)
        simulation = vulcan.simulate(policy, world, episodes=episodes, seed=seed, progress=shown)
    output.write_and_show(
        lambda path: save(plot_simulation(simulation), path),
        plot,
        lambda: _show(simulation, as_json),
        as_json=as_json,
    )
    if simulation.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.YES if simulation.agrees else ExitCode.NO)


def _show(simulation: Simulation, as_json: bool) -> None:
    if as_json:
        documents.print_document(documents.describe_simulation(simulation))
        return
    verdict, style = ("✓ agrees", output.GOOD) if simulation.agrees else ("✗ disagrees", output.BAD)
    count = f"{simulation.episodes:,} episodes{' until Ctrl-C' if simulation.interrupted else ''}"
    sentence = f"{count} are consistent with the exact values"
    rows = [("model", output.clip(simulation.model)), ("episodes", f"{simulation.episodes:,}")]
    output.show_answer(
        verdict,
        style,
        "; ".join(simulation.disagreements) or sentence,
        rows + simulation.rows(),
        {"strays": output.BAD},
    )
