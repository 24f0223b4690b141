"""Text files that somebody else may have written: read as they are, unless they are too large."""

from __future__ import annotations

import os
from typing import Final

from vulcan.errors import OptionError

__all__ = ["LARGEST_TEXT", "read_text"]

LARGEST_TEXT: Final = 1 << 28
"""Bytes of a text file that is read: far more than anybody writes by hand."""


def read_text(path: str | os.PathLike[str], errors: str = "strict") -> str:
    """Return the text of a file in UTF-8.

    Parameters
    ----------
    path
        The file.
    errors
        What to do with bytes that are no text, as in `bytes.decode`.

    Raises
    ------
    OptionError
        If it can't be read, is too large or no text.
    """
    try:
        with open(path, "rb") as stream:
            # One byte more would do; what has no end, such as a device, is not read to it.
            data = stream.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise OptionError(f"{path}: can't be read: {error.strerror or error}") from None
    if len(data) > LARGEST_TEXT:
        most = LARGEST_TEXT >> 20
        raise OptionError(f"{path}: can't be read: a text may have {most} MiB, and this has more")
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError:
        raise OptionError(f"{path}: can't be read: it is not a text in UTF-8") from None
