"""Finite distributions, as dictionaries from values to probabilities.

Random expressions are independent of each other, as in RDDL: each place in a grounded expression
draws for itself. So a function of several random arguments has the distribution of its values under
the product of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

from vulcan.tolerance import SUM_TOLERANCE

__all__ = ["Distribution", "bernoulli", "bind", "binomial", "combine", "discrete", "prune"]

Distribution = dict[Any, float]

MOST_TRIALS = 10_000
LOOSE_SUM = 1e-5
"""Files round their probabilities: a sum is taken for 1 within this, as in pyRDDLGym."""


def bernoulli(probability: float) -> Distribution:
    """Return the distribution of a truth value."""
    probability = _check_probability("Bernoulli", probability)
    return prune({True: probability, False: 1 - probability})


def binomial(trials: int, probability: float) -> Distribution:
    """Return the distribution of how many of some trials succeed."""
    if not 0 <= trials <= MOST_TRIALS:
        raise ValueError(f"Binomial takes from 0 to {MOST_TRIALS:,} trials, not {trials!r}")
    p = _check_probability("Binomial", probability)
    return prune(
        {k: math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)}
    )


def discrete(values: Sequence[Any], weights: Sequence[float], normal: bool) -> Distribution:
    """Return the distribution over some values; weights that are not `normal` have any sum."""
    total = math.fsum(weights)
    listed = ", ".join(
        f"{value}: {weight!r}" for value, weight in zip(values, weights, strict=True)
    )
    if not all(weight >= 0 for weight in weights) or not 0 < total < math.inf:
        raise ValueError(f"Discrete takes weights of at least 0, not all 0, and not {listed}")
    if normal and abs(total - 1) > LOOSE_SUM:
        raise ValueError(f"Discrete takes probabilities that sum to 1, not to {total!r}: {listed}")
    return prune({v: weight / total for v, weight in zip(values, weights, strict=True)})


def combine(function: Callable[..., Any], *arguments: Distribution) -> Distribution:
    """Return the distribution of a function of independent random arguments."""
    result: Distribution = {}
    for values, probability in _list_cases(arguments):
        value = function(*values)
        result[value] = result.get(value, 0.0) + probability
    return result


def bind(function: Callable[..., Distribution], *arguments: Distribution) -> Distribution:
    """Return the distribution of a draw from the distribution that random arguments choose."""
    result: Distribution = {}
    for values, probability in _list_cases(arguments):
        for value, share in function(*values).items():
            result[value] = result.get(value, 0.0) + probability * share
    return result


def prune(distribution: Distribution) -> Distribution:
    """Return a distribution without the values that never occur."""
    return {value: chance for value, chance in distribution.items() if chance > 0}


def _list_cases(arguments: Iterable[Distribution]) -> Iterable[tuple[tuple[Any, ...], float]]:
    for cases in product(*(argument.items() for argument in arguments)):
        yield tuple(value for value, _ in cases), math.prod(chance for _, chance in cases)


def _check_probability(name: str, probability: float) -> float:
    # What is outside by a rounding error is meant to be 0 or 1.
    if not -SUM_TOLERANCE <= probability <= 1 + SUM_TOLERANCE:
        raise ValueError(f"{name} takes a probability from 0 to 1, not {probability!r}")
    return min(max(float(probability), 0.0), 1.0)
