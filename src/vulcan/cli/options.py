"""The arguments and options of the commands, each described once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "BoundText",
    "Constraint",
    "ConstraintLetter",
    "Credit",
    "CreditName",
    "CutShort",
    "Depth",
    "Exact",
    "HistoryLimit",
    "ModelText",
    "Output",
    "PlanFile",
    "RecordedBoundText",
    "Settings",
    "ShowProgress",
    "SolverChoice",
    "SolverName",
    "StateLimit",
    "TimeLimit",
]


class SolverName(StrEnum):
    """The solvers, by their names on the command line."""

    FORWARD_SEARCH = "forward-search"


class Constraint(StrEnum):
    """The local constraints, by their letters."""

    A = "A"
    B = "B"


class Credit(StrEnum):
    """What a history may claim against the bound under constraint A."""

    EXPECTED = "expected"
    RECEIVED = "received"


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
    SolverName, typer.Option("--solver", metavar="NAME", help="How to search.")
]

ConstraintLetter = Annotated[
    Constraint,
    typer.Option(
        "--constraint",
        case_sensitive=False,
        metavar="A|B",
        help="The local constraint: B, the survival form, or A, the paper's.",
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
    bool,
    typer.Option(
        "--cut-short/--no-cut-short",
        help="Leave an action at its first inadmissible outcome: the same plan, sooner.",
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
