"""What may be chosen on the command line, and how its texts are read."""

from __future__ import annotations

import re
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

import typer

from vulcan.errors import OptionError

__all__ = [
    "Constraint",
    "Credit",
    "SolverName",
    "Structure",
    "complete_model",
    "read_numbers",
    "read_size",
    "read_solvers",
]


class SolverName(StrEnum):
    """The solvers, by their names on the command line."""

    AUTOMATIC = "automatic"
    FORWARD_SEARCH = "forward-search"
    VULCAN = "vulcan"
    UCT = "uct"
    PARETO = "pareto"
    LAGRANGIAN = "lagrangian"
    LINEAR_PROGRAM = "linear-program"
    INTEGER_PROGRAM = "integer-program"
    RAO_STAR = "rao-star"
    PENALTY = "penalty"


class Constraint(StrEnum):
    """The local constraints, by their letters."""

    A = "A"
    B = "B"


class Credit(StrEnum):
    """What a history may claim against the bound under constraint A."""

    EXPECTED = "expected"
    RECEIVED = "received"


class Structure(StrEnum):
    """What linear and integer programs are written on."""

    GRAPH = "graph"
    TREE = "tree"


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
    """Return the built-in names, Python files, mission files and folders that begin so."""
    from vulcan.domains import DOMAINS

    names = [name for name in DOMAINS if name.startswith(incomplete)]
    cut = incomplete.rfind("/") + 1
    folder, start = incomplete[:cut], incomplete[cut:]
    try:
        entries = sorted(Path(folder or ".").glob(f"{start}*" if start else "[!.]*"))
    except (OSError, ValueError):
        return names
    names += [f"{folder}{entry.name}/" for entry in entries if entry.is_dir()]
    endings = {".py": ":", ".toml": ""}  # a class follows a Python file
    return names + [
        f"{folder}{entry.name}{endings[entry.suffix]}"
        for entry in entries
        if entry.suffix in endings
    ]


def read_numbers(option: str, text: str) -> list[float]:
    """Return the numbers of a text such as 0,0.005,0.01."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(
            f"{option} takes numbers with commas between them, such as 0,0.005,0.01; not {text!r}"
        ) from None


def read_solvers(text: str) -> list[SolverName]:
    """Return the solvers of a text such as vulcan,pareto, each once."""
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in list(SolverName):
            close = get_close_matches(name, [str(known) for known in SolverName], n=1)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            raise OptionError(
                f"--solvers has no {name!r}{guess}\nsolvers are {', '.join(SolverName)}"
            )
    return list(dict.fromkeys(SolverName(name) for name in names))
