"""`vulcan solve`: find a policy, certify it, and show it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli import ExitCode, documents, find_code, options, output
from vulcan.cli.search import make_solver, read_keywords
from vulcan.errors import OptionError

if TYPE_CHECKING:
    from vulcan.planning.result import Result


def solve(
    model: str,
    bound: str | None = None,
    constraints: list[str] | None = None,
    settings: list[str] | None = None,
    solver: str = "automatic",
    file: Path | None = None,
    incomplete: bool = False,
    depth: int | None = None,
    as_json: bool = False,
    checkpoint: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    *,
    search: Mapping[str, Any],
) -> None:
    """Find the best policy within a risk bound, and certify it.

    The model and the bound may also come from a mission file, written in TOML.

    Without --solver the model is unrolled as long as that pays and solved within a small proved
    gap; where histories never merge, a plan grows from the root or samples are taken. Without
    --time-limit or --samples, searches that grow or sample end after about 20 s; the exact solvers
    go on until they are done. Ctrl-C ends the search and shows the best policy so far.

    Examples
    --------
    vulcan solve bandit --bound "0.002*x"
    vulcan solve bandit --bound "0.002*x" --solver vulcan --samples 50000
    vulcan solve bandit --bound "0.002*x" --solver paper-vulcan --samples 50000
    vulcan solve rover.py:Rover --bound 0.01 --output plan.vulcan --json
    vulcan solve mission.toml --set horizon=5 --time-limit 10
    vulcan solve gymnasium:FrozenLake-v1 --horizon 50 --bound 0.1
    """
    import vulcan

    if checkpoint is None and (resume or overwrite):
        name = "--resume" if resume else "--overwrite"
        raise OptionError(f"{name} needs a file: give it with --checkpoint")
    chosen = make_solver(solver, search)
    with options.keep_off_stdout():
        problem = options.find_problem(model, settings, bound, constraints)
        output.check_output(file)
        kept = None if checkpoint is None else vulcan.Checkpoint(checkpoint, 60, resume, overwrite)
        result = vulcan.solve(problem, chosen, checkpoint=kept, **read_keywords(search))
    obstacle = "there is no policy" if result.policy is None else "the policy is not safe"
    if result.certificate is None and result.planned is not None:
        obstacle = "the policy is not certified"
    partial = result.certificate is not None and result.certificate.passes
    if partial and not result.safe:
        obstacle = "the policy is not complete; --incomplete writes it all the same"
    policy = result.policy
    output.write_and_show(
        lambda path: None if policy is None else policy.save(path),
        file,
        lambda: _show(result, depth, as_json),
        as_json=as_json,
        obstacle=None if result.safe or (incomplete and partial) else obstacle,
    )
    raise typer.Exit(find_code(result.stopped_by, ExitCode.YES if result.safe else ExitCode.NO))


def _show(result: Result, depth: int | None, as_json: bool) -> None:
    if as_json:
        levels = output.DEPTH if depth is None else depth
        documents.print_document(documents.describe_result(result, levels))
        return
    rows = [row for row in result.rows() if row[0] != "status"]
    rows.insert(0, output.name_model(result.problem.model))
    styles = {**output.style_certificate(result.certificate), "surely fails": output.UNSURE}
    console = output.show_answer(*_judge(result), result.explanation, rows, styles)
    if result.policy is not None:
        output.show_policy(console, result.policy, depth)


def _judge(result: Result) -> tuple[str, str]:
    """Return the verdict and its colour."""
    from vulcan.solvers.finding import Status

    if result.safe:
        return "✓ safe", output.GOOD
    if result.certificate is None and result.planned is not None:
        return "? not certified", output.UNSURE
    if result.policy is not None:
        close = result.certificate is not None and result.certificate.undecided
        return "✗ too close to say" if close else "✗ not safe", output.BAD
    if result.status is Status.STOPPED:
        return "? no policy yet", output.UNSURE
    return "✗ no policy", output.BAD
