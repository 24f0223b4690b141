"""Where compiled functions are kept, and what is trusted there.

Numba reads compiled functions with pickle, and then they are run. So they are kept in a directory
that is ours and that nobody else can write to, or else in a temporary one, which ends with the
process and is shared with its workers; a process that was killed leaves it to the next one to clear
away.

There is a file for each signature of a function: a digest, and what it is the digest of. A file
that is damaged, on its way to the disk or on the disk, is never unpickled: the function is compiled
again. A disk that is full, or can't be written to any more, keeps nothing from being run.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import pickle
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from numba.core.serialize import dumps
from platformdirs import user_cache_path

try:
    import fcntl
except ImportError:  # not every system has such locks
    fcntl = None  # type: ignore[assignment]

__all__ = ["SUFFIX", "KernelFile", "find_directory"]

VARIABLE: Final = "VULCAN_CACHE_DIR"
"""The environment variable that names another place for the cache."""

PREFIX: Final = "vulcan-planner-"
"""How temporary directories are called."""

SUFFIX: Final = ".nbc"
TRIES: Final = 3
DIGEST_SIZE: Final = 32
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

logger = logging.getLogger("vulcan")


def find_directory(name: str) -> Path:
    """Return the directory of a name in the cache, made if need be, or in a temporary one.

    The name is made one of this user, so that several may choose the same place.
    """
    chosen = os.environ.get(VARIABLE)
    base = Path(chosen) if chosen else user_cache_path("vulcan-planner")
    own = f"{name}-{os.geteuid()}" if hasattr(os, "geteuid") else name
    directory = base / own
    try:
        base.mkdir(parents=True, exist_ok=True)
        _require_guarded(base)
        directory.mkdir(mode=0o700, exist_ok=True)
        _require_own(directory)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        directory = _make_temporary_directory(str(base), error.strerror or str(error)) / own
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def _require_guarded(base: Path) -> None:
    """Refuse a place where others could put something else in the place of our directory."""
    found = base.stat()
    if found.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
        raise PermissionError(0, "others may write there")


def _require_own(directory: Path) -> None:
    """Refuse a directory that others could have put something into."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(0, f"{directory.name} is not a directory")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise PermissionError(0, f"{directory.name} belongs to somebody else")
    if os.name == "posix" and found.st_mode & OTHERS_WRITE:
        raise PermissionError(0, f"others may write to {directory.name}")


@cache
def _make_temporary_directory(instead_of: str, reason: str) -> Path:
    """Return a directory that nobody else can have prepared, for this process and its workers."""
    logger.warning(
        "%s can't be used as a cache (%s), so kernels are compiled anew in each process; "
        "%s chooses another place",
        instead_of,
        reason,
        VARIABLE,
    )
    _remove_abandoned_directories()
    for _ in range(TRIES):
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        # It is locked as long as this process lives, which tells others to leave it alone; but
        # somebody who clears away may have been faster.
        if _lock(directory) is not None and directory.exists():
            break
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ[VARIABLE] = str(directory)
    return directory


def _remove_abandoned_directories() -> None:
    """Remove what processes left that were killed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            _require_own(directory)
            lock = _lock(directory)
            if lock is not None:
                shutil.rmtree(directory, ignore_errors=True)
                os.close(lock)


def _lock(directory: Path) -> int | None:
    """Lock a directory until the process ends; None if it has an owner, or can't be locked."""
    if fcntl is None:
        return None
    try:
        file = os.open(directory, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


class KernelFile:
    """The compiled forms of a function, each in a sealed file: what Numba keeps them in.

    Parameters
    ----------
    cache_path, filename_base
        The directory, and how the names of the files begin.
    source_stamp
        What the function was compiled from: other files are not read.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        self._directory, self._base = Path(cache_path), filename_base
        self._stamp = source_stamp

    def load(self, key: Any) -> Any:
        """Return what was saved for a signature; None if nothing was, or it is damaged."""
        path = self._find(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, data = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
        if _digest(data) != digest:
            logger.warning("%s is damaged, so this kernel is compiled again", path)
            return None
        stamp, known, compiled = pickle.loads(data)  # noqa: S301 - nobody else writes there
        return compiled if (stamp, known) == (self._stamp, key) else None

    def save(self, key: Any, compiled: Any) -> None:
        """Save the compiled form for a signature, if that is possible."""
        data = dumps((self._stamp, key, compiled))
        try:
            handle, temporary = tempfile.mkstemp(prefix=f"{self._base}.", dir=self._directory)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_digest(data) + data)
                os.replace(temporary, self._find(key))
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            _tell_unsaved(str(self._directory), error.strerror or str(error))

    def flush(self) -> None:
        """Forget all compiled forms of the function."""
        for path in self._directory.glob(f"{self._base}.*{SUFFIX}"):
            path.unlink(missing_ok=True)

    def _find(self, key: Any) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._directory / f"{self._base}.{name}{SUFFIX}"


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_SIZE).digest()


@cache
def _tell_unsaved(directory: str, reason: str) -> None:
    logger.warning("kernels can't be kept in %s: %s", directory, reason)
