"""Memory: the limit of this process, its use, and pauses of the garbage collector.

A process may have less memory than the machine: a container (cgroups, of either version) or a limit
of its own (`ulimit -v`, `-d`) can be smaller.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

try:
    import resource
except ImportError:  # not every system has such limits
    resource = None  # type: ignore[assignment]

SHARE: Final = 0.5
"""Default memory limit of a search, as a share of what this process may have."""

FALLBACK: Final = 8 << 30
"""Bytes of memory where the system does not say."""

OWN_GROUPS: Final = Path("/proc/self/cgroup")
GROUPS: Final = Path("/sys/fs/cgroup")

LIMITS_OF_GROUPS: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")


def find_default_memory() -> int:
    """Return the default memory limit of a search in bytes: half of what this process may have."""
    limits = [
        int(text) for path in _find_limits(OWN_GROUPS, GROUPS) if (text := _read(path)).isdecimal()
    ]
    with suppress(AttributeError, OSError, ValueError):  # not every system tells
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if resource is not None:
        limits += [resource.getrlimit(k)[0] for k in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return int(SHARE * min((limit for limit in limits if limit > 0), default=FALLBACK))  # or -1


def read_resident_memory() -> int:
    """Return the bytes of this process that are in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@cache
def _find_limits(own_groups: Path, groups: Path) -> list[Path]:
    """Return the files with the limits of this process's groups and of those around them.

    Limits may change, but a process stays in its groups.
    """
    found: list[Path] = []
    for line in _read(own_groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = groups / "memory" if controllers else groups
        inner = top / path.lstrip("/")
        # In a container, the path may be one that only the machine around it knows.
        for folder in (inner, *inner.parents):
            found += filter(Path.exists, (folder / name for name in LIMITS_OF_GROUPS))
            if folder == top:
                break
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause the garbage collector while millions of objects are created that all stay.

    It would traverse them again and again in vain: a third of the time of a certificate of 90,000
    decisions.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
