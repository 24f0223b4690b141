"""How large rewards may be in a tree of several prices, which is kept in single precision.

Single precision ends at 3e38. A price is up to some million times the size of rewards
(`vulcan.solvers.tree.prices`), and what is kept is worth at most a reward and a price together. So
rewards, and their sums, may be up to `LARGEST`; larger ones are refused rather than searched with
values that are no numbers. Other solvers compute in double precision, and take all that a model may
pay.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from vulcan.errors import OptionError

__all__ = ["LARGEST", "PrecisionError", "require_size"]

LARGEST: Final = 1e22
"""The largest size of rewards, and of what they sum to."""


class PrecisionError(OptionError):
    """Rewards are too large for the solver that was asked."""


def require_size(*rewards: Any) -> None:
    """Check that rewards are small enough.

    Parameters
    ----------
    rewards
        Numbers, or arrays of them.

    Raises
    ------
    PrecisionError
        If one is not, or is no number any more.
    """
    for reward in rewards:
        most = float(np.max(np.abs(reward), initial=0.0))
        if not most <= LARGEST:
            met = f"{most:g}" if math.isfinite(most) else "more than that"
            raise PrecisionError(
                f"Vulcan searches in single precision, with rewards and sums of them of at most "
                f"{LARGEST:g}; this model has {met}. Write rewards in a larger unit, or choose "
                "another solver, such as Pareto"
            )
