"""`vulcan run`: plan while acting, one step at a time."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.errors import OptionError, PolicyError

if TYPE_CHECKING:
    from vulcan.execution.controller import Controller


def run(
    model: str,
    settings: list[str] | None = None,
    bound: str | None = None,
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
    problem = options.find_problem(model, settings, bound)
    with options.keep_off_stdout():
        controller = vulcan.Controller(
            problem, seconds_per_step=seconds_per_step, samples_per_step=samples_per_step
        )
    certificate = controller.result.certificate
    assert certificate is not None
    if as_json:
        documents.print_document({"certificate": documents.describe_certificate(certificate)}, -1)
    else:
        rows = [output.name_model(problem.model), *controller.result.rows()[1:]]
        styles = output.style_certificate(certificate)
        output.show_answer("✓ safe", output.GOOD, "the promise that is kept", rows, styles)
    draw = random.Random(seed) if simulate else None  # noqa: S311
    while not controller.finished:
        _show(controller, as_json)
        if not _observe(controller, draw, as_json):
            break
    failed, finished = controller.run.failed, controller.finished
    end = "failed" if failed else "ended safely" if finished else "goes on"
    if as_json:
        last = {"end": end, "reward": controller.run.reward, "kept": controller.kept}
        documents.print_document(last, -1)
    else:
        print(f"the mission {end}, with reward {controller.run.reward:.6g}")
    raise typer.Exit(ExitCode.NO if failed else ExitCode.YES)


def _show(controller: Controller, as_json: bool) -> None:
    """Show the action to take, and what can be observed."""
    run = controller.run
    ahead = {"reward_ahead": run.reward_ahead, "risk_ahead": run.risk}
    if as_json:
        action = {"step": run.level + 1, "action": run.action_label, "expected": run.expected}
        documents.print_document({**action, **ahead}, -1)
        return
    print(
        output.printable(
            f"\nstep {run.level + 1}: {run.action_label}   (ahead: reward {run.reward_ahead:.4g}, "
            f"risk {run.risk:.3g})"
        )
    )
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
