"""`vulcan explore`: a plan as a page that people explore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import FILES, SEARCH, ModelText, PlanFile, RecordedBoundText, Settings
from vulcan.cli.output import check_output, tell_saved

if TYPE_CHECKING:
    from vulcan.pages.page import Page

__all__ = ["EXAMPLES", "explore"]

EXAMPLES = """
\b
Examples:
  vulcan explore plan.vulcan rover.py:Rover --set days=6 -o plan.html
  vulcan explore plan.vulcan mission.toml -o plan.html --what-if 30 --scales 0.5,0.8,1.2
  vulcan explore plan.vulcan bandit -o plan.html --what-if 0 --other careful.vulcan
"""

PageFile = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the page to a file. An existing file is replaced.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
WhatIfSeconds = Annotated[
    float,
    typer.Option(
        "--what-if",
        min=0.0,
        metavar="SECONDS",
        help="Time limit of each search for a plan with other allowed risk; 0 for no such plans.",
        rich_help_panel=SEARCH,
    ),
]
OtherScales = Annotated[
    str,
    typer.Option(
        "--scales",
        metavar="A,B,...",
        help="Multiples of the allowed risk to search plans for.",
        rich_help_panel=SEARCH,
    ),
]
OtherPlans = Annotated[
    list[Path] | None,
    typer.Option(
        "--other",
        metavar="PLAN",
        help="A policy file for another bound, to be shown beside. May be repeated.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]


def explore(
    plan: PlanFile,
    model: ModelText,
    output: PageFile,
    settings: Settings = None,
    bound: RecordedBoundText = None,
    what_if: WhatIfSeconds = 5.0,
    scales: OtherScales = "0.5,0.9",
    other: OtherPlans = None,
) -> None:
    """Write a plan as a page: one HTML file that people explore in any browser.

    The page says what is done first, what after a bad outcome, where the risk is taken, what would
    be done with less of it, and how probable the worst branch is. It shows the plan as a tree along
    which one clicks, with reward and risk so far and ahead, the bound, and the map of a mission. It
    needs no server and no network.
    """
    import vulcan
    from vulcan.cli.choices import read_numbers
    from vulcan.cli.models import choose_bound, keep_off_stdout
    from vulcan.errors import OptionError
    from vulcan.formats.registry import open_model

    check_output(output)
    wanted = read_numbers("--scales", scales)
    policy = vulcan.Policy.load(plan)
    others = [vulcan.Policy.load(path) for path in other or ()]
    with keep_off_stdout():
        found, own_bound = open_model(model, settings or ())
        chosen = choose_bound(bound, own_bound, policy.about)
        if chosen is None:
            raise OptionError("Missing option '--bound': the policy does not know its own")
        page = vulcan.explore(
            vulcan.Problem(found, chosen),
            policy,
            what_if=what_if or None,
            scales=wanted,
            others=others,
        )
    page.save(output)
    _show(page, output)
    raise typer.Exit(ExitCode.YES)


def _show(page: Page, path: Path) -> None:
    from vulcan.cli import screen

    console = screen.open_console()
    screen.show_heading(console, "✓ written", screen.GOOD, "open the file in a browser")
    console.print()
    rows = [(answer.question, answer.words) for answer in page.answers]
    screen.show_rows(console, rows)
    tell_saved(path, as_json=False, obstacle=None)
