"""The parts of a tree with several prices: what follows one history below its top.

Parts have nothing in common: no values, no random numbers, no record of what samples collected. So
it does not matter in which order they are sampled, at the same time, or where: values and policies
are the same. A part is numbered in the order in which the top came to have it, whoever holds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.runtime.reservation import set_apart

__all__ = ["Job", "Origin", "Part", "make_part", "make_returns"]

MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class Origin(NamedTuple):
    """Where a part comes from.

    Attributes
    ----------
    number
        Of the part, from 1 on.
    action
        The number of the action that led to it.
    earned
        What histories earn after the first outcome, up to where it begins.
    inherited
        What samples collected while it belonged to a larger part; None if it never did.
    """

    number: int
    action: int
    earned: float = 0.0
    inherited: NDArray[Any] | None = None


@dataclass(eq=False)
class Part:
    """The search in one part.

    Attributes
    ----------
    returns
        What samples collected, level by level.
    path
        The history of the present sample.
    control
        One record; see `vulcan.kernels.price_search`.
    """

    returns: NDArray[Any]
    path: NDArray[Any]
    control: NDArray[Any]


def make_returns(levels: int) -> NDArray[Any]:
    """Return a record of samples in which nothing is noted yet."""
    from vulcan.kernels.selection import RETURNS

    returns = set_apart(levels, RETURNS)
    returns["least"], returns["most"] = math.inf, -math.inf
    return returns


def make_part(
    origin: Origin, root: int, level: int, levels: int, seed: int, exploration: float
) -> Part:
    """Return the search of a part that begins.

    Parameters
    ----------
    origin
        Where it comes from.
    root, level
        The node of its first history, and how many decisions came before.
    levels
        How many decisions the longest histories have.
    seed, exploration
        How to sample.
    """
    from vulcan.kernels.price_search import CONTROL, STEP

    returns, control = make_returns(levels), set_apart(1, CONTROL)
    if origin.inherited is not None:
        returns[:] = origin.inherited
        known = returns["samples"] > 0  # what was collected on average, as if by one sample
        returns["total"][known] /= returns["samples"][known]
        returns["samples"] = known
    control["root"], control["begin"], control["number"] = root, level, origin.action
    control["exploration"] = exploration
    with np.errstate(over="ignore"):
        control["random"] = (np.uint64(seed) + np.uint64(origin.number)) * MIX
    return Part(returns, set_apart(levels + 1, STEP), control)


@dataclass(eq=False)
class Job:
    """Samples of a part."""

    part: Part
    orders: NDArray[Any]

    def __post_init__(self) -> None:
        self.part.control["done"] = self.part.control["depth"] = 0

    def run(self, problem: Any, tree: Any) -> int:
        """Go on until done, or until something is needed."""
        from vulcan.kernels.price_search import sample

        part = self.part
        return int(sample(problem, tree, part.returns, part.path, self.orders, part.control))
