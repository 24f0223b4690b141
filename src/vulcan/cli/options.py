"""The arguments and options of the commands, each described once.

How to search is in `vulcan.cli.search_options`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from vulcan.cli.choices import complete_model

__all__ = [
    "ANSWER",
    "FILES",
    "LIMITS",
    "PROBLEM",
    "RANGE",
    "SEARCH",
    "SECTIONS",
    "TUNING",
    "WORK",
    "AsJson",
    "BoundText",
    "Cluster",
    "Depth",
    "Exact",
    "ExecutorName",
    "From",
    "Levels",
    "Look",
    "ModelText",
    "OptionalModelText",
    "Output",
    "PlanFile",
    "Plot",
    "Points",
    "RecordedBoundText",
    "Rows",
    "ScaledBoundText",
    "Scales",
    "Settings",
    "ShowProgress",
    "StateLimit",
    "SweepCheckpoint",
    "SweepOverwrite",
    "SweepResume",
    "SweepWorkers",
    "To",
    "UpperBound",
    "Workers",
]

# The sections of a command's help, in their order.
PROBLEM: Final = "Model and bound"
RANGE: Final = "Range"
SEARCH: Final = "Search"
LIMITS: Final = "Limits"
TUNING: Final = "Options of solvers"
FILES: Final = "Files"
ANSWER: Final = "Answer"
WORK: Final = "Workers"
SECTIONS: Final = (PROBLEM, RANGE, SEARCH, LIMITS, TUNING, WORK, FILES, ANSWER)

# What is worked on.

MODELS: Final = (
    "A built-in model such as bandit, or module:Class, or path/to/file.py:Class, or a file such as "
    "mission.toml, model.json, model.npz, maps.txt:7, model.prism, domain.rddl, or "
    "gymnasium:FrozenLake-v1, or rddl:Navigation_MDP_ippc2011/1."
)

ModelText = Annotated[
    str,
    typer.Argument(metavar="MODEL", help=MODELS, autocompletion=complete_model, show_default=False),
]

OptionalModelText = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help=f"The model that the policy was made for. {MODELS}",
        autocompletion=complete_model,
        show_default=False,
    ),
]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the model: a Python literal, or else a string. Wins over a mission "
        "file. May be repeated. --horizon N is short for --set horizon=N.",
        show_default=False,
        rich_help_panel=PROBLEM,
    ),
]

BoundText = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="EXPR",
        help="Acceptable probability of failure as a function of the expected reward x: "
        '0.01, "0.002*x", "piecewise((0, 0), (3, 0.02))".',
        show_default="that of the mission file; else required",
        rich_help_panel=PROBLEM,
    ),
]

RecordedBoundText = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="EXPR",
        help="The risk bound to judge by.",
        show_default="that of the mission file, or else the one that the policy was made for",
        rich_help_panel=PROBLEM,
    ),
]

PlanFile = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN",
        help="A policy file, as `vulcan solve --output` writes it.",
        show_default=False,
    ),
]

ScaledBoundText = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="EXPR",
        help="A risk bound of which multiples are used, instead of constant bounds.",
        show_default="that of the mission file, unless there are --levels",
        rich_help_panel=PROBLEM,
    ),
]

Levels = Annotated[
    str | None,
    typer.Option(
        "--levels",
        metavar="A,B,...",
        help="Constant bounds to plan for.",
        show_default=False,
        rich_help_panel=RANGE,
    ),
]

Scales = Annotated[
    str | None,
    typer.Option(
        "--scales",
        metavar="A,B,...",
        help="Multiples of --bound to plan for.",
        show_default=False,
        rich_help_panel=RANGE,
    ),
]

From = Annotated[
    float | None,
    typer.Option(
        "--from",
        metavar="X",
        help="The smallest bound or multiple.",
        show_default="the smallest risk of any policy",
        rich_help_panel=RANGE,
    ),
]

To = Annotated[
    float | None,
    typer.Option(
        "--to",
        metavar="X",
        help="The largest bound or multiple.",
        show_default="where more risk brings nothing",
        rich_help_panel=RANGE,
    ),
]

Points = Annotated[
    int | None,
    typer.Option(
        "--points",
        metavar="N",
        help="How many at most, placed where the frontier bends.",
        show_default="21",
        rich_help_panel=RANGE,
    ),
]

StateLimit = Annotated[
    int,
    typer.Option(
        "--states",
        min=1,
        metavar="N",
        help="Stop after this many distinct states.",
        rich_help_panel=LIMITS,
    ),
]

Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Compute with fractions: slow, and without any rounding.",
        rich_help_panel=SEARCH,
    ),
]

# What comes out.

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the policy to a file, if it is safe. An existing file is replaced.",
        rich_help_panel=FILES,
    ),
]

Rows = Annotated[
    int,
    typer.Option(
        "--rows",
        min=1,
        metavar="N",
        help="How many rows of each table to show, those that matter most.",
        rich_help_panel=ANSWER,
    ),
]

Look = Annotated[
    float | None,
    typer.Option(
        "--look",
        metavar="SECONDS",
        help="Search this long at each place for what could follow the other actions, where states "
        "do not merge or are too many.",
        show_default="compare the step alone there",
        rich_help_panel=ANSWER,
    ),
]

Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        min=0,
        max=100,
        metavar="N",
        help="How many decisions deep to show the policy; 0 for none.",
        show_default="3",
        rich_help_panel=ANSWER,
    ),
]

Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw a figure into a file: .png, .svg or .pdf. An existing file is replaced.",
        rich_help_panel=FILES,
    ),
]

AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON document, numbers at full precision.",
        rich_help_panel=ANSWER,
    ),
]

ShowProgress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show how far it is, once it takes longer than a moment.",
        show_default="on a terminal",
        rich_help_panel=ANSWER,
    ),
]

UpperBound = Annotated[
    bool,
    typer.Option(
        "--upper-bound/--no-upper-bound",
        help="Find an upper bound on the reward of any policy, if the solver has none of its own, "
        "and with it the gap.",
        rich_help_panel=SEARCH,
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="How many work at once: searches, if there are several --seeds, or else processes "
        "that answer for the model, threads that sample a compiled one, and threads of exact "
        "solvers.",
        show_default="none",
        rich_help_panel=WORK,
    ),
]

SweepWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="How many searches run at once.",
        show_default="1",
        rich_help_panel=WORK,
    ),
]

SweepCheckpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep what was found in a file, so that it need not be found again.",
        rich_help_panel=FILES,
    ),
]

SweepResume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Take from the checkpoint file, if it exists, what was found already.",
        rich_help_panel=FILES,
    ),
]

SweepOverwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace the checkpoint file, if it exists.",
        rich_help_panel=FILES,
    ),
]

ExecutorName = Annotated[
    Literal["threads", "processes", "ray"] | None,
    typer.Option(
        "--executor",
        metavar="threads|processes|ray",
        help="Who the workers are; ray starts a Ray cluster of this machine alone.",
        show_default="what suits the model",
        rich_help_panel=WORK,
    ),
]

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="auto|ADDRESS",
        help="Work on a Ray cluster: the one that this machine belongs to, or that at an address. "
        "Without --workers, on all of its cores.",
        show_default=False,
        rich_help_panel=WORK,
    ),
]
