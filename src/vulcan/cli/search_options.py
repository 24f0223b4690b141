"""The options that say how to search, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vulcan.cli.choices import Constraint, Credit, SolverName, Structure, read_size

__all__ = [
    "CheckpointFile",
    "CheckpointInterval",
    "Complete",
    "ConstraintLetter",
    "CreditName",
    "CutShort",
    "Exploration",
    "HistoryLimit",
    "MemoryLimit",
    "On",
    "Paper",
    "Resume",
    "SampleLimit",
    "Seed",
    "SolverChoice",
    "SolverList",
    "TargetGap",
    "TimeLimit",
    "TimeLimitEach",
    "UpperBound",
    "Workers",
]

SolverChoice = Annotated[
    SolverName,
    typer.Option(
        "--solver",
        metavar="NAME",
        help="How to search. automatic chooses by size; forward-search visits all histories; "
        "vulcan samples them, and uct does so without regard to risk; pareto, integer-program and "
        "rao-star are exact, linear-program too, for randomised policies; lagrangian and penalty "
        "put a price on failure.",
    ),
]

SolverList = Annotated[
    str | None,
    typer.Option(
        "--solvers",
        metavar="NAME,...",
        help="The solvers to compare: see --solver of vulcan solve.",
        show_default="all but automatic",
    ),
]

On = Annotated[
    Structure | None,
    typer.Option(
        "--on",
        metavar="graph|tree",
        help="linear-program, integer-program: plan on merged states, or on histories.",
        show_default="graph, and tree for integer-program",
    ),
]

ConstraintLetter = Annotated[
    Constraint | None,
    typer.Option(
        "--constraint",
        case_sensitive=False,
        metavar="A|B",
        help="The local constraint: B, the survival form, or A, the paper's.",
        show_default="B",
    ),
]

CreditName = Annotated[
    Credit | None,
    typer.Option(
        "--credit",
        metavar="expected|received",
        help="What counts as reward in constraint A: expected rewards, or those received.",
        show_default="expected",
    ),
]

CutShort = Annotated[
    bool | None,
    typer.Option(
        "--cut-short/--no-cut-short",
        help="forward-search: leave an action at its first inadmissible outcome; the same plan, "
        "sooner.",
        show_default="cut-short",
    ),
]

Paper = Annotated[
    bool | None,
    typer.Option(
        "--paper",
        help="vulcan: the algorithm as it was printed, with constraint A and counts instead of "
        "probabilities.",
    ),
]

Exploration = Annotated[
    float | None,
    typer.Option(
        "--exploration",
        min=0,
        metavar="X",
        help="vulcan, uct: how much to try what looks worse, in units of the range of reward.",
        show_default="1.0",
    ),
]

Complete = Annotated[
    bool | None,
    typer.Option(
        "--complete/--no-complete",
        help="automatic, vulcan, uct: plan to the end what the samples left unexplored.",
        show_default="complete",
    ),
]

Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="automatic, vulcan, uct: seed of the random numbers. The same seed and number of "
        "samples give the same plan.",
        show_default="0",
    ),
]

TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit", min=0, metavar="SECONDS", help="Stop the search after so many seconds."
    ),
]

TimeLimitEach = Annotated[
    float,
    typer.Option(
        "--time-limit", min=0, metavar="SECONDS", help="Stop each search after so many seconds."
    ),
]

HistoryLimit = Annotated[
    int | None,
    typer.Option(
        "--histories",
        min=0,
        metavar="N",
        help="automatic, forward-search, vulcan, uct: stop after so many histories.",
    ),
]

SampleLimit = Annotated[
    int | None,
    typer.Option(
        "--samples",
        min=0,
        metavar="N",
        help="automatic, vulcan, uct: stop after so many samples.",
    ),
]

MemoryLimit = Annotated[
    int | None,
    typer.Option(
        "--memory",
        parser=read_size,
        metavar="SIZE",
        help="All but forward-search: stop when the search takes so much memory: bytes, or 500MB, "
        "4GiB.",
        show_default="half of the machine's",
    ),
]

TargetGap = Annotated[
    float | None,
    typer.Option(
        "--gap",
        min=0,
        metavar="SHARE",
        help="automatic, pareto, integer-program: stop within this share of the best policy. "
        "vulcan: of the best that the constraint admits, by the upper bounds that the model offers "
        "(reward_to_go_bound).",
    ),
]

UpperBound = Annotated[
    bool,
    typer.Option(
        "--upper-bound/--no-upper-bound",
        help="Find an upper bound on the reward of any policy, if the solver has none of its own, "
        "and with it the gap.",
    ),
]

CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="automatic, vulcan, uct: write the search to a file now and then, to be resumed.",
    ),
]

CheckpointInterval = Annotated[
    float | None,
    typer.Option(
        "--checkpoint-every",
        min=0,
        metavar="SECONDS",
        help="automatic, vulcan, uct: seconds between two checkpoints.",
        show_default="60",
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Processes that answer for the model at once: for models that are slow to answer.",
        show_default="none",
    ),
]

Resume = Annotated[
    bool | None,
    typer.Option(
        "--resume",
        help="automatic, vulcan, uct: go on from the checkpoint file, if it exists.",
        show_default=False,
    ),
]
