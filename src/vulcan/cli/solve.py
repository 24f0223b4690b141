"""`vulcan solve`: find a policy, certify it, and show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vulcan.cli import ExitCode, documents, find_code, options, output
from vulcan.cli.search import Search, SolverChoice, takes_search_options
from vulcan.errors import OptionError

if TYPE_CHECKING:
    from vulcan.planning.result import Result

EXAMPLES = {
    "solve": """
\b
Examples:
  vulcan solve bandit --bound "0.002*x"
  vulcan solve bandit --bound "0.002*x" --solver vulcan --samples 50000
  vulcan solve rover.py:Rover --bound 0.01 --output plan.vulcan --json
  vulcan solve mission.toml --set horizon=5 --time-limit 10
  vulcan solve gymnasium:FrozenLake-v1 --horizon 50 --bound 0.1
"""
}

PolicyFile = Annotated[
    Path | None,
    options.file_option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the policy to a file, if it is safe. An existing file is replaced.",
    ),
]
CheckpointFile = Annotated[
    Path | None,
    options.file_option(
        "--checkpoint",
        metavar="FILE",
        help="Write the search to a file regularly, to resume it later; for solvers that sample.",
    ),
]
Resume = Annotated[
    bool,
    options.file_option("--resume", help="Resume from the checkpoint file, if it exists."),
]
Overwrite = Annotated[
    bool,
    options.file_option("--overwrite", help="Replace the checkpoint file, if it exists."),
]


@takes_search_options()
def solve(
    model: options.ModelText,
    bound: options.BoundText = None,
    settings: options.Settings = None,
    solver: SolverChoice = "automatic",
    file: PolicyFile = None,
    depth: options.Depth = None,
    as_json: options.AsJson = False,
    checkpoint: CheckpointFile = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    *,
    search: Search,
) -> None:
    """Find the best policy within a risk bound, and certify it.

    The model and the bound may also come from a mission file, written in TOML.

    Without --solver the model is unrolled as long as that pays and solved within a small proved
    gap, or else sampled; both end by themselves.
    Ctrl-C ends the search and shows the best policy so far. The solvers vulcan and uct continue
    until they have proved theirs optimal or memory is full, which can take very long: a limit is
    usually wanted, such as --time-limit or --samples.
    """
    import vulcan

    if checkpoint is None and (resume or overwrite):
        name = "--resume" if resume else "--overwrite"
        raise OptionError(f"{name} needs a file: give it with --checkpoint")
    chosen = search.make_solver(solver)
    with options.keep_off_stdout():
        problem = options.find_problem(model, settings, bound)
        output.check_output(file)
        kept = None if checkpoint is None else vulcan.Checkpoint(checkpoint, 60, resume, overwrite)
        result = vulcan.solve(problem, chosen, checkpoint=kept, **search.keywords)
    obstacle = "there is no policy" if result.policy is None else "the policy is not safe"
    if result.certificate is None and result.planned is not None:
        obstacle = "the policy is not certified"
    policy = result.policy
    output.write_and_show(
        lambda path: None if policy is None else policy.save(path),
        file,
        lambda: _show(result, depth, as_json),
        as_json=as_json,
        obstacle=None if result.safe else obstacle,
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
