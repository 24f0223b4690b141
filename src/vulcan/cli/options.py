"""The arguments and options of the commands, each described once."""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "BoundText",
    "CheckpointFile",
    "CheckpointInterval",
    "Complete",
    "Constraint",
    "ConstraintLetter",
    "Credit",
    "CreditName",
    "CutShort",
    "Depth",
    "Exact",
    "Exploration",
    "HistoryLimit",
    "MemoryLimit",
    "ModelText",
    "Output",
    "Paper",
    "PlanFile",
    "RecordedBoundText",
    "Resume",
    "SampleLimit",
    "Seed",
    "Settings",
    "ShowProgress",
    "SolverChoice",
    "SolverName",
    "StateLimit",
    "TargetGap",
    "TimeLimit",
    "Workers",
]


class SolverName(StrEnum):
    """The solvers, by their names on the command line."""

    FORWARD_SEARCH = "forward-search"
    VULCAN = "vulcan"
    UCT = "uct"


class Constraint(StrEnum):
    """The local constraints, by their letters."""

    A = "A"
    B = "B"


class Credit(StrEnum):
    """What a history may claim against the bound under constraint A."""

    EXPECTED = "expected"
    RECEIVED = "received"


UNITS = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "kiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}


def read_size(text: str) -> int:
    """Return the bytes of a text such as 4GB or 1.5GiB; upper and lower case are the same."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([a-z]*)", text.strip(), re.IGNORECASE)
    units = {unit.lower(): size for unit, size in UNITS.items()}
    if found is None or found[2].lower() not in units or len(text) > 30:
        raise typer.BadParameter(
            f"a size is a number of bytes, or has one of the units "
            f"{', '.join(filter(None, UNITS))}, such as 4GB; not {text!r}"
        )
    return int(Fraction(found[1]) * units[found[2].lower()])


def complete_model(incomplete: str) -> list[str]:
    """Return the built-in names, Python files and folders that begin so."""
    from vulcan.domains import DOMAINS

    names = [name for name in DOMAINS if name.startswith(incomplete)]
    cut = incomplete.rfind("/") + 1
    folder, start = incomplete[:cut], incomplete[cut:]
    try:
        entries = sorted(Path(folder or ".").glob(f"{start}*" if start else "[!.]*"))
    except (OSError, ValueError):
        return names
    names += [f"{folder}{entry.name}/" for entry in entries if entry.is_dir()]
    return names + [f"{folder}{entry.name}:" for entry in entries if entry.suffix == ".py"]


# What is worked on.

ModelText = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A built-in model such as bandit, or module:Class, or path/to/file.py:Class.",
        autocompletion=complete_model,
        show_default=False,
    ),
]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the model: a Python literal, or else a text. May be repeated.",
        show_default=False,
    ),
]

BoundText = Annotated[
    str,
    typer.Option(
        "--bound",
        metavar="EXPR",
        help="Acceptable probability of failure as a function of the expected reward x: "
        '0.01, "0.002*x", "piecewise((0, 0), (3, 0.02))".',
        show_default=False,
    ),
]

RecordedBoundText = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="EXPR",
        help="The risk bound to judge by.",
        show_default="the one that the policy was made for",
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

# How.

SolverChoice = Annotated[
    SolverName,
    typer.Option(
        "--solver",
        metavar="NAME",
        help="How to search: forward-search, which is exhaustive; vulcan, which samples; or uct, "
        "which samples without regard to risk.",
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
        help="vulcan, uct: plan to the end what the samples left unexplored.",
        show_default="complete",
    ),
]

Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="vulcan, uct: seed of the random numbers. The same seed and number of samples give "
        "the same plan.",
        show_default="0",
    ),
]

TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit", min=0, metavar="SECONDS", help="Stop the search after so many seconds."
    ),
]

HistoryLimit = Annotated[
    int | None,
    typer.Option(
        "--histories", min=0, metavar="N", help="Stop the search after so many histories."
    ),
]

SampleLimit = Annotated[
    int | None,
    typer.Option("--samples", min=0, metavar="N", help="vulcan, uct: stop after so many samples."),
]

MemoryLimit = Annotated[
    int | None,
    typer.Option(
        "--memory",
        parser=read_size,
        metavar="SIZE",
        help="vulcan, uct: stop when the search takes so much memory: bytes, or 500MB, 4GiB.",
        show_default="4GiB",
    ),
]

TargetGap = Annotated[
    float | None,
    typer.Option(
        "--gap",
        min=0,
        metavar="SHARE",
        help="vulcan: stop within this share of the best that the constraint admits, by the upper "
        "bounds that the model offers (reward_to_go_bound).",
    ),
]

CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="vulcan, uct: write the search to a file now and then, to be resumed.",
    ),
]

CheckpointInterval = Annotated[
    float | None,
    typer.Option(
        "--checkpoint-every",
        min=0,
        metavar="SECONDS",
        help="vulcan, uct: seconds between two checkpoints.",
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
        help="vulcan, uct: go on from the checkpoint file, if it exists.",
        show_default=False,
    ),
]

StateLimit = Annotated[
    int,
    typer.Option("--states", min=1, metavar="N", help="Stop after so many distinct states."),
]

Exact = Annotated[
    bool,
    typer.Option("--exact", help="Compute with fractions: slow, and without any rounding."),
]

# What comes out.

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the policy to a file, if it is safe. An existing file is replaced.",
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
    ),
]

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document, numbers at full precision."),
]

ShowProgress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show how far the search is, once it takes longer than a moment.",
        show_default="on a terminal",
    ),
]
