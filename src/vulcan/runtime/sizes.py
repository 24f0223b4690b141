"""What objects of Python take in memory, found from a few of them.

To look into every object would take longer than to make it. So some are looked into, in ever longer
intervals, and those between count as much. An object is charged for all that it alone leads to:
not for what others have that were looked into, nor for what it has from the one that it was made
of. What the answers of a model are made of, classes and functions, is not counted.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

__all__ = ["ObjectSizes", "measure"]

INTERVAL: Final = 16
"""It is looked again when there are this part more objects."""

REMEMBERED: Final = 8
"""So many looks say what an object takes now."""

MOST_VISITED: Final = 20_000
"""Objects that a look comes to at most: more are hardly those of a state."""

GRAIN: Final = 16
"""Bytes in multiples of which memory is handed out."""

HOLES: Final = 1.1
"""Times what objects take that Python takes for them, since it can't fill every hole."""

CODE: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, CodeType)


class ObjectSizes:
    """What the objects take that something holds more and more of."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._rates: deque[float] = deque(maxlen=REMEMBERED)
        self._counted = self._next = 0
        self._bytes = 0.0

    def is_due(self, count: int) -> bool:
        """Whether it is time to look, now that there are this many objects."""
        return count > self._next

    def look(self, count: int, new: Sequence[Any], made_of: Iterable[Any] = ()) -> None:
        """Look into the newest of so many objects.

        Parameters
        ----------
        count
            How many there are.
        new
            The newest of them.
        made_of
            What these were made of, and share parts with.
        """
        measure(made_of, self._known)
        self._rates.append(HOLES * measure(new, self._known) / len(new))
        self._bytes, self._counted = self.total(count), count
        self._next = count + count // INTERVAL

    def total(self, count: int) -> float:
        """Return what this many objects take."""
        if not self._rates:
            return 0.0
        return self._bytes + (count - self._counted) * sum(self._rates) / len(self._rates)

    def share(self, kept: int, count: int) -> ObjectSizes:
        """Return the same for those of so many objects that are kept."""
        shared = ObjectSizes()
        shared._rates = self._rates.copy()
        shared._bytes = self.total(count) * kept / max(1, count)
        shared._counted = shared._next = kept
        return shared


def measure(things: Iterable[Any], known: set[int]) -> int:
    """Return the bytes of objects and of all that they lead to, and is not known yet.

    Parameters
    ----------
    things
        The objects.
    known
        The addresses of those that count for nothing; it grows.
    """
    total, waiting = 0, list(things)
    for _ in range(MOST_VISITED):
        if not waiting:
            break
        thing = waiting.pop()
        if id(thing) in known or isinstance(thing, CODE):
            continue
        known.add(id(thing))
        total += -(-_size(thing) // GRAIN) * GRAIN
        waiting += gc.get_referents(thing)
        if isinstance(thing, np.ndarray) and thing.base is not None:
            waiting.append(thing.base)
    return total


def _size(thing: Any) -> int:
    try:
        return sys.getsizeof(thing)
    except Exception:  # it may say something else, or nothing
        return object.__sizeof__(thing)
