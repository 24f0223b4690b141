"""Bins: the index of a number among evenly spaced ones, safe for every float.

`int` of a NaN, or of a number beyond 64 bits, is undefined in machine code, and an index from it
could write anywhere. So `find_bin` computes every index that comes from a float.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.compilation import part

LARGEST: Final = float(np.finfo(np.float64).max)


@part
def scale_bins(low, high, count):
    """Return the number of bins per unit from low to high; 0 if the two are equal.

    A quotient that overflows is replaced by the largest float, which uses fewer bins.
    """
    return min(count / (high - low), LARGEST) if high > low else 0.0


@part
def find_bin(place, last):
    """Return the bin of a place, clamped to 0 ... last; 0 for NaN."""
    if place >= last:
        return last
    return int(place) if place > 0.0 else 0
