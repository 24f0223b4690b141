"""Temporary files, and what is left of them when a process is killed.

Whoever writes a temporary file holds a lock on it until it has its place or is gone. The system
gives up the locks of a process that ends, however it ends. So a temporary file that can be locked
belongs to nobody, and one that can't be is being written, by this process or another one, in this
container or another one. Where a file system has no locks, nothing is removed.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

try:
    import fcntl
except ImportError:  # not every system has such locks
    fcntl = None  # type: ignore[assignment]

__all__ = ["open_temporary", "remove_leftovers"]

SUFFIX: Final = ".tmp"
BYTES_OF_NAME: Final = 4


def open_temporary(target: Path, mode: int) -> BinaryIO:
    """Create the file beside a target that will replace it, locked as long as it is open.

    Parameters
    ----------
    target
        The file that it is to become.
    mode
        Its mode, which the umask limits.
    """
    while True:
        stream = _create(target, mode)
        _lock(stream.fileno())
        # Somebody who cleans up may have been faster than the lock.
        if os.fstat(stream.fileno()).st_nlink:
            return stream
        stream.close()


def _create(target: Path, mode: int) -> BinaryIO:
    path = target.with_name(f".{target.name}.{secrets.token_hex(BYTES_OF_NAME)}{SUFFIX}")
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def remove_leftovers(target: Path) -> None:
    """Remove what killed processes left of files that were to become a target."""
    token = f"[0-9a-f]{{{2 * BYTES_OF_NAME}}}"
    pattern = re.compile(re.escape(f".{target.name}.") + token + re.escape(SUFFIX))
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_abandoned(entry.path)


def _remove_abandoned(path: str) -> None:
    """Remove a file unless somebody holds it, or it is not ours to remove."""
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _lock(file):
                os.unlink(path)
        finally:
            os.close(file)


def _lock(file: int) -> bool:
    """Lock a file for as long as it is open; False if somebody else has, or nobody can."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
