"""Consecutive ranges of rows, as every array with `first` and `count` of something has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ranges", "starts"]


def starts(counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each of some consecutive ranges begins."""
    return np.asarray(np.cumsum(counts, dtype=np.intp) - counts, np.intp)


def ranges(firsts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return first, first + 1, ... of each range, one after the other."""
    ends = np.cumsum(counts, dtype=np.intp)
    steps = np.arange(ends[-1] if len(ends) else 0)
    return np.asarray(steps + np.repeat(firsts - (ends - counts), counts), np.intp)
