"""Storm, an independent model checker, and what it is given.

Storm (https://www.stormchecker.org, GPL) is an extra, imported only when somebody asks for it:

    pip install 'vulcan-planner[storm]'

It reads models in PRISM, JANI and DRN (`vulcan.formats.prism`), and computes what a policy is worth
once more (`vulcan.certificates.verification`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError

__all__ = ["build_matrix", "load_storm", "quiet_storm"]


def load_storm() -> Any:
    """Return stormpy, or say how to install it."""
    try:
        import stormpy
        import stormpy.environments
        import stormpy.results
    except ImportError as error:
        raise OptionError(
            "Storm is not installed, or older than 2.0: pip install 'vulcan-planner[storm]'"
        ) from error
    return stormpy


@contextmanager
def quiet_storm() -> Iterator[Any]:
    """Give stormpy, which writes nothing to standard output meanwhile."""
    stormpy = load_storm()
    level = stormpy.developer.get_log_level()
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    try:
        yield stormpy
    finally:
        stormpy.developer.set_log_level(level)


def build_matrix(
    row: NDArray[Any],
    column: NDArray[Any],
    probability: NDArray[np.float64],
    groups: NDArray[Any] | None = None,
    *,
    size: int,
) -> Any:
    """Return a transition matrix.

    Parameters
    ----------
    row, column, probability
        Its entries, in any order. Several for the same place are added up.
    groups
        The first row of each state, where states have several choices, each with a row of its own.
    size
        The number of states.
    """
    # Storm wants columns that increase, each once.
    places, which = np.unique(row * size + column, return_inverse=True)
    rows, columns = np.divmod(places, size)
    options = {"has_custom_row_grouping": True, "row_groups": size} if groups is not None else {}
    builder = load_storm().datastructures.SparseMatrixBuilder(
        rows=int(rows.max(initial=-1)) + 1, columns=size, entries=len(places), **options
    )
    firsts = [] if groups is None else groups.tolist()
    values = np.bincount(which, probability)
    builder.add_next_values(rows.tolist(), columns.tolist(), values.tolist(), firsts)
    return builder.build()
