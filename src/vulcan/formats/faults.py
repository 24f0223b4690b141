"""What went wrong in a user's own code or file, with the place where it happened."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from vulcan.errors import OptionError, VulcanError
from vulcan.model.arrays import ArrayModel

__all__ = ["describe_fault", "in_file", "run_module"]

Loaded = TypeVar("Loaded")


def in_file(place: str, make: Callable[..., ArrayModel]) -> Callable[..., ArrayModel]:
    """Return the same function, whose errors and models begin with the file that it reads from."""

    def make_from_file(**values: Any) -> ArrayModel:
        try:
            model = make(**values)
        except VulcanError as error:
            raise OptionError(f"{place}: {error}") from None
        model.source = Path(place).name
        return model

    make_from_file.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]
    return make_from_file


def run_module(place: str, load: Callable[[], Loaded]) -> Loaded:
    """Run a user's module; whatever it raises is a matter of the module."""
    try:
        return load()
    except ModuleNotFoundError as error:
        # The module itself is missing, rather than something that it imports.
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise OptionError(
                f"there is no module {error.name!r} here or among the installed packages"
            ) from None
        raise OptionError(f"{place} can't be imported: {describe_fault(error)}") from error
    except (Exception, SystemExit) as error:
        raise OptionError(f"{place} can't be imported: {describe_fault(error)}") from error


def describe_fault(error: BaseException) -> str:
    """Return what was raised, and the last line of a file of the user's that took part in it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return text  # it names file and line itself
    here = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", here))
    ]
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text
