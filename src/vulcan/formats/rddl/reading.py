"""RDDL files, read and checked by pyRDDLGym; what is wrong is said with file and line.

pyRDDLGym reads a domain and an instance as one text. Here the lines are kept as they are in the
files, so that the line that its parser names can be traced back.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vulcan.errors import OptionError
from vulcan.runtime.texts import read_text

__all__ = [
    "Source", "check_problem", "find_bounds", "load_library", "parse_condition", "read_problem",
]  # fmt: skip

COLOUR = re.compile(r"\x1b\[\d+m")


@dataclass(frozen=True)
class Source:
    """The files of a problem.

    Attributes
    ----------
    domain, instance
        Paths; without an instance, the file of the domain has everything.
    """

    domain: str
    instance: str | None

    def read(self) -> list[tuple[str, int, str]]:
        """Return file, line and text of every line."""
        lines = []
        for path in (self.domain, self.instance):
            if path is None:
                continue
            text = read_text(path, errors="replace")
            lines += [(path, number, line) for number, line in enumerate(text.splitlines(), 1)]
        return lines

    def digest(self) -> str:
        """Return a string that tells these files from others."""
        text = "\n".join(line for _, _, line in self.read())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def locate(self, name: str) -> str:
        """Return the file, and the line where a fluent is given its value."""
        start = re.compile(rf"\s*{re.escape(name)}\s*(\([^)]*\))?\s*=[^=>]")
        for path, number, line in self.read():
            if start.match(line):
                return f"{path}, line {number}"
        return self.domain


def load_library(name: str) -> None:
    """Raise an error that says what to install, unless a library can be imported."""
    try:
        __import__(name)
    except ImportError as error:
        raise OptionError(
            f"RDDL needs {name}, which can't be imported ({error}): "
            "pip install 'vulcan-planner[rddl]'"
        ) from None


def read_problem(source: Source) -> Any:
    """Return the problem of some files, as pyRDDLGym's `RDDLLiftedModel`."""
    load_library("pyRDDLGym")
    from pyRDDLGym.core.compiler.model import RDDLLiftedModel

    lines = source.read()
    tree = _parse(lines, f"{source.domain} and its instance")
    with _explain(source.instance or source.domain):
        return RDDLLiftedModel(tree)


def parse_condition(text: str, place: str) -> Any:
    """Return the expression that a text is; a message calls it by its place."""
    frame = (
        "domain d { pvariables { p : { state-fluent, bool, default = false }; }; cpfs { p' = p; }; "
        "reward = 0; state-invariants {\n",
        text,
        "\n; }; } non-fluents n { domain = d; } "
        "instance i { domain = d; non-fluents = n; horizon = 1; discount = 1.0; }",
    )
    tree = _parse([(place, 1, line) for line in "".join(frame).splitlines()], place)
    if len(tree.domain.invariants) != 1:
        raise OptionError(f"{place} is not one condition")
    return tree.domain.invariants[0]


def check_problem(place: str, rddl: Any) -> Any:
    """Return pyRDDLGym's simulator of a problem, which checks fluents, types and their order."""
    from pyRDDLGym.core.simulator import RDDLSimulator

    with _explain(place):
        return RDDLSimulator(rddl)


def find_bounds(simulator: Any) -> dict[str, tuple[float, float]]:
    """Return the bounds on fluents that preconditions and invariants have, by pyRDDLGym's names."""
    from pyRDDLGym.core.constraints import RDDLConstraints

    with _explain("bounds"):
        bounds: dict[str, tuple[float, float]] = RDDLConstraints(simulator).bounds
    return bounds


def _parse(lines: Sequence[tuple[str, int, str]], whole: str) -> Any:
    from ply.yacc import NullLogger
    from pyRDDLGym.core.debug.exception import RDDLParseError
    from pyRDDLGym.core.parser.parser import RDDLParser

    parser = RDDLParser(lexer=None, verbose=False)
    parser.build(debug=False, write_tables=False, errorlog=NullLogger())
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore")
            warnings.filterwarnings("error", message=".*illegal character")
            return parser.parse("\n".join(line for _, _, line in lines) + "\n")
    except (RDDLParseError, UserWarning) as error:
        text = COLOUR.sub("", str(error))
        found = re.search(r"at line (\d+)|on line (\d+)", text)
        place = lines[min(int(found[1] or found[2]), len(lines)) - 1] if found else (whole, 0, "")
        reason = text.rpartition("...\n")[2].strip()
        raise OptionError(f"{place[0]}, line {place[1]}: {reason}\n  {place[2].strip()}") from None
    except (KeyError, AttributeError) as error:
        # The parser came to the end, and something was missing.
        missing = f"there is no {error.args[0]}" if isinstance(error, KeyError) else "it ends early"
        raise OptionError(
            f"{whole} must have a domain, non-fluents and an instance: {missing}\n"
            "an instance in another file is given by --set instance=path/to/instance.rddl"
        ) from None


@contextmanager
def _explain(place: str) -> Iterator[None]:
    """Say in which file pyRDDLGym found a mistake."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except OptionError:
        raise
    except Exception as error:
        raise OptionError(f"{place}: {COLOUR.sub('', str(error)).strip()}") from None
