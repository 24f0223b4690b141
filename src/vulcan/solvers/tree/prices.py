"""Which prices of failure to look at.

At first nobody knows what a failure is worth: prices go from 0, the plan without regard to risk, up
to many times the rewards. Later they are laid around the prices that decide over the first actions
that may be the best (`vulcan.kernels.price_root`), closer and closer. As long as no policy within
the bound is in sight, they go up: the largest of all asks for the least risk.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["are_alike", "are_at_an_end", "begin_prices", "choose_prices", "raise_prices"]

Prices = NDArray[np.float64]

CONTENDERS: Final = 3
"""First actions that prices are laid around, at most."""

CLOSE: Final = 0.03
"""As a share of the rewards: first actions that are worth less than the best by this much."""

LOWER: Final = 0.6
HIGHER: Final = 1.7
"""How far prices go below and above those that decide."""

SMALL: Final = 0.1
"""As a share of the rewards: a price that is small."""

TRIFLE: Final = 0.01
"""As a share of the rewards: a price that is next to nothing."""

HIGHEST: Final = 1e6
"""How many times the size of rewards a price may be."""

STEEPER: Final = 16.0

ALIKE: Final = 0.1
"""Prices that differ by no more than this share of themselves are not worth a move."""


def begin_prices(count: int, size: float, allowed: float) -> Prices:
    """Return the first prices.

    Parameters
    ----------
    count
        How many.
    size
        The size of rewards.
    allowed
        The risk that is allowed for the largest: it may be worth all rewards, or more.
    """
    low = size / 8
    high = size * max(8.0, 2 / max(allowed, 1 / HIGHEST))
    return np.array([0.0, *(low * (high / low) ** (np.arange(count - 1) / (count - 2)))])


def choose_prices(judged: NDArray[Any], prices: Prices, size: float) -> Prices:
    """Return prices around those that decide over the first actions.

    Parameters
    ----------
    judged
        What first actions are worth, and which price says so.
    prices
        The present prices.
    size
        The size of rewards.
    """
    rewards = judged["reward"]
    order = np.argsort(-rewards, kind="stable")[:CONTENDERS]
    close = [k for k in order if rewards[k] >= rewards[order[0]] - CLOSE * size]
    deciding = prices[judged["lane"][close]]
    low, high = float(deciding.min()), float(deciding.max())
    count = len(prices)
    low *= LOWER if low > prices[0] else LOWER**3
    if low <= TRIFLE * size:
        return HIGHER * max(high, SMALL * size) * np.arange(count) / (count - 1)
    high *= HIGHER if high < prices[-1] else HIGHER**3
    return np.asarray(low * (high / low) ** (np.arange(count) / (count - 1)))


def are_alike(prices: Prices, others: Prices) -> bool:
    """Whether it would be all the same to look at the one or the other."""
    return bool(np.allclose(prices, others, rtol=ALIKE, atol=0.0))


def are_at_an_end(judged: NDArray[Any], prices: Prices) -> bool:
    """Whether the price that decides over the best first action may lie beyond the present ones."""
    lane = int(judged["lane"][int(np.argmax(judged["reward"]))])
    return lane == len(prices) - 1 or (lane == 0 and prices[0] > 0)


def raise_prices(prices: Prices, size: float) -> Prices:
    """Return higher prices; the last of them asks for the least risk, or nearly so."""
    top = min(STEEPER * float(prices[-1]), HIGHEST * size)
    low = max(float(prices[len(prices) // 2]), SMALL * size)
    shares = np.arange(len(prices)) / (len(prices) - 1)
    return np.asarray(low * (max(top, 2 * low) / low) ** shares)
