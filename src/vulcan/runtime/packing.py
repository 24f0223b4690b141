"""Arrays as the bytes of a checkpoint, and what is said of bytes that are no such arrays.

A seal shows damage, not who wrote a file. Kernels follow the numbers in their arrays wherever these
lead, so that whoever reads arrays from a file checks them first: `require` says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError
from vulcan.runtime.ranges import ranges

__all__ = ["claim", "pack_array", "require", "require_names", "unpack_array"]


def require(condition: object, problem: str) -> None:
    """Refuse a checkpoint unless a condition holds."""
    if not condition:
        raise CheckpointError(f"the content is not a checkpoint: {problem}")


def require_names(packed: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse a checkpoint in which something else is packed than what has these names."""
    expected = set(names)
    require(set(packed) == expected, f"it must have {', '.join(sorted(expected))}, and no more")


def pack_array(array: NDArray[Any]) -> bytes:
    """Return the bytes of an array."""
    return np.ascontiguousarray(array).tobytes()


def unpack_array(
    packed: Mapping[str, bytes], name: str, like: NDArray[Any], length: int | None = None
) -> NDArray[Any]:
    """Return an array of a checkpoint.

    Parameters
    ----------
    packed
        All of them, by name.
    name
        Which one.
    like
        An array with rows of the same kind.
    length
        How many rows there must be, if that is known.
    """
    row = like.dtype.itemsize * math.prod(like.shape[1:])
    count, rest = divmod(len(packed[name]), row)
    right = rest == 0 and length in (None, count)
    require(right, f"{name.strip('_')} has a wrong length: {len(packed[name])} bytes")
    values = np.frombuffer(packed[name], like.dtype)
    return values.reshape(count, *like.shape[1:]).copy()


def claim(
    taken: NDArray[np.bool_], firsts: NDArray[Any], counts: NDArray[Any], what: str
) -> NDArray[np.intp]:
    """Return the rows of some ranges, each of which belongs to nobody else, and mark them as taken.

    Parameters
    ----------
    taken
        Which rows belong to somebody already.
    firsts, counts
        The ranges.
    what
        What an error calls the rows.
    """
    filled = counts > 0
    firsts, counts = firsts[filled].astype(np.int64), counts[filled].astype(np.int64)
    ends = firsts + counts
    inside = (firsts >= 0) & (ends <= len(taken))
    require(inside.all(), f"{what} lie outside of their array")
    order = np.argsort(firsts)
    apart = (ends[order[:-1]] <= firsts[order[1:]]).all()
    rows = ranges(firsts, counts) if apart else np.zeros(0, np.intp)
    require(apart and not taken[rows].any(), f"some {what} belong to two others")
    taken[rows] = True
    return rows
