"""How kernels are compiled and cached.

Numba caches a compiled function by the time stamp of its own source file. A caller in one file
would go on using an old version of a callee in another. So the cache directory is named after a
digest of all kernel sources and the Numba version: any change gives a new, empty one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from platformdirs import user_cache_path

__all__ = ["announce_compilation", "kernel"]

logger = logging.getLogger("vulcan")


@cache
def cache_directory() -> Path:
    """Return the directory that compiled kernels are cached in."""
    digest = hashlib.sha256(numba.__version__.encode())
    here = Path(__file__).parent
    # Kernels also freeze the constants of these two.
    outside = [here.parent / "constraint.py", here.parent / "tolerance.py"]
    for source in sorted([*here.glob("*.py"), *outside]):
        digest.update(source.name.encode() + source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    chosen = os.environ.get("VULCAN_CACHE_DIR")
    directory = (Path(chosen) if chosen else user_cache_path("vulcan-planner")) / name
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"vulcan-planner-{os.getuid()}" / name
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with Numba when it is first called, cached on disk."""
    # Numba reads this setting while it decorates; a user's own functions keep theirs.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_directory())
    try:
        return numba.njit(cache=True, nogil=True)(function)
    finally:
        numba.config.CACHE_DIR = before


def announce_compilation(function: Any) -> None:
    """Say so if a kernel has never been compiled on this machine."""
    name = function.py_func.__name__
    if not any(cache_directory().rglob(f"*.{name}-*.nbi")):
        logger.warning("compiling the search kernels; this happens once and takes a few seconds")
