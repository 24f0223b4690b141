"""What a worker raised, in a form that arrives.

Errors are pickled on their way. Some can't be, some can't be made again from what was pickled,
since their constructors want something else, and all lose the place where they were raised. So an
error is tried first, replaced by its text if need be, and arrives with its traceback as a note.
"""

from __future__ import annotations

import traceback
from typing import Any

from vulcan.errors import OptionError, VulcanError

__all__ = ["Fault", "pack_fault", "refuse_cargo", "unpack_fault"]

Fault = tuple[BaseException, str]
"""An error that can be pickled, and where it was raised."""


def pack_fault(error: BaseException, pickler: Any) -> Fault:
    """Return an error in a form that arrives.

    Parameters
    ----------
    error
        What was raised.
    pickler
        The module that pickles it.
    """
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickler.loads(pickler.dumps(error))
        arrives = type(copy) is type(error) and str(copy) == str(error)
    except Exception:
        arrives = False
    return (error if arrives else VulcanError(f"{type(error).__name__}: {error}")), trace


def unpack_fault(fault: Fault) -> BaseException:
    """Return the error, with a note of where it was raised."""
    error, trace = fault
    error.add_note(f"In a worker:\n{trace}")
    return error


def refuse_cargo(error: Exception) -> OptionError:
    """Return what is said of arguments and answers that can't be sent."""
    return OptionError(f"workers need what can be pickled, and imported where they are: {error}")
