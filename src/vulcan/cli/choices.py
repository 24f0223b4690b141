"""How strings on the command line are read and completed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import typer

from vulcan.errors import OptionError

__all__ = ["complete_model", "read_numbers", "read_seeds", "read_size", "spell_out"]

MOST_SEEDS = 1_000_000

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
    """Return the bytes of a string such as 4GB or 1.5GiB; upper and lower case are the same."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([a-z]*)", text.strip(), re.IGNORECASE)
    units = {unit.lower(): size for unit, size in UNITS.items()}
    if found is None or found[2].lower() not in units or len(text) > 30:
        raise typer.BadParameter(
            f"a size is a number of bytes, or has one of the units "
            f"{', '.join(filter(None, UNITS))}, such as 4GB; not {text!r}"
        )
    return int(Fraction(found[1]) * units[found[2].lower()])


def read_seeds(text: str) -> range:
    """Return the seeds of a string such as 20, for the first twenty, or 5-19."""
    found = re.fullmatch(r"(?:([0-9]+) *- *)?([0-9]+)", text.strip())
    if found is None or len(text) > 50:
        raise typer.BadParameter(
            f"seeds are a number of them, or from-to such as 5-19; not {text!r}"
        )
    seeds = range(int(found[2])) if found[1] is None else range(int(found[1]), int(found[2]) + 1)
    if not 0 < len(seeds) <= MOST_SEEDS:
        raise typer.BadParameter(
            f"there must be 1 to {MOST_SEEDS:,} seeds; {text!r} has {len(seeds):,}"
        )
    return seeds


def spell_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments with `--horizon N` written as `--set horizon=N`.

    Every model has a horizon, and it is what is set most often.
    """
    written: list[str] = []
    left = iter(arguments)
    for argument in left:
        name, equals, value = argument.partition("=")
        if name != "--horizon":
            written.append(argument)
            if argument == "--":
                break
        elif equals or (value := next(left, "")):
            written += ["--set", f"horizon={value}"]
        else:
            written.append(argument)
    return [*written, *left]


def complete_model(incomplete: str) -> list[str]:
    """Return the built-in names, files of models and folders that begin like this."""
    from vulcan.domains import DOMAINS
    from vulcan.formats.registry import FORMATS

    prefixes = [sign for sign in FORMATS if sign.endswith(":")]
    names = [name for name in (*DOMAINS, *prefixes) if name.startswith(incomplete)]
    cut = incomplete.rfind("/") + 1
    folder, start = incomplete[:cut], incomplete[cut:]
    try:
        entries = sorted(Path(folder or ".").glob(f"{start}*" if start else "[!.]*"))
    except (OSError, ValueError):
        return names
    names += [f"{folder}{entry.name}/" for entry in entries if entry.is_dir()]
    return names + [
        f"{folder}{entry.name}{':' if entry.suffix == '.py' else ''}"  # a class follows
        for entry in entries
        if entry.suffix and entry.suffix in FORMATS
    ]


def read_numbers(option: str, text: str) -> list[float]:
    """Return the numbers of a string such as 0,0.005,0.01."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(
            f"{option} takes numbers with commas between them, such as 0,0.005,0.01; not {text!r}"
        ) from None
