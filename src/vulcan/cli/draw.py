"""`vulcan draw`: the policy of an exploration mission, on its map."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import ModelText, PlanFile, Settings
from vulcan.cli.output import check_output, check_plot, save_plot

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound
    from vulcan.domains.exploration.drawing.choice import TellingOutcome
    from vulcan.domains.exploration.drawing.journeys import Journeys

__all__ = ["EXAMPLES", "draw"]

EXAMPLES = """
\b
Examples:
  vulcan draw plan.vulcan exploration --set map=wide --outcomes six.png
  vulcan draw plan.vulcan mission.toml --visits visits.pdf --risk risk.pdf
  vulcan draw plan.vulcan exploration --mission one.png --animation one.gif --seed 7
"""


def _figure(name: str, text: str) -> object:
    return typer.Option(name, metavar="FILE", help=text, show_default=False)


Outcomes = Annotated[
    Path | None,
    _figure("--outcomes", "Draw the six most telling outcomes: .png, .svg or .pdf."),
]
Visits = Annotated[
    Path | None,
    _figure("--visits", "Draw how probable it is that each cell is visited."),
]
Risk = Annotated[
    Path | None,
    _figure("--risk", "Draw risk against reward over all outcomes, with the bound."),
]
Mission = Annotated[
    Path | None,
    _figure("--mission", "Draw one outcome, with reward and risk so far."),
]
Animation = Annotated[
    Path | None,
    _figure("--animation", "Animate one outcome: .gif."),
]
DrawnBound = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="EXPR",
        help="The risk bound that --risk draws.",
        show_default="that of the mission file, or else the one that the policy was made for",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="Draw the outcome of --mission and --animation at random, among all that are safe.",
        show_default="the first of the six most telling ones",
    ),
]


@dataclass(frozen=True)
class Files:
    """The files that are wanted."""

    outcomes: Path | None
    visits: Path | None
    risk: Path | None
    mission: Path | None
    animation: Path | None

    @property
    def named(self) -> dict[str, Path]:
        """The option of each file that is wanted."""
        return {f"--{name}": path for name, path in vars(self).items() if path is not None}


def draw(
    plan: PlanFile,
    model: ModelText,
    settings: Settings = None,
    bound: DrawnBound = None,
    outcomes: Outcomes = None,
    visits: Visits = None,
    risk: Risk = None,
    mission: Mission = None,
    animation: Animation = None,
    seed: Seed = None,
) -> None:
    """Draw the policy of an exploration mission on its map.

    Everything is computed from all outcomes of the policy, none of them sampled. Existing files are
    replaced.
    """
    import vulcan
    from vulcan.cli.models import choose_bound, keep_off_stdout
    from vulcan.domains.exploration.drawing import follow_policy
    from vulcan.domains.exploration.drawing.journeys import require_mission
    from vulcan.formats.registry import open_model

    files = Files(outcomes, visits, risk, mission, animation)
    _check(files, bound, seed)
    policy = vulcan.Policy.load(plan)
    with keep_off_stdout():
        found, own_bound = open_model(model, settings or ())
        curve = choose_bound(bound, own_bound, policy.about)
        journeys = follow_policy(policy, require_mission(found))
    if set(files.named) != {"--visits"}:
        journeys.require_some()
    shown = _draw(files, journeys, curve, seed)
    _show(files, journeys, shown, policy.complete)
    raise typer.Exit(ExitCode.YES)


def _check(files: Files, bound: str | None, seed: int | None) -> None:
    """Refuse, before any work, what can't be drawn or written."""
    from vulcan.domains.exploration.drawing import check_animation_file
    from vulcan.errors import OptionError

    named = files.named
    if not named:
        options = [f"--{name}" for name in vars(files)]
        listed = f"{', '.join(options[:-1])} and {options[-1]}"
        raise OptionError(f"there is nothing to draw: give at least one of {listed}")
    if bound is not None and files.risk is None:
        raise OptionError("--bound is the curve of --risk, which is not given")
    if seed is not None and files.mission is None and files.animation is None:
        raise OptionError("--seed is for --mission and --animation; neither is given")
    places: dict[Path, str] = {}
    for option, path in named.items():
        if option == "--animation":
            check_animation_file(path)
            check_output(path)
        else:
            check_plot(path)
        other = places.setdefault(path.resolve(), option)
        if other != option:
            raise OptionError(f"{other} and {option} are the same file, {path}")


def _draw(
    files: Files, journeys: Journeys, bound: RiskBound | None, seed: int | None
) -> TellingOutcome | None:
    """Draw and write all files; return the single outcome that was shown, if any."""
    from vulcan.domains.exploration import drawing

    single = files.mission is not None or files.animation is not None
    telling: list[TellingOutcome] = []
    if files.outcomes is not None or (single and seed is None):
        telling = drawing.choose_outcomes(journeys)
    if files.outcomes is not None:
        save_plot(lambda: drawing.plot_outcomes(journeys, telling), files.outcomes)
    if files.visits is not None:
        save_plot(lambda: drawing.plot_visits(journeys), files.visits)
    if files.risk is not None:
        save_plot(lambda: drawing.plot_risk_reward(journeys, bound), files.risk)
    if not single:
        return None
    one = telling[0] if seed is None else drawing.describe_outcome(journeys, journeys.draw(seed))
    if files.mission is not None:
        save_plot(lambda: drawing.plot_mission(one), files.mission)
    if files.animation is not None:
        drawing.animate_mission(one, files.animation)
    return one


def _show(files: Files, journeys: Journeys, shown: TellingOutcome | None, complete: bool) -> None:
    from vulcan.cli import screen
    from vulcan.model.interface import describe_model

    console = screen.open_console()
    count = len(files.named)
    noun = "file" if count == 1 else "files"
    text = f"{count} {noun}, from {len(journeys):,} safe outcomes"
    screen.show_heading(console, "✓ drawn", screen.GOOD, text)
    console.print()
    rows = [
        ("model", screen.clip(describe_model(journeys.mission))),
        ("reward", f"{journeys.reward:.6f}"),
        ("risk", f"{journeys.risk:.6f}"),
    ]
    if not complete:
        rows.append(("complete", "no: some histories are not planned"))
    if shown is not None:
        rows += [("shown", shown.words), ("", shown.numbers)]
    rows += [("saved", f"{path}  {path.stat().st_size:,} bytes") for path in files.named.values()]
    screen.show_rows(console, rows, {"complete": screen.BAD})
