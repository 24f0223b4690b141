"""Files that are written at once or not at all, and whose damage is noticed.

A sealed file is

    8 bytes   magic: what kind of file it is
    4 bytes   version of its format, little endian
    8 bytes   length of the content
              content
    32 bytes  SHA-256 of everything before

and a reader of it sees the old content or the new one, never half of one.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vulcan.errors import VulcanError
from vulcan.runtime.limits import DEFAULT_MEMORY

__all__ = ["Seal", "write_atomically"]

HEADER: Final = struct.Struct("<8sIQ")
DIGEST_SIZE: Final = hashlib.sha256().digest_size

LARGEST_CONTENT: Final = DEFAULT_MEMORY
PIECE: Final = 1 << 24
"""Bytes of content that are read, at all and at once."""


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
            left = DIGEST_SIZE + 1 + (length if length <= LARGEST_CONTENT else 0)
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
        if length > LARGEST_CONTENT:
            return f"the file claims {length} bytes; at most {LARGEST_CONTENT} are read"
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
    """Replace the content of a file at once, or leave it as it was."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
