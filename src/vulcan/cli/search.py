"""The options of a search, derived from the declarations of the solvers.

A command that is decorated with `takes_search_options` gets them as a `Search`. The help of an
option lists the solvers that take it; giving it to another is an error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from vulcan.cli import options
from vulcan.errors import OptionError
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import Option, Solver, find_solver, load_solvers

LIMITS: Final = (
    Option("time_limit", float, "Stop the search after this many seconds."),
    Option("samples", int, "Stop after this many samples."),
    Option("histories", int, "Stop after this many histories."),
    Option(
        "memory",
        str,
        "Stop when the search takes this much memory: bytes, or 500MB, 4GiB.",
        "half of the machine's",
    ),
    Option(
        "gap",
        float,
        "Stop when the policy is within this fraction of the optimum, 0 for proof; vulcan: of the "
        "best policy that the constraint admits, by the upper bounds that the model offers "
        "(reward_to_go_bound).",
        "1e-4 for automatic",
    ),
    Option(
        "seed",
        int,
        "Seed of the random numbers. The same seed and number of samples give the same policy.",
        "0",
    ),
)

METAVARS: Final = {"time_limit": "SECONDS", "memory": "SIZE", float: "X", int: "N"}

UNITS: Final = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "mib": 1 << 20, "gib": 1 << 30}

GENERAL: Final = {
    "parallel": options.Parallel,
    "progress": options.ShowProgress,
}
"""Options of all searches."""


@dataclass(frozen=True)
class Search:
    """The options of a search that a command was given."""

    given: Mapping[str, Any]

    def make_solver(self, name: str) -> Solver:
        """Return the solver with its options.

        Raises
        ------
        OptionError
            If an option does not fit the solver, excludes another, or has an impossible value.
        """
        tuning = {k: v for k, v in self.given.items() if k not in GENERAL}
        for option in tuning:
            owners = _list_owners(option)
            if name not in owners:
                *others, last = owners
                listed = f"{', '.join(others)} or {last}" if others else last
                flag = option.replace("_", "-")
                raise OptionError(f"--{flag} belongs to --solver {listed}; this is {name}")
        for limit in LIMITS:
            tuning.pop(limit.name, None)
        return find_solver(name).from_options(tuning, self.limits)

    @property
    def limits(self) -> Limits:
        """The limits of the search."""
        names = [field.name for field in fields(Limits) if field.name in self.given]
        values = {name: self.given[name] for name in names}
        if "memory" in values:
            values["memory"] = read_size(values["memory"])
        return Limits(**values)

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `solve`, `compare` and `trace_frontier`."""
        return {
            "seed": self.given.get("seed", 0),
            "limits": self.limits,
            "parallel": options.read_parallel(self.given.get("parallel")),
            "progress": options.read_progress(self.given.get("progress")),
        }


def read_size(text: str) -> int:
    """Return the bytes of a string such as 4GB or 1.5GiB; upper and lower case are the same."""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,9})?) *([a-z]*)", text.strip().lower())
    if found is None or found[2] not in UNITS:
        raise OptionError(
            f"--memory is a number of bytes, or has a unit: kB, MB, GB, MiB, GiB; not {text!r}"
        )
    return round(float(found[1]) * UNITS[found[2]])


def _list_owners(name: str) -> list[str]:
    """Return the solvers that take an option."""
    return [
        solver
        for solver, kind in load_solvers().items()
        if name in kind.limits
        or (name == "seed" and kind.sampling)
        or any(name == option.name for option in kind.options)
    ]


def _declare(option: Option, section: str) -> Any:
    name = option.name.replace("_", "-")
    owners = _list_owners(option.name)
    others = [solver for solver in load_solvers() if solver not in owners]
    owned = f"{', '.join(owners)}: " if len(others) > 2 else f"all but {', '.join(others)}: "
    metavar = METAVARS.get(option.name) or METAVARS.get(option.kind)
    kind: Any = Literal[option.choices] if option.choices else option.kind
    return Annotated[
        kind | None,
        typer.Option(
            f"--{name}/--no-{name}" if option.negatable else f"--{name}",
            metavar="|".join(option.choices) or metavar,
            help=(owned if others else "") + option.help,
            show_default=option.default or False,
            case_sensitive=False,
            rich_help_panel=section,
        ),
    ]


def takes_search_options(
    *, tuning: bool = True, seconds: float | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `search` of a command by the options of a search.

    Parameters
    ----------
    tuning
        Whether to add the parameters of the solvers.
    seconds
        The default time limit.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.name != "search"]
        declared = [option for kind in load_solvers().values() for option in kind.options]
        added = {o.name: _declare(o, options.TUNING) for o in declared if tuning}
        added |= {o.name: _declare(o, options.LIMITS) for o in LIMITS} | GENERAL
        default = {"time_limit": seconds}

        def run(**given: Any) -> None:
            search = {name: given.pop(name) for name in added}
            command(**given, search=Search({k: v for k, v in search.items() if v is not None}))

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        parameters = [
            *(p.replace(kind=p.KEYWORD_ONLY) for p in own),
            *(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default.get(name), annotation=kind
                )
                for name, kind in added.items()
            ),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def _complete_solver(incomplete: str) -> list[str]:
    return [name for name in load_solvers() if name.startswith(incomplete)]


def _check_solver(name: str) -> str:
    """Return the name of a solver, or refuse it."""
    try:
        find_solver(name)
    except OptionError as error:
        raise typer.BadParameter(str(error)) from None
    return name


if TYPE_CHECKING:
    SolverChoice = str
else:
    SolverChoice = Annotated[
        str,
        options.search_option(
            "--solver",
            metavar="NAME",
            help="The solver, and what it finds. "
            + " ".join(f"{name}: {kind.finds}." for name, kind in load_solvers().items()),
            parser=_check_solver,
            autocompletion=_complete_solver,
        ),
    ]
