"""The arguments and options of the commands, each declared once, and how their texts are read.

Options that choose and limit a search are derived from the solvers: `vulcan.cli.search`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vulcan.errors import OptionError

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound
    from vulcan.policy.policy import About
    from vulcan.problem import Problem

# The sections of a command's help, in their order.
PROBLEM: Final = "Model and bound"
RANGE: Final = "Range"
SEARCH: Final = "Search"
LIMITS: Final = "Limits"
TUNING: Final = "Options of solvers"
WORK: Final = "Workers"
FILES: Final = "Files"
ANSWER: Final = "Answer"
SECTIONS: Final = (PROBLEM, RANGE, SEARCH, LIMITS, TUNING, WORK, FILES, ANSWER)

problem_option, range_option, search_option, work_option, file_option, answer_option = (
    partial(typer.Option, rich_help_panel=section)
    for section in (PROBLEM, RANGE, SEARCH, WORK, FILES, ANSWER)
)


def complete_model(incomplete: str) -> list[str]:
    """Return the built-in names that begin like this; without one, shells complete files."""
    from vulcan.domains import DOMAINS

    return [name for name in DOMAINS if name.startswith(incomplete)]


# The model, the bound and the policy.

MODELS: Final = (
    "A built-in model such as bandit, or module:Class, or path/to/file.py:Class, or a file such as "
    "mission.toml, model.json, model.npz, maps.txt:7, model.prism, domain.rddl, or "
    "gymnasium:FrozenLake-v1, or rddl:Navigation_MDP_ippc2011/1."
)

ModelText = Annotated[
    str, typer.Argument(metavar="MODEL", help=MODELS, autocompletion=complete_model)
]

OptionalModelText = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help=f"The model that the policy was made for. {MODELS}",
        autocompletion=complete_model,
    ),
]

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A policy file, written by `vulcan solve --output`.")
]

Settings = Annotated[
    list[str] | None,
    problem_option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the model: a Python literal, or else a string. Overrides a mission "
        "file. May be repeated. --horizon N is short for --set horizon=N.",
    ),
]

BoundText = Annotated[
    str | None,
    problem_option(
        "--bound",
        metavar="EXPR",
        help="Acceptable probability of failure as a function of the expected reward x: "
        '0.01, "0.002*x", "piecewise((0, 0), (3, 0.02))".',
        show_default="that of the mission file; else required",
    ),
]

RecordedBoundText = Annotated[
    str | None,
    problem_option(
        "--bound",
        metavar="EXPR",
        help="The risk bound to judge by.",
        show_default="that of the mission file, or else the one that the policy was made for",
    ),
]

# Workers, and sweeps of several searches.

Parallel = Annotated[
    str | None,
    work_option(
        "--parallel",
        metavar="N|KIND[:N][@CLUSTER]",
        help="Number of workers, or their kind: threads, processes, or ray, which starts a Ray "
        "cluster on this machine, or works on one: 4, processes:4, ray:8, ray@auto, "
        "ray:8@10.0.0.1:6379.",
        show_default="1",
    ),
]

# The answer.

Plot = Annotated[
    Path | None,
    file_option(
        "--plot",
        metavar="FILE",
        help="Draw a figure into a file: .png, .svg or .pdf. An existing file is replaced.",
    ),
]

Depth = Annotated[
    int | None,
    answer_option(
        "--depth",
        min=0,
        max=100,
        metavar="N",
        help="Show the policy this many decisions deep; 0 for none.",
        show_default="3",
    ),
]

AsJson = Annotated[
    bool, answer_option("--json", help="Print one JSON document, numbers at full precision.")
]

ShowProgress = Annotated[
    bool | None,
    answer_option(
        "--progress/--no-progress",
        help="Show progress, once it takes longer than a moment.",
        show_default="on a terminal",
    ),
]


def read_numbers(option: str, text: str) -> list[float]:
    """Return the numbers of a string such as 0,0.005,0.01."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(
            f"{option} takes numbers with commas between them, such as 0,0.005,0.01; not {text!r}"
        ) from None


def read_parallel(text: str | None) -> int | str | None:
    """Return the value of `--parallel`, as Python takes it."""
    return int(text) if text is not None and text.isdecimal() else text


def read_progress(progress: bool | None) -> bool:
    """Return whether to show progress; by default on a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def spell_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments with `--horizon N`, the most common setting, as `--set horizon=N`."""
    written: list[str] = []
    for argument in arguments:
        if written and written[-1] == "--horizon":
            written[-1:] = ["--set", f"horizon={argument}"]
        elif argument.startswith("--horizon="):
            written += ["--set", argument.removeprefix("--")]
        else:
            written.append(argument)
    return written


def find_problem(text: str, settings: Sequence[str] | None, bound: str | None) -> Problem:
    """Return the model that a string names, with the given risk bound, or else its own.

    Raises
    ------
    OptionError
        If the model can't be opened, or there is no bound.
    """
    from vulcan.formats.registry import open_model
    from vulcan.problem import Problem

    model, own_bound = open_model(text, settings or ())
    chosen = own_bound if bound is None else bound
    if chosen is None:
        elsewhere = f', or bound = "0.002*x" in {text}' if text.endswith(".toml") else ""
        raise OptionError(f"Missing option '--bound', such as --bound \"0.002*x\"{elsewhere}")
    return Problem(model, chosen)


def open_with_bound(
    text: str, settings: Sequence[str] | None, bound: str | None, about: About
) -> tuple[Any, RiskBound | None, str | None]:
    """Return the model of a policy, the bound to judge the policy by, and where that is from.

    The bound is `--bound`, or else that of the mission file (named by its path), or else the one
    that the policy was made for (None). There is no bound if that can't be written down.
    """
    from vulcan.bounds.parse import parse
    from vulcan.formats.registry import open_model

    model, own_bound = open_model(text, settings or ())
    if bound is not None:
        return model, parse(bound), "--bound"
    if own_bound is not None:
        return model, parse(own_bound), f"the bound in {text}"
    return model, None if about.risk_bound is None else parse(about.risk_bound), None


def keep_off_stdout() -> AbstractContextManager[Any]:
    """Redirect what a model prints to standard error; standard output is for the answer."""
    return redirect_stdout(sys.stderr)
