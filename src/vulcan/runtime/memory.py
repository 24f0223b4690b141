"""How much memory there is for this process, and how much of it is taken.

A process may have less than the machine has: a container (cgroups, of either version) or a limit of
its own (`ulimit -v`, `-d`) can be smaller.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import ClassVar, Final, Self

try:
    import resource
except ImportError:  # not every system has such limits
    resource = None  # type: ignore[assignment]

__all__ = ["MemoryGrowth", "find_default_memory", "find_resident"]

SHARE: Final = 0.5
"""Of what there is, a search may take this part if nobody says how much."""

FALLBACK: Final = 8 << 30
"""Bytes that there are where the system does not say."""

BETWEEN_LOOKS: Final = 0.05
"""Seconds until it is looked again how much is taken."""

SHARE_OF_GROWTH: Final = 0.9
"""Of what a search may take, the process may grow by this part until it is stopped..."""

UNCOUNTED: Final = 16 << 20
"""... and by so many bytes, which nobody can say the cause of."""

OWN_GROUPS: Final = Path("/proc/self/cgroup")
GROUPS: Final = Path("/sys/fs/cgroup")

LIMITS_OF_GROUPS: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")


def find_default_memory() -> int:
    """Return the bytes that a search may take by default: half of what this process may have."""
    return int(SHARE * min(_list_limits(), default=FALLBACK))


class MemoryGrowth:
    """How much memory this process has taken since a search began.

    A search counts what it takes itself. This is for what it can't count: what libraries take, and
    what a model keeps. Of several searches at once nobody knows which of them it was, so that they
    may take together what each of them may.
    """

    _searches: ClassVar[int] = 0
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._before: int | None = None
        self._looked = 0.0
        self._default: int | None = None

    def __enter__(self) -> Self:
        with self._lock:
            MemoryGrowth._searches += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            MemoryGrowth._searches -= 1

    def start(self) -> None:
        """Count from now on."""
        self._before = find_resident()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Don't count what is taken inside."""
        before = find_resident()
        try:
            yield
        finally:
            if self._before is not None:
                self._before += max(0, find_resident() - before)

    @property
    def taken(self) -> int:
        """How much it is."""
        return 0 if self._before is None else max(0, find_resident() - self._before)

    def exceeds(self, memory: int | None) -> bool:
        """Whether it is more than a search may take, None for the default; looked at at times."""
        now = perf_counter()
        if self._before is None or now - self._looked < BETWEEN_LOOKS:
            return False
        self._looked = now
        if memory is None:
            self._default = memory = self._default or find_default_memory()
        most = SHARE_OF_GROWTH * max(1, self._searches) * memory + UNCOUNTED
        return self.taken > most


def find_resident() -> int:
    """Return the bytes of this process that are in memory now; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _list_limits() -> list[int]:
    """Return all that limits the memory of this process."""
    limits = list(_read_groups())
    with suppress(AttributeError, OSError, ValueError):  # not every system tells
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if resource is not None:
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            soft, _ = resource.getrlimit(kind)
            limits.append(soft)
    return [limit for limit in limits if limit > 0]  # no limit is -1


def _read_groups() -> Iterator[int]:
    """Yield the limits of the groups that this process is in, and of those around them."""
    for path in _find_limits(OWN_GROUPS, GROUPS):
        yield from _read_limit(path)


@cache
def _find_limits(own_groups: Path, groups: Path) -> Sequence[Path]:
    """Return the files with limits of groups: limits may change, a process stays in its groups."""
    try:
        lines = own_groups.read_text().splitlines()
    except OSError:
        return ()
    found: list[Path] = []
    for line in lines:
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


def _read_limit(path: Path) -> Iterator[int]:
    try:
        text = path.read_text().strip()
    except OSError:
        return
    if text.isdecimal():  # else there is none: "max"
        yield int(text)
