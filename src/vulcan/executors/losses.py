"""How many workers were lost, for the one who has to say so.

Who hires workers is deep inside a search, and who describes its result is far above. So the one
above opens a count, and whoever loses a worker below, in the same thread, adds to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Losses", "count_losses", "current_losses"]


@dataclass
class Losses:
    """A count of workers that were lost.

    Attributes
    ----------
    count
        How many so far.
    """

    count: int = 0


_current: ContextVar[Losses | None] = ContextVar("losses", default=None)


@contextmanager
def count_losses() -> Iterator[Losses]:
    """Count the workers that are lost by those who are hired meanwhile, in this thread."""
    losses = Losses()
    token = _current.set(losses)
    try:
        yield losses
    finally:
        _current.reset(token)


def current_losses() -> Losses:
    """Return the count that is open; a new one if nobody counts."""
    return _current.get() or Losses()
