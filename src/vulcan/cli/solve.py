"""`vulcan solve`: find a policy, certify it, and show it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from vulcan.cli import ExitCode, documents, find_code, options, output
from vulcan.cli.search import make_solver, read_keywords
from vulcan.errors import OptionError

if TYPE_CHECKING:
    from vulcan.planning.result import Result

MOST_EPISODES: Final = 100_000  # until decided


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
    simulate: bool = False,
    episodes: int | None = None,
    confidence: float = 0.95,
    device: str = "cpu",
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
    vulcan solve gymnasium:Blackjack-v1 --horizon 20 --bound 0.15 --simulate
    """
    import vulcan

    if simulate:
        if bound is None or constraints or device != "cpu":
            wrong = "no --constraint, and no --device"
            raise OptionError(f"--simulate needs one --bound, {wrong}")
        kept = None if checkpoint is None else vulcan.Checkpoint(checkpoint, 60, resume, overwrite)
        given = {"episodes": episodes, "confidence": confidence, "checkpoint": kept}
        _learn(model, bound, settings, solver, file, as_json, given, search)
    if episodes is not None:
        raise OptionError("--episodes needs --simulate")
    if checkpoint is None and (resume or overwrite):
        name = "--resume" if resume else "--overwrite"
        raise OptionError(f"{name} needs a file: give it with --checkpoint")
    chosen = make_solver(solver, search)
    with options.keep_off_stdout():
        problem = options.find_problem(model, settings, bound, constraints)
        output.check_output(file)
        kept = None if checkpoint is None else vulcan.Checkpoint(checkpoint, 60, resume, overwrite)
        keywords = read_keywords(search)
        result = vulcan.solve(problem, chosen, checkpoint=kept, device=device, **keywords)
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


def _learn(
    model: str,
    bound: str,
    settings: list[str] | None,
    solver: str,
    file: Path | None,
    as_json: bool,
    given: dict[str, Any],
    search: Mapping[str, Any],
) -> None:
    """Learn policies from a simulator, certify them, and show the last one that is safe."""
    import vulcan
    from vulcan.formats.registry import open_simulator

    keywords = read_keywords(search)
    limits, chosen = keywords["limits"], make_solver(solver, search)
    if file is not None and file.suffix != ".html":
        raise OptionError(f"--simulate writes the certificate as a page, .html, not {file}")
    with options.keep_off_stdout():
        output.check_output(file)
        simulator, declared = open_simulator(model, settings or ())
        if limits.time_limit is not None:
            declared["time_limit"] = limits.time_limit
        seed = search.get("seed", 1)
        learned = vulcan.learn(simulator, bound, seed=seed, solver=chosen, **declared)
        wanted = {"parallel": keywords["parallel"], "progress": keywords["progress"]}
        if given["episodes"] is None:
            given |= {"episodes": MOST_EPISODES, "until": "decided"}
        found = learned.certify(**given, **wanted) if learned.policies else []
    certificate = next((one for one in reversed(found) if one.safe), found[0] if found else None)
    safe = certificate is not None and certificate.safe is True
    size = f"{len(learned.policies)} policies by {learned.method}, {learned.steps:,} steps"
    row = ("learned", f"{size}; {len(found)} tested, from safe to daring")

    def show() -> None:
        tested = list(map(documents.describe_statistical, found))
        chosen = documents.describe_statistical(certificate)
        names = {"method": learned.method, "steps": learned.steps}
        if as_json:
            document = {"safe_at_confidence": safe, "certificate": chosen, "tested": tested}
            documents.print_document(document | names)
        elif certificate is None:
            output.show_answer("✗ no policy", output.BAD, "none was planned within it", [row])
        else:
            colours = {True: output.GOOD, False: output.BAD, None: output.UNSURE}
            colour = colours[certificate.safe]
            rows = [*certificate.rows(), row]
            output.show_answer(certificate.verdict, colour, certificate.sentence, rows)

    output.write_and_show(
        lambda path: None if certificate is None else certificate.save(path),
        file,
        show,
        as_json=as_json,
        obstacle="there is no policy" if certificate is None else None,
    )
    interrupted = any(one.interrupted for one in found)
    code = ExitCode.AT_CONFIDENCE if safe else ExitCode.NO
    raise typer.Exit(ExitCode.INTERRUPTED if interrupted else code)


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
