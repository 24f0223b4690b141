"""What workers hold in tests, where other processes can import it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vulcan.parallel.executors import Threads
from vulcan.runtime.limits import Interruption


@dataclass(frozen=True)
class Aside(Threads):
    """Threads that share nothing with the search, as other processes do not."""

    in_process: ClassVar[bool] = False


def is_first(file: str) -> bool:
    """Return whether this is the first call for a file, in any process."""
    try:
        Path(file).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class OddError(Exception):
    """Its constructor wants something else than what is pickled."""

    def __init__(self, place: str, number: int) -> None:
        super().__init__(f"odd {place} {number}")


class Held:
    """Does what it is told."""

    def __init__(self, channel: Any, base: Any = 0) -> None:
        self.channel, self.base = channel, base

    def add(self, number: Any) -> Any:
        return self.base + number

    def pid(self, _: Any = None) -> int:
        return os.getpid()

    def threads(self) -> str | None:
        return os.environ.get("OMP_NUM_THREADS")

    def say(self, value: Any) -> Any:
        """Raise in one of several ways."""
        if value == "odd":
            raise OddError("here", 1)
        if value == "lock":
            error = ValueError("with a lock")
            error.lock = threading.Lock()  # type: ignore[attr-defined]
            raise error
        if value == "exit":
            sys.exit(3)
        raise KeyError(value)

    def lock(self) -> Any:
        return threading.Lock()

    def double(self, array: np.ndarray) -> np.ndarray:
        array *= 2
        return array

    def zeros(self, size: int) -> np.ndarray:
        return np.zeros(size, np.uint8)

    def die(self, _: Any = None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def die_once(self, file: str) -> str:
        """Die with the first who comes here, and answer the others."""
        if is_first(file):
            self.die()
        return "alive"

    def nap(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def search(self, longest: float) -> bool:
        """Tell how far it is until it is stopped, and return whether it was."""
        began = time.monotonic()
        with Interruption() as interruption:
            while time.monotonic() - began < longest:
                self.channel.report(time.monotonic() - began)
                if interruption.requested:
                    return True
                time.sleep(0.005)
        return False


class Raising:
    """Can't be made."""

    def __init__(self, channel: Any) -> None:
        raise ValueError("not to be made")


class Slow(Held):
    """Takes a moment to be made."""

    def __init__(self, channel: Any, base: Any = 0) -> None:
        super().__init__(channel, base)
        time.sleep(0.3)


class Unreadable:
    """Can be pickled, but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (int, ("not a number",))
