"""The model, and the problem, that the arguments of a command describe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, redirect_stdout
from typing import TYPE_CHECKING, Any

from vulcan.errors import OptionError
from vulcan.formats.registry import open_model

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound
    from vulcan.certificates.problem import Problem
    from vulcan.policies.policy import About

__all__ = ["choose_bound", "find_problem", "keep_off_stdout"]


def find_problem(text: str, settings: Sequence[str], bound: str | None) -> Problem:
    """Return the model that a string names, with a risk bound: the given one, or else its own.

    Raises
    ------
    OptionError
        As `open_model`, and if there is no bound.
    """
    from vulcan.certificates.problem import Problem

    model, own_bound = open_model(text, settings)
    chosen = own_bound if bound is None else bound
    if chosen is None:
        elsewhere = f', or bound = "0.002*x" in {text}' if text.endswith(".toml") else ""
        raise OptionError(f"Missing option '--bound', such as --bound \"0.002*x\"{elsewhere}")
    return Problem(model, chosen)


def choose_bound(given: str | None, own: str | None, about: About) -> RiskBound | None:
    """Return the bound to judge a policy by: the one given, the model's own, or the policy's.

    What a mission accepts is for its file to say, whatever a policy was once made for. None if
    nobody knows one.
    """
    from vulcan.bounds.parsing import parse

    text = next((known for known in (given, own, about.risk_bound) if known is not None), None)
    return None if text is None else parse(text)


def keep_off_stdout() -> AbstractContextManager[Any]:
    """Let what a model prints go to standard error; standard output is for the answer."""
    return redirect_stdout(sys.stderr)
