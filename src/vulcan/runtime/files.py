"""Files that are written at once or not at all, and whose damage is noticed.

Whatever Vulcan writes is a plain file: a reader of it sees the old content or the new one, never
half of one. That is done by renaming, which would put a file in the place of a pipe or a device, so
that these are refused. Of a symbolic link it is the file behind it that is written. What a killed
process left half written is removed (`vulcan.runtime.leftovers`).

A sealed file is

    8 bytes   magic: what kind of file it is
    4 bytes   version of its format, little endian
    8 bytes   length of the content
              content
    32 bytes  SHA-256 of everything before
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vulcan.errors import VulcanError
from vulcan.runtime.leftovers import open_temporary, remove_leftovers
from vulcan.runtime.memory import find_default_memory

__all__ = ["Seal", "find_target", "write_atomically"]

HEADER: Final = struct.Struct("<8sIQ")
DIGEST_SIZE: Final = hashlib.sha256().digest_size

KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What a path can lead to beside plain files and directories."""

PIECE: Final = 1 << 24
"""Bytes of content that are read at once."""


@dataclass(frozen=True)
class Seal:
    """How one kind of file is sealed.

    Parameters
    ----------
    name
        What people call such a file.
    magic
        The first 8 bytes.
    version, oldest
        The newest version of the format, which is written, and the oldest that can be read.
    error
        What to raise if a file can't be read.
    """

    name: str
    magic: bytes
    version: int
    error: type[VulcanError]
    oldest: int = 1

    def write(self, path: str | os.PathLike[str], content: bytes) -> None:
        """Write content to a file, sealed and atomically."""
        data = HEADER.pack(self.magic, self.version, len(content)) + content
        write_atomically(path, data + hashlib.sha256(data).digest())

    def read(self, path: str | os.PathLike[str]) -> bytes:
        """Return the content of a file, or raise the error that says what is wrong with it."""
        try:
            data = self._read(path)
        except OSError as error:
            raise self.error(f"{path}: can't be read: {error.strerror or error}") from error
        problem = self._find_problem(data)
        if problem:
            raise self.error(f"{path}: {problem}")
        return data[HEADER.size : -DIGEST_SIZE]

    def _read(self, path: str | os.PathLike[str]) -> bytes:
        """Return what a file has, up to a byte more than its header says."""
        with open(path, "rb") as stream:
            data = stream.read(HEADER.size)
            whole = len(data) == HEADER.size and data.startswith(self.magic)
            length = HEADER.unpack(data)[2] if whole else 0
            left = DIGEST_SIZE + 1 + (length if length <= find_default_memory() else 0)
            pieces = [data]
            # Piece by piece: memory is taken for what is there, not for what is claimed.
            while left > 0 and (piece := stream.read(min(left, PIECE))):
                pieces.append(piece)
                left -= len(piece)
        return b"".join(pieces)

    def _find_problem(self, data: bytes) -> str | None:
        if not data.startswith(self.magic[: max(1, min(len(data), len(self.magic)))]):
            return f"this is not a Vulcan {self.name}"
        if len(data) < HEADER.size + DIGEST_SIZE:
            return f"the file is cut off: only {len(data)} bytes are left"
        _, version, length = HEADER.unpack_from(data)
        whole = HEADER.size + length + DIGEST_SIZE
        if length > (most := find_default_memory()):
            return f"the file claims {length} bytes; at most {most} are read"
        if version > self.version:
            return f"the file has format {version}; this Vulcan reads up to {self.version}"
        if version < self.oldest:
            return (
                f"the file has format {version}, of an older Vulcan; this one reads {self.oldest}"
            )
        if len(data) < whole:
            return f"the file is cut off: {len(data)} of {whole} bytes are left"
        if len(data) > whole:
            return f"the file has bytes too many: it should end after {whole}"
        if hashlib.sha256(data[:-DIGEST_SIZE]).digest() != data[-DIGEST_SIZE:]:
            return "the file is damaged: its checksum does not match its content"
        return None


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the content of a plain file at once, or leave it as it was.

    A file that was there keeps its mode, and its owner and group where that is allowed. A new one
    has the mode that the process gives to new files.

    Parameters
    ----------
    path
        The file, or a symbolic link to it.
    data
        The content.

    Raises
    ------
    OSError
        If no plain file can be written there; see `find_target`.
    """
    target = find_target(path)
    before = target.stat() if target.exists() else None
    remove_leftovers(target)
    with open_temporary(target, 0o666 if before is None else 0o600) as stream:
        temporary = stream.name
        try:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            if before is not None:
                _keep_access(temporary, before)
            os.replace(temporary, target)  # while it is open, it is locked
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def find_target(path: str | os.PathLike[str]) -> Path:
    """Return the plain file that is written at a path, whether it is there already or not.

    Parameters
    ----------
    path
        A path; where it is a symbolic link, the file is what that leads to.

    Raises
    ------
    OSError
        If something else is there, the file is protected, or its directory is missing or protected.
    """
    name = os.fspath(path)
    with suppress(FileNotFoundError):
        _require_plain(name, os.stat(name).st_mode)
    target = Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise _refuse(errno.ENOENT, str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise _refuse(errno.EACCES, str(target.parent))
    return target


def _require_plain(name: str, mode: int) -> None:
    """Refuse what is no plain file, or may not be written."""
    if stat.S_ISDIR(mode):
        raise _refuse(errno.EISDIR, name)
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"this is {kind}, and only plain files are written", name)
    if not os.access(name, os.W_OK):
        raise _refuse(errno.EACCES, name)


def _refuse(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


def _keep_access(temporary: str, before: os.stat_result) -> None:
    """Give a file the owner, group and mode of the one that it replaces, as far as we may.

    Where it can't have the group, that of ours may do with it what everybody may.
    """
    now, mode = os.stat(temporary), stat.S_IMODE(before.st_mode)
    if now.st_uid != before.st_uid:
        with suppress(PermissionError):
            os.chown(temporary, before.st_uid, -1)
    if now.st_gid != before.st_gid:
        try:
            os.chown(temporary, -1, before.st_gid)
        except PermissionError:
            mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    os.chmod(temporary, mode)
