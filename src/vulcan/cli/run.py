"""`vulcan simulate` and `vulcan run`: play episodes of a policy, and plan while acting."""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.errors import OptionError, PolicyError, SimulationWarning
from vulcan.runtime.formatting import clip

if TYPE_CHECKING:
    from vulcan.execution.controller import Controller
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

    output.check_output(plot, figure=True)
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
        lambda: _show_simulation(simulation, as_json),
        as_json=as_json,
    )
    if simulation.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.YES if simulation.agrees else ExitCode.NO)


def _show_simulation(simulation: Simulation, as_json: bool) -> None:
    if as_json:
        documents.print_document(documents.describe_simulation(simulation))
        return
    verdict, style = ("✓ agrees", output.GOOD) if simulation.agrees else ("✗ disagrees", output.BAD)
    count = f"{simulation.episodes:,} episodes{' until Ctrl-C' if simulation.interrupted else ''}"
    sentence = f"{count} are consistent with the exact values"
    rows = [("model", clip(simulation.model)), ("episodes", f"{simulation.episodes:,}")]
    output.show_answer(
        verdict,
        style,
        "; ".join(simulation.disagreements) or sentence,
        rows + simulation.rows(),
        {"strays": output.BAD},
    )


def run(
    model: str,
    settings: list[str] | None = None,
    bound: str | None = None,
    constraints: list[str] | None = None,
    seconds_per_step: float | None = None,
    samples_per_step: int | None = None,
    simulate: bool = False,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Plan while acting: a certified plan first, then a better one at every step.

    Each line of standard input is the outcome of the action that was shown: its label, or its
    number among the possible ones. The mission then goes on by the best plan that keeps the promise
    of the first certificate. It ends with the mission, or where the input ends. With --json, each
    step is one line.

    Examples
    --------
    vulcan run rover.py:Rover --bound 0.01
    vulcan run bandit --bound "0.002*x" --simulate --seed 1
    vulcan run rover.py:Rover --bound 0.01 --samples-per-step 5000 --json < observations.txt
    """
    import vulcan

    if seconds_per_step is not None and samples_per_step is not None:
        raise OptionError("give either --seconds-per-step or --samples-per-step")
    if samples_per_step is None and seconds_per_step is None:
        seconds_per_step = 0.2
    problem = options.find_problem(model, settings, bound, constraints)
    with options.keep_off_stdout():
        controller = vulcan.Controller(
            problem, seconds_per_step=seconds_per_step, samples_per_step=samples_per_step
        )
    certificate = controller.result.certificate
    assert certificate is not None
    if as_json:
        documents.print_document({"certificate": documents.describe_certificate(certificate)}, None)
    else:
        rows = [output.name_model(problem.model), *controller.result.rows()[1:]]
        styles = output.style_certificate(certificate)
        output.show_answer("✓ safe", output.GOOD, "the guarantee for the mission", rows, styles)
    draw = random.Random(seed) if simulate else None  # noqa: S311
    while not controller.finished:
        _show_step(controller, as_json)
        if not _observe(controller, draw, as_json):
            break
    failed, finished = controller.run.failed, controller.finished
    end = "failed" if failed else "ended safely" if finished else "goes on"
    if as_json:
        last = {"end": end, "reward": controller.run.reward, "kept": controller.kept}
        documents.print_document(last, None)
    else:
        print(f"the mission {end}, with reward {controller.run.reward:.6g}")
    raise typer.Exit(ExitCode.NO if failed else ExitCode.YES)


def _show_step(controller: Controller, as_json: bool) -> None:
    """Show the action to take, and what can be observed."""
    run = controller.run
    if as_json:
        action = {"step": run.level + 1, "action": run.action_label, "expected": run.expected}
        ahead = {"reward_ahead": run.reward_ahead, "risk_ahead": run.risk}
        documents.print_document({**action, **ahead}, None)
        return
    rest = f"(ahead: reward {run.reward_ahead:.4g}, risk {run.risk:.3g})"
    print(output.printable(f"\nstep {run.level + 1}: {run.action_label}   {rest}"))
    for number, (label, chance) in enumerate(run.expected.items()):
        print(output.printable(f"  {number}  {label}  ({100 * chance:.3g} %)"))


def _observe(controller: Controller, draw: random.Random | None, as_json: bool) -> bool:
    """Let the controller observe the next outcome; False where the input ends."""
    expected = controller.run.expected
    while True:
        if draw is not None:
            told = draw.choices(list(expected), list(expected.values()))[0]
            if not as_json:
                print(output.printable(f"> {told}"))
        else:
            line = sys.stdin.readline()
            if not line:
                return False
            told = line.strip()
        position = int(told) if told.isdecimal() and told not in expected else told
        try:
            with options.keep_off_stdout():
                controller.observe(position)
            return True
        except PolicyError as error:
            if draw is not None:
                raise
            output.show_error(error)
