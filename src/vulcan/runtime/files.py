"""Files: written atomically, sealed against damage, and read with a limit on their size.

Atomic writes. Readers see the old content or the new one, never part of one. Writing ends with a
rename, which would replace a pipe or a device by a file, so these are refused; a symbolic link
stays and its target is written.

Stale files. A writer holds a lock on its temporary file, which the system releases when a process
ends. So a temporary file that can be locked is stale, and is removed. Where a file system has no
locks, nothing is removed.

A sealed file is

    8 bytes   magic: the kind of file
    4 bytes   version of its format, little endian
    8 bytes   length of the content
              content
    32 bytes  SHA-256 of everything before

Python files as modules. A model file finds its neighbours, but installed modules first, and gets a
module name of its own, so that a file called numpy.py replaces nothing. That name can't be
imported, and objects are pickled by it: a process that reads them loads the same files first
(`list_loaded`).
"""

from __future__ import annotations

import errno
import glob
import hashlib
import importlib.util
import os
import secrets
import stat
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final

from vulcan.errors import CheckpointError, OptionError, VulcanError
from vulcan.runtime.limits import find_default_memory

try:
    import fcntl
except ImportError:  # not every system has such locks
    fcntl = None  # type: ignore[assignment]

LARGEST_TEXT: Final = 1 << 28  # bytes of a text file that is read: far more than is written by hand

HEADER: Final = struct.Struct("<8sIQ")
DIGEST_SIZE: Final = hashlib.sha256().digest_size

CHUNK: Final = 1 << 24  # bytes of content that are read at once

_loaded: dict[str, Path] = {}


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the content of a plain file at once, or leave it as it was; see `find_target`.

    An existing file keeps its mode. A new one has the default mode of the process.
    """
    target = find_target(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    remove_stale_files(target)
    with _create_temporary(target, 0o666 if mode is None else 0o600) as stream:
        temporary = Path(stream.name)
        try:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)  # before it is closed and unlocked
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _create_temporary(target: Path, mode: int) -> BinaryIO:
    """Create a temporary file beside a target, locked as long as it is open."""
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        stream = open(path, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115
        _lock(stream)
        # Another process that removes stale files may have been faster than the lock.
        if os.fstat(stream.fileno()).st_nlink:
            return stream
        stream.close()


def remove_stale_files(target: Path) -> None:
    """Remove the temporary files of a target that killed processes have left."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.{8 * '[0-9a-f]'}.tmp"):
        if path.is_file() and not path.is_symlink():
            with suppress(OSError), open(path, "rb") as stream:
                if _lock(stream):
                    path.unlink()


def _lock(stream: BinaryIO) -> bool:
    """Lock a file for as long as it is open; return False if that is not possible."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def find_target(path: str | os.PathLike[str]) -> Path:
    """Return the plain file to write at a path, the target of a symbolic link; it may not exist.

    An `OSError` says if something else is there, or the file or its directory is protected.
    """
    name = os.fspath(path)
    with suppress(FileNotFoundError):
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise _refuse(errno.EISDIR, name)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a plain file; only plain files are written", name)
        if not os.access(name, os.W_OK):
            raise _refuse(errno.EACCES, name)
    target = Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise _refuse(errno.ENOENT, str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise _refuse(errno.EACCES, str(target.parent))
    return target


def _refuse(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


@dataclass(frozen=True)
class Seal:
    """A kind of sealed file: its name in messages, its magic, and the error of a bad file.

    `version` is that of the format that is written, `oldest` the first that can be read.
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
        """Return the content of a file, or raise `error`."""
        try:
            data = self._read(path)
        except OSError as error:
            raise self.error(f"{path}: can't be read: {error.strerror or error}") from error
        problem = self._find_problem(data)
        if problem:
            raise self.error(f"{path}: {problem}")
        return data[HEADER.size : -DIGEST_SIZE]

    def _read(self, path: str | os.PathLike[str]) -> bytes:
        """Return the bytes of a file, up to one more than its header says."""
        with open(path, "rb") as stream:
            data = stream.read(HEADER.size)
            whole = len(data) == HEADER.size and data.startswith(self.magic)
            length = HEADER.unpack(data)[2] if whole else 0
            left = DIGEST_SIZE + 1 + (length if length <= find_default_memory() else 0)
            chunks = [data]
            # Chunk by chunk: memory is allocated for actual content, not for a claimed length.
            while left > 0 and (chunk := stream.read(min(left, CHUNK))):
                chunks.append(chunk)
                left -= len(chunk)
        return b"".join(chunks)

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


def read_text(path: str | os.PathLike[str], errors: str = "strict") -> str:
    """Return the text of a file in UTF-8, or raise an `OptionError`; `errors` as for bytes."""
    try:
        with open(path, "rb") as stream:
            # One byte more shows that it is too large; a device may have no end.
            data = stream.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise OptionError(f"{path}: can't be read: {error.strerror or error}") from None
    if len(data) > LARGEST_TEXT:
        most = LARGEST_TEXT >> 20
        raise OptionError(f"{path}: can't be read: text files are limited to {most} MiB")
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError:
        raise OptionError(f"{path}: can't be read: not UTF-8 text") from None


def load_file(path: Path) -> ModuleType:
    """Run a Python file and return it as a module; its exceptions pass through."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    name = f"vulcan_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    _loaded[name] = path.resolve()
    return module


def list_loaded() -> dict[Path, ModuleType]:
    """Return the loaded files, for another process to load, and their modules."""
    return {path: sys.modules[name] for name, path in _loaded.items() if name in sys.modules}


@dataclass(frozen=True)
class Checkpoint:
    """A file that a search writes regularly, so that it can be resumed.

    Parameters
    ----------
    path
        The file. An existing one is an error, unless it is resumed or overwritten.
    every
        Seconds between two checkpoints of a search.
    resume
        Continue from the file, if it exists. With a limit of samples the result is the same, bit
        for bit, as that of a search that was never interrupted.
    overwrite
        Replace the file, if it exists.
    """

    path: str | os.PathLike[str]
    every: float = 60.0
    resume: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise OptionError(f"checkpoint must be a path or a Checkpoint, not {self.path!r}")
        if self.resume and self.overwrite:
            raise OptionError("resume or overwrite, not both: a checkpoint goes on or is replaced")
        if not self.every >= 0:
            raise OptionError(f"every must be at least 0 seconds, not {self.every!r}")

    @classmethod
    def read(cls, given: Checkpoint | str | os.PathLike[str] | None) -> Checkpoint | None:
        """Return a user's `checkpoint=`, a path or a checkpoint, as a checkpoint."""
        return given if given is None or isinstance(given, Checkpoint) else cls(given)

    @property
    def resumes(self) -> bool:
        """Whether there is something to resume."""
        return self.resume and Path(self.path).exists()

    def require_free(self) -> None:
        """Refuse a file that can't be written, or exists and is not to be used."""
        try:
            target = find_target(self.path)
        except OSError as error:
            message = f"{self.path}: no file can be written there: {error.strerror}"
            raise CheckpointError(message) from error
        if Path(self.path).exists() and not (self.resume or self.overwrite):
            raise CheckpointError(
                f"{self.path} exists already: resume=True (--resume) continues the search in it, "
                "overwrite=True (--overwrite) replaces it"
            )
        remove_stale_files(target)
