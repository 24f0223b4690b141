"""The options of a search, derived from the declarations of the solvers.

The help of an option lists the solvers that take it; giving it to another is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Final, Literal

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
        "half of what there is; to grow or sample, a quarter and at most 2 GiB",
    ),
    Option(
        "gap",
        float,
        "Stop when the policy is within this fraction of the optimum, 0 for proof.",
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


def declare_options(tuning: bool) -> dict[str, Any]:
    """Return the options of a search as typer takes them; those of solvers only for `tuning`."""
    found: dict[str, Any] = {}
    if tuning:
        solvers = load_solvers()
        info = options.option(
            options.SEARCH,
            "--solver NAME",
            "The solver, and what it finds. "
            + " ".join(f"{name}: {kind.finds}." for name, kind in solvers.items()),
            autocompletion=lambda incomplete: [n for n in solvers if n.startswith(incomplete)],
        )
        found["solver"] = Annotated[str, info]
        tuned = [option for kind in solvers.values() for option in kind.options]
        found |= {option.name: _declare(option, options.TUNING) for option in tuned}
    return {
        **found,
        **{option.name: _declare(option, options.LIMITS) for option in LIMITS},
        "parallel": Annotated[str | None, options.OPTIONS["parallel"]],
        "progress": Annotated[bool | None, options.OPTIONS["progress"]],
    }


def _declare(option: Option, section: str) -> Any:
    name = option.name.replace("_", "-")
    owners = _list_owners(option.name)
    others = [solver for solver in load_solvers() if solver not in owners]
    owned = f"{', '.join(owners)}: " if len(others) > 2 else f"all but {', '.join(others)}: "
    kind: Any = Literal[option.choices] if option.choices else option.kind
    flags = f"--{name}/--no-{name}" if option.negatable else f"--{name}"
    value = "|".join(option.choices) or METAVARS.get(option.name) or METAVARS.get(option.kind, "")
    info = options.option(
        section,
        f"{flags} {value}",
        (owned if others else "") + option.help,
        show_default=option.default or False,
        case_sensitive=False,
    )
    return Annotated[kind | None, info]


def _list_owners(name: str) -> list[str]:
    """Return the solvers that take an option."""
    return [
        solver
        for solver, kind in load_solvers().items()
        if name in kind.limits
        or (name == "seed" and kind.sampling)
        or any(name == option.name for option in kind.options)
    ]


def make_solver(name: str, given: Mapping[str, Any]) -> Solver:
    """Return a solver with the options that were given, or refuse those that do not fit it."""
    kind = find_solver(name)
    tuning = {k: value for k, value in given.items() if k not in ("parallel", "progress")}
    for option in tuning:
        owners = _list_owners(option)
        if name not in owners:
            *others, last = owners
            listed = f"{', '.join(others)} or {last}" if others else last
            flag = option.replace("_", "-")
            raise OptionError(f"--{flag} is for --solver {listed}, not {name}")
    for limit in LIMITS:
        tuning.pop(limit.name, None)
    return kind.from_options(tuning, read_limits(given))


def read_limits(given: Mapping[str, Any]) -> Limits:
    """Return the limits among the options that were given."""
    values = {field.name: given[field.name] for field in fields(Limits) if field.name in given}
    if "memory" in values:
        values["memory"] = read_size(values["memory"])
    return Limits(**values)


def read_keywords(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given as `solve`, `compare` and `trace_frontier` take them."""
    return {
        "seed": given.get("seed", 0),
        "limits": read_limits(given),
        "parallel": options.read_parallel(given.get("parallel")),
        "progress": options.read_progress(given.get("progress")),
    }


def read_size(text: str) -> int:
    """Return the bytes of a string such as 4GB or 1.5GiB; upper and lower case are the same."""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,9})?) *([a-z]*)", text.strip().lower())
    if found is None or found[2] not in UNITS:
        raise OptionError(
            f"--memory is a number of bytes, or has a unit: kB, MB, GB, MiB, GiB; not {text!r}"
        )
    return round(float(found[1]) * UNITS[found[2]])
