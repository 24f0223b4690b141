"""Rows of the state graph: flat arrays that grow, in the form in which kernels read them.

`vulcan.graphs.base` says what the fields of states, actions and outcomes mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.runtime.reservation import lengthen

__all__ = [
    "ACTION",
    "LARGE_GROWTH",
    "MOST_ROWS",
    "OUTCOME",
    "SOURCE",
    "STATE",
    "Rows",
    "find_growth",
]


STATE: Final = np.dtype([("first_action", "i4"), ("action_count", "i4")], align=True)
ACTION: Final = np.dtype(
    [
        ("expected_reward", "f8"),
        ("immediate_risk", "f8"),
        ("credit", "f8"),
        ("first_outcome", "i4"),
        ("safe_count", "i4"),
        ("outcome_count", "i4"),
        ("open_count", "i4"),
        ("number", "i4"),
    ],
    align=True,
)
OUTCOME: Final = np.dtype(
    [("probability", "f8"), ("reward", "f8"), ("outlook", "f8"), ("state", "i4")], align=True
)

SOURCE: Final = np.dtype(
    [
        ("outcomes", "u8"),  # addresses of the functions, 0 for none
        ("bound", "u8"),
        ("value_bound", "u8"),
        ("parameters", "u8"),  # addresses of what they read and write
        ("records", "u8"),
        ("answers", "u8"),
        ("following", "u8"),
        ("state_size", "i8"),
        ("numbers", "i8"),  # of actions
        ("most_outcomes", "i8"),
        ("states", "i8"),  # how many rows are filled
        ("actions", "i8"),
        ("outcome_rows", "i8"),
        ("evaluations", "i8"),
        ("state", "i8"),  # where an answer was broken
        ("action", "i8"),
    ],
    align=True,
)
"""Where kernels find a compiled model, and how far they filled the rows (`kernels.expansion`).

For a Python model all of it is 0."""

MOST_ROWS: Final = (1 << 31) - 1
"""Rows are numbered with 32 bits."""

SMALLEST_GROWTH: Final = 0.05

LARGE_GROWTH: Final = 3.0
"""By which share arrays grow that are counted as far as they are filled."""


def find_growth(arrays: Sequence[NDArray[Any]], memory: float, most: float = 1.0) -> float:
    """Return by which share arrays may grow within this many bytes more: 1 doubles them.

    It is 0 if they could not grow by a twentieth, or would have more rows than can be numbered.
    Room that is never filled takes no memory, since it is never touched. So arrays that are counted
    as far as they are filled may grow by more, and are copied less often.
    """
    share = min(most, memory / max(1, sum(array.nbytes for array in arrays)))
    longest = max((len(array) for array in arrays), default=0)
    return share if share >= SMALLEST_GROWTH and (1 + share) * longest <= MOST_ROWS else 0.0


class Rows:
    """A growing array of rows; kernels use `array`, of which the first `count` are filled."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.array: NDArray[np.void] = np.zeros(64, dtype)
        self.count = 0

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows at the end."""
        if rows:
            self.extend(len(rows))[:] = rows

    def extend(self, count: int) -> NDArray[np.void]:
        """Add this many rows at the end, and return them, to be filled."""
        begin, self.count = self.count, self.count + count
        if self.count > len(self.array):
            self.lengthen(max(self.count, 2 * len(self.array)))
        return self.array[begin : self.count]

    def lengthen(self, length: int) -> None:
        """Make room for this many rows."""
        self.array = lengthen(self.array, min(self.count, len(self.array)), length)

    def keep(self, kept: NDArray[np.intp]) -> None:
        """Drop every row but those given, in their order."""
        self.array[: len(kept)] = self.array[kept]
        self.count = len(kept)
