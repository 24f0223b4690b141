"""The types of the functions of a compiled model; see `vulcan.compiled`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from vulcan.compiled import ANSWER


def point_to(dtype: Any) -> Any:
    """Return the type of a pointer to an element."""
    return types.CPointer(numba.from_dtype(np.dtype(dtype)))


def outcomes_signature(state: Any, parameters: Any) -> Any:
    """Return the type of `outcomes`."""
    places = (point_to(parameters), point_to(state))
    return types.int64(*places, types.int64, point_to(ANSWER), point_to(state))


def bound_signature(state: Any, parameters: Any) -> Any:
    """Return the type of `bound`."""
    return types.float64(point_to(parameters), point_to(state), types.int64)
