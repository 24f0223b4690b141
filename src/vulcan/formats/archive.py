"""Archives of arrays, as `numpy.savez` writes them: sizes are looked at before memory is taken.

An archive is compressed, and each array in it begins with its own claim of how long it is. What
the arrays of an archive take when they are unpacked is known beforehand, and limited to what a
search may take by default; and an array that claims more than there is of it is no array.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.runtime.memory import find_default_memory

__all__ = ["read_archive"]

SUFFIX: Final = ".npy"
HEADERS: Final = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_archive(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive, by name.

    Raises
    ------
    OptionError
        If it can't be read, or is none.
    """
    try:
        with open(path, "rb") as stream:
            if stream.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
                raise OptionError(f"{path}: this is one array; numpy.savez writes several")
        with zipfile.ZipFile(path) as archive:
            _check_size(path, archive)
            return {
                member.filename.removesuffix(SUFFIX): _read_array(archive, member)
                for member in archive.infolist()
            }
    except OSError as error:
        raise OptionError(f"{path}: can't be read: {error.strerror or error}") from None
    except (ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise OptionError(f"{path}: this is not what numpy.savez writes: {error}") from None


def _check_size(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> None:
    size = sum(member.file_size for member in archive.infolist())
    if size > (limit := find_default_memory()):
        taken, most = f"{size / 1e9:.3g} GB", f"{limit / 1e9:.3g} GB"
        raise OptionError(f"{path}: its arrays take {taken}; {most} are allowed on this machine")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array of an archive, whose length is what it claims."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in HEADERS:
            raise ValueError(f"{member.filename} has the unknown version {version}")
        shape, _, dtype = HEADERS[version](stream)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} has Python objects in it")
        claimed, there = math.prod(shape) * dtype.itemsize, member.file_size - stream.tell()
        if claimed != there:
            raise ValueError(f"{member.filename} has {there} bytes of {claimed}")
    with archive.open(member) as stream:
        return np.asarray(npy.read_array(stream, allow_pickle=False))
