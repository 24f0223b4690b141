"""The options that say how to search, derived from what solvers declare.

A command that takes them is decorated with `takes_search_options`, and gets those that were given
as keywords; `read_search` makes a solver, limits and options of them. Which solvers an option is
for is in its help, and giving it to another is an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer

from vulcan.cli import options
from vulcan.cli.choices import read_seeds, read_size
from vulcan.errors import OptionError
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import Option, Options, Solver
from vulcan.solvers.registry import load_solvers

__all__ = ["Search", "SolverChoice", "SolverList", "read_search", "takes_search_options"]


class Search(NamedTuple):
    """How to search: by which solver, how long, what else it is told, and with which seeds."""

    solver: Solver
    limits: Limits
    options: Options
    seeds: range | None = None


@dataclass(frozen=True)
class SearchOption:
    """An option of `vulcan.solve`, as the command line offers it.

    Attributes
    ----------
    kind
        The type of its values.
    help
        What it does.
    metavar, default
        What the help calls its values, and its default.
    least
        The smallest value.
    """

    kind: Any
    help: str
    metavar: str | None = None
    default: str | bool | None = None
    least: float | None = None


LIMITS: Final = {
    "time_limit": SearchOption(
        float, "Stop the search after this many seconds.", "SECONDS", None, 0
    ),
    "samples": SearchOption(int, "Stop after this many samples.", "N", None, 0),
    "histories": SearchOption(int, "Stop after this many histories.", "N", None, 0),
    "memory": SearchOption(
        str,
        "Stop when the search takes this much memory: bytes, or 500MB, 4GiB.",
        "SIZE",
        "half of the machine's",
    ),
    "gap": SearchOption(
        float,
        "Stop when the policy is within this share of the best, 0 for proof; vulcan: of the best "
        "that the constraint admits, by the upper bounds that the model offers "
        "(reward_to_go_bound).",
        "SHARE",
        "1e-4 for automatic",
        0,
    ),
}
SAMPLING: Final = {
    "seed": SearchOption(
        int,
        "Seed of the random numbers. The same seed and number of samples give the same plan.",
        "N",
        "0",
    ),
    "seeds": SearchOption(
        str,
        "Search with several seeds, so many or from-to, and return the best result with the spread "
        "of all.",
        "N|FROM-TO",
    ),
    "complete": SearchOption(
        bool, "Plan to the end what the samples left unexplored.", None, "complete"
    ),
    "checkpoint": SearchOption(
        Path,
        "Write a search that samples to a file now and then, so that it can be resumed.",
        "FILE",
    ),
    "checkpoint_every": SearchOption(float, "Seconds between two checkpoints.", "SECONDS", "60", 0),
    "resume": SearchOption(
        bool, "Resume the search of the checkpoint file, if it exists.", None, False
    ),
    "overwrite": SearchOption(bool, "Replace the checkpoint file, if it exists.", None, False),
}

EVERY: Final = (*LIMITS, *SAMPLING)


def _list_owners(name: str) -> list[str]:
    """Return the solvers that an option is for."""
    return [
        solver
        for solver, kind in load_solvers().items()
        if name in kind.limits
        or (name in SAMPLING and kind.sampling)
        or any(name == option.name for option in kind.options)
    ]


def _list_solver_options() -> dict[str, Option]:
    """Return the options of all solvers, each once."""
    return {option.name: option for kind in load_solvers().values() for option in kind.options}


def _describe_owners(name: str) -> str:
    """Return which solvers an option is for, in front of its help; nothing if it is for all."""
    owners, every = _list_owners(name), list(load_solvers())
    others = [solver for solver in every if solver not in owners]
    if not others:
        return ""
    return f"{', '.join(owners)}: " if len(others) > 2 else f"all but {', '.join(others)}: "


def _describe_search_option(name: str) -> Any:
    option = {**LIMITS, **SAMPLING}[name]
    switches = {"complete": "--complete/--no-complete"}
    info = typer.Option(
        switches.get(name, f"--{name.replace('_', '-')}"),
        metavar=option.metavar,
        help=_describe_owners(name) + option.help,
        min=option.least,
        show_default=option.default or name == "time_limit",
        parser={"memory": read_size, "seeds": read_seeds}.get(name),
        rich_help_panel=_choose_section(name),
    )
    return Annotated[option.kind | None, info]


def _choose_section(name: str) -> str:
    """Return the section of the help in which an option is."""
    if name in LIMITS:
        return options.LIMITS
    return options.TUNING if name in ("seed", "seeds", "complete") else options.FILES


def _describe_solver_option(option: Option) -> Any:
    name = option.name.replace("_", "-")
    info = typer.Option(
        f"--{name}/--no-{name}" if option.negatable else f"--{name}",
        metavar="|".join(option.choices) or ("X" if option.kind is float else None),
        help=_describe_owners(option.name) + option.help,
        show_default=option.default or False,
        case_sensitive=False,
        rich_help_panel=options.TUNING,
    )
    kind: Any = Literal[option.choices] if option.choices else option.kind
    return Annotated[kind | None, info]


def takes_search_options(
    names: Sequence[str] = EVERY, *, tuning: bool = True, seconds: float | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that say how to search, instead of its `**search`.

    Parameters
    ----------
    names
        Which limits, and which options of solvers that sample.
    tuning
        Whether to add the parameters of the solvers.
    seconds
        The limit of time by default.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        annotations = {}
        if tuning:
            for name, option in _list_solver_options().items():
                annotations[name] = _describe_solver_option(option)
        annotations |= {name: _describe_search_option(name) for name in names}
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=seconds if name == "time_limit" else None,
                annotation=kind,
            )
            for name, kind in annotations.items()
        ]
        # Beside the solver, if there is one.
        place = 1 + next((k for k, p in enumerate(own) if p.name.startswith("solver")), len(own))
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in own]

        def run(**given: Any) -> None:
            command(**{k: v for k, v in given.items() if k not in annotations or v is not None})

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = signature.replace(parameters=[*own[:place], *added, *own[place:]])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
        return run

    return decorate


def read_search(solver: str, given: Mapping[str, Any]) -> Search:
    """Return the solver, the limits and the options that a command was given.

    Parameters
    ----------
    solver
        Name of the solver.
    given
        What was given of the options that `takes_search_options` adds.

    Raises
    ------
    OptionError
        If an option does not fit the solver, excludes another, or has an impossible value.
    """
    for name in given:
        owners = _list_owners(name)
        if solver not in owners:
            *others, last = owners
            listed = f"{', '.join(others)} or {last}" if others else last
            option = name.replace("_", "-")
            raise OptionError(f"--{option} belongs to --solver {listed}; this is {solver}")
    limits = Limits(**{name: given[name] for name in LIMITS if name in given})
    told = {field.name for field in fields(Options)}
    chosen = Options(**{name: value for name, value in given.items() if name in told})
    rest = {*LIMITS, *SAMPLING} | told
    tuning = {name: value for name, value in given.items() if name not in rest}
    made = load_solvers()[solver].from_options(tuning, limits)
    return Search(made, limits, chosen, given.get("seeds"))


def _describe_solvers() -> str:
    listed = [f"{name}: {kind.finds}" for name, kind in load_solvers().items()]
    return f"How to search, and what that finds. {'. '.join(listed)}."


if TYPE_CHECKING:
    SolverChoice = str
else:
    SolverChoice = Annotated[
        Literal[tuple(load_solvers())],
        typer.Option(
            "--solver", metavar="NAME", help=_describe_solvers(), rich_help_panel=options.SEARCH
        ),
    ]

SolverList = Annotated[
    str | None,
    typer.Option(
        "--solvers",
        metavar="NAME,...",
        help="The solvers to compare: see --solver of vulcan solve.",
        show_default="all but automatic",
        rich_help_panel=options.SEARCH,
    ),
]
